"""Indexes the records of a file for random access by number, also for other readers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from crc32c import crc32c

from recordspec.errors import Problem, RecordError, SpecError, StoreError, one_of
from recordspec.locations import Location, output_file, read_bytes
from recordspec.store.expand import Files, expand
from recordspec.store.manifest import INDEX_SUFFIXES
from recordspec.wire.arrays import Ints
from recordspec.wire.file_types import compression_of
from recordspec.wire.tfrecord import RecordRange, record_ends

log = logging.getLogger("recordspec")

Format = Literal["recordspec", "tfrecord", "dali"]

FORMATS: tuple[Format, ...] = get_args(Format)
_VERSION = 2
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

    Raises SpecError for another form, RecordError if a file is compressed, or a length is wrong, and
    StoreError where there is no file, or the index cannot be written.
    """
    if form not in FORMATS:
        raise SpecError(Problem(path=("format",), expected=one_of(FORMATS), got=f"`{form}`"))
    return [_index(path, form) for path in expand(files)]


def _index(path: Location, form: Format) -> Written:
    compression = compression_of(path)
    if compression != "none":
        hint = "`recordspec reshard --compression none` makes one"
        got = f"{compression}, which has no random access"
        raise RecordError(Problem(where=str(path), expected="an uncompressed file", got=got, hint=hint))
    target = _index_of(path, form)
    records = 0
    with output_file(target, force=True) as begun, begun.open("w", encoding="ascii") as file:
        for text, count in _ours(path) if form == "recordspec" else _lines(path):
            file.write(text)
            records += count
    return Written(file=str(path), index=str(target), records=records)


def _index_of(path: Location, form: Format) -> Location:
    return path.with_name(f"{path.name}{INDEX_SUFFIXES[form]}")


def _lines(path: Location) -> Iterator[tuple[str, int]]:
    """The text of DALI's `tfrecord2idx` and the package's, some records at a time."""
    start = 0
    for _, places in record_ends(path):
        starts = np.concatenate([[start], places[:-1]])
        sizes = places - starts
        lines = zip(starts.tolist(), sizes.tolist(), strict=True)
        yield "".join(f"{offset} {size}\n" for offset, size in lines), len(places)
        start = int(places[-1])


def _ours(path: Location) -> Iterator[tuple[str, int]]:
    """The index of a file: the byte offset of every n-th record."""
    stat = path.stat()
    every, records, start = _EVERY, 0, 0
    kept = np.empty(0, np.int64)
    for number, places in record_ends(path):
        starts: Ints = np.concatenate([[start], places[:-1]])
        kept = np.concatenate([kept, starts[-number % every :: every]])
        while len(kept) > _MOST_OFFSETS:
            kept, every = kept[::2], 2 * every
        records, start = number + len(places), int(places[-1])
    content = {"records": records, "every": every, "offsets": kept.tolist()}
    of_file = {"version": _VERSION, "bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    yield json.dumps(of_file | content | {"crc": _crc(content)}), records


def _crc(index: Mapping[str, Any]) -> int:
    """The checksum of an index, by which one that was changed since is recognized."""
    return crc32c(json.dumps([index[name] for name in ("records", "every", "offsets")]).encode())


def _kept(path: Location) -> tuple[int, list[int]]:
    """The number of records from one offset to the next, and the offsets: those of the index, if there
    is one, and it is of this file, or else the first alone."""
    stat, beside = path.stat(), _index_of(path, "recordspec")
    try:
        index: Any = json.loads(read_bytes(beside, _MOST_BYTES))
        of_file = (index["version"], index["bytes"], index["mtime_ns"])
        # a shard of a store does not change, and has another time than the file that was indexed
        time = of_file[2] if path.peek() is None else stat.st_mtime_ns
        if of_file == (_VERSION, stat.st_size, time) and index["crc"] == _crc(index):
            return index["every"], index["offsets"] or [0]
    except (StoreError, ValueError, TypeError, KeyError, RecursionError):
        pass
    return 1, [0]


def find_records(path: Location, wanted: Iterable[int]) -> Iterator[RecordRange]:
    """Yields the byte ranges of records of an uncompressed file, by ascending numbers. Ends at the first
    number that is too large.

    Only lengths are read, with an index only those after a kept offset. An index with an offset where no
    record begins is of another file with this size and time: it is not used, and logged. Raises RecordError
    if a record cannot be reached.
    """
    every, offsets = _kept(path)
    stale = False
    first, places = 0, np.zeros(1, np.int64)  # of record `first` on where each begins
    walk = record_ends(path)
    for number in wanted:
        at = min(number // every, len(offsets) - 1)
        if at * every >= first + len(places):
            first, places = at * every, np.array([offsets[at]])
            walk = record_ends(path, first, offsets[at])
        while number - first >= len(places) - 1:
            last = int(places[-1])
            try:
                begun, more = next(walk, (None, None))
            except RecordError:
                if not first or len(places) > 1:  # it was not found by an offset
                    raise
                every, offsets, stale = 1, [0], True
                first, places, walk = 0, np.zeros(1, np.int64), record_ends(path)
                continue
            if begun is None or more is None:
                return
            first, places = begun, np.concatenate([[last], more])
        if stale:  # where the record itself is corrupt, the error is raised before
            index = _index_of(path, "recordspec")
            log.warning("%s: not used, as it is of another file (`recordspec index` makes it again)", index)
            stale = False
        at = number - first
        yield RecordRange(number, int(places[at]), int(places[at + 1]))
