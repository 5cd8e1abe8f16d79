"""Which records of files are wanted, and which of their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec.errors import RecordError
from recordspec.inspect.looking import conditions
from recordspec.inspect.looking.naming import Key, Naming, check_known, named
from recordspec.inspect.looking.source import Part, Source
from recordspec.inspect.looking.values import StepValues, Values, values_by_kind
from recordspec.wire.record_batch import RecordBatch
from recordspec.wire.strings import Mask, Strings, offsets

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

# Values of a row that are made along with those of all rows.
_SHORT = 16


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is wanted of the records of files.

    Attributes:
        columns: names of features, in the order wanted; none of them means all.
        where: a condition on records; see `conditions.parse`. None takes all.
        spec: what features and labels are called. Without one, keys are names and labels numbers.
    """

    columns: tuple[str, ...] = ()
    where: str | None = None
    spec: Schema | None = None

    @cached_property
    def naming(self) -> Naming:
        return Naming.of(self.spec)

    @cached_property
    def condition(self) -> conditions.Where | None:
        return None if self.where is None else conditions.parse(self.where)

    def check(self, source: Source) -> dict[Key, None]:
        """The keys of the spec, and those of the first records of files: of as many as know all names.

        Raises SpecError for a name that neither has, RecordError for an ExampleListWithContext.
        """
        asked = {"columns": self.columns, "where": () if self.condition is None else self.condition.names}
        keys = dict.fromkeys(self.naming.names)
        for part in source.starts():
            decoded = part.decode()
            if (error := part.error_of_list(decoded)) is not None:
                raise error
            keys |= dict.fromkeys(keys_of(decoded))
            words = self._words(keys)
            if all(words.issuperset(names) for names in asked.values()):
                return keys
        words = self._words(keys)
        for option, names in asked.items():
            unknown = [name for name in names if name not in words]
            check_known(unknown, map(self.naming.name, keys), option)
        return keys

    def _words(self, keys: Iterable[Key]) -> set[str]:
        return {word for key in keys for word in self.naming.words(key)}

    def parts(self, source: Source) -> Iterator[Part]:
        """The records for which the condition holds. Raises RecordError where it cannot be told, behind
        those before it.
        """
        if self.condition is None:
            yield from source.parts()
            return
        for part in source.parts():
            held, error = self._holds(part, self.condition)
            yield part.at(np.flatnonzero(held))
            if error is not None:
                raise error

    def _holds(self, part: Part, condition: conditions.Where) -> tuple[Mask, RecordError | None]:
        """For which records it holds, up to one where it cannot be told."""
        decoded = part.decode()
        error = part.error_of_list(decoded)
        columns = {name: self._columns(decoded, name) for name in condition.names}
        held = np.zeros(len(part), bool)
        for row in range(len(part)):
            if error is not None and row == error.row:
                return held, error
            try:
                held[row] = condition.holds(partial(_found, columns, row))
            except conditions.ComparisonError as error:
                return held, RecordError(error.problem.at(part.place(row)), row)
        return held, None

    def _columns(self, decoded: RecordBatch, name: str) -> list[list[_Column]]:
        """What the records have under each key that a name may mean, by kind."""
        return [
            [_Column(held, self.naming.classes.get(key)) for held in values_by_kind(decoded, key)]
            for key in keys_of(decoded)
            if name in self.naming.words(key)
        ]


def _found(columns: Mapping[str, list[list[_Column]]], row: int, name: str) -> conditions.Found:
    """What a record has under a name: a feature, or else a feature list."""
    for of_key in columns[name]:
        there = [column for column in of_key if column.present[row]]
        if there:
            return conditions.Found(there[0].counts[row], partial(_values, there, row))
    return conditions.Found(None, list)


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

    def __init__(self, held: Values | StepValues, classes: tuple[str, ...] | None) -> None:
        values = held.values if isinstance(held, StepValues) else held
        self._flat = values.flat
        self._classes = classes if values.kind == "int64" else None
        places = offsets(values.lengths)
        self._places = (places[offsets(held.counts)] if isinstance(held, StepValues) else places).tolist()
        self.counts: list[int] = (held.counts if isinstance(held, StepValues) else held.lengths).tolist()
        self.present: list[bool] = held.present.tolist()
        # at once where there is little of it: a slice of its own takes 10 us a row
        short = int(values.lengths.max(initial=0)) <= _SHORT
        self._made = self._exact(0, self._places[-1]) if short else None

    def values(self, row: int) -> list[Any]:
        start, stop = self._places[row], self._places[row + 1]
        return self._exact(start, stop) if self._made is None else self._made[start:stop]

    def _exact(self, start: int, stop: int) -> list[Any]:
        """Not as they are shown: of a float32, the digits that make the difference are another number."""
        if self._flat is None:
            return []
        if isinstance(self._flat, Strings):
            return list(self._flat.part(start, stop))
        values: list[Any] = self._flat[start:stop].tolist()
        if self._classes is None:
            return values
        return [str(one).encode() for one in named(values, self._classes)]


def keys_of(decoded: RecordBatch) -> list[Key]:
    """The keys of records, in order: those of features (or the context), then those of feature lists."""
    return [(False, key) for key in sorted(decoded.features)] + [
        (True, key) for key in sorted(decoded.sequence)
    ]
