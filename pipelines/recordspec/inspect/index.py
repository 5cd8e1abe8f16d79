"""Where the records of a file stand: random access by number, and what other readers want for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, StoreError, one_of
from recordspec.locations import output_file, read_bytes
from recordspec.store.manifest import INDEX_SUFFIXES
from recordspec.store.shards import Files, expand
from recordspec.wire.file_types import compression_of
from recordspec.wire.strings import Ints
from recordspec.wire.tfrecord import RecordRange, record_ends

Format = Literal["recordspec", "tfrecord", "dali"]

# The number of the first of some records, and the byte behind each, again and again.
Walk = Iterator[tuple[int, Ints]]

FORMATS: tuple[Format, ...] = get_args(Format)
_VERSION = 1
# From an offset that is kept, the heads of the records between are read: 64 take 20 us. Of a large file fewer
# are kept, so that an index is never larger than a megabyte.
_EVERY, _MOST_OFFSETS = 64, 1 << 16
_MOST_BYTES = 2 << 20  # of an index: 20 digits an offset, and some spaces


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file, the index of it that was written, and the records of both."""

    file: str
    index: str
    records: int


def index(files: Files, form: Format = "recordspec") -> list[Written]:
    """Writes an index beside each file, and replaces the one there.

    Of the form `recordspec`, `Scanner.pick` uses it as long as the file does not change. `tfrecord` and
    `dali` are lines of text, for the package of that name and for DALI: for each record the byte where
    it begins, and its size with its length and CRCs.

    Raises SpecError for another form, RecordError where a file is compressed, or a length is wrong, and
    StoreError where there is no file, or the index cannot be written.
    """
    if form not in FORMATS:
        raise SpecError(Problem(path=("format",), expected=one_of(FORMATS), got=f"`{form}`"))
    return [_index(path, form) for path in expand(files)]


def _index(path: Path, form: Format) -> Written:
    compression = compression_of(path)
    if compression != "none":
        hint = "`recordspec reshard --compression none` makes one"
        got = f"{compression}, which has no random access"
        raise RecordError(Problem(where=str(path), expected="an uncompressed file", got=got, hint=hint))
    target = path.with_name(f"{path.name}{INDEX_SUFFIXES[form]}")
    records = 0
    with output_file(target, force=True) as begun, begun.open("w", encoding="ascii") as file:
        for text, count in _ours(path) if form == "recordspec" else _lines(path):
            file.write(text)
            records += count
    return Written(file=str(path), index=str(target), records=records)


def _lines(path: Path) -> Iterator[tuple[str, int]]:
    """The text of DALI's `tfrecord2idx` and the package's, some records at a time."""
    start = 0
    for _, places in record_ends(path):
        starts = np.concatenate([[start], places[:-1]])
        sizes = places - starts
        lines = zip(starts.tolist(), sizes.tolist(), strict=True)
        yield "".join(f"{offset} {size}\n" for offset, size in lines), len(places)
        start = int(places[-1])


@dataclass(frozen=True, kw_only=True)
class _Index:
    """What is kept of a file.

    Attributes:
        version: of this form.
        bytes, mtime_ns: of the file; with others it is another one.
        records: in it.
        every: how many records there are from one offset to the next.
        offsets: of the first record, and so on.
    """

    version: int
    bytes: int
    mtime_ns: int
    records: int
    every: int
    offsets: list[int]

    def sound(self) -> bool:
        """Whether it is consistent: another program may have written it, or a person."""
        numbers = (self.version, self.bytes, self.mtime_ns, self.records, self.every)
        if type(self.offsets) is not list or any(type(one) is not int for one in (*numbers, *self.offsets)):
            return False
        rising = all(one < other for one, other in pairwise([*self.offsets, self.bytes]))
        return (
            self.every > 0
            and self.offsets[:1] == [0]
            and rising
            and len(self.offsets) == -(-self.records // self.every)
        )

    def before(self, number: int) -> int:
        """The last place in `offsets` that is not behind a record."""
        return min(number // self.every, len(self.offsets) - 1)

    def behind(self, at: int) -> tuple[int, int]:
        """How many records there are from a place in `offsets` to the next, or to the end; and its byte."""
        if at + 1 < len(self.offsets):
            return self.every, self.offsets[at + 1]
        return self.records - at * self.every, self.bytes


def _ours(path: Path) -> Iterator[tuple[str, int]]:
    stat = path.stat()
    every, records, start = _EVERY, 0, 0
    kept = np.empty(0, np.int64)
    for number, places in record_ends(path):
        starts: Ints = np.concatenate([[start], places[:-1]])
        kept = np.concatenate([kept, starts[-number % every :: every]])
        while len(kept) > _MOST_OFFSETS:
            kept, every = kept[::2], 2 * every
        records, start = number + len(places), int(places[-1])
    found = _Index(
        version=_VERSION,
        bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        records=records,
        every=every,
        offsets=kept.tolist(),
    )
    yield json.dumps(asdict(found)), records


def _known(path: Path) -> _Index | None:
    """The index of a file, if there is one, and it is of this file."""
    try:
        beside = path.with_name(f"{path.name}{INDEX_SUFFIXES['recordspec']}")
        held: Any = json.loads(read_bytes(beside, _MOST_BYTES))
        found = _Index(**held)
    except (StoreError, ValueError, TypeError, RecursionError):
        return None
    stat = path.stat()
    known = (found.version, found.bytes, found.mtime_ns)
    return found if known == (_VERSION, stat.st_size, stat.st_mtime_ns) and found.sound() else None


def find_records(path: Path, wanted: Iterable[int]) -> Iterator[RecordRange]:
    """Where records of an uncompressed file stand, one by one; their numbers rise. Ends at the first that
    the file does not have.

    Only lengths are read, with an index only those behind a kept offset. Raises RecordError where a record
    cannot be reached.
    """
    known = _known(path)
    first, places = 0, np.zeros(1, np.int64)  # of record `first` on where each begins
    walk = record_ends(path)
    for number in wanted:
        if known is not None and known.before(number) * known.every >= first + len(places):
            found = _from(path, known, known.before(number))
            if found is None:
                known = None
            else:
                first, walk, places = found
        while number - first >= len(places) - 1:
            last = int(places[-1])
            begun, more = next(walk, (None, None))
            if begun is None or more is None:
                return
            first, places = begun, np.concatenate([[last], more])
        at = number - first
        yield RecordRange(number, int(places[at]), int(places[at + 1]))


def _from(path: Path, known: _Index, at: int) -> tuple[int, Walk, Ints] | None:
    """The record at a kept offset, where it and those behind it begin, and the walk to others. None where as
    many as there are to be do not lead to the next offset that is kept: then no offset is trusted.
    """
    first, (count, stop) = at * known.every, known.behind(at)
    walk, places = record_ends(path, first, known.offsets[at]), np.array([known.offsets[at]])
    try:
        while len(places) <= count:
            places = np.concatenate([places, next(walk)[1]])
    except (RecordError, StopIteration):
        return None
    return (first, walk, places) if places[count] == stop else None
