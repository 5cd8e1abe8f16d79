"""Rows to write, with their schema, and the files written from them."""

from __future__ import annotations

import os

import recordspec as rs

SCHEMA = rs.Schema.loads(
    """\
schema: rows
features:
  id: int64
  on: {dtype: float32, default: 0.5}
  a name: string
  tags: {kind: var_len, dtype: int64}
  kind: {kind: label, names: [a, b]}
"""
)


def rows(count: int) -> list[dict]:
    return [
        {
            "id": index,
            "on": None if index % 3 == 0 else index / 2,
            "a name": f"é{index}",
            "tags": list(range(index % 4)),
            "kind": "ab"[index % 2],
        }
        for index in range(count)
    ]


def files(folder) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}
