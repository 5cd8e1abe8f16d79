"""Writes Parquet files by hand, from the specification: layouts that Arrow reads and does not write."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REQUIRED, OPTIONAL, REPEATED = range(3)
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
# Converted types, the older names of logical types.
UTF8, MAP, _MAP_KEY_VALUE, LIST, ENUM, DECIMAL, DATE, TIME_MILLIS = range(8)
JSON, BSON, INTERVAL = 19, 20, 21

# ---- Thrift's compact protocol: a struct has fields by number, each with its type ----
_INT32, _INT64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def _value(kind: int, value: Any) -> bytes:
    if kind == _STRUCT:
        return _struct(value)
    if kind == _LIST:
        item, values = value
        return bytes([0xF0 | item]) + _varint(len(values)) + b"".join(_value(item, one) for one in values)
    if kind == _BINARY:
        return _varint(len(value)) + value
    return _varint(value << 1 ^ value >> 63)


def _struct(fields: Mapping[int, tuple[int, Any]]) -> bytes:
    data = b""
    for number, (kind, value) in sorted(fields.items()):
        data += bytes([kind]) + _varint(number << 1) + _value(kind, value)
    return data + b"\0"


# ---- the format ----


@dataclass(frozen=True)
class Node:
    """An element of the schema: a column, or a group of `children`."""

    name: str
    repetition: int
    kind: int | None = None
    children: tuple[Node, ...] = ()
    size: int | None = None
    converted: int | None = None
    scale: tuple[int, int] | None = None  # scale and precision of a decimal
    logical: Mapping[int, tuple[int, Any]] | None = None

    def elements(self) -> list[Mapping[int, tuple[int, Any]]]:
        scale, precision = self.scale or (None, None)
        fields = {
            1: (_INT32, self.kind),
            2: (_INT32, self.size),
            3: (_INT32, self.repetition),
            4: (_BINARY, self.name.encode()),
            5: (_INT32, len(self.children) or None),
            6: (_INT32, self.converted),
            7: (_INT32, scale),
            8: (_INT32, precision),
            10: (_STRUCT, self.logical),
        }
        own = {number: (kind, value) for number, (kind, value) in fields.items() if value is not None}
        return [own, *(element for child in self.children for element in child.elements())]

    def leaves(self, path: tuple[str, ...] = (), repeats: int = 0, defines: int = 0) -> list[Leaf]:
        path, repeats = (*path, self.name), repeats + (self.repetition == REPEATED)
        defines += self.repetition != REQUIRED
        if not self.children:
            return [Leaf(self, path, repeats, defines)]
        return [leaf for child in self.children for leaf in child.leaves(path, repeats, defines)]


@dataclass(frozen=True)
class Leaf:
    """A column with its largest repetition and definition level."""

    node: Node
    path: tuple[str, ...]
    repeats: int
    defines: int


def _plain(kind: int, values: Sequence[Any]) -> bytes:
    if kind == BYTE_ARRAY:
        return b"".join(struct.pack("<i", len(value)) + value for value in values)
    if kind in (FIXED, INT96):
        return b"".join(values)
    return struct.pack(f"<{len(values)}{ {INT32: 'i', INT64: 'q', FLOAT: 'f', DOUBLE: 'd'}[kind] }", *values)


def _levels(levels: Sequence[int], most: int) -> bytes:
    """The length of the levels, then a run of length one for each level; nothing if all levels are 0."""
    runs = b"".join(bytes([1 << 1, level]) for level in levels)
    return struct.pack("<i", len(runs)) + runs if most else b""


def parquet_file(
    nodes: Sequence[Node],
    columns: Sequence[tuple[Sequence[Any], Sequence[int], Sequence[int]]],
    rows: int,
    checksum: int | None = None,
    count: int | None = None,
) -> bytes:
    """A file of one row group. Each column has one page, plain and not compressed.

    Args:
        nodes: the columns and groups of the schema.
        columns: for each leaf, the present values, the repetition levels and the definition levels.
        rows: the number of rows.
        checksum: the checksum of each page, if any.
        count: the number of values that the page claims; by default the number of levels.
    """
    data, chunks = b"PAR1", []
    leaves = [leaf for node in nodes for leaf in node.leaves()]
    for leaf, (values, repetitions, definitions) in zip(leaves, columns, strict=True):
        page = _levels(repetitions, leaf.repeats) + _levels(definitions, leaf.defines)
        page += _plain(leaf.node.kind, values)
        number = len(definitions or values) if count is None else count
        header = {1: (_INT32, 0), 2: (_INT32, len(page)), 3: (_INT32, len(page))}
        header |= {} if checksum is None else {4: (_INT32, checksum)}
        encodings = {1: (_INT32, number), 2: (_INT32, 0), 3: (_INT32, 3), 4: (_INT32, 3)}
        page = _struct(header | {5: (_STRUCT, encodings)}) + page
        meta = {
            1: (_INT32, leaf.node.kind),
            2: (_LIST, (_INT32, [0, 3])),
            3: (_LIST, (_BINARY, [name.encode() for name in leaf.path])),
            4: (_INT32, 0),
            5: (_INT64, number),
            6: (_INT64, len(page)),
            7: (_INT64, len(page)),
            9: (_INT64, len(data)),
        }
        chunks.append({2: (_INT64, len(data)), 3: (_STRUCT, meta)})
        data += page
    group = {1: (_LIST, (_STRUCT, chunks)), 2: (_INT64, len(data)), 3: (_INT64, rows)}
    root = Node("schema", REQUIRED, children=tuple(nodes))
    footer = {
        1: (_INT32, 1),
        2: (_LIST, (_STRUCT, root.elements())),
        3: (_INT64, rows),
        4: (_LIST, (_STRUCT, [group])),
    }
    end = _struct(footer)
    return data + end + struct.pack("<i", len(end)) + b"PAR1"
