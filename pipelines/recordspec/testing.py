"""Laws that every feature kind must satisfy, as functions for tests to call.

One test checks a custom kind against all of them::

    @pytest.mark.parametrize("law", recordspec.testing.LAWS, ids=lambda law: law.__name__)
    def test_mesh(law):
        law(recordspec.testing.Case(Mesh(name="mesh")))

A suite of many cases takes a fraction of the time with `trace_together(cases)`.
"""

from __future__ import annotations

import pickle
from collections import ChainMap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import RecordError, SpecError
from recordspec.schema import numpy_decoder, tensors
from recordspec.schema.arrow_values import from_arrow
from recordspec.schema.decoder import batch_spec
from recordspec.schema.encoder import columns_of
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.geometry import Coordinates, Pictures
from recordspec.schema.ragged_array import RaggedArray, SparseArray
from recordspec.schema.row_blocks import block_of_records, records_of_block, rows_of_blocks, stored_sections
from recordspec.schema.schema import Schema
from recordspec.schema.table_columns import TableColumn
from recordspec.wire.arrays import bytes_in, data_of, offsets
from recordspec.wire.columns import Place, Section, VarLen
from recordspec.wire.proto import entries
from recordspec.wire.record_batch import decode

ROWS = 7


@dataclass(frozen=True)
class Case:
    """A feature in a section of a record, and generated rows.

    Attributes:
        feature: an instance of the kind.
        section: its section: `features`, or `context` or `sequence` of a SequenceExample.
        tolerance: the largest change of a value that is stored again, or decoded without TensorFlow, in its
            own units; 0 except for lossy codecs and resampled audio.
        seed: the seed of the generated rows.
        shared: the graphs of a schema that contains this and further features; see `trace_together`.
    """

    feature: Feature
    section: Section = "features"
    tolerance: float = 0
    seed: int = 0
    shared: Graphs | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.feature.kind}-{self.section}-{self.feature.name}"

    @property
    def _place(self) -> Place:
        return Place(self.section, self.feature.stored)

    @cached_property
    def schema(self) -> Schema:
        return _schema(self.section, (self.feature,))

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        rng = np.random.default_rng(self.seed)
        return [{self.feature.name: self._sample(rng)} for _ in range(ROWS)]

    def _sample(self, rng: np.random.Generator) -> Any:
        if not self._place.in_steps or self.feature.traits.spans_steps:
            return self.feature.sample(rng)
        return [self.feature.sample(rng) for _ in range(int(rng.integers(0, 4)))]

    @cached_property
    def records(self) -> list[bytes]:
        return self.schema.encode_batch(columns_of(self.schema, self.rows), ROWS)

    @cached_property
    def block(self) -> bytes:
        return self.schema.encode_block(columns_of(self.schema, self.rows), ROWS)

    @cached_property
    def decoded(self) -> list[dict[str, Any]]:
        """Each record, decoded eagerly and alone."""
        return [self.schema.decode(record) for record in self.records]

    @cached_property
    def decoded_batch(self) -> dict[str, Any]:
        """All records, decoded eagerly as one batch."""
        return self.schema.decode(self.records)

    @cached_property
    def _graphs(self) -> Graphs:
        return Graphs(self.schema, self.rows)

    def traced(self, name: GraphName) -> Traced:
        """The outputs of this feature, decoded from the rows in a graph.

        If the graph of several features fails, this feature is traced alone: another feature may be the
        cause.
        """
        shared = None if self.shared is None else self.shared.find(name)
        return (shared or self._graphs.trace(name)).only(self.feature.outputs)

    def given(self, decoded: dict[str, Any]) -> dict[str, Any]:
        """A decoded record as a row that can be encoded."""
        name = self.feature.name
        value = _as_given(decoded[name], self.feature)
        if len(self.feature.outputs) == 1:
            return {name: value}
        (length,) = (decoded[output].numpy() for output in self.feature.outputs[1:])
        if length.dtype == bool:
            return {} if length else {name: value}
        if length.ndim:  # of each step
            return {name: [one[:size] for one, size in zip(value, length, strict=True)]}
        return {name: value[: int(length)]}


GraphName = Literal["record", "batch", "block"]


@dataclass(frozen=True)
class Traced:
    """The values that a graph decodes.

    Attributes:
        spec: the type of each output, as tf.data infers it.
        values: the values by output, only for the graph of a batch; other graphs are not run.
    """

    spec: dict[str, Any]
    values: dict[str, Any]

    def only(self, outputs: Iterable[str]) -> Traced:
        names = tuple(outputs)
        values = {name: value for name, value in self.values.items() if name in names}
        return Traced({name: self.spec[name] for name in names}, values)


class Graphs:
    """The graphs that decode a schema's rows. Each is traced once, when it is first needed."""

    def __init__(self, schema: Schema, rows: list[dict[str, Any]]) -> None:
        self.schema, self._rows = schema, rows
        self._traced: dict[GraphName, Traced | Exception] = {}

    def trace(self, name: GraphName) -> Traced:
        """Traces and runs a graph. Raises the error of tracing or running it."""
        if name not in self._traced:
            try:
                self._traced[name] = self._trace(name)
            except Exception as error:  # whatever the error, the next call raises it without tracing again
                self._traced[name] = error
        traced = self._traced[name]
        if isinstance(traced, Exception):
            raise traced
        return traced

    def find(self, name: GraphName) -> Traced | None:
        """The graph's outputs; None if tracing or running it fails."""
        try:
            return self.trace(name)
        except Exception:
            return None

    def _trace(self, name: GraphName) -> Traced:
        columns, count = columns_of(self.schema, self._rows), len(self._rows)
        if name == "block":
            block = tf.data.Dataset.from_tensors(self.schema.encode_block(columns, count))
            dataset = block.map(self.schema.decode_block)
        else:
            records = tf.data.Dataset.from_tensor_slices(self.schema.encode_batch(columns, count))
            dataset = (records.batch(count) if name == "batch" else records).map(self.schema.decode)
        return Traced(dataset.element_spec, next(iter(dataset)) if name == "batch" else {})


def trace_together(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Returns the cases. Cases that fit into one schema share its graphs.

    Tracing takes most of the time of the laws. Cases of different sections, or with a common name or key, are
    in different schemas. So are images and coordinates, since coordinates would follow one of the images.
    """
    cases = tuple(cases)
    groups: list[tuple[Section, set[str], list[Case]]] = []  # with the names and keys already taken
    for case in cases:
        feature = case.feature
        names = {feature.name, *feature.outputs, *(column.key for column in feature.columns())}
        for section, taken, group in groups:
            if (
                section == case.section
                and taken.isdisjoint(names)
                and not any(_follow(one, case) for one in group)
            ):
                taken |= names
                group.append(case)
                break
        else:
            groups.append((case.section, names, [case]))
    graphs: dict[int, Graphs] = {}
    for section, _, group in groups:
        rows = [dict(ChainMap(*rows)) for rows in zip(*(case.rows for case in group), strict=True)]
        made = Graphs(_schema(section, tuple(case.feature for case in group)), rows)
        graphs |= {id(case): made for case in group}
    return tuple(replace(case, shared=graphs[id(case)]) for case in cases)


def _follow(former: Case, other: Case) -> bool:
    """Whether one case has coordinates and the other images."""
    kinds = [
        (isinstance(case.feature, Pictures), isinstance(case.feature, Coordinates))
        for case in (former, other)
    ]
    return any(pictures and coordinates for (pictures, _), (_, coordinates) in (kinds, kinds[::-1]))


def _schema(section: Section, features: tuple[Feature, ...]) -> Schema:
    record = "example" if section == "features" else "sequence_example"
    return Schema(name="case", record=record, **{section: features})  # type: ignore[arg-type]


def stored_again_it_is_the_same(case: Case) -> None:
    """Decoded values can be encoded, and decode to the same values again."""
    for record, once in zip(case.records, case.decoded, strict=True):
        stored = case.schema.encode(case.given(once))
        again = once if stored == record else case.schema.decode(stored)  # equal bytes decode alike
        for name in once:
            _assert_same(once[name], again[name], case.tolerance)


def a_batch_of_rows_is_its_rows(case: Case) -> None:
    """Rows encoded together have the bytes of rows encoded one by one."""
    assert case.records == [case.schema.encode(row) for row in case.rows]


def the_keys_are_the_columns(case: Case) -> None:
    """A record has exactly the keys of `columns()`."""
    keys = {column.key for column in case.feature.columns()}
    for record in case.records:
        listed = entries(record, sequence=case.section != "features")
        assert {key for key, _ in (listed.lists if case._place.in_steps else listed.features)} == keys


def the_decoded_type_is_the_spec(case: Case) -> None:
    """`element_spec` and `batch_spec` are the types that tf.data infers from `decode`."""
    single = case.traced("record").spec
    assert single == case.schema.element_spec(), f"{single} != {case.schema.element_spec()}"
    batch = case.traced("batch").spec
    assert batch == batch_spec(case.schema), f"{batch} != {batch_spec(case.schema)}"


def a_batch_is_its_records(case: Case) -> None:
    """Record i of a decoded batch equals record i decoded alone, except for padding."""
    for name, batch in case.decoded_batch.items():
        rows = _rows(batch)
        for alone, row in zip(case.decoded, rows, strict=True):
            if isinstance(row, np.ndarray):  # without the padding
                row = row[tuple(slice(size) for size in alone[name].shape)]
            _assert_same(alone[name], row, 0)


def a_block_is_a_batch(case: Case) -> None:
    """A block decodes to the same batch as the records of its rows."""
    spec = case.traced("block").spec
    assert spec == batch_spec(case.schema), f"{spec} != {batch_spec(case.schema)}"
    decoded = case.schema.decode_block(case.block)
    for name, value in case.decoded_batch.items():
        _assert_same(value, decoded[name], 0)


def a_block_is_its_records(case: Case) -> None:
    """Records are converted to the block of their rows and back, byte for byte."""
    assert block_of_records(case.schema, case.records) == case.block
    assert bytes_in(records_of_block(case.schema, case.block)) == case.records


def a_table_is_its_rows(case: Case) -> None:
    """A table's column has the declared type, and its rows are written as the same records."""
    data, places = data_of(case.records)
    batch = decode(data, places[:-1], places[1:], sequence=case.schema.record == "sequence_example")
    sections = stored_sections(case.schema, batch)
    column = TableColumn(place=case._place, feature=case.feature, text=False)
    array = column.array(sections)
    array.validate(full=True)
    assert array.type == column.type, f"{array.type} != {column.type}"
    values = from_arrow(array, case.feature)
    assert case.schema.encode_batch({case.feature.name: values}, ROWS) == case.records


def padding_is_not_data(case: Case) -> None:
    """A batch made dense has its values where the mask is true, and `padding` everywhere else."""
    padding = case.feature.padding
    assert list(padding) == list(case.feature.outputs)
    types = batch_spec(case.schema)
    if len(types) == 1 and all(isinstance(one, tf.TensorSpec) for one in types.values()):
        return  # dense, and nothing says how many values are real
    batch = case.schema.decode(case.records)
    for name, value in batch.items():
        lengths = batch.get(f"{name}_length")
        composite = isinstance(value, tf.RaggedTensor | tf.sparse.SparseTensor)
        if not composite and lengths is None:
            continue
        filled = tensors.dense(value, padding[name])
        real = tensors.mask_of(value, None if composite else lengths)
        if composite:
            flat = value.values if isinstance(value, tf.sparse.SparseTensor) else value.flat_values
            _assert_same(flat, tf.boolean_mask(filled, real), 0)
        rest = tf.boolean_mask(filled, ~real)
        pad = tf.zeros([], value.dtype) if padding[name] is None else tf.constant(padding[name], value.dtype)
        _assert_same(tf.fill(tf.shape(rest), pad), rest, 0)


def a_graph_does_as_eager(case: Case) -> None:
    """Decoding in a graph gives the same values as decoding eagerly."""
    graph = case.traced("batch").values
    for name, value in case.decoded_batch.items():
        _assert_same(value, graph[name], 0)


def numpy_does_as_tensorflow(case: Case) -> None:
    """A batch, and the rows of a block, decode to the same values without TensorFlow, also row by row.

    Values of resized images differ by at most 1. A kind that has `decode` but no `decode_numpy` says so.
    """
    kind = type(case.feature)
    if kind.decode is not Feature.decode and kind.decode_numpy is Feature.decode_numpy:
        _assert_needs_tensorflow(case)
        return
    batch = case.schema.decode_numpy(case.records)
    block = np.frombuffer(case.block, np.uint8)
    sections, counts = rows_of_blocks(case.schema, block, np.array([0]), np.array([len(block)]))
    assert counts.tolist() == [ROWS]
    of_block = numpy_decoder.decode_sections(case.schema, sections, ROWS)
    assert list(batch) == list(of_block) == list(case.decoded_batch)
    tolerance = max(case.tolerance, isinstance(case.feature, Pictures) and case.feature.resizing is not None)
    for name, expected in case.decoded_batch.items():
        for value in (batch[name], of_block[name]):
            _assert_same(expected, value, tolerance, each=True)
            if isinstance(value, SparseArray):
                assert value.shape == tuple(expected.dense_shape.numpy())
        for place, record in enumerate(case.decoded):
            alone, row = record[name], batch[name][place]
            assert isinstance(row, RaggedArray) == isinstance(alone, tf.RaggedTensor), name
            if isinstance(row, np.ndarray):  # without the padding
                row = row[tuple(slice(size) for size in alone.shape)]
            _assert_same(alone, row, tolerance, each=True)


def _assert_needs_tensorflow(case: Case) -> None:
    try:
        case.schema.decode_numpy(case.records)
    except SpecError as refused:
        error = refused
    else:
        raise AssertionError("it was decoded")
    expected = f"{case.feature.name}: expected a kind with `decode_numpy`, got {case.feature.kind} ("
    assert expected in str(error), str(error)


def nothing_is_refused(case: Case) -> None:
    """Encoding None raises an error that names row and feature, or the record decodes to the default."""
    rows = [*case.rows[:1], {case.feature.name: None}]
    if case.feature.traits.optional and not case._place.in_steps:
        record = case.schema.encode({})
        assert case.schema.decode(record).keys() == case.schema.element_spec().keys()
        return
    try:
        case.schema.encode_batch(columns_of(case.schema, rows), len(rows))
    except RecordError as refused:
        error = refused
    else:
        raise AssertionError("None was written")
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
    """The schema can be pickled, for other processes."""
    assert pickle.loads(pickle.dumps(case.schema)) == case.schema


LAWS: tuple[Callable[[Case], None], ...] = (
    stored_again_it_is_the_same,
    a_batch_of_rows_is_its_rows,
    the_keys_are_the_columns,
    the_decoded_type_is_the_spec,
    a_batch_is_its_records,
    a_block_is_a_batch,
    a_block_is_its_records,
    a_table_is_its_rows,
    padding_is_not_data,
    a_graph_does_as_eager,
    numpy_does_as_tensorflow,
    nothing_is_refused,
    its_yaml_is_itself,
    it_pickles,
)


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


def _rows(batch: Any) -> Iterable[Any]:
    """The rows of a batch, each as `_plain` returns it; sparse batches are split into rows first."""
    if not isinstance(batch, tf.sparse.SparseTensor):
        return _plain(batch)  # type: ignore[no-any-return]
    shape = batch.dense_shape[1:]
    size = tf.concat([[1], shape], 0)
    starts = (tf.concat([[index], tf.zeros_like(shape)], 0) for index in range(int(batch.dense_shape[0])))
    return [tf.sparse.reshape(tf.sparse.slice(batch, start, size), shape) for start in starts]


def _assert_same(expected: Any, actual: Any, tolerance: float, *, each: bool = False) -> None:
    """Asserts that the mean difference is at most the tolerance; with `each`, every difference."""
    wanted, other = _plain(expected), _plain(actual)
    assert _equal(wanted, other, tolerance, each), f"{actual!r} is not {expected!r}"


def _plain(value: Any) -> Any:
    """The value as a NumPy array; ragged values as a list of arrays, sparse values as indices and values."""
    if isinstance(value, list | np.ndarray | np.generic | bytes):
        return value
    if isinstance(value, tf.sparse.SparseTensor):
        return [value.indices.numpy(), value.values.numpy()]
    if isinstance(value, SparseArray):
        return [value.indices, value.values]
    if isinstance(value, RaggedArray):
        rows = _plain(value.values)
        return [rows[start:stop] for start, stop in pairwise(offsets(value.lengths))]
    if isinstance(value, tf.RaggedTensor):
        rows = value.flat_values.numpy()
        for splits in reversed(value.nested_row_splits):
            rows = [rows[start:stop] for start, stop in pairwise(splits.numpy())]
        return rows
    return value.numpy()


def _equal(wanted: Any, other: Any, tolerance: float, each: bool) -> bool:
    if isinstance(wanted, list) and isinstance(other, list):
        return len(wanted) == len(other) and all(
            _equal(left, right, tolerance, each) for left, right in zip(wanted, other, strict=True)
        )
    wanted, other = np.asarray(wanted), np.asarray(other)
    if wanted.shape != other.shape or wanted.dtype != other.dtype:
        return False
    if tolerance:
        apart = np.abs(wanted.astype(float) - other.astype(float))
        return bool((apart.max(initial=0) if each else np.mean(apart)) <= tolerance)
    same = (wanted == other).all() if wanted.dtype == object else wanted.tobytes() == other.tobytes()
    return bool(same)
