"""What identifies a row: the values under the names of the key, as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, describe, nearest
from recordspec.spec.encoder import Gapped


def key_bytes(columns: Mapping[str, Any], names: tuple[str, ...]) -> list[bytes]:
    """The key of each row, from the columns that make it up; 7 and "7" are one key.

    Raises SpecError where there is no such column, RecordError where a row has no value in it, or one
    that is neither text nor a whole number.
    """
    parts = [_parts(columns, name) for name in names]
    if len(parts) == 1:
        return parts[0]
    # each part with its length before it, so that ("ab", "c") is not ("a", "bc")
    return [b"".join(len(part).to_bytes(4, "big") + part for part in row) for row in zip(*parts, strict=True)]


def _parts(columns: Mapping[str, Any], name: str) -> list[bytes]:
    values = columns.get(name)
    if values is None:
        hint = nearest(name, columns)
        raise SpecError(Problem(path=("key",), expected="a column of the rows", got=f"`{name}`", hint=hint))
    if isinstance(values, Gapped):
        values = _with_gaps(values)
    values = values.tolist() if isinstance(values, np.ndarray) else values
    return [_part(row, value, name) for row, value in enumerate(values)]


def _part(row: int, value: Any, name: str) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    short = isinstance(value, (int, np.integer)) and int(value).bit_length() < 4096
    if short and not isinstance(value, bool):
        return str(int(value)).encode()
    problem = Problem(path=(name,), expected="a key: text or a whole number", got=describe(value))
    raise RecordError(problem.at(f"row {row}"), row)


def _with_gaps(column: Gapped) -> list[Any]:
    kept = column.values.tolist() if isinstance(column.values, np.ndarray) else column.values
    present = iter(kept)
    return [next(present) if here else None for here in column.present.tolist()]
