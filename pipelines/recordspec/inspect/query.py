"""Queries: conditions on the records of files, and a choice of their features."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec.errors import RecordError
from recordspec.inspect.columns import keys_of, values_by_kind
from recordspec.inspect.feature_names import FeatureKey, FeatureNames, check_known, with_class_names
from recordspec.inspect.scan import RowBatch, Scanner
from recordspec.inspect.where import ComparisonError, FieldValue, Where, parse
from recordspec.wire.arrays import (
    ArrowArray,
    Mask,
    bytes_in,
    counts_of,
    flat_of,
    is_list,
    offsets,
    present_in,
    storage_of,
)
from recordspec.wire.record_batch import RecordBatch

if TYPE_CHECKING:
    from recordspec.schema.schema import Schema

# Rows with no more values than this are converted to Python values together.
_SHORT = 16


@dataclass(frozen=True, kw_only=True)
class Query:
    """A selection of records and features.

    Attributes:
        columns: names of features, in the order of the result; empty for all.
        where: a condition on records; see `inspect.where.parse`. None selects all.
        spec: names features and classes. Without one, keys are names and classes are indices.
        stored: whether the keys of these features are names, too, of what is stored.
    """

    columns: tuple[str, ...] = ()
    where: str | None = None
    spec: Schema | None = None
    stored: bool = False

    @cached_property
    def names(self) -> FeatureNames:
        return FeatureNames.of(self.spec, stored=self.stored)

    @cached_property
    def condition(self) -> Where | None:
        return None if self.where is None else parse(self.where)

    def check(self, scanner: Scanner, features: Collection[str] = ()) -> dict[FeatureKey, None]:
        """Returns the keys of the spec, and of the first records of files until all names are found.

        Args:
            features: other names that columns may have.

        Raises SpecError for an unknown name, RecordError for an ExampleListWithContext.
        """
        asked = {"columns": self.columns, "where": () if self.condition is None else self.condition.names}
        keys = dict.fromkeys(self.names.names)
        for batch in scanner.first():
            decoded = batch.decode()
            if (error := batch.list_error(decoded)) is not None:
                raise error
            keys |= dict.fromkeys(keys_of(decoded))
            words = self._words(keys)
            known = {"columns": words.union(features), "where": words}
            if all(known[option].issuperset(names) for option, names in asked.items()):
                return keys
        words = self._words(keys)
        for option, names in asked.items():
            also = features if option == "columns" else ()
            unknown = [name for name in names if name not in words and name not in also]
            check_known(unknown, [*map(self.names.name, keys), *also], option)
        return keys

    def _words(self, keys: Iterable[FeatureKey]) -> set[str]:
        return {word for key in keys for word in self.names.words(key)}

    def batches(self, scanner: Scanner) -> Iterator[RowBatch]:
        """Yields the records that match the condition.

        Raises RecordError at a record for which it cannot be evaluated, after those before it.
        """
        if self.condition is None:
            yield from scanner.batches()
            return
        for batch in scanner.batches():
            chosen, error = self._holds(batch, self.condition)
            yield batch.take(np.flatnonzero(chosen))
            if error is not None:
                raise error

    def _holds(self, batch: RowBatch, condition: Where) -> tuple[Mask, RecordError | None]:
        """For which records the condition holds, up to one on which it cannot be evaluated."""
        decoded = batch.decode(keys=self.names.keys_of(condition.names))
        error = batch.list_error(decoded)
        columns = {name: self._columns(decoded, name) for name in condition.names}
        chosen = np.zeros(len(batch), bool)
        for row in range(len(batch)):
            if error is not None and row == error.row:
                return chosen, error
            try:
                chosen[row] = condition.holds(partial(_lookup, columns, row))
            except ComparisonError as error:
                return chosen, RecordError(error.problem.at(batch.place(row)), row)
        return chosen, None

    def _columns(self, decoded: RecordBatch, name: str) -> list[list[_Column]]:
        """The values under each key that a name may mean, by kind of list."""
        return [
            [_Column(array, self.names.classes_of(key, name)) for array in values_by_kind(decoded, key)]
            for key in keys_of(decoded)
            if name in self.names.words(key)
        ]


def _lookup(columns: Mapping[str, list[list[_Column]]], row: int, name: str) -> FieldValue:
    """The value of a record under a name: of a feature, or else of a feature list."""
    for of_key in columns[name]:
        there = [column for column in of_key if column.present[row]]
        if there:
            return FieldValue(there[0].counts[row], partial(_values, there, row))
    return FieldValue(None, list)


def _values(columns: list[_Column], row: int) -> list[Any]:
    """The values of a record; the steps of a feature list may be of several kinds."""
    if len(columns) == 1:
        return columns[0].values(row)
    return [one for column in columns for one in column.values(row)]


class _Column:
    """The values of a key, row by row, all of one kind.

    Attributes:
        present: whether a row has any list.
        counts: of its values, or of its steps.
    """

    def __init__(self, array: ArrowArray, classes: tuple[str, ...] | None) -> None:
        self._classes = classes if storage_of(array) == "int64" else None
        self.present: list[bool] = present_in(array).tolist()
        self.counts: list[int] = counts_of(array).tolist()
        places, flat = offsets(counts_of(array)), flat_of(array)
        if not isinstance(flat, np.ndarray) and is_list(flat):  # steps
            places, flat = offsets(counts_of(flat))[places], flat_of(flat)
        self._places, self._flat = places.tolist(), flat
        # at once where there is little of it: a slice of its own takes 10 us a row
        short = int(np.diff(places).max(initial=0)) <= _SHORT
        self._made = self._exact(0, self._places[-1]) if short else None

    def values(self, row: int) -> list[Any]:
        start, stop = self._places[row], self._places[row + 1]
        return self._exact(start, stop) if self._made is None else self._made[start:stop]

    def _exact(self, start: int, stop: int) -> list[Any]:
        """Exact values, not the shortest decimals that are shown of a float32."""
        if not isinstance(self._flat, np.ndarray):
            return bytes_in(self._flat.slice(start, stop - start)) if start < stop else []
        values: list[Any] = self._flat[start:stop].tolist()
        if self._classes is None:
            return values
        return [str(one).encode() for one in with_class_names(values, self._classes)]
