"""Converts the dtype and shape of the values under one key, as described by another format, to a feature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.schema.features import Feature
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.fixed_len_sequence import FixedLenSequence
from recordspec.schema.features.option_checks import STORAGE
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.var_len import VariableLen

# Each value of a default becomes an item of a Python tuple.
_MAX_DEFAULT_VALUES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """The values under one key.

    Attributes:
        name: the name of the feature.
        key: the key that stores the values.
        dtype: float32, int64 or string; or a dtype that a list represents exactly, like bool.
        shape: the sizes of the dimensions; None for an unknown size. Unknown sizes come first.
        default: the value for a record without the key.
        max_length: the length of the longest list.
        sparse: whether a list is decoded to a SparseTensor.
        row_lengths: the keys of the row lengths, a key for each None except the first.
        per_step: whether the values belong to one step of a SequenceExample.
        description: a text for readers.
    """

    name: str
    key: str
    dtype: str
    shape: tuple[int | None, ...] = ()
    default: Any = None
    max_length: int | None = None
    sparse: bool = False
    row_lengths: tuple[str, ...] = ()
    per_step: bool = False
    description: str = ""

    def feature(self) -> Feature:
        """The feature that stores exactly these values. Raises SpecError for a shape that no kind
        supports.
        """
        named: dict[str, Any] = {"name": self.name, "key": self.key, "description": self.description}
        named |= {"dtype": self.dtype}
        made: Feature
        if self.dtype not in STORAGE:
            made = AnyTensor(shape=self.shape, **named)
        elif None not in self.shape and self.per_step:
            made = FixedLenSequence(shape=self.shape, **named)
        elif None not in self.shape:
            made = FixedLen(shape=self.shape, default=self.default, **named)
        elif len(self.shape) > 1:
            made = RaggedLists(shape=self.shape, row_lengths=self.row_lengths, **named)
        else:
            as_: Any = "sparse" if self.sparse else "ragged"
            made = VariableLen(as_=as_, max_length=self.max_length, **named)
        return made.shortest


def full_default(value: Any, shape: tuple[int | None, ...]) -> Any:
    """A default of `shape` filled with `value`, as nested tuples; None for a shape without values.

    Raises SpecError for too many values.
    """
    count = math.prod(size or 0 for size in shape)
    if count > _MAX_DEFAULT_VALUES:
        expected = f"a default of at most {_MAX_DEFAULT_VALUES:,} values"
        raise SpecError(Problem(path=("default",), expected=expected, got=f"{count:,}"))
    if not count:
        return None
    for size in reversed(shape):
        value = (value,) * (size or 0)
    return value
