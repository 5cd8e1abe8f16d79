"""`label`: one of a few names, stored as its index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, describe, nearest, one_of, show_int
from recordspec.spec.features.base import Feature, Tensor, TypeSpec
from recordspec.spec.features.options import problem
from recordspec.spec.values import BadValue
from recordspec.wire.columns import Cells, Column, Fixed

_MOST_NAMES_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Label(Feature):
    """A class. The names live in the spec, and travel in the manifest.

    Given as a name or as an index, 0 to `len(names) - 1`. Decodes to the index, int64 `[]`.

    Attributes:
        names: in the order of their indices.
        oov: what becomes of a name that is not among them: `error`, or `index`, one index for all of
            them, `len(names)`. An index outside is always an error.
    """

    kind: ClassVar[str] = "label"

    names: tuple[str, ...]
    oov: Literal["error", "index"] = "error"

    def check(self) -> Iterator[Problem]:
        if not self.names:
            yield problem("names", "at least one name", "none")
        seen: dict[str, int] = {}
        for place, name in enumerate(self.names):
            if name in seen:
                hint = f"it is name {seen[name]} already"
                yield Problem(
                    path=("names", place), expected="every name once", got=f"`{name}` again", hint=hint
                )
            seen.setdefault(name, place)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def columns(self) -> tuple[Column, ...]:
        return (Column(key=self.stored, storage="int64", layout=Fixed()),)

    def encode(self, values: Any) -> tuple[Cells, ...]:
        given = values.tolist() if isinstance(values, np.ndarray) else values
        flat = np.fromiter((self._index(row, one) for row, one in enumerate(given)), np.int64, len(given))
        return (Cells(flat=flat, lengths=1, rows=len(given)),)

    def _index(self, row: int, value: Any) -> int:
        if isinstance(value, bytes):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                raise BadValue(row, self._expected(), describe(value)) from None
        if isinstance(value, str):
            index = self._indices.get(value)
            if index is not None:
                return index
            if self.oov == "index":
                return len(self.names)
            raise BadValue(row, self._expected(), f"`{value}`", nearest(value, self.names))
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            last = len(self.names) - (self.oov == "error")
            if 0 <= value <= last:
                return int(value)
            raise BadValue(row, f"an index from 0 to {last}", show_int(int(value)))
        raise BadValue(row, self._expected(), describe(value))

    def _expected(self) -> str:
        if len(self.names) > _MOST_NAMES_SHOWN:
            return f"one of {len(self.names)} names, or an index"
        return f"{one_of(self.names)}, or an index"

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor:
        return columns[self.stored]

    def spec(self) -> TypeSpec:
        return tf.TensorSpec([], "int64")

    def sample(self, rng: np.random.Generator) -> Any:
        return self.names[int(rng.integers(0, len(self.names)))]
