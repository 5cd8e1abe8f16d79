"""Hashes of keys, looked through range by range."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from recordspec.errors import StoreError
from recordspec.store import key_hashes
from recordspec.wire import native
from recordspec.wire.arrays import strings_array


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
def test_ranges_hold_every_hash_once(count):
    ends = list(key_hashes.ranges(count))
    assert len(ends) == max(1, count)
    assert (int(ends[0][0]), int(ends[-1][1])) == (0, 2**64 - 1)
    assert all(int(low) == int(high) + 1 for (_, high), (low, _) in pairwise(ends))


def test_hashes_at_the_ends_of_a_range_are_in_it(tmp_path):
    words = np.array([[5, 0], [7, 1], [4, 2], [8, 3]], np.uint64)
    key_hashes.write(tmp_path / "keys.bin", [words])
    found, rows = key_hashes.in_range(tmp_path / "keys.bin", np.uint64(5), np.uint64(7))
    assert (found.tolist(), rows.tolist()) == ([[5, 0], [7, 1]], [0, 1])


def test_the_ends_of_a_range_of_known_keys_belong_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(key_hashes, "_AT_ONCE", 3)
    hashed = np.array([[word, word + 10] for word in (5, 1, 9, 5, 7, 2, 8)], np.uint64)
    key_hashes.write(tmp_path / "keys.bin", [hashed[:4], hashed[4:]])
    found, places = key_hashes.in_range(tmp_path / "keys.bin", np.uint64(2), np.uint64(7))
    assert found.tolist() == [[5, 15], [5, 15], [7, 17], [2, 12]]
    assert places.tolist() == [0, 3, 4, 5]


def test_a_file_that_is_gone_or_cut_is_an_error(tmp_path):
    path = tmp_path / "keys.bin"
    with pytest.raises(StoreError, match=r"keys\.bin: cannot read: no such file or directory"):
        key_hashes.in_range(path, np.uint64(0), np.uint64(7))
    key_hashes.write(path, [np.zeros((3, 2), np.uint64)])
    with pytest.raises(StoreError, match=r"keys\.bin: expected the keys of 4 rows, got 3"):
        key_hashes.read(path, 1, 3)


def test_hashes_are_those_of_all_releases(codec):
    expected = [[0xCAE66941D9EFBD40, 0x4E4D88758EA67670]]
    assert key_hashes.hashes([b""]).tolist() == expected


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8, 9, 400])
def test_the_native_codec_hashes_as_hashlib_does(monkeypatch, count):
    """Strings of all lengths around that of a block, 128 bytes; those hashed together differ in length."""
    random = np.random.default_rng(count)
    lengths = random.permutation(np.arange(400) % 391)[:count]
    keys = strings_array([random.bytes(size + 5) for size in lengths])
    hashed = key_hashes.hashes(keys, 2, 3)
    monkeypatch.setattr(native, "library", lambda: None)
    assert hashed.tolist() == key_hashes.hashes(keys, 2, 3).tolist()
    assert len(hashed) == count
