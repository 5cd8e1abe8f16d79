"""`invalid: quarantine`: what does not fit is set aside, counted and explained; nothing else is lost."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from recordspec._tf import tf
from recordspec.store.manifest import Manifest
from recordspec.wire.proto import parse_example
from recordspec.wire.tfrecord import scan
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.tfrecord import TFRecords

SCHEMA = rs.Schema.loads("schema: s\nfeatures:\n  a: int64\n  b: {kind: text, max_bytes: 3}")


def written(folder) -> list[int]:
    files = sorted(folder.glob("train-*"))
    return [parse_example(record.data)["a"][0] for file in files for record in scan(file)]


def rejects(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]


def test_bad_rows_are_set_aside_with_all_their_reasons(tmp_path, caplog):
    rows = [{"a": 0, "b": "x"}, {"a": 1.5, "b": "long"}, {"a": 2, "b": "y"}, {"a": 3, "b": "z", "c": 1}]
    with caplog.at_level(logging.WARNING, "recordspec"):
        manifest = rs.write(SCHEMA, rows, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [0, 2]
    assert rejects(tmp_path / "data") == [
        {
            "row": 1,
            "place": "row 1",
            "problems": [
                "features.a: expected int64, got float 1.5 (round it, or store it as a float)",
                "features.b: expected at most 3 bytes of UTF-8, got 4 bytes",
            ],
        },
        {"row": 3, "place": "row 3", "problems": ["expected names of `s`, got `c`"]},
    ]
    assert manifest.rejected == Manifest.load(tmp_path / "data").rejected == 2
    assert manifest.rows("train") == 2
    assert caplog.messages == [f"2 of 4 rows are invalid: see {tmp_path}/data/rejects.jsonl"]


def test_without_bad_rows_there_is_no_file(tmp_path):
    manifest = rs.write(SCHEMA, [{"a": 0, "b": "x"}], tmp_path / "data", invalid="quarantine")
    assert manifest.rejected == 0
    assert not (tmp_path / "data/rejects.jsonl").exists()


@pytest.mark.slow
@given(bad=st.sets(st.integers(0, 299)), columns=st.booleans())
@settings(max_examples=30)
def test_every_row_is_written_or_rejected(tmp_path_factory, bad, columns):
    folder = tmp_path_factory.mktemp("any") / "data"
    values = ["?" if index in bad else index for index in range(300)]
    rows = {"a": values, "b": ["x"] * 300}
    given_rows = rows if columns else [{"a": value, "b": "x"} for value in values]
    if len(bad) == 300:
        return
    manifest = rs.write(SCHEMA, given_rows, folder, invalid="quarantine", shuffle=None)
    assert written(folder) == [index for index in range(300) if index not in bad]
    assert manifest.rejected == len(bad)
    if bad:
        assert [line["row"] for line in rejects(folder)] == sorted(bad)


@pytest.mark.slow
def test_all_bad_by_the_thousand_is_quick_and_publishes_nothing(tmp_path):
    rows = {"a": ["?"] * 5000, "b": ["x"] * 5000}
    with pytest.raises(rs.RecordError) as caught:
        rs.write(SCHEMA, rows, tmp_path / "data", invalid="quarantine")
    assert str(caught.value) == (
        "expected at least one valid row, got none (the last is row 4999: features.a: expected int64, got str '?')"
    )
    assert list(tmp_path.iterdir()) == []


def test_more_than_are_allowed_is_an_error(tmp_path):
    rows = [{"a": "?" if index % 3 == 0 else 1, "b": ""} for index in range(10)]
    assert rs.write(SCHEMA, rows, tmp_path / "four", invalid={"max_invalid": 4}).rejected == 4
    with pytest.raises(rs.RecordError) as caught:
        rs.write(SCHEMA, rows, tmp_path / "data", invalid={"max_invalid": 3})
    assert str(caught.value) == (
        "expected at most 3 invalid rows (max_invalid), got 4 "
        "(the last is row 9: features.a: expected int64, got str '?')"
    )
    # `invalid: quarantine` is a hint for those that do not quarantine rows
    assert [note for note in caught.value.__notes__ if "quarantine" in note] == []
    with pytest.raises(rs.RecordError) as caught:
        rs.write(SCHEMA, rows, tmp_path / "data")
    assert (
        "(`invalid: quarantine` leaves out invalid rows; see docs/building.md)" in caught.value.__notes__[0]
    )
    assert not (tmp_path / "data").exists()


def test_rows_of_a_csv_file_are_named_by_their_lines(tmp_path):
    (tmp_path / "rows.csv").write_text('a,b\n1,x\n?,y\n3,"a\nb"\n4,long\n5,z\n')
    rows = Csv(path="rows.csv").open(tmp_path)
    rs.write(SCHEMA, rows, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [1, 3, 5]
    assert [(line["row"], line["place"]) for line in rejects(tmp_path / "data")] == [
        (1, f"{tmp_path}/rows.csv:3"),
        (3, f"{tmp_path}/rows.csv:6"),
    ]


def test_records_of_tfrecords_are_named_by_their_places(tmp_path):
    loose = rs.Schema.loads("schema: s\nfeatures:\n  a: int64\n  b: string")
    rs.write(loose, [{"a": 1, "b": "x"}, {"a": 2, "b": "long"}, {"a": 3, "b": "y"}], tmp_path / "loose")
    rows = TFRecords(files="loose").open(tmp_path)
    rs.write(SCHEMA, rows, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [1, 3]
    (line,) = rejects(tmp_path / "data")
    file = tmp_path / "loose/train-00000-of-00001.tfrecord"
    assert line["place"] == f"{file}: record 1 at byte {next(r.offset for r in scan(file) if r.number == 1)}"


def test_a_dataset_with_rejects_can_be_replaced(tmp_path):
    rows = [{"a": "?", "b": ""}, {"a": 1, "b": ""}]
    rs.write(SCHEMA, rows, tmp_path / "data", invalid="quarantine")
    rs.write(SCHEMA, rows[1:], tmp_path / "data", invalid="quarantine", force=True)
    assert not (tmp_path / "data/rejects.jsonl").exists()


def test_a_negative_number_of_rejects_is_refused(tmp_path):
    with pytest.raises(rs.SpecError, match=r"invalid.max_invalid: expected a number of rows, got -1"):
        rs.write(SCHEMA, [], tmp_path / "data", invalid={"max_invalid": -1})


def test_rows_that_are_no_mappings_are_set_aside(tmp_path):
    rows = [{"a": 1, "b": ""}, None, [3], {"a": 2, "b": ""}]
    rs.write(SCHEMA, rows, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [1, 2]
    assert [line["problems"] for line in rejects(tmp_path / "data")] == [
        ["expected a mapping from names to values, got nothing"],
        ["expected a mapping from names to values, got list [3]"],
    ]


def test_text_that_utf8_cannot_hold_is_set_aside(tmp_path):
    rs.write(SCHEMA, [{"a": 1, "b": "\udce9"}, {"a": 2, "b": ""}], tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [2]
    assert rejects(tmp_path / "data")[0]["problems"] == [
        "features.b: expected text that UTF-8 can encode, got the lone surrogate '\\udce9' at character 0"
    ]


def test_a_record_that_is_no_example_is_set_aside(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "x.tfrecord")) as writer:
        writer.write(SCHEMA.encode({"a": 1, "b": ""}))
        writer.write(b"\xff\xff no Example")
        writer.write(SCHEMA.encode({"a": 2, "b": ""}))
    rows = TFRecords(files="x.tfrecord").open(tmp_path)
    rs.write(SCHEMA, rows, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [1, 2]
    (line,) = rejects(tmp_path / "data")
    assert line["place"].startswith(f"{tmp_path}/x.tfrecord: record 1 at byte ")
