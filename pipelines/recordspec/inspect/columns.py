"""The values of rows under a key, in the order of the rows, as arrays and as Python values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.inspect.feature_names import FeatureKey
from recordspec.spec.validate import aligned_steps, step_counts
from recordspec.wire.columns import KeySteps, KeyValues, Kind, merged
from recordspec.wire.record_batch import RecordBatch
from recordspec.wire.strings import Ints, Mask, Strings, offsets

# As text, a float takes 128 bytes.
_AT_ONCE = 1 << 16


class MixedKindsError(Exception):
    """Rows have lists of two kinds under one key: the first row, its kind, and that of rows before."""

    def __init__(self, row: int, found: Kind, before: Kind) -> None:
        super().__init__(row, found, before)
        self.row, self.found, self.before = row, found, before


@dataclass(frozen=True, kw_only=True)
class ColumnValues:
    """The values of a key.

    Attributes:
        kind: of the lists; `none` where no row has one.
        present: which rows have a list, bool `[n]`; a Feature without a kind is none.
        lengths: of the list of each row, int64 `[n]`; 0 where there is none.
        flat: the values of all rows end to end; None of the kind `none`.
    """

    kind: Kind
    present: Mask
    lengths: Ints
    flat: npt.NDArray[Any] | Strings | None


@dataclass(frozen=True, kw_only=True)
class StepValues:
    """The values of a feature list.

    Attributes:
        present: which rows have it, bool `[n]`.
        counts: the steps of each, int64 `[n]`.
        values: of all steps, end to end.
    """

    present: Mask
    counts: Ints
    values: ColumnValues


def values_of(held: tuple[KeyValues, ...], rows: int) -> ColumnValues:
    """What `rows` rows have. Raises MixedKindsError."""
    some = [one for one in held if one.kind != "none" and len(one.rows)]
    _check_kinds(some)
    present, lengths = np.zeros(rows, bool), np.zeros(rows, np.int64)
    for one in some:
        present[one.rows] = True
        lengths[one.rows] = one.cells.lengths
    if not some:
        return ColumnValues(kind="none", present=present, lengths=lengths, flat=None)
    return ColumnValues(kind=some[0].kind, present=present, lengths=lengths, flat=merged(some).cells.flat)


def steps_of(many: tuple[KeySteps, ...], rows: int) -> StepValues:
    """What `rows` rows have in a feature list. Raises MixedKindsError."""
    counts, present = step_counts(many, rows), np.zeros(rows, bool)
    for steps in many:
        present[steps.rows] = True
    held = aligned_steps(many, counts, np.ones(rows, bool))
    try:
        values = values_of(held, int(counts.sum()))
    except MixedKindsError as error:
        row = int(np.searchsorted(offsets(counts), error.row, side="right")) - 1
        raise MixedKindsError(row, error.found, error.before) from None
    return StepValues(present=present, counts=counts, values=values)


def values_by_kind(decoded: RecordBatch, key: FeatureKey) -> list[ColumnValues | StepValues]:
    """The values under a key, separately for each kind of list. In a feature list each kind has all steps, of
    which those of other kinds are empty.
    """
    in_sequence, name = key
    if not in_sequence:
        held = decoded.features.get(name, ())
        return [
            values_of(tuple(one for one in held if one.kind == kind), decoded.rows) for kind in _kinds(held)
        ]
    steps = decoded.sequence.get(name, ())
    return [
        steps_of(
            tuple(
                replace(one, values=tuple(step for step in one.values if step.kind == kind)) for one in steps
            ),
            decoded.rows,
        )
        for kind in _kinds(chain.from_iterable(one.values for one in steps)) or ["none"]
    ]


def _kinds(held: Iterable[KeyValues]) -> list[Kind]:
    return sorted({one.kind for one in held} - {"none"})


def _check_kinds(held: list[KeyValues]) -> None:
    kinds = {one.kind for one in held}
    if len(kinds) > 1:
        first = min(held, key=lambda one: int(one.rows[0]))
        other = min((one for one in held if one.kind != first.kind), key=lambda one: int(one.rows[0]))
        raise MixedKindsError(int(other.rows[0]), other.kind, first.kind)


def to_pylist(flat: npt.NDArray[Any] | Strings | None) -> list[Any]:
    """As Python's numbers and bytes. A float32 is the shortest that reads back as the same one."""
    if flat is None:
        return []
    if isinstance(flat, Strings):
        return list(flat)
    return shortest(flat) if flat.dtype == np.float32 else list(flat.tolist())


def shortest(numbers: npt.NDArray[Any]) -> list[float]:
    """float32 `[n]` as floats of as few digits as make the difference: 0.1, not 0.10000000149011612."""
    found: list[float] = []
    for start in range(0, len(numbers), _AT_ONCE):
        found += _shortest(numbers[start : start + _AT_ONCE])
    return found


def _shortest(numbers: npt.NDArray[Any]) -> list[float]:
    short = numbers.astype("U").astype(np.float64)
    with np.errstate(over="ignore"):
        same = (short.astype(np.float32) == numbers) | np.isnan(numbers)
    return list(np.where(same, short, numbers.astype(np.float64)).tolist())
