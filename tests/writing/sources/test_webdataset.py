"""Tars of WebDataset as rows: read as they stream by, and refused where rows would be lost."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pyarrow
import pytest

import recordspec as rs
from media import image_bytes, photo
from recordspec.writing.sources.webdataset import WebDataset

SCHEMA = rs.Schema.loads(
    """\
schema: s
features:
  image: {kind: image, shape: [30, 40, 3]}
  label: {kind: label, names: [cat, dog]}
  caption: {kind: text}
  size: {dtype: float32, shape: [2]}
  vector: {kind: var_len, dtype: int64}
"""
)
COLUMNS = {"caption": "json.caption", "size": "meta.json.size.pixels", "vector": "npy"}
NUMBERS = rs.Schema.loads("schema: s\nfeatures: {n: int64}")


def zstd_of(data: bytes) -> bytes:
    return pyarrow.compress(data, codec="zstd", asbytes=True)


def npy(values) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array(values), allow_pickle=True)
    return stream.getvalue()


def members(key: str, label: str, **changed: bytes) -> dict[str, bytes]:
    given = {
        "png": image_bytes(photo(), "png"),
        "cls": label.encode(),
        "json": json.dumps({"caption": f"é {key}"}).encode(),
        "meta.json": b'{"size": {"pixels": [30, 40]}}',
        "npy": npy([1, 2, 3]),
    }
    return {f"{key}.{name}": data for name, data in (given | changed).items()}


def tar(path: Path, files: dict[str, bytes] | list[tuple[str, bytes]], mode: str = "w", change=None) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in files.items() if isinstance(files, dict) else files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if change is not None:
                change(info)
            archive.addfile(info, io.BytesIO(data))
    return path


def numbers(path: Path, *names: str) -> Path:
    return tar(path, [(name, b"7") for name in names])


def message(folder: Path, schema: rs.Schema = NUMBERS, **options) -> str:
    source = WebDataset(files="*.tar*", **options).open(folder)
    with pytest.raises((rs.RecordError, rs.SpecError)) as caught:
        rs.write(source, schema, folder / "data", progress=False)
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_config_reads_the_members_of_a_key_as_a_row(tmp_path, mode):
    tar(tmp_path / "a.tar", members("0", "1") | {"._0.png": b"", "__info__.x": b""}, mode)
    (tmp_path / "s.yaml").write_text(SCHEMA.dump())
    (tmp_path / "c.yaml").write_text(
        "schema: s.yaml\ndata: data\nwrite:\n  key: __key__\n"
        f"  source: {{webdataset: {{files: '*.tar', columns: {json.dumps(COLUMNS)}}}}}\n"
    )
    tar(tmp_path / "b.tar", members("../1", "cat") | members("/2", "0"), mode)
    manifest = rs.Pipeline.load(tmp_path / "c.yaml").build(jobs=2, progress=False)
    assert manifest.rows("train") == 3
    (batch,) = rs.read(tmp_path / "data", SCHEMA, batch=3)
    assert [one.decode() for one in batch["caption"].numpy()] == ["é 0", "é ../1", "é /2"]
    assert batch["label"].numpy().tolist() == [1, 0, 0]
    assert batch["size"].numpy().tolist() == [[30, 40]] * 3
    assert batch["vector"].to_list() == [[1, 2, 3]] * 3
    np.testing.assert_array_equal(batch["image"][2], photo())
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar", "b.tar", "s.yaml", "c.yaml", "data"}


def test_the_key_is_a_column_and_members_may_be_compressed(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {name: text, n: int64, number: int64, caption: text}")
    files = [
        *(("a/007.n.gz", gzip.compress(b"1")), ("a/007.json.gz", gzip.compress(b'{"caption": "first"}'))),
        *(("008.n.bz2", bz2.compress(b"2")), ("008.json", b'{"caption": "second"}')),
    ]
    columns = {"name": "__key__", "caption": "json.caption", "number": "n"}
    source = WebDataset(files=str(tar(tmp_path / "rows.tar", files)), columns=columns)
    rs.write(source, schema, tmp_path / "data", progress=False)
    rows = [dict(row) for row in rs.open(tmp_path / "data", schema)]
    assert rows == [
        {"name": b"a/007", "n": 1, "number": 1, "caption": b"first"},
        {"name": b"008", "n": 2, "number": 2, "caption": b"second"},
    ]
    numbered = rs.Schema.loads("schema: s\nfeatures: {key: int64}")
    source = WebDataset(files=str(tar(tmp_path / "b.tar", [("12.n", b"")])), columns={"key": "__key__"})
    rs.write(source, numbered, tmp_path / "numbered", progress=False)
    assert [row["key"] for row in rs.open(tmp_path / "numbered", numbered)] == [12]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([("a.n.gz", b"no gzip")], "expected a whole gzip member `a.n.gz`, got text that begins 'no gzip'"),
        ([("a.n", b"1"), ("a.n.gz", b"")], "expected every extension of a key once, got `a.n` again"),
    ],
)
def test_compressed_members_that_are_none_are_refused(tmp_path, files, expected):
    path = tar(tmp_path / "rows.tar", files)
    with pytest.raises(rs.RecordError) as caught:
        rs.write(WebDataset(files=str(path)), NUMBERS, tmp_path / "data", progress=False)
    assert str(caught.value) == f"{path}: {expected}"


def test_a_member_is_not_decompressed_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("recordspec.schema.values.LONGEST_ROW", 1000)
    path = tar(tmp_path / "rows.tar", [("a.n.gz", gzip.compress(b"0" * 5000)), ("b.n", b"1")])
    options = {"invalid": "quarantine", "progress": False}
    manifest = rs.write(WebDataset(files=str(path)), NUMBERS, tmp_path / "data", **options)
    assert manifest.rows("train") == 1
    assert "expected a row of at most 1,000 bytes" in (tmp_path / "data/rejects.jsonl").read_text()


def test_a_row_names_its_tar_and_its_key(tmp_path):
    path = tar(tmp_path / "a.tar", members("0", "1") | members("1", "bird"))
    expected = f"{path}: 1: features.label: expected one of `cat`, `dog`, or an index, got `bird`"
    assert message(tmp_path, SCHEMA, columns=COLUMNS).startswith(expected)


def test_pickled_arrays_are_not_loaded(tmp_path):
    tar(tmp_path / "a.tar", members("0", "1", npy=npy([{}, None])))
    assert (
        "features.vector: expected a whole .npy file of numbers, got Object arrays cannot be loaded when allow_pickle=False"
        in message(tmp_path, SCHEMA, columns=COLUMNS)
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.n", "a.N"], "expected every extension of a key once, got `a.n` again"),
        (["a.n", "b.n", "a.txt"], "expected consecutive members for each key, got `a` again"),
        (["a.x", "a.y"], "n: expected a member .n of `a`, got x, y (`columns` of the source names the extension)"),
        (["a.n", "b.x"], "b: features.n: expected int64, got nothing (only a feature with a default may be missing)"),
    ],
)  # fmt: skip
def test_rows_that_would_be_lost_are_errors(tmp_path, names, expected):
    path = numbers(tmp_path / "a.tar", *names)
    assert message(tmp_path) == f"{path}: {expected}"


def test_a_key_in_two_tars_is_torn_only_if_they_share_its_members(tmp_path):
    first, second = tmp_path / "a.tar", tmp_path / "b.tar"
    numbers(first, "0.n", "1.n")
    numbers(second, "1.txt", "2.n")
    assert message(tmp_path) == f"{first}: expected all members of `1` in one tar, got others in {second}"
    numbers(second, "1.n", "2.n")  # numbered anew
    manifest = rs.write(WebDataset(files="*.tar").open(tmp_path), NUMBERS, tmp_path / "data", progress=False)
    assert manifest.rows("train") == 4


def test_tars_may_be_empty(tmp_path):
    for number, names in enumerate(([], [], ["0.n"], [], [])):
        numbers(tmp_path / f"{number}.tar", *names)
    manifest = rs.write(WebDataset(files="*.tar").open(tmp_path), NUMBERS, tmp_path / "data", progress=False)
    assert manifest.rows("train") == 1


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    def change(info):
        info.type, info.linkname, info.size = kind, "/etc/passwd", 0

    path = tar(tmp_path / "a.tar", {"a.n": b""}, change=change)
    assert message(tmp_path) == f"{path}: expected a file `a.n`, got a link or a device"


def test_a_tar_that_was_cut_is_refused(tmp_path):
    path = numbers(tmp_path / "a.tar", "0.n", "1.n")
    whole = path.read_bytes()
    for size in (1024, 1024 + 512, 2048, 2048 + 100):
        path.write_bytes(whole[:size])
        assert message(tmp_path).startswith(f"{path}: expected a whole tar, got "), size
    path.write_bytes(b"no tar" * 1000)
    assert message(tmp_path).startswith(f"{path}: expected a whole tar, got ")
    tar(path, [("0.n", b"7"), ("1.n", b"7")], "w:gz")
    path.write_bytes(path.read_bytes()[:-40])
    assert message(tmp_path).startswith(f"{path}: expected a whole tar, got ")


def test_a_default_may_hide_a_name_so_it_is_noted(tmp_path):
    numbers(tmp_path / "a.tar", "0.n")
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, m: {dtype: int64, default: 0}}")
    source = WebDataset(files="a.tar").open(tmp_path)
    rs.write(source, schema, tmp_path / "data", progress=False)
    assert source.notes == ["m: 0 has no member for it, only n"]


def test_a_name_that_stands_twice_in_json_is_refused(tmp_path):
    text = rs.Schema.loads("schema: s\nfeatures: {caption: text}")
    path = tar(tmp_path / "a.tar", {"0.json": b'{"caption": "a", "caption": "b"}'})
    source = WebDataset(files=str(path), columns={"caption": "json.caption"})
    with pytest.raises(rs.RecordError) as error:
        rs.write(source, text, tmp_path / "data")
    assert str(error.value) == f"{path}: 0: features.caption: expected every name once, got `caption` again"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd_of])
def test_a_tar_of_several_streams_is_read_to_its_end(tmp_path, compress):
    """As `cat`, pigz and BGZF write it; one stream may be empty."""
    raw = tar(tmp_path / "plain.tar", {f"{n}.n": str(n).encode() for n in range(30)}).read_bytes()
    joined = tmp_path / "a.tar"
    joined.write_bytes(compress(raw[:5120]) + compress(b"") + compress(raw[5120:]))
    rs.write(WebDataset(files=str(joined)), NUMBERS, tmp_path / "data", shuffle=None)
    assert rs.scan(tmp_path / "data").to_table()["n"].to_pylist() == [*range(30)]
    joined.write_bytes(compress(raw[:5120]))
    with pytest.raises(rs.RecordError, match="expected a whole tar, got one without its end"):
        rs.write(WebDataset(files=str(joined)), NUMBERS, tmp_path / "half")
