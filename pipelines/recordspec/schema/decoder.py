"""Decodes records to tensors in a graph, with one parse call for a batch, and explains why a record fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from recordspec._tf import stand_ins, tf
from recordspec.errors import Problem, RecordError
from recordspec.schema import row_blocks, tensors
from recordspec.schema.column_groups import record_groups
from recordspec.schema.feature_set import FeatureSet, columns_in
from recordspec.schema.features import KINDS
from recordspec.schema.features.feature import Feature
from recordspec.schema.features.geometry import Coordinates, Pictures, Resize, sides_by_step
from recordspec.schema.tensors import Tensor
from recordspec.schema.validate import feature_violations, of_other_message, other_message
from recordspec.wire.arrays import ArrowArray, bytes_in, flat_of, storage_of
from recordspec.wire.blocks import StoredBlocks, stored
from recordspec.wire.columns import (
    TF_DTYPES,
    Column,
    Fixed,
    Layout,
    Place,
    Section,
    Sequence,
    Sparse,
    as_decoded,
    parse_calls,
)
from recordspec.wire.file_types import describe_type
from recordspec.wire.record_batch import decode as decode_records


def parse_dict(schema: FeatureSet) -> Any:
    """The dictionary for `tf.io.parse_example`; of a SequenceExample, the pair of dictionaries."""
    made = {section: _made(schema.columns(section), section) for section in schema._sections}
    return tuple(made.values()) if len(made) > 1 else made["features"]


def _made(columns: Iterable[Column], section: Section) -> dict[str, Any]:
    return {key: call.make() for key, call in parse_calls(columns, section).items()}


def decode(schema: FeatureSet, serialized: Any) -> dict[str, Tensor]:
    """The decoded features of one record (string `[]`) or of a batch (string `[n]`), by name."""
    serialized = tf.convert_to_tensor(serialized, tf.string)
    return _decoded(schema, parse(schema, serialized))


def decode_block(schema: FeatureSet, serialized: Any) -> dict[str, Tensor]:
    """The decoded features of the rows of one block, or of several, as `decode` returns those of a batch."""
    return decode_rows(schema, row_blocks.parse(schema, tf.convert_to_tensor(serialized, tf.string)))


def decode_rows(schema: FeatureSet, columns: Mapping[str, Any]) -> dict[str, Tensor]:
    """The decoded features of rows of blocks, which `row_blocks.parse` returned."""
    return _decoded(schema, row_blocks.columns_of(schema, columns))


def _decoded(schema: FeatureSet, parsed: Mapping[Section, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    decoded: dict[str, Tensor] = {}
    sides: dict[str, Tensor] = {}  # height and width before an image is resized
    resized = {image.name: image for image in schema._images.values() if image.resizing is not None}
    for place, feature in schema._placed:
        stored = parsed[place.section]
        columns = {column.key: stored[column.key] for column in feature.columns() if column.key in stored}
        decode = _decode_steps if feature.name in schema.steps else _decode
        value = decode(feature, columns, resized.get(feature.name))
        if feature.name in resized:
            value, sides[feature.name] = value
        decoded |= value if isinstance(value, dict) else {feature.name: value}
    kept: dict[str, Tensor] = {}  # by the names of all features that lose items
    for name, image in schema._images.items():
        follow = schema.names[name]
        if isinstance(follow, Coordinates) and image.resizing is not None:
            in_steps = name in schema.steps, image.name in schema.steps
            arguments = decoded[name], sides[image.name], image.resizing, in_steps
            if follow.dropped_with is not None:
                kept |= dict.fromkeys((name, *follow.dropped_with), _moved(follow.kept, *arguments))
            decoded[name] = _moved(follow.resized, *arguments)
    return decoded | {name: tensors.masked(decoded[name], mask) for name, mask in kept.items()}


def _moved(
    move: Callable[[Tensor, Tensor, Resize], Tensor],
    value: Tensor,
    sides: Tensor,
    resize: Resize,
    in_steps: tuple[bool, bool],
) -> Tensor:
    """What `move` makes of coordinates in images that are resized.

    Args:
        move: `Coordinates.resized` or `Coordinates.kept`.
        value: decoded coordinates.
        sides: height and width of the images before they are resized.
        in_steps: whether each step has coordinates, and whether each step has an image.
    """
    if not in_steps[0]:
        return move(value, sides, resize)
    if sides.shape.rank == 1 + in_steps[1]:  # of one record
        steps = value.nrows() if isinstance(value, tf.RaggedTensor) else tf.shape(value, tf.int64)[0]
        batch = tf.RaggedTensor.from_row_lengths(value, steps[None])
        sides = tf.RaggedTensor.from_tensor(sides[None]) if in_steps[1] else sides[None]
        return move(value, sides_by_step(sides, batch), resize)
    return value.with_values(move(value.values, sides_by_step(sides, value), resize))


def alone(schema: FeatureSet, decoded: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The row of a batch of one row."""
    stated = element_spec(schema)
    return {name: _first(value, stated[name]) for name, value in decoded.items()}


def _first(batch: Tensor, spec: Any) -> Tensor:
    if isinstance(batch, tf.sparse.SparseTensor):
        return tf.SparseTensor(batch.indices[:, 1:], batch.values, batch.dense_shape[1:])
    value = batch[0]
    dense = isinstance(value, tf.RaggedTensor) and isinstance(spec, tf.TensorSpec)
    return tf.ensure_shape(value.to_tensor(), spec.shape) if dense else value


def parse(schema: FeatureSet, serialized: Tensor) -> dict[Section, dict[str, Tensor]]:
    """The parsed columns of one record (string `[]`) or of a batch (string `[n]`), for `decode`."""
    single = serialized.shape.rank == 0
    together: dict[Section, dict[str, Any]] = {section: {} for section in schema._sections}
    for group in () if single else record_groups(schema):
        for place, value in group.split(group.of_records(serialized)):
            together[place.section][place.key] = value
    asked = {
        section: _made(
            (as_decoded(one) for one in schema.columns(section) if one.key not in together[section]), section
        )
        for section in schema._sections
    }
    if schema.record == "example":
        alone = tf.io.parse_example(serialized, asked["features"]) if asked["features"] else {}
        return {"features": {**alone, **together["features"]}}
    context, sequence = asked["context"], asked["sequence"]
    parse = tf.io.parse_single_sequence_example if single else tf.io.parse_sequence_example
    layouts = {column.key: column.layout for column in row_blocks.section_columns(schema, "sequence")}
    required = _required(schema, sequence)
    dense = {
        column.key: tf.io.FixedLenSequenceFeature(list(column.cell), TF_DTYPES[column.storage])
        for column in required
        if isinstance(layouts[column.key], Fixed | Sequence)
    }
    # A SequenceExample's context is, byte for byte, an Example, and the parser of Examples gives a
    # Feature without a kind its default, where that of SequenceExamples fails (TensorFlow 2.16, 2.21).
    parsed = parse(serialized, {}, sequence | dense) if sequence else ({}, {})
    steps = {
        key: value if key in dense else _one_item_a_step(value, layouts[key], single)
        for key, value in parsed[1].items()
    }
    keys = [one.key for one in required if one.key not in dense]
    ragged = {key: parsed[1][key] for key in keys if key in parsed[1]}  # without those of lengths
    with tf.control_dependencies(tensors.checked_lists(serialized, keys, list(ragged.values()))):
        steps |= {key: tf.identity(steps[key]) for key in ragged}
    if not single:
        steps |= {key: tf.RaggedTensor.from_tensor(steps[key], parsed[2][key]) for key in dense}
    parsed_context = tf.io.parse_example(serialized, context) if context else {}
    return {"context": {**parsed_context, **together["context"]}, "sequence": steps}


def _required(schema: FeatureSet, sequence: Mapping[str, Any]) -> list[Column]:
    """The columns of lists of steps that records must have, and that are parsed as ragged tensors: there,
    TensorFlow takes a missing list for an empty one. Of steps of one item, a FixedLenSequenceFeature requires
    the list, and is parsed faster."""
    return [
        column
        for feature in schema.sequence
        if feature.missing == "error"
        for column in feature.columns()
        if not isinstance(sequence.get(column.key), tf.io.FixedLenSequenceFeature)
    ]


def _one_item_a_step(value: Tensor, layout: Layout, single: bool) -> Tensor:
    """Removes the ragged dimension in which steps with one item each are parsed."""
    if not isinstance(layout, Fixed | Sequence) or not isinstance(value, tf.RaggedTensor):
        return value
    return tensors.merged_steps(value) if single else value.with_values(tensors.merged_steps(value.values))


def _decode(feature: Feature, columns: Mapping[str, Tensor], images: Pictures | None = None) -> Any:
    """What a feature decodes to; of `images`, a pair with their height and width before they are resized."""
    decode = feature.decode if images is None else images.decode_with_sides
    if not feature.traits.per_example:
        return decode(columns)
    spec = feature.spec() if images is None else (feature.spec(), tf.TensorSpec([2], tf.int32))
    return tensors.one_by_one(decode, columns, spec, _rank(feature, next(iter(columns))))


def _rank(feature: Feature, key: str) -> int:
    """The rank of a column of one record."""
    (column,) = (one for one in feature.columns() if one.key == key)
    if isinstance(column.layout, Sparse):
        return len(column.layout.size)
    items = 0 if isinstance(column.layout, Fixed) else 1 + len(getattr(column.layout, "row_lengths", ()))
    return items + len(column.cell)


def _decode_steps(feature: Feature, columns: Mapping[str, Tensor], images: Pictures | None = None) -> Any:
    """Decodes the steps of all records as one batch, and splits the result into their sequences.

    Each column is ragged, `[n, (steps), ...]`, of one record `[steps, ...]`.
    """
    key, first = next(iter(columns.items()))
    if first.shape.rank == 1 + _rank(feature, key):  # the steps of one record
        return _decode(feature, columns, images)
    decoded = _decode(feature, {key: column.values for key, column in columns.items()}, images)
    if isinstance(decoded, tuple):
        return tuple(first.with_values(value) for value in decoded)
    if isinstance(decoded, dict):
        return {name: first.with_values(value) for name, value in decoded.items()}
    return first.with_values(decoded)


def specs(schema: FeatureSet) -> dict[str, Any]:
    """The type of every decoded tensor of one record, as the features state it."""
    stated: dict[str, Any] = {}
    for place, feature in schema._placed:
        spec = feature.spec()
        by_name = spec if isinstance(spec, dict) else {feature.name: spec}
        if place.in_steps and not feature.traits.spans_steps:
            by_name = {name: tensors.of_steps(one) for name, one in by_name.items()}
        stated |= by_name
    return stated


def element_spec(schema: FeatureSet) -> dict[str, Any]:
    """The element_spec of a dataset of single decoded records."""
    return {name: tensors.alone(spec) for name, spec in specs(schema).items()}


def batch_spec(schema: FeatureSet, size: int | None = None) -> dict[str, Any]:
    """The element_spec of a dataset of decoded batches of `size`; None for any."""
    return {name: tensors.batched(spec, size) for name, spec in specs(schema).items()}


def types_of(schema: FeatureSet) -> AbstractContextManager[None]:
    """Within it, `element_spec` and `batch_spec` need no TensorFlow, if all kinds are recordspec's own."""
    own = all(KINDS.get(feature.kind) is type(feature) for _, feature in schema._placed)
    return stand_ins() if own else nullcontext()


# The reasons why TensorFlow fails to decode a record.


def decode_errors() -> tuple[type[Exception], ...]:
    """Returns the error that TensorFlow raises for a record that does not decode.

    The message for bytes that are not an Example contains them, and is not UTF-8: hence the second.
    """
    return (tf.errors.OpError, UnicodeDecodeError)


def decode_problems(schema: FeatureSet, record: bytes, *, in_blocks: bool) -> tuple[Problem, ...]:
    """The problems of a record that TensorFlow does not decode, by feature; empty if it does.

    A feature whose stored values are valid has the message of TensorFlow.
    """
    if in_blocks:
        return tuple(_problems_of_block(schema, record))
    data = np.frombuffer(record, np.uint8)
    sequence = schema.record == "sequence_example"
    decoded = decode_records(data, np.array([0]), np.array([len(data)]), sequence=sequence)
    for _, problems in decoded.problems:
        return problems
    wrong: list[Problem] = []
    for place, feature in schema._placed:
        invalid = [
            violation.problem(row)
            for violation in feature_violations(place, feature, decoded, values=False)
            for row in range(len(violation.rows))
        ]
        stored = decoded.features.get(feature.stored, ()) if not place.in_steps else ()
        wrong += invalid or _undecoded(schema, record, place, feature, stored)
    if wrong and len(of_other_message(schema, decoded, lambda _: record)):
        return (other_message(schema),)
    return tuple(wrong)


def _problems_of_block(schema: FeatureSet, record: bytes) -> Iterator[Problem]:
    try:
        block = StoredBlocks.of_record(record)
    except RecordError as error:
        yield from error.problems
        return
    for place, feature in schema._placed:
        try:
            stored(columns_in(place, feature), place.section, block)
        except RecordError as error:
            for problem in error.problems:
                (key,) = problem.path[1:2]
                hint = problem.hint or ("" if key == feature.name else f"stored under `{key}`")
                yield replace(problem, path=(place.section, feature.name), hint=hint)
        else:
            yield from _undecoded(schema, record, place, feature, None)


def _undecoded(
    schema: FeatureSet,
    record: bytes,
    place: Place,
    feature: Feature,
    stored: tuple[ArrowArray, ...] | None,
) -> Iterator[Problem]:
    """The problem of decoding one feature, with TensorFlow's message; `stored` is None for a block.

    Coordinates in an image that does not decode have none of their own.
    """
    decode_rows_of = decode_block if stored is None else decode
    image = schema._images.get(feature.name)
    try:
        if image is not None:
            decode_rows_of(schema.only(image.outputs), [record])
    except decode_errors():
        return
    try:
        decode_rows_of(schema.only(feature.outputs), [record])
    except decode_errors() as error:
        path, expected, message = (
            (place.section, feature.name),
            f"what {feature.kind} decodes",
            _message(error),
        )
        arrays = [array for array in stored or () if storage_of(array) == "bytes"]
        strings = [data for array in arrays for data in bytes_in(flat_of(array))]
        if len(strings) == 1:
            got = describe_type(strings[0])
            yield Problem(path=path, expected=expected, got=got, hint=message)
        else:
            yield Problem(path=path, expected=expected, got=message)


def _message(error: Exception) -> str:
    """TensorFlow's message without the code and the nodes around it."""
    text = str(error)
    if text.startswith("in user code"):
        text = text.rpartition("Error: ")[2]
    text = re.sub(r"^\{\{.*?\}\} ", "", text)
    return text.partition(" [Op:")[0].strip().partition("\n")[0].rstrip(".")
