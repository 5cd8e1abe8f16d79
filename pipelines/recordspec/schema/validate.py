"""Validates decoded records against a schema, without TensorFlow: which rows violate it, and why.

The one home of this rule: `check`, blocks made of records, rows read from TFRecord files, and the explanation
of what TensorFlow refuses all ask it. Tests compare it with TensorFlow, which refuses nothing that is valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from recordspec.errors import Path, Problem, RecordError
from recordspec.schema.feature_set import EqualCounts, FeatureSet, columns_in
from recordspec.schema.features import Feature
from recordspec.wire import proto
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    Mask,
    counts_of,
    flat_of,
    is_list,
    items_of,
    list_array,
    offsets,
    present_in,
    storage_of,
    take,
    values_array,
    width_of,
)
from recordspec.wire.columns import TF_DTYPES, Column, Place, Ragged, Sequence, Sparse
from recordspec.wire.record_batch import RecordBatch

# Sorts of violations, by which reports count them.
Code = Literal["record", "refused", "misread", "missing", "kind", "count", "value"]


@dataclass(frozen=True)
class Violation:
    """Rows that violate the schema, all for one reason.

    Attributes:
        path: the path of the section and the feature.
        rows: ascending, int64 `[m]`. A row may be in it more than once, for several of its steps.
        problem: the problem of the row at an index of `rows`.
    """

    code: Code
    path: Path
    rows: Ints
    problem: Callable[[int], Problem]

    def only(self, rows: Mask) -> Violation:
        """The violation of only these rows."""
        places = np.flatnonzero(rows[self.rows])
        if len(places) == len(self.rows):
            return self
        return replace(self, rows=self.rows[places], problem=lambda place: self.problem(int(places[place])))

    def at_steps(self, owners: Ints, within: Ints) -> Violation:
        """Converts a violation of steps to one of the rows that own them."""

        def problem(place: int) -> Problem:
            of_step = self.problem(place)
            return replace(of_step, path=(*of_step.path, int(within[self.rows[place]])))

        return replace(self, rows=owners[self.rows], problem=problem)


def violations(schema: FeatureSet, records: RecordBatch, *, values: bool = True) -> Iterator[Violation]:
    """The violations of records that could be decoded.

    Args:
        values: whether values are validated as well; if not, only their types and numbers.
    """
    for place, feature in schema._placed:
        yield from feature_violations(place, feature, records, values=values)
    for equal in schema._equal_counts:
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
    of_other = np.zeros(records.rows, bool)
    for column in schema.columns("sequence"):
        of_other |= _present(records.features.get(column.key, ()), records.rows)
    for key in records.sequence:
        if not of_other.any():
            break
        of_other &= ~_present(records.sequence[key], records.rows)
    return np.flatnonzero(of_other)


def other_message(schema: FeatureSet) -> Problem:
    """The problem of a row of `of_other_message`."""
    names = {"example": "an Example", "sequence_example": "a SequenceExample"}
    (other,) = names.keys() - {schema.record}
    expected = f"{names[schema.record]}, as the spec has it"
    return Problem(expected=expected, got=names[other], hint=f"a spec with `record: {other}` reads it")


def feature_violations(
    place: Place, feature: Feature, records: RecordBatch, *, values: bool = True
) -> Iterator[Violation]:
    """The violations of one feature, as `violations` returns those of all."""
    decoded = np.ones(records.rows, bool)
    decoded[list(records.broken)] = False
    validate = _in_steps if place.in_steps else _in_rows
    for each in validate(place, feature, records, values):
        violation = each.only(decoded)
        if len(violation.rows):
            yield violation


def check_structure(placed: Iterable[tuple[Place, Feature]], records: RecordBatch) -> None:
    """Raises RecordError, which names the row, for the first record that could not be decoded, or in which
    a feature has another type, or another number of values; their values are not validated."""
    row, problems = next(records.problems, (records.rows, ()))
    structures = [
        violation
        for place, feature in placed
        for violation in feature_violations(place, feature, records, values=False)
    ]
    first = min((int(violation.rows[0]) for violation in structures), default=records.rows)
    if first < row:
        row, problems = (
            first,
            tuple(structure.problem(0) for structure in structures if structure.rows[0] == first),
        )
    if problems:
        raise RecordError(problems, row)


def _in_rows(place: Place, feature: Feature, records: RecordBatch, values: bool) -> Iterator[Violation]:
    """Validates a feature of an Example, or of the context of a SequenceExample."""
    columns, path = columns_in(place, feature), (place.section, feature.name)
    valid = np.ones(records.rows, bool)
    for column in columns:
        arrays = records.features.get(column.key, ())
        for violation in _key_violations(column, place, records.rows, arrays, feature):
            valid[violation.rows] = False
            yield violation
    for violation in _inconsistent(columns, records.features, valid, path, values):
        valid[violation.rows] = False
        yield violation
    for array, rows in _values(columns, records.features, valid) if values else ():
        yield from _invalid(feature, array, rows, path)


def _in_steps(place: Place, feature: Feature, records: RecordBatch, values: bool) -> Iterator[Violation]:
    """Validates a feature of the feature lists of a SequenceExample."""
    columns, path = columns_in(place, feature), (place.section, feature.name)
    valid = np.ones(records.rows, bool)
    for column in columns:
        arrays = records.sequence.get(column.key, ())
        violations = []
        if feature.missing == "error":
            missing = np.flatnonzero(~_present(arrays, records.rows))
            problem = _problem(path, "a list of steps", "none", "`missing: empty` accepts it")
            violations.append(Violation("missing", path, missing, problem))
        if arrays:
            violations += _of_steps(place, feature, column, arrays, values and not _is_aligned(columns))
        for violation in violations:
            valid[violation.rows] = False
            yield violation
    if len(columns) > 1:
        yield from _inconsistent_steps(columns, records, valid, feature, path, values)


def _of_steps(
    place: Place, feature: Feature, column: Column, arrays: tuple[ArrowArray, ...], values: bool
) -> Iterator[Violation]:
    path, counts = (place.section, feature.name), counts_of(arrays[0])
    owners, within = _owners(counts)
    valid = np.ones(len(owners), bool)
    steps = tuple(map(items_of, arrays))
    for violation in _key_violations(column, place, len(owners), steps, feature):
        valid[violation.rows] = False
        yield violation.at_steps(owners, within)
    for array, numbers in _stored(steps, column, valid) if values else ():
        if not isinstance(column.layout, Sequence):
            for violation in _invalid(feature, array, numbers, path):
                yield violation.at_steps(owners, within)
        elif valid.all():
            rows = np.flatnonzero(present_in(arrays[0]))
            size = max(1, math.prod(column.layout.shape))
            joined = list_array(values_array(flat_of(array)), offsets(counts[rows] * size))
            yield from _invalid(feature, joined, rows, path)


def _owners(counts: Ints) -> tuple[Ints, Ints]:
    """The row of each step, and the index of the step in the row."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return owners, np.arange(len(owners)) - np.repeat(offsets(counts)[:-1], counts)


def _key_violations(
    column: Column, place: Place, rows: int, arrays: tuple[ArrowArray, ...], feature: Feature
) -> Iterator[Violation]:
    """Rows or steps whose list under a key has another type, or another number of values; each once."""
    path, size = (place.section, feature.name), math.prod(column.cell)
    has_default = not place.in_steps and column.has_default
    whole = column.is_whole(place.section)
    if len(arrays) == 1 and _all_fit(arrays[0], column, size if whole or has_default else None):
        return
    number = f"{size}" if whole or has_default else "any number of" if size <= 1 else f"a multiple of {size}"
    expected = f"{number} {TF_DTYPES[column.storage]}"
    hint = "" if column.key == feature.name else f"stored under `{column.key}`"
    counts, has_list = np.zeros(rows, np.int64), np.zeros(rows, bool)
    right = np.ones(rows, bool)
    for array in arrays:
        kind = storage_of(array)
        if kind == "none":
            continue
        here = present_in(array)
        has_list |= here
        counts += counts_of(array)
        if kind != column.storage:
            right &= ~here
            wrong = np.flatnonzero(here)
            got = _of(counts[wrong], f" {TF_DTYPES[kind]}")
            yield Violation("kind", path, wrong, _problem(path, expected, got, hint))
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
    yield Violation("count", path, wrong, _problem(path, expected, got, hint))


def _all_fit(array: ArrowArray, column: Column, size: int | None) -> bool:
    """Whether the type of an array says that all rows or steps have `size` values of the column's type; with
    None any number of single ones will do."""
    if storage_of(array) != column.storage:
        return False
    if size is None:
        return math.prod(column.cell) <= 1
    return not array.null_count and (width_of(array) if is_list(array) else 1) == size


def _present(arrays: tuple[ArrowArray, ...], rows: int) -> Mask:
    """Which rows have a list of any kind."""
    present = np.zeros(rows, bool)
    for array in arrays:
        present |= present_in(array)
    return present


def _stored(arrays: tuple[ArrowArray, ...], column: Column, valid: Mask) -> Iterator[tuple[ArrowArray, Ints]]:
    """The lists of the column's type, of rows or steps that are valid, and the number of each."""
    for array in arrays:
        if storage_of(array) == column.storage:
            rows = np.flatnonzero(valid & present_in(array) if array.null_count else valid)
            yield array if len(rows) == len(valid) else take(array, rows), rows


def _invalid(feature: Feature, array: ArrowArray, rows: Ints, path: Path) -> Iterator[Violation]:
    """Invalid values of the right type and number."""
    for invalid, problem_of in feature.invalid_stored(array) if len(rows) else ():

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
    by_key: Mapping[str, tuple[ArrowArray, ...]],
    valid: Mask,
    path: Path,
    values: bool,
) -> Iterator[Violation]:
    """Rows or steps, valid so far, in which the values of several keys do not agree."""
    layout, key = columns[0].layout, columns[0].key
    if not isinstance(layout, Ragged | Sparse):
        return
    numbers = {column.key: _numbers(by_key.get(column.key, ()), column, len(valid)) for column in columns}
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
    columns: tuple[Column, ...], by_key: Mapping[str, tuple[ArrowArray, ...]], valid: Mask
) -> Iterator[tuple[ArrowArray, Ints]]:
    """The values of the first column, of rows or steps that are valid; of aligned columns those of all, item
    by item."""
    if not _is_aligned(columns):
        columns = columns[:1]
    parts = [part for column in columns for part in _stored(by_key.get(column.key, ()), column, valid)]
    if len(columns) == 1 or not parts:
        yield from parts
        return
    first, rows = parts[0]
    flat = np.stack([flat_of(array) for array, _ in parts], 1).reshape(-1)
    yield list_array(values_array(flat), offsets(counts_of(first) * len(parts))), rows


def _unaligned(key: str, numbers: Mapping[str, _Numbers], valid: Mask, path: Path) -> Iterator[Violation]:
    """Lists of different lengths."""
    wanted, right = numbers[key].counts, valid.copy()
    for other, others in numbers.items():
        bad = np.flatnonzero(right & (others.counts != wanted))
        right[bad] = False  # once, for the first list that differs
        expected = _of(wanted[bad], f" items under `{other}`, as under `{key}`")
        yield Violation("count", path, bad, _problem(path, expected, _of(others.counts[bad])))


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
        other_numbers = numbers[index]
        bad = np.flatnonzero(valid & (other_numbers.counts != wanted))
        expected = _of(wanted[bad], f" indices under `{index}`, one for each value")
        yield Violation("count", path, bad, _problem(path, expected, _of(other_numbers.counts[bad])))
        outside = (other_numbers.least < 0) | (other_numbers.most >= size)
        bad = np.flatnonzero(valid & (other_numbers.counts == wanted) & outside & values)
        indices = np.where(other_numbers.least[bad] < 0, other_numbers.least[bad], other_numbers.most[bad])
        within = f"indices from 0 to {size - 1} under `{index}`"
        yield Violation("count", path, bad, _problem(path, within, _of(indices)))


def _numbers(arrays: tuple[ArrowArray, ...], column: Column, rows: int) -> _Numbers:
    numbers = _Numbers(*(np.zeros(rows, np.int64) for _ in range(4)))
    for array in arrays:
        if storage_of(array) == column.storage:
            counts = counts_of(array)
            numbers.counts[:] = counts
            some = np.flatnonzero(counts)
            if column.storage == "int64" and len(some):
                flat, starts = flat_of(array), offsets(counts)[some]
                numbers.sums[some] = np.add.reduceat(flat, starts)
                numbers.least[some] = np.minimum.reduceat(flat, starts)
                numbers.most[some] = np.maximum.reduceat(flat, starts)
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
    by_key = {column.key: records.sequence.get(column.key, ()) for column in columns}
    (key, counts), *others = ((key, _step_counts(steps, records.rows)) for key, steps in by_key.items())
    for other, number in others:
        rows = np.flatnonzero(valid & (number != counts))
        valid[rows] = False
        expected = _of(counts[rows], f" steps under `{other}`, as under `{key}`")
        yield Violation("count", path, rows, _problem(path, expected, _of(number[rows])))
    aligned = {key: _steps_of(lists, valid) for key, lists in by_key.items()}
    owners, within = _owners(counts * valid)
    valid = np.ones(len(owners), bool)
    for violation in _inconsistent(columns, aligned, valid, path, values):
        valid[violation.rows] = False
        yield violation.at_steps(owners, within)
    for array, steps in _values(columns, aligned, valid) if values and _is_aligned(columns) else ():
        for violation in _invalid(feature, array, steps, path):
            yield violation.at_steps(owners, within)


def _unequal(schema: FeatureSet, equal: EqualCounts, records: RecordBatch) -> Iterator[Violation]:
    """Rows in which features that are valid do not have equally many values."""
    valid = np.ones(records.rows, bool)
    valid[list(records.broken)] = False
    for place, feature in schema._placed:
        if feature.name not in (equal.first[0], equal.second[0]):
            continue
        for violation in feature_violations(place, feature, records, values=False):
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
    keys = [place.key for place in equal.places]
    arrays = [records.keys_in(equal.section).get(key, ()) for key in keys]
    if equal.places[0].in_steps:
        lists = arrays
        steps = [_step_counts(of_key, records.rows) for of_key in lists]
        if equal.steps:
            return steps, owners
        valid = valid & (steps[0] == steps[1])
        owners, _ = _owners(steps[0] * valid)
        arrays = [_steps_of(of_key, valid) for of_key in lists]
    columns = {column.key: column for column in schema.columns(equal.section)}
    numbers = [_numbers(one, columns[key], len(owners)).counts for key, one in zip(keys, arrays, strict=True)]
    sizes = equal.first[2], equal.second[2]
    return [number // size for number, size in zip(numbers, sizes, strict=True)], owners


def _step_counts(arrays: tuple[ArrowArray, ...], rows: int) -> Ints:
    """The number of steps of each row; 0 without a list of steps."""
    return counts_of(arrays[0]) if arrays else np.zeros(rows, np.int64)


def _steps_of(arrays: tuple[ArrowArray, ...], rows: Mask) -> tuple[ArrowArray, ...]:
    """The steps of these rows."""
    return tuple(items_of(array if rows.all() else take(array, np.flatnonzero(rows))) for array in arrays)


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
