"""Which source it is, and whether it is as it was."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import recordspec as rs
from recordspec.config import From
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.detection import Coco, PascalVoc
from recordspec.writing.sources.folders import AudioFolder, ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.tfrecord import TFRecords
from recordspec.writing.sources.webdataset import WebDataset


def test_files_know_whether_they_are_as_they_were(tmp_path):
    (tmp_path / "rows.csv").write_text("n\n1\n")
    for form in (Csv(path="rows.csv"), Jsonl(path="rows.csv"), TFRecords(files="rows.csv")):
        before = form.open(tmp_path).identity()
        stat = (tmp_path / "rows.csv").stat()
        assert [f"{tmp_path}/rows.csv", stat.st_size, stat.st_mtime_ns] in (before[0], before[0][0])
        assert json.loads(json.dumps(before)) == before
    assert (
        Csv(path="rows.csv").open(tmp_path).identity()
        != Csv(path="rows.csv", delimiter=";").open(tmp_path).identity()
    )
    for rows in ({"n": [1]}, pa.table({"n": [1]}), pa.table({"n": [1]}).to_reader()):
        assert source_of(rows).identity() is None


def test_a_config_names_every_source():
    forms = {
        "csv": Csv(path="a"),
        "jsonl": Jsonl(path="a"),
        "parquet": Parquet(files="a"),
        "image_folder": ImageFolder(path="a"),
        "audio_folder": AudioFolder(path="a"),
        "coco": Coco(annotations="a"),
        "voc": PascalVoc(annotations="a"),
        "webdataset": WebDataset(files="a"),
        "tfrecord": TFRecords(files="a"),
    }
    for name, form in forms.items():
        for path, found in [(None, "/home/a"), ("/b", "/b"), ("gs://b/c", "gs://b/c")]:
            source = From(**{name: form}).open(Path("/home"), path)
            assert source == type(form)(**{type(form).SHORT_FORM: found})
    with pytest.raises(rs.SpecError) as caught:
        From()
    assert str(caught.value) == f"expected one of {', '.join(forms)}, got none"


def test_a_config_names_one_source():
    for given, got in [({}, "none"), ({"csv": Csv(path="a"), "tfrecord": TFRecords(files="b")}, "several")]:
        with pytest.raises(rs.SpecError) as caught:
            From(**given)
        forms = "csv, jsonl, parquet, image_folder, audio_folder, coco, voc, webdataset, tfrecord"
        assert str(caught.value) == f"expected one of {forms}, got {got}"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (pl.DataFrame({"n": [1]}).lazy(), "got a LazyFrame (give its .collect())"),
        (pl.Series([1]), "got Series"),
        (3, "got int 3"),
        ("ab", "got str 'ab' (a config's `write: {source: ...}` names files)"),
    ],
)
def test_rows_that_are_none_are_refused(rows, expected):
    with pytest.raises(rs.SpecError) as caught:
        source_of(rows)
    assert str(caught.value) == (
        f"rows: expected an iterable of dicts, a dict of arrays, a frame, or an Arrow table, {expected}"
    )
