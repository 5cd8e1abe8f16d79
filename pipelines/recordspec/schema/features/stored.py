"""Finds invalid stored values, which are rare; shared by several kinds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from recordspec.errors import Problem
from recordspec.schema.features.feature import Feature, Invalid, as_taken
from recordspec.schema.features.option_checks import static
from recordspec.schema.values import BadValue
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    bytes_in,
    counts_of,
    fixed_lists,
    flat_of,
    list_array,
    offsets,
    part,
    values_array,
    views_of,
)
from recordspec.wire.file_types import describe_type


def outside(
    array: ArrowArray, low: int, high: int, expected: str, hints: Mapping[float, str] | None = None
) -> Iterator[Invalid]:
    """Yields numbers below `low` or above `high`, and fractions, as invalid; `hints`: hints by number."""
    flat = flat_of(array)
    is_bad = (flat < low) | (flat > high)
    if flat.dtype.kind == "f":
        is_bad |= flat != np.floor(flat)  # also NaN
    bad = np.flatnonzero(is_bad)
    if len(bad):
        rows, first = np.unique(_rows_of(array, bad), return_index=True)
        first_bad = dict(zip(rows.tolist(), flat[bad[first]].tolist(), strict=True))

        def problem(row: int) -> Problem:
            value = first_bad[row]
            return Problem(expected=expected, got=str(value), hint=(hints or {}).get(value, ""))

        yield rows, problem


def each_refused(array: ArrowArray, check: Callable[[bytes], None]) -> Iterator[Invalid]:
    """Yields the strings for which `check` raises BadValue, as invalid."""
    problems: dict[int, Problem] = {}
    strings = flat_of(array)
    rows = _rows_of(array, np.arange(len(strings))).tolist()
    for row, data in zip(rows, map(bytes, views_of(strings)), strict=True):
        try:
            check(data)
        except BadValue as bad:
            problems.setdefault(row, bad.problem)
    if problems:
        yield np.fromiter(problems, np.int64, len(problems)), problems.__getitem__


def refused_by_encode(feature: Feature, array: ArrowArray) -> Iterator[Invalid]:
    """Yields the stored values that the feature's encoder refuses. The encoder must accept the values
    that it stores.
    """
    values, shape = values_array(flat_of(array)), feature.value_type.shape
    if shape:
        cell = static(shape[1:])
        for size in reversed(cell):
            values = fixed_lists(values, size)
        values = list_array(values, offsets(counts_of(array) // math.prod(cell)))
    try:
        feature.encode(as_taken(feature, values))
        return
    except BadValue:
        problems: dict[int, Problem] = {}
    for row in range(len(values)):
        try:
            feature.encode(as_taken(feature, part(values, row, row + 1)))
        except BadValue as bad:
            problems[row] = bad.problem
    yield np.fromiter(problems, np.int64, len(problems)), problems.__getitem__


def check_bytes(size: int, cell: int, *, varies: bool) -> None:
    """Raises BadValue if a number of bytes is not `cell`, or with `varies`, not a multiple of it."""
    if (size % max(1, cell) != 0) if varies else (size != cell):
        raise BadValue(0, f"a multiple of {cell} bytes" if varies else f"{cell} bytes", str(size))


def _rows_of(array: ArrowArray, places: Ints) -> Ints:
    """The rows of the values at the given places."""
    return np.searchsorted(offsets(counts_of(array)), places, side="right") - 1


def check_media(feature: Feature, encoding: str, data: bytes) -> None:
    """Raises BadValue for bytes that the feature would re-encode."""
    (stored,) = feature.encode([data])
    if bytes_in(stored) != [data]:
        raise BadValue(0, f"{encoding} data that TensorFlow decodes", describe_type(data))
