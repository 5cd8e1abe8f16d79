"""What is counted of the values of a feature, by the kind of their lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.inspect.stats.forms import Forms
from recordspec.inspect.stats.frequent import Frequent
from recordspec.inspect.stats.moments import Moments
from recordspec.inspect.stats.names import Names
from recordspec.inspect.stats.sample import Sample
from recordspec.inspect.stats.sizes import Sizes
from recordspec.wire import hashes
from recordspec.wire.columns import Kind
from recordspec.wire.hashes import Words
from recordspec.wire.strings import Ints, Strings

# Indices of classes from here on are not counted one by one.
MOST_INDICES = 1 << 17


class Numbers:
    """Int64 or float32 values.

    Attributes:
        moments: what is told of all of them.
        sample: of the finite ones.
        frequent: whole numbers alone; None of others.
        indices: of whole numbers, how often each from 0 on is there, int64 `[at most MOST_INDICES]`.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.moments = Moments()
        self.sample = Sample(dtype)
        self.frequent = Frequent() if np.dtype(dtype).kind == "i" else None
        self.indices: Ints = np.zeros(0, np.int64)

    def add(self, values: npt.NDArray[Any], places: Words) -> Words | None:
        """Values, and the hashes of where they stand. Gives what tells them apart, where they are counted."""
        finite = self.moments.add(values)
        if finite is None:
            self.sample.add(values, places)
        else:
            self.sample.add(values[finite], places[finite])
        if self.frequent is None:
            return None
        codes = values.view(np.uint64)
        self.frequent.add(codes)
        self._add_indices(np.bincount(values[codes < MOST_INDICES]))
        return codes

    def _add_indices(self, counts: Ints) -> None:
        more, less = sorted((self.indices, counts), key=len, reverse=True)
        self.indices = more.copy()
        self.indices[: len(less)] += less

    def merge(self, other: Numbers) -> None:
        self.moments.merge(other.moments)
        self.sample.merge(other.sample)
        if self.frequent is not None and other.frequent is not None:
            self.frequent.merge(other.frequent)
            self._add_indices(other.indices)

    @property
    def count(self) -> int:
        return self.moments.count

    @property
    def top(self) -> list[tuple[int, int]]:
        """The values that are counted, with their counts; the most frequent first."""
        if self.frequent is None:
            return []
        values = self.frequent.codes.view(np.int64).tolist()
        return sorted(
            zip(values, self.frequent.counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0])
        )


class ByteStrings:
    """Bytes values.

    Attributes:
        sizes: in bytes.
        forms: what they are.
    """

    def __init__(self) -> None:
        self.sizes = Sizes()
        self.forms = Forms()
        self.frequent = Frequent()
        self._names = Names()

    def add(self, values: Strings, places: Words) -> Words:
        """Values, and the hashes of where they stand. Gives what tells them apart."""
        self.sizes.add(values.each, len(values))
        self.forms.add(values, places)
        codes = hashes.of_strings(values)
        new = self.frequent.add(codes)
        if len(new):
            order = np.argsort(codes)
            self._names.add(new, values.take(order[np.searchsorted(codes, new, sorter=order)]))
            self._names.forget(self.frequent.codes)
        return codes

    def merge(self, other: ByteStrings) -> None:
        self.sizes.merge(other.sizes)
        self.forms.merge(other.forms)
        self.frequent.merge(other.frequent)
        self._names.merge(other._names)
        self._names.forget(self.frequent.codes)

    @property
    def count(self) -> int:
        return self.sizes.count

    @property
    def named(self) -> list[tuple[bytes, int, int]]:
        """The values that are counted, or their beginnings, what tells them apart, and their counts."""
        codes = self.frequent.codes
        names, counts = self._names.of(codes), self.frequent.counts.tolist()
        return list(zip(names, codes.tolist(), counts, strict=True))

    @property
    def top(self) -> list[tuple[bytes, int]]:
        """The values that are counted, or their beginnings, with their counts; the most frequent first."""
        return sorted(((name, count) for name, _, count in self.named), key=lambda pair: (-pair[1], pair[0]))


Values = Numbers | ByteStrings


def of_kind(kind: Kind) -> Values:
    """What counts values of a kind."""
    return ByteStrings() if kind == "bytes" else Numbers(kind)
