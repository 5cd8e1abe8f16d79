"""Which source it is, and whether it is as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recordspec as rs
from recordspec.config import From
from recordspec.writing.sources.coco import Coco
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.cvat import Cvat
from recordspec.writing.sources.folders import AudioFolder, ImageFolder, TensorFolder
from recordspec.writing.sources.jsonl import Jsonl, JsonList
from recordspec.writing.sources.labelme import LabelMe
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.tfrecord import TFRecords
from recordspec.writing.sources.voc import PascalVoc
from recordspec.writing.sources.webdataset import WebDataset
from recordspec.writing.sources.yolo import Yolo


def test_files_know_whether_they_are_as_they_were(tmp_path):
    (tmp_path / "rows.csv").write_text("n\n1\n")
    for form in (Csv(files="rows.csv"), Jsonl(files="rows.csv"), TFRecords(files="rows.csv")):
        before = form.open(tmp_path).identity()
        stat = (tmp_path / "rows.csv").stat()
        assert [f"{tmp_path}/rows.csv", stat.st_size, stat.st_mtime_ns] in (before[0], before[0][0])
        assert json.loads(json.dumps(before)) == before
    assert (
        Csv(files="rows.csv").open(tmp_path).identity()
        != Csv(files="rows.csv", delimiter=";").open(tmp_path).identity()
    )
    for rows in ({"n": [1]}, pa.table({"n": [1]}), pa.table({"n": [1]}).to_reader()):
        assert source_of(rows).identity() is None


def test_a_config_names_every_source():
    forms = {
        "csv": Csv(files="a"),
        "jsonl": Jsonl(files="a"),
        "json": JsonList(files="a"),
        "parquet": Parquet(files="a"),
        "image_folder": ImageFolder(folder="a"),
        "audio_folder": AudioFolder(folder="a"),
        "tensor_folder": TensorFolder(folder="a"),
        "coco": Coco(annotations="a"),
        "voc": PascalVoc(annotations="a"),
        "yolo": Yolo(images="a"),
        "labelme": LabelMe(annotations="a"),
        "cvat": Cvat(annotations="a"),
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
    for given, got in [({}, "none"), ({"csv": Csv(files="a"), "tfrecord": TFRecords(files="b")}, "several")]:
        with pytest.raises(rs.SpecError) as caught:
            From(**given)
        forms = "csv, jsonl, json, parquet, image_folder, audio_folder, tensor_folder, coco, voc, yolo, labelme, cvat, webdataset, tfrecord"
        assert str(caught.value) == f"expected one of {forms}, got {got}"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (pl.DataFrame({"n": [1]}).lazy(), "got a LazyFrame (give its .collect())"),
        (pl.Series([1]), "got a Series (give its to_frame())"),
        (pd.Series([1]), "got a Series (give its to_frame())"),
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
