"""Byte strings, as far as they are shown, by the hash that tells them apart."""

from __future__ import annotations

import numpy as np

from recordspec.wire.hashes import Words
from recordspec.wire.strings import Strings, prefixes

# So many first bytes are kept, and one more that tells whether there are others.
SHOWN = 64
# Those that are wanted no more are forgotten when they are most of all.
_TIMES = 4


class Names:
    """The beginnings of some strings."""

    def __init__(self) -> None:
        self._parts: list[tuple[Words, Strings]] = []

    def add(self, codes: Words, strings: Strings) -> None:
        """Strings, and what tells them apart."""
        self._parts.append((codes, prefixes(strings, SHOWN + 1)))

    def merge(self, other: Names) -> None:
        self._parts += other._parts

    def forget(self, wanted: Words) -> None:
        """All but the wanted ones, if the others are many."""
        if sum(len(codes) for codes, _ in self._parts) <= _TIMES * max(len(wanted), SHOWN):
            return
        codes, firsts = np.unique(np.concatenate([codes for codes, _ in self._parts]), return_index=True)
        kept = np.isin(codes, wanted, assume_unique=True)
        strings = Strings.joined([strings for _, strings in self._parts])
        self._parts = [(codes[kept], strings.take(firsts[kept]))]

    def of(self, codes: Words) -> list[bytes]:
        """Each of those that were added: whole, or longer than is shown."""
        known: dict[int, bytes] = {}
        for some, strings in self._parts:
            known.update(zip(some.tolist(), strings, strict=True))
        return [known[code] for code in codes.tolist()]
