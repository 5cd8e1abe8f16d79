"""Validates decoded records against a schema, without TensorFlow: which rows violate it, and why.

The one home of this rule: `check`, blocks made of records, rows read from TFRecord files, and the explanation
of what TensorFlow refuses all ask it. Tests compare it with TensorFlow, which refuses nothing that is valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Literal

import numpy as np

from recordspec.errors import Path, Problem, RecordError
from recordspec.spec.feature_set import EqualCounts, FeatureSet, columns_in
from recordspec.spec.features import Feature
from recordspec.spec.invalid_values import invalid_values
from recordspec.wire import proto
from recordspec.wire.columns import (
    TF_DTYPES,
    Cells,
    Column,
    KeySteps,
    KeyValues,
    Ragged,
    Section,
    Sequence,
    Sparse,
    merged,
    of_kind,
    only_steps,
)
from recordspec.wire.record_batch import RecordBatch
from recordspec.wire.strings import Ints, Mask, offsets

# Sorts of violations, by which reports count them.
Code = Literal["record", "refused", "misread", "missing", "kind", "count", "value"]
# The most examples of `Violation.found`.
FEW = 8


@dataclass(frozen=True)
class Violation:
    """Rows that violate the schema, all for one reason.

    Attributes:
        path: the path of the section and the feature.
        rows: ascending, int64 `[m]`. A row may be in it more than once, for several of its steps.
        problem: the problem of the row at an index of `rows`.
        found: some of the actual values: a kind of list, or numbers of values.
    """

    code: Code
    path: Path
    rows: Ints
    problem: Callable[[int], Problem]
    found: tuple[str | int, ...] = ()

    def only(self, rows: Mask) -> Violation:
        """The violation of only these rows."""
        places = np.flatnonzero(rows[self.rows])
        if len(places) == len(self.rows):
            return self
        return replace(self, rows=self.rows[places], problem=lambda place: self.problem(int(places[place])))

    def at_steps(self, owners: Ints, within: Ints) -> Violation:
        """Converts a violation of steps to one of the rows that own them."""

        def problem(place: int) -> Problem:
            found = self.problem(place)
            return replace(found, path=(*found.path, int(within[self.rows[place]])))

        return replace(self, rows=owners[self.rows], problem=problem)


def violations(schema: FeatureSet, records: RecordBatch, *, values: bool = True) -> Iterator[Violation]:
    """The violations of records that could be decoded.

    Args:
        values: whether values are validated as well; if not, only their types and numbers.
    """
    for section, feature in schema.placed:
        yield from feature_violations(section, feature, records, values=values)
    for equal in schema.equal_counts:
        yield from _unequal(schema, equal, records)


def of_other_message(
    schema: FeatureSet, records: RecordBatch, data: Callable[[int], bytes | memoryview]
) -> Ints:
    """The rows that are SequenceExamples where the schema has Examples; or Examples, with features of the
    steps, where it has SequenceExamples. Such a row is valid if the schema asks for nothing that it lacks.

    Args:
        data: returns the bytes of a row.
    """
    if schema.record == "example":
        return np.array([row for row in records.unknown_fields if proto.has_lists(data(row))], np.int64)
    of_steps, with_lists = np.zeros(records.rows, bool), np.zeros(records.rows, bool)
    for column in schema.columns("sequence"):
        for values in records.features.get(column.key, ()):
            of_steps[values.rows] = True
    for steps in chain.from_iterable(records.sequence.values()):
        with_lists[steps.rows] = True
    return np.flatnonzero(of_steps & ~with_lists)


def other_message(schema: FeatureSet) -> Problem:
    """The problem of a row of `of_other_message`."""
    names = {"example": "an Example", "sequence_example": "a SequenceExample"}
    (other,) = names.keys() - {schema.record}
    expected = f"{names[schema.record]}, as the spec has it"
    return Problem(expected=expected, got=names[other], hint=f"a spec with `record: {other}` reads it")


def feature_violations(
    section: Section, feature: Feature, records: RecordBatch, *, values: bool = True
) -> Iterator[Violation]:
    """The violations of one feature, as `violations` returns those of all."""
    decoded = np.ones(records.rows, bool)
    decoded[list(records.broken)] = False
    validate = _in_steps if section == "sequence" else _in_rows
    for found in validate(section, feature, records, values):
        violation = found.only(decoded)
        if len(violation.rows):
            yield violation


def check_structure(placed: Iterable[tuple[Section, Feature]], records: RecordBatch) -> None:
    """Raises RecordError, which names the row, for the first record that could not be decoded, or in which
    a feature has another type, or another number of values; their values are not validated."""
    row, problems = next(records.problems, (records.rows, ()))
    found = [
        violation
        for section, feature in placed
        for violation in feature_violations(section, feature, records, values=False)
    ]
    first = min((int(violation.rows[0]) for violation in found), default=records.rows)
    if first < row:
        row, problems = first, tuple(one.problem(0) for one in found if one.rows[0] == first)
    if problems:
        raise RecordError(problems, row)


def _in_rows(section: Section, feature: Feature, records: RecordBatch, values: bool) -> Iterator[Violation]:
    """Validates a feature of an Example, or of the context of a SequenceExample."""
    columns, path = columns_in(section, feature), (section, feature.name)
    valid = np.ones(records.rows, bool)
    for column in columns:
        found = records.features.get(column.key, ())
        for violation in _key_violations(column, section, records.rows, found, feature):
            valid[violation.rows] = False
            yield violation
    for violation in _inconsistent(columns, records.features, valid, path, values):
        valid[violation.rows] = False
        yield violation
    if values:
        for held in _values(columns, records.features, valid):
            yield from _invalid(feature, held.cells, held.rows, path)


def _in_steps(section: Section, feature: Feature, records: RecordBatch, values: bool) -> Iterator[Violation]:
    """Validates a feature of the feature lists of a SequenceExample."""
    columns, path = columns_in(section, feature), (section, feature.name)
    valid = np.ones(records.rows, bool)
    for column in columns:
        found = records.sequence.get(column.key, ())
        violations = []
        if feature.missing == "error":
            missing = np.ones(records.rows, bool)
            for steps in found:
                missing[steps.rows] = False
            problem = _problem(path, "a list of steps", "none", "`missing: empty` accepts it")
            violations.append(Violation("missing", path, np.flatnonzero(missing), problem))
        for steps in found:
            violations += _of_steps(section, feature, column, steps, values and not _is_aligned(columns))
        for violation in violations:
            valid[violation.rows] = False
            yield violation
    if len(columns) > 1:
        yield from _inconsistent_steps(columns, records, valid, feature, path, values)


def _of_steps(
    section: Section, feature: Feature, column: Column, steps: KeySteps, values: bool
) -> Iterator[Violation]:
    path = (section, feature.name)
    owners, within = _owners(steps.rows, steps.counts)
    valid = np.ones(len(owners), bool)
    for violation in _key_violations(column, section, len(owners), steps.values, feature):
        valid[violation.rows] = False
        yield violation.at_steps(owners, within)
    if not values:
        return
    if isinstance(column.layout, Sequence) and valid.all():
        size = max(1, math.prod(column.layout.shape))
        for held in of_kind(steps.values, column.storage, valid):
            cells = replace(held.cells, lengths=steps.counts * size, rows=len(steps.rows))
            yield from _invalid(feature, cells, steps.rows, path)
    elif not isinstance(column.layout, Sequence):
        for held in of_kind(steps.values, column.storage, valid):
            for violation in _invalid(feature, held.cells, held.rows, path):
                yield violation.at_steps(owners, within)


def _owners(rows: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """The row of each step, and the index of the step in the row."""
    owners = np.repeat(rows, counts)
    return owners, np.arange(len(owners)) - np.repeat(offsets(counts)[:-1], counts)


def _key_violations(
    column: Column, section: Section, rows: int, found: tuple[KeyValues, ...], feature: Feature
) -> Iterator[Violation]:
    """Rows or steps whose list under a key has another type, or another number of values; each once."""
    path, size = (section, feature.name), math.prod(column.cell)
    has_default = section != "sequence" and column.has_default
    whole = column.is_whole(section)
    number = f"{size}" if whole or has_default else "any number of" if size <= 1 else f"a multiple of {size}"
    expected = f"{number} {TF_DTYPES[column.storage]}"
    hint = "" if column.key == feature.name else f"stored under `{column.key}`"
    counts, has_list = np.zeros(rows, np.int64), np.zeros(rows, bool)
    right = np.ones(rows, bool)
    for held in found:
        counts[held.rows] = held.cells.lengths
        has_list[held.rows] = held.kind != "none"
        if held.kind not in ("none", column.storage):
            right[held.rows] = False
            got = _of(counts[held.rows], f" {TF_DTYPES[held.kind]}")
            yield Violation("kind", path, held.rows, _problem(path, expected, got, hint), (held.kind,))
    valid = counts == size if whole or has_default else counts % max(1, size) == 0
    if whole:
        valid &= has_list
    if has_default:
        valid |= ~has_list
    wrong = np.flatnonzero(right & ~valid)
    missing, wrong = wrong[counts[wrong] == 0], wrong[counts[wrong] != 0]
    problem = _problem(path, expected, "none", hint)
    if has_default:
        problem = _problem(path, "values", "an empty list", "without the key it would have its default")
    yield Violation("missing", path, missing, problem)
    got = _of(counts[wrong], f" {TF_DTYPES[column.storage]}")
    some = tuple(np.unique(counts[wrong])[:FEW].tolist())
    yield Violation("count", path, wrong, _problem(path, expected, got, hint), some)


def _invalid(feature: Feature, cells: Cells, rows: Ints, path: Path) -> Iterator[Violation]:
    """Invalid values of the right type and number."""
    for invalid, problem_of in invalid_values(feature, cells) if cells.rows else ():

        def problem(place: int, rows: Ints = invalid, of: Callable[[int], Problem] = problem_of) -> Problem:
            return replace(of(int(rows[place])), path=path)

        yield Violation("value", path, rows[invalid], problem)


# Values of several keys have to agree: row lengths with items, indices with sparse values.


@dataclass(frozen=True)
class _Numbers:
    """The number of values of each row; of integers also their sum, minimum and maximum."""

    counts: Ints
    sums: Ints
    least: Ints
    most: Ints


def _inconsistent(
    columns: tuple[Column, ...],
    held: Mapping[str, tuple[KeyValues, ...]],
    valid: Mask,
    path: Path,
    values: bool,
) -> Iterator[Violation]:
    """Rows or steps, valid so far, in which the values of several keys do not agree."""
    layout, key = columns[0].layout, columns[0].key
    if not isinstance(layout, Ragged | Sparse):
        return
    numbers = {column.key: _numbers(held.get(column.key, ()), column, valid) for column in columns}
    if _is_aligned(columns):
        yield from _unaligned(key, numbers, valid, path)
    elif isinstance(layout, Ragged):
        yield from _inconsistent_lengths(key, layout, numbers, valid, path)
    else:
        yield from _inconsistent_indices(key, layout, numbers, valid, path, values)


def _is_aligned(columns: tuple[Column, ...]) -> bool:
    """Whether the items of a value are stored in several lists, part by part."""
    return any(isinstance(column.layout, Ragged) and column.layout.aligned_with for column in columns)


def _values(
    columns: tuple[Column, ...], held: Mapping[str, tuple[KeyValues, ...]], valid: Mask
) -> Iterator[KeyValues]:
    """The values of the first column; of aligned columns those of all, item by item."""
    found = [of_kind(held.get(column.key, ()), column.storage, valid) for column in columns]
    if not _is_aligned(columns):
        yield from found[0]
        return
    parts = [merged(some) for some in found if some]
    if parts:
        first, flat = parts[0], np.stack([np.asarray(part.cells.flat) for part in parts], 1)
        lengths = first.cells.lengths * len(parts)
        yield replace(first, cells=replace(first.cells, flat=flat.reshape(-1), lengths=lengths))


def _unaligned(key: str, numbers: Mapping[str, _Numbers], valid: Mask, path: Path) -> Iterator[Violation]:
    """Lists of different lengths."""
    wanted, right = numbers[key].counts, valid.copy()
    for other, found in numbers.items():
        bad = np.flatnonzero(right & (found.counts != wanted))
        right[bad] = False  # once, for the first list that differs
        expected = _of(wanted[bad], f" items under `{other}`, as under `{key}`")
        yield Violation("count", path, bad, _problem(path, expected, _of(found.counts[bad])))


def _inconsistent_lengths(
    key: str, layout: Ragged, numbers: Mapping[str, _Numbers], valid: Mask, path: Path
) -> Iterator[Violation]:
    """Row lengths that do not add up to the number of items."""
    size = max(1, math.prod(layout.shape))
    for outer, inner in pairwise((*layout.row_lengths, key)):
        counts = numbers[inner].counts // (size if inner == key else 1)
        totals, least = numbers[outer].sums, numbers[outer].least
        bad = np.flatnonzero(valid & (least < 0))
        yield Violation("count", path, bad, _problem(path, f"lengths under `{outer}`", _of(least[bad])))
        bad = np.flatnonzero(valid & (totals != counts) & (least >= 0))
        expected = _of(totals[bad], f" items, as `{outer}` says")
        yield Violation("count", path, bad, _problem(path, expected, _of(counts[bad])))


def _inconsistent_indices(
    key: str, layout: Sparse, numbers: Mapping[str, _Numbers], valid: Mask, path: Path, values: bool
) -> Iterator[Violation]:
    """Indices of another number than the values, or outside the tensor."""
    wanted = numbers[key].counts
    for index, size in zip(layout.index_keys, layout.size, strict=True):
        found = numbers[index]
        bad = np.flatnonzero(valid & (found.counts != wanted))
        expected = _of(wanted[bad], f" indices under `{index}`, one for each value")
        yield Violation("count", path, bad, _problem(path, expected, _of(found.counts[bad])))
        outside = (found.least < 0) | (found.most >= size)
        bad = np.flatnonzero(valid & (found.counts == wanted) & outside & values)
        indices = np.where(found.least[bad] < 0, found.least[bad], found.most[bad])
        within = f"indices from 0 to {size - 1} under `{index}`"
        yield Violation("count", path, bad, _problem(path, within, _of(indices)))


def _numbers(found: tuple[KeyValues, ...], column: Column, valid: Mask) -> _Numbers:
    numbers = _Numbers(*(np.zeros(len(valid), np.int64) for _ in range(4)))
    for held in of_kind(found, column.storage, valid):
        lengths = held.cells.counts
        numbers.counts[held.rows] = lengths
        some = lengths > 0
        if held.kind == "int64" and some.any():
            starts, rows, flat = offsets(lengths)[:-1][some], held.rows[some], np.asarray(held.cells.flat)
            numbers.sums[rows] = np.add.reduceat(flat, starts)
            numbers.least[rows] = np.minimum.reduceat(flat, starts)
            numbers.most[rows] = np.maximum.reduceat(flat, starts)
    return numbers


def _inconsistent_steps(
    columns: tuple[Column, ...],
    records: RecordBatch,
    valid: Mask,
    feature: Feature,
    path: Path,
    values: bool,
) -> Iterator[Violation]:
    """Steps, of rows valid so far, in which the values of several keys do not agree."""
    found = {column.key: records.sequence.get(column.key, ()) for column in columns}
    (key, counts), *others = ((key, step_counts(steps, records.rows)) for key, steps in found.items())
    for other, number in others:
        rows = np.flatnonzero(valid & (number != counts))
        valid[rows] = False
        expected = _of(counts[rows], f" steps under `{other}`, as under `{key}`")
        yield Violation("count", path, rows, _problem(path, expected, _of(number[rows])))
    counts = np.where(valid, counts, 0)
    aligned = {key: aligned_steps(steps, counts, valid) for key, steps in found.items()}
    owners, within = _owners(np.arange(records.rows), counts)
    valid = np.ones(len(owners), bool)
    for violation in _inconsistent(columns, aligned, valid, path, values):
        valid[violation.rows] = False
        yield violation.at_steps(owners, within)
    for held in _values(columns, aligned, valid) if values and _is_aligned(columns) else ():
        for violation in _invalid(feature, held.cells, held.rows, path):
            yield violation.at_steps(owners, within)


def _unequal(schema: FeatureSet, equal: EqualCounts, records: RecordBatch) -> Iterator[Violation]:
    """Rows in which features that are valid do not have equally many values."""
    valid = np.ones(records.rows, bool)
    valid[list(records.broken)] = False
    for name, _, _ in (equal.first, equal.second):
        for violation in feature_violations(equal.section, schema.names[name], records, values=False):
            valid[violation.rows] = False
    numbers, owners = _item_counts(schema, equal, records, valid)
    places = np.flatnonzero(valid[owners] & (numbers[0] != numbers[1]))

    def problem(place: int) -> Problem:
        return equal.problem(*(int(number[places[place]]) for number in numbers))

    if len(places):
        yield Violation("count", (equal.section, equal.second[0]), owners[places], problem)


def _item_counts(
    schema: FeatureSet, equal: EqualCounts, records: RecordBatch, valid: Mask
) -> tuple[list[Ints], Ints]:
    """How many values two features have in each row, or in each step of the valid rows with equally many
    steps; and the row of each number."""
    owners = np.arange(records.rows)
    keys = [key for _, key, _ in (equal.first, equal.second)]
    found = [records.features.get(key, ()) for key in keys]
    if equal.section == "sequence":
        lists = [records.sequence.get(key, ()) for key in keys]
        steps = [step_counts(one, records.rows) for one in lists]
        if equal.steps:
            return steps, owners
        valid = valid & (steps[0] == steps[1])
        counts = np.where(valid, steps[0], 0)
        owners, _ = _owners(owners, counts)
        found, valid = [aligned_steps(one, counts, valid) for one in lists], np.ones(len(owners), bool)
    columns = {column.key: column for column in schema.columns(equal.section)}
    numbers = [_numbers(one, columns[key], valid).counts for key, one in zip(keys, found, strict=True)]
    sizes = equal.first[2], equal.second[2]
    return [number // size for number, size in zip(numbers, sizes, strict=True)], owners


def step_counts(found: tuple[KeySteps, ...], rows: int) -> Ints:
    """The number of steps of each row; 0 without a list of steps."""
    counts = np.zeros(rows, np.int64)
    for steps in found:
        counts[steps.rows] = steps.counts
    return counts


def aligned_steps(found: tuple[KeySteps, ...], counts: Ints, rows: Mask) -> tuple[KeyValues, ...]:
    """The values of the steps of these rows, with steps numbered over all rows, which have `counts` each."""
    firsts, held = offsets(counts)[:-1], []
    for steps in (only_steps(one, rows) for one in found):
        _, within = _owners(steps.rows, steps.counts)
        places = np.repeat(firsts[steps.rows], steps.counts) + within
        held += [replace(one, rows=places[one.rows]) for one in steps.values]
    return tuple(held)


def _problem(
    path: Path, expected: str | Callable[[int], str], got: str | Callable[[int], str], hint: str = ""
) -> Callable[[int], Problem]:
    """A function from a place to the problem of its row; the texts may depend on the place."""

    def problem(place: int) -> Problem:
        texts = [text if isinstance(text, str) else text(place) for text in (expected, got)]
        return Problem(path=path, expected=texts[0], got=texts[1], hint=hint)

    return problem


def _of(numbers: Ints, what: str = "") -> Callable[[int], str]:
    """A function from a place to its number, followed by `what`."""
    return lambda place: f"{numbers[place]}{what}"
