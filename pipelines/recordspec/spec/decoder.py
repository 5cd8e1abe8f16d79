"""Records to tensors, in a graph: one parse call for a batch, then each feature's own decoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from recordspec._tf import tf
from recordspec.spec import blocks, tensors
from recordspec.spec.features.base import Feature
from recordspec.wire.columns import Column, Fixed, Layout, Section, Sequence, as_decoded, parse_calls

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

Tensor = Any


def parse_dict(schema: Schema) -> Any:
    """The dictionary for `tf.io.parse_example`; of a SequenceExample, the pair of dictionaries."""
    made = {section: _made(schema.columns(section), section) for section in schema.sections}
    return tuple(made.values()) if len(made) > 1 else made["features"]


def _made(columns: Iterable[Column], section: Section) -> dict[str, Any]:
    return {key: call.make() for key, call in parse_calls(columns, section).items()}


def decode(schema: Schema, serialized: Any) -> dict[str, Tensor]:
    """The decoded features of one record (string `[]`) or of a batch (string `[n]`), by name."""
    return _decoded(schema, parse(schema, tf.convert_to_tensor(serialized, tf.string)))


def decode_block(schema: Schema, serialized: Any) -> dict[str, Tensor]:
    """The decoded features of the rows of one block, or of several, as `decode` gives those of a batch."""
    return decode_rows(schema, blocks.parse(schema, tf.convert_to_tensor(serialized, tf.string)))


def decode_rows(schema: Schema, held: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The decoded features of rows of blocks, held as `blocks.parse` gives them."""
    return _decoded(schema, blocks.columns_of(schema, held))


def _decoded(schema: Schema, parsed: Mapping[Section, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    decoded: dict[str, Tensor] = {}
    for section, feature in schema.placed:
        keys = [column.key for column in feature.columns() if column.key in parsed[section]]
        columns = {key: parsed[section][key] for key in keys}
        steps = section == "sequence" and not feature.spans_steps
        value = _decode_steps(feature, columns) if steps else _decode(feature, columns)
        decoded |= value if isinstance(value, dict) else {feature.name: value}
    return decoded


def alone(schema: Schema, decoded: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A batch of one row as that row."""
    stated = element_spec(schema)
    return {name: _first(value, stated[name]) for name, value in decoded.items()}


def _first(batch: Tensor, spec: Any) -> Tensor:
    if isinstance(batch, tf.sparse.SparseTensor):
        return tf.SparseTensor(batch.indices[:, 1:], batch.values, batch.dense_shape[1:])
    value = batch[0]
    dense = isinstance(value, tf.RaggedTensor) and isinstance(spec, tf.TensorSpec)
    return tf.ensure_shape(value.to_tensor(), spec.shape) if dense else value


def parse(schema: Schema, serialized: Tensor) -> dict[Section, dict[str, Tensor]]:
    """The columns of one record (string `[]`) or of a batch (string `[n]`): what is decoded from."""
    asked = {section: _made(map(as_decoded, schema.columns(section)), section) for section in schema.sections}
    if schema.record == "example":
        return {"features": tf.io.parse_example(serialized, asked["features"])}
    context, sequence = asked["context"], asked["sequence"]
    single = serialized.shape.rank == 0
    parse = tf.io.parse_single_sequence_example if single else tf.io.parse_sequence_example
    # A SequenceExample's context is, byte for byte, an Example, and the parser of Examples gives a
    # Feature without a kind its default, where that of SequenceExamples fails (TensorFlow 2.16, 2.21).
    steps = parse(serialized, {}, sequence)[1] if sequence else {}
    layouts = {column.key: column.layout for column in blocks.placed_columns(schema, "sequence")}
    return {
        "context": tf.io.parse_example(serialized, context) if context else {},
        "sequence": {key: _one_item_a_step(value, layouts[key], single) for key, value in steps.items()},
    }


def _one_item_a_step(value: Tensor, layout: Layout, single: bool) -> Tensor:
    """Where each step has one item, it was parsed in a ragged dimension of its own: without that."""
    if not isinstance(layout, Fixed | Sequence) or not isinstance(value, tf.RaggedTensor):
        return value
    return _merged(value) if single else value.with_values(_merged(value.values))


def _decode(feature: Feature, columns: Mapping[str, Tensor]) -> Any:
    if feature.per_example:
        return tensors.one_by_one(feature.decode, columns, feature.spec())
    return feature.decode(columns)


def _decode_steps(feature: Feature, columns: Mapping[str, Tensor]) -> Any:
    """All the steps of all the records as one batch, then put back into their sequences.

    Each column is ragged, `[n, (steps), ...]`, of one record `[steps, ...]`.
    """
    layouts = {column.key: column.layout for column in feature.columns()}
    key, first = next(iter(columns.items()))
    if first.shape.rank == _rank_of_steps(layouts[key]):
        return _decode(feature, columns)
    decoded = _decode(feature, {key: column.values for key, column in columns.items()})
    if isinstance(decoded, dict):
        return {name: first.with_values(value) for name, value in decoded.items()}
    return first.with_values(decoded)


def _rank_of_steps(layout: Any) -> int:
    """The rank of one record's steps."""
    items = 0 if isinstance(layout, Fixed) else 1 + len(getattr(layout, "row_lengths", ()))
    return 1 + items + len(getattr(layout, "shape", ()))


def _merged(steps: Tensor) -> Tensor:
    """Ragged `[steps, (k), ...]` where every k is 1, as `[steps, ...]`."""
    one = tf.ones([], tf.int64)
    message = "expected one item in every step"
    with tf.control_dependencies([tf.debugging.assert_equal(steps.row_lengths(), one, message)]):
        return tf.identity(steps.values)


def specs(schema: Schema) -> dict[str, Any]:
    """The type of every decoded tensor of one record, as the features state it."""
    stated: dict[str, Any] = {}
    for section, feature in schema.placed:
        spec = feature.spec()
        by_name = spec if isinstance(spec, dict) else {feature.name: spec}
        if section == "sequence" and not feature.spans_steps:
            by_name = {name: tensors.of_steps(one) for name, one in by_name.items()}
        stated |= by_name
    return stated


def element_spec(schema: Schema) -> dict[str, Any]:
    """The element_spec of a dataset of single decoded records."""
    return {name: tensors.alone(spec) for name, spec in specs(schema).items()}


def batch_spec(schema: Schema, size: int | None) -> dict[str, Any]:
    """The element_spec of a dataset of decoded batches."""
    return {name: tensors.batched(spec, size) for name, spec in specs(schema).items()}
