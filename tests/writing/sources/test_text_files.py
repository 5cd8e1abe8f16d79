"""Text files that are compressed, or in another encoding: the same rows and lines as those of plain UTF-8."""

from __future__ import annotations

import bz2
import gzip
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_parts import MANY, NUMBER, TEXTS, parts_of, records, rows_in, schema

import recordspec as rs
from memory import peak_of
from recordspec.schema import values
from recordspec.writing.sources import base, ranges, text_files
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.jsonl import Jsonl


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(data)
    return sink.getvalue().to_pybytes()


PACKERS = {
    "gzip": gzip.compress,
    "gzip of two members": lambda data: gzip.compress(data[:9], mtime=0) + gzip.compress(data[9:], mtime=0),
    "gzip with zeros behind each member": lambda data: b"".join(
        gzip.compress(part, mtime=0) + bytes(20) for part in (data[:9], data[9:])
    ),
    "zstd": zstd,
    "zstd of two frames": lambda data: zstd(data[:9]) + zstd(data[9:]),
    "bz2": bz2.compress,
    "bz2 with an empty stream": lambda data: (
        bz2.compress(data[:9]) + bz2.compress(b"") + bz2.compress(data[9:])
    ),
}
ENCODINGS = ["utf-8", "utf-8-sig", "windows-1252", "latin-1", "utf-16", "utf-16-be", "utf-32", "cp500", "gbk"]


def rows_and_places(source, one: rs.Schema) -> tuple[list[bytes], list[str]]:
    parts = parts_of(source, one)
    counts = [rows_in(part.batches(one, ())) for part in parts]
    places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
    return records(source, one), places


@given(
    cells=st.lists(st.text('a"\n\r,; ü', max_size=4), max_size=12),
    encoding=st.sampled_from(ENCODINGS),
    packer=st.sampled_from(["", *PACKERS]),
    bom=st.booleans(),
    block=st.integers(1, 60),
)
@MANY
def test_every_form_of_a_csv_file_has_the_same_rows_and_lines(
    tmp_path_factory, cells, encoding, packer, bom, block
):
    quoted = ['"' + cell.replace('"', '""') + '"' if set(cell) & set('"\n\r,') else cell for cell in cells]
    text = "a,b\r\n" + "".join(f"{cell},{index}\r\n" for index, cell in enumerate(quoted))
    folder = tmp_path_factory.mktemp("csv")
    (folder / "rows.csv").write_bytes(text.encode())
    expected = rows_and_places(Csv(files="rows.csv").open(folder), TEXTS)
    data = ("\ufeff" * (bom and encoding in ("utf-8", "utf-16-be")) + text).encode(encoding)
    (folder / "rows.csv").write_bytes(PACKERS[packer](data) if packer else data)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((ranges, "_BLOCK"), (ranges, "_PIECE_BYTES"), (text_files, "_BLOCK")):
            patch.setattr(module, name, block)
        patch.setattr(base, "PART_BYTES", 1)
        source = Csv(files="rows.csv", encoding=encoding).open(folder)
        assert rows_and_places(source, TEXTS) == expected
        parts = parts_of(source, TEXTS)
    divided = not packer and encoding in ENCODINGS[:4]
    assert (len(parts) > 1) == (divided and len(cells) > 1)
    assert all(isinstance(part.span, ranges.ByteRange) for part in parts) == divided


@pytest.mark.parametrize("packer", PACKERS)
def test_lines_of_json_may_be_compressed(tmp_path, monkeypatch, packer):
    lines = b"".join(json.dumps({"n": number}).encode() + b"\r\n\n" for number in range(50))
    (tmp_path / "rows.jsonl").write_bytes(lines)
    (tmp_path / "packed.jsonl.gz").write_bytes(PACKERS[packer](lines))
    for block in (1 << 20, 7):
        monkeypatch.setattr(ranges, "_BLOCK", block)
        monkeypatch.setattr(ranges, "_PIECE_BYTES", block)
        plain, packed = (
            rows_and_places(Jsonl(files=name).open(tmp_path), NUMBER)
            for name in ("rows.jsonl", "packed.jsonl.gz")
        )
        assert packed[0] == plain[0]
        assert [place.replace("packed.jsonl.gz", "rows.jsonl") for place in packed[1]] == plain[1]


CSV = b"a,b\n1,x\n" + b"2,y\n" * 100
HINT = "(`encoding` of the source names another, such as windows-1252 or utf-16)"


@pytest.mark.parametrize(
    ("data", "encoding", "expected"),
    [
        (gzip.compress(CSV, mtime=0)[:-3], "utf-8", ": expected a whole gzip file, got a part of one"),
        (gzip.compress(CSV, mtime=0)[:15], "utf-8", ": expected a whole gzip file, got a part of one"),
        (zstd(CSV)[:-2], "utf-8", ": expected a whole zstd file, got a part of one"),
        (bz2.compress(CSV)[:-2], "utf-8", ": expected a whole bz2 file, got a part of one"),
        (bz2.compress(CSV) + b"junk", "utf-8", ": expected a whole bz2 file, got other bytes (Invalid data stream)"),
        (gzip.compress(CSV, mtime=0) + b"junk", "utf-8", ": expected a whole gzip file, got other bytes (zlib inflate failed: incorrect header check)"),
        (gzip.compress(CSV + b"1\n", mtime=0), "utf-8", ":103: expected 2 cells, as in the header, got 1: `1`"),
        (gzip.compress(CSV + b'"1"x,2\n', mtime=0), "utf-8", ':103: expected a delimiter or a line break after a quoted cell, got `"1"x` (a quote in a quoted cell is doubled, `""`; if the file does not quote cells, `quote: null`)'),
        (gzip.compress(CSV + b'"1,2\n', mtime=0), "utf-8", ":103: expected quotes in pairs, got one that is never closed (if the file does not quote cells, `quote: null`)"),
        (gzip.compress(CSV + b"\xff,2\n", mtime=0), "utf-8", f":103: expected UTF-8 text, got the byte 0xff {HINT}"),
        (CSV + b"\x81,2\n", "windows-1252", ":103: expected windows-1252 text, got the byte 0x81"),
        (b"a,\x81\n1,2\n", "windows-1252", ":1: expected windows-1252 text, got the byte 0x81"),
        (CSV + b"\xe9,2\n", "ascii", ":103: expected ascii text, got the byte 0xe9"),
        (CSV.decode().encode("utf-16-le") + b"\x00\xd8x\0", "utf-16-le", ":103: expected utf-16-le text, got the bytes 0x00 0xd8"),
        (CSV.decode().encode("utf-16") + b"1", "utf-16", ":103: expected utf-16 text, got the byte 0x31"),
        (CSV.decode().encode("utf-16"), "utf-8", f":1: expected UTF-8 text, got the byte 0xff {HINT}"),
        (CSV + b"\xe9,2\n", "utf-8", f":103: expected UTF-8 text, got the byte 0xe9 {HINT}"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_text_are_told(tmp_path, data, encoding, expected):
    (tmp_path / "rows.csv").write_bytes(data)
    with pytest.raises(rs.RecordError) as caught:
        records(Csv(files="rows.csv", encoding=encoding).open(tmp_path), TEXTS)
    assert str(caught.value) == f"{tmp_path}/rows.csv{expected}"


LONG = b'n,t\n1,a\n2,"b\n' + b"y\n" * 200 + b'"\n3,c\n' + b"z" * 99 + b"\n4,d"
ONE = schema("n: int64\n  t: string")


@pytest.mark.parametrize("block", [1 << 18, 1, 7, 33])
def test_a_long_row_of_a_compressed_file_is_one_bad_row(tmp_path, monkeypatch, block):
    monkeypatch.setattr(values, "LONGEST_ROW", 60)
    for name in ("_BLOCK", "_PIECE_BYTES"):
        monkeypatch.setattr(ranges, name, block)
    (tmp_path / "rows.csv").write_bytes(gzip.compress(LONG, mtime=0))
    (part,) = parts_of(Csv(files="rows.csv").open(tmp_path), ONE)
    told: list[tuple[str, int | str]] = []
    for batch in part.batches(ONE, ()):
        for row in range(rows_in([batch])):
            is_error = isinstance(batch, rs.RecordError)
            said = str(batch) if is_error else int(batch.part(row, row + 1).values["n"][0])
            told.append((part.place(len(told)).rpartition(":")[2], said))
    assert told == [
        ("2", 1),
        ("3", "expected a row of at most 60 bytes, got 407 (is a quote missing?)"),
        ("205", 3),
        ("206", "expected a row of at most 60 bytes, got 100 (is a quote missing?)"),
        ("207", 4),
    ]


@pytest.mark.slow
def test_datasets_of_compressed_files_are_those_of_plain_ones(tmp_path):
    for number in range(3):
        text = "".join(json.dumps({"n": 100 * number + row}) + "\n" for row in range(100))
        (tmp_path / f"{number}.jsonl").write_text(text)
        (tmp_path / f"{number}.jsonl.zst").write_bytes(zstd(text.encode()))
    shards = {}
    for suffix in ("jsonl", "jsonl.zst"):
        for jobs in (1, 2):
            data = tmp_path / f"{suffix}-{jobs}"
            rs.write(Jsonl(files=f"*.{suffix}").open(tmp_path), NUMBER, data, jobs=jobs, progress=False)
            shards[suffix, jobs] = [path.read_bytes() for path in sorted(data.glob("train-*"))]
    first = shards["jsonl", 1]
    assert len(first) > 0
    assert all(one == first for one in shards.values())


@pytest.mark.slow
def test_a_compressed_file_takes_little_memory(tmp_path):
    """In a process of its own, whose peak tells what the rows took."""
    with gzip.open(tmp_path / "rows.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"n,t\n" + (b"1," + b"x" * 1021 + b"\n") * (400 << 10))
    printed, peak = peak_of(
        "rows = 0\n"
        "for part in Csv(files='rows.csv.gz').open(Path('.')).parts(s, ()):\n"
        "    for batch in part.batches(s, ()): rows += getattr(batch, 'rows', 1)\n"
        "print(rows)",
        "from recordspec.writing.sources.csv import Csv; from pathlib import Path\n"
        "import recordspec as rs; s = rs.Schema.loads('schema: s\\nfeatures: {n: int64, t: string}')",
        tmp_path,
    )
    assert printed == str(400 << 10)
    assert peak < 200 << 20
