"""Reads sources in parts, for the tests of each source."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

from hypothesis import HealthCheck, settings

import recordspec as rs
from selection import scaled

TEXTS = rs.Schema.loads(
    "schema: s\nfeatures:\n  a: {dtype: string, default: '-'}\n  b: {dtype: string, default: '-'}"
)
NUMBER = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
MANY = settings(
    max_examples=scaled(150), suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip


def schema(features: str) -> rs.Schema:
    return rs.Schema.loads(f"schema: s\nfeatures:\n  {features}\n")


def parts_of(source, one: rs.Schema, extra=()) -> list:
    """The parts as another process receives them."""
    return [pickle.loads(pickle.dumps(part)) for part in source.parts(one, extra)]


def batches_of(source, one: rs.Schema) -> Iterator:
    for part in parts_of(source, one):
        yield from part.batches(one, ())


def rows_in(batches) -> int:
    """The number of rows, including invalid rows."""
    return sum(1 if isinstance(batch, rs.RecordError) else batch.rows for batch in batches)


def records(source, one: rs.Schema, step: int = 7) -> list[bytes]:
    """All rows, encoded a few at a time."""
    found = []
    for batch in batches_of(source, one):
        if isinstance(batch, rs.RecordError):
            raise batch
        for start in range(0, batch.rows, step):
            part = batch.part(start, min(start + step, batch.rows))
            found += list(one.encode_batch(part.values, part.rows))
    return found


def rows_of(source, one: rs.Schema, step: int = 7) -> list[dict]:
    """All rows, decoded again."""
    decoded = [one.decode(record) for record in records(source, one, step)]
    return [{name: plain(value) for name, value in row.items()} for row in decoded]


def plain(value):
    value = value.to_list() if hasattr(value, "to_list") else value.numpy()
    return value.tolist() if hasattr(value, "tolist") else value


def error_of(source, one: rs.Schema) -> list[str]:
    """The problems of the first invalid row, located at its place."""
    for part in parts_of(source, one):
        row = 0
        for batch in part.batches(one, ()):
            if isinstance(batch, rs.RecordError):
                return str(batch.at(part.place(row))).splitlines()
            for start in range(batch.rows):
                try:
                    one.encode_batch(batch.part(start, start + 1).values, 1)
                except rs.RecordError as error:
                    return str(error.at(part.place(row + start))).splitlines()
            row += batch.rows
    return []
