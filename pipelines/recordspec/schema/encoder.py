"""Encodes rows to records: each feature validates its values, which are then encoded in one batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import compress
from operator import itemgetter
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.schema.feature_set import ALL_SECTIONS, FeatureSet, unknown_name
from recordspec.schema.features.feature import Feature, as_taken
from recordspec.schema.features.geometry import Coordinates
from recordspec.schema.lists import by_row, rows_of
from recordspec.schema.row_blocks import Sections, check_counts, records_with
from recordspec.schema.values import BadValue, is_missing
from recordspec.wire import arrays
from recordspec.wire.arrays import (
    ArrowArray,
    Mask,
    bytes_in,
    counts_of,
    flat_of,
    is_arrow,
    lengths_of,
    list_array,
    numbers_array,
    offsets,
    present_in,
    spread,
    to_arrow,
    values_array,
)
from recordspec.wire.columns import Column, Place, Section
from recordspec.wire.example import encode_entry, encode_record, entry_encoder, least_bytes

# Values of more bytes are encoded as a batch, which knows the largest record before it is made.
_LARGE = 1 << 20


def part_of(values: Any, start: int, stop: int) -> Any:
    """Rows `start` to `stop` of a column."""
    return arrays.part(values, start, stop) if is_arrow(values) else values[start:stop]


def with_missing(values: Any, present: Mask) -> Any:
    """A column of `len(present)` rows: those that are present have the values, the others none."""
    if present.all():
        return values
    if is_arrow(values):
        return spread(values, present)
    if isinstance(values, np.ndarray) and values.dtype == np.longdouble:
        values = _narrowed(values)
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iuf":
        scattered = np.zeros(len(present), values.dtype.newbyteorder("="))
        scattered[present] = values
        return numbers_array(scattered, present)
    kept = iter(values)
    return [next(kept) if here else None for here in present.tolist()]


def _narrowed(values: Any) -> Any:
    """Numbers of NumPy's long double, which Arrow lacks, as float64; in a list if that does not hold them."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float64)
    same = (narrow == values) | np.isnan(values)
    return narrow if same.all() else list(values)


def columns_of(
    schema: FeatureSet, rows: Sequence[Mapping[str, Any]], extra: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The values of each feature, and of the `extra` names, in these rows; None if a row has none.

    Raises RecordError for a row with another name: a misspelt name would otherwise lose a value.
    """
    columns: dict[str, Any] = {}
    complete = True
    for name in (*schema.names, *extra):
        try:
            columns[name] = list(map(itemgetter(name), rows))
        except KeyError:
            columns[name] = [row.get(name) for row in rows]
            complete = False
    # rows that have all names and no more cannot have an unknown one
    if not complete or int(lengths_of(rows).sum()) != len(rows) * len(columns):
        for index, row in enumerate(rows):
            unknown = [name for name in row if name not in columns]
            if unknown:
                problem = unknown_name(schema, unknown[0], columns, row)
                raise RecordError(problem.at(f"row {index}"), index)
    return columns


class RowEncoder:
    """Encodes single rows of a schema, value by value: for one row, that is much faster than NumPy.

    A feature whose value is not of a common type is encoded as a batch of one.
    """

    def __init__(self, schema: FeatureSet) -> None:
        self._schema = schema
        # whether a value depends on another: an image may turn its coordinates
        self._in_batches = schema._equal_counts or any(
            image.is_turned or schema.names[name].traits.mask_of for name, image in schema._images.items()
        )
        placed = () if schema._shared_keys else schema._placed  # such a schema is refused as a batch
        stored = [column.key for at, one in placed if not at.in_steps for column in one.columns()]
        self._places = {key: place for place, key in enumerate(sorted(stored, key=str.encode))}
        # without a name for what is looked up often: the encoder of a value, and the place of its entry
        self._features = [
            (
                feature.name,
                *_value_encoder(at, feature),
                self._places.get(feature.stored, 0),
                feature,
                at.in_steps,
            )
            for at, feature in placed
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return RowEncoder, (self._schema,)

    def encode(self, row: Mapping[str, Any]) -> bytes:
        """The record of a row. Raises RecordError with all that is wrong with it."""
        record = None if self._in_batches else self._encode_values(row)
        if record is None:
            (record,) = bytes_in(encode_batch(self._schema, columns_of(self._schema, [row]), 1))
        return record

    def _encode_values(self, row: Mapping[str, Any]) -> bytes | None:
        """The record; None if something is wrong, or large."""
        parts, known = [b""] * len(self._places), 0
        steps: dict[str, ArrowArray] = {}
        for name, encode_one, encode_stored, place, feature, in_steps in self._features:
            try:
                value = row[name]
                known += 1
            except KeyError:
                value = None
            stored = None if encode_one is None else encode_one(value)
            if stored is not None:
                parts[place] = encode_stored(stored)
                continue
            try:
                columns = _columns(feature, [value], 1, in_steps=in_steps)
            except BadValue:
                return None
            if any(least_bytes(array) > _LARGE for array in columns.values()):
                return None
            if in_steps:
                steps |= columns
                continue
            for key, array in columns.items():
                parts[self._places[key]] = encode_entry(key, array)
        if known != len(row):
            return None
        return encode_record(parts, steps if self._schema.record == "sequence_example" else None)


def _value_encoder(place: Place, feature: Feature) -> tuple[Any, Any]:
    """The feature's `encode_one`, and a function from its result to an entry of a record.

    None for a feature of steps or of several columns, and for a kind whose `encode` is not the one for which
    its `encode_one` was written.
    """
    columns = feature.columns()
    homes = [one for one in type(feature).__mro__ if {"encode", "encode_one"} & vars(one).keys()]
    if place.in_steps or len(columns) > 1 or "encode_one" not in vars(homes[0]):
        return None, None
    return feature.encode_one, entry_encoder(columns[0])


def encode_batch(
    schema: FeatureSet, columns: Mapping[str, Any], rows: int, *, framed: bool = False
) -> ArrowArray:
    """Encodes a batch to records, `large_binary`.

    Args:
        schema: the schema of the records.
        columns: for each feature its values: a list, a NumPy array `[rows, ...]`, or an array of Arrow, in
            which null is missing; an absent feature is missing in every row.
        rows: the number of rows.
        framed: whether each record is in its frame.

    Raises:
        RecordError: with all the problems of the first row that has any.
    """
    return records_of(schema, sections_of(schema, columns, rows), rows, framed=framed)


def records_of(schema: FeatureSet, sections: Sections, rows: int, *, framed: bool = False) -> ArrowArray:
    """The records that have these columns. Raises RecordError for one that is too large."""
    try:
        return records_with(schema, sections, rows, framed=framed)
    except RecordError as error:
        raise error.at(f"row {error.row}") from None


def sections_of(schema: FeatureSet, columns: Mapping[str, Any], rows: int) -> Sections:
    """The columns of the records of a batch, by section and key.

    Raises RecordError, and SpecError if columns are not those of the schema, or it cannot be written.
    """
    if schema._shared_keys:
        raise SpecError(schema._shared_keys)
    for name, values in columns.items():
        if name not in schema.names:
            raise SpecError(unknown_name(schema, name, schema.names, columns))
        if len(values) != rows:
            got = str(len(values))
            raise SpecError(Problem(where=schema.name, path=(name,), expected=f"{rows} values", got=got))
    sections: dict[Section, dict[str, ArrowArray]] = {section: {} for section in ALL_SECTIONS}
    bad: list[tuple[int, Problem]] = []
    for place, feature in schema._placed:
        try:
            values = _moved(schema, feature, columns)
            sections[place.section] |= _columns(feature, values, rows, in_steps=place.in_steps)
        except BadValue as error:
            bad.append((error.index, error.problem.under(place.section, feature.name)))
    if bad:
        row = min(index for index, _ in bad)
        raise RecordError([problem.at(f"row {row}") for at, problem in bad if at == row], row)
    try:
        check_counts(schema, sections, rows)
    except RecordError as error:
        raise error.at(f"row {error.row}") from None
    return sections


def _moved(schema: FeatureSet, feature: Feature, columns: Mapping[str, Any]) -> Any:
    """The values of a feature: masks and coordinates are turned as their images are when they are encoded."""
    values, image = columns.get(feature.name), schema._images.get(feature.name)
    if feature.traits.mask_of is None or image is None or values is None or image.name not in columns:
        return _turned(schema, feature, columns)
    masks = list(_with_none(values))
    for row, picture in enumerate(_with_none(columns[image.name])):
        if masks[row] is None or picture is None:
            continue  # refused later
        if feature.name not in schema.steps:
            masks[row] = feature._moved_with(row, masks[row], image, picture)
        elif len(steps := _listed(masks[row])) == len(pictures := _listed(picture)):
            pairs = zip(steps, pictures, strict=True)
            masks[row] = [feature._moved_with(row, mask, image, one) for mask, one in pairs]
    return masks


def _turned(schema: FeatureSet, feature: Feature, columns: Mapping[str, Any]) -> Any:
    """The values of a feature; of coordinates, as they are in images that are turned when they are encoded.

    Values that are invalid, and those of a row with another number of steps than of images, stay as they are,
    to be refused later.
    """
    values, image = columns.get(feature.name), schema._images.get(feature.name)
    image_values = None if image is None or not image.is_turned else columns.get(image.name)
    if values is None or image is None or image_values is None or not isinstance(feature, Coordinates):
        return values
    in_steps, image_in_steps = feature.name in schema.steps, image.name in schema.steps
    boxes, changed = list(_with_none(values)), False
    for row, picture in enumerate(_with_none(image_values)):
        turns = [image.turn_of(each) for each in (_listed(picture) if image_in_steps else [picture])]
        if not any(turns):
            continue
        each = _listed(boxes[row]) if in_steps else [boxes[row]]
        turns = turns if image_in_steps else turns * len(each)
        if len(each) != len(turns):
            continue
        with suppress(BadValue):
            pairs = zip(each, turns, strict=True)
            moved = [place if turn is None else feature.turned(place, turn) for place, turn in pairs]
            boxes[row], changed = moved if in_steps else moved[0], True
    return boxes if changed else values


def _with_none(values: Any) -> Any:
    """The values of a column, with None where one is missing."""
    return values.to_pylist() if is_arrow(values) else values


def _listed(value: Any) -> list[Any]:
    """The steps of a row; none of what is not a list."""
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim)
    return list(value) if listed else []


def _columns(feature: Feature, values: Any, rows: int, *, in_steps: bool) -> dict[str, ArrowArray]:
    """The columns of a feature, by key."""
    columns, present = feature.columns(), None
    if in_steps:
        encoded = _steps(feature, columns, values, rows)
    else:
        encoded, present = _arrays(feature, values, rows)
    return {
        column.key: array if present is None else spread(array, present)
        for column, array in zip(columns, encoded, strict=True)
    }


def _arrays(feature: Feature, values: Any, rows: int) -> tuple[tuple[ArrowArray, ...], Mask | None]:
    """The arrays of the rows that have a value, and which these are (None: all)."""
    if values is None:
        kept: Any = []
        present = np.zeros(rows, np.bool_)
    elif is_arrow(values) and values.null_count:
        kept, present = as_taken(feature, values.drop_null()), present_in(values)
    else:
        values = as_taken(feature, values)
        try:
            return feature.encode(values), None
        except BadValue:
            if is_arrow(values) or (present := _present(feature, values)).all():
                raise
        is_array = isinstance(values, np.ndarray)
        kept = values[present] if is_array else list(compress(values, present.tolist()))
    places, missing = np.flatnonzero(present), np.flatnonzero(~present)
    first_missing = int(missing[0]) if len(missing) else len(present)
    try:
        encoded = feature.encode(kept)
    except BadValue as bad:
        if feature.traits.optional or places[bad.index] < first_missing:
            raise bad.moved(int(places[bad.index])) from None
        raise _missing(feature, first_missing) from None
    if len(missing) and not feature.traits.optional:
        raise _missing(feature, first_missing)
    return encoded, present if len(missing) else None


def missing_problem(feature: Feature) -> Problem | None:
    """The problem of a row without a value of the feature; None if the value may be missing."""
    try:
        _arrays(feature, [None], 1)
    except BadValue as error:
        return error.problem
    return None


def _missing(feature: Feature, index: int) -> BadValue:
    expected = refusal(feature, None)
    hint = "" if expected is None else expected.hint
    text = "a value" if expected is None else expected.expected
    default = "default" in type(feature).__dataclass_fields__
    advice = "only a feature with a default may be missing" if default else hint
    return BadValue(index, text, "nothing", advice)


def _present(feature: Feature, values: Any) -> Mask:
    """None and NaT are missing, and NaN where it is not a value of the feature."""
    nan_is_missing = refusal(feature, float("nan")) is not None
    return np.array(
        [
            not is_missing(value)
            and not (nan_is_missing and isinstance(value, (float, np.floating)) and value != value)
            for value in values
        ],
        np.bool_,
    )


def refusal(feature: Feature, value: Any) -> Problem | None:
    """The reason why the feature does not accept this value; None if it does."""
    try:
        feature.encode([value])
    except BadValue as bad:
        return bad.problem
    return None


def _steps(feature: Feature, columns: Sequence[Column], values: Any, rows: int) -> tuple[ArrowArray, ...]:
    """The arrays of a feature of the sequence part, each with an item a step."""
    if values is None and rows:
        raise _missing(feature, 0)
    values = [] if values is None else values
    if is_arrow(values) and values.null_count:
        raise _missing(feature, int(np.argmin(present_in(values))))
    if feature.traits.spans_steps:
        # the values of whole sequences, as one list a step
        (column,), (array,) = columns, feature.encode(as_taken(feature, values))
        size, counts = math.prod(column.cell), counts_of(array)
        return (list_array(values_array(to_arrow(flat_of(array), size)), offsets(counts // size)),)
    flat, lengths = rows_of(values, "a list of steps")
    with by_row(lengths):
        encoded = feature.encode(as_taken(feature, flat))
    steps = np.full(len(values), lengths) if isinstance(lengths, int) else lengths
    return tuple(list_array(values_array(one), offsets(steps)) for one in encoded)
