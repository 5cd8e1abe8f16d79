"""`write: {source: {train: ..., eval: ...}}`: rows stay in the split whose source gives them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordspec as rs
from recordspec import config
from recordspec.writing.sources import base

SCHEMA = "schema: s\nfeatures: {id: int64, split: string}"
CONFIG = """
schema: s.yaml
data: {data}
write:
  source:
    train: {{jsonl: [a.jsonl, b.jsonl]}}
    eval: {{csv: eval.csv}}
  key: id
  shuffle: 3
  shards: 2
read: {{batch: 100}}
"""
ROWS = {"train": range(60), "eval": range(100, 117)}


def row(number: int) -> dict:
    return {"id": number, "split": f"a feature {number}"}


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "s.yaml").write_text(SCHEMA)
    for name, part in (("a", slice(0, 40)), ("b", slice(40, None))):
        lines = [json.dumps(row(number)) + "\n" for number in ROWS["train"][part]]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    cells = [f"{one['id']},{one['split']},more\n" for one in map(row, ROWS["eval"])]
    (tmp_path / "eval.csv").write_text("id,split,other\n" + "".join(cells))
    return tmp_path


def pipeline(folder: Path, data: str = "data") -> rs.Pipeline:
    (folder / "c.yaml").write_text(CONFIG.format(data=data))
    return rs.Pipeline.load(folder / "c.yaml")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_rows_stay_in_the_split_whose_source_gives_them(folder):
    built = pipeline(folder)
    manifest = built.build(progress=False)
    assert {split: manifest.rows(split) for split in manifest.splits} == {"train": 60, "eval": 17}
    for split, numbers in ROWS.items():
        (batch,) = built.dataset(split)
        found = dict(zip(batch["id"].numpy().tolist(), batch["split"].numpy().tolist(), strict=True))
        assert found == {number: row(number)["split"].encode() for number in numbers}
        assert list(found) != list(numbers)  # shuffled
    assert built.notes == ["columns that no feature names: other"]


def test_jobs_and_resuming_give_the_same_bytes(folder, monkeypatch):
    monkeypatch.setattr(base, "PART_BYTES", 200)
    pipeline(folder).build(progress=False)
    pipeline(folder, "by-two").build(jobs=2, progress=False)
    assert contents(folder / "data") == contents(folder / "by-two")
    good = (folder / "eval.csv").read_bytes()
    (folder / "eval.csv").write_bytes(good[:-1] + b",1\n")  # a cell too many
    with pytest.raises(rs.RecordError, match=r"eval\.csv:18"):
        pipeline(folder, "again").build(progress=False)
    (folder / "eval.csv").write_bytes(good)
    pipeline(folder, "again").build(resume=True, progress=False)
    assert contents(folder / "data") == contents(folder / "again")


def test_a_plan_counts_the_rows_of_each_split(folder):
    estimate = pipeline(folder).estimate()
    manifest = pipeline(folder).build(progress=False)
    assert {split: rows for split, (_, rows, _) in estimate.splits.items()} == {"train": 60, "eval": 17}
    assert {split: shards for split, (shards, _, _) in estimate.splits.items()} == {"train": 2, "eval": 2}
    assert estimate.rows == sum(manifest.rows(split) for split in manifest.splits)
    for limit, expected in ((5, {"train": 5, "eval": 5}), (35, {"train": 35, "eval": 17})):
        limited = pipeline(folder).estimate(limit=limit)
        assert {split: rows for split, (_, rows, _) in limited.splits.items()} == expected
        built = pipeline(folder, f"of-{limit}").build(limit=limit, jobs=2, progress=False)
        assert {split: built.rows(split) for split in built.splits} == expected


def test_a_limit_of_sources_that_know_their_rows(folder):
    for split, numbers in ROWS.items():
        table = pa.Table.from_pylist([row(number) for number in numbers])
        pq.write_table(table, folder / f"{split}.parquet")
    sources = "{train: {parquet: train.parquet}, eval: {parquet: eval.parquet}}"
    for limit, expected in ((5, {"train": 5, "eval": 5}), (35, {"train": 35, "eval": 17})):
        config = f"{{schema: s.yaml, data: of-{limit}, write: {{source: {sources}}}, read: {{batch: 1}}}}"
        (folder / "c.yaml").write_text(config)
        built = rs.Pipeline.load(folder / "c.yaml").build(limit=limit, progress=False)
        assert {split: built.rows(split) for split in built.splits} == expected


def test_a_key_is_unique_over_all_splits(folder):
    (folder / "eval.csv").write_text("id,split\n7,x\n")
    with pytest.raises(rs.RecordError) as caught:
        pipeline(folder).build(progress=False)
    expected = (
        f"{folder}/eval.csv:2: id: expected a key that no other row has, got that of {folder}/a.jsonl:8"
    )
    assert str(caught.value).splitlines()[0] == expected


def test_rows_are_added_to_their_splits(folder):
    pipeline(folder).build(progress=False)
    for name, text in (("a.jsonl", json.dumps(row(1000))), ("b.jsonl", ""), ("eval.csv", "id,split\n1001,x")):
        (folder / name).write_text(text + "\n")
    manifest = pipeline(folder).build(append=True, progress=False)
    assert {split: manifest.rows(split) for split in manifest.splits} == {"train": 61, "eval": 18}


FORMS = ", ".join(field.name for field in fields(config.From))


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        ("source: {}", "4:11: write.source: expected at least one split, got none"),
        (
            "source: {cvs: a.csv}",
            f"4:12: write.source.cvs: expected one of {FORMS}, got `cvs` (did you mean `csv`?)",
        ),
        (
            "source: {.x: {csv: a.csv}}",
            '4:16: write.source.".x": expected a split\'s name of letters, digits, _, . and -, got `.x`',
        ),
        (
            "source: {a: {csv: a.csv}}\n  splits: {a: 2}",
            "5:11: write.splits: expected no `splits`, got some (each source is a split)",
        ),
        (
            "source: {a: {csv: a.csv}}\n  group_by: n",
            "5:13: write.group_by: expected no `group_by`, got some (each source is a split)",
        ),
        ("source: {csv: []}", "4:17: write.source.csv.files: expected at least one file, got none"),
    ],
)
def test_what_is_wrong_with_the_sources_of_splits(folder, write, problem):
    path = folder / "c.yaml"
    path.write_text(f"schema: s.yaml\ndata: data\nwrite:\n  {write}\n")
    with pytest.raises(rs.SpecError) as caught:
        config.load(path)
    assert str(caught.value) == f"{path}:{problem}"


def test_other_rows_than_those_of_the_sources_are_refused(folder):
    with pytest.raises(rs.SpecError) as caught:
        pipeline(folder).build([row(1)])
    expected = "rows: expected those of the sources of the splits, got others (without `rows` they are read)"
    assert str(caught.value) == expected
    with pytest.raises(rs.SpecError) as caught:
        pipeline(folder).build(source="other.csv")
    assert str(caught.value) == (
        "write.source: expected no other source than those of train, eval, got `other.csv`"
    )
