"""Random access to records of files that are not compressed, which are mapped into memory."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, finalize

import numpy as np

from recordspec.errors import Problem, RecordError, State, StoreError, system_errors
from recordspec.locations import Location, open_file
from recordspec.store.shards import replaced
from recordspec.wire import native
from recordspec.wire.arrays import Bytes, Ints, offsets
from recordspec.wire.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    length_in,
    masked_crc,
    place,
    problem_at,
)

if TYPE_CHECKING:
    from recordspec.store.index import FileIndex

# The most mappings of a process on Linux; and about as many as a process has for other purposes.
_LIMIT, _OTHERS = Path("/proc/sys/vm/max_map_count"), 2000
_MAPPING = threading.Lock()
_MAPPED: WeakValueDictionary[tuple[int, ...], Bytes] = WeakValueDictionary()


def mapped_file(path: Path) -> Bytes:
    """The bytes of a file, mapped into memory, uint8 `[bytes]`. Raises OSError, and StoreError if the system
    allows the process no further mapping.

    A mapping by Python or NumPy holds a file descriptor, and most systems allow a process 1,024. This mapping
    holds none. A file is mapped only once, because TensorFlow (2.16 to 2.21) never frees the functions of a
    dataset, nor the objects they refer to.
    """
    with _MAPPING, open_file(path) as file:
        status = os.fstat(file.fileno())
        if not (size := status.st_size):
            return np.zeros(0, np.uint8)
        identity = status.st_dev, status.st_ino, size, status.st_mtime_ns
        if (known := _MAPPED.get(identity)) is not None:
            return known
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype, system.munmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
        system.mmap.argtypes = (*system.munmap.argtypes, *[ctypes.c_int] * 3, ctypes.c_long)
        address = system.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        if address == ctypes.c_void_p(-1).value:
            if ctypes.get_errno() == errno.ENOMEM:
                got = "cannot be mapped: the system allows this process no further mapping"
                raise StoreError(State(where=str(path), got=got, hint=f"the number is limited by {_LIMIT}"))
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        held = (ctypes.c_ubyte * size).from_address(address)
        finalize(held, system.munmap, address, size).atexit = False  # arrays are read until the process ends
        mapped: Bytes = np.frombuffer(memoryview(held), np.uint8)
        mapped.flags.writeable = False
        _MAPPED[identity] = mapped
        return mapped


def are_mappable(count: int) -> bool:
    """Whether a process may map `count` files. Files that it has mapped are not counted: they may be the same
    files, which are mapped once.
    """
    with suppress(OSError, ValueError):  # not Linux
        return count <= int(_LIMIT.read_text()) - _OTHERS
    return True


class MappedFiles:
    """Files that are mapped when one of their records is first read.

    From then on, a replacement of the file is not noticed. Truncating a mapped file ends the process
    (SIGBUS). May be used from several threads, and in forked processes.

    Args:
        paths: the files.
        indices: the index of each file.
    """

    # Whether the bytes of a file stay in memory once one of its records was read.
    stays = True

    def __init__(self, paths: Sequence[Location], indices: Sequence[FileIndex]) -> None:
        self.paths, self._indices = paths, indices
        self.first = offsets(_ints(index.records for index in indices))
        self._firsts: list[int] = self.first.tolist()
        self._sizes = _ints(index.size for index in indices)
        self.bytes = int(self._sizes.sum())
        self._groups = _ints(native.at(index.groups) for index in indices)
        self._residuals = _ints(native.at(index.residuals) for index in indices)
        self._lock = threading.Lock()
        self._files: list[memoryview | None] = [None] * len(paths)
        self._mapped = np.zeros(len(paths), np.int64)  # the address of each file's bytes
        of_files = (self.first, self._groups, self._residuals, self._sizes, self._mapped)
        self._table = np.array([len(paths), *map(native.at, of_files)], np.int64)
        self._table_at = native.at(self._table)

    def __len__(self) -> int:
        return int(self.first[-1])

    @cached_property
    def record_sizes(self) -> Ints:
        """The bytes of each record in its frame, int64 `[n]`."""
        sizes = [np.diff(index.offsets(np.arange(index.records + 1))) for index in self._indices]
        return np.concatenate([np.zeros(0, np.int64), *sizes])

    def records(self, numbers: Ints) -> tuple[Bytes, Ints]:
        """The data of records, one after another. CRCs are checked.

        Args:
            numbers: the record numbers, counted from 0 across all files, int64 `[n]`.

        Returns:
            uint8 `[bytes]`, and the offsets where each record begins and the last one ends, int64 `[n + 1]`.

        Raises RecordError for a missing or corrupt record; StoreError for a missing file.
        """
        if (library := native.library()) is None:
            parts = [np.frombuffer(self.record(number), np.uint8) for number in numbers.tolist()]
            return np.concatenate([np.zeros(0, np.uint8), *parts]), offsets(_ints(map(len, parts)))
        frames, places = self._located(library, numbers)
        data = np.empty(int(places[-1]), np.uint8)
        self._gathered(library, numbers, frames, places, native.at(data))
        return data, places

    def in_place(self, numbers: Ints) -> list[tuple[Bytes, Ints, Ints]]:
        """Records that are not copied, for each of their files: its bytes, and where in it the data of each
        begins and ends. CRCs are checked once, now.

        Args:
            numbers: the record numbers, in ascending order.

        Raises the errors of `records`. Needs the native library.
        """
        library = native.library()
        frames, places = self._located(library, numbers)
        self._gathered(library, numbers, frames, places, None)
        files, found = np.searchsorted(self.first, numbers, "right") - 1, []
        for file in np.unique(files).tolist():
            own, view = files == file, self._files[file]
            starts = frames[own] - self._mapped[file] + HEADER_BYTES
            found.append((np.frombuffer(view or b"", np.uint8), starts, starts + np.diff(places)[own]))
        return found

    def expect(self, numbers: Ints, stops: Ints | None = None) -> None:
        """Prepares for records that will be wanted next.

        Args:
            stops: for each of them, the record before which the next ones of its file are wanted later.
        """

    def _located(self, library: Any, numbers: Ints) -> tuple[Ints, Ints]:
        """The addresses of the frames of records, and the offsets of their data, one after another."""
        numbers = native.ints(numbers)
        count, places = len(numbers), np.empty(len(numbers) + 1, np.int64)
        frames = np.empty(count, np.int64)
        arguments = (self._table_at, native.at(numbers), count, native.at(frames), native.at(places))
        while (done := library.rs_locate(*arguments)) != count:
            if done < 0:
                raise self._wrong(int(numbers[-1 - done]))
            files = np.searchsorted(self.first, numbers[done:], "right") - 1
            for file in np.unique(files[self._mapped[files] == 0]).tolist():
                self._map(file)
        return frames, places

    def _gathered(self, library: Any, numbers: Ints, frames: Ints, places: Ints, out: int | None) -> None:
        """Copies the data of records to an address, if there is one. CRCs are checked."""
        done = library.rs_gather(native.at(frames), native.at(places), len(numbers), out)
        if done < len(numbers):
            raise self._wrong(int(numbers[done]))

    def record(self, number: int) -> bytes:
        """The data of one record, in a third of the time of `records`. Raises the same errors."""
        file = self._file_of(number)
        start, stop = self._indices[file].frame(number - self._firsts[file])
        view = self._files[file] or self._map(file)
        length = length_in(view[start : start + HEADER_BYTES].tobytes())
        data = view[start + HEADER_BYTES : stop - FOOTER_BYTES].tobytes()
        if length != stop - start - FRAME_BYTES or length != len(data):
            raise self._wrong(number)
        if masked_crc((data,)) != int.from_bytes(view[stop - FOOTER_BYTES : stop], "little"):
            raise self._wrong(number)
        return data

    def place(self, number: int) -> str:
        """The location of a record, for messages."""
        file = self._file_of(number)
        record = number - self._firsts[file]
        return f"{self.paths[file]}: {place(record, self._indices[file].frame(record)[0])}"

    def _file_of(self, number: int) -> int:
        return bisect_right(self._firsts, number) - 1

    def _map(self, file: int) -> memoryview:
        """The bytes of a file. Raises StoreError if the file has changed since it was indexed."""
        with self._lock:  # otherwise, a file mapped by two threads would be unmapped while it is read
            if (view := self._files[file]) is None:
                path, size = Path(str(self.paths[file])), int(self._sizes[file])
                if (gone := replaced(path)) is not None:
                    raise StoreError(gone)
                with system_errors("read", path):
                    there = path.stat().st_size
                    mapped = mapped_file(path)
                if there != size:
                    raise StoreError(Problem(where=str(path), expected=f"{size:,} bytes", got=f"{there:,}"))
                view = self._files[file] = mapped.data
                self._mapped[file] = native.at(mapped)
            return view

    def _wrong(self, number: int) -> RecordError:
        """The error for a record whose length or CRCs in the file do not match its index."""
        file = self._file_of(number)
        record = number - self._firsts[file]
        start, _ = self._indices[file].frame(record)
        expected = "a record of the indexed length that matches its CRCs"
        problem = problem_at(self.paths[file], record, start, expected, "other bytes")
        hint = "`recordspec verify` checks the file; if it was changed, `recordspec index` indexes it again"
        return RecordError(replace(problem, hint=hint))  # the caller knows its row


def _ints(values: Iterable[int]) -> Ints:
    return np.array([*values], np.int64)
