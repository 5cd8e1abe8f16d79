"""One suite for a local folder and every store: what is built, added, replaced, read and asked is the same."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from PIL import Image

import recordspec as rs
from clusters import Elsewhere, Late
from examples import example
from recordspec.executors import on_cluster
from recordspec.locations import location
from recordspec.remote import RemotePath
from recordspec.store.expand import expand
from recordspec.tables import export_records
from recordspec.wire.framing import framed
from test_docs import DOCS, run

pytestmark = [pytest.mark.slow, pytest.mark.newest]

SCHEMA = rs.Schema.loads("schema: s\nfeatures:\n  id: int64\n  text: string\n  value: float32\n")
OPTIONS = {"key": "id", "split": {"train": 3, "test": 1}, "shuffle": 2, "shards": 3, "invalid": "quarantine"}
CONFIG = """\
schema: schema.yaml
data: {data}
write:
  source: {{{source}}}
  key: id
  splits: {{train: 3, test: 1}}
  shards: 2
  shuffle: {{seed: 1}}
read: {{batch: {{size: 8}}}}
"""


def rows(start: int, stop: int) -> list[dict]:
    return [{"id": number, "text": f"row {number}", "value": number / 2} for number in range(start, stop)]


def ids(dataset) -> list[int]:
    return [number for batch in dataset for number in np.atleast_1d(batch["id"].numpy()).tolist()]


@pytest.fixture
def staging(tmp_path) -> dict[str, str]:
    return {"folder": str(tmp_path / "copies"), "size": "1MiB"}


def written(place):
    """A dataset at a place, with a row that is rejected; returns the place."""
    rs.write([*rows(0, 300), {"id": "x"}], SCHEMA, place, **OPTIONS)
    return place


@pytest.fixture
def local(tmp_path) -> Path:
    """A local dataset to compare with."""
    return written(tmp_path / "local")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_build_has_the_bytes_of_a_local_one(store, local):
    made = rs.write([*rows(0, 300), {"id": "x"}], SCHEMA, store.url, **OPTIONS)
    assert made == rs.Manifest.load(store.url) == rs.Manifest.load(local)
    assert store.files() == contents(local)


@pytest.mark.parametrize("options", [{"layout": {"blocks": 16}}, {"compression": "gzip"}, {"shards": "auto"}])
def test_a_build_of_another_layout_is_read(store, staging, tmp_path, options):
    for place in (store.url, tmp_path / "local"):
        rs.write(rows(0, 100), SCHEMA, place, key="id", **options)
    assert store.files() == contents(tmp_path / "local")
    assert ids(rs.read(store.url, SCHEMA, batch=7, staging=staging)) == list(range(100))


def test_a_dataset_is_not_replaced_unless_asked(store):
    rs.write(rows(0, 10), SCHEMA, store.url)
    before = store.files()
    with pytest.raises(rs.StoreError) as error:
        rs.write(rows(0, 20), SCHEMA, store.url)
    assert str(error.value) == f"`{store.url}` exists: force=True, or --force, replaces it"
    assert store.files() == before


def test_force_replaces_and_a_reader_that_began_before_goes_on(store, staging):
    rs.write(rows(0, 100), SCHEMA, store.url, shards=4)
    before = store.files()
    dataset = rs.read(store.url, SCHEMA, staging=staging)
    begun = iter(dataset)
    first = int(next(begun)["id"])
    made = rs.write(rows(100, 150), SCHEMA, store.url, shards=4, force=True)
    assert ids(rs.read(store.url, SCHEMA, staging=staging)) == list(range(100, 150))
    assert rs.Manifest.load(store.url) == made
    if store.proxy is not None:
        assert [first, *(int(row["id"]) for row in begun)] == list(range(100))
        after = store.files()
        assert {name: after[name] for name in before if name != "manifest.json"} == {
            name: data for name, data in before.items() if name != "manifest.json"
        }


def test_rows_are_added(store, local, staging, tmp_path):
    for place in (store.url, tmp_path / "grown"):
        rs.write([*rows(0, 300), {"id": "x"}], SCHEMA, place, **OPTIONS)
        for start in (300, 400):
            more = [*rows(start, start + 100), {"id": "y"}]
            made = rs.write(more, SCHEMA, place, append=True, **OPTIONS)
        assert made == rs.Manifest.load(place)
        assert made.rejected == 3
        with pytest.raises(
            rs.RecordError, match="row 1: id: expected a key that no other row has, got that of "
        ):
            rs.write(rows(449, 451), SCHEMA, place, append=True, **OPTIONS | {"invalid": "error"})
        with pytest.raises(rs.RecordError) as error:
            rs.write(rows(450, 452), SCHEMA, place, append=True, **OPTIONS | {"invalid": "error"})
        assert f"got that of {place}/t" in str(error.value)
    shards = [shard.sha256 for shard in rs.Manifest.load(tmp_path / "grown").all_shards]
    assert [shard.sha256 for shard in made.all_shards] == shards
    assert sorted(ids(rs.read(expand(store.url), SCHEMA, staging=staging))) == list(range(500))
    name = made.name_of("rejects.jsonl")
    assert (
        store.files()[rs.Manifest.load(store.url).name_of("rejects.jsonl")]
        == contents(tmp_path / "grown")[name]
    )


def test_two_splits_by_pattern_are_what_the_manifest_names(store, staging):
    rs.write(rows(0, 100), SCHEMA, store.url, **OPTIONS | {"shards": 2})
    rs.write(rows(0, 60), SCHEMA, store.url, force=True, **OPTIONS | {"shards": 2})
    counts = {}
    for split in ("train", "test"):
        counts[split] = ids(rs.read(f"{store.url}/{split}*", SCHEMA, staging=staging))
        assert len(counts[split]) == rs.Manifest.load(store.url).rows(split)
    assert sorted(counts["train"] + counts["test"]) == list(range(60))


BUFFER = {"shuffle": 50, "seed": 3}
READS = (
    {},
    {"batch": 16},
    {"batch": 16, "interleave": {"cycle": 2, "block": 4}},
    {"batch": 16, "interleave": {"cycle": 2, "block": 4, "parallel": 2}},
    {"batch": 16, "repeat": 3, **BUFFER},
    {"batch": 16, "repeat": 3, **BUFFER, "start": (1, 5)},
    {"batch": 16, "repeat": 2, "cache": "memory", **BUFFER},
    {"features": ["id"], "batch": 16},
    {"batch": 16, "map": lambda row: {"id": row["id"] + 1}, "filter": lambda row: row["id"] % 2 == 0},
)


@pytest.fixture(scope="module")
def read_locally(tmp_path_factory) -> list[list[int]]:
    local = written(tmp_path_factory.mktemp("home") / "local")
    return [ids(rs.read(expand(local), SCHEMA, **options)) for options in READS]


def test_reading_is_as_local(store, staging, read_locally):
    written(store.url)
    for options, expected in zip(READS, read_locally, strict=True):
        assert ids(rs.read(expand(store.url), SCHEMA, staging=staging, **options)) == expected, options


COMMANDS = [
    ["count", "{data}"],
    ["count", "{data}/train-*"],
    ["count", "{data}/train-00001-of-00003.tfrecord"],
    ["verify", "{data}"],
    ["info", "{data}"],
    ["info", "{data}/test-*"],
    ["head", "{data}"],
    ["show", "{data}", "7"],
    ["show", "{data}", "100000"],
    ["sample", "{data}", "--seed", "1"],
    ["sample", "{data}", "--where", "id < 9", "--seed", "1"],
    ["stats", "{data}"],
    ["check", "{data}", "--schema", "{data}/schema.yaml"],
    ["check", "{config}"],
    ["lint", "{config}"],
    ["explain", "{config}"],
    ["diff", "{data}", "{data}"],
    ["diff", "{config}", "{config}"],
    ["infer", "{data}"],
    ["build", "{config}", "--dry-run"],
    ["build", "{config}"],
]


def test_commands_say_what_they_say_of_local_data(store, tmp_path, command):
    lines = "id,text,value\n" + "".join(f"{n},row {n},{n / 2}\n" for n in range(300))
    said = []
    for place in (str(tmp_path / "here"), store.url):
        put = store.put if place == store.url else lambda name, data: _write(tmp_path / "here" / name, data)
        put("schema.yaml", SCHEMA.dump().encode())
        put("rows.csv", lines.encode())
        config = CONFIG.format(data="data", source="csv: rows.csv")
        put("config.yaml", config.replace("shards: 2", "shards: 3").encode())
        names = {"data": f"{place}/data", "config": f"{place}/config.yaml"}
        code, out, err = command("build", names["config"])
        assert code == 0, err
        told = {}
        for arguments in COMMANDS:
            given = [one.format(**names) for one in arguments]
            code, out, err = command(*given)
            told[" ".join(arguments)] = (code, out.replace(place, "PLACE"), err.replace(place, "PLACE"))
        said.append(told)
    for name, expected in said[0].items():
        assert said[1][name] == expected, name


def test_export_is_of_the_same_rows(store, local, command, tmp_path):
    rs.write([*rows(0, 300), {"id": "x"}], SCHEMA, store.url, **OPTIONS)
    for suffix in ("jsonl", "csv", "parquet"):
        for name, place in (("a", local), ("b", store.url)):
            code, _, err = command(
                "export", place, "--out", tmp_path / f"{name}.{suffix}", "--where", "id > 5"
            )
            assert code == 0, err
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_an_export_on_a_cluster_is_written_to_a_store(store, local, tmp_path):
    store.put("bad/0", framed(example({"a": ("int64", [1])})))
    store.put("bad/1", framed(example({"a": ("float32", [0.5])})))
    done = rs.export(local, tmp_path / "local.jsonl")
    with on_cluster(Elsewhere()):
        assert rs.export(local, store / "out.jsonl") == replace(done, file=store / "out.jsonl")
        files = store.files("out.jsonl")
        assert sorted(files) == [f"part-0000{number}-of-00006.jsonl" for number in range(6)]
        assert b"".join(files[name] for name in sorted(files)) == (tmp_path / "local.jsonl").read_bytes()
        with pytest.raises(rs.StoreError, match=r"out.jsonl` exists: (force|remove it, or choose)"):
            rs.export(local, store / "out.jsonl")
        with pytest.raises(rs.RecordError, match=r"a: expected int64, as in records before, got float32"):
            rs.export([store / "bad/0", store / "bad/1"], store / "bad.jsonl")
    assert sorted(store.files()) == ["bad/0", "bad/1", *(f"out.jsonl/{name}" for name in sorted(files))]


def test_files_of_the_first_pass_of_an_export_are_not_taken_for_the_last(store, monkeypatch):
    monkeypatch.setattr(export_records, "_MOST_CELLS", 1)  # records are read one by one
    files = {"one": [[1]], "several": [[1, 2]], "both": [[1], [1, 2]]}
    for name, records in files.items():
        store.put(f"data/{name}", b"".join(framed(example({"a": ("int64", some)})) for some in records))
    data = [store / f"data/{name}" for name in files]
    rows = [b'{"a": [1]}\n', b'{"a": [1, 2]}\n', b'{"a": [1]}\n{"a": [1, 2]}\n']
    parts = [f"part-0000{number}-of-00003.jsonl" for number in range(3)]
    at_once: list[list[str]] = []

    class Passes(Late):
        def map(self, function, tasks):
            if sent := list(tasks):
                at_once.append(sorted(store.files("out.jsonl")))
            return super().map(function, sent)

    with on_cluster(Passes()):
        rs.export(data, store / "out.jsonl")
    assert store.files("out.jsonl") == dict(zip(parts, rows, strict=True))
    if store.proxy is None:
        return
    # a folder with all names is complete
    assert at_once == [[], parts[1:2]]

    def replace_first() -> None:
        location(store / f"late.jsonl/{parts[0]}").unlink()
        store.put(f"late.jsonl/{parts[0]}", b"other")

    last = Late(replace_first)
    with (
        on_cluster(last),
        pytest.raises(rs.StoreError, match="expected the file that its last attempt wrote"),
    ):
        rs.export(data, store / "late.jsonl")
    assert store.files("late.jsonl") == {}
    store.put(f"two.jsonl/{parts[1]}", b"of another export")
    monkeypatch.setattr(RemotePath, "is_dir", lambda path: False)  # it was not there when this one began
    with on_cluster(Elsewhere()), pytest.raises(rs.StoreError, match="was written by another export"):
        rs.export(data, store / "two.jsonl")
    assert store.files("two.jsonl")[parts[1]] == b"of another export"


def test_an_export_without_columns_leaves_no_files(store):
    store.put("data", framed(example({})))
    with (
        on_cluster(Elsewhere()),
        pytest.raises(rs.SpecError, match="expected features to export, got 1 record"),
    ):
        rs.export(store / "data", store / "out.csv")
    assert sorted(store.files()) == ["data"]


def test_a_manifest_has_the_sizes_of_files(store, monkeypatch):
    rs.write(rows(0, 300), SCHEMA, store.url, **OPTIONS)
    sizes = {name: len(data) for name, data in store.files().items()}
    table = rs.scan(store.url)
    if store.proxy is not None:
        monkeypatch.setattr(RemotePath, "stat", None)
    found = {part.path.name: part.bytes for part in table.ranges()}
    assert found.items() <= sizes.items()
    assert len(found) == 6


def test_sql_reads_a_store(store, local, command):
    rs.write([*rows(0, 300), {"id": "x"}], SCHEMA, store.url, **OPTIONS)
    sql = "SELECT split, count(*) AS n FROM d GROUP BY ALL ORDER BY ALL"
    here, there = (command("query", sql, f"d={place}") for place in (local, store.url))
    assert here == there
    assert here[0] == 0
    assert rs.scan(store.url).to_table() == rs.scan(local).to_table()


def test_resharding_reads_and_writes_stores(store, local, tmp_path):
    rs.write([*rows(0, 300), {"id": "x"}], SCHEMA, store / "a", **OPTIONS)
    made = rs.reshard(store / "a", store / "b", shards=2)
    assert made == rs.reshard(local, tmp_path / "b", shards=2)
    assert store.files("b") == contents(tmp_path / "b")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def sources() -> dict[str, tuple[str, dict[str, bytes]]]:
    """By the source in a config, the files that it reads."""
    given = rows(0, 50)
    table = pa.Table.from_pylist(given)
    parquet = io.BytesIO()
    pq.write_table(table, parquet, row_group_size=20)
    text = "id,text,value\n" + "".join(f"{row['id']},{row['text']},{row['value']}\n" for row in given)
    values = {"id": "int64", "text": "bytes", "value": "float32"}
    records = [
        example(
            {
                name: (kind, [row[name].encode() if kind == "bytes" else row[name]])
                for name, kind in values.items()
            }
        )
        for row in given
    ]
    return {
        "csv: in/rows.csv": {"in/rows.csv": text.encode()},
        "csv: in/*.csv": {"in/a.csv": text.encode(), "in/b.csv": text.replace("\n", "\n1").encode()[:14]},
        "jsonl: in/rows.jsonl": {"in/rows.jsonl": "".join(json.dumps(row) + "\n" for row in given).encode()},
        "parquet: in/rows.parquet": {"in/rows.parquet": parquet.getvalue()},
        "tfrecord: in/rows.tfrecord": {"in/rows.tfrecord": b"".join(map(framed, records))},
    }


@pytest.mark.parametrize("source", [*sources()])
def test_a_source_is_read_from_a_store(store, tmp_path, command, source):
    files = sources()[source] | {"schema.yaml": SCHEMA.dump().encode()}
    said = []
    for place, put in (
        (str(tmp_path / "here"), lambda name, data: _write(tmp_path / "here" / name, data)),
        (store.url, store.put),
    ):
        for name, data in files.items():
            put(name, data)
        put("config.yaml", CONFIG.format(data="data", source=source).encode())
        code, _, err = command("build", f"{place}/config.yaml")
        said.append((code, err.replace(place, "PLACE")))
    assert said[1] == said[0]
    if code == 0:
        assert store.files("data") == contents(tmp_path / "here" / "data")


def test_a_folder_of_images_is_read_from_a_store(store, tmp_path, command):
    schema = "schema: p\nfeatures:\n  image: {kind: image, encoding: png, shape: [4, 4, 3]}\n  label: {kind: label, names: [a, b]}\n"
    for number in range(20):
        name = f"in/{'ab'[number % 2]}/{number}.png"
        data = io.BytesIO()
        Image.fromarray(np.full((4, 4, 3), number, np.uint8)).save(data, "png")
        _write(tmp_path / "here" / name, data.getvalue())
        store.put(name, data.getvalue())
    config = CONFIG.format(data="data", source="image_folder: in").replace("key: id", "key: path")
    for name, text in (("schema.yaml", schema), ("config.yaml", config)):
        _write(tmp_path / "here" / name, text.encode())
        store.put(name, text.encode())
    for place in (tmp_path / "here", store.url):
        code, _, err = command("build", f"{place}/config.yaml")
        assert code == 0, err
    assert store.files("data") == contents(tmp_path / "here" / "data")


def test_a_pipeline_trains_on_a_store(store, tmp_path, staging):
    store.put("schema.yaml", SCHEMA.dump().encode())
    store.put("rows.csv", ("id,text,value\n" + "".join(f"{n},t,{n / 2}\n" for n in range(64))).encode())
    config = CONFIG.format(data="data", source="csv: rows.csv").replace(
        "read: {batch: {size: 8}}",
        f"read: {{batch: {{size: 8}}, staging: {json.dumps(staging)}}}\nfit: {{inputs: id, targets: value}}",
    )
    place = store.put("config.yaml", config.encode())
    pipeline = rs.Pipeline.load(place)
    pipeline.build()
    seen = [number for inputs, _ in pipeline.dataset("train") for number in inputs.numpy().tolist()]
    assert len(seen) == rs.Manifest.load(store / "data").rows("train")
    assert os.path.isdir(staging["folder"]) == (store.proxy is not None)
    model = tf.keras.Sequential(
        [tf.keras.layers.Input([]), tf.keras.layers.Reshape([1]), tf.keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    history = model.fit(rs.Pipeline.load(place).dataset("train"), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


def test_infer_writes_a_config_of_a_store_that_builds(store, tmp_path, command):
    rows = store.put("rows.csv", b"id,name\n1,a\n2,b\n3,c\n4,a\n5,b\n")
    schema, config = tmp_path / "schema.yaml", tmp_path / "config.yaml"
    assert command("infer", rows, "--out", schema, "--config", config)[0] == 0
    code, out, err = command("build", config)
    assert code == 0, err
    assert sum(json.loads(line)["rows"] for line in out.splitlines()) == 5


@pytest.mark.slow
def test_the_page_on_stores_runs(servers, tmp_path, monkeypatch):
    servers("s3")
    monkeypatch.chdir(tmp_path)
    run((DOCS / "stores.md").read_text(), tmp_path)
