"""Random access to records of uncompressed objects in a store, of which the ranges that are wanted are read.

An object is an area of memory of its size, of which only the pieces that are wanted take room: they are read
in requests for adjacent pieces, many at a time. Pieces that were used are dropped, the least recently used
first, beyond a limit. A folder may keep pieces on the disk, up to its size: what it keeps, no later epoch
reads again.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from recordspec.errors import Problem, RecordError, State, StoreError, system_errors
from recordspec.executors import Future, ThreadPool
from recordspec.remote import RemotePath, read_part
from recordspec.store.kept_pieces import PIECE, KeptPieces
from recordspec.store.mapped_files import MappedFiles
from recordspec.store.staging import FAILURES
from recordspec.wire import native
from recordspec.wire.arrays import Bytes, Ints
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

# A piece is the number of its file times this, and its number in the file.
_OF_FILE = 1 << 32

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


class RangedFiles(MappedFiles):
    """Objects whose records are read by ranges. Records and errors are those of `MappedFiles`.

    Args:
        paths: the objects.
        indices: the index of each.

    Attributes:
        kept: keeps pieces on the disk; None to keep none.
        requests, bytes_read, bytes_kept: the number of requests so far, the bytes of their answers, and the
            bytes that were read from the disk instead.
    """

    stays = False

    def __init__(
        self,
        paths: Sequence[RemotePath],
        indices: Sequence[FileIndex],
    ) -> None:
        super().__init__(paths, indices)
        self.kept: KeptPieces | None = None
        # a file of which no hash is known is not kept
        self._names = [index.sha256 for index in indices]
        self._areas: list[mmap.mmap | None] = [None] * len(paths)
        self._objects = paths
        self._tags: list[str | None] = [None] * len(paths)
        self._pieces: OrderedDict[int, Future[None]] = OrderedDict()
        self._pins: dict[int, int] = {}
        self._expected: set[int] = set()
        self._changing, self._process = threading.RLock(), os.getpid()
        self.requests = self.bytes_read = self.bytes_kept = 0

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
                for piece in self._pieces_of(np.array([error.number], np.int64)):
                    file, number = divmod(piece, _OF_FILE)
                    self._read(file, number, number + 1, again=True)

    def _wrong(self, number: int) -> RecordError:
        return _WrongRecordError(super()._wrong(number).problems, number)

    def expect(self, numbers: Ints) -> None:
        """Begins to read the pieces of records that will be wanted next."""
        self._check_process()
        pieces = self._pieces_of(numbers)
        with self._changing:
            if len(self._expected) * PIECE > _MEMORY:  # an epoch that was not read to its end
                self._expected.clear()
            self._expected.update(piece for piece in pieces if piece not in self._pieces)
            self._begin(pieces)

    @contextmanager
    def _holding(self, numbers: Ints) -> Iterator[None]:
        """The pieces of records are in memory as long as the context is open."""
        self._check_process()
        pieces = self._pieces_of(numbers)
        with self._changing:
            for piece in pieces:
                self._pins[piece] = self._pins.get(piece, 0) + 1
            self._expected.difference_update(pieces)
            waiting = self._begin(pieces)
        try:
            try:
                for future in waiting:
                    future.result()
            except StoreError as error:
                FAILURES.append(error)  # TensorFlow's error has only its text
                raise
            yield
        finally:
            with self._changing:
                for piece in pieces:
                    self._pins[piece] -= 1
                    if not self._pins[piece]:
                        del self._pins[piece]
                self._shrink()

    def _check_process(self) -> None:
        """Raises StoreError in a forked process: the threads of a client do not survive a fork."""
        if os.getpid() != self._process:
            got = "was opened before this process was forked"
            hint = 'open it in the process, or start workers with `multiprocessing_context="spawn"`'
            raise StoreError(State(where=str(self.paths[0].parent), got=got, hint=hint))

    def _pieces_of(self, numbers: Ints) -> list[int]:
        """The pieces in which records lie, in order: `_OF_FILE` times the number of the file, and the number
        of the piece in it.
        """
        files = np.searchsorted(self.first, numbers, "right") - 1
        starts, stops = self._frames(numbers, files)
        first, last = starts // PIECE, (stops - 1) // PIECE
        # a record lies in one piece, or in a few
        most = int((last - first).max(initial=0)) + 1
        found = [(files * _OF_FILE + first + more)[first + more <= last] for more in range(most)]
        pieces: list[int] = np.unique(np.concatenate(found)).tolist()
        return pieces

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

    def _begin(self, pieces: Sequence[int]) -> set[Future[None]]:
        """Begins to read the pieces that are not there. Returns what the others wait for."""
        runs, waiting = list[list[int]](), set[Future[None]]()
        for piece in pieces:
            future = self._pieces.get(piece)
            if future is not None and not (future.done() and future.failed):
                self._pieces.move_to_end(piece)
                if not future.done():
                    waiting.add(future)
                continue
            if runs and runs[-1][-1] == piece - 1 and len(runs[-1]) < _TOGETHER:
                runs[-1].append(piece)
            else:
                runs.append([piece])
        for run in runs:
            file, first = divmod(run[0], _OF_FILE)
            self._map(file)
            future = _pool(self._process).submit(self._read, file, first, first + len(run))
            self._pieces.update(dict.fromkeys(run, future))
            waiting.add(future)
        return waiting

    def _read(self, file: int, first: int, stop: int, *, again: bool = False) -> None:
        """Reads adjacent pieces, from the disk or from the store."""
        area = self._areas[file]
        kept = self.kept if self._names[file] else None
        assert area is not None
        size = int(self._sizes[file])
        missing = list(range(first, stop))
        if kept is not None and not again:
            for piece in missing[:]:
                if (data := kept.get(self._names[file], piece)) is not None:
                    area[piece * PIECE : piece * PIECE + len(data)] = data
                    self.bytes_kept += len(data)
                    missing.remove(piece)
        while missing:
            run = next(
                n for n in range(1, len(missing) + 1) if n == len(missing) or missing[n] != missing[n - 1] + 1
            )
            start, end = missing[0] * PIECE, min((missing[run - 1] + 1) * PIECE, size)
            data = self._read_range(file, start, end)
            area[start:end] = data
            if kept is not None:
                for piece in missing[:run]:
                    at = piece * PIECE - start
                    kept.put(self._names[file], piece, size, data[at : at + PIECE])
            del missing[:run]

    def _read_range(self, file: int, start: int, end: int) -> bytes:
        path, size = self._objects[file], int(self._sizes[file])
        with system_errors("read", path):
            data, status = read_part(path, start, end, self._tags[file])
        self.requests, self.bytes_read = self.requests + 1, self.bytes_read + len(data)
        if status.st_size != size:
            expected, got = f"{size:,} bytes", f"{status.st_size:,}"
            raise StoreError(Problem(where=str(path), expected=expected, got=got))
        if self._tags[file] not in (None, status.e_tag):
            raise StoreError(
                State(where=str(path), got="was replaced while it was read", hint="open it again")
            )
        self._tags[file] = status.e_tag
        return data

    def _shrink(self) -> None:
        """Drops pieces beyond the limit of memory, the least recently used first."""
        spare = len(self._pieces) - _MEMORY // PIECE
        if spare <= 0:
            return
        for piece in list(self._pieces):
            if piece in self._pins or piece in self._expected or not self._pieces[piece].done():
                continue
            file, number = divmod(piece, _OF_FILE)
            if (area := self._areas[file]) is not None:
                start = number * PIECE
                area.madvise(mmap.MADV_DONTNEED, start, min(PIECE, len(area) - start))
            del self._pieces[piece]
            spare -= 1
            if spare <= 0:
                return

    def _map(self, file: int) -> memoryview:
        with self._changing:
            if (view := self._files[file]) is None:
                size = int(self._sizes[file])
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
                area = self._areas[file] = mmap.mmap(-1, max(1, size), flags=flags)
                view = self._files[file] = memoryview(area)
                self._mapped[file] = native.at(np.frombuffer(area, np.uint8))
            return view
