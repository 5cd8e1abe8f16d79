"""Tensor representations: how TensorFlow Metadata says which tensors are made of which features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recordspec.interop.tfmd.values import sizes

Place = tuple[str, ...]

# Of RowPartitionDType.
_INT32 = 2


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor, and the features it is made of.

    Attributes:
        name: of the tensor.
        values: the place of the feature that has its values.
        parts: the keys of the features with its row lengths or indices.
        form: which of the representations it has.
        shape: of a dense one; of a sparse one its size; of a ragged one that of a cell.
        default: the DefaultValue of a dense one, if any.
    """

    name: str
    values: Place
    form: str
    parts: tuple[str, ...] = ()
    shape: tuple[int | None, ...] | None = None
    default: Any = None

    @property
    def places(self) -> Iterator[Place]:
        """Those of all its features: the parts stand beside the values."""
        yield self.values
        for part in self.parts:
            yield (*self.values[:-1], part)


def represented(name: str, given: Any) -> Tensor | None:
    """The tensor that a TensorRepresentation says; None where it is none that can be read here."""
    if given.HasField("dense_tensor"):
        dense = given.dense_tensor
        shape = sizes(dense.shape) if dense.HasField("shape") else None
        default = dense.default_value if dense.HasField("default_value") else None
        return Tensor(name=name, values=(dense.column_name,), form="dense", shape=shape, default=default)
    if given.HasField("varlen_sparse_tensor"):
        return Tensor(name=name, values=(given.varlen_sparse_tensor.column_name,), form="varlen")
    if given.HasField("sparse_tensor"):
        sparse = given.sparse_tensor
        return _sparse(name, sparse.value_column_name, sparse.index_column_names, sizes(sparse.dense_shape))
    return _ragged(name, given.ragged_tensor) if given.HasField("ragged_tensor") else None


def unsaid(given: Any) -> Iterator[str]:
    """What of a TensorRepresentation that can be read has no counterpart."""
    if given.sparse_tensor.already_sorted:
        yield "already_sorted: has no counterpart"
    if given.ragged_tensor.row_partition_dtype == _INT32:
        yield "row partitions of INT32: they are int64 here"


def of_sparse_feature(given: Any, features: dict[Place, Any]) -> Tensor | None:
    """The tensor of a SparseFeature, whose size may be told by the ranges of the indices."""
    keys = [index.name for index in given.index_feature]
    shape = sizes(given.dense_shape)
    if not shape:
        shape = tuple(_range(features.get((key,))) for key in keys)
    return _sparse(given.name, given.value_feature.name, keys, shape)


def _range(index: Any) -> int | None:
    """How many indices there are, from 0."""
    if index is None or not index.int_domain.HasField("max") or index.int_domain.min != 0:
        return None
    return int(index.int_domain.max) + 1


def _sparse(name: str, values: str, keys: Any, shape: tuple[int | None, ...]) -> Tensor | None:
    if None in shape or len(shape) != len(keys) or not shape:
        return None
    return Tensor(name=name, values=(values,), form="sparse", parts=tuple(keys), shape=shape)


def _ragged(name: str, given: Any) -> Tensor | None:
    """Row lengths first, then the sizes of a cell: in another order we have no kind for it."""
    kinds = [partition.HasField("row_length") for partition in given.partition]
    lengths = tuple(partition.row_length for partition in given.partition if partition.HasField("row_length"))
    cell = tuple(
        int(partition.uniform_row_length)
        for partition in given.partition
        if not partition.HasField("row_length")
    )
    path = tuple(given.feature_path.step)
    if kinds != sorted(kinds, reverse=True) or not path or any(size < 1 for size in cell):
        return None
    return Tensor(name=name, values=path, form="ragged", parts=lengths, shape=cell)
