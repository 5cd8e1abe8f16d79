"""The values of stored records, as rows give them: what `encode` makes the same records of."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from typing import Any

from recordspec.errors import Problem, RecordError
from recordspec.schema.features import Feature
from recordspec.schema.validate import check_structure
from recordspec.wire import proto
from recordspec.wire.arrays import data_of
from recordspec.wire.columns import Place, Ragged, Sparse
from recordspec.wire.record_batch import RecordBatch, decode

Stored = Mapping[str, Any]
Placed = list[tuple[Place, Feature]]


def restored_columns(placed: Placed, records: list[bytes], *, sequence: bool) -> dict[str, list[Any]]:
    """The values of features in records, by name, as rows give them; None where one is missing.

    A missing or empty key is a missing value; a missing list of steps has none.

    Args:
        placed: the features, each with its place.
        records: Examples, or with `sequence` SequenceExamples; ExampleListWithContexts are read as these.

    Raises RecordError for the first record that these features do not store.
    """
    return _columns_with_steps(placed, records) if sequence else _columns(placed, records)


def _parsed(record: bytes, row: int) -> Stored:
    try:
        return proto.parse_example(record)
    except RecordError as error:
        raise RecordError(error.problems, row) from None


def _columns(placed: Placed, records: list[bytes]) -> dict[str, Any]:
    rows = [_parsed(record, row) for row, record in enumerate(records)]
    in_parts = [(place, one) for place, one in placed if _is_in_parts(one)]
    if in_parts:
        check_structure(in_parts, _decoded(records, sequence=False))
    return {
        feature.name: [_restored(feature, values, row) for row, values in enumerate(rows)]
        for _, feature in placed
    }


def _columns_with_steps(placed: Placed, records: list[bytes]) -> dict[str, Any]:
    """The same of SequenceExamples."""
    wanted = {column.key for _, feature in placed for column in feature.columns()}
    decoded = _decoded(records, sequence=True, keys=wanted)
    if decoded.broken:
        records = _without_lists(placed, records, decoded.broken)
        decoded = _decoded(records, sequence=True, keys=wanted)
    check_structure(placed, decoded)
    columns: dict[str, list[Any]] = {feature.name: [] for _, feature in placed}
    for row, record in enumerate(records):
        entries = proto.entries(record, sequence=True)
        context = {key: None if one.kind == "none" else one.values for key, one in entries.features}
        lists = {key: [step.values for step in steps] for key, steps in entries.lists}
        for place, feature in placed:
            if not place.in_steps:
                value = _restored(feature, context, row)
            elif feature.traits.spans_steps:
                every = [item for step in lists.get(feature.stored, ()) for item in step]
                value = _restored(feature, {feature.stored: every}, row)
            else:
                keys = [column.key for column in feature.columns()]
                steps = zip(*(lists.get(key, []) for key in keys), strict=True)
                value = [_restored(feature, dict(zip(keys, step, strict=True)), row) for step in steps]
            columns[feature.name].append(value)
    return columns


def _without_lists(placed: Placed, records: list[bytes], rows: Collection[int]) -> list[bytes]:
    """The records, with SequenceExamples for the ExampleListWithContexts among these rows."""
    keys = {column.key for place, one in placed if place.in_steps for column in one.columns()}
    records = [*records]
    for row in rows:
        listed = proto.list_with_context(records[row])
        try:
            records[row] = records[row] if listed is None else listed.sequence_example(keys)
        except RecordError as error:
            raise RecordError(error.problems, row) from None
    return records


def _is_in_parts(feature: Feature) -> bool:
    """Whether its values are under several keys, which must agree."""
    return isinstance(feature.columns()[0].layout, Ragged | Sparse)


def _decoded(records: list[bytes], *, sequence: bool, keys: Collection[str] | None = None) -> RecordBatch:
    data, places = data_of(records)
    return decode(data, places[:-1], places[1:], sequence=sequence, keys=keys)


def _restored(feature: Feature, values: Stored, row: int) -> Any:
    """A stored record's value of a feature, as a row gives it; None if it is missing."""
    try:
        return feature.restored(values)
    except (ValueError, TypeError, IndexError, zlib.error) as error:
        problem = Problem(
            path=("features", feature.name), expected=f"what {feature.kind} stores", got=str(error)
        )
        raise RecordError(problem, row) from None
