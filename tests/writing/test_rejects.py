"""`invalid: quarantine`: what does not fit is set aside, counted and explained; nothing else is lost."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from media import image_bytes
from recordspec._tf import tf
from recordspec.store.manifest import Manifest
from recordspec.wire.proto import parse_example
from recordspec.wire.tfrecord import scan
from recordspec.writing.sources import base
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import ImageFolder
from recordspec.writing.sources.tfrecord import TFRecords
from selection import scaled
from shell import run_here as run

SCHEMA = rs.Schema.loads("schema: s\nfeatures:\n  a: int64\n  b: {kind: text, max_bytes: 3}")


def written(folder) -> list[int]:
    files = sorted(folder.glob("train-*"))
    return [parse_example(record.data)["a"][0] for file in files for record in scan(file)]


def rejects(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]


def test_bad_rows_are_set_aside_with_all_their_reasons(tmp_path, caplog):
    rows = [{"a": 0, "b": "x"}, {"a": 1.5, "b": "long"}, {"a": 2, "b": "y"}, {"a": 3, "b": "z", "c": 1}]
    with caplog.at_level(logging.WARNING, "recordspec"):
        manifest = rs.write(rows, SCHEMA, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [0, 2]
    assert rejects(tmp_path / "data") == [
        {
            "row": 1,
            "place": "row 1",
            "problems": [
                "features.a: expected int64, got float 1.5 (`float32` holds fractions)",
                "features.b: expected at most 3 bytes of UTF-8, got 4 bytes",
            ],
        },
        {
            "row": 3,
            "place": "row 3",
            "problems": ["expected names of `s`, got `c` (`rs.write(..., ignore=[...])` leaves names out)"],
        },
    ]
    assert manifest.rejected == Manifest.load(tmp_path / "data").rejected == 2
    assert manifest.rows("train") == 2
    assert caplog.messages == [f"2 of 4 rows are invalid: see {tmp_path}/data/rejects.jsonl"]


def test_without_bad_rows_there_is_no_file(tmp_path):
    manifest = rs.write([{"a": 0, "b": "x"}], SCHEMA, tmp_path / "data", invalid="quarantine")
    assert manifest.rejected == 0
    assert not (tmp_path / "data/rejects.jsonl").exists()


@pytest.mark.slow
@given(bad=st.sets(st.integers(0, 299)), columns=st.booleans())
@settings(max_examples=scaled(30))
def test_every_row_is_written_or_rejected(tmp_path_factory, bad, columns):
    folder = tmp_path_factory.mktemp("any") / "data"
    values = ["?" if index in bad else index for index in range(300)]
    rows = {"a": values, "b": ["x"] * 300}
    given_rows = rows if columns else [{"a": value, "b": "x"} for value in values]
    if len(bad) == 300:
        return
    manifest = rs.write(given_rows, SCHEMA, folder, invalid={"max_invalid": None}, shuffle=None)
    assert written(folder) == [index for index in range(300) if index not in bad]
    assert manifest.rejected == len(bad)
    if bad:
        assert [line["row"] for line in rejects(folder)] == sorted(bad)


@pytest.mark.slow
def test_all_bad_by_the_thousand_is_quick_and_publishes_nothing(tmp_path):
    rows = {"a": ["?"] * 5000, "b": ["x"] * 5000}
    assert refused(tmp_path / "data", rows) == (
        "expected at most 250 invalid rows of 5,000 (max_invalid: auto, 5% but at least 10), got "
        f"5,000 ({reasons(0, 1, 2)}; all are in {tmp_path}/data.rejects.jsonl; {MORE.replace('SHARE', '100%')})"
    )
    with pytest.raises(rs.RecordError) as caught:
        rs.write(rows, SCHEMA, tmp_path / "data", invalid={"max_invalid": None})
    assert str(caught.value) == (
        "expected at least one valid row, got none (the last is row 4999: features.a: expected int64, got str '?')"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["data.rejects.jsonl"]


MORE = "`invalid: {max_invalid: SHARE}` allows more"


def reasons(*rows: int) -> str:
    return "; ".join(f"row {row}: features.a: expected int64, got str '?'" for row in rows)


def some_bad(rows: int, bad: int) -> list[dict]:
    """Rows of which the first are invalid."""
    return [{"a": "?" if row < bad else row, "b": ""} for row in range(rows)]


def refused(folder, rows, **options) -> str:
    with pytest.raises(rs.RecordError) as caught:
        rs.write(rows, SCHEMA, folder, **{"invalid": "quarantine", **options})
    assert not folder.exists()
    # `invalid: quarantine` is a hint for those that do not quarantine rows
    assert not any("quarantine" in note for note in caught.value.__notes__)
    return str(caught.value)


def as_columns(rows: list[dict]) -> dict:
    return {name: [row[name] for row in rows] for name in ("a", "b")}


@pytest.mark.parametrize(
    ("invalid", "rows", "allowed"),
    [
        ("quarantine", 20, 10),
        ("quarantine", 219, 10),
        ("quarantine", 220, 11),
        ("quarantine", 399, 19),
        ({}, 400, 20),
        ({"max_invalid": "auto"}, 20, 10),
        ({"max_invalid": "5%"}, 40, 2),
        ({"max_invalid": "5 %"}, 59, 2),
        ({"max_invalid": "0.1%"}, 1000, 1),
        ({"max_invalid": "29%"}, 100, 29),  # 28.999... in float64
        ({"max_invalid": "0%"}, 40, 0),
        ({"max_invalid": 3}, 40, 3),
        ({"max_invalid": 0}, 40, 0),
    ],
)
def test_the_most_rows_that_may_be_invalid(tmp_path, invalid, rows, allowed):
    for form in (list, as_columns, lambda some: iter(some)):
        folder = tmp_path / form.__name__.strip("<>")
        assert rs.write(form(some_bad(rows, allowed)), SCHEMA, folder, invalid=invalid).rejected == allowed
        refused(tmp_path / "none", form(some_bad(rows, allowed + 1)), invalid=invalid)


def test_any_number_of_rows_may_be_invalid_if_asked(tmp_path):
    for number, most in enumerate((None, "100%", 39)):
        folder = tmp_path / str(number)
        assert rs.write(some_bad(40, 39), SCHEMA, folder, invalid={"max_invalid": most}).rejected == 39


@pytest.mark.parametrize(("jobs", "resume"), [(1, False), (2, False), (1, True)])
def test_more_than_are_allowed_is_an_error(tmp_path, monkeypatch, jobs, resume):
    """A share is one of all rows, which are known at the end of a CSV file; a count is exceeded at once."""
    monkeypatch.setattr(base, "PART_BYTES", 500)
    lines = [f"{'?' if 3 < row < 15 else row},x" for row in range(219)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b", *lines]) + "\n")
    rows = Csv(files="rows.csv").open(tmp_path)
    said = "; ".join(
        f"{tmp_path}/rows.csv:{row + 2}: features.a: expected int64, got str '?'" for row in (4, 5, 6)
    ).replace("str '?'", "`?`")
    kept = tmp_path / "data.rejects.jsonl"
    assert refused(tmp_path / "data", rows, jobs=jobs, resume=resume) == (
        "expected at most 10 invalid rows of 219 (max_invalid: auto, 5% but at least 10), got 11 "
        f"({said}; all are in {kept}; {MORE.replace('SHARE', '6%')})"
    )
    listed = [json.loads(line)["row"] for line in kept.read_text().splitlines()]
    assert listed == list(range(4, 15))
    counted = refused(tmp_path / "data", rows, jobs=jobs, invalid={"max_invalid": 3})
    assert counted == (
        f"expected at most 3 invalid rows (max_invalid: 3), got at least 4 ({said}; {MORE.replace('SHARE', '20%')})"
    )
    assert rs.write(rows, SCHEMA, tmp_path / "data", jobs=jobs, invalid={"max_invalid": "6%"}).rejected == 11
    assert not kept.exists()
    with pytest.raises(rs.RecordError) as caught:
        rs.write(rows, SCHEMA, tmp_path / "error")
    assert (
        "(`invalid: quarantine` leaves out invalid rows; see `recordspec docs building`)"
        in caught.value.__notes__[0]
    )


def test_a_folder_of_broken_images_is_refused(tmp_path):
    for number in range(181):
        data = image_bytes(np.zeros((2, 2, 3), np.uint8), "png")
        path = tmp_path / "raw" / "ab"[number % 2] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data[: 40 if number % 5 < 2 else None])
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {image: {kind: image, shape: [2, 2, 3]}, label: {kind: label, names: [a, b]}}"
    )
    with pytest.raises(rs.RecordError, match=r"at most 10 invalid rows of 181 .*, got 73 \(.*/raw/a/000.png"):
        rs.write(ImageFolder(folder=str(tmp_path / "raw")), schema, tmp_path / "data", invalid="quarantine")
    assert not (tmp_path / "data").exists()
    manifest = rs.write(
        ImageFolder(folder=str(tmp_path / "raw")), schema, tmp_path / "data", invalid={"max_invalid": "50%"}
    )
    assert (manifest.rejected, manifest.rows("train")) == (73, 108)


def test_only_the_rows_of_this_build_are_judged(tmp_path):
    rs.write(some_bad(1000, 50), SCHEMA, tmp_path / "data", invalid="quarantine")
    before = (tmp_path / "data/manifest.json").read_bytes()
    with pytest.raises(rs.RecordError, match=r"at most 10 invalid rows of 100 .*, got 11"):
        rs.write(some_bad(100, 11), SCHEMA, tmp_path / "data", invalid="quarantine", append=True)
    assert (tmp_path / "data/manifest.json").read_bytes() == before
    more = rs.write(some_bad(100, 10), SCHEMA, tmp_path / "data", invalid="quarantine", append=True)
    assert more.rejected == 60


def test_rows_of_given_splits_are_judged_together(tmp_path):
    for name, rows in (("train", some_bad(150, 5)), ("test", some_bad(50, 6))):
        (tmp_path / f"{name}.csv").write_text("a,b\n" + "".join(f"{row['a']},x\n" for row in rows))
    (tmp_path / "s.yaml").write_text(SCHEMA.dump())
    text = "schema: s.yaml\ndata: data\nwrite: {source: {train: {csv: train.csv}, test: {csv: test.csv}}, invalid: INVALID}\n"
    for invalid in ("quarantine", "{max_invalid: 5.5%}"):
        (tmp_path / "c.yaml").write_text(text.replace("INVALID", invalid))
        pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
        if invalid == "quarantine":
            with pytest.raises(rs.RecordError, match=r"at most 10 invalid rows of 200 .*, got 11"):
                pipeline.build(progress=False)
        else:
            assert pipeline.build(progress=False).rejected == 11


def test_rows_of_a_writer_are_judged_at_its_end(tmp_path):
    def written() -> None:
        with rs.ShardedWriter(SCHEMA, tmp_path / "written", invalid="quarantine") as writer:
            for row in some_bad(20, 11):
                writer.write(row)

    with pytest.raises(rs.RecordError, match=r"at most 10 invalid rows of 20 .*, got 11"):
        written()
    assert not (tmp_path / "written").exists()


def test_a_share_is_judged_by_the_build_and_not_by_its_estimate(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(f"{row['a']},x\n" for row in some_bad(60, 20)))
    (tmp_path / "s.yaml").write_text(SCHEMA.dump())
    (tmp_path / "c.yaml").write_text(
        "schema: s.yaml\ndata: data\nwrite: {source: {csv: rows.csv}, invalid: quarantine}"
    )
    done = run("build", "c.yaml", "--dry-run", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["rows"]) == (0, 40)
    done = run("build", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("expected at most 10 invalid rows of 60 (max_invalid: auto, 5% but at ")
    assert "5 % of the rows, or 10 rows. `invalid: {max_invalid: 20%}`" in run(
        "build", "--help"
    ).stdout.replace("\n  ", " ")


def test_rows_of_a_csv_file_are_named_by_their_lines(tmp_path):
    (tmp_path / "rows.csv").write_text('a,b\n1,x\n?,y\n3,"a\nb"\n4,long\n5,z\n')
    rows = Csv(files="rows.csv").open(tmp_path)
    rs.write(rows, SCHEMA, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [1, 3, 5]
    assert [(line["row"], line["place"]) for line in rejects(tmp_path / "data")] == [
        (1, f"{tmp_path}/rows.csv:3"),
        (3, f"{tmp_path}/rows.csv:6"),
    ]


def test_records_of_tfrecords_are_named_by_their_places(tmp_path):
    loose = rs.Schema.loads("schema: s\nfeatures:\n  a: int64\n  b: string")
    rs.write([{"a": 1, "b": "x"}, {"a": 2, "b": "long"}, {"a": 3, "b": "y"}], loose, tmp_path / "loose")
    rows = TFRecords(files="loose").open(tmp_path)
    rs.write(rows, SCHEMA, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [1, 3]
    (line,) = rejects(tmp_path / "data")
    file = tmp_path / "loose/train-00000-of-00001.tfrecord"
    assert line["place"] == f"{file}: record 1 at byte {next(r.offset for r in scan(file) if r.number == 1)}"


def test_a_dataset_with_rejects_can_be_replaced(tmp_path):
    rows = [{"a": "?", "b": ""}, {"a": 1, "b": ""}]
    rs.write(rows, SCHEMA, tmp_path / "data", invalid="quarantine")
    rs.write(rows[1:], SCHEMA, tmp_path / "data", invalid="quarantine", force=True)
    assert not (tmp_path / "data/rejects.jsonl").exists()


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (-1, "expected a number of rows, got -1"),
        ("5", "expected a share of 0% to 100%, such as 5%, got `5`"),
        ("101%", "expected a share of 0% to 100%, such as 5%, got `101%`"),
        ("-5%", "expected a share of 0% to 100%, such as 5%, got `-5%`"),
        (0.05, "expected a whole number, text or null, got float 0.05"),
        (True, "expected a whole number, text or null, got bool True"),
    ],
)
def test_what_is_no_number_of_rows_is_refused(tmp_path, most, said):
    with pytest.raises(rs.SpecError) as caught:
        rs.write([], SCHEMA, tmp_path / "data", invalid={"max_invalid": most})
    assert str(caught.value) == f"invalid.max_invalid: {said}"


def test_rows_that_are_no_mappings_are_set_aside(tmp_path):
    rows = [{"a": 1, "b": ""}, None, [3], {"a": 2, "b": ""}]
    rs.write(rows, SCHEMA, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [1, 2]
    assert [line["problems"] for line in rejects(tmp_path / "data")] == [
        ["expected a mapping from names to values, got nothing"],
        ["expected a mapping from names to values, got list [3]"],
    ]


def test_text_that_utf8_cannot_hold_is_set_aside(tmp_path):
    rs.write([{"a": 1, "b": "\udce9"}, {"a": 2, "b": ""}], SCHEMA, tmp_path / "data", invalid="quarantine")
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
    rs.write(rows, SCHEMA, tmp_path / "data", invalid="quarantine")
    assert written(tmp_path / "data") == [1, 2]
    (line,) = rejects(tmp_path / "data")
    assert line["place"].startswith(f"{tmp_path}/x.tfrecord: record 1 at byte ")
