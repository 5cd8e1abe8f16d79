"""The laws that every feature kind keeps, as checks that a test can call.

One line puts a kind of one's own under all of them:

    @pytest.mark.parametrize("law", recordspec.testing.LAWS, ids=lambda law: law.__name__)
    def test_mesh(law):
        law(recordspec.testing.Case(Mesh(name="mesh")))
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.errors import RecordError
from recordspec.spec.encoder import columns_of
from recordspec.spec.features import KINDS, Feature
from recordspec.spec.schema import Schema
from recordspec.wire.columns import Section, VarLen
from recordspec.wire.proto import parse_example, parse_sequence_example

ROWS = 7


@dataclass(frozen=True)
class Case:
    """A feature in a section of a record, and rows invented for it.

    Attributes:
        feature: an instance of the kind.
        section: where it stands: `features`, or `context` or `sequence` of a SequenceExample.
        tolerance: by how much a value may differ when it is stored once more, in its own units; 0
            except for lossy codecs.
        seed: of the invented rows.
    """

    feature: Feature
    section: Section = "features"
    tolerance: float = 0
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.feature.kind}-{self.section}-{self.feature.name}"

    @cached_property
    def schema(self) -> Schema:
        record = "example" if self.section == "features" else "sequence_example"
        return Schema(name="case", record=record, **{self.section: (self.feature,)})  # type: ignore[arg-type]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        rng = np.random.default_rng(self.seed)
        return [{self.feature.name: self._sample(rng)} for _ in range(ROWS)]

    def _sample(self, rng: np.random.Generator) -> Any:
        if self.section != "sequence" or self.feature.spans_steps:
            return self.feature.sample(rng)
        return [self.feature.sample(rng) for _ in range(int(rng.integers(0, 4)))]

    @cached_property
    def records(self) -> list[bytes]:
        return list(self.schema.encode_batch(columns_of(self.schema, self.rows), ROWS))

    def given(self, decoded: dict[str, Any]) -> dict[str, Any]:
        """A decoded record as a row that could be written."""
        name = self.feature.name
        value = _as_given(decoded[name], self.feature)
        if len(self.feature.outputs) == 1:
            return {name: value}
        (length,) = (decoded[output].numpy() for output in self.feature.outputs[1:])
        if length.ndim:  # of each step
            return {name: [one[:size] for one, size in zip(value, length, strict=True)]}
        return {name: value[: int(length)]}


def stored_again_it_is_the_same(case: Case) -> None:
    """What was read can be written, and reads the same."""
    for record in case.records:
        once = case.schema.decode(record)
        again = case.schema.decode(case.schema.encode(case.given(once)))
        for name in once:
            _assert_same(once[name], again[name], case.tolerance)


def a_batch_of_rows_is_its_rows(case: Case) -> None:
    """Rows encoded together have the bytes of rows encoded one by one."""
    assert case.records == [case.schema.encode(row) for row in case.rows]


def the_keys_are_the_columns(case: Case) -> None:
    """What is stored stands under the keys of `columns()`, and nothing else does."""
    keys = {column.key for column in case.feature.columns()}
    for record in case.records:
        if case.section == "features":
            assert set(parse_example(record, "")) == keys
            continue
        context, sequence = parse_sequence_example(record, "")
        assert set(context if case.section == "context" else sequence) == keys


def the_decoded_type_is_the_spec(case: Case) -> None:
    """`element_spec` and `batch_spec` are the types that tf.data infers from `decode`."""
    dataset = tf.data.Dataset.from_tensor_slices(case.records)
    single = dataset.map(case.schema.decode).element_spec
    assert single == case.schema.element_spec(), f"{single} != {case.schema.element_spec()}"
    batch = dataset.batch(2).map(case.schema.decode).element_spec
    assert batch == case.schema.batch_spec(), f"{batch} != {case.schema.batch_spec()}"


def a_batch_is_its_records(case: Case) -> None:
    """Record i of a decoded batch is record i decoded alone, but for padding."""
    batch = case.schema.decode(case.records)
    for index, record in enumerate(case.records):
        alone = case.schema.decode(record)
        for name, value in alone.items():
            _assert_same(value, _without_padding(_row(batch[name], index), value), 0)


def a_block_is_a_batch(case: Case) -> None:
    """Rows held together in one record read as the batch of their records do."""
    block = case.schema.encode_block(columns_of(case.schema, case.rows), ROWS)
    batch, held = case.schema.decode(case.records), case.schema.decode_block(block)
    for name in batch:
        _assert_same(batch[name], held[name], 0)
    found = tf.data.Dataset.from_tensors(block).map(case.schema.decode_block).element_spec
    assert found == case.schema.batch_spec(), f"{found} != {case.schema.batch_spec()}"


def a_block_is_its_records(case: Case) -> None:
    """Records become the block of their rows, and it becomes the records, to the byte."""
    block = case.schema.encode_block(columns_of(case.schema, case.rows), ROWS)
    assert case.schema.block_of(case.records) == block
    assert list(case.schema.records_of(block)) == case.records


def a_graph_does_as_eager(case: Case) -> None:
    """Decoding in a graph gives what decoding eagerly gives."""
    eager = case.schema.decode(case.records)
    graph = next(iter(tf.data.Dataset.from_tensors(case.records).map(case.schema.decode)))
    for name in eager:
        _assert_same(eager[name], graph[name], 0)


def nothing_is_refused(case: Case) -> None:
    """None is missing: an error that names the row and the feature, or the default."""
    rows = [*case.rows[:1], {case.feature.name: None}]
    if case.feature.optional and case.section != "sequence":
        record = case.schema.encode({})
        assert case.schema.decode(record).keys() == case.schema.element_spec().keys()
        return
    error = _refusal(case.schema, rows)
    assert error is not None, "None was written"
    assert error.row == 1, str(error)
    assert str(error).startswith(f"row 1: {case.section}."), str(error)
    assert "got nothing" in str(error), str(error)


def its_yaml_is_itself(case: Case) -> None:
    """`loads(dump())` is the same schema."""
    kinds = KINDS | {case.feature.kind: type(case.feature)}
    again = Schema.loads(case.schema.dump(), kinds=kinds)
    assert again == case.schema
    assert again.fingerprint == case.schema.fingerprint


def it_pickles(case: Case) -> None:
    """Schemas travel to other processes."""
    assert pickle.loads(pickle.dumps(case.schema)) == case.schema


LAWS: tuple[Callable[[Case], None], ...] = (
    stored_again_it_is_the_same,
    a_batch_of_rows_is_its_rows,
    the_keys_are_the_columns,
    the_decoded_type_is_the_spec,
    a_batch_is_its_records,
    a_block_is_a_batch,
    a_block_is_its_records,
    a_graph_does_as_eager,
    nothing_is_refused,
    its_yaml_is_itself,
    it_pickles,
)


def _refusal(schema: Schema, rows: list[dict[str, Any]]) -> RecordError | None:
    try:
        schema.encode_batch(columns_of(schema, rows), len(rows))
    except RecordError as error:
        return error
    return None


def _as_given(value: Any, feature: Feature) -> Any:
    if isinstance(value, tf.sparse.SparseTensor):
        if isinstance(feature.columns()[0].layout, VarLen):
            return value.values.numpy()
        indices = value.indices.numpy()
        return (indices[:, 0] if indices.shape[1] == 1 else indices, value.values.numpy())
    if isinstance(value, tf.RaggedTensor):
        dense = value.to_tensor()
        size = value.flat_values.shape.num_elements()
        uniform = size > 0 and dense.shape.num_elements() == size
        return dense.numpy() if uniform else [_as_given(row, feature) for row in value]
    return value.numpy()


def _row(batch: Any, index: int) -> Any:
    if isinstance(batch, tf.sparse.SparseTensor):
        shape = batch.dense_shape[1:]
        start = tf.concat([[index], tf.zeros_like(shape)], 0)
        row = tf.sparse.slice(batch, start, tf.concat([[1], shape], 0))
        return tf.sparse.reshape(row, shape)
    return batch[index]


def _without_padding(value: Any, like: Any) -> Any:
    if isinstance(value, (tf.RaggedTensor, tf.sparse.SparseTensor)):
        return value
    return value[tuple(slice(size) for size in like.shape)]


def _assert_same(expected: Any, found: Any, tolerance: float) -> None:
    one, other = _plain(expected), _plain(found)
    assert _equal(one, other, tolerance), f"{found!r} is not {expected!r}"


def _plain(value: Any) -> Any:
    if isinstance(value, tf.sparse.SparseTensor):
        return [value.indices.numpy(), value.values.numpy()]
    if isinstance(value, tf.RaggedTensor):
        return [_plain(row) for row in value]
    return value.numpy()


def _equal(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _equal(left, right, tolerance) for left, right in zip(one, other, strict=True)
        )
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if tolerance:
        return bool(np.mean(np.abs(one.astype(float) - other.astype(float))) <= tolerance)
    return bool((one == other).all()) or one.tobytes() == other.tobytes()
