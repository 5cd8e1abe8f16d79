"""Batches of rows of different lengths in NumPy, with TensorFlow's ragged and sparse tensors as the oracle."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec._tf import tf
from recordspec.schema.ragged_array import (
    RaggedArray,
    SparseArray,
    dense,
    divided,
    listed,
    nested,
    parsed,
    ragged,
    sparse,
    values_of,
)
from recordspec.schema.values import BadValue
from recordspec.wire.arrays import to_arrow
from recordspec.wire.columns import Column, Fixed, Ragged, Sequence, Sparse, VarLen
from selection import scaled

LENGTHS = st.lists(st.integers(0, 3), max_size=5)


@st.composite
def arrays(draw, levels: int | None = None) -> RaggedArray:
    """Of one to three levels, with cells or without, of integers or strings."""
    lengths = [np.array(draw(LENGTHS), np.int64)]
    for _ in range((levels or draw(st.integers(1, 3))) - 1):
        count = int(lengths[-1].sum())
        lengths.append(np.array(draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)), np.int64))
    cell = draw(st.sampled_from([(), (2,)]))
    values = np.arange(1, 1 + int(lengths[-1].sum()) * 2 ** len(cell)).reshape(-1, *cell)
    made = values if draw(st.booleans()) else values.astype("S").astype(object)
    for level in reversed(lengths):
        made = RaggedArray(made, level)
    return made


def as_tensor(array: RaggedArray) -> tf.RaggedTensor:
    values = as_tensor(array.values) if isinstance(array.values, RaggedArray) else constant(array.values)
    return tf.RaggedTensor.from_row_lengths(values, array.lengths)


def constant(values: np.ndarray) -> tf.Tensor:
    return tf.constant(values, tf.string if values.dtype == object else None, values.shape)


def lists(value) -> list:
    """Any of them as lists of Python."""
    if isinstance(value, RaggedArray):
        assert [lists(value[row]) for row in range(len(value))] == list(map(lists, value))
        return list(map(lists, value))
    return value.to_list() if isinstance(value, tf.RaggedTensor) else value.tolist()


@pytest.mark.tensorflow
@settings(max_examples=scaled(50))
@given(arrays(), st.data())
def test_rows_parts_padding_and_masks_are_those_of_a_ragged_tensor(array, data):
    tensor = as_tensor(array)
    assert lists(array) == tensor.to_list()
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(array))] * 2)))
    assert lists(array.part(start, stop)) == tensor[start:stop].to_list()
    for pad in (None, "-" if tensor.dtype == tf.string else -1):
        padded, filler = array.to_dense(pad), None if pad is None else tf.constant(pad, tensor.dtype)
        assert (padded.dtype == object) == (tensor.dtype == tf.string)
        np.testing.assert_array_equal(padded, tensor.to_tensor(filler).numpy())
    count = len(array.values)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    mask = tf.RaggedTensor.from_row_lengths(tf.constant(kept), array.lengths)
    masked = array.masked(kept)
    assert lists(masked) == tf.ragged.boolean_mask(tensor, mask).to_list()
    assert len(masked.values) == kept.sum()


@given(arrays(), st.data())
def test_a_batch_is_divided_into_parts_of_so_many_rows(array, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(array)), max_size=3)))
    bounds = [0, *cuts, len(array)]
    whole = [array, array.to_dense(), listed(RaggedArray(np.arange(array.lengths.sum()), array.lengths))]
    for batch in whole:
        parts = divided(batch, np.diff(bounds))
        assert list(map(len, parts)) == np.diff(bounds).tolist()
        for part, (start, stop) in zip(parts, pairwise(bounds), strict=True):
            for row in range(start, stop):
                one, other = part[row - start], batch[row]
                if isinstance(one, SparseArray):
                    assert one.shape == other.shape
                    one, other = one.to_dense(), other.to_dense()
                assert lists(one) == lists(other)


def test_rows_whose_items_have_one_size_are_arrays():
    """Those of images; of a row without items, sizes that are not known are 0."""
    sizes = RaggedArray(np.arange(24).reshape(12, 2), np.array([3, 3, 2, 1]), dense_rows=True)
    images = RaggedArray(sizes, np.array([2, 0, 1, 1]), dense_rows=True)
    assert [images[row].shape for row in range(4)] == [(2, 3, 2), (0, 0, 2), (1, 2, 2), (1, 1, 2)]
    np.testing.assert_array_equal(images[2], np.arange(12, 16).reshape(1, 2, 2))
    (first, last) = divided(images, np.array([3, 1]))
    assert (first[2].shape, last[0].shape) == ((1, 2, 2), (1, 1, 2))
    assert images.part(2, 4)[1].shape == (1, 1, 2)


def test_a_row_that_is_longer_than_the_length_is_an_error_of_that_row():
    array = RaggedArray(np.arange(6), np.array([1, 2, 0, 3]))
    np.testing.assert_array_equal(array.to_dense(9, 4)[1], [1, 2, 9, 9])
    with pytest.raises(BadValue) as caught:
        array.to_dense(length=2)
    assert (caught.value.index, str(caught.value.problem)) == (
        3,
        "expected at most 2 items (max_length), got 3",
    )


@pytest.mark.tensorflow
@pytest.mark.parametrize("size", [(6,), (4, 3), (2, 3, 4)])
def test_sparse_values_are_sorted_as_tensorflow_sorts_them(size):
    rng = np.random.default_rng(0)
    counts = np.array([3, 0, 5, 1])
    flat = np.concatenate([rng.permutation(np.prod(size))[:count] for count in counts])
    places = np.unravel_index(flat, size)
    columns = [to_arrow(one.astype(np.int64), counts, 4) for one in places]
    array = sparse(to_arrow(np.arange(1, 10), counts, 4), columns, size)
    unsorted = np.column_stack([np.repeat(np.arange(4), counts), *places])
    expected = tf.sparse.reorder(tf.SparseTensor(unsorted, np.arange(1, 10), (4, *size)))
    np.testing.assert_array_equal(array.indices, expected.indices)
    np.testing.assert_array_equal(array.values, expected.values)
    assert array.shape == (4, *size)
    whole = tf.sparse.to_dense(expected).numpy()
    np.testing.assert_array_equal(array.to_dense(), whole)
    for row in range(4):
        np.testing.assert_array_equal(array[row].to_dense(), whole[row])
    text = SparseArray(np.array([[1, 0]]), np.array([b"x"], object), (2, 2))
    assert text.to_dense().tolist() == [[b"", b""], [b"x", b""]]


@pytest.mark.tensorflow
@settings(max_examples=scaled(30))
@given(LENGTHS)
def test_lists_are_sparse_as_tensorflow_makes_them(lengths):
    array = RaggedArray(np.arange(sum(lengths)), np.array(lengths, np.int64))
    found, expected = listed(array), as_tensor(array).to_sparse()
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.shape == tuple(expected.dense_shape.numpy())


@pytest.mark.parametrize("form", ["int64", "float32", "bytes"])
@pytest.mark.parametrize("shape", [(), (2,), (1, 2)])
def test_a_row_without_a_value_has_the_default(form, shape):
    default, stored = {"int64": (7, [3]), "float32": (0.5, [1.5]), "bytes": ("é", [b"x"])}[form]
    size = int(np.prod(shape))
    of_default = default
    for side in reversed(shape):
        of_default = (of_default,) * side
    flat = np.array(stored * size, form) if form != "bytes" else stored * size
    array = to_arrow(flat, np.array([0, size, 0]), 3)
    values, missing = dense(array, shape, of_default)
    plain = default.encode() if form == "bytes" else default
    assert missing.tolist() == [True, False, True]
    assert values.shape == (3, *shape)
    assert values.dtype == (object if form == "bytes" else form)
    assert values.reshape(3, -1).tolist() == [[plain] * size, stored * size, [plain] * size]
    some, missing = dense(array.take(pyarrow.array([1])), shape, of_default)
    assert (some.reshape(-1).tolist(), missing.tolist()) == (stored * size, [False])


def test_cells_without_values_are_empty():
    values, missing = dense(to_arrow(np.zeros(0, np.int64), 0, 3), (2, 0))
    assert (values.shape, missing.tolist()) == ((3, 2, 0), [False] * 3)


def test_columns_are_parsed_by_their_layout():
    flat, counts = to_arrow(np.arange(6), np.array([4, 0, 2])), np.array([4, 0, 2])
    inner = to_arrow(np.array([1, 2, 1, 2]), np.array([2, 1, 1]))
    columns = {
        "a": flat,
        "n": to_arrow(np.array([3, 1, 2]), np.array([2, 0, 1])),
        "i": to_arrow(np.array([9, 1, 3, 5, 0, 2]), counts),
        "m": inner,
        "f": to_arrow(np.arange(6), 2),
        "o": to_arrow(np.arange(6), np.array([1, 2, 3])),
    }

    def of(layout, key="a"):
        return parsed(Column(key=key, storage="int64", layout=layout), columns)

    assert of(Fixed(shape=(2,)), "f").tolist() == [[0, 1], [2, 3], [4, 5]]
    assert of(Sequence(pad=-1)).tolist() == [[0, 1, 2, 3], [-1] * 4, [4, 5, -1, -1]]
    assert of(Sequence(shape=(2,))).tolist() == [[[0, 1], [2, 3]], [[0, 0]] * 2, [[4, 5], [0, 0]]]
    assert lists(of(Ragged(shape=(2,)))) == [[[0, 1], [2, 3]], [], [[4, 5]]]
    assert lists(of(Ragged(row_lengths=("n",)))) == [[[0, 1, 2], [3]], [], [[4, 5]]]
    assert lists(of(VarLen(ragged=True))) == [[0, 1, 2, 3], [], [4, 5]]
    assert of(VarLen()).to_dense().tolist() == [[0, 1, 2, 3], [0] * 4, [4, 5, 0, 0]]
    assert of(Sparse(index_keys=("i",), size=(10,))).to_dense()[0].tolist() == [0, 1, 0, 2, 0, 3, 0, 0, 0, 0]
    three = nested(columns["o"], [inner, to_arrow(np.array([1, 0, 1, 2, 1, 1]), np.array([3, 1, 2]))])
    assert lists(three) == [[[[0]], [[], [1]]], [[[2, 3]]], [[[4], [5]]]]
    assert ragged(flat).lengths.tolist() == [4, 0, 2]
    assert values_of(to_arrow([b"x", b""], np.array([2]))).tolist() == [b"x", b""]


def test_rows_of_sparse_values_are_those_of_the_dense_array():
    array = SparseArray(np.array([[0, 2], [2, 1]]), np.array([5, 6]), (3, 4))
    filled = array.to_dense()
    for row in (*range(-3, 3), np.int64(1)):
        np.testing.assert_array_equal(array[row].to_dense(), filled[row])
    np.testing.assert_array_equal([row.to_dense() for row in array], filled)
    for row in (3, 99, -4):
        with pytest.raises(IndexError):
            array[row]
