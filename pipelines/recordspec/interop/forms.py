"""The values of one key as other languages say them, a dtype and a shape, as a feature of ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from recordspec.errors import Problem, SpecError
from recordspec.spec.features import Feature
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.fixed_len_sequence import FixedLenSequence
from recordspec.spec.features.options import STORAGE
from recordspec.spec.features.ragged import RaggedLists
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.var_len import VariableLen

# Each is an item of a tuple in Python.
_MOST_DEFAULTS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Form:
    """What stands under one key.

    Attributes:
        name: of the tensor.
        key: what it is stored under.
        dtype: float32, int64 or string; or one that a list of these holds exactly, such as bool.
        shape: a null for each dimension that varies; these come first.
        default: of a record without the key.
        max_length: of a list.
        sparse: whether a list is read as a SparseTensor.
        row_lengths: the keys of the lengths of inner lists, one for each null but the first.
        steps: whether it is one step of a SequenceExample.
        description: for people.
    """

    name: str
    key: str
    dtype: str
    shape: tuple[int | None, ...] = ()
    default: Any = None
    max_length: int | None = None
    sparse: bool = False
    row_lengths: tuple[str, ...] = ()
    steps: bool = False
    description: str = ""

    @property
    def narrow(self) -> bool:
        """Whether tf.io lacks the dtype."""
        return self.dtype not in STORAGE

    def feature(self) -> Feature:
        """The kind that stores just this. Raises SpecError where the shape is none that it takes."""
        named: dict[str, Any] = {"name": self.name, "description": self.description, "dtype": self.dtype}
        if self.key != self.name:
            named["key"] = self.key
        if self.narrow:
            return AnyTensor(shape=self.shape, **named)
        if None not in self.shape:
            return self._fixed(named)
        if len(self.shape) > 1:
            return RaggedLists(shape=self.shape, row_lengths=self._row_lengths(), **named)
        as_: Literal["sparse", "ragged"] = "sparse" if self.sparse else "ragged"
        return VariableLen(as_=as_, max_length=self.max_length, **named)

    def _fixed(self, named: dict[str, Any]) -> Feature:
        if self.steps:
            return FixedLenSequence(shape=self.shape, **named)
        return FixedLen(shape=self.shape, default=self.default, **named)

    def _row_lengths(self) -> tuple[str, ...]:
        """None where they are those that `ragged` takes by itself."""
        levels = range(1, self.shape.count(None))
        usual = tuple(f"{self.key}/row_lengths{f'_{level}' * (level > 1)}" for level in levels)
        return () if self.row_lengths == usual else self.row_lengths


def filled(value: Any, shape: tuple[int | None, ...]) -> Any:
    """A value in every place of a shape, as nested tuples; None of one without any, which has no default.

    Raises SpecError where they are too many.
    """
    count = math.prod(size or 0 for size in shape)
    if count > _MOST_DEFAULTS:
        expected = f"a default of at most {_MOST_DEFAULTS:,} values"
        raise SpecError(Problem(path=("default",), expected=expected, got=f"{count:,}"))
    if not count:
        return None
    for size in reversed(shape):
        value = (value,) * (size or 0)
    return value
