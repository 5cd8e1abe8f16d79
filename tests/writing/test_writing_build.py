"""The same bytes for any number of processes, cut and memory: `writing.local`, `writing.build_plan`."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from recordspec.executors import SerialExecutor
from recordspec.progress import Progress
from recordspec.schema.row_blocks import records_of_block
from recordspec.wire.arrays import bytes_in
from recordspec.wire.proto import parse_example
from recordspec.wire.tfrecord import scan
from recordspec.writing import build_plan, local, sorter
from recordspec.writing.build import parts_of, place_of, planned_build
from recordspec.writing.sources import base
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.write_options import Execution, Write
from selection import scaled

pytestmark = pytest.mark.slow

SCHEMA = rs.Schema.loads(
    """\
schema: rows
features:
  id: int64
  x: {dtype: float32, default: 0.5}
  tags: {kind: var_len, dtype: int64}
  steps: {kind: ragged, dtype: int64, shape: [null, null]}
"""
)


def rows(count: int, first: int = 0) -> list[dict]:
    return [
        {
            "id": number,
            "x": None if number % 3 == 0 else number / 2,
            "tags": list(range(number % 4)),
            "steps": [[number] * size for size in range(number % 3)],
            "writer": f"w{number % 37}",
            "subset": "ab"[number % 2],
        }
        for number in range(first, first + count)
    ]


def plain(given: list[dict]) -> list[dict]:
    return [{name: row[name] for name in SCHEMA.names} for row in given]


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


def ids(folder: Path, manifest: rs.Manifest, split: str) -> list[int]:
    """What is in a split, in its order."""
    return [
        parse_example(record.data)["id"][0]
        for shard in manifest.shards(split)
        for record in scan(folder / shard.file)
    ]


OPTIONS = [
    {},
    {"shuffle": 3},
    {"key": "id"},
    {"key": "id", "shuffle": 3, "split": {"a": 3, "b": 1}, "shards": 4},
    {"split": {"folds": 3}, "compression": "gzip", "shards": {"size": "20KiB"}},
    {"layout": {"blocks": 100}, "shuffle": 1, "shards": 3},
    {"invalid": "quarantine", "shuffle": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_jobs_and_memory_make_no_difference(tmp_path, options, monkeypatch):
    given = plain(rows(3000))
    if "invalid" in options:
        given[2000] = {"id": "x"}
    rs.write(given, SCHEMA, tmp_path / "one", **options)
    expected = files(tmp_path / "one")
    rs.write(given, SCHEMA, tmp_path / "two", jobs=2, **options)
    assert files(tmp_path / "two") == expected
    # many runs, and pieces of them, in the place of one
    monkeypatch.setattr(build_plan, "_SMALLEST_BUDGET", 64 << 10)
    monkeypatch.setattr(sorter, "_WRITTEN_AT_ONCE", 1000)
    rs.write(given, SCHEMA, tmp_path / "small", memory="1B", **options)
    assert files(tmp_path / "small") == expected


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("part", [64 << 20, 7000])
def test_a_source_cut_in_other_parts_gives_the_same_bytes(tmp_path, jobs, part, monkeypatch):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, text: string}")
    lines = [f'{number},"a, ""{number}""\nb"' for number in range(3000)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,text", *lines]) + "\n")
    options = {"split": {"a": 3, "b": 1}, "shuffle": 1, "shards": 2, "key": "id"}
    source = Csv(files="rows.csv").open(tmp_path)
    rs.write(source, schema, tmp_path / "expected", **options)
    monkeypatch.setattr(base, "PART_BYTES", part)
    rs.write(source, schema, tmp_path / "data", jobs=jobs, **options)
    assert files(tmp_path / "data") == files(tmp_path / "expected")


def test_the_order_of_the_rows_makes_no_difference_to_a_shuffled_dataset(tmp_path):
    given = plain(rows(2000))
    rs.write(given, SCHEMA, tmp_path / "a", key="id", shuffle=1, split={"a": 1, "b": 1})
    rs.write(given[::-1], SCHEMA, tmp_path / "b", key="id", shuffle=1, split={"a": 1, "b": 1})
    assert files(tmp_path / "a") == files(tmp_path / "b")
    again = {"names": "id", "unique": False}
    twice = [*given, *({**row, "x": 9.0} for row in given[:50])]
    rs.write(twice, SCHEMA, tmp_path / "c", key=again, shuffle=1)
    rs.write(twice[::-1], SCHEMA, tmp_path / "d", key=again, shuffle=1)
    assert files(tmp_path / "c") == files(tmp_path / "d")


def stored(folder: Path) -> list[dict]:
    """The rows of a dataset of single numbers, in their order."""
    (path,) = folder.glob("train-*")
    records = [parse_example(record.data) for record in scan(path)]
    return [{name: value for name, (value,) in record.items()} for record in records]


def test_without_a_shuffle_the_order_is_that_of_the_source(tmp_path):
    manifest = rs.write(plain(rows(3000)), SCHEMA, tmp_path / "a", split={"a": 1, "b": 1}, shards=3, jobs=2)
    for split in ("a", "b"):
        assert ids(tmp_path / "a", manifest, split) == sorted(ids(tmp_path / "a", manifest, split))


@settings(max_examples=scaled(15))
@given(st.sets(st.integers(0, 10**6), min_size=1, max_size=60), st.sets(st.integers(0, 10**6), max_size=60))
def test_more_rows_move_no_old_one(tmp_path_factory, old, new):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    folder = tmp_path_factory.mktemp("splits")

    def split_of(numbers: set[int], name: str) -> dict[int, str]:
        manifest = rs.write([{"id": one} for one in numbers], schema, folder / name, split={"a": 7, "b": 3})
        return {
            parse_example(record.data)["id"][0]: split
            for split in manifest.splits
            for shard in manifest.shards(split)
            for record in scan(folder / name / shard.file)
        }

    before, after = split_of(old, "old"), split_of(old | new, "both")
    assert {number: after[number] for number in before} == before


def test_groups_never_straddle(tmp_path):
    given = [{**row, "writer": row["writer"]} for row in rows(3000)]
    for row in given:
        del row["subset"]
    manifest = rs.write(
        given, SCHEMA, tmp_path / "data", key="id", group_by="writer", split={"a": 6, "b": 4}, shuffle=1
    )
    groups = {split: {number % 37 for number in ids(tmp_path / "data", manifest, split)} for split in "ab"}
    assert groups["a"] | groups["b"] == set(range(37))
    assert not groups["a"] & groups["b"]
    assert len(groups["b"]) > 5


def test_a_column_names_the_split(tmp_path):
    given = [{name: row[name] for name in (*SCHEMA.names, "subset")} for row in rows(100)]
    for jobs in (1, 2):
        manifest = rs.write(given, SCHEMA, tmp_path / str(jobs), split={"column": "subset"}, jobs=jobs)
        assert list(manifest.splits) == ["a", "b"]
        assert ids(tmp_path / str(jobs), manifest, "b") == list(range(1, 100, 2))
    given[7]["subset"] = "no/name"
    with pytest.raises(rs.RecordError) as caught:
        rs.write(given, SCHEMA, tmp_path / "bad", split={"column": "subset"})
    expected = "a split's name of letters, digits, _, . and -"
    assert str(caught.value) == f"row 7: subset: expected {expected}, got str 'no/name'"


def test_folds_are_splits_of_one_weight(tmp_path):
    manifest = rs.write(plain(rows(3000)), SCHEMA, tmp_path / "data", split={"folds": 5})
    assert list(manifest.splits) == [f"fold{number}" for number in range(5)]
    assert all(500 < manifest.rows(split) < 700 for split in manifest.splits)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_row_that_does_not_fit_is_named(tmp_path, jobs, monkeypatch):
    monkeypatch.setattr("recordspec.writing.sources.rows._PACKED_BYTES", 1 << 10)
    given = plain(rows(3000))
    given[1700], given[2900] = {"id": "x"}, {"id": "y"}
    with pytest.raises(rs.RecordError) as caught:
        rs.write(given, SCHEMA, tmp_path / "data", jobs=jobs)
    assert str(caught.value).splitlines()[0] == "row 1700: features.id: expected int64, got str 'x'"
    assert caught.value.row == 1700
    with pytest.raises(rs.RecordError) as caught:
        rs.write(given, SCHEMA, tmp_path / "data", jobs=jobs, invalid={"max_invalid": 1})
    assert str(caught.value) == (
        "expected at most 1 invalid row (max_invalid: 1), got at least 2 "
        "(row 1700: features.id: expected int64, got str 'x'; row 2900: features.id: expected int64, got str 'y'; "
        "`invalid: {max_invalid: 20%}` allows more)"
    )
    assert os.listdir(tmp_path) == []


def test_rejected_rows_are_counted_from_the_first_of_the_source(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text("id\n" + "".join(f"{n if n % 700 else 'x'}\n" for n in range(1, 3001)))
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    monkeypatch.setattr(base, "PART_BYTES", 3000)
    for jobs in (1, 2):
        source = Csv(files="rows.csv").open(tmp_path)
        manifest = rs.write(source, schema, tmp_path / f"{jobs}", jobs=jobs, invalid="quarantine")
        assert manifest.rejected == 4
        lines = [json.loads(line) for line in (tmp_path / f"{jobs}/rejects.jsonl").read_text().splitlines()]
        assert [line["row"] for line in lines] == [699, 1399, 2099, 2799]
        assert [line["place"] for line in lines] == [
            f"{tmp_path}/rows.csv:{n}" for n in (701, 1401, 2101, 2801)
        ]


def test_a_limit_takes_the_first_rows(tmp_path):
    (tmp_path / "rows.csv").write_text("id\n" + "".join(f"{number}\n" for number in range(3000)))
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    for name, one in {
        "list": [{"id": number} for number in range(3000)],
        "array": {"id": np.arange(3000)},
        "file": Csv(files="rows.csv").open(tmp_path),
    }.items():
        manifest = rs.write(one, schema, tmp_path / name, limit=1234, jobs=2)
        assert ids(tmp_path / name, manifest, "train") == list(range(1234)), name


def test_blocks_hold_the_rows_of_the_rows_layout(tmp_path):
    given = plain(rows(1000))
    manifest = rs.write(given, SCHEMA, tmp_path / "blocks", layout={"blocks": 64}, shards=3, shuffle=4)
    rs.write(given, SCHEMA, tmp_path / "rows", shards=3, shuffle=4)
    assert [(shard.rows, shard.records) for shard in manifest.shards("train")] == [
        (333, 6),
        (333, 6),
        (334, 6),
    ]
    for shard in manifest.shards("train"):
        records = list(scan(tmp_path / "rows" / shard.file))
        blocks = [record.data for record in scan(tmp_path / "blocks" / shard.file)]
        assert [row for block in blocks for row in bytes_in(records_of_block(SCHEMA, block))] == [
            one.data for one in records
        ]
        decoded = [SCHEMA.decode_block(block) for block in blocks]
        in_rows = SCHEMA.decode([record.data for record in records])["id"].numpy().tolist()
        assert [number for block in decoded for number in block["id"].numpy().tolist()] == in_rows
    both = [list(rs.read(tmp_path / layout, SCHEMA, batch=100)) for layout in ("rows", "blocks")]
    assert [batch["id"].numpy().tolist() for batch in both[0]] == [
        batch["id"].numpy().tolist() for batch in both[1]
    ]


def test_an_engine_that_would_ignore_a_limit_refuses_it(tmp_path):
    with pytest.raises(rs.SpecError, match=r"^limit: expected none on this engine, .*, got 3$"):
        planned_build(SCHEMA, tmp_path / "d", Write(splits={"train": 1}), Execution(limit=3))
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    assert (
        rs.write(({"id": number} for number in range(9)), schema, tmp_path / "d", limit=3).rows("train") == 3
    )
    assert os.listdir(tmp_path) == ["d"]


@pytest.mark.parametrize("form", ["a generator", "a reader", "a table"])
def test_a_duplicate_key_of_rows_that_are_read_once_names_both(form, tmp_path):
    """With the argument `write` of `Pipeline.build`, as in docs/explanation/engines.md."""
    table = pa.table({"id": [5, 6, 7, 8, 6]})
    given = {
        "a generator": (row for row in table.to_pylist()),
        "a reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(2)),
        "a table": table,
    }
    source = source_of(given[form])
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    build = planned_build(schema, tmp_path / "d", Write(key="id"), Execution())

    def write() -> None:
        with build.begun() as plan, Progress(show=False) as bar:
            engine = {"pool": SerialExecutor(), "checkpoint": build.checkpoint, "bar": bar}
            build.complete(
                plan,
                local.encode(plan, source, parts_of(source, plan), **engine),
                source="rows",
                place=partial(place_of, source, plan),
                duplicate_keys=local.duplicate_keys,
                shard=partial(local.shard, **engine),
                bar=bar,
            )

    with pytest.raises(rs.RecordError) as error:
        write()
    assert str(error.value) == "row 4: id: expected a key that no other row has, got that of row 1"
