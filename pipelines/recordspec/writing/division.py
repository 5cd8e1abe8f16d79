"""The key of a row determines its split, and its place in the shuffled order.

Both are functions of a hash of the key, never of the position of the row. So appending rows moves no existing
row to another split, and the order of the source does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError, describe
from recordspec.store.key_hashes import hashes, key_bytes
from recordspec.wire.arrays import Ints, bytes_in, views_of
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES
from recordspec.wire.hashes import Words, splitmix64
from recordspec.writing.encoded_rows import EncodedRows
from recordspec.writing.write_options import SPLIT_NAME, ByColumn, Write, is_split_name

_WORD = 1 << 64


class Division:
    """Assigns rows to splits, and computes the hashes that determine their order.

    Attributes:
        splits: the names of the splits; if a column names the splits, the names found so far.
    """

    def __init__(self, options: Write) -> None:
        self._options = options
        self.splits: list[str] = list(options.weights or ())

    def of(self, columns: Mapping[str, Any], rows: EncodedRows) -> tuple[Words | None, Ints | None]:
        """Assigns rows to splits.

        Args:
            columns: the columns of the rows, with the columns of the key.
            rows: the encoded rows.

        Returns:
            The hashes that determine the order of the rows, uint64 `[n, 2]`; None if nothing depends on them.
            And the indices of the splits, int64 `[n]`; None if all rows are in the first split.

        Raises SpecError if a column is missing, RecordError for a row without a valid key or split.
        """
        keys = self._key_hashes(columns, rows)
        splits = self._splits(columns, keys)
        return self._identities(keys, rows), splits

    def _key_hashes(self, columns: Mapping[str, Any], rows: EncodedRows) -> Words | None:
        """The hash of each row's key, or of its content if there is no key; None if nothing depends on it."""
        options = self._options
        if options.keys:
            return hashes(key_bytes(columns, options.keys))
        if options.shuffle or options.unique or options.splits_by_content:
            return hashes(rows.records, HEADER_BYTES, FOOTER_BYTES)
        return None

    def _identities(self, keys: Words | None, rows: EncodedRows) -> Words | None:
        """The hash that determines the order of each row: the hash of its key. If a shuffle is on and rows
        may share a key, the hash of key and content."""
        options = self._options
        if keys is None or not options.keys or options.unique or not options.shuffle:
            return keys
        records = views_of(rows.records, HEADER_BYTES, FOOTER_BYTES)
        return hashes(list(map(b"".join, zip(map(bytes, keys.astype(">u8")), records, strict=True))))

    def _splits(self, columns: Mapping[str, Any], hashed: Words | None) -> Ints | None:
        """The index of each row's split; None if there is only one split."""
        if isinstance(self._options.splits, ByColumn):
            return self._named_splits(columns, self._options.splits.column)
        if len(self.splits) == 1:
            return None
        if self._options.group_by is not None:
            hashed = hashes(key_bytes(columns, (self._options.group_by,)))
        assert hashed is not None
        assert self._options.weights is not None
        return split_of(hashed, self._options.weights)

    def _named_splits(self, columns: Mapping[str, Any], column: str) -> Ints:
        names = [name.decode(errors="replace") for name in bytes_in(key_bytes(columns, (column,)))]
        for row, name in enumerate(names):
            if name not in self.splits:
                if not is_split_name(name):
                    problem = Problem(path=(column,), expected=SPLIT_NAME, got=describe(name))
                    raise RecordError(problem.at(f"row {row}"), row)
                self.splits.append(name)
        index = {name: number for number, name in enumerate(self.splits)}
        return np.fromiter((index[name] for name in names), np.int64, len(names))


def split_of(hashed: Words, splits: Mapping[str, float]) -> Ints:
    """The index of each row's split, int64 `[n]`."""
    total = sum(splits.values())
    shares = np.cumsum([weight / total for weight in splits.values()])[:-1]
    bounds = np.array([min(int(share * _WORD), _WORD - 1) for share in shares], np.uint64)
    return np.searchsorted(bounds, hashed[:, 0], side="right")


def order_of(hashed: Words, seed: int) -> Words:
    """The sort keys of hashed rows for a seed, uint64 `[n]`; rows with equal hashes are adjacent."""
    digest = hashlib.blake2b(str(seed).encode(), digest_size=8).digest()
    return splitmix64(hashed[:, 1] ^ np.uint64(int.from_bytes(digest, "big")))
