"""Sources in parts: cut anywhere, sent to another process, they give the same rows under the same names."""

from __future__ import annotations

import csv
import io
import json
import pickle
from collections.abc import Iterator
from itertools import chain

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import soundfile
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pyarrow import parquet

import recordspec as rs
from recordspec.config import From
from recordspec.writing.sources import Rows, base, source_of, spans
from recordspec.writing.sources.audio_folder import AudioFolder
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.image_folder import ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.rows import batch_of
from recordspec.writing.sources.tfrecord import TFRecords

TEXTS = rs.Schema.loads(
    "schema: s\nfeatures:\n  a: {dtype: string, default: '-'}\n  b: {dtype: string, default: '-'}"
)
NUMBER = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
MANY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip


def schema(features: str) -> rs.Schema:
    return rs.Schema.loads(f"schema: s\nfeatures:\n  {features}\n")


def parts_of(source, one: rs.Schema, extra=()) -> list:
    """The parts as another process gets them."""
    return [pickle.loads(pickle.dumps(part)) for part in source.parts(one, extra)]


def batches_of(source, one: rs.Schema) -> Iterator:
    if isinstance(source, Rows):
        yield batch_of(list(source), one, ())
        return
    for part in parts_of(source, one):
        yield from part.batches(one, ())


def records(source, one: rs.Schema, step: int = 7) -> list[bytes]:
    """All the rows, encoded a few at a time."""
    found = []
    for batch in batches_of(source, one):
        for start in range(0, batch.rows, step):
            stop = min(start + step, batch.rows)
            found += list(one.encode_batch(batch.columns(start, stop), stop - start))
    return found


def rows_of(source, one: rs.Schema, step: int = 7) -> list[dict]:
    """All the rows, decoded again."""
    decoded = [one.decode(record) for record in records(source, one, step)]
    return [{name: plain(value) for name, value in row.items()} for row in decoded]


def plain(value):
    value = value.to_list() if hasattr(value, "to_list") else value.numpy()
    return value.tolist() if hasattr(value, "tolist") else value


def error_of(source, one: rs.Schema) -> list[str]:
    """The problems of the first bad row, at its place."""
    for part in parts_of(source, one):
        row = 0
        for batch in part.batches(one, ()):
            for start in range(batch.rows):
                try:
                    one.encode_batch(batch.columns(start, start + 1), 1)
                except rs.RecordError as error:
                    return str(error.at(part.place(row + start))).splitlines()
            row += batch.rows
    return []


@pytest.fixture
def part_bytes(monkeypatch):
    return lambda size: monkeypatch.setattr(base, "PART_BYTES", size)


@pytest.fixture
def small(part_bytes):
    part_bytes(10)


# CSV


def by_python(text: str) -> list[list[str]]:
    lines = csv.reader(io.StringIO(text, newline=""))
    return [cells for cells in lines if cells][1:]


CELL = st.text(st.sampled_from('ab"\n\r,;é \t'), max_size=4)
LAYOUT = st.tuples(CELL, st.booleans())


def quoted(cell: str, always: bool) -> str:
    return '"' + cell.replace('"', '""') + '"' if always or set(cell) & set('"\n\r,') else cell


@given(
    cells=st.lists(st.tuples(LAYOUT, LAYOUT), max_size=12),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\n\n", "\r"]), min_size=13, max_size=13),
    last=st.booleans(),
    bom=st.booleans(),
    size=st.integers(1, 40),
    block=st.integers(1, 50),
)
@MANY
def test_a_csv_file_cut_anywhere_has_the_rows_that_python_reads(
    tmp_path_factory, cells, ends, last, bom, size, block
):
    rows = ["a,b", *(",".join(quoted(*cell) for cell in row) for row in cells)]
    text = "".join(row + end for row, end in zip(rows, ends, strict=False))
    if not last and cells:
        text = text.rstrip("\r\n")
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" * bom + text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        patch.setattr(spans, "_BLOCK", block)
        source = Csv(path="rows.csv").open(path.parent)
        parts = parts_of(source, TEXTS)
        found = rows_of(source, TEXTS)
        rowcount = [sum(batch.rows for batch in part.batches(TEXTS, ())) for part in parts]
        places = [
            part.place(row) for part, count in zip(parts, rowcount, strict=True) for row in range(count)
        ]
        backwards = [
            part.place(row)
            for part, count in zip(parts, rowcount, strict=True)
            for row in reversed(range(count))
        ]
        patch.setattr(base, "PART_BYTES", 1 << 30)
        (whole,) = parts_of(source, TEXTS)
    assert [parts[0].span.start, *(part.span.stop for part in parts)] == [
        *(part.span.start for part in parts),
        path.stat().st_size,
    ]
    assert places == [whole.place(row) for row in range(len(places))]
    assert sorted(backwards) == sorted(places)
    expected = [[cell.encode() for cell in row] for row in by_python(text)]
    empty = [cell == ("", False) for row in cells for cell in row]
    given_cells = [cell for row in found for cell in (row["a"], row["b"])]
    assert [b"" if gap else cell for gap, cell in zip(empty, given_cells, strict=True)] == list(
        chain(*expected)
    )
    assert [cell == b"-" for cell in given_cells] == empty


@given(text=st.text(st.sampled_from('a,\n\r"'), max_size=60), size=st.integers(1, 20))
@MANY
def test_a_csv_file_with_quotes_anywhere_is_read_alike_in_parts_and_whole(tmp_path_factory, text, size):
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_bytes(f"a,b\n{text}".encode())
    found = []
    for part_size in (size, 1 << 30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(base, "PART_BYTES", part_size)
            try:
                found.append(records(Csv(path="rows.csv").open(path.parent), TEXTS))
            except rs.RecordError as error:
                found.append(str(error).partition(": expected CSV, got")[0])
    assert found[0] == found[1]


def test_the_cut_of_a_csv_file_follows_from_its_bytes(tmp_path, small):
    text = 'a,b\n"x\n\ny",1\r\n2,"3"\n\n4,5\n'
    (tmp_path / "rows.csv").write_bytes(text.encode())
    parts = parts_of(Csv(path="rows.csv").open(tmp_path), TEXTS)
    assert [(part.span.start, part.span.stop, part.span.line) for part in parts] == [
        (0, 14, 1),
        (14, 25, 5),
    ]
    assert [parts[0].place(0), parts[1].place(0), parts[1].place(1), parts[1].place(0)] == [
        f"{tmp_path}/rows.csv:{line}" for line in (2, 5, 7, 5)
    ]


@pytest.mark.parametrize("text", ['a,b\n5" pipe,1\n6" pipe,2\n', 'a,b\n"x"y,1\n"x"y,2\n'])
def test_a_csv_file_with_quotes_within_cells_is_one_part(tmp_path, small, text):
    (tmp_path / "rows.csv").write_text(text)
    (part,) = parts_of(Csv(path="rows.csv").open(tmp_path), TEXTS)
    assert (part.span.start, part.span.stop) == (0, len(text))


def test_a_bad_cell_and_a_bad_row_of_a_later_part_are_named_by_their_lines(tmp_path, small):
    lines = "n\n" + '"1"\n' * 20
    (tmp_path / "rows.csv").write_text(lines + "x\n3\n")
    source = Csv(path="rows.csv").open(tmp_path)
    assert len(parts_of(source, NUMBER)) > 5
    assert error_of(source, NUMBER) == [f"{tmp_path}/rows.csv:22: features.n: expected int64, got `x`"]
    (tmp_path / "rows.csv").write_text(lines + "1,2\n3\n")
    with pytest.raises(rs.RecordError) as caught:
        records(source, NUMBER)
    assert str(caught.value) == (f"{tmp_path}/rows.csv:22: expected CSV, got Expected 1 columns, got 2: 1,2")


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


# JSON lines

VALUES = st.one_of(st.none(), st.text(max_size=6))


@given(
    rows=st.lists(st.dictionaries(st.sampled_from("ab"), VALUES), max_size=12),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\n\n", " \n"]), min_size=12, max_size=12),
    ascii_only=st.booleans(),
    bom=st.booleans(),
    size=st.integers(1, 60),
    block=st.integers(1, 50),
)
@MANY
def test_json_lines_cut_anywhere_are_the_rows(tmp_path_factory, rows, ends, ascii_only, bom, size, block):
    path = tmp_path_factory.mktemp("jsonl") / "rows.jsonl"
    lines = [json.dumps(row, ensure_ascii=ascii_only) + end for row, end in zip(rows, ends, strict=False)]
    path.write_bytes(b"\xef\xbb\xbf" * bom + "".join(lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        patch.setattr(spans, "_BLOCK", block)
        source = Jsonl(path="rows.jsonl").open(path.parent)
        parts = parts_of(source, TEXTS)
        counts = [sum(batch.rows for batch in part.batches(TEXTS, ())) for part in parts]
        places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
        assert records(source, TEXTS) == [TEXTS.encode(row) for row in rows]
    numbers = np.cumsum([1, *(line.count("\n") for line in lines)])[:-1]
    assert places == [f"{path}:{number}" for number in numbers]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"n": 1', "expected JSON, got other text at column 8 (expecting ',' delimiter)"),
        (b"  nope", "expected JSON, got other text at column 3 (expecting value)"),
        (b'{"n": 1} {"n": 2}', "expected JSON, got other text at column 10 (extra data)"),
        (b'{"n": NaN}', "expected JSON, got NaN (it has no such number; null is missing)"),
        (b'{"n": -Infinity}', "expected JSON, got -Infinity (it has no such number; null is missing)"),
        (b'{"n": 1e999}', "expected a number that float64 holds without overflow, got 1e999"),
        (b'{"n": 1, "n": 2}', "expected every name once, got `n` again"),
        (b"[1]", "expected a JSON object, got list [1]"),
        (b'{"n": "\xff"}', "expected UTF-8 text, got the byte 0xff at byte 8 of the line"),
        (b'{"N": 1}', "expected names of `s`, got `N` (did you mean `n`?)"),
        (b'{"n": 1, "other": 2}', "expected names of `s`, got `other` (`ignore` of the source lists names to leave out)"),
        (b'{"n": 9223372036854775808}', "features.n: expected int64 (-9223372036854775808 to 9223372036854775807), got 9223372036854775808"),
        (b'{"n": ' + b"9" * 5000 + b"}", "expected JSON, got a number of thousands of digits"),
        (b'{"n": ' + b"[" * 100_000, "expected JSON, got lists in lists without end"),
        (b'{"n": [1]}', "features.n: expected int64, got shape [1]"),
        (b'{"n": 1.0}', "features.n: expected int64, got float 1.0 (write 1)"),
        (b"{}", "features.n: expected int64, got nothing (only a feature with a default may be missing)"),
        (b'{"n": null, "old": 3}', "features.n: expected int64, got nothing (only a feature with a default may be missing)"),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else "",
)  # fmt: skip
def test_a_line_that_does_not_fit_is_one_bad_row(tmp_path, part_bytes, line, expected):
    (tmp_path / "rows.jsonl").write_bytes(b'{"n": 1}\n\r\n{"n": 2, "old": null}\n' + line + b'\n{"n": 3}\n')
    for size in (1, 1 << 20):
        part_bytes(size)
        source = Jsonl(path="rows.jsonl", ignore=("old",)).open(tmp_path)
        assert error_of(source, NUMBER) == [f"{tmp_path}/rows.jsonl:4: {expected}"]
    batches = list(batches_of(source, NUMBER))
    assert sum(batch.rows for batch in batches) == 4
    assert batches[0].columns(3, 4) == {"n": [3]}


def test_json_lines_give_every_kind_of_value(tmp_path):
    one = schema(
        "t: {kind: tensor, dtype: uint64, shape: [2, 1]}\n  v: {kind: var_len, dtype: string}\n"
        "  b: {kind: tensor, dtype: bool}\n  l: {kind: label, names: [x, y]}\n  m: {kind: label, names: [x, y], shape: [null]}\n"
        "  f: float32\n  s: {kind: sparse, dtype: float32, size: 9}"
    )
    row = {
        "t": [[2**64 - 1], [0]],
        "v": ["é", ""],
        "b": True,
        "l": "y",
        "m": [1, "x"],
        "f": 3,
        "s": [[4], [0.5]],
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    assert records(Jsonl(path="rows.jsonl").open(tmp_path), one) == [one.encode(row)]


def test_json_names_may_be_others(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"x y": 5}\n')
    assert rows_of(Jsonl(path="rows.jsonl", columns={"n": "x y"}).open(tmp_path), NUMBER) == [{"n": 5}]
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Jsonl(path="rows.jsonl", columns={"N": "x"}).open(tmp_path), NUMBER)
    assert str(caught.value) == (
        f"{tmp_path}/rows.jsonl: columns: expected features of `s`, got `N` (did you mean `n`?)"
    )
    with pytest.raises(rs.StoreError) as missing:
        parts_of(Jsonl(path="no.jsonl").open(tmp_path), NUMBER)
    assert str(missing.value) == (
        f"{tmp_path}/no.jsonl: expected a readable file, got No such file or directory"
    )


# files of images and sounds


@pytest.fixture
def images(tmp_path):
    for index, name in enumerate(["cat/a.png", "cat/b.png", "dog/c.png"]):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (3, 2), (index, 0, 0)).save(path)
    return tmp_path / "images"


PICTURES = schema("image: {kind: image, shape: [2, 3, 3]}\n  label: {kind: label, names: [cat, dog]}")


def test_a_table_of_files_and_labels_is_a_folder_of_images(tmp_path, images):
    pairs = [
        (path.relative_to(tmp_path).as_posix(), path.parent.name) for path in sorted(images.rglob("*.png"))
    ]
    (tmp_path / "rows.csv").write_text("image,label\n" + "".join(f"{path},{name}\n" for path, name in pairs))
    objects = [{"image": path, "label": name} for path, name in pairs]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, objects)))
    parquet.write_table(pa.Table.from_pylist(objects), tmp_path / "rows.parquet")
    expected = records(ImageFolder(path="images").open(tmp_path), PICTURES)
    assert len(expected) == 3
    for form in (Csv(path="rows.csv"), Jsonl(path="rows.jsonl"), Parquet(files="rows.parquet")):
        assert records(form.open(tmp_path), PICTURES) == expected


def test_paths_of_a_table_stay_in_its_folder(tmp_path):
    one = schema("v: {kind: video, shape: [null, 2, 3, 3]}\n  i: {kind: image, shape: [2, 3, 3]}")
    Image.new("RGB", (3, 2)).save(tmp_path / "a.png")
    rows = [{"v": ["a.png"], "i": "a.png"}, {"v": ["a.png", "../b.png"], "i": "/etc/c.png"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    for form, place in [
        (Jsonl(path="rows.jsonl"), "rows.jsonl:2"),
        (Parquet(files="rows.parquet"), "rows.parquet: row 1"),
    ]:
        assert error_of(form.open(tmp_path), one) == [
            f"{tmp_path}/{place}: features.v: expected a path in {tmp_path}, got `../b.png`",
            f"{tmp_path}/{place}: features.i: expected a path in {tmp_path}, got `/etc/c.png`",
        ]


def test_a_folder_in_parts_has_the_same_files(tmp_path, images, part_bytes):
    source = ImageFolder(path="images").open(tmp_path)
    whole = records(source, PICTURES)
    part_bytes(100)
    parts = parts_of(source, PICTURES, ("path",))
    assert [part.place(0) for part in parts] == [str(path) for path in sorted(images.rglob("*.png"))]
    assert [next(part.batches(PICTURES, ("path",))).columns(0, 1)["path"] for part in parts] == [
        ["cat/a.png"],
        ["cat/b.png"],
        ["dog/c.png"],
    ]
    assert records(source, PICTURES) == whole


def test_a_folder_of_sounds_gives_sounds_and_classes(tmp_path):
    samples = np.arange(400, dtype=np.int16)
    for name in ("no/a.wav", "yes/b.FLAC", "c.wav"):
        path = tmp_path / "sounds" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, samples, 8000, format=path.suffix[1:].upper())
    (tmp_path / "sounds/notes.txt").touch()
    one = schema(
        "audio: {kind: audio, sample_rate: 8000, dtype: int16, encoding: raw}\n  label: {kind: label, names: ['no', 'yes']}"
    )
    source = AudioFolder(path="sounds").open(tmp_path)
    assert (source.rows, source.notes) == (3, ["1 files with no sound's suffix were left out"])
    assert error_of(source, one) == [
        f"{tmp_path}/sounds/c.wav: features.label: expected one of no, yes, or an index, got nothing"
    ]
    (tmp_path / "sounds/c.wav").unlink()
    rows = rows_of(AudioFolder(path="sounds").open(tmp_path), one)
    assert [row["label"] for row in rows] == [0, 1]
    assert [np.ravel(row["audio"]).tolist() for row in rows] == [samples.tolist()] * 2
    with pytest.raises(rs.SpecError) as caught:
        parts_of(AudioFolder(path="sounds", audio="sound", label=None).open(tmp_path), one)
    assert str(caught.value) == (
        "sound: expected a feature for it, got none (the options of the source say which take them)"
    )


# TFRecords


@given(sizes=st.lists(st.integers(0, 40), max_size=20), size=st.integers(1, 120))
@MANY
def test_a_tfrecord_file_cut_anywhere_has_the_same_records(tmp_path_factory, sizes, size):
    path = tmp_path_factory.mktemp("tfrecord") / "old.tfrecord"
    one = schema("t: string")
    rows = [bytes([index]) * length for index, length in enumerate(sizes)]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(one.encode({"t": row}))
    source = TFRecords(files="old.tfrecord").open(path.parent)
    (whole,) = parts_of(source, one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        parts = parts_of(source, one)
        assert [row["t"] for row in rows_of(source, one)] == rows
        counts = [sum(batch.rows for batch in part.batches(one, ())) for part in parts]
    assert all(counts[1:])
    places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
    assert places == [whole.place(row) for row in range(len(rows))]


def test_a_broken_record_of_a_later_part_keeps_its_number(tmp_path, small):
    path = tmp_path / "old.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(5):
            writer.write(NUMBER.encode({"n": number}))
    data = bytearray(path.read_bytes())
    size = len(data) // 5
    data[3 * size + 14] ^= 1
    path.write_bytes(data)
    source = TFRecords(files="old.tfrecord").open(tmp_path)
    assert len(parts_of(source, NUMBER)) == 5
    with pytest.raises(rs.RecordError) as caught:
        records(source, NUMBER)
    assert str(caught.value) == (
        f"{path}: record 3 at byte {3 * size}: expected data that matches its CRC, got other bytes"
    )


# columns

LINES = {
    "i": "i: {dtype: int64, default: -1}",
    "f": "f: {dtype: float32, default: 0.5}",
    "b": "b: {kind: tensor, dtype: bool}",
    "u": "u: {kind: tensor, dtype: uint8}",
    "h": "h: {kind: tensor, dtype: float16}",
    "s": "s: {dtype: string, default: none}",
    "l": "l: {kind: label, names: [x, y]}",
    "v": "v: {kind: var_len, dtype: int64}",
    "t": "t: {kind: var_len, dtype: string}",
    "g": "g: {dtype: float32, shape: [2, 2]}",
    "r": "r: {kind: ragged, dtype: int64, shape: [null, null]}",
    "p": "p: {dtype: string, shape: [2]}",
}


def without(*names: str) -> rs.Schema:
    return schema("\n  ".join(line for name, line in LINES.items() if name not in names))


def encoded(one: rs.Schema) -> list[bytes]:
    return [one.encode({name: row[name] for name in one.names}) for row in ROWS]


def typed(index: int) -> dict:
    return {
        "i": None if index % 7 == 3 else index - 2**40,
        "f": None if index % 5 == 2 else index / 4,
        "b": index % 3 == 0,
        "u": index % 256,
        "h": np.float16(index / 8),
        "s": None if index % 4 == 1 else "é" * (index % 5),
        "l": "xy"[index % 2],
        "v": list(range(index % 4)),
        "t": ["é" * length for length in range(index % 3)],
        "g": [[index, 1.0], [2.0, 3.0]],
        "r": [list(range(length)) for length in range(index % 3)],
        "p": [str(index), ""],
    }


ROWS = [typed(index) for index in range(50)]
TYPES = pa.schema(
    {
        "i": pa.int64(),
        "f": pa.float64(),
        "b": pa.bool_(),
        "u": pa.uint8(),
        "h": pa.float16(),
        "s": pa.string(),
        "l": pa.string(),
        "v": pa.list_(pa.int64()),
        "t": pa.list_(pa.string()),
        "g": pa.list_(pa.list_(pa.float32(), 2)),
        "r": pa.list_(pa.list_(pa.int32())),
        "p": pa.list_(pa.large_string(), 2),
    }
)
TABLE = pa.Table.from_pylist(ROWS, TYPES)


def large(table: pa.Table) -> pa.Table:
    """The same in types with 64-bit offsets, and labels as a dictionary."""
    kinds = {
        "s": pa.large_binary(),
        "l": pa.dictionary(pa.int8(), pa.string()),
        "v": pa.large_list(pa.int16()),
        "t": pa.large_list(pa.large_string()),
    }
    for name, kind in kinds.items():
        place = table.schema.get_field_index(name)
        column = pa.array(table.column(name).to_pylist(), kind)
        table = table.set_column(place, name, column)
    return table


def chunked(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 13), table.slice(13, 0), table.slice(13, 20), table.slice(33)])


FORMS = {
    "table": TABLE,
    "large": large(TABLE),
    "chunks": chunked(TABLE),
    "slice": pa.concat_tables([TABLE, TABLE]).combine_chunks().slice(50, 50),
    "batch": TABLE.combine_chunks().to_batches()[0],
    "reader": TABLE,
    "dict": {name: TABLE.column(name) for name in TABLE.column_names},
    "polars": pl.from_arrow(TABLE.drop_columns(["h", "p"])),
    "series": {column.name: column for column in pl.from_arrow(TABLE.drop_columns(["h", "p"])).get_columns()},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [300, 1 << 20])
def test_typed_columns_are_the_rows(part_bytes, form, size):
    part_bytes(size)
    # Polars has no float16, and in old versions no arrays of one length
    one = without("h", "p") if form in ("polars", "series") else without()

    def source():
        return source_of(FORMS[form].to_reader(7) if form == "reader" else FORMS[form])

    for step in (50, 3):
        assert records(source(), one, step) == encoded(one)
    parts = parts_of(source(), one)
    assert (len(parts) > 1) == (size == 300)
    counts = [sum(batch.rows for batch in part.batches(one, ())) for part in parts]
    places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
    assert places == [f"row {row}" for row in range(50)]


def test_a_part_of_a_table_is_sent_alone(part_bytes):
    part_bytes(8000)
    parts = list(source_of(pa.table({"n": np.arange(100_000)})).parts(NUMBER, ()))
    assert len(parts) == 100
    assert len(pickle.dumps(parts[5])) < 10_000
    parts = list(source_of({"n": np.arange(100_000)}).parts(NUMBER, ()))
    assert len(pickle.dumps(parts[5])) < 10_000


def test_lists_of_numbers_need_no_python_list():
    one = schema("v: {kind: var_len, dtype: int64}")
    lists = pa.array([[1, 2], [], [3]])
    (part,) = source_of(pa.table({"v": lists})).parts(one, ())
    values = next(part.batches(one, ())).columns(1, 3)["v"]
    assert (values.flat.tolist(), values.lengths.tolist()) == ([3], [0, 1])
    even = pa.array([[1, 2], [3, 4]])
    (part,) = source_of(pa.table({"v": even})).parts(one, ())
    assert next(part.batches(one, ())).columns(0, 2)["v"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("features", "column", "expected"),
    [
        ("x: {kind: var_len, dtype: int64}", pa.array([[1], [1, None]]), "expected int64, got nothing at item 1"),
        ("x: {dtype: int64, shape: [2]}", pa.array([[1, 2], [1]]), "expected int64 of shape [2], got shape [1]"),
        ("x: int64", pa.array([1, None]), "expected int64, got nothing (only a feature with a default may be missing)"),
        ("x: int64", pa.array(["1", "a"]).slice(1), "expected int64, got str 'a'"),
        ("x: int64", pa.array([1.0, 1.5]), "expected int64, got float 1.0 (write 1)"),
        ("x: {kind: label, names: [a]}", pa.array(["a", "b"]).dictionary_encode(), "expected a, or an index, got `b`"),
        ("x: float32", pa.array([None, None]), "expected float32, got nothing (only a feature with a default may be missing)"),
        ("x: {kind: text}", pa.array([b"a", b"\xff"]), "expected UTF-8 text, got the byte 0xff at position 0"),
    ],
)  # fmt: skip
def test_a_typed_value_that_does_not_fit_is_named(features, column, expected):
    (line,) = error_of(source_of(pa.table({"x": column})), schema(features))
    assert line.split(": ", 2)[1:] == ["features.x", expected]


@pytest.mark.parametrize(
    ("features", "kind", "expected"),
    [
        ("x: int64", pa.timestamp("us"), "expected a column for int64, got timestamp[us] (cast it to int64, in the unit that you mean)"),
        ("x: {kind: var_len, dtype: float32}", pa.list_(pa.decimal128(5, 2)), "expected a column for float32, got list<item: decimal128(5, 2)> (cast it to float64)"),
        ("x: text", pa.date32(), "expected a column of text, got date32[day] (cast it to string)"),
        ("x: {kind: label, names: [a]}", pa.duration("s"), "expected a column of names or indices, got duration[s] (cast it to string)"),
        ("x: {kind: image}", pa.time32("s"), "expected a column of paths or bytes, got time32[s]"),
    ],
)  # fmt: skip
def test_a_type_that_no_feature_takes_is_named(tmp_path, features, kind, expected):
    table = pa.table({"x": pa.array([], kind)})
    with pytest.raises(rs.SpecError) as caught:
        parts_of(source_of(table), schema(features))
    assert str(caught.value) == f"x: {expected}"
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Parquet(files="rows.parquet").open(tmp_path), schema(features))
    got = str(caught.value).replace("element:", "item:")
    assert got.startswith(f"{tmp_path}/rows.parquet: x: {expected.partition(', got')[0]}, got ")


def test_columns_of_other_names_are_refused():
    for rows in ({"n": [1], "m": [2]}, pa.table({"n": [1], "m": [2]}), pd.DataFrame({"n": [1], "m": [2]})):
        with pytest.raises(rs.SpecError) as caught:
            parts_of(source_of(rows), NUMBER)
        assert str(caught.value) == "expected names of `s`, got `m`"
    with pytest.raises(rs.SpecError) as caught:
        parts_of(source_of(pa.table([[1], [2]], ["n", "n"])), NUMBER)
    assert str(caught.value) == "rows: expected every column once, got `n` again"


def test_a_reader_is_read_once():
    source = source_of(pa.table({"n": [1]}).to_reader())
    assert rows_of(source, NUMBER) == [{"n": 1}]
    with pytest.raises(rs.SpecError) as caught:
        parts_of(source, NUMBER)
    assert str(caught.value) == (
        "rows: expected a reader from its start, got one at its end (give another, or the table)"
    )


def test_gaps_are_told_by_the_whole_column(part_bytes):
    part_bytes(8)
    one = schema("n: {dtype: int64, default: -1}")
    assert [row["n"] for row in rows_of(source_of({"n": np.array([1.0, 2.0, np.nan])}), one)] == [1, 2, -1]
    assert error_of(source_of({"n": np.array([1.0, 2.0])}), one) == [
        "row 0: features.n: expected int64, got float 1.0 (write 1)"
    ]
    assert error_of(source_of({"n": np.array([1, np.nan, 2.5])}), one) == [
        "row 0: features.n: expected int64, got float 1.0 (write 1)"
    ]


@pytest.mark.parametrize("kind", ["int64[pyarrow]", "Int64", "float64"])
def test_pandas_columns_of_any_backing_are_values(kind):
    one = schema("n: {dtype: int64, default: -1}\n  s: {dtype: string, default: none}")
    frame = pd.DataFrame(
        {"n": pd.Series([1, None, 3], dtype=kind), "s": pd.Series(["a", None, ""], dtype="string")}
    )
    assert rows_of(source_of(frame), one) == [
        {"n": 1, "s": b"a"},
        {"n": -1, "s": b"none"},
        {"n": 3, "s": b""},
    ]


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


# Parquet


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    parquet.write_table(TABLE.slice(0, 20).drop_columns(["h"]), folder / "a.parquet", row_group_size=6)
    parquet.write_table(TABLE.slice(20).drop_columns(["h"]), folder / "b.parquet", row_group_size=30)
    (folder / "_SUCCESS").touch()
    return tmp_path


WITHOUT_HALF = without("h")


@pytest.mark.parametrize("size", [1, 300, 700, 1500, 1 << 30])
@pytest.mark.parametrize("given_files", ["rows", "rows/*.parquet"])
def test_parquet_files_in_any_parts_are_the_rows(files, part_bytes, size, given_files):
    part_bytes(size)
    source = Parquet(files=given_files).open(files)
    assert source.rows == 50
    assert records(source, WITHOUT_HALF) == encoded(WITHOUT_HALF)
    parts = parts_of(source, WITHOUT_HALF)
    places = [part.place(row) for part in parts for row in range(part.stop - part.start)]
    assert places == [f"{files}/rows/a.parquet: row {row}" for row in range(20)] + [
        f"{files}/rows/b.parquet: row {row}" for row in range(30)
    ]
    if size == 1:
        assert [(part.groups, part.start, part.stop) for part in parts] == [
            ((0,), 0, 3), ((0,), 3, 6), ((1,), 6, 9), ((1,), 9, 12), ((2,), 12, 15), ((2,), 15, 18), ((3,), 18, 19), ((3,), 19, 20),
            ((0,), 0, 15), ((0,), 15, 30),
        ]  # fmt: skip
    if size == 1 << 30:
        assert [part.groups for part in parts] == [(0, 1, 2, 3), (0,)]


def test_parquet_columns_are_checked_by_name(tmp_path):
    parquet.write_table(pa.table({"x y": [1], "z": [1.5]}), tmp_path / "a.parquet")
    source = Parquet(files="a.parquet", columns={"n": "x y"}).open(tmp_path)
    assert rows_of(source, NUMBER) == [{"n": 1}]
    assert source.notes == ["columns that no feature names: z"]
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Parquet(files="a.parquet").open(tmp_path), NUMBER)
    assert str(caught.value) == f"{tmp_path}/a.parquet: n: expected one column `n`, got none"
    parquet.write_table(pa.table({"x y": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Parquet(files="*.parquet", columns={"n": "x y"}).open(tmp_path), NUMBER)
    assert str(caught.value) == f"{tmp_path}/b.parquet: n: expected int64, as in a.parquet, got string"


def test_files_that_are_no_parquet_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(rs.StoreError) as caught:
        Parquet(files="empty").open(tmp_path)
    assert str(caught.value) == f"{tmp_path}/empty: expected files named .parquet, got none"
    (tmp_path / "a.parquet").write_text("no, this is something else")
    with pytest.raises(rs.RecordError) as refused:
        parts_of(Parquet(files="a.parquet").open(tmp_path), NUMBER)
    assert str(refused.value).startswith(
        f"{tmp_path}/a.parquet: expected a Parquet file, got Parquet magic bytes"
    )


# TensorFlow datasets


def test_a_tensorflow_dataset_of_dicts_is_rows():
    one = schema(
        "n: int64\n  s: string\n  r: {kind: ragged, dtype: int64, shape: [null, null]}\n"
        "  p: {kind: sparse, dtype: float32, size: 4}\n  v: {kind: var_len, dtype: int64}"
    )
    dataset = tf.data.Dataset.range(3).map(
        lambda n: {
            "n": n,
            "s": tf.strings.as_string(n),
            "r": tf.ragged.constant([[1, 2], []], dtype=tf.int64),
            "p": tf.sparse.from_dense([0.0, 0.5, 0.0, 0.25]),
            "v": tf.range(n),
        }
    )
    source = source_of(dataset)
    assert source.rows == 3
    assert records(source, one) == [
        one.encode({"n": n, "s": str(n), "r": [[1, 2], []], "p": ([1, 3], [0.5, 0.25]), "v": list(range(n))})
        for n in range(3)
    ]


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (tf.data.Dataset.from_tensors((1, 2)), "rows: expected a dataset of dicts, got one of tuples of 2 (map it to dicts: dataset.map(lambda image, label: {'image': image, 'label': label}))"),
        (tf.data.Dataset.from_tensors({"a": {"b": 1}}), "rows.a: expected a tensor, got a dict (map it to a dict of tensors alone)"),
        (tf.data.Dataset.from_tensors({"a": 1}).repeat(), "rows: expected a dataset with an end, got one that repeats for ever"),
    ],
)  # fmt: skip
def test_a_tensorflow_dataset_of_others_is_refused(dataset, expected):
    with pytest.raises(rs.SpecError) as caught:
        source_of(dataset)
    assert str(caught.value) == expected


def test_a_config_names_every_source():
    forms = {
        "csv": Csv(path="a"),
        "jsonl": Jsonl(path="a"),
        "parquet": Parquet(files="a"),
        "image_folder": ImageFolder(path="a"),
        "audio_folder": AudioFolder(path="a"),
        "tfrecord": TFRecords(files="a"),
    }
    for name, form in forms.items():
        assert From(**{name: form}).at("/b") == From(**{name: type(form)(**{type(form).SHORT_FORM: "/b"})})
    with pytest.raises(rs.SpecError) as caught:
        From()
    assert str(caught.value) == f"expected one of {', '.join(forms)}, got none"
