"""Which records of files are wanted, and which of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.inspect.looking import conditions
from recordspec.inspect.looking.naming import Key, Naming, check_known, named
from recordspec.inspect.looking.source import Part, Source
from recordspec.inspect.looking.values import MixedKindsError, StepValues, Values, plain, steps_of, values_of
from recordspec.wire.decoded import Decoded
from recordspec.wire.pieces import Mask
from recordspec.wire.strings import Strings, offsets

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

    def check(self, source: Source) -> None:
        """Raises SpecError for a name that neither the spec has nor the first records of a file."""
        names = () if self.condition is None else self.condition.names
        known = dict.fromkeys(name for name in (self.spec.names if self.spec else ()))
        parts = source.starts()
        while not known.keys() >= {*self.columns, *names} and (part := next(parts, None)) is not None:
            known |= dict.fromkeys(map(self.naming.name, keys_of(part.decode())))
        check_known(self.columns, known, "columns")
        check_known(names, known, "where")

    def parts(self, source: Source) -> Iterator[Part]:
        """The records for which the condition holds. Raises RecordError where it cannot be told."""
        for part in source.parts():
            yield part if self.condition is None else part.at(np.flatnonzero(self._holds(part)))

    def _holds(self, part: Part) -> Mask:
        assert self.condition is not None
        decoded = part.decode()
        columns = {name: self._column(decoded, name, part) for name in self.condition.names}
        held = np.zeros(len(part), bool)
        for row in range(len(part)):
            try:
                held[row] = self.condition.holds(partial(_found, columns, row))
            except conditions.ComparisonError as error:
                raise RecordError(error.problem.at(part.place(row)), row) from None
        return held

    def _column(self, decoded: Decoded, name: str, part: Part) -> Callable[[int], conditions.Found]:
        """What each row has under a name."""
        for key in keys_of(decoded):
            if self.naming.name(key) == name:
                return _Column(typed_values(decoded, key, part), self.naming.classes.get(key)).found
        return lambda row: conditions.Found(None, list)


def _found(columns: Mapping[str, Callable[[int], conditions.Found]], row: int, name: str) -> conditions.Found:
    return columns[name](row)


class _Column:
    """The values of a key, row by row."""

    def __init__(self, held: Values | StepValues, classes: tuple[str, ...] | None) -> None:
        values = held.values if isinstance(held, StepValues) else held
        self._flat, self._classes = values.flat, classes
        places = offsets(values.lengths)
        self._places = (places[offsets(held.counts)] if isinstance(held, StepValues) else places).tolist()
        self._counts = (held.counts if isinstance(held, StepValues) else held.lengths).tolist()
        self._present = held.present.tolist()
        # at once where there is little of it: a slice of its own takes 10 us a row
        short = int(values.lengths.max(initial=0)) <= _SHORT
        self._plain = self._made(0, self._places[-1]) if short else None

    def found(self, row: int) -> conditions.Found:
        if not self._present[row]:
            return conditions.Found(None, list)
        return conditions.Found(self._counts[row], partial(self._values, row))

    def _values(self, row: int) -> list[Any]:
        start, stop = self._places[row], self._places[row + 1]
        return self._made(start, stop) if self._plain is None else self._plain[start:stop]

    def _made(self, start: int, stop: int) -> list[Any]:
        if self._flat is None:
            return []
        part = self._flat.part(start, stop) if isinstance(self._flat, Strings) else self._flat[start:stop]
        values = plain(part)
        if self._classes is None:
            return values
        return [one.encode() if isinstance(one, str) else one for one in named(values, self._classes)]


def keys_of(decoded: Decoded) -> list[Key]:
    """The keys of records, in order: those of features (or the context), then those of feature lists."""
    return [(False, key) for key in sorted(decoded.features)] + [
        (True, key) for key in sorted(decoded.sequence)
    ]


def typed_values(decoded: Decoded, key: Key, part: Part) -> Values | StepValues:
    """What the records of a part have under a key. Raises RecordError for lists of several kinds."""
    in_sequence, name = key
    try:
        if in_sequence:
            return steps_of(decoded.sequence.get(name, ()), decoded.rows)
        return values_of(decoded.features.get(name, ()), decoded.rows)
    except MixedKindsError as error:
        raise RecordError(
            mixed(error.before, error.found, name).at(part.place(error.row)), error.row
        ) from None


def mixed(before: str, found: str, key: str) -> Problem:
    """What is wrong where a key has lists of two kinds."""
    return Problem(path=(key,), expected=f"{before}, as in records before", got=found)
