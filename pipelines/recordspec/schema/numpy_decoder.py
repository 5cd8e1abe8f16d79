"""Decodes records, and the rows of blocks, to values of NumPy, without TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recordspec.errors import RecordError
from recordspec.schema.feature_set import FeatureSet
from recordspec.schema.features.feature import Feature
from recordspec.schema.features.geometry import Coordinates
from recordspec.schema.ragged_array import RaggedArray
from recordspec.schema.row_blocks import Sections, TakenRows, check_counts, stored_columns, stored_sections
from recordspec.schema.validate import check_structure
from recordspec.schema.values import BadValue
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    Mask,
    counts_of,
    flat_of,
    items_of,
    list_array,
    offsets,
    values_array,
)
from recordspec.wire.columns import Place
from recordspec.wire.record_batch import decode as decode_records
from recordspec.wire.record_batch import fixed_values


def decode(
    schema: FeatureSet, buffer: Bytes, starts: Ints, stops: Ints, *, padded: bool = True
) -> dict[str, Any]:
    """The values of records, by name: what `Schema.decode` returns of a batch, in NumPy.

    Args:
        buffer: uint8 `[bytes]`.
        starts, stops: of each record in it, int64 `[n]`.
        padded: whether values are padded to the longest; if not, they are RaggedArrays.

    Raises RecordError, with the row, for a record that does not decode.
    """
    fixed, in_lists = schema._fixed, schema.record == "sequence_example"
    found = batch = None
    if not fixed.others:
        found = fixed_values(buffer, starts, stops, fixed.keys, sequence=in_lists)
    if found is None:
        keys = schema._stored_keys
        batch = decode_records(buffer, starts, stops, sequence=in_lists, keys=keys, fixed=fixed.keys)
        found = batch.fixed
        if found is None:
            check_structure(schema._placed, batch)
            return decode_sections(schema, stored_sections(schema, batch), batch.rows, padded=padded)
    values, lengths = found
    decoded = {
        name: values[key].reshape(-1, *shape) if shape else values[key]
        for name, (key, shape) in fixed.shapes.items()
    }
    if batch is not None:
        check_structure(fixed.others, batch)
    unpadded = {} if padded else schema._padded_to_batch
    for place, feature in fixed.lists:
        columns = {place.key: RaggedArray(values[place.key], lengths[place.key])}
        make = unpadded[feature.name].unpadded_numpy if feature.name in unpadded else feature.decode_numpy
        decoded |= _named(feature, _made(schema, place, feature, columns, make))
    if batch is not None:
        sections = stored_columns(fixed.columns, batch)
        decoded |= decode_sections(schema, sections, batch.rows, padded=padded, placed=fixed.others)
    return {name: decoded[name] for name in schema.outputs}


def _named(feature: Feature, value: Any) -> dict[str, Any]:
    """The values of a feature by the names of its outputs."""
    return value if isinstance(value, dict) else {feature.name: value}


def decode_taken(schema: FeatureSet, taken: TakenRows, *, padded: bool = True) -> dict[str, Any]:
    """The values of rows of blocks, by name, padded or not. Raises RecordError, with the row."""
    direct: dict[str, Any] = {}
    for place, feature in schema._placed:
        key, shape = schema._fixed.shapes.get(feature.name, ("", ()))
        if key and schema._fixed.keys.of[key][0] != "bytes":
            values = taken.numbers(place.section, key, math.prod(shape))
            if values is not None:
                direct[feature.name] = values.reshape(-1, *shape)
    placed = tuple((place, feature) for place, feature in schema._placed if feature.name not in direct)
    keys = {schema._fixed.shapes[name][0] for name in direct}
    sections = taken.sections(without=keys)
    decoded = direct | decode_sections(schema, sections, taken.count, padded=padded, placed=placed)
    return {name: decoded[name] for name in schema.outputs}


def decode_sections(
    schema: FeatureSet,
    sections: Sections,
    rows: int,
    *,
    padded: bool = True,
    placed: tuple[tuple[Place, Feature], ...] | None = None,
) -> dict[str, Any]:
    """The values of rows of these columns, padded or not. Raises RecordError, with the row.

    Args:
        placed: the features to decode, with their places; all by default.
    """
    check_counts(schema, sections, rows)
    decoded: dict[str, Any] = {}
    sides: dict[str, Any] = {}  # height and width before an image is resized
    resized = {image.name: image for image in schema._images.values() if image.resizing is not None}
    unpadded = {} if padded else schema._padded_to_batch
    for place, feature in schema._placed if placed is None else placed:
        columns = {column.key: sections[place.section][column.key] for column in feature.columns()}
        make = feature.decode_numpy
        if feature.name in resized:
            make = resized[feature.name].decode_numpy_with_sides
        elif feature.name in unpadded:
            make = unpadded[feature.name].unpadded_numpy
        value = _made(schema, place, feature, columns, make)
        if feature.name in resized:
            value, sides[feature.name] = value
        decoded |= _named(feature, value)
    kept: dict[str, Mask] = {}  # by the names of all features that lose items
    for name, image in schema._images.items():
        follow = schema.names[name]
        if not isinstance(follow, Coordinates) or image.resizing is None:
            continue
        value, each = decoded[name], sides[image.name]
        steps = None
        if name in schema.steps:
            steps, value = value.lengths, value.values
            each = each.values if isinstance(each, RaggedArray) else np.repeat(each, steps, axis=0)
        value, mask = follow.resized_numpy(value, each, image.resizing)
        decoded[name] = value if steps is None else RaggedArray(value, steps)
        if mask is not None and follow.dropped_with is not None:
            kept |= dict.fromkeys((name, *follow.dropped_with), mask)
    for name, mask in kept.items():
        decoded[name] = _masked(decoded[name], mask, in_steps=name in schema.steps)
    return {name: _writable(value) for name, value in decoded.items()}


def _writable(value: Any) -> Any:
    """The value in memory of its own: a view of Arrow's cannot be changed, and PyTorch warns of it."""
    if isinstance(value, RaggedArray):
        return replace(value, values=_writable(value.values), lengths=_writable(value.lengths))
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()
    return value


def _made(
    schema: FeatureSet,
    place: Place,
    feature: Feature,
    columns: Mapping[str, Any],
    make: Callable[[Mapping[str, Any]], Any],
) -> Any:
    """The values of a feature. Raises RecordError for the first row that does not decode."""
    steps = None
    if place.in_steps:
        steps = counts_of(next(iter(columns.values())))
        if feature.name in schema.steps:
            columns = {key: items_of(array) for key, array in columns.items()}
        else:
            columns = {key: _joined_steps(array) for key, array in columns.items()}
    try:
        value = make(columns)
    except BadValue as bad:
        row = bad.index
        if feature.name in schema.steps and steps is not None:
            row = int(np.searchsorted(np.cumsum(steps), row, "right"))
        raise RecordError(bad.problem.under(place.section, feature.name), row) from None
    return value if steps is None or feature.name not in schema.steps else _in_steps(value, steps)


def _joined_steps(array: ArrowArray) -> ArrowArray:
    """The values of all steps of each row."""
    steps, each = counts_of(array), counts_of(items_of(array))
    places = offsets(each)[offsets(steps)]
    return list_array(values_array(flat_of(items_of(array))), places)


def _in_steps(value: Any, steps: Ints) -> Any:
    if isinstance(value, tuple):
        return tuple(_in_steps(one, steps) for one in value)
    if isinstance(value, dict):
        return {name: _in_steps(one, steps) for name, one in value.items()}
    return RaggedArray(value, steps)


def _masked(value: RaggedArray, kept: Mask, *, in_steps: bool) -> RaggedArray:
    """The items of lists that are kept: of each row, or of each step."""
    if in_steps:
        return RaggedArray(value.values.masked(kept), value.lengths)
    return value.masked(kept)
