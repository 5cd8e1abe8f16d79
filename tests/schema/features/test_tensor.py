"""Tensors of every dtype: the ends of its range, and what has no number, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import recordspec as rs
from recordspec._tf import tf
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.values import DTYPES, is_integer, numpy_dtype


def edges(dtype: str) -> np.ndarray:
    """The values that are most easily lost."""
    kind = numpy_dtype(dtype)
    if dtype == "bool":
        return np.array([False, True])
    if is_integer(dtype):
        info = np.iinfo(kind)
        return np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], kind)
    real = (
        dtype if not dtype.startswith("complex") else {"complex64": "float32", "complex128": "float64"}[dtype]
    )
    info = tf.experimental.numpy.finfo(np.float32) if real == "bfloat16" else np.finfo(numpy_dtype(real))
    largest, tiny = (
        (3.3895313892515355e38, 9.183549615799121e-41) if real == "bfloat16" else (info.max, info.tiny)
    )
    floats = np.array([largest, -largest, tiny, -0.0, 0.0, np.inf, -np.inf, np.nan], numpy_dtype(real))
    if real == dtype:
        return floats
    return (floats.astype(kind).real + 1j * floats[::-1].astype(kind).real).astype(kind)


def encodings(dtype: str) -> list[str]:
    exact = is_integer(dtype) and dtype != "uint64"
    listed = exact or dtype in ("bool", "float16", "bfloat16", "float32")
    return ["list", "raw", "zlib"] if listed else ["raw", "zlib"]


CASES = [(dtype, encoding) for dtype in DTYPES for encoding in encodings(dtype)]


def round_trip(feature: AnyTensor, values: list) -> list[np.ndarray]:
    """Written as a batch, read as a batch and one by one: these must agree."""
    schema = rs.Schema(name="s", features=(feature,))
    records = schema.encode_batch({"x": values}, len(values))
    alone = [schema.decode(record)["x"].numpy() for record in records]
    together = schema.decode(records)["x"]
    for one, other in zip(alone, together, strict=True):
        assert one.tobytes() == other.numpy().tobytes()
    return alone


@pytest.mark.parametrize(("dtype", "encoding"), CASES)
def test_every_edge_comes_back_bit_for_bit(dtype, encoding):
    values = edges(dtype)
    for shape, given in (
        ((), list(values)),
        ((len(values),), [values, values[::-1]]),
        ((1, len(values), 1), [values[None, :, None]]),
        ((None,), [values, values[:0], values[:1]]),
        ((0,), [values[:0], values[:0]]),
        ((2, 0, 3), [np.zeros((2, 0, 3), numpy_dtype(dtype))]),
    ):
        found = round_trip(AnyTensor(name="x", dtype=dtype, shape=shape, encoding=encoding), given)
        for one, other in zip(found, given, strict=True):
            assert one.dtype == numpy_dtype(dtype)
            assert one.shape == np.shape(other)
            assert one.tobytes() == np.asarray(other, numpy_dtype(dtype)).tobytes()


@pytest.mark.parametrize("dtype", [name for name in DTYPES if is_integer(name)])
def test_one_more_than_the_range_is_refused(dtype):
    info = np.iinfo(dtype)
    schema = rs.Schema(name="s", features=(AnyTensor(name="x", dtype=dtype),))
    for value in (int(info.max) + 1, int(info.min) - 1):
        with pytest.raises(rs.RecordError) as caught:
            schema.encode({"x": value})
        expected = f"row 0: features.x: expected {dtype} ({info.min} to {info.max}), got {value}"
        assert str(caught.value) == expected


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float64", "bfloat16"])
def test_raw_tensors_of_a_batch_are_decoded_by_one_op(dtype):
    schema = rs.Schema(name="s", features=(AnyTensor(name="x", dtype=dtype, shape=(4,), encoding="raw"),))
    graph = tf.function(schema.decode).get_concrete_function(tf.TensorSpec([None], tf.string)).graph
    ops = [op.type for op in graph.get_operations()]
    assert ops.count("DecodeRaw") == 1
    assert not {"While", "StatelessWhile", "MapDefun"} & set(ops)
