"""64-bit hashes of many values at once, the same in every process and on every machine.

They tell values apart that nobody made to collide: they are no proof against somebody who wants that.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from recordspec.wire.strings import Bytes, Ints, Strings, windows

Words = npt.NDArray[np.uint64]

_WORD = 8
# Longer strings are given to blake2b one by one: 1 us, and 1 ns a byte. A word of many strings is 20 ns.
_LONGEST = 64
# The part of a word that so many bytes are.
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)


def scattered(words: Words) -> Words:
    """A bijection in which every bit depends on all (the finalizer of SplitMix64, Steele et al. 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed


def of_strings(strings: Strings) -> Words:
    """The hash of each string, uint64 `[n]`."""
    sizes = strings.sizes
    hashed = scattered(sizes.view(np.uint64) + np.uint64(1))
    short = sizes <= _LONGEST
    buffer = np.concatenate([strings.buffer, np.zeros(_WORD, np.uint8)])
    starts = strings.offsets[:-1]
    for start in range(0, min(int(sizes.max(initial=0)), _LONGEST), _WORD):
        at = np.flatnonzero(short & (sizes > start))
        hashed[at] = scattered(hashed[at] ^ _words(buffer, starts[at] + start, sizes[at] - start))
    long = np.flatnonzero(~short)
    hashed[long] = of_records(buffer, starts[long], strings.offsets[1:][long])
    return hashed


def of_records(buffer: Bytes, starts: Ints, stops: Ints) -> Words:
    """The hash of each of some parts of a buffer, which are long, uint64 `[n]`."""
    view = buffer.data
    parts = zip(starts.tolist(), stops.tolist(), strict=True)
    hashed = b"".join([_digest(view[start:stop]) for start, stop in parts])
    return np.frombuffer(hashed, "<u8").astype(np.uint64, copy=False)


def _words(buffer: Bytes, places: Ints, sizes: Ints) -> Words:
    """The next bytes of strings, at most 8, as numbers."""
    words: Words = windows(buffer, _WORD)[places].view("<u8").astype(np.uint64, copy=False)
    return words if (sizes >= _WORD).all() else words & _MASKS[np.minimum(sizes, _WORD)]


def _digest(data: memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_WORD).digest()
