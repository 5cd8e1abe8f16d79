"""Tensor representations: the tensors that TensorFlow Metadata creates from features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from recordspec.interop.tfmd.messages import sizes

FeaturePath = tuple[str, ...]

# A value of RowPartitionDType.
_INT32 = 2


@dataclass(frozen=True, kw_only=True)
class TensorRepresentation:
    """A tensor, and the features from which it is created.

    Attributes:
        name: the name of the tensor.
        values: the path of the feature that stores its values.
        parts: the keys of the features that store its row lengths or indices.
        kind: the type of the representation.
        shape: the shape of a dense tensor, the dense shape of a sparse tensor, or the inner uniform shape of
            a ragged tensor.
        default: the DefaultValue of a dense tensor, if any.
    """

    name: str
    values: FeaturePath
    kind: Literal["dense", "varlen", "sparse", "ragged"]
    parts: tuple[str, ...] = ()
    shape: tuple[int | None, ...] | None = None
    default: Any = None

    @property
    def part_paths(self) -> tuple[FeaturePath, ...]:
        """The paths of the parts, which are siblings of the values."""
        return tuple((*self.values[:-1], part) for part in self.parts)


def represented(name: str, message: Any) -> TensorRepresentation | None:
    """The tensor of a TensorRepresentation message; None if it is not supported."""
    if message.HasField("dense_tensor"):
        dense = message.dense_tensor
        shape = sizes(dense.shape) if dense.HasField("shape") else None
        default = dense.default_value if dense.HasField("default_value") else None
        return TensorRepresentation(
            name=name, values=(dense.column_name,), kind="dense", shape=shape, default=default
        )
    if message.HasField("varlen_sparse_tensor"):
        return TensorRepresentation(
            name=name, values=(message.varlen_sparse_tensor.column_name,), kind="varlen"
        )
    if message.HasField("sparse_tensor"):
        sparse = message.sparse_tensor
        return _sparse(name, sparse.value_column_name, sparse.index_column_names, sizes(sparse.dense_shape))
    return _ragged(name, message.ragged_tensor) if message.HasField("ragged_tensor") else None


def unsupported_options(message: Any) -> Iterator[str]:
    """Notes on the unsupported options of a supported TensorRepresentation."""
    if message.sparse_tensor.already_sorted:
        yield "already_sorted: has no counterpart"
    if message.ragged_tensor.row_partition_dtype == _INT32:
        yield "row partitions of INT32: read as int64"


def from_sparse_feature(message: Any, features: dict[FeaturePath, Any]) -> TensorRepresentation | None:
    """The tensor of a SparseFeature; its shape may follow from the domains of its indices."""
    keys = [index.name for index in message.index_feature]
    shape = sizes(message.dense_shape)
    if not shape:
        domains = [one.int_domain for key in keys if (one := features.get((key,))) is not None]
        counted = [domain.HasField("max") and domain.min == 0 for domain in domains]
        if len(domains) == len(keys) and all(counted):  # indices count from 0
            shape = tuple(int(domain.max) + 1 for domain in domains)
    return _sparse(message.name, message.value_feature.name, keys, shape)


def _sparse(name: str, values: str, keys: Any, shape: tuple[int | None, ...]) -> TensorRepresentation | None:
    if None in shape or len(shape) != len(keys) or not shape:
        return None
    return TensorRepresentation(name=name, values=(values,), kind="sparse", parts=tuple(keys), shape=shape)


def _ragged(name: str, message: Any) -> TensorRepresentation | None:
    """The tensor of a ragged representation: row lengths first, then uniform sizes; no kind stores them
    in another order.
    """
    kinds = [partition.HasField("row_length") for partition in message.partition]
    lengths = tuple(
        partition.row_length for partition in message.partition if partition.HasField("row_length")
    )
    cell = tuple(
        int(partition.uniform_row_length)
        for partition in message.partition
        if not partition.HasField("row_length")
    )
    path = tuple(message.feature_path.step)
    if kinds != sorted(kinds, reverse=True) or not path or any(size < 1 for size in cell):
        return None
    return TensorRepresentation(name=name, values=path, kind="ragged", parts=lengths, shape=cell)
