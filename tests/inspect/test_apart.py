"""Blocks taken apart, of which some have no rows to give."""

from __future__ import annotations

import recordspec as rs
from examples import example, file_of
from recordspec.inspect.apart import taken_apart
from recordspec.wire.tfrecord import scan_chunks

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {a: int64, b: int64}")


def block(**features: list[int]) -> bytes:
    return example({key.replace("rows", "/rows"): ("int64", values) for key, values in features.items()})


def test_of_a_chunk_the_rows_and_the_blocks_without_any(tmp_path):
    blocks = [
        block(rows=[2], a=[1, 2], b=[3, 4]),
        block(rows=[3], a=[1, 2], b=[3]),
        block(a=[1]),
        block(rows=[1], a=[5], b=[6]),
    ]
    path = file_of(tmp_path / "f", blocks)
    (chunk,) = scan_chunks(path)
    found = taken_apart(SCHEMA, path, chunk)
    rows = [SCHEMA.decode(row) for row in found.rows]
    assert [(int(row["a"]), int(row["b"])) for row in rows] == [(1, 3), (2, 4), (5, 6)]
    assert found.records.tolist() == [0, 0, 3]
    second, third = (f"{path}: record {number} at byte {chunk.offsets[number]}: " for number in (1, 2))
    assert [str(error).splitlines() for error in found.broken] == [
        [
            f"{second}features.a: expected 3 int64 in a block of 3 rows, got 2",
            f"{second}features.b: expected 3 int64 in a block of 3 rows, got 1",
        ],
        [f"{third}/rows: expected a block of rows, got a record without"],
    ]


def test_of_a_chunk_without_rows(tmp_path):
    path = file_of(tmp_path / "f", [block(a=[1])])
    (chunk,) = scan_chunks(path)
    found = taken_apart(SCHEMA, path, chunk)
    assert (len(found.rows), len(found.records), len(found.broken)) == (0, 0, 1)
