"""Imports TensorFlow at the first use, because that takes 2 to 4 seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recordspec.errors import missing_package

if TYPE_CHECKING:  # where TensorFlow, or its stubs, are installed, editors know its methods
    import tensorflow

    Dataset = tensorflow.data.Dataset
else:
    Dataset = Any


class TensorShape(tuple[int | None, ...]):
    """A stand-in for tf.TensorShape."""

    def as_list(self) -> list[int | None]:
        return list(self)

    def concatenate(self, other: tuple[int | None, ...]) -> TensorShape:
        return TensorShape((*self, *other))


@dataclass(frozen=True)
class DType:
    """A stand-in for tf.DType."""

    name: str


class TensorSpec:
    """A stand-in for tf.TensorSpec."""

    def __init__(self, shape: Iterable[int | None], dtype: str | DType) -> None:
        self.shape = TensorShape(shape)
        self.dtype = DType(dtype) if isinstance(dtype, str) else dtype


class SparseTensorSpec(TensorSpec):
    """A stand-in for tf.SparseTensorSpec."""


class RaggedTensorSpec(TensorSpec):
    """A stand-in for tf.RaggedTensorSpec."""

    def __init__(
        self, shape: Iterable[int | None], dtype: str | DType, ragged_rank: int, row_splits_dtype: Any
    ) -> None:
        super().__init__(shape, dtype)
        self.ragged_rank = ragged_rank


_STAND_INS: dict[str, Any] = {
    **{one.__name__: one for one in (TensorShape, TensorSpec, SparseTensorSpec, RaggedTensorSpec)},
    **{name: DType(name) for name in ("int32", "int64")},
}
_with_stand_ins: ContextVar[bool] = ContextVar("with_stand_ins", default=False)


@contextmanager
def stand_ins() -> Iterator[None]:
    """Within it, `Feature.spec` of recordspec's own kinds has types that can be shown, without TensorFlow."""
    token = _with_stand_ins.set(True)
    try:
        yield
    finally:
        _with_stand_ins.reset(token)


class _Lazy:
    def __getattr__(self, name: str) -> Any:
        if name in _STAND_INS and _with_stand_ins.get():
            return _STAND_INS[name]
        if name.startswith("_") and name != "__version__":
            raise AttributeError(name)  # pytest looks for its own marks in every name of a module
        try:
            import tensorflow  # a statement, which is much faster than import_module once it is imported
        except ImportError as missing:
            raise missing_package(
                "TensorFlow", "tensors and tf.data", "recordspec[tensorflow]", missing
            ) from None
        return getattr(tensorflow, name)


tf: Any = _Lazy()
