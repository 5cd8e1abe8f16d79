"""Every schema in `schemas/` and every config in `configs/` is live: written, read, trained on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.config import load_any
from recordspec.schema.decoder import batch_spec
from recordspec.testing import Case, stored_again_it_is_the_same
from recordspec.wire.tfrecord import scan
from shell import run_here
from third_party_data import DATA, needs_data

ROOT = Path(__file__).parents[1]
SCHEMAS = sorted((ROOT / "schemas").glob("*.yaml"))
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
TRIPS = DATA / "taxi/trips.csv"
# By how much one encoding more may change a value on average: 6.3 was measured on random pixels.
LOSS = {"jpeg": 12.0}


def invented(schema: rs.Schema, count: int) -> list[dict]:
    rng = np.random.default_rng(0)
    return [
        {feature.name: invented_value(feature, place, rng) for place, feature in schema._placed}
        for _ in range(count)
    ]


def invented_value(feature, place, rng: np.random.Generator):
    """A value; in a sequence, a list of steps of kinds that stand for one."""
    if not place.in_steps or feature.traits.spans_steps:
        return feature.sample(rng)
    return [feature.sample(rng) for _ in range(int(rng.integers(0, 4)))]


@pytest.mark.parametrize("path", [*SCHEMAS, *CONFIGS], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_has_no_problem_and_a_description(path):
    config, schema = load_any(path)
    assert schema.description
    assert config is None or config.description


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_schema_is_written_and_read(path, tmp_path):
    schema = rs.Schema.load(path)
    rs.write(invented(schema, 50), schema, tmp_path / "data", shards=2)
    dataset = rs.read(tmp_path / "data", schema, batch=16)
    assert dataset.element_spec == batch_spec(schema)
    assert sum(next(iter(batch.values())).shape[0] for batch in dataset) == 50
    for place, feature in schema._placed:
        loss = LOSS.get(getattr(feature, "encoding", None), 0)
        stored_again_it_is_the_same(Case(feature, place.section, loss))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_the_explained_python_reads_what_is_written(path, tmp_path):
    schema = rs.Schema.load(path)
    rs.write(invented(schema, 20), schema, tmp_path / "data")
    (file,) = (tmp_path / "data").glob("train-*")
    source = run_here("explain", path, "--python").stdout
    assert "recordspec" not in source
    names: dict = {}
    exec(source, names)
    for record in scan(file):
        parsed = names["parse"]([record.data])
        columns = parsed if schema.record == "example" else {**parsed[0], **parsed[1]}
        lists = lists_of(record.data, schema.record)
        assert columns.keys() >= lists.keys()
        for key, values in lists.items():
            # of a key that the record has: without a default or padding
            column = columns[key]
            column = column.flat_values if isinstance(column, tf.RaggedTensor) else column
            column = column.values if isinstance(column, tf.SparseTensor) else column
            np.testing.assert_array_equal(
                tf.reshape(column, [-1]), np.asarray(values, column.dtype.as_numpy_dtype)
            )


def lists_of(record: bytes, form: str) -> dict[str, list]:
    """The values of each key of a record that has some, of all its steps, as protobuf reads them."""
    if form == "example":
        features = tf.train.Example.FromString(record).features.feature.items()
        lists = {key: [feature] for key, feature in features}
    else:
        message = tf.train.SequenceExample.FromString(record)
        lists = {key: [feature] for key, feature in message.context.feature.items()}
        lists |= {key: list(steps.feature) for key, steps in message.feature_lists.feature_list.items()}
    values = {key: [value for one in steps for value in values_of(one)] for key, steps in lists.items()}
    return {key: each for key, each in values.items() if each}


def values_of(feature: tf.train.Feature) -> list:
    return list(getattr(feature, feature.WhichOneof("kind")).value) if feature.WhichOneof("kind") else []


@pytest.mark.parametrize("name", [path.name for path in CONFIGS])
def test_a_config_is_built_and_read(home, name):
    pipeline = rs.Pipeline.load(home / "configs" / name)
    keys = pipeline.config.write.keys
    rows = [{**dict.fromkeys(keys, index), **row} for index, row in enumerate(invented(pipeline.schema, 80))]
    manifest = pipeline.build(rows)
    assert sum(map(manifest.rows, manifest.splits)) == 80
    for split in manifest.splits:
        dataset = pipeline.dataset(split)
        assert int(dataset.cardinality()) == pipeline.steps(split)
        batches = list(dataset)
        assert sum(len(tf.nest.flatten(batch)[0]) for batch in batches) == manifest.rows(split)
        assert {len(batch) for batch in batches} == {len(pipeline.config.fit.parts)}


def test_the_digits_train_a_model(home):
    script = [sys.executable, str(ROOT / "demo/raw.py"), "digits", str(home / "raw/digits")]
    subprocess.run(script, check=True, capture_output=True)
    pipeline = rs.Pipeline.load(home / "configs/digits.yaml")
    manifest = pipeline.build()
    assert sum(map(manifest.rows, manifest.splits)) == 1797
    assert manifest.labels == {"label": tuple("0123456789")}
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(10)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    history = model.fit(pipeline.dataset("train"), epochs=8, verbose=0)
    assert history.history["accuracy"][-1] > 0.8  # a guess is right in 0.1


@needs_data
def test_the_taxi_trips_train_a_model(home, capsys):
    shutil.copy(TRIPS, home / "raw")
    pipeline = rs.Pipeline.load(home / "configs/taxi.yaml")
    manifest = pipeline.build()
    assert sum(map(manifest.rows, manifest.splits)) == 10_000
    rows = pipeline.schema.decode(
        [
            record.data
            for split in manifest.splits
            for shard in manifest.shards(split)
            for record in scan(pipeline.data / shard.file)
        ]
    )
    missing = {
        "pickup_census_tract": (-1, 10_000),
        "dropoff_census_tract": (-1, 2978),
        "dropoff_community_area": (-1, 412),
        "trip_seconds": (-1.0, 2),
        "company": (b"", 3462),
        "dropoff_latitude": (0.0, 393),
    }
    assert {name: int((rows[name].numpy() == gap).sum()) for name, (gap, _) in missing.items()} == {
        name: count for name, (_, count) in missing.items()
    }
    inputs = {name: keras.Input((1,), name=name) for name in pipeline.config.fit.inputs}
    hidden = keras.layers.Dense(8, "relu")(keras.layers.concatenate(list(inputs.values())))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile("adam", "mse")
    columns = pipeline.dataset("train", map=as_columns)
    steps = pipeline.steps("train")
    model.fit(columns, validation_data=pipeline.dataset("validation", map=as_columns), epochs=1, verbose=1)
    shown = capsys.readouterr().out
    assert f"1/{steps}" in shown.replace("\x1b[1m", "").replace("\x1b[0m", "")


def as_columns(row: dict) -> dict:
    """Numbers as float columns `[n, 1]`."""
    return {
        name: value if value.dtype == tf.string else tf.cast(value, tf.float32)[:, None]
        for name, value in row.items()
    }
