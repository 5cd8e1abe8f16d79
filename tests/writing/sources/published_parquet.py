"""Parquet files after the descriptions of Apache's parquet-testing: of all types, layouts, encodings and codecs, and
damaged ones. Arrow writes most of them; those that it does not write are made by hand.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from parquet_by_hand import (
    BSON,
    BYTE_ARRAY,
    DECIMAL,
    DOUBLE,
    ENUM,
    FIXED,
    INT32,
    INT64,
    INT96,
    INTERVAL,
    JSON,
    LIST,
    MAP,
    OPTIONAL,
    REPEATED,
    REQUIRED,
    UTF8,
    Node,
    parquet_file,
)

ARROW = int(pa.__version__.split(".")[0])
FOREIGN = Path(pa.__file__).parent / "tests/data/parquet"
# Writes a file to a path.
Writer = Callable[[Path], None]


def table_file(table: Any, **options: Any) -> Writer:
    return lambda path: parquet.write_table(table, path, **options)


def column_file(values: Any, kind: Any = None, **options: Any) -> Writer:
    """A file of one column, `v`."""
    return table_file(pa.table({"v": pa.array(values, kind)}), **options)


def bytes_file(data: bytes) -> Writer:
    return lambda path: path.write_bytes(data) and None


def flat_file(kind: int, values: list[Any], checksum: int | None = None, **options: Any) -> bytes:
    """A file by hand, of one column, `v`, some of whose values are None."""
    levels = [int(value is not None) for value in values]
    some = [value for value in values if value is not None]
    node = Node("v", OPTIONAL, kind, **options)
    return parquet_file([node], [(some, [], levels)], len(values), checksum)


# ---- types ----

_SCALARS = {
    pa.int8(): [-128, 127],
    pa.int16(): [-(2**15), 5],
    pa.int32(): [-(2**31), 1],
    pa.int64(): [-(2**63), 2**63 - 1],
    pa.uint8(): [0, 255],
    pa.uint16(): [0, 2**16 - 1],
    pa.uint32(): [0, 2**32 - 1],
    pa.uint64(): [0, 2**64 - 1],
    pa.float16(): [np.float16(1.5), np.float16(-2)],
    pa.float32(): [0.1, 1e38],
    pa.float64(): [0.1, 1e300],
    pa.bool_(): [True, False],
    pa.string(): ["a", ""],
    pa.large_string(): ["é", ""],
    pa.binary(): [b"\0\xff", b""],
    pa.large_binary(): [b"\0\xff", b""],
    pa.binary(3): [b"abc", b"\0\0\xff"],
    pa.date32(): [0, 20484],
    pa.date64(): [0, 86_400_000],
    pa.timestamp("s"): [0, 1_700_000_000],
    pa.timestamp("ms"): [0, 1_700_000_000_001],
    pa.timestamp("us"): [0, 1_700_000_000_000_001],
    pa.timestamp("ns"): [0, 1_700_000_000_000_000_001],
    pa.timestamp("ms", "Europe/Rome"): [0, 1_700_000_000_001],
    pa.time32("s"): [1, 2],
    pa.time32("ms"): [1, 86_399_999],
    pa.time64("us"): [1, 86_399_999_999],
    pa.time64("ns"): [1, 86_399_999_999_999],
    pa.duration("s"): [5, 7],
    pa.duration("ms"): [5, 7],
    pa.duration("us"): [5, 7],
    pa.duration("ns"): [5, 7],
    pa.decimal128(7, 2): [Decimal("1.25"), Decimal("-0.05")],
    pa.decimal128(38, 2): [Decimal("12345678901234567890123456.78"), Decimal("0.01")],
    pa.decimal256(70, 0): [Decimal("1" * 60), Decimal(5)],
}
_OUT = "which no feature holds, so it is left out"
_NO_EMPTY = {
    pa.uint64(): "list<element: uint64>, too large for int64",
    pa.float64(): "list<element: double>, too large for float32",
    pa.decimal256(70, 0): "list<item: double>, too large for float32",
}


_RAGGED_GAPS = (
    "v: list<element: list<element: int64>> with items that are missing "
    f"(a value of your own in their place makes it `kind: ragged`), {_OUT}"
)


def _dates(kind: Any, option: str = "") -> str:
    """How a list of dates is held: `pyarrow.compute.cast` converts days to int32 alone."""
    number = "int32" if kind == pa.date32() else "int64"
    return f"(cast to {number}, `kind: var_len` of int64{option} holds it)"


def _gaps(named: str, kind: Any, values: Any = ()) -> str:
    """The note on a list of this type, one item of which is missing."""
    if kind in _NO_EMPTY:
        dtype = "uint64" if kind == pa.uint64() else "float64"
        feature, fill = f"tensor, dtype: {dtype}, shape: [null]", {"uint64": "0"}.get(dtype, ".nan")
    elif pa.types.is_boolean(kind):
        feature, fill = "tensor, dtype: bool, shape: [null]", "false"
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        feature, fill = "var_len, dtype: float32", ".nan"
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        stored = pa.date32() if kind == pa.date64() else kind
        return f"v: {named} {_dates(stored, ', with `missing_item` in place of missing items,')}, {_OUT}"
    elif any(isinstance(value, int) for value in values) or pa.types.is_integer(kind):
        feature, fill = "var_len, dtype: int64", "0" if any(value < 0 for value in values) else "-1"
    else:
        feature, fill = "var_len, dtype: string", "''"
    stored = "NaN" if fill == ".nan" else fill
    way = f"`{{kind: {feature}, missing_item: {fill}}}` stores {stored} in its place"
    return f"v: {named} with 1 item that is missing ({way}), {_OUT}"


def _scalars() -> Iterator[tuple[str, Writer, str | None]]:
    """Values of each type; some missing, all missing; lists, some missing, some items missing."""
    for kind, (first, other) in _SCALARS.items():
        # as Parquet stores the type: seconds as milliseconds
        stored = pa.time32("ms") if kind == pa.time32("s") else kind
        stored = pa.timestamp("ms") if kind == pa.timestamp("s") else stored
        stored = pa.date32() if kind == pa.date64() else stored
        is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        listed = pa.list_(kind)
        named = f"list<element: {stored}>"
        normal = _normal(stored)
        yield f"{kind}", column_file([first, other], kind), None
        yield f"{kind}, some missing", column_file([first, None, other], kind), None
        yield (
            f"{kind}, all missing",
            column_file([None, None], kind),
            ("v: always empty, in 2 rows: its type is unknown, so it is left out"),
        )
        lists = f"v: {named} {_dates(stored)}, {_OUT}" if is_date else None
        yield f"lists of {kind}", column_file([[first], [], [other, first]], listed), lists
        if kind == pa.bool_():
            way = "(an empty list in its place makes it `kind: tensor`)"
            lists = f"v: {named} that is missing in 1 of 3 rows {way}, {_OUT}"
        if kind in _NO_EMPTY:
            lists = f"v: {_NO_EMPTY[kind]}, {_OUT}"
        yield f"lists of {kind}, some missing", column_file([[first], None, [other]], listed), lists
        gaps = _gaps(f"list<{'element' if normal == stored else 'item'}: {normal}>", kind, (first, other))
        yield f"lists of {kind}, some items missing", column_file([[first, None], [other]], listed), gaps


def _normal(kind: Any) -> Any:
    """The type that `infer` names."""
    if pa.types.is_decimal(kind):
        return pa.float64()
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return pa.int64()
    return pa.large_binary() if pa.types.is_fixed_size_binary(kind) else kind


# ---- nested columns, and what else a table may have ----

_PAIRS = pa.map_(pa.string(), pa.int64())
_DICTIONARY = pa.array(["a", None, "a", "b"]).dictionary_encode()
_TENSORS = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8).reshape(2, 2, 2))
_NOT_UTF8 = pa.StringArray.from_buffers(
    2, pa.py_buffer(np.array([0, 2, 4], np.int32)), pa.py_buffer(b"\xff\xfeok")
)


def _lists_of_objects(value: str, kind: Any = _PAIRS.item_type) -> str:
    return _gaps(f"large_list<item: {kind}>", kind).replace("v:", f"v.{value}:", 1)


NESTED: dict[str, tuple[Writer, str | None]] = {
    "lists of lists": (column_file([[[1], [2, 3]], [[]]]), None),
    "lists of lists, some missing": (column_file([[[1], [2, 3]], None]), None),
    "lists of lists, some inner ones missing": (
        column_file([[[1], None], [[]]]),
        _RAGGED_GAPS,
    ),
    "lists of lists of texts": (column_file([[["a"], ["b", "c"]], []]), None),
    "lists of lists of lists": (column_file([[[[1]], [[2], [3]]], []]), None),
    "lists of a fixed size": (column_file([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)), None),
    "lists of a fixed size in lists of one": (
        column_file([[[1, 2], [3, 4]]], pa.list_(pa.list_(pa.int32(), 2), 2)),
        None,
    ),
    "lists of lists of a fixed size": (
        column_file([[[1.0, 2.0]], []], pa.list_(pa.list_(pa.float32(), 2))),
        None,
    ),
    "large lists": (column_file([[1], [2, 3]], pa.large_list(pa.int64())), None),
    "lists all empty": (column_file([[], []], pa.list_(pa.int64())), None),
    "lists of nothing": (
        column_file([[None], [None]], pa.list_(pa.null())),
        "v: always empty, in 2 rows: its type is unknown, so it is left out",
    ),
    "nothing": (
        column_file([None, None], pa.null()),
        "v: always empty, in 2 rows: its type is unknown, so it is left out",
    ),
    "structs": (column_file([{"a": 1, "b": "x"}, {"a": 2, "b": None}]), None),
    "structs, some missing": (column_file([{"a": 1}, None]), None),
    "structs in structs": (column_file([{"a": {"b": 1}}, {"a": None}]), None),
    "lists in structs": (column_file([{"a": [1, 2]}, {"a": []}]), None),
    "structs in lists": (column_file([[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], []]), None),
    "structs in lists, some missing": (column_file([[{"a": 1}, None], []]), _lists_of_objects("a")),
    "lists in structs in lists": (column_file([[{"a": [1]}], []]), None),
    "structs in lists in structs in lists": (column_file([[{"a": [{"b": 1}]}], []]), None),
    "lists of lists of structs": (column_file([[[{"a": 1}, {"a": 2}], []], []]), None),
    "lists of maps": (column_file([[[("k", 1)], []], []], pa.list_(_PAIRS)), None),
    "maps": (column_file([[("k", 1)], []], _PAIRS), None),
    "maps, some missing": (column_file([[("k", 1)], None], _PAIRS), None),
    "maps, some values missing": (
        column_file([[("k", None)], [("j", 1)]], _PAIRS),
        _lists_of_objects("value"),
    ),
    "maps with structs as keys": (
        column_file([[({"a": 1}, 2)]], pa.map_(pa.struct({"a": pa.int64()}), pa.int64())),
        None,
    ),
    "maps of lists": (column_file([[("k", [1, 2])]], pa.map_(pa.string(), pa.list_(pa.int64()))), None),
    "maps of maps": (
        column_file([[("k", [("j", 1)])]], pa.map_(pa.string(), _PAIRS)),
        None,
    ),
    "dictionary": (table_file(pa.table({"v": _DICTIONARY})), None),
    "dictionary of integers": (table_file(pa.table({"v": pa.array([5, 7, 5]).dictionary_encode()})), None),
    "tensors": (table_file(pa.table({"v": _TENSORS})), None),
    "text that is not UTF-8": (table_file(pa.table({"v": _NOT_UTF8})), None),
    "NaN": (column_file([1.0, float("nan")]), None),
    "NaN and zeros of float16": (column_file(np.array([np.nan, 0, -0.0], np.float16)), None),
    "negative zero": (column_file([0.0, -0.0], pa.float32()), None),
    "300 columns": (table_file(pa.table({f"c{place}": [place] for place in range(300)})), None),
    "names that differ by case": (table_file(pa.table([[1], [2]], names=["a", "A"])), None),
    "a name with a dot": (table_file(pa.table([[1], [2]], names=["a.b", "a"])), None),
    "a name in Unicode": (table_file(pa.table([[1]], names=["naïve 日"])), None),
    "a column without a name": (
        table_file(pa.table([[1], ["x"]], names=["", "b"])),
        "\"\": a column without a name (rename it, or read it with `columns: {index: ''}` of a file's source), "
        "so it is left out",
    ),
}

# ---- how values are stored ----

_ROWS = pa.table({"i": [*range(50)], "s": [str(number) for number in range(50)]})
_GAPS = pa.table({"i": [1, None, 3], "s": ["a", "b", None], "l": [[1], [], [2, 3]]})
_ENCODINGS = {
    "PLAIN": [pa.int32(), pa.string()],
    "DELTA_BINARY_PACKED": [pa.int32(), pa.int64()],
    "DELTA_BYTE_ARRAY": [pa.string(), pa.binary(2)],
    "DELTA_LENGTH_BYTE_ARRAY": [pa.string()],
    "BYTE_STREAM_SPLIT": [pa.float32(), pa.float64()],
    "RLE": [pa.bool_()],
}
_OF_KIND = {pa.string(): ["aa", "ab"], pa.binary(2): [b"aa", b"ab"], pa.bool_(): [True, False]}


def _three_groups(path: Path) -> None:
    table = pa.table({"v": [1, 2, 3]})
    with parquet.ParquetWriter(path, table.schema) as file:
        for part in (table.slice(0, 1), table.slice(0, 0), table.slice(1)):
            file.write_table(part)


def _stored() -> Iterator[tuple[str, Writer]]:
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        yield f"codec {codec}", table_file(_ROWS, compression=codec)
    for encoding, kinds in _ENCODINGS.items():
        for kind in kinds:
            options: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"v": encoding}}
            page = "2.0" if encoding == "RLE" else "1.0"
            values = _OF_KIND.get(kind, [1, 5, 7])
            yield f"{encoding} of {kind}", column_file(values, kind, data_page_version=page, **options)
    for version in ("1.0", "2.0"):
        yield f"pages {version}", table_file(_GAPS, data_page_version=version)
        yield f"pages {version}, compressed", table_file(_GAPS, data_page_version=version, compression="zstd")
        missing = column_file([None, 1.5], pa.float32(), data_page_version=version, row_group_size=1)
        yield f"pages {version}, without a value", missing
    for version in ("1.0", "2.4", "2.6"):
        yield f"format {version}", table_file(_GAPS, version=version)
    yield "pages with checksums", table_file(_ROWS, write_page_checksum=True)
    yield "dictionary pages with checksums", table_file(_ROWS, write_page_checksum=True, compression="snappy")
    yield "page index", table_file(_ROWS, write_page_index=True, data_page_size=16)
    yield "tiny pages", table_file(_ROWS, data_page_size=32, write_batch_size=4)
    yield "tiny plain pages", table_file(_ROWS, data_page_size=32, write_batch_size=4, use_dictionary=False)
    yield "several row groups", table_file(_ROWS, row_group_size=7)
    yield "an empty row group", _three_groups
    yield "without the schema of Arrow", table_file(_GAPS, store_schema=False)
    times = pa.array([0, 1_700_000_000_123_456_000], pa.timestamp("ns"))
    yield "INT96", table_file(pa.table({"v": times}), use_deprecated_int96_timestamps=True)


STORED = dict(_stored())

# ---- made by hand, and by old writers ----


def _group(name: str, repetition: int, *children: Node, converted: int | None = None) -> Node:
    return Node(name, repetition, children=children, converted=converted)


def _pairs(key: int, value: bool = True) -> Node:
    members = [Node("key", key, BYTE_ARRAY, converted=UTF8), Node("value", OPTIONAL, INT32)]
    return _group("m", OPTIONAL, _group("key_value", REPEATED, *members[: 1 + value]), converted=MAP)


_PHONES = [
    Node("id", REQUIRED, INT32),
    _group(
        "phone",
        OPTIONAL,
        _group(
            "number", REPEATED, Node("n", REQUIRED, INT64), Node("kind", OPTIONAL, BYTE_ARRAY, converted=UTF8)
        ),
    ),
]
_LISTS = _group(
    "v",
    OPTIONAL,
    Node("array", REPEATED, children=(Node("array", REPEATED, INT32),), converted=LIST),
    converted=LIST,
)
_BY_HAND: dict[str, tuple[bytes, str | None]] = {
    "repeated columns without LIST": (
        parquet_file(
            [Node("i", REPEATED, INT32), Node("s", REPEATED, BYTE_ARRAY, converted=UTF8)],
            [([0, 1, 2, 3], [0, 1, 1, 0, 0], [1, 1, 1, 0, 1]), ([b"a", b"b", b"c"], [0, 0, 0, 1], [1, 0, 1, 1])],
            3,
        ),
        None,
    ),
    "repeated groups without LIST": (
        parquet_file(
            _PHONES,
            [([1, 2, 3], [], []), ([5, 6], [0, 0, 0, 1], [0, 1, 2, 2]), ([b"home"], [0, 0, 0, 1], [0, 1, 3, 2])],
            3,
        ),
        _lists_of_objects("kind", pa.string())
        .replace("v.", "phone.number.", 1)
        .replace("missing_item", "missing: empty, missing_item"),
    ),
    "lists of two levels": (
        parquet_file(
            [_group("v", OPTIONAL, Node("array", REPEATED, INT32), converted=LIST)],
            [([1, 2, 3], [0, 1, 0, 0], [2, 2, 1, 2])],
            3,
        ),
        None,
    ),
    "lists of lists of two levels": (parquet_file([_LISTS], [([1, 2, 3, 4], [0, 2, 1, 2], [3] * 4)], 1), None),
    "maps without values": (parquet_file([_pairs(REQUIRED, False)], [([b"a", b"b"], [0, 1], [2, 2])], 1), None),
    "decimals in INT32": (flat_file(INT32, [125, None, -125], converted=DECIMAL, scale=(2, 5)), None),
    "decimals in INT64": (flat_file(INT64, [125, None, -125], converted=DECIMAL, scale=(2, 12)), None),
    "decimals in bytes": (
        flat_file(BYTE_ARRAY, [b"\x00\x7d", None, b"\x83"], converted=DECIMAL, scale=(2, 5)),
        None,
    ),
    "decimals in bytes of a fixed length": (
        flat_file(FIXED, [b"\0\0\x7d", None, b"\xff\xff\x83"], size=3, converted=DECIMAL, scale=(2, 5)),
        None,
    ),
    "ENUM": (flat_file(BYTE_ARRAY, [b"A", None, b"B"], converted=ENUM), None),
    "JSON": (flat_file(BYTE_ARRAY, [b'{"a":1}', b"[1,null,3]", None], converted=JSON), None),
    "BSON": (flat_file(BYTE_ARRAY, [bytes.fromhex("0c0000001061000100000000"), None], converted=BSON), None),
    "INTERVAL": (flat_file(FIXED, [struct.pack("<iii", 1, 2, 3)], size=12, converted=INTERVAL), None),
    "UUID": (flat_file(FIXED, [bytes(range(16)), None], size=16, logical={14: (12, {})}), None),
    "bytes without a logical type": (flat_file(BYTE_ARRAY, [b"a", b"\xff"]), None),
    "text that is not UTF-8, by hand": (flat_file(BYTE_ARRAY, [b"a", b"\xff"], converted=UTF8), None),
    # 1970-01-01 01:00, 9999-12-31, 1582-10-15
    "INT96 beyond nanoseconds": (
        flat_file(INT96, [struct.pack("<qi", 3_600_000_000_000, 2440588)] + [struct.pack("<qi", 0, day) for day in (5373484, 2299161)]),
        None,
    ),
}  # fmt: skip
LAYOUTS: dict[str, tuple[Writer, str | None]] = {
    **{name: (bytes_file(data), note) for name, (data, note) in _BY_HAND.items()},
    **{
        f"pyarrow 0.7.1: {name}": (bytes_file((FOREIGN / f"v0.7.1{name}.parquet").read_bytes()), None)
        for name in ("", ".all-named-index", ".some-named-index", ".column-metadata-handling")
    },
}
TYPES: dict[str, tuple[Writer, str | None]] = {name: (write, note) for name, write, note in _scalars()}

# ---- what Arrow writes only in newer releases, with the first ----

_NEWER: dict[str, tuple[int, Callable[[], Writer]]] = {
    "decimals stored as integers": (
        19,
        lambda: column_file([Decimal("1.25")], pa.decimal128(9, 2), store_decimal_as_integer=True),
    ),
    "BYTE_STREAM_SPLIT of int32": (
        17,
        lambda: column_file(
            [3, 4], pa.int32(), use_dictionary=False, column_encoding={"v": "BYTE_STREAM_SPLIT"}
        ),
    ),
    "type json": (19, lambda: column_file(['{"a":1}', None], pa.json_(pa.string()))),
    "type uuid": (18, lambda: column_file([b"0" * 16, None], pa.uuid())),
    "type bool8": (
        18,
        lambda: table_file(
            pa.table({"v": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))})
        ),
    ),
    "string views": (19, lambda: column_file(["a", "b"], pa.string_view())),
    "list views": (22, lambda: column_file([[1], [2, 3]], pa.list_view(pa.int64()))),
    "a logical type of the future": (
        18,
        lambda: bytes_file(flat_file(BYTE_ARRAY, [b"a"], logical={1000: (12, {})})),
    ),
}
NEWER = {name: (least, make) for name, (least, make) in _NEWER.items()}

# ---- what is refused, with the message, and the first release that does so ----

_NOTHING = ": expected a column with values, got none"
_WHOLE = ": expected a whole Parquet file, got "
_READABLE = ": expected a Parquet file that pyarrow reads, got "
_NAN = flat_file(DOUBLE, [1.0, float("nan")])
_INTS = [Node("a", OPTIONAL, INT32)]
REFUSED: dict[str, tuple[Writer, str, int]] = {
    "no rows": (column_file([], pa.int64()), _NOTHING, 0),
    "no columns": (table_file(pa.table({"a": [1, 2]}).select([])), _NOTHING, 0),
    "a name twice": (
        table_file(pa.table([[1], [2]], names=["a", "a"])),
        ": a: expected one column `a`, got several",
        0,
    ),
    "a member with the name of a column": (
        table_file(pa.table([[1], pa.array([{"b": 2}])], names=["a.b", "a"])),
        ': "a.b": expected one column `a.b`, got several',
        0,
    ),
    "lists of a fixed size, some missing": (
        column_file([[1, 2], None], pa.list_(pa.int32(), 2)),
        f"{_WHOLE}Expected all lists to be of size=2 but index 2 had size=0 (pyarrow reads no fixed-size lists of "
        "which some are missing: write them as lists)",
        0,
    ),
    "maps with keys that may be missing": (
        bytes_file(parquet_file([_pairs(OPTIONAL)], [([b"a"], [0], [3]), ([1], [0], [3])], 1)),
        f"{_READABLE}Map keys must be annotated as required.",
        0,
    ),
    "a wrong checksum": (
        bytes_file(flat_file(INT32, [1, 2], checksum=7)),
        f"{_WHOLE}could not verify page integrity, CRC checksum verification failed for page_ordinal 0",
        0,
    ),
    "an encrypted footer": (
        bytes_file(_NAN[:-4] + b"PARE"),
        ": cannot read: could not read encrypted metadata, no decryption found in reader's properties",
        0,
    ),
    "a file that is cut": (
        bytes_file(_NAN[:-20]),
        f"{_READABLE}Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet "
        "file.",
        0,
    ),
    "an empty file": (bytes_file(b""), f"{_READABLE}Parquet file size is 0 bytes", 0),
    "a footer that is not Thrift": (
        bytes_file(b"PAR1" + b"\xff" * 20 + struct.pack("<i", 20) + b"PAR1"),
        ": cannot read: couldn't deserialize thrift: don't know what type: \\x0f\\n",
        0,
    ),
    "columns of different sizes": (
        bytes_file(
            parquet_file([*_INTS, Node("b", OPTIONAL, INT32)], [([1, 2], [], [1, 1]), ([1], [], [1])], 2)
        ),
        f"{_WHOLE}columns do not have the same size",
        17,
    ),
    "fewer levels than values": (
        bytes_file(parquet_file(_INTS, [([1, 2], [], [1, 1])], 3, count=3)),
        f"{_WHOLE}Number of decoded rep / def levels do not match num_values in page header",
        17,
    ),
    "repetition levels that begin with 1": (
        bytes_file(parquet_file([Node("a", REPEATED, INT32)], [([1, 2], [1, 0], [1, 1])], 1)),
        f"{_WHOLE}The repetition level at the start of a record must be 0 but got 1",
        20,
    ),
}
