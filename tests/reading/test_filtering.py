"""Projections, filters and buckets, in every layout (`reading.layouts`)."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from shaped_rows import ROWS, SCHEMA, numbers, written

import recordspec as rs
from recordspec.schema.decoder import batch_spec


@pytest.fixture(scope="module", params=["rows", {"blocks": 32}], ids=["rows", "blocks"])
def data(tmp_path_factory, request):
    return written(tmp_path_factory.mktemp("shaping") / "data", request.param)


def test_only_the_features_asked_for_are_read(data):
    dataset = rs.read(data, SCHEMA, batch=50, features=["text", "n"])
    assert dataset.element_spec == {name: batch_spec(SCHEMA)[name] for name in ("text", "n")}
    assert list(next(iter(dataset))) == ["text", "n"]
    assert numbers(dataset) == list(range(ROWS))
    with pytest.raises(rs.SpecError, match="expected one of n, words, other, text, got `texts`"):
        rs.read(data, SCHEMA, batch=50, features=["texts"])


@pytest.mark.parametrize("batch", [None, 30, {"size": 30, "drop_remainder": True}])
@pytest.mark.parametrize("features", [None, ["n"]])
def test_a_filter_keeps_rows(data, batch, features):
    dataset = rs.read(
        data, SCHEMA, batch=batch, features=features, filter=lambda f: f["words"].row_lengths() > 30
    )
    expected = [number for number in range(ROWS) if number % 40 > 30]
    size = 30 if isinstance(batch, dict) else 1
    assert numbers(dataset) == expected[: len(expected) // size * size]
    if isinstance(batch, int):
        assert [len(one["n"]) for one in dataset] == [30] * (len(expected) // 30) + [len(expected) % 30]


# Filters that keep every third row; a dict is asked in each way that it has.
WAYS = {
    "[]": lambda f: f["label"] == 1,
    "get": lambda f: (f["id"] >= 0) & (f.get("label", 0) == 1),
    "get of none": lambda f: (f["label"] == 1) & (f.get("none", True)),
    "in": lambda f: f["label"] == 1 if "id" in f else f["id"] < 0,
    "not in": lambda f: f["label"] == 1 if "none" not in f else f["id"] < 0,
    "items": lambda f: dict(f.items())["label"] == 1,
    "values": lambda f: list(f.values())[1] == 1,
    "keys": lambda f: f["label"] == 1 if set(f.keys()) == {"id", "label"} else f["id"] < 0,
    "iter": lambda f: f["label"] == 1 if list(f) == ["id", "label"] else f["id"] < 0,
    "len": lambda f: f["label"] == 1 if len(f) == 2 else f["id"] < 0,
    "dict": lambda f: dict(f)["label"] == 1,
    "{**f}": lambda f: {**f}["label"] == 1,
    "**f": lambda f: (f["id"] >= 0) & (lambda label=7, **_: label == 1)(**f),
}
OF_A_DICT = {
    "|": lambda f: (f | {"more": 1})["label"] == 1,
    "copy": lambda f: f.copy()["label"] == 1,
    "pop": lambda f: f.pop("label") == 1,
    "setdefault": lambda f: f.setdefault("label", 7) == 1,
}


@pytest.mark.parametrize("layout", ["rows", {"blocks": 8}], ids=["rows", "blocks"])
def test_a_filter_asks_for_features_in_any_way(tmp_path, layout):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, label: int64}")
    data = tmp_path / "data"
    rs.write([{"id": number, "label": number % 3} for number in range(30)], schema, data, layout=layout)
    (tmp_path / "c.yaml").write_text("schema: data/schema.yaml\ndata: data\nread: {batch: 10}\n")
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    expected = list(range(1, 30, 3))
    for name, keep in (WAYS | OF_A_DICT).items():
        read = rs.read(data, schema, batch=10, filter=keep)
        assert [number for batch in read for number in batch["id"].numpy().tolist()] == expected, name
    for name, keep in WAYS.items():
        read = pipeline.iterate("train", filter=keep)
        assert [number for batch in read for number in batch["id"].tolist()] == expected, name


def test_a_filter_that_gives_no_bools_is_named(data):
    with pytest.raises(rs.SpecError, match="filter: expected a bool for each row"):
        rs.read(data, SCHEMA, batch=10, filter=lambda features: features["n"])
    with pytest.raises(rs.SpecError, match="filter: expected a feature: n, words, other, text, got 'm'"):
        rs.read(data, SCHEMA, batch=10, filter=lambda features: features["m"] > 1)


def test_buckets_have_rows_of_like_lengths(data):
    dataset = rs.read(data, SCHEMA, batch=20, bucket={"by": "words", "boundaries": [10, 20]})
    seen = []
    for batch in dataset:
        lengths = batch["words"].row_lengths().numpy()
        assert len(set(np.searchsorted([10, 20], lengths, side="right"))) == 1
        assert len(lengths) <= 20
        seen += batch["n"].numpy().tolist()
    assert sorted(seen) == list(range(ROWS))
    assert seen != list(range(ROWS))


def test_buckets_resume_too(data):
    options = {"batch": 20, "bucket": {"by": "words", "boundaries": [10]}, "shuffle": 100, "seed": 1}
    whole = [batch["n"].numpy().tolist() for batch in rs.read(data, SCHEMA, **options)]
    rest = [batch["n"].numpy().tolist() for batch in rs.read(data, SCHEMA, **options, start=(0, 4))]
    assert rest == whole[4:]


def test_single_rows_of_every_layout_are_those_of_the_schema(data):
    dataset = rs.read(data, SCHEMA)
    assert dataset.element_spec == SCHEMA.element_spec()
    rows = list(dataset)
    assert [row["words"].numpy().tolist() for row in rows] == [[i] * (i % 40) for i in range(ROWS)]
    assert isinstance(rows[0]["words"], tf.Tensor)
