"""Columns of records against the columns of a schema: which rows do not fit, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from recordspec.errors import Path, Problem
from recordspec.inspect.matching import numbered, unmatched
from recordspec.spec.blocks import columns_in
from recordspec.spec.features import Feature
from recordspec.spec.schema import Schema
from recordspec.spec.stored import unfit
from recordspec.wire.columns import (
    TF_DTYPES,
    Cells,
    Column,
    Fixed,
    KeySteps,
    KeyValues,
    Section,
    Sequence,
    of_kind,
    only_steps,
)
from recordspec.wire.record_batch import RecordBatch
from recordspec.wire.strings import Ints, Mask, offsets

# What is wrong, for who counts.
Code = Literal["record", "refused", "misread", "missing", "kind", "count", "value", "repeated"]
SORTS: dict[Code, str] = {
    "record": "cannot be read",
    "refused": "refused by TensorFlow",
    "misread": "read otherwise by TensorFlow",
    "missing": "missing",
    "kind": "of another kind",
    "count": "of another number",
    "value": "other values",
    "repeated": "a key more than once",
}
# Of what is found instead, so many are kept.
FEW = 8


@dataclass(frozen=True)
class Misfit:
    """Rows that do not fit, all for one reason.

    Attributes:
        path: of the section and the feature.
        rows: rising, int64 `[m]`. A row may be in it more than once, for several of its steps.
        problem: of the row at a place in `rows`.
        found: what they have instead, a few of all: a kind of list, or numbers of values.
    """

    code: Code
    path: Path
    rows: Ints
    problem: Callable[[int], Problem]
    found: tuple[str | int, ...] = ()

    def only(self, rows: Mask) -> Misfit:
        """Of these rows."""
        places = np.flatnonzero(rows[self.rows])
        if len(places) == len(self.rows):
            return self
        return replace(self, rows=self.rows[places], problem=lambda place: self.problem(int(places[place])))


def misfits(schema: Schema, records: RecordBatch) -> Iterator[Misfit]:
    """What of these records does not fit the schema, without those that are no records at all."""
    whole = np.ones(records.rows, bool)
    whole[list(records.broken)] = False
    for section, feature in schema.placed:
        columns = columns_in(section, feature)
        look = _in_steps if section == "sequence" else _in_rows
        for found in look(section, feature, columns, records):
            misfit = found.only(whole)
            if len(misfit.rows):
                yield misfit


def _in_rows(
    section: Section, feature: Feature, columns: tuple[Column, ...], records: RecordBatch
) -> Iterator[Misfit]:
    """Of a feature of an Example, or of a SequenceExample's context."""
    fits, path = np.ones(records.rows, bool), (section, feature.name)
    for column in columns:
        given = _Given(column, section, records.rows, records.features.get(column.key, ()))
        for misfit in given.misfits():
            fits[misfit.rows] = False
            yield _of_feature(misfit, feature, path)
    for rows, expected, got in unmatched(columns, records.features, fits):
        fits[rows] = False
        yield Misfit("count", path, rows, _said(path, expected, got))
    held = of_kind(records.features.get(columns[0].key, ()), columns[0].storage, fits)
    for one in held:
        yield from _values(feature, one.cells, one.rows, path)


def _in_steps(
    section: Section, feature: Feature, columns: tuple[Column, ...], records: RecordBatch
) -> Iterator[Misfit]:
    """Of a feature of a SequenceExample's feature lists."""
    path, fits = (section, feature.name), np.ones(records.rows, bool)
    for stated, column in zip(feature.columns(), columns, strict=True):
        found = records.sequence.get(column.key, ())
        misfits = [*_without(stated, found, records.rows, path)]
        misfits += [misfit for steps in found for misfit in _of_steps(section, feature, column, steps, path)]
        for misfit in misfits:
            fits[misfit.rows] = False
            yield misfit
    if len(columns) > 1:
        yield from _steps_apart(columns, records, fits, path)


def _without(column: Column, found: tuple[KeySteps, ...], rows: int, path: Path) -> Iterator[Misfit]:
    """Rows without a list of steps, where tf.io wants one: to what has a pad of its own, it gives none."""
    if isinstance(column.layout, Sequence) and column.layout.pad is None:
        missing = np.ones(rows, bool)
        for steps in found:
            missing[steps.rows] = False
        yield Misfit("missing", path, np.flatnonzero(missing), _said(path, "a list of steps", "none"))


def _of_steps(
    section: Section, feature: Feature, column: Column, steps: KeySteps, path: Path
) -> Iterator[Misfit]:
    owners, within = _steps_of(steps.rows, steps.counts)
    fits = np.ones(len(owners), bool)
    given = _Given(column, section, len(owners), steps.values)
    for misfit in given.misfits():
        fits[misfit.rows] = False
        yield _at_steps(_of_feature(misfit, feature, path), owners, within)
    if isinstance(column.layout, Sequence) and fits.all():
        size = max(1, math.prod(column.layout.shape))
        for held in of_kind(steps.values, column.storage, fits):
            cells = replace(held.cells, lengths=steps.counts * size, rows=len(steps.rows))
            yield from _values(feature, cells, steps.rows, path)
    elif not isinstance(column.layout, Sequence):
        for held in of_kind(steps.values, column.storage, fits):
            for misfit in _values(feature, held.cells, held.rows, path):
                yield _at_steps(misfit, owners, within)


def _steps_apart(
    columns: tuple[Column, ...], records: RecordBatch, fits: Mask, path: Path
) -> Iterator[Misfit]:
    """Steps whose values under several keys do not go together, of rows that fit so far."""
    found = {column.key: records.sequence.get(column.key, ()) for column in columns}
    (key, counts), *others = ((key, _step_counts(steps, records.rows)) for key, steps in found.items())
    for other, number in others:
        rows = np.flatnonzero(fits & (number != counts))
        fits[rows] = False
        expected = numbered(counts[rows], f" steps under `{other}`, as under `{key}`")
        yield Misfit("count", path, rows, _said(path, expected, numbered(number[rows])))
    counts = np.where(fits, counts, 0)
    aligned = {key: _aligned(steps, counts, fits) for key, steps in found.items()}
    owners, within = _steps_of(np.arange(records.rows), counts)
    for places, wanted, got in unmatched(columns, aligned, np.ones(len(owners), bool)):
        yield _at_steps(Misfit("count", path, places, _said(path, wanted, got)), owners, within)


def _step_counts(found: tuple[KeySteps, ...], rows: int) -> Ints:
    counts = np.zeros(rows, np.int64)
    for steps in found:
        counts[steps.rows] = steps.counts
    return counts


def _aligned(found: tuple[KeySteps, ...], counts: Ints, rows: Mask) -> tuple[KeyValues, ...]:
    """What the steps of these rows have, the steps counted over all rows, of which each has `counts`."""
    firsts, held = offsets(counts)[:-1], []
    for steps in (only_steps(one, rows) for one in found):
        _, within = _steps_of(steps.rows, steps.counts)
        places = np.repeat(firsts[steps.rows], steps.counts) + within
        held += [replace(one, rows=places[one.rows]) for one in steps.values]
    return tuple(held)


def _steps_of(rows: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Of each step its row, and which of the row's it is."""
    owners = np.repeat(rows, counts)
    return owners, np.arange(len(owners)) - np.repeat(offsets(counts)[:-1], counts)


def _at_steps(misfit: Misfit, owners: Ints, within: Ints) -> Misfit:
    """A misfit of steps as one of their rows."""

    def problem(place: int) -> Problem:
        found = misfit.problem(place)
        return replace(found, path=(*found.path, int(within[misfit.rows[place]])))

    return replace(misfit, rows=owners[misfit.rows], problem=problem)


@dataclass(frozen=True)
class _Given:
    """What is stored under a column's key, in so many rows or steps."""

    column: Column
    section: Section
    rows: int
    held: tuple[KeyValues, ...]

    def misfits(self) -> Iterator[Misfit]:
        """Rows whose list is of another kind, or of another number of values; no row twice."""
        counts, has_list = np.zeros(self.rows, np.int64), np.zeros(self.rows, bool)
        right = np.ones(self.rows, bool)
        for held in self.held:
            counts[held.rows] = held.cells.lengths
            has_list[held.rows] = held.kind != "none"
            if held.kind not in ("none", self.column.storage):
                right[held.rows] = False
                problem = self._of_kind(held.rows, counts, TF_DTYPES[held.kind])
                yield Misfit("kind", self._path, held.rows, problem, (held.kind,))
        wrong = np.flatnonzero(right & ~self._fits(counts, has_list))
        none = counts[wrong] == 0
        yield Misfit("missing", self._path, wrong[none], self._missing())
        problem = self._of_kind(wrong[~none], counts, TF_DTYPES[self.column.storage])
        found = np.unique(counts[wrong[~none]])[:FEW].tolist()
        yield Misfit("count", self._path, wrong[~none], problem, tuple(found))

    @property
    def _path(self) -> Path:
        return (self.section, self.column.key)

    def _fits(self, counts: Ints, has_list: Mask) -> Mask:
        """Whether a row has as many values as it should."""
        if self._whole:
            return np.asarray((counts == self._size) & has_list)
        if self._default:
            return np.asarray((counts == self._size) | ~has_list)
        return np.asarray(counts % max(1, self._size) == 0)

    @property
    def _size(self) -> int:
        return math.prod(getattr(self.column.layout, "shape", ()))

    @property
    def _default(self) -> bool:
        layout = self.column.layout
        return self.section != "sequence" and isinstance(layout, Fixed) and layout.default is not None

    @property
    def _whole(self) -> bool:
        """Whether each has one cell."""
        kinds = Fixed | Sequence if self.section == "sequence" else Fixed
        return isinstance(self.column.layout, kinds) and not self._default

    @property
    def _expected(self) -> str:
        dtype = TF_DTYPES[self.column.storage]
        if self._whole or self._default:
            return f"{self._size} {dtype}"
        number = "any number of" if self._size <= 1 else f"a multiple of {self._size}"
        return f"{number} {dtype}"

    def _of_kind(self, rows: Ints, counts: Ints, name: str) -> Callable[[int], Problem]:
        return lambda place: Problem(expected=self._expected, got=f"{counts[rows[place]]} {name}")

    def _missing(self) -> Callable[[int], Problem]:
        def problem(place: int) -> Problem:
            if self._default:
                hint = "without the key it would have its default"
                return Problem(expected="values", got="an empty list", hint=hint)
            return Problem(expected=self._expected, got="none")

        return problem


def _values(feature: Feature, cells: Cells, rows: Ints, path: Path) -> Iterator[Misfit]:
    """What the feature would not take of values whose kind and number are right."""
    for found in unfit(feature, cells) if cells.rows else ():
        places = found.rows

        def problem(place: int, told: Callable[[int], Problem] = found.problem, at: Ints = places) -> Problem:
            return replace(told(int(at[place])), path=path)

        yield Misfit("value", path, rows[places], problem)


def _of_feature(misfit: Misfit, feature: Feature, path: Path) -> Misfit:
    """A misfit of a key as one of its feature."""
    key = misfit.path[-1]
    hint = "" if key == feature.name else f"stored under `{key}`"

    def problem(place: int) -> Problem:
        found = misfit.problem(place)
        return replace(found, path=path, hint=found.hint or hint)

    return replace(misfit, path=path, problem=problem)


def _said(
    path: Path, expected: str | Callable[[int], str], got: str | Callable[[int], str]
) -> Callable[[int], Problem]:
    def problem(place: int) -> Problem:
        texts = [text if isinstance(text, str) else text(place) for text in (expected, got)]
        return Problem(path=path, expected=texts[0], got=texts[1])

    return problem
