"""CSV files and JSON lines: cut anywhere, sent to another process, they give the same rows under the same names."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_parts import MANY, NUMBER, TEXTS, error_of, parts_of, records, rows_in, rows_of, schema

import recordspec as rs
from memory import peak_of
from recordspec import executors
from recordspec.executors import SerialExecutor
from recordspec.inferring.infer import infer as inferred
from recordspec.schema import values
from recordspec.writing.sources import base, ranges
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.csv_dialect import Dialect, Head
from recordspec.writing.sources.jsonl import Jsonl


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
        patch.setattr(ranges, "_BLOCK", block)
        source = Csv(files="rows.csv").open(path.parent)
        parts = parts_of(source, TEXTS)
        found = rows_of(source, TEXTS)
        rowcount = [rows_in(part.batches(TEXTS, ())) for part in parts]
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
                found.append(records(Csv(files="rows.csv").open(path.parent), TEXTS))
            except rs.RecordError as error:
                found.append(str(error).partition(", got")[0])
    assert found[0] == found[1]


TEXT = st.text(st.sampled_from('aa,\n\n\r"" #'), max_size=60)
# Rows of quoted cells with line breaks, delimiters and quotes.
LONG_ROW = st.lists(
    st.text(st.sampled_from('a\n\n,"#'), max_size=8).map(lambda cell: quoted(cell, True)), max_size=3
)
TEXT_OF_ROWS = st.lists(LONG_ROW.map(",".join), max_size=6).map("\n".join)
DIALECTS = st.sampled_from(
    [None, Dialect(), Dialect(quote=None), Dialect(comment="#"), Dialect(trim=True), Dialect(comment="#", trim=True)]
)  # fmt: skip


@given(
    texts=st.lists(TEXT | TEXT_OF_ROWS, min_size=1, max_size=3),
    dialect=DIALECTS,
    bom=st.booleans(),
    size=st.integers(1, 40),
    step=st.integers(1, 12),
    chunk=st.integers(1, 30),
    block=st.integers(1, 20),
)
@MANY
def test_a_cluster_that_scans_chunks_divides_files_alike(
    tmp_path_factory, texts, dialect, bom, size, step, chunk, block
):
    folder = tmp_path_factory.mktemp("text")
    paths = [folder / str(number) for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(b"\xef\xbb\xbf" * bom + text.encode())
    head = Head(names=(), given=(), first=(), start=3 * bom, line=1)

    def divided():
        heads = [head] * len(paths)
        found = ranges.line_ranges(paths) if dialect is None else ranges.csv_ranges(paths, dialect, heads)
        try:
            return list(found)
        except rs.RecordError as error:
            return str(error).partition(", got")[0]  # then the text of a block

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        patch.setattr(ranges, "_CHUNK", chunk)
        patch.setattr(ranges, "_PIECE_BYTES", 9)
        patch.setattr(values, "LONGEST_ROW", 30)
        on_one = divided()
        if not isinstance(on_one, str):
            patch.setattr(base, "PART_BYTES", 1)
            every_row = divided()
            patch.setattr(base, "PART_BYTES", size)
            patch.setattr(ranges, "_step", lambda: step)
            on_one = divided()
            for path, text, some, each in zip(paths, texts, on_one, every_row, strict=True):
                end = path.stat().st_size if text else some[0].start
                assert [some[0].start, *(one.stop for one in some)] == [*(one.start for one in some), end]
                begins = {(one.start, one.line) for one in each}
                assert {(one.start, one.line) for one in some} <= begins
                assert {cut for one in some for cut in one.cuts} <= begins
        patch.setattr(ranges, "_step", lambda: step)
        patch.setattr(ranges, "_BLOCK", block)
        with executors.on_cluster(SerialExecutor()):
            assert divided() == on_one


@given(text=st.text(st.sampled_from('a,\n\r"'), max_size=30), block=st.integers(1, 20))
@MANY
def test_text_after_a_quoted_cell_is_refused_as_pythons_strict_reader_does(tmp_path_factory, text, block):
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_bytes(text.encode())

    def accepts(read: Callable[[], object], error: type[Exception]) -> bool:
        try:
            read()
        except error:
            return False
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "_BLOCK", block)
        head = Head(names=(), given=(), first=(), start=0, line=1)
        found = accepts(lambda: next(ranges.csv_ranges([path], Dialect(), [head])), rs.RecordError)
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert found == accepts(lambda: list(lines), csv.Error)


def test_text_after_a_quoted_cell_is_told_with_its_line(tmp_path):
    text = 'a,b\n"x ""y"" z",1\n"\n",2\n"Hey, I missed " it",3\n'
    (tmp_path / "rows.csv").write_text(text)
    for read in (
        lambda: records(Csv(files="rows.csv").open(tmp_path), TEXTS),
        lambda: inferred(tmp_path / "rows.csv"),
    ):
        with pytest.raises(rs.RecordError) as error:
            read()
        assert str(error.value) == (
            f"{tmp_path}/rows.csv:5: expected a delimiter or a line break after a quoted cell, "
            'got `"Hey, I missed " ` (a quote in a quoted cell is doubled, `""`; if the file does not quote cells, '
            "`quote: null`)"
        )


def test_the_cut_of_a_csv_file_follows_from_its_bytes(tmp_path, small):
    text = 'a,b\n"x\n\ny",1\r\n2,"3"\n\n4,5\n'
    (tmp_path / "rows.csv").write_bytes(text.encode())
    parts = parts_of(Csv(files="rows.csv").open(tmp_path), TEXTS)
    assert [(part.span.start, part.span.stop, part.span.line) for part in parts] == [
        (4, 14, 2),
        (14, 25, 5),
    ]
    assert [parts[0].place(0), parts[1].place(0), parts[1].place(1), parts[1].place(0)] == [
        f"{tmp_path}/rows.csv:{line}" for line in (2, 5, 7, 5)
    ]


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        ('a,b\n5" pipe,1\n6" pipe,2\n', [14]),
        ('a,b\nx"y"z",1\n"x""\n",2\n7"",3\n', [13, 22]),
    ],
)
def test_quotes_within_cells_are_text(tmp_path, monkeypatch, text, cuts):
    (tmp_path / "rows.csv").write_text(text)
    monkeypatch.setattr(base, "PART_BYTES", 5)
    for block in (1, 2, 100):
        monkeypatch.setattr(ranges, "_BLOCK", block)
        parts = parts_of(Csv(files="rows.csv").open(tmp_path), TEXTS)
        assert [part.span.start for part in parts] == [4, *cuts]


def test_a_line_break_in_quotes_is_kept(tmp_path):
    one = schema("n: int64\n  b: string")
    for before in range(40):
        cells = ["x" * before, "a\r\n\r\nb", "\r\n" * 9]
        text = "n,b\r\n" + "".join(f'1,"{cell}"\r\n' for cell in cells)
        (tmp_path / "rows.csv").write_bytes(text.encode())
        rows = rows_of(Csv(files="rows.csv").open(tmp_path), one)
        assert [row["b"].decode() for row in rows] == cells


def test_a_bad_cell_and_a_bad_row_of_a_later_part_are_named_by_their_lines(tmp_path, small):
    lines = "n\n" + '"1"\n' * 20
    (tmp_path / "rows.csv").write_text(lines + "x\n3\n")
    source = Csv(files="rows.csv").open(tmp_path)
    assert len(parts_of(source, NUMBER)) > 5
    assert error_of(source, NUMBER) == [f"{tmp_path}/rows.csv:22: features.n: expected int64, got `x`"]
    (tmp_path / "rows.csv").write_text(lines + "1,2\n3\n")
    with pytest.raises(rs.RecordError) as caught:
        records(source, NUMBER)
    assert str(caught.value) == (f"{tmp_path}/rows.csv:22: expected 1 cell, as in the header, got 2: `1,2`")


LONG_CELL = st.builds(
    "".join, st.lists(st.sampled_from(["x" * 15, "é" * 9, '"', "\n", "\r", ",", "a"]), max_size=6)
)


def line_of(text: str) -> int:
    return 1 + len(re.findall("\r\n|\r|\n", text))


@given(
    cells=st.lists(st.tuples(LONG_CELL, st.booleans()), max_size=10),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=11, max_size=11),
    last=st.booleans(),
    bom=st.booleans(),
    size=st.sampled_from([1, 60, 1 << 20]),
    window=st.integers(1, 50),
)
@MANY
def test_a_long_row_is_one_bad_row(tmp_path_factory, cells, ends, last, bom, size, window):
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    text, expected = f"a,b{ends[-1]}", []
    for (cell, always), end in zip(cells, ends, strict=False):
        row = f"1,{quoted(cell, always)}" + end
        is_last = len(expected) == len(cells) - 1
        row = row if last or not is_last else row.removesuffix(end)
        is_long = len(row.encode()) > 60
        expected.append((line_of(text), f"{len(row.encode())}" if is_long else cell.encode() or b"-"))
        text += row
    path.write_bytes(b"\xef\xbb\xbf" * bom + text.encode())
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        patch.setattr(ranges, "_BLOCK", window)
        patch.setattr(values, "LONGEST_ROW", 60)
        for part in parts_of(Csv(files="rows.csv").open(path.parent), TEXTS):
            for row, value in enumerate(each_row(part)):
                found.append((int(part.place(row).rpartition(":")[2]), value))
    empty = [cell == "" and always for cell, always in cells]
    expected = [(line, b"" if gap else value) for (line, value), gap in zip(expected, empty, strict=True)]
    assert found == expected


def each_row(part):
    """The values of `b`, and of a row that is too long its length."""
    for batch in part.batches(TEXTS, ()):
        for row in range(rows_in([batch])):
            try:
                if isinstance(batch, rs.RecordError):
                    raise batch
                (record,) = TEXTS.encode_batch(batch.part(row, row + 1).values, 1)
            except rs.RecordError as error:
                yield error.problems[0].got
            else:
                yield TEXTS.decode(record)["b"].numpy()


@pytest.fixture
def short_rows(monkeypatch):
    monkeypatch.setattr(values, "LONGEST_ROW", 60)


LONG_CSV = "n,a,b\n1,x,y\n2,x," + "y" * 100 + "\n3,x,y\n"
IN_QUOTES = 'n,a,b\n1,x,y\n2,"x' + "\n1,x,y" * 20 + '",y\n3,x,y\n'
LONG_JSON = '{"n": 1}\n{"n": 2, "a": "' + "x" * 100 + '"}\n{"n": 3}\n'
LONG_ROWS = {
    "csv": (Csv, LONG_CSV, "expected a row of at most 60 bytes, got 105 (is a quote missing?)"),
    "in quotes": (Csv, IN_QUOTES, "expected a row of at most 60 bytes, got 128 (is a quote missing?)"),
    "jsonl": (Jsonl, LONG_JSON, "expected a line of at most 60 bytes, got 118"),
}  # fmt: skip
NUMBERED = schema("n: int64\n  a: {dtype: string, default: '-'}\n  b: {dtype: string, default: '-'}")


@pytest.mark.slow
@pytest.mark.parametrize(("sort", "jobs"), [*((sort, 1) for sort in LONG_ROWS), ("in quotes", 2)])
def test_a_long_row_is_an_error_or_set_aside(tmp_path, short_rows, sort, jobs):
    form, text, expected = LONG_ROWS[sort]
    (tmp_path / "rows").write_text(text)
    line = 2 if form is Jsonl else 3
    with pytest.raises(rs.RecordError) as caught:
        rs.write(form(files="rows").open(tmp_path), NUMBERED, tmp_path / "data", jobs=jobs)
    assert str(caught.value) == f"{tmp_path}/rows:{line}: {expected}"
    made = rs.write(
        form(files="rows").open(tmp_path), NUMBERED, tmp_path / "data", jobs=jobs, invalid="quarantine"
    )
    assert (made.rows("train"), made.rejected) == (2, 1)
    rejected = json.loads((tmp_path / "data/rejects.jsonl").read_text())
    assert rejected == {"row": 1, "place": f"{tmp_path}/rows:{line}", "problems": [expected]}


def test_a_schema_is_not_inferred_of_a_long_row(tmp_path, short_rows):
    (tmp_path / "rows.csv").write_text(LONG_CSV)
    with pytest.raises(rs.RecordError) as caught:
        inferred([str(tmp_path / "rows.csv")], None)
    assert str(caught.value) == f"{tmp_path}/rows.csv:3: {LONG_ROWS['csv'][2]}"


@pytest.mark.parametrize("text", ["a,b" + "x" * (1 << 20), '"a,b\n' + "x\n" * (1 << 19)])
def test_a_long_header_is_refused(tmp_path, text):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(rs.RecordError) as caught:
        parts_of(Csv(files="rows.csv").open(tmp_path), TEXTS)
    assert str(caught.value) == (
        f"{tmp_path}/rows.csv:1: expected a header of at most 1,048,576 bytes, got a longer one"
    )


@pytest.mark.slow
def test_a_row_of_hundreds_of_megabytes_takes_little_memory(tmp_path):
    """In a process of its own, whose peak tells what the row took."""
    with (tmp_path / "rows.csv").open("wb") as file:
        file.write(b"n\n1\n2")
        file.truncate(300 << 20)
    printed, peak = peak_of(
        "m = rs.write(Csv(files='rows.csv').open(Path('.')), s, 'data', invalid='quarantine')\n"
        "print(m.rows('train'), m.rejected)",
        "from recordspec.writing.sources.csv import Csv; from pathlib import Path\n"
        "import recordspec as rs; s = rs.Schema.loads('schema: s\\nfeatures: {n: int64}')",
        tmp_path,
    )
    assert printed == "1 1"
    assert peak < 100 << 20
