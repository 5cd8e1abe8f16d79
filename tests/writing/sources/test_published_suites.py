"""Files of the published test suites of CSV, JSON and Parquet: read as Python's `csv` and `json`, and Arrow, read
them, or refused with the whole message. docs/reference/published-suites.md counts them.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import published_csv
import published_json
import published_parquet
import pyarrow as pa
import pytest
from pyarrow import parquet

import recordspec as rs
from recordspec.schema.inferred import Inferred
from recordspec.schema.ragged_array import RaggedArray
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.write_options import Quarantine

NOTHING = "expected a column with values, got none"


def inferred(path: Path) -> Inferred | str:
    """What is inferred of a file, or the message, after the path."""
    try:
        return rs.infer(path)
    except (rs.RecordError, rs.SpecError, rs.StoreError) as error:
        place, message = str(error)[: len(str(path))], str(error)[len(str(path)) :]
        assert place == str(path)
        return message


def rows_of(found: Inferred, source: Any, folder: Path) -> list[dict[str, Any]]:
    """The rows of a dataset that is built with what was inferred; a missing value is None, or an empty list."""
    rs.write(source.open(folder), found, folder / "data", progress=False)
    rows = []
    for row in rs.open(folder / "data"):
        gone = {name for name in row if row.get(f"{name}_missing")}
        names = [feature.name for feature in found.schema.features]
        rows.append({name: None if name in gone else plain(row[name]) for name in names})
    return rows


def plain(value: Any) -> Any:
    """A value of NumPy as lists and numbers."""
    if not isinstance(value, RaggedArray):
        return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    items, ends = plain(value.values), np.cumsum(value.lengths).tolist()
    return [items[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def same(value: Any, expected: Any, dtype: str) -> bool:
    """Whether a value is the expected one, in the dtype of its feature: a missing text is an empty one, a missing
    list an empty list."""
    if isinstance(expected, list) or isinstance(value, list):
        expected = [] if expected is None else expected
        pairs = zip(value, expected, strict=False)
        return len(value) == len(expected) and all(same(one, other, dtype) for one, other in pairs)
    if isinstance(value, bytes):
        expected = expected.encode() if isinstance(expected, str) else expected
        return value == (expected or b"")
    if isinstance(expected, float | np.floating):
        expected = float(np.dtype(dtype).type(expected))
        return math.copysign(1, value) == math.copysign(1, expected) if value == expected == 0 else (
            value == expected or (math.isnan(value) and math.isnan(expected))
        )  # fmt: skip
    return bool(value == expected)


def check_rows(found: Inferred, rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Asserts that all rows are the expected ones, and that each of their columns is one, or left out."""
    types = {feature.name: feature.value_type.item for feature in found.schema.features}
    assert len(rows) == len(expected)
    assert {*types, *found.left_out} == {name for row in expected for name in row}
    for row, other in zip(rows, expected, strict=True):
        wrong = {
            name: (row[name], other[name])
            for name in types
            if not same(row[name], other.get(name), types[name])
        }
        assert wrong == {}


def refused_with(found: Inferred | str, *notes: str) -> None:
    """Asserts that a file without any feature is refused with these notes."""
    assert found == f": {NOTHING}" + (f" ({'; '.join(notes)})" if any(notes) else "")


# ---- CSV ----

SAME_CSV = {
    **{f"spectrum: {name}": (data, {}) for name, data in published_csv.SPECTRUM.items()},
    **{f"rfc: {name}": (data, {}) for name, data in published_csv.RFC_4180.items()},
    **{f"found: {name}": (data, {}) for name, data in published_csv.FOUND.items()},
    **{f"found: {name}": given for name, given in published_csv.WITH_OPTIONS.items()},
}


def cell(text: str, feature: Any) -> Any:
    """A cell as Python reads it for a feature; an empty one is missing."""
    kind = feature.value_type
    if kind.item == "text" or not text:
        return text or None
    if kind.date is not None:
        return np.datetime64(text, {"days": "D", "seconds": "s"}[kind.date]).astype(np.int64).item()
    return {"bool": lambda one: one.lower() == "true", "int64": int}.get(kind.item, float)(text)


@pytest.mark.parametrize("name", SAME_CSV)
def test_csv_files_are_read_as_python_reads_them(tmp_path, name):
    data, options = SAME_CSV[name]
    path = tmp_path / "rows.csv"
    path.write_bytes(data)
    found = inferred(path)
    assert {option.name: option.value for option in found.options} == options
    encoding = {"utf-8": "utf-8-sig"}.get(options.get("encoding", "utf-8"), options.get("encoding"))
    if sys.version_info < (3, 11) and "\0" in data.decode(encoding):
        pytest.skip("Python 3.10 reads no NUL")
    text = io.StringIO(data.decode(encoding), newline="")
    header, *rows = [
        row for row in csv.reader(text, delimiter=options.get("delimiter", ","), strict=True) if row
    ]
    names = found.schema.names
    expected = [
        {
            one: cell(value, names[one]) if one in names else value
            for one, value in zip(header, row, strict=True)
        }
        for row in rows
    ]
    unnamed = [""] if header.count("") > 1 else []  # which are noted as one
    assert len(found.notes) >= len(unnamed) + len(found.left_out)
    found = replace(found, left_out=(*found.left_out, *unnamed))
    check_rows(found, rows_of(found, Csv(files=str(path), **options), tmp_path), expected)


@pytest.mark.parametrize("name", published_csv.IN_ANOTHER_NOTATION)
def test_csv_files_in_another_notation_are_read(tmp_path, name):
    data, expected = published_csv.IN_ANOTHER_NOTATION[name]
    path = tmp_path / "rows.csv"
    path.write_bytes(data)
    found = inferred(path)
    options = {option.name: option.value for option in found.options}
    check_rows(found, rows_of(found, Csv(files=str(path), **options), tmp_path), expected)


@pytest.mark.parametrize("name", published_csv.REFUSED)
def test_csv_files_that_are_not_read_are_refused(tmp_path, name):
    data, message = published_csv.REFUSED[name]
    path = tmp_path / "rows.csv"
    path.write_bytes(data)
    assert inferred(path) == message


# ---- JSON ----


def line_of(value: str) -> str:
    """A line with the value, which may be an object itself."""
    return value if value.lstrip("\ufeff \t").startswith("{") else f'{{"v": {value}}}'


def write_line(path: Path, value: str) -> Path:
    path.write_bytes(line_of(value).encode())
    return path


def members(name: str, value: Any) -> dict[str, Any]:
    """The members of an object, and of objects in lists, by dotted names."""
    if isinstance(value, dict):
        own = [members(f"{name}.{one}" if name else one, other) for one, other in value.items()]
        return {one: other for columns in own for one, other in columns.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        rows = [members(name, item) for item in value]
        return {one: [row[one] for row in rows] for one in rows[0]}
    return {name: value}


@pytest.mark.parametrize("value", [*published_json.READ, *published_json.OPEN_READ], ids=lambda one: one[:30])
def test_json_texts_are_read_as_python_reads_them(tmp_path, value):
    path = write_line(tmp_path / "rows.jsonl", value)
    found = inferred(path)
    expected = members("", json.loads(line_of(value).removeprefix("\ufeff")))
    check_rows(found, rows_of(found, Jsonl(files=str(path)), tmp_path), [expected])


NO_FEATURE = {**published_json.WITHOUT_FEATURE, **published_json.OPEN_WITHOUT_FEATURE}


@pytest.mark.parametrize("value", NO_FEATURE, ids=lambda one: one[:30])
def test_json_texts_without_a_feature_are_noted(tmp_path, value):
    refused_with(inferred(write_line(tmp_path / "rows.jsonl", value)), NO_FEATURE[value])


REFUSED_JSON = {
    **{line_of(text).encode(): message for text, message in published_json.REFUSED.items()},
    **{
        data if data.startswith(b"{") else b'{"v": ' + data + b"}": message
        for data, message in published_json.OPEN_REFUSED.items()
    },
}


@pytest.mark.parametrize("line", REFUSED_JSON, ids=lambda one: repr(one[:30]))
def test_json_texts_that_are_not_read_are_refused(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(line)
    assert inferred(path) == f":1: {REFUSED_JSON[line]}"


def message_of(line: bytes) -> str:
    """What Python's `json` says of a line, in a message."""
    try:
        json.loads(line.decode())
    except UnicodeDecodeError as error:
        return f"expected UTF-8 text, got the byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line"
    except json.JSONDecodeError as error:
        if error.pos == len(error.doc):
            return (
                f"expected JSON, got the end of the line at column {error.colno} (a line has a whole object)"
            )
        hint = error.msg[:1].lower() + error.msg[1:]
        return f"expected JSON, got other text at column {error.colno} ({hint})"
    raise AssertionError(line)


def invalid_lines() -> list[bytes]:
    """The first line of each invalid text."""
    lines = [line_of(value).encode() for value in published_json.INVALID]
    lines += [b'{"v": ' + data + b"}" for data in published_json.INVALID_BYTES]
    return [re.split(rb"\n", line)[0] for line in lines]


def test_each_invalid_text_of_json_is_refused_by_infer(tmp_path):
    path = tmp_path / "rows.jsonl"
    for line in invalid_lines():
        path.write_bytes(line)
        assert inferred(path) == f":1: {message_of(line.rstrip())}"


def test_a_build_quarantines_all_invalid_texts_of_json_and_no_other(tmp_path):
    path, lines = tmp_path / "rows.jsonl", invalid_lines()
    path.write_bytes(b"".join(b'{"v": [%d]}\n%s\n' % (number, line) for number, line in enumerate(lines)))
    schema = rs.Schema.loads("schema: s\nfeatures:\n  v: {kind: var_len, dtype: int64}")
    options = {"invalid": Quarantine(max_invalid=None), "progress": False}
    rs.write(Jsonl(files=str(path)).open(tmp_path), schema, tmp_path / "data", **options)
    assert [row["v"].tolist() for row in rs.open(tmp_path / "data")] == [
        [number] for number in range(len(lines))
    ]
    rejects = [json.loads(line) for line in (tmp_path / "data/rejects.jsonl").read_text().splitlines()]
    assert [one["place"] for one in rejects] == [
        f"{path}:{2 * number}" for number in range(1, len(lines) + 1)
    ]
    assert [one["problems"] for one in rejects] == [[message_of(line.rstrip())] for line in lines]


# ---- Parquet ----

WRITTEN = {
    **published_parquet.TYPES,
    **published_parquet.NESTED,
    **{name: (write, None) for name, write in published_parquet.STORED.items()},
    **published_parquet.LAYOUTS,
}


def arrow_rows(path: Path, found: Inferred) -> list[dict[str, Any]]:
    """The rows of a file as Arrow reads them."""
    table = parquet.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
    features = {feature.name: feature for feature in found.schema.features}
    columns: dict[str, Any] = {}
    for column in table.schema:
        array = table.column(column.name).combine_chunks()
        array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
        columns |= arrow_members(column.name, array.type, values_of(array, features.get(column.name)))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def values_of(array: Any, feature: Any) -> list[Any]:
    """Values in Python: dates as the numbers of their feature's unit, decimals as floats, text as bytes."""
    if feature is not None and feature.value_type.date is not None:
        unit = {"days": "s", "seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
        times = array.cast(pa.timestamp("s")) if pa.types.is_date(array.type) else array
        numbers = times.cast(pa.timestamp(unit[feature.value_type.date])).cast(pa.int64()).to_pylist()
        days = feature.value_type.date == "days"
        return [number // 86_400 if days and number is not None else number for number in numbers]
    if isinstance(array.type, pa.FixedShapeTensorType):
        return array.to_numpy_ndarray().tolist()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind, listed = array.type, pa.types.is_list(array.type)
    item = kind.value_type if listed else kind
    plain_item = next(
        (
            other
            for is_one, other in [
                (pa.types.is_time32, pa.int32()),
                (pa.types.is_time, pa.int64()),
                (pa.types.is_duration, pa.int64()),
                (pa.types.is_decimal, pa.float64()),
                (pa.types.is_string, pa.binary()),
            ]
            if is_one(item)
        ),
        item,
    )
    return array.cast(pa.list_(plain_item) if listed else plain_item).to_pylist()


def arrow_members(name: str, kind: Any, values: list[Any]) -> dict[str, list[Any]]:
    """The values of the members of structs and of maps, also in lists, by dotted names."""
    item = kind
    while pa.types.is_list(item) or pa.types.is_large_list(item):
        item = item.value_type
    if pa.types.is_map(item):
        members, is_map = {"key": item.key_type, "value": item.item_type}, True
    else:
        members, is_map = (
            {member.name: member.type for member in item} if pa.types.is_struct(item) else {},
            False,
        )

    def taken(value: Any, place: int, member: str) -> Any:
        if isinstance(value, list):
            return [taken(one, place, member) for one in value]
        return value if value is None else value[place] if is_map else value[member]

    columns = {} if members else {name: values}
    for place, (member, own) in enumerate(members.items()):
        columns |= arrow_members(f"{name}.{member}", own, [taken(value, place, member) for value in values])
    return columns


def check_parquet(path: Path, note: str | None) -> None:
    """Asserts that the rows of a file are read as Arrow reads them; a column is left out with this note."""
    found = inferred(path)
    if isinstance(found, str):
        refused_with(found, note or "no note")
        return
    out = [one for one in found.notes if one.endswith("it is left out")]
    assert out == ([] if note is None else [note])
    check_rows(found, rows_of(found, Parquet(files=str(path)), path.parent), arrow_rows(path, found))


@pytest.mark.parametrize("name", WRITTEN)
def test_parquet_files_are_read_as_arrow_reads_them(tmp_path, name):
    write, note = WRITTEN[name]
    write(tmp_path / "rows.parquet")
    check_parquet(tmp_path / "rows.parquet", note)


@pytest.mark.parametrize("name", published_parquet.NEWER)
def test_parquet_files_of_newer_releases_are_read(tmp_path, name):
    least, make = published_parquet.NEWER[name]
    if least > published_parquet.ARROW:
        pytest.skip(f"needs pyarrow {least}")
    make()(tmp_path / "rows.parquet")
    check_parquet(tmp_path / "rows.parquet", None)


@pytest.mark.parametrize("name", published_parquet.REFUSED)
def test_parquet_files_that_are_not_read_are_refused(tmp_path, name):
    write, message, least = published_parquet.REFUSED[name]
    if least > published_parquet.ARROW:
        pytest.skip(f"needs pyarrow {least}, which checks it")
    write(tmp_path / "rows.parquet")
    assert inferred(tmp_path / "rows.parquet") == message


# ---- the table of docs/reference/published-suites.md ----


def counts() -> dict[str, tuple[int, int, int]]:
    """How many files of each suite are read, have a column without a feature, and are refused."""
    notes = {
        name: [note for _, note in suite.values()]
        for name, suite in [
            ("Parquet: types, missing values, lists", published_parquet.TYPES),
            ("Parquet: nested columns, names", published_parquet.NESTED),
            ("Parquet: layouts of other writers", published_parquet.LAYOUTS),
        ]
    }
    noted = {name: (some.count(None), len(some) - some.count(None), 0) for name, some in notes.items()}
    found = (published_csv.FOUND, published_csv.WITH_OPTIONS, published_csv.IN_ANOTHER_NOTATION)
    refused = len(published_json.INVALID) + len(published_json.INVALID_BYTES)
    return {
        "csv-spectrum": (len(published_csv.SPECTRUM), 0, 0),
        "CSV: the rules of RFC 4180": (len(published_csv.RFC_4180), 0, 0),
        "CSV: as programs write it": (sum(map(len, found)), 0, len(published_csv.REFUSED)),
        "JSON: valid texts": (
            len(published_json.READ),
            len(published_json.WITHOUT_FEATURE),
            len(published_json.REFUSED),
        ),
        "JSON: invalid texts": (0, 0, refused),
        "JSON: what RFC 8259 leaves open": (
            len(published_json.OPEN_READ),
            len(published_json.OPEN_WITHOUT_FEATURE),
            len(published_json.OPEN_REFUSED),
        ),
        **noted,
        "Parquet: encodings, codecs, pages": (len(published_parquet.STORED), 0, 0),
        "Parquet: what newer releases of Arrow write": (len(published_parquet.NEWER), 0, 0),
        "Parquet: damaged files, and others": (0, 0, len(published_parquet.REFUSED)),
    }


def test_the_documentation_counts_them(root):
    text = (root / "docs/reference/published-suites.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    table = {name: tuple(map(int, numbers)) for name, *numbers in (row[:4] for row in rows[1:])}
    assert table == counts()
