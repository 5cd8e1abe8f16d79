"""Random access to records of objects in a store and of compressed files, of which pieces are read.

A file is an area of memory of its uncompressed size, of which only the pieces that are wanted take room: they
are read in requests for adjacent pieces, many at a time. Pieces that were used are dropped, the least
recently used first, beyond a limit. A folder may keep pieces of objects on the disk, uncompressed, up to its
size: what it keeps, no later epoch reads again.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from recordspec.errors import Problem, RecordError, State, StoreError, system_errors
from recordspec.executors import Future, ThreadPool
from recordspec.locations import Location, open_file
from recordspec.remote import RemotePath, read_part
from recordspec.store.kept_pieces import KeptPieces
from recordspec.store.mapped_files import MappedFiles
from recordspec.store.shards import replaced
from recordspec.store.staging import FAILURES
from recordspec.wire import native
from recordspec.wire.arrays import Bytes, Ints, offsets
from recordspec.wire.compression import PIECE, inflated
from recordspec.wire.framing import FRAME_BYTES

if TYPE_CHECKING:
    from recordspec.store.index import FileIndex

# The largest request, in pieces, and the number of requests at a time. An answer of a store takes as long as
# the transfer of some MiB.
_TOGETHER, _REQUESTS = 16, 32
# The bytes of pieces in memory. Pieces that are in use, or will be next, may take more.
_MEMORY = 256 << 20
# Linux' flag for memory that is not counted before it is used, which Python 3.10 does not name.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if os.uname().sysname == "Linux" else 0)

# The most pieces that are read in advance after a piece that is wanted.
_AHEAD = 3
# Where a piece is.
_ABSENT, _COMING, _THERE = range(3)

# Held while a forked process discards the pieces of its parent.
_FORKED = threading.Lock()

_T = TypeVar("_T")


class _WrongRecordError(RecordError):
    """The error for a record whose bytes do not match its CRCs or its index."""

    def __init__(self, problems: Sequence[Problem], number: int) -> None:
        super().__init__(problems)
        self.number = number


@lru_cache(1)
def _pool(process: int) -> ThreadPool:
    """The threads of a process that read ranges."""
    return ThreadPool("recordspec-ranges", _REQUESTS)


@dataclass(frozen=True, kw_only=True)
class Counters:
    """What was read so far.

    Attributes:
        requests: the number of requests.
        bytes_read: the bytes of their answers.
        bytes_kept: the bytes that were read from the disk instead.
        waited: the seconds in which threads waited for pieces, all threads together.
    """

    requests: int = 0
    bytes_read: int = 0
    bytes_kept: int = 0
    waited: float = 0.0


class RangedFiles(MappedFiles):
    """Files whose records are read in pieces. Records and errors are those of `MappedFiles`.

    Args:
        paths: objects, or local files.
        indices: the index of each.

    Attributes:
        kept: keeps pieces of objects on the disk; None to keep none.
        counters: what was read so far.
    """

    stays = False

    def __init__(self, paths: Sequence[Location], indices: Sequence[FileIndex]) -> None:
        super().__init__(paths, indices)
        self.kept: KeptPieces | None = None
        # a file of which no hash is known is not kept
        self._names = [index.sha256 for index in indices]
        self._areas: list[mmap.mmap | None] = [None] * len(paths)
        # what identifies a file: as long as it is the same, ranges are of one file
        self._tags: list[Any] = [None] * len(paths)
        # pieces are numbered across all files
        self._first_piece = offsets(-(-self._sizes // PIECE))
        self._begin_process()

    def _begin_process(self) -> None:
        """Sets the state of a process that has read no piece."""
        count = int(self._first_piece[-1])
        # pages of these arrays take no memory before they are used
        self._state, self._expected = np.zeros(count, np.uint8), np.zeros(count, bool)
        self._pins, self._used = np.zeros(count, np.int32), np.zeros(count, np.int64)
        self._coming: dict[int, Future[None]] = {}
        self._held = self._awaited = self._time = 0
        self._changing, self._process = threading.RLock(), os.getpid()
        self.counters = Counters()

    def records(self, numbers: Ints) -> tuple[Bytes, Ints]:
        with self._holding(numbers):
            return self._intact(lambda: super(RangedFiles, self).records(numbers))

    def record(self, number: int) -> bytes:
        with self._holding(np.array([number], np.int64)):
            return self._intact(lambda: super(RangedFiles, self).record(number))

    def _intact(self, read: Callable[[], _T]) -> _T:
        """What `read` returns. A record that does not match its CRCs is read once more from the store, as its
        bytes on the disk may be damaged.
        """
        again = set[int]()
        while True:
            try:
                return read()
            except _WrongRecordError as error:
                if error.number in again:
                    raise
                again.add(error.number)
                for piece in self._pieces_of(np.array([error.number], np.int64)).tolist():
                    file, number = self._in_file(piece)
                    self._read(file, number, number + 1, again=True)

    def _wrong(self, number: int) -> RecordError:
        return _WrongRecordError(super()._wrong(number).problems, number)

    def expect(self, numbers: Ints, stops: Ints | None = None) -> None:
        self._check_process()
        pieces = self._pieces_of(numbers)
        if stops is not None:
            pieces = self._with_next(pieces, numbers, stops)
        with self._changing:
            if self._awaited * PIECE > _MEMORY:  # an epoch that was not read to its end
                self._expected[:] = False
                self._awaited = 0
            self._awaited += len(pieces) - int(self._expected[pieces].sum())
            self._expected[pieces] = True
            self._begin(pieces)

    @contextmanager
    def _holding(self, numbers: Ints) -> Iterator[None]:
        """The pieces of records are in memory as long as the context is open."""
        self._check_process()
        pieces = self._pieces_of(numbers)
        with self._changing:
            self._pins[pieces] += 1
            self._awaited -= int(self._expected[pieces].sum())
            self._expected[pieces] = False
            waiting = self._begin(pieces)
        try:
            try:
                begin = time.perf_counter()
                for future in waiting:
                    future.result()
                if waiting:
                    self._count(waited=time.perf_counter() - begin)
            except StoreError as error:
                FAILURES.append(error)  # TensorFlow's error has only its text
                raise
            yield
        finally:
            with self._changing:
                self._pins[pieces] -= 1
                self._shrink()

    def _check_process(self) -> None:
        """Discards all pieces in a forked process. Raises StoreError there if the files are objects, since
        the threads of a client do not survive a fork.
        """
        if os.getpid() == self._process:
            return
        if isinstance(self.paths[0], RemotePath):
            got = "was opened before this process was forked"
            hint = 'open it in the process, or start workers with `multiprocessing_context="spawn"`'
            raise StoreError(State(where=str(self.paths[0].parent), got=got, hint=hint))
        with _FORKED:
            if os.getpid() != self._process:
                self._begin_process()

    def _pieces_of(self, numbers: Ints) -> Ints:
        """The pieces in which records lie, in order, int64 `[p]`."""
        files = np.searchsorted(self.first, numbers, "right") - 1
        starts, stops = self._frames(numbers, files)
        first, last = starts // PIECE, (stops - 1) // PIECE
        # a record lies in one piece, or in a few
        most, before = int((last - first).max(initial=0)) + 1, self._first_piece[files]
        found = [(before + first + more)[first + more <= last] for more in range(most)]
        pieces: Ints = np.unique(np.concatenate(found))
        return pieces

    def _with_next(self, pieces: Ints, numbers: Ints, stops: Ints) -> Ints:
        """The pieces, and after those that are not there, some that will be wanted later: a request of 1 MiB
        takes little more time than a request of 256 KiB. The first request of a range is for one piece, so
        that the first batch does not wait.
        """
        room = min(_AHEAD, (_MEMORY // PIECE * 3 // 4 - self._awaited) // max(1, len(pieces)))
        absent = pieces[self._state[pieces] == _ABSENT]
        absent = absent[(absent > 0) & (self._state[absent - 1] != _ABSENT)]
        if room < 1 or not len(absent):
            return pieces
        last = self._last_pieces(numbers)
        own = np.isin(last, absent)
        last, ends = last[own], self._last_pieces(stops[own] - 1)
        following = [(last + more)[last + more <= ends] for more in range(1, room + 1)]
        return np.unique(np.concatenate([pieces, *following]))

    def _last_pieces(self, numbers: Ints) -> Ints:
        """The piece in which each record ends."""
        files = np.searchsorted(self.first, numbers, "right") - 1
        return self._first_piece[files] + (self._frames(numbers, files)[1] - 1) // PIECE

    def _in_file(self, piece: int) -> tuple[int, int]:
        """The file of a piece, and its number in the file."""
        file = int(np.searchsorted(self._first_piece, piece, "right")) - 1
        return file, piece - int(self._first_piece[file])

    def _frames(self, numbers: Ints, files: Ints) -> tuple[Ints, Ints]:
        """Where the frames of records begin and end in their files."""
        if (library := native.library()) is not None:
            frames, places = self._located(library, numbers)
            starts = frames - self._mapped[files]
            return starts, starts + np.diff(places) + FRAME_BYTES
        starts, stops = np.empty_like(numbers), np.empty_like(numbers)
        for file in np.unique(files).tolist():
            own = files == file
            records = numbers[own] - self.first[file]
            starts[own], stops[own] = (self._indices[file].offsets(records + more) for more in (0, 1))
        return starts, stops

    def _begin(self, pieces: Ints) -> set[Future[None]]:
        """Begins to read the pieces that are not there. Returns what the others wait for."""
        states = self._state[pieces]
        self._time += 1
        self._used[pieces] = self._time
        waiting = {self._coming[piece] for piece in pieces[states == _COMING].tolist()}
        absent = pieces[states == _ABSENT]
        files = np.searchsorted(self._first_piece, absent, "right") - 1
        cuts = np.flatnonzero((np.diff(absent) != 1) | (np.diff(files) != 0)) + 1
        for run in np.split(absent, cuts):
            for some in (run[first : first + _TOGETHER] for first in range(0, len(run), _TOGETHER)):
                self._map(self._in_file(int(some[0]))[0])
                future = _pool(self._process).submit(self._fetch, int(some[0]), len(some))
                self._coming.update(dict.fromkeys(some.tolist(), future))
                waiting.add(future)
        self._state[absent] = _COMING
        self._held += len(absent)
        return waiting

    def _fetch(self, piece: int, count: int) -> None:
        """Reads adjacent pieces of a file."""
        file, first = self._in_file(piece)
        state = _ABSENT
        try:
            self._read(file, first, first + count)
            state = _THERE
        finally:
            with self._changing:
                self._state[piece : piece + count] = state
                if state == _ABSENT:
                    self._held -= count
                for one in range(piece, piece + count):
                    del self._coming[one]

    def _read(self, file: int, first: int, stop: int, *, again: bool = False) -> None:
        """Reads adjacent pieces, from the disk or from the store."""
        area = self._areas[file]
        kept = self.kept if self._names[file] else None
        assert area is not None
        size, name = int(self._sizes[file]), self._names[file]
        there = [False] * (stop - first)
        if kept is not None and not again:
            there = kept.there(name, first, stop)
        for is_kept, run in groupby(range(first, stop), lambda piece: there[piece - first]):
            pieces = list(run)
            start, end = pieces[0] * PIECE, min((pieces[-1] + 1) * PIECE, size)
            if kept is not None and is_kept:
                kept.read(name, start, memoryview(area)[start:end])
                self._count(bytes_kept=end - start)
                continue
            area[start:end] = data = self._read_range(file, start, end)
            if kept is not None:
                kept.put(name, pieces[0], size, data)

    def _read_range(self, file: int, start: int, end: int) -> memoryview:
        """The uncompressed bytes of adjacent pieces."""
        if (restarts := self._indices[file].restarts) is None:
            return self._stored(file, start, end)
        bounds = restarts[start // PIECE : -(-end // PIECE) + 1].tolist()
        again = isinstance(self.paths[file], RemotePath)  # its bytes may have been damaged on their way
        while True:
            data = self._stored(file, bounds[0], bounds[-1])
            view = memoryview(bytearray(end - start))
            try:
                for number, (first, stop) in enumerate(pairwise(bounds)):
                    piece = view[number * PIECE : (number + 1) * PIECE]
                    piece[:] = inflated(data[first - bounds[0] : stop - bounds[0]], len(piece))
                return view
            except zlib.error as error:
                if not again:
                    where = f"{self.paths[file]}: bytes {bounds[0]:,} to {bounds[-1]:,}"
                    expected, hint = "whole compressed data", "`recordspec verify` checks the file"
                    raise RecordError(
                        Problem(where=where, expected=expected, got=str(error), hint=hint)
                    ) from None
                again = False

    def _stored(self, file: int, start: int, end: int) -> memoryview:
        """A range of a file as it is stored."""
        path, size = self.paths[file], self._indices[file].bytes
        tag: Any
        with system_errors("read", path):
            if isinstance(path, RemotePath):
                data, status = read_part(path, start, end, self._tags[file])
                there, tag = status.st_size, status.e_tag
            else:
                if self._tags[file] is None and (gone := replaced(path)) is not None:
                    raise StoreError(gone)
                with open_file(path) as opened:
                    local = os.fstat(opened.fileno())
                    there, tag = local.st_size, (local.st_dev, local.st_ino, local.st_mtime_ns)
                    data = memoryview(os.pread(opened.fileno(), end - start, start))
        self._count(requests=1, bytes_read=len(data))
        if there != size:
            raise StoreError(Problem(where=str(path), expected=f"{size:,} bytes", got=f"{there:,}"))
        if self._tags[file] not in (None, tag):
            raise StoreError(
                State(where=str(path), got="was replaced while it was read", hint="open it again")
            )
        self._tags[file] = tag
        return data

    def _count(self, **more: float) -> None:
        with self._changing:
            counted = {name: getattr(self.counters, name) + number for name, number in more.items()}
            self.counters = replace(self.counters, **counted)

    @property
    def stored(self) -> int:
        """The bytes of all files as they are stored."""
        return sum(index.bytes for index in self._indices)

    def _shrink(self) -> None:
        """Drops pieces beyond the limit of memory, the least recently used first."""
        most = _MEMORY // PIECE
        if self._held <= most + most // 8:  # so that pieces are seldom looked through
            return
        unused = np.flatnonzero((self._state == _THERE) & (self._pins == 0) & ~self._expected)
        spare = min(self._held - most, len(unused))
        if spare < len(unused):
            unused = unused[np.argpartition(self._used[unused], spare)[:spare]]
        for piece in unused.tolist():
            file, number = self._in_file(piece)
            area, start = self._areas[file], number * PIECE
            assert area is not None
            area.madvise(mmap.MADV_DONTNEED, start, min(PIECE, len(area) - start))
        self._state[unused] = _ABSENT
        self._held -= len(unused)

    def _map(self, file: int) -> memoryview:
        with self._changing:
            if (view := self._files[file]) is None:
                size = int(self._sizes[file])
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
                area = self._areas[file] = mmap.mmap(-1, max(1, size), flags=flags)
                view = self._files[file] = memoryview(area)
                self._mapped[file] = native.at(np.frombuffer(area, np.uint8))
            return view
