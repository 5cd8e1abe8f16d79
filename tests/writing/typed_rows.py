"""Rows with typed columns, as an Arrow table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from in_parts import schema

import recordspec as rs

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
