"""The problems that the page lists are those of `verify` and `check`, each with its row."""

from __future__ import annotations

import numpy as np

import recordspec as rs
from recordspec.store.dataset import StoredDataset
from recordspec.store.scan import Scanner
from recordspec.viewer import problems as viewer_problems
from recordspec.viewer.jobs import JobProgress
from recordspec.viewer.problems import problems
from recordspec.viewer.row_pages import NumberedRows
from some_records import example, write

SCHEMA = rs.Schema.loads("{schema: s, features: {n: int64}}")


def found(files, schema=None):
    dataset = StoredDataset.of(files, schema)
    scanner = Scanner.of_rows(
        StoredDataset(dataset.paths, dataset.manifests) if dataset.mismatches else dataset
    )
    return problems(files, scanner, dataset.mismatches, NumberedRows(scanner), JobProgress())


def test_corrupt_and_invalid_records_are_listed_with_their_rows(tmp_path):
    write(tmp_path / "a", *(example(n=[row]) for row in range(50)))
    bad = {7: example(n=[1, 2]), 20: example(m=[1])}
    path = write(tmp_path / "b", *(bad.get(row, example(n=[row])) for row in range(50)))
    data = bytearray(path.read_bytes())
    data[data.index(example(n=[40])) + 3] ^= 1
    path.write_bytes(data)
    made = found([tmp_path / "a", tmp_path / "b"], SCHEMA)
    assert made["checked"]
    assert made["count"] == len(made["problems"]) == 3
    rows = {problem["row"]: problem["text"] for problem in made["problems"]}
    assert sorted(rows) == [57, 70, 90]
    assert rows[57].endswith("b: record 7 at byte 210: features.n: expected 1 int64, got 2 int64")
    assert "CRC" in rows[90]
    without = found([tmp_path / "a", tmp_path / "b"])
    assert (without["checked"], [problem["row"] for problem in without["problems"]]) == (False, [90])


def test_a_row_of_blocks_is_counted_from_their_rows(tmp_path):
    rows = {"n": np.arange(1000)}
    rs.write(rows, SCHEMA, tmp_path / "d", shuffle=None, layout={"blocks": 16}, split="all", shards=2)
    path = tmp_path / "d" / "all-00001-of-00002.tfrecord"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    made = found(tmp_path / "d")
    scanner = Scanner.of_rows(StoredDataset.of(tmp_path / "d"))
    (row,) = {problem["row"] for problem in made["problems"]} - {None}
    (bad,) = NumberedRows(scanner).page(row, 1)
    assert [str(problem) for problem in bad.item.problems] == [
        problem["text"] for problem in made["problems"] if problem["row"] is not None
    ]
    assert [problem["text"] for problem in made["problems"] if problem["row"] is None]  # of the whole file


def test_many_problems_are_counted_and_the_first_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(viewer_problems, "_MOST", 2)
    path = write(tmp_path / "x", *(example(n=[1] * (row % 2 + 1)) for row in range(20)))
    made = found(path, SCHEMA)
    assert (made["count"], [problem["row"] for problem in made["problems"]]) == (10, [1, 3])


def test_files_of_another_schema(tmp_path):
    rs.write({"n": [1, 2]}, SCHEMA, tmp_path / "d")
    other = rs.Schema.loads("{schema: s, features: {m: int64}}")
    made = found(tmp_path / "d", other)
    assert [problem["text"] for problem in made["problems"]] == [
        f"{tmp_path / 'd'}: features.m: expected a feature that the data has, got none of this name "
        "(build it again, or read it with its own schema.yaml)"
    ]
