"""The values of rows under a key, in the order of the rows, as arrays and as Python values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.inspect.feature_names import FeatureKey
from recordspec.spec.validate import aligned_steps, step_counts
from recordspec.wire.columns import KeySteps, KeyValues, merged
from recordspec.wire.record_batch import RecordBatch
from recordspec.wire.strings import Ints, Mask, Strings


@dataclass(frozen=True, kw_only=True)
class ColumnValues:
    """The values of a key.

    Attributes:
        kind: of the lists; `none` where no row has one. Of values of a feature also another dtype.
        present: which rows have a list, bool `[n]`; a Feature without a kind is none.
        lengths: of the list of each row, int64 `[n]`; 0 where there is none.
        flat: the values of all rows end to end; None of the kind `none`.
    """

    kind: str
    present: Mask
    lengths: Ints
    flat: npt.NDArray[Any] | Strings | None

    @property
    def first(self) -> int:
        """The first row that has a list; 0 without any."""
        return int(np.argmax(self.present))


@dataclass(frozen=True, kw_only=True)
class StepValues:
    """The values of a feature list, or of a feature of several dimensions.

    Attributes:
        present: which rows have it, bool `[n]`.
        counts: the steps of each, int64 `[n]`.
        values: of all steps, end to end; of several dimensions, lists again.
    """

    present: Mask
    counts: Ints
    values: ColumnValues | StepValues

    @property
    def leaf(self) -> ColumnValues:
        """The values of the innermost lists."""
        return self.values if isinstance(self.values, ColumnValues) else self.values.leaf

    @property
    def first(self) -> int:
        """The first row with a step that has a list; without any, the first that has the feature list."""
        if not self.values.present.any():
            return int(np.argmax(self.present))
        return int(np.searchsorted(np.cumsum(self.counts), self.values.first, side="right"))


@dataclass(frozen=True, kw_only=True)
class PairValues:
    """Indices and values of sparse tensors.

    Attributes:
        indices: of each row, lists of numbers, or of lists of them.
        values: as many of each row.
    """

    indices: ColumnValues | StepValues
    values: ColumnValues | StepValues

    @property
    def present(self) -> Mask:
        return self.indices.present

    @property
    def leaf(self) -> ColumnValues:
        return self.values if isinstance(self.values, ColumnValues) else self.values.leaf

    @property
    def first(self) -> int:
        """The first row that has a value."""
        return int(np.argmax(self.present))


HeldValues = ColumnValues | StepValues | PairValues


def nested_values(values: list[Any], levels: int, dtype: str) -> ColumnValues | StepValues:
    """The values of a feature, nested lists or arrays of `levels` dimensions; None where one is missing.

    Args:
        dtype: of numbers; `bytes` of strings.
    """
    present = np.array([value is not None for value in values], bool)
    if levels == 0:
        there = [value for value in values if value is not None]
        flat = Strings.of(there) if dtype == "bytes" else np.array(there, dtype)
        return ColumnValues(kind=dtype, present=present, lengths=present.astype(np.int64), flat=flat)
    if values and all(isinstance(value, np.ndarray) for value in values):
        return _nested_arrays(values, levels, dtype)
    lists = [() if value is None else value for value in values]
    counts = np.array([len(one) for one in lists], np.int64)
    items = [item for one in lists for item in one]
    return StepValues(present=present, counts=counts, values=nested_values(items, levels - 1, dtype))


def _nested_arrays(values: list[npt.NDArray[Any]], levels: int, dtype: str) -> ColumnValues | StepValues:
    """The same of arrays, which all have `levels` dimensions."""
    flat = np.concatenate([value.reshape(-1) for value in values]).astype(dtype)
    every = np.ones(len(flat), bool)
    made: ColumnValues | StepValues = ColumnValues(
        kind=dtype, present=every, lengths=every.astype(np.int64), flat=flat
    )
    for level in range(levels - 1, -1, -1):
        times = [int(np.prod(value.shape[:level])) for value in values]
        counts = np.repeat([value.shape[level] for value in values], times)
        made = StepValues(present=np.ones(len(counts), bool), counts=counts, values=made)
    return made


def values_by_kind(decoded: RecordBatch, key: FeatureKey) -> list[ColumnValues | StepValues]:
    """The values under a key, separately for each kind of list. In a feature list each kind has all steps, of
    which those of other kinds are empty. Where no list has a kind, it is `none`.
    """
    in_sequence, name = key
    many = decoded.sequence.get(name, ()) if in_sequence else ()
    held = [one for steps in many for one in steps.values] if in_sequence else decoded.features.get(name, ())
    kinds: list[str] = sorted({one.kind for one in held if len(one.rows)} - {"none"}) or ["none"]
    if in_sequence:
        return [_steps_of(kind, many, decoded.rows) for kind in kinds]
    return [_values_of(kind, held, decoded.rows) for kind in kinds]


def _values_of(kind: str, held: Iterable[KeyValues], rows: int) -> ColumnValues:
    some = [one for one in held if one.kind == kind != "none"]
    present, lengths = np.zeros(rows, bool), np.zeros(rows, np.int64)
    for one in some:
        present[one.rows] = True
        lengths[one.rows] = one.cells.lengths
    if not some:
        return ColumnValues(kind="none", present=present, lengths=lengths, flat=None)
    return ColumnValues(kind=kind, present=present, lengths=lengths, flat=merged(some).cells.flat)


def _steps_of(kind: str, many: tuple[KeySteps, ...], rows: int) -> StepValues:
    present, counts = np.zeros(rows, bool), step_counts(many, rows)
    for steps in many:
        present[steps.rows] = True
    held = aligned_steps(many, counts, np.ones(rows, bool))
    return StepValues(present=present, counts=counts, values=_values_of(kind, held, int(counts.sum())))


def to_pylist(flat: npt.NDArray[Any] | Strings | None) -> list[Any]:
    """Converts to Python's numbers and bytes. A float32 becomes the shortest number that reads back equal."""
    if flat is None:
        return []
    if isinstance(flat, Strings):
        return list(flat)
    return shortest(flat) if flat.dtype == np.float32 else list(flat.tolist())


def shortest(numbers: npt.NDArray[Any]) -> list[float]:
    """float32 `[n]` as floats of as few digits as make the difference: 0.1, not 0.10000000149011612."""
    return [float(str(number)) for number in numbers]
