"""Hashes: the SHA-256 of files, and 64-bit hashes of many values at a time.

The 64-bit hashes are equal in every process and on every machine. They are not cryptographic: they only
distinguish values that were not made to collide.
"""

from __future__ import annotations

import hashlib
from collections import deque

import numpy as np
import numpy.typing as npt

from recordspec.executors import Future, ThreadPool
from recordspec.locations import AnyPath, open_file
from recordspec.wire import native
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    counts_of,
    data_of,
    is_list,
    is_number,
    items_of,
    offsets,
    present_in,
    sliding_windows,
    storage_of,
    to_numpy,
)
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES
from recordspec.wire.streams import Readable

_CHUNK = 1 << 20
# Chunks that may wait to be hashed; each is kept in memory until then.
_WAITING = 1
# Up to this many bytes, starting a thread takes longer than hashing them.
FEW_BYTES = 1 << 20

Words = npt.NDArray[np.uint64]

_WORD = 8
# Masks of the first 0, 1, ... 8 bytes of a word.
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
# SplitMix64 adds multiples of this number. Words hashed at a time; memory holds several copies of them.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_AT_ONCE = 1 << 18


def splitmix64(words: Words) -> Words:
    """A bijection in which every output bit depends on every input bit (the finalizer of SplitMix64,
    Steele et al. 2014).
    """
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed


def of_strings(strings: ArrowArray) -> Words:
    """The hash of each string, uint64 `[n]`."""
    data, places = data_of(strings)
    return of_parts(data, places[:-1], places[1:])


def of_parts(buffer: Bytes, starts: Ints, stops: Ints) -> Words:
    """The hash of each of the given ranges of a buffer, uint64 `[n]`.

    It is the SplitMix64 of a sum of SplitMix64 hashes: of the size, and of each word combined with its
    position. Hence words may be hashed in any order.
    """
    if (library := native.library()) is not None:
        hashed = np.empty(len(starts), np.uint64)
        buffer, starts, stops = np.ascontiguousarray(buffer), native.ints(starts), native.ints(stops)
        library.rs_hashes(*map(native.at, (buffer, starts, stops)), len(starts), native.at(hashed))
        return hashed
    sizes = stops - starts
    hashed = splitmix64(sizes.astype(np.uint64) + np.uint64(1))
    firsts = offsets(-(-sizes // _WORD))  # the number of the first word of each range
    windows = sliding_windows(np.concatenate([buffer, np.zeros(_WORD, np.uint8)]), _WORD)
    for first in range(0, int(firsts[-1]), _AT_ONCE):
        numbers = np.arange(first, min(first + _AT_ONCE, int(firsts[-1])))
        parts = np.searchsorted(firsts, numbers, "right") - 1
        places = numbers - firsts[parts]
        words = windows[starts[parts] + _WORD * places].view("<u8").astype(np.uint64, copy=False)
        words = words & _MASKS[np.minimum(sizes[parts] - _WORD * places, _WORD)]
        begins = np.flatnonzero(np.diff(parts, prepend=-1))
        mixed = splitmix64(words ^ ((places + 1).astype(np.uint64) * _GOLDEN))
        hashed[parts[begins]] += np.add.reduceat(mixed, begins)
    return splitmix64(hashed)


def of_values(array: ArrowArray) -> Words:
    """The hash of each item of an array, a number, a string, or a list of these, uint64 `[n]`."""
    if is_list(array):
        counts, values = counts_of(array), items_of(array)
        items = of_values(values)
        if is_list(values):  # a product of factors confuses a position in a list with that of the list
            items = splitmix64(items)
        # each position in a list has an odd factor, so that a different order gives a different hash; with 1,
        # 3, 5 and so on, many lists with few different values would have equal sums
        if not (counts == 1).all():
            starts = offsets(counts)
            place = np.arange(len(items)) - np.repeat(starts[:-1], counts)
            factors = splitmix64(np.arange(1, int(counts.max()) + 1, dtype=np.uint64)) | np.uint64(1)
            sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(items * factors[place])])
            items = sums[starts[1:]] - sums[starts[:-1]]
        hashed = items + splitmix64(counts.astype(np.uint64) + np.uint64(1))
    elif is_number(array):
        numbers = to_numpy(array)
        words = numbers.view(f"u{numbers.itemsize}") if numbers.dtype != bool else numbers
        hashed = splitmix64(words.astype(np.uint64) + np.uint64(1))
    elif storage_of(array) == "none":
        hashed = np.zeros(len(array), np.uint64)
    else:
        hashed = of_strings(array)
    return np.where(present_in(array), hashed, np.uint64(0)) if array.null_count else hashed


class Sha256:
    """A SHA-256 that is computed in a thread, since hashing releases the GIL; a few bytes are hashed
    without a thread.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._left = FEW_BYTES
        self._thread: ThreadPool | None = None
        self._waiting: deque[Future[None]] = deque()

    def update(self, data: memoryview) -> None:
        """Hashes the next bytes, which must not change. Waits if too many bytes are still to be hashed."""
        self._left -= len(data)
        if self._left >= 0:
            self._hash.update(data)
            return
        self._thread = self._thread or ThreadPool("recordspec-hash")
        self._waiting.append(self._thread.submit(self._hash.update, data))
        if len(self._waiting) > _WAITING:
            self._waiting.popleft().result()

    def hexdigest(self) -> str:
        """The hash of all bytes so far, as `sha256sum` prints it."""
        while self._waiting:
            self._waiting.popleft().result()
        return self._hash.hexdigest()

    def close(self) -> None:
        """Stops the thread."""
        if self._thread is not None:
            self._thread.close()


class HashedFile:
    """An open file whose bytes are hashed as they are read. The buffers that it fills must not change.

    It is a context manager that stops the hashing thread, but does not close the file.
    """

    def __init__(self, file: Readable) -> None:
        self._file, self._hash = file, Sha256()
        self._at = self._hashed = 0  # the offset of the next read, and the next byte to be hashed

    def __enter__(self) -> HashedFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._hash.close()

    def read(self, size: int, /) -> bytes:
        data = self._file.read(size)
        self._update(memoryview(data))
        return data

    def readinto(self, view: memoryview, /) -> int:
        count = self._file.readinto(view)
        self._update(view[:count])
        return count

    def seek(self, place: int, whence: int = 0, /) -> int:
        """Moves backwards only, before the next read. Bytes that are read again are not hashed again."""
        self._at = self._file.seek(place, whence)
        return self._at

    def tell(self) -> int:
        return self._at

    def sha256(self) -> str:
        """The hash of the whole file; reads the rest of it."""
        while self.read(_CHUNK):
            pass
        return self._hash.hexdigest()

    def _update(self, data: memoryview) -> None:
        fresh = data[max(0, self._hashed - self._at) :]
        self._at += len(data)
        self._hashed = max(self._hashed, self._at)
        self._hash.update(fresh)


class FrameHash:
    """The SHA-256 of the frames of records without their data: the length and both CRCs of each record.

    Changed data has another CRC, except by a chance of 1 in 2**32 per record; the data is not read.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, buffer: Bytes, starts: Ints, stops: Ints) -> None:
        """Adds records; `starts` and `stops` are the offsets of their data in the buffer, int64 `[n]`."""
        frames = np.empty(len(starts), f"V{HEADER_BYTES}, V{FOOTER_BYTES}")
        frames["f0"] = sliding_windows(buffer, HEADER_BYTES)[starts - HEADER_BYTES]
        frames["f1"] = sliding_windows(buffer, FOOTER_BYTES)[stops]
        self._hash.update(frames.data)

    def hexdigest(self) -> str:
        """The hash of all records so far."""
        return self._hash.hexdigest()


def sha256_of(path: AnyPath) -> str:
    """The SHA-256 of a file. Raises StoreError if it cannot be read."""
    with open_file(path) as file, HashedFile(file) as hashed:
        return hashed.sha256()
