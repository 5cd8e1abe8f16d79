"""Why a record does not decode, in words: which feature, what it should have, what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, RecordError
from recordspec.spec.blocks import placed_columns
from recordspec.spec.features import Feature
from recordspec.spec.schema import Schema
from recordspec.wire import blocks, proto
from recordspec.wire.columns import Column, Fixed, Section, Sequence
from recordspec.wire.file_types import describe_type

# What is stored, by section and key.
Stored = Mapping[Section, Mapping[str, Any]]


def failures() -> tuple[type[Exception], ...]:
    """What TensorFlow raises for a record that does not decode.

    Of one that is no Example it would show the bytes, which are no text either: hence the second.
    """
    return (tf.errors.OpError, UnicodeDecodeError)


def misfits(schema: Schema, record: bytes, *, in_blocks: bool) -> tuple[Problem, ...]:
    """The problems of a record that does not decode, by feature; none of one that does.

    Where what is stored looks right, the problem has TensorFlow's own words.
    """
    try:
        stored = _stored(schema, record, in_blocks=in_blocks)
    except RecordError as error:
        return error.problems
    found = []
    for section, feature in schema.placed:
        alone = schema.only(feature.outputs)
        columns = placed_columns(alone, section)
        look = _of_block if in_blocks else _of_record
        problems = [_named(problem, section, feature) for problem in look(columns, section, stored[section])]
        found += problems or list(_undecoded(alone, record, section, feature, in_blocks=in_blocks))
    return tuple(found)


def _stored(schema: Schema, record: bytes, *, in_blocks: bool) -> Stored:
    if in_blocks:
        parsed = proto.parse_example(record, "")
        blocks.rows_in(parsed)
        return dict.fromkeys(schema.sections, parsed)
    if schema.record == "example":
        return {"features": proto.parse_example(record, "")}
    context, sequence = proto.parse_sequence_example(record, "")
    return {"context": context, "sequence": sequence}


def _named(problem: Problem, section: Section, feature: Feature) -> Problem:
    """The problem of a stored key as that of its feature."""
    _, key, *step = problem.path
    hint = problem.hint or ("" if key == feature.name else f"stored under `{key}`")
    return replace(problem, path=(section, feature.name, *step), hint=hint)


def _of_block(columns: tuple[Column, ...], section: Section, stored: Mapping[str, Any]) -> list[Problem]:
    return list(blocks.misfits(columns, section, stored))


def _of_record(columns: tuple[Column, ...], section: Section, stored: Mapping[str, Any]) -> list[Problem]:
    of_lists = _of_steps if section == "sequence" else _of_values
    found = [problem for column in columns for problem in of_lists(column, section, stored.get(column.key))]
    if found or section == "sequence":
        return found
    return [problem for column in columns for problem in blocks.contradictions(column, section, stored)]


def _of_values(column: Column, section: Section, values: Any) -> Iterator[Problem]:
    if isinstance(column.layout, Fixed) and column.layout.default is not None:
        if values is None:
            return
        if not values:
            hint = "without the key it would have its default"
            yield Problem(path=(section, column.key), expected="values", got="an empty list", hint=hint)
    yield from _unfit(column, section, values or [])


def _of_steps(column: Column, section: Section, steps: Any) -> Iterator[Problem]:
    if steps is None and isinstance(column.layout, Sequence) and column.layout.pad is None:
        yield Problem(path=(section, column.key), expected="a list of steps", got="none")
    for step, values in enumerate(steps or []):
        for problem in _unfit(column, section, values or []):
            yield replace(problem, path=(*problem.path, step))


def _unfit(column: Column, section: Section, values: list[Any]) -> tuple[Problem, ...]:
    try:
        blocks.check(column, section, [values])
    except RecordError as error:
        return error.problems
    return ()


def _undecoded(
    schema: Schema, record: bytes, section: Section, feature: Feature, *, in_blocks: bool
) -> Iterator[Problem]:
    """TensorFlow's word on a feature, of which `schema` has no other."""
    try:
        (schema.decode_block if in_blocks else schema.decode)([record])
    except failures() as error:
        expected, said = f"what {feature.kind} decodes", _said(error)
        values = [] if in_blocks else _stored(schema, record, in_blocks=False)[section].get(feature.stored)
        if values and len(values) == 1 and isinstance(values[0], bytes):
            yield Problem(
                path=(section, feature.name), expected=expected, got=describe_type(values[0]), hint=said
            )
        else:
            yield Problem(path=(section, feature.name), expected=expected, got=said)


def _said(error: Exception) -> str:
    """The message without the code and the nodes around it."""
    text = str(error)
    if text.startswith("in user code"):
        text = text.rpartition("Error: ")[2]
    text = re.sub(r"^\{\{.*?\}\} ", "", text)
    return text.partition(" [Op:")[0].strip().partition("\n")[0].rstrip(".")
