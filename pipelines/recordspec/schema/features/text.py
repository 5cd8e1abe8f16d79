"""`text`: UTF-8, checked at write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem
from recordspec.schema.features.feature import READING, WRITING, Feature, Invalid, Traits, ValueType
from recordspec.schema.features.option_checks import check_positive, check_value
from recordspec.schema.features.stored import refused_by_encode
from recordspec.schema.lists import strings
from recordspec.schema.tensors import TypeSpec
from recordspec.schema.values import BadValue, encode_scalar
from recordspec.wire.arrays import ArrowArray, are_ascii, are_text, bytes_in, flat_of, sizes_of, to_arrow
from recordspec.wire.columns import Column, Fixed

_ALPHABET = "aé ß\n中🙂"


@dataclass(frozen=True, kw_only=True)
class Text(Feature):
    """A text.

    Given as str, or as UTF-8 bytes. Decodes to a string tensor `[]`, the UTF-8 bytes.

    Attributes:
        max_bytes: the largest size in bytes of UTF-8; longer texts are errors at write.
        pad: the padding value of steps; the empty string by default.
    """

    kind: ClassVar[str] = "text"

    max_bytes: int | None = field(default=None, metadata=WRITING)
    pad: str | None = field(default=None, metadata=READING)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_positive("max_bytes", self.max_bytes)
        yield from check_value("pad", self.pad, "string", ())

    @cached_property
    def traits(self) -> Traits:
        return Traits(takes_arrow=True)

    @property
    def value_type(self) -> ValueType:
        return ValueType("text")

    def columns(self) -> tuple[Column, ...]:
        return (Column(key=self.stored, storage="bytes", layout=Fixed()),)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        texts = strings(values, "text")
        if not are_ascii(texts):
            for row, data in enumerate(bytes_in(texts)):
                try:
                    data.decode()
                except UnicodeDecodeError as error:
                    got = f"the byte 0x{data[error.start]:02x} at position {error.start}"
                    raise BadValue(row, "UTF-8 text", got) from None
        if self.max_bytes is not None:
            sizes = sizes_of(texts)
            over = np.flatnonzero(sizes > self.max_bytes)
            if len(over):
                got = f"{sizes[over[0]]} bytes"
                raise BadValue(int(over[0]), f"at most {self.max_bytes} bytes of UTF-8", got)
        return (to_arrow(texts),)

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        if not are_text(flat_of(array)):
            # `max_bytes` applies only at write
            yield from refused_by_encode(replace(self, max_bytes=None), array)

    def encode_one(self, value: Any) -> Sequence[Any] | None:
        encoded = None if isinstance(value, bytes) and not value.isascii() else encode_scalar(value, "string")
        too_long = encoded is not None and self.max_bytes is not None and len(encoded[0]) > self.max_bytes
        return None if too_long else encoded

    def spec(self) -> TypeSpec:
        return tf.TensorSpec([], "string")

    def sample(self, rng: np.random.Generator) -> Any:
        longest = min(8, (self.max_bytes or 32) // 4)
        picks = rng.integers(0, len(_ALPHABET), int(rng.integers(0, longest + 1)))
        return "".join(_ALPHABET[pick] for pick in picks)
