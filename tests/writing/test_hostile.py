"""What a hostile hand gives: pipes, links, files that change, names with NUL, datasets that are not whole."""

from __future__ import annotations

import os
import shutil

import pytest
from test_writing_build import SCHEMA, plain, rows

import recordspec as rs
from recordspec.store.expand import expand
from recordspec.wire.tfrecord import scan
from recordspec.writing.row_encoder import EncodedParts
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.tfrecord import TFRecords

NAMED = rs.Schema.loads("schema: s\nfeatures: {id: int64, text: string}")


@pytest.mark.parametrize("form", [Csv, Jsonl, Parquet, TFRecords])
def test_a_pipe_is_not_waited_for(tmp_path, form):
    os.mkfifo(tmp_path / "rows")
    with pytest.raises(rs.StoreError) as caught:
        rs.write(form(**{form.SHORT_FORM: "rows"}).open(tmp_path), NAMED, tmp_path / "data")
    assert str(caught.value) == (
        f"{tmp_path}/rows: expected a regular file, got a pipe (copy its contents to a file first)"
    )
    with pytest.raises(rs.StoreError, match="got a pipe"):
        rs.reshard(tmp_path / "rows", tmp_path / "data")
    assert os.listdir(tmp_path) == ["rows"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, jobs, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("id,text\n" + "1,a\n" * 100)
    add = EncodedParts.add

    def disturbed(self, part):
        with path.open("a") as file:
            file.write("2,b\n")
        add(self, part)

    monkeypatch.setattr(EncodedParts, "add", disturbed)
    with pytest.raises(rs.WriteError) as caught:
        rs.write(Csv(files="rows.csv").open(tmp_path), NAMED, tmp_path / "data", jobs=jobs)
    assert str(caught.value) == (
        f"`{tmp_path}/data` cannot be built: its source changed while it was read, "
        "after 100 rows: nothing was published"
    )
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize("before", [0, 5000])
def test_a_byte_that_is_no_text_is_placed(tmp_path, before):
    """Also near the start of the file, where it is read along with the header."""
    (tmp_path / "rows.csv").write_bytes(b"id,text,other\n" + b"1,abc,\xfe\n" * before + b"2,\xff,x\n3,b,x\n")
    with pytest.raises(rs.RecordError) as caught:
        rs.write(Csv(files="rows.csv").open(tmp_path), NAMED, tmp_path / "data")
    assert str(caught.value) == (
        f"{tmp_path}/rows.csv:{before + 2}: expected UTF-8 text, got the byte 0xff "
        "(`encoding` of the source names another, such as windows-1252 or utf-16)"
    )


@pytest.mark.parametrize("text", ["id,text", "id,text\n", '"id","text"\r\n', "\ufeffid,text"])
def test_a_header_alone_is_no_rows(tmp_path, text):
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8", newline="")
    source = Csv(files="rows.csv").open(tmp_path)
    with pytest.raises(rs.RecordError) as caught:
        rs.write(source, NAMED, tmp_path / "data")
    assert str(caught.value) == (
        f"`{tmp_path}/rows.csv` has no rows: "
        "allow_empty=True, or --allow-empty, builds a dataset without rows"
    )
    assert rs.write(source, NAMED, tmp_path / "data", allow_empty=True).rows("train") == 0


def test_a_path_with_nul_is_a_bad_value(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {image: {kind: image, encoding: png, shape: [4, 4, 3]}}")
    (tmp_path / "rows.csv").write_bytes(b"image\nx\x00y.png\n")
    with pytest.raises(rs.RecordError) as caught:
        rs.write(Csv(files="rows.csv").open(tmp_path), schema, tmp_path / "data")
    assert str(caught.value) == (
        f"{tmp_path}/rows.csv:2: features.image: expected a path in {tmp_path}, got `x\\x00y.png`"
    )


def test_a_class_behind_a_link_is_noted(tmp_path):
    for name in ("images/cat/1.png", "elsewhere/2.png", "images/cat/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "images/dog.png").symlink_to("../elsewhere")
    source = ImageFolder(folder="images").open(tmp_path)
    assert (source.rows, source.notes) == (
        1,
        [
            "files that are not images, left out: 1 of .txt (cat/notes.txt)",
            "links to folders, not followed: 1, such as dog.png",
        ],
    )


def test_a_file_of_several_names_is_taken_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rs.write(plain(rows(20)), SCHEMA, "old", shards=2)
    (tmp_path / "link").symlink_to("old")
    names = ["old", tmp_path / "old", "link", "old/../old/train-00001-of-00002.tfrecord"]
    assert list(map(str, expand(names))) == [f"old/train-0000{n}-of-00002.tfrecord" for n in (0, 1)]
    assert rs.reshard(names, "new").rows("train") == 20


def test_files_of_several_datasets_are_refused(tmp_path):
    """One may be in blocks and the other not; neither says so in its bytes."""
    rs.write(plain(rows(20)), SCHEMA, tmp_path / "a", layout={"blocks": 7})
    rs.write(plain(rows(20)), SCHEMA, tmp_path / "b")
    (tmp_path / "c").mkdir()
    shutil.copy(tmp_path / "b/train-00000-of-00001.tfrecord", tmp_path / "c")
    for one, other in (("a", "b"), ("a", "c")):
        with pytest.raises(rs.SpecError) as caught:
            rs.reshard([tmp_path / one, tmp_path / other], tmp_path / "new")
        assert str(caught.value) == (
            f"files: expected files of one dataset, got those of {tmp_path}/{one} and of {tmp_path}/{other} "
            "(`append` adds the rows of one to another)"
        )


def test_a_shard_that_is_cut_between_records_is_refused(tmp_path):
    rs.write(plain(rows(20)), SCHEMA, tmp_path / "old")
    path = tmp_path / "old/train-00000-of-00001.tfrecord"
    size, last = path.stat().st_size, list(scan(path))[-1].offset
    os.truncate(path, last)
    with pytest.raises(rs.StoreError) as caught:
        rs.reshard(tmp_path / "old", tmp_path / "new")
    expected = f"{size:,} bytes, as the manifest says"
    assert str(caught.value) == f"{path}: expected {expected}, got {last:,} (build the dataset again)"
    assert os.listdir(tmp_path) == ["old"]


def test_rejects_that_are_gone_are_missed_at_once(tmp_path):
    rs.write([{"id": 1, "text": "a"}, {"id": "x"}], NAMED, tmp_path / "old", invalid="quarantine")
    (tmp_path / "old/rejects.jsonl").unlink()
    with pytest.raises(rs.StoreError) as caught:
        rs.reshard(tmp_path / "old", tmp_path / "new")
    rejects = tmp_path / "old/rejects.jsonl"
    assert str(caught.value) == f"{rejects}: cannot read: no such file or directory"
    assert os.listdir(tmp_path) == ["old"]
