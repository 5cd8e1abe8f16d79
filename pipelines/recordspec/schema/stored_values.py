"""The values of stored records, as rows give them: what `encode` makes the same records of."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.schema.features import Feature
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.base import ValueType
from recordspec.schema.features.box import Box
from recordspec.schema.features.image import Image
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.sparse import SparseValues
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.video import Video
from recordspec.schema.validate import check_structure
from recordspec.wire import proto
from recordspec.wire.arrays import data_of
from recordspec.wire.columns import Ragged, Section, Sparse
from recordspec.wire.record_batch import RecordBatch, decode

Stored = Mapping[str, Any]
Placed = list[tuple[Section, Feature]]


def given_columns(placed: Placed, records: list[bytes], *, sequence: bool) -> dict[str, list[Any]]:
    """The values of features in records, by name, as rows give them; None where one is missing.

    A missing or empty key is a missing value; a missing list of steps has none.

    Args:
        placed: the features, each with its section.
        records: Examples, or with `sequence` SequenceExamples.

    Raises RecordError for the first record that these features do not store.
    """
    return (_columns_with_steps if sequence else _columns)(placed, records)


@singledispatch
def given_type(feature: Feature) -> ValueType | None:
    """The type of what `given_columns` makes of a feature, where that is not the list under its key, or the
    one value of it; None where it is. The items of raw images and sounds have their dtype.
    """
    type_ = feature.value_type
    if type_.item == "pair":
        return type_
    if type_.item == "any" or len(type_.shape) <= 1:
        return None
    return ValueType(feature.columns()[0].storage, type_.shape)


@given_type.register
def _tensor_type(feature: AnyTensor) -> ValueType | None:
    storage = feature.columns()[0].storage
    if storage == "bytes":
        return ValueType(feature.dtype, feature.shape)
    return ValueType(storage, feature.shape) if len(feature.shape) > 1 else None


@given_type.register
def _image_type(feature: Image) -> ValueType | None:
    return ValueType(feature.dtype, feature.shape) if feature.encoding == "raw" else None


@given_type.register
def _audio_type(feature: Audio) -> ValueType | None:
    return ValueType(feature.dtype, (None, feature.channels)) if feature.encoding == "raw" else None


@given_type.register
def _video_type(feature: Video) -> ValueType | None:
    return ValueType(feature.dtype, feature.shape) if feature.encoding == "raw" else None


def _parsed(record: bytes, row: int) -> Stored:
    try:
        return proto.parse_example(record)
    except RecordError as error:
        raise RecordError(error.problems, row) from None


def _columns(placed: Placed, records: list[bytes]) -> dict[str, Any]:
    rows = [_parsed(record, row) for row, record in enumerate(records)]
    in_parts = [(section, one) for section, one in placed if _is_in_parts(one)]
    if in_parts:
        check_structure(in_parts, _decoded(records, sequence=False))
    return {
        feature.name: [_given(feature, values, row) for row, values in enumerate(rows)]
        for _, feature in placed
    }


def _columns_with_steps(placed: Placed, records: list[bytes]) -> dict[str, Any]:
    """The same of SequenceExamples."""
    check_structure(placed, _decoded(records, sequence=True))
    columns: dict[str, list[Any]] = {feature.name: [] for _, feature in placed}
    for row, record in enumerate(records):
        entries = proto.entries(record, sequence=True)
        context = {key: None if one.kind == "none" else one.values for key, one in entries.features}
        lists = {key: [step.values for step in steps] for key, steps in entries.lists}
        for section, feature in placed:
            if section != "sequence":
                value = _given(feature, context, row)
            elif feature.spans_steps:
                every = [item for step in lists.get(feature.stored, ()) for item in step]
                value = _given(feature, {feature.stored: every}, row)
            else:
                keys = [column.key for column in feature.columns()]
                steps = zip(*(lists.get(key, ()) for key in keys), strict=True)
                value = [_given(feature, dict(zip(keys, step, strict=True)), row) for step in steps]
            columns[feature.name].append(value)
    return columns


def _is_in_parts(feature: Feature) -> bool:
    """Whether its values are under several keys, which must agree."""
    return isinstance(feature.columns()[0].layout, Ragged | Sparse)


def _decoded(records: list[bytes], *, sequence: bool) -> RecordBatch:
    data, places = data_of(records)
    return decode(data, places[:-1], places[1:], sequence=sequence)


def _given(feature: Feature, values: Stored, row: int) -> Any:
    """A stored record's value of a feature, as a row gives it; None if it is missing."""
    try:
        return given_value(feature, values)
    except (ValueError, TypeError, IndexError, zlib.error) as error:
        problem = Problem(
            path=("features", feature.name), expected=f"what {feature.kind} stores", got=str(error)
        )
        raise RecordError(problem, row) from None


@singledispatch
def given_value(feature: Feature, values: Stored) -> Any:
    """The value as a row would give it; what is stored, of a kind that gives `any` value."""
    stored, shape = values.get(feature.stored) or [], feature.value_type.shape
    if feature.value_type.item == "any":
        return stored[0] if len(stored) == 1 else values.get(feature.stored)
    if not stored and None not in shape and 0 not in shape:
        return None
    return _shaped(stored, shape)


@given_value.register(AnyTensor)
@given_value.register(Image)
@given_value.register(Audio)
@given_value.register(Video)
def _restored(feature: AnyTensor | Image | Audio | Video, values: Stored) -> Any:
    stored = values.get(feature.stored)
    return None if stored is None else feature.restored(stored)


@given_value.register
def _ragged(feature: RaggedLists, values: Stored) -> Any:
    column, *lengths = feature.columns()
    cell = feature.shape[len(lengths) + 1 :]
    rows: Any = _shaped(values.get(column.key) or [], (None, *cell))
    for part in reversed(lengths):
        sizes = values.get(part.key) or []
        ends = np.cumsum([0, *sizes])
        rows = [rows[start:stop] for start, stop in pairwise(ends)]
    return rows


@given_value.register
def _box(feature: Box, values: Stored) -> Any:
    if not feature.keys:
        return _shaped(values.get(feature.stored) or [], feature.value_type.shape)
    return list(zip(*(values.get(key) or [] for key in feature.keys), strict=True))


@given_value.register
def _sparse(feature: SparseValues, values: Stored) -> Any:
    column, *indices = feature.columns()
    places = [values.get(part.key) or [] for part in indices]
    points = places[0] if len(places) == 1 else list(zip(*places, strict=True))
    return points, values.get(column.key) or []


def _shaped(stored: Any, shape: tuple[int | None, ...]) -> Any:
    """A flat list as nested lists of this shape; numbers and strings stay what they are."""
    if shape == ():
        (value,) = stored
        return value
    array = np.empty(len(stored), object)
    array[:] = stored
    known = [-1 if size is None else size for size in shape]
    if not len(stored) and None in shape:
        known = [0 if size is None else size for size in shape]
    return array.reshape(known).tolist()
