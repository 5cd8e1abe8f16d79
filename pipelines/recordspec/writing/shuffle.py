"""Where a row goes: its split, and its place in the order, as functions of its key.

Both come from a hash of the key, never from the row's position: adding rows moves no old row to
another split, and the order of the source does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.wire.hashes import splitmix64
from recordspec.wire.strings import Ints

Hashes = npt.NDArray[np.uint64]

_WORD = 1 << 64


def hashes(keys: Iterable[Any]) -> Hashes:
    """128-bit hashes of keys (bytes), uint64 `[n, 2]`."""
    digests = b"".join([hashlib.blake2b(key, digest_size=16).digest() for key in keys])
    return np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)


def split_of(hashed: Hashes, splits: Mapping[str, float]) -> Ints:
    """The index of each row's split, int64 `[n]`."""
    total = sum(splits.values())
    shares = np.cumsum([weight / total for weight in splits.values()])[:-1]
    bounds = np.array([min(int(share * _WORD), _WORD - 1) for share in shares], np.uint64)
    return np.searchsorted(bounds, hashed[:, 0], side="right")


def places(hashed: Hashes, seed: int) -> npt.NDArray[np.uint64]:
    """Where the seed puts the rows of these hashes in the order, uint64 `[n]`; equal hashes are together."""
    digest = hashlib.blake2b(str(seed).encode(), digest_size=8).digest()
    return splitmix64(hashed[:, 1] ^ np.uint64(int.from_bytes(digest, "big")))
