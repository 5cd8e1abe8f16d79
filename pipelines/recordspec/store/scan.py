"""Scans files: yields batches of records, or of the rows of blocks, with their places.

All commands on records use a scan. If results can be merged, several processes scan byte ranges of large
files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from recordspec import executors
from recordspec.errors import Problem, RecordError, SpecError, StoreError
from recordspec.executors import Executor, Task, cluster, executor, threaded_map
from recordspec.locations import Location
from recordspec.remote import RemotePath
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import ALL, note_sizes
from recordspec.store.index import find_records
from recordspec.wire import proto, tfrecord
from recordspec.wire.arrays import Bytes, Ints, data_of, lengths_of, offsets, strings_array
from recordspec.wire.file_types import FileStart, compression_of
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES, place
from recordspec.wire.hashes import Words, of_parts, of_strings, of_values, splitmix64
from recordspec.wire.record_batch import RecordBatch, decode
from recordspec.wire.tfrecord import Chunk, Damage, RecordRange, salvage

if TYPE_CHECKING:
    from recordspec.schema.row_blocks import Sections
    from recordspec.schema.schema import Schema

T = TypeVar("T")
U = TypeVar("U")

# The number of records that represent a file.
FIRST = 1000
# The expected messages, named in the problem of a record of another type.
A_RECORD = "an Example or a SequenceExample"
# Large files are scanned in ranges of this size, whatever the number of processes: the results do not depend
# on it.
_RANGE = 64 << 20
# What is counted of as many bytes is merged with what is counted of others.
_GROUP = 256 << 20
# A batch of at most _SMALL_BYTES is summarized together with adjacent small batches, at most _MOST_SMALL.
_SMALL_BYTES, _MOST_SMALL = 1 << 16, 1 << 10
# The bytes from which several processes summarize, or check, faster than one: processes take 0.4 s to start,
# and in this time one process checks 400 MB.
_WORTH, WORTH_CHECKING = 64 << 20, 1 << 30
# Tasks that read fewer bytes are sent in groups: sending a task takes as long as scanning a small file.
_TOGETHER = _RANGE
# The least number of groups for each process, if there are as many tasks.
_LEAST_GROUPS = 8
# The most tasks of a group: results are returned when the whole group is done.
_MOST_TOGETHER = 1024
# The concurrent requests for the sizes of objects.
_REQUESTS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRange:
    """A file, or a range of its bytes, that is scanned independently.

    Attributes:
        path: the path of the file.
        file: the number of the file among all files.
        split: the split of the file.
        records: the range; None for the whole file.
        last: whether the file ends with the range.
        blocks: the schema of the rows if records are blocks of rows; None if a record is a row.
        keys: the keys of the columns to unpack from blocks; None for all columns.
        size: the size of the file in bytes, if it is known.
    """

    path: Location
    file: int = 0
    split: str = ALL
    records: RecordRange | None = None
    last: bool = True
    blocks: Schema | None = None
    keys: Collection[str] | None = None
    size: int | None = None

    @property
    def bytes(self) -> int:
        """Its size; 0 if it is unknown."""
        if self.records is not None:
            return self.records.stop - self.records.start
        return size_of(self.path) if self.size is None else self.size


@dataclass(frozen=True, kw_only=True)
class RecordSpans:
    """Records in a buffer.

    Attributes:
        buffer: the bytes, uint8 `[bytes]`.
        starts, stops: the offsets in the buffer at which each record begins and ends, int64 `[n]`.
    """

    buffer: Bytes
    starts: Ints
    stops: Ints

    @classmethod
    def joined(cls, many: Sequence[RecordSpans]) -> RecordSpans:
        """The records of several spans, concatenated."""
        if len(many) == 1:
            return many[0]
        shifts = offsets(lengths_of([spans.buffer for spans in many]))[:-1].tolist()
        places = list(zip(many, shifts, strict=True))
        return cls(
            buffer=np.concatenate([spans.buffer for spans in many]),
            starts=np.concatenate([spans.starts + shift for spans, shift in places]),
            stops=np.concatenate([spans.stops + shift for spans, shift in places]),
        )

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: Ints) -> RecordSpans:
        """The records with these numbers."""
        return replace(self, starts=self.starts[rows], stops=self.stops[rows])

    def data(self, row: int) -> memoryview:
        """The bytes of a record, not copied."""
        return self.buffer.data[int(self.starts[row]) : int(self.stops[row])]

    def decode(self, sequence: bool | None, keys: Collection[str] | None = None) -> RecordBatch:
        return decode(self.buffer, self.starts, self.stops, sequence=sequence, keys=keys)


class UnpackedRows:
    """The rows of blocks as columns. They are encoded only if `records` is read."""

    def __init__(self, schema: Schema, sections: Sections, rows: int) -> None:
        self._schema, self._sections, self._rows = schema, sections, rows

    def decode(self, sequence: bool | None, keys: Collection[str] | None = None) -> RecordBatch:
        from recordspec.schema.row_blocks import decoded

        return decoded(self._sections, self._rows)

    @cached_property
    def records(self) -> RecordSpans:
        from recordspec.schema.row_blocks import records_with

        made = records_with(self._schema, self._sections, self._rows)
        data, places = data_of(made)
        return RecordSpans(buffer=data, starts=places[:-1], stops=places[1:])

    @property
    def hashes(self) -> Words:
        """The hash of the values of each row, uint64 `[n]`."""
        hashed = np.zeros(self._rows, np.uint64)
        for section, arrays in sorted(self._sections.items()):
            for key, array in sorted(arrays.items()):
                (of_key,) = of_strings(strings_array([f"{section}/{key}".encode()]))
                hashed = splitmix64(hashed + of_key + of_values(array))
        return hashed


@dataclass(frozen=True, kw_only=True)
class RowBatch:
    """Consecutive rows of a file.

    Attributes:
        path: the path of the file.
        file: the number of the file among all files.
        split: the split of the file.
        rows: the records, or the rows of blocks.
        records: the number of the record that each row is, or is in, int64 `[n]`.
        offsets: the byte of the file (uncompressed) at which this record begins, int64 `[n]`.
        numbers: the number of each row, int64 `[n]`: of its record, or for a row of a block, counted from the
            start of the scan.
        block_rows: the number of each row in its block, int64 `[n]`; None if each row is a record.
        sizes: the sizes of the records, in bytes, int64 `[m]`.
        end: the number and the byte of the next record.
    """

    path: Location
    file: int
    split: str
    rows: RecordSpans | UnpackedRows
    records: Ints
    offsets: Ints
    numbers: Ints
    block_rows: Ints | None
    sizes: Ints
    end: tuple[int, int]

    @property
    def spans(self) -> RecordSpans:
        """The rows as records."""
        return self.rows.records if isinstance(self.rows, UnpackedRows) else self.rows

    def __len__(self) -> int:
        return len(self.records)

    @property
    def bytes(self) -> int:
        """The number of bytes of the rows; for rows of blocks, of the stored blocks."""
        if isinstance(self.rows, UnpackedRows):
            return int(self.sizes.sum())
        return int((self.rows.stops - self.rows.starts).sum())

    def take(self, rows: Ints) -> RowBatch:
        """The rows with these numbers in the batch."""
        return replace(
            self,
            rows=self.spans.take(rows),
            records=self.records[rows],
            offsets=self.offsets[rows],
            numbers=self.numbers[rows],
            block_rows=None if self.block_rows is None else self.block_rows[rows],
        )

    def first(self, count: int) -> RowBatch:
        """The first rows, at most `count`."""
        return self.take(np.arange(min(count, len(self))))

    def data(self, row: int) -> memoryview:
        """The bytes of a row, not copied."""
        return self.spans.data(row)

    def decode(self, *, sequence: bool | None = None, keys: Collection[str] | None = None) -> RecordBatch:
        """The rows as columns; for records, only those of `keys`, if given."""
        return self.rows.decode(sequence, keys)

    def place(self, row: int) -> str:
        """The location of a row, for messages."""
        where = place(int(self.records[row]), int(self.offsets[row]))
        of_block = "" if self.block_rows is None else f", row {self.block_rows[row]}"
        return f"{self.path}: {where}{of_block}"

    def list_error(self, decoded: RecordBatch) -> RecordError | None:
        """The error of the first ExampleListWithContext: its features are not columns. None without one."""
        for row in sorted(decoded.broken):
            listed = proto.list_with_context(self.data(row))
            if listed is not None:
                return RecordError(listed.problem.at(self.place(row)), row)
        return None

    @property
    def hashes(self) -> Words:
        """The hash of the bytes of each row, uint64 `[n]`."""
        spans = self.spans
        return of_parts(spans.buffer, spans.starts, spans.stops)

    def kept(self) -> RowBatch:
        """A copy of the rows in its own memory: the next rows of the file may overwrite the buffer."""
        if isinstance(self.rows, UnpackedRows) or not len(self):
            return self
        first, last = int(self.rows.starts[0]), int(self.rows.stops[-1])
        rows = RecordSpans(
            buffer=self.rows.buffer[first:last].copy(),
            starts=self.rows.starts - first,
            stops=self.rows.stops - first,
        )
        return replace(self, rows=rows)


@dataclass(frozen=True, kw_only=True)
class UnreadableRecord:
    """An unreadable record; a scan yields it in place of its rows.

    Attributes:
        number, offset: the number and the byte of the record.
        problems: the problems, located by file and record.
        size: the size in bytes of an intact record that is not a block of the schema; None if the record is
            corrupt.
        end: the number and the byte of the next record; None if it cannot be found.
    """

    number: int
    offset: int
    problems: tuple[Problem, ...]
    size: int | None
    end: tuple[int, int] | None

    @property
    def error(self) -> RecordError:
        return RecordError(self.problems, self.number)


def check_readable(records: RecordBatch, batch: RowBatch) -> None:
    """Raises RecordError for the first row that is neither an Example nor a SequenceExample, or that
    TensorFlow rejects or reads differently.
    """
    unknown = Problem(expected=A_RECORD, got="another message")
    bad = dict.fromkeys(records.unknown_fields, (unknown,)) | dict(records.problems)
    for row in sorted(bad)[:1]:
        broken = row in records.broken
        problems = [replace(problem, expected=A_RECORD) if broken else problem for problem in bad[row]]
        raise RecordError([problem.at(batch.place(row)) for problem in problems], row)


def scan(part: FileRange) -> Iterator[RowBatch | UnreadableRecord]:
    """Yields the rows of a file, or of a range of it, in order.

    Raises StoreError if the file cannot be opened.
    """
    rows = 0
    for item in salvage(part.path, part.records):
        if isinstance(item, Damage):
            yield UnreadableRecord(
                number=item.number,
                offset=item.offset,
                problems=(item.problem,),
                size=None,
                end=None if item.stop is None else (item.number + 1, item.stop),
            )
        elif part.blocks is None:
            numbers = np.arange(item.number, item.number + len(item))
            yield RowBatch(
                path=part.path,
                file=part.file,
                split=part.split,
                rows=RecordSpans(buffer=item.buffer, starts=item.starts, stops=item.stops),
                records=numbers,
                offsets=item.offsets,
                numbers=numbers,
                block_rows=None,
                sizes=item.stops - item.starts,
                end=_end(item, len(item) - 1),
            )
        else:
            for unpacked in _unpack(part, part.blocks, item, rows):
                yield unpacked
                rows += len(unpacked) if isinstance(unpacked, RowBatch) else 0


def _unpack(
    part: FileRange, schema: Schema, chunk: Chunk, first_row: int
) -> Iterator[RowBatch | UnreadableRecord]:
    """The rows of the blocks of a chunk. Many blocks are unpacked together, since one block has few rows."""
    # the kinds of features take 0.1 s to import
    from recordspec.schema.row_blocks import rows_of_blocks

    first, count = 0, len(chunk)
    while first < len(chunk):
        stop = min(first + count, len(chunk))
        try:
            spans = chunk.starts[first:stop], chunk.stops[first:stop]
            sections, counts = rows_of_blocks(schema, chunk.buffer, *spans, keys=part.keys)
        except RecordError as error:
            if stop - first > 1:  # another block before it may be broken, too
                count = max(1, error.row or 0)
                continue
            yield UnreadableRecord(
                number=chunk.number + first,
                offset=chunk.offset_of(first),
                problems=error.at(f"{part.path}: {chunk.place(first)}").problems,
                size=int(chunk.stops[first] - chunk.starts[first]),
                end=_end(chunk, first),
            )
        else:
            which = first + np.repeat(np.arange(stop - first), counts)
            yield RowBatch(
                path=part.path,
                file=part.file,
                split=part.split,
                rows=UnpackedRows(schema, sections, len(which)),
                records=which + chunk.number,
                offsets=chunk.offsets[which],
                numbers=np.arange(first_row, first_row + len(which)),
                block_rows=np.arange(len(which)) - np.searchsorted(which, which),
                sizes=(chunk.stops - chunk.starts)[first:stop],
                end=_end(chunk, stop - 1),
            )
            first_row += len(which)
        # grow slowly: broken blocks are often close together
        first, count = stop, 2 * count


def _end(chunk: Chunk, index: int) -> tuple[int, int]:
    return chunk.number + index + 1, chunk.offset_of(index) + HEADER_BYTES + FOOTER_BYTES + int(
        chunk.stops[index] - chunk.starts[index]
    )


def file_ranges(
    files: Iterable[FileRange], least: int | None = None, executor: Executor | None = None
) -> Iterator[FileRange]:
    """All files, in order; files of more than `least` bytes, by default _RANGE, in ranges, if they are not
    compressed. The last range extends to the end of its file, and includes its unreadable part.

    To find where ranges end, the lengths of all records are read, in tasks of the executor; by default of the
    cluster, or of this process.
    """
    files, least = list(files), _RANGE if least is None else least
    asked = sizes_of(file.path for file in files if file.size is None)
    files = [replace(file, size=next(asked)) if file.size is None else file for file in files]
    tasks = ((file.path, _RANGE) for file in files if file.bytes > least)
    divided = (executor or executors.current()).map(_divided, tasks)
    for file in files:
        ranges: list[RecordRange] = next(divided) if file.bytes > least else []
        if not ranges:
            yield file
        for records in ranges:
            yield replace(file, records=records, last=records is ranges[-1])


def _divided(path: Location, size: int, attempt: str) -> list[RecordRange]:
    """The ranges of a file, of at least `size` bytes; none if it is compressed."""
    start = FileStart(path)
    if start.problem is not None or start.likely_compression != "none":
        return []
    ranges: list[RecordRange] = []
    with suppress(RecordError):
        ranges.extend(tfrecord.record_ranges(path, size))
    ranges = ranges or [RecordRange(0, 0, 0)]
    ranges[-1] = replace(ranges[-1], stop=path.stat().st_size)
    return ranges


def range_groups(files: Iterable[FileRange]) -> Iterator[list[FileRange]]:
    """Consecutive files, and ranges of large files, in groups of at least _GROUP bytes; the last may have
    fewer.
    """
    group, size = list[FileRange](), 0
    for part in file_ranges(files, _GROUP):
        group.append(part)
        size += part.bytes
        if size >= _GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def groups(parts: Sequence[T], most: int) -> list[Sequence[T]]:
    """Consecutive parts in at most `most` groups, each with about as many; one group if there are none."""
    count = max(1, min(most, len(parts)))
    bounds = [len(parts) * number // count for number in range(count + 1)]
    return [parts[start:stop] for start, stop in pairwise(bounds)]


def groups_by_bytes(parts: Sequence[T], sizes: Iterable[int], processes: int) -> Iterator[Sequence[T]]:
    """Yields consecutive parts in groups of about _TOGETHER bytes, with at most _MOST_TOGETHER parts. Groups
    are smaller if each process would have fewer than _LEAST_GROUPS groups.

    Args:
        sizes: the size of each part in bytes.
        processes: the number of processes that share the groups.
    """
    most = max(1, min(_MOST_TOGETHER, len(parts) // (_LEAST_GROUPS * processes)))
    start, size = 0, 0
    for stop, of_part in enumerate(sizes, 1):
        size += of_part
        if size >= _TOGETHER or stop - start == most:
            yield parts[start:stop]
            start, size = stop, 0
    if start < len(parts):
        yield parts[start:]


def run(
    function: Callable[..., T],
    tasks: Sequence[Task],
    paths: Iterable[Location],
    jobs: int | None,
    name: str,
    worth: int = _WORTH,
    *,
    sizes: Iterable[int] | None = None,
) -> Iterator[T]:
    """Runs a function of ranges of files in `jobs` processes, or on a cluster, within `executors.on_cluster`.
    Yields the results in the order of the tasks.

    Args:
        paths: all files.
        jobs, worth: see `processes_for`.
        name: the name of the work in messages.
        sizes: the bytes that each task reads, if results are small: a process then runs several small tasks
            before it sends their results.
    """
    running_on: AbstractContextManager[Executor]
    if (known := cluster()) is None:
        running_on = executor(max(1, min(processes_for(paths, jobs, worth), len(tasks))), name)
    else:
        running_on = nullcontext(known)
    with running_on as running:
        if running.in_process or sizes is None:
            yield from running.map(function, tasks)
            return
        several = groups_by_bytes(tasks, sizes, running.processes)
        for results in running.map(_run_all, ((function, some) for some in several)):
            yield from results


def _run_all(function: Callable[..., T], tasks: Sequence[Task], attempt: str) -> list[T]:
    return [function(*task, executors.new_attempt()) for task in tasks]


def processes_for(paths: Iterable[Location], jobs: int | None, worth: int) -> int:
    """The number of processes that read files.

    Args:
        jobs: the requested number; None for one per processor if there is much to read.
        worth: the number of bytes from which several processes are faster than one.
    """
    if jobs is not None:
        return jobs
    much = sum(sizes_of(paths)) >= worth
    return len(os.sched_getaffinity(0)) if much else 1


def size_of(path: Location) -> int:
    """The size of a file in bytes; 0 if it is unknown."""
    with suppress(OSError, StoreError):  # the reader of the file reports the error
        return path.stat().st_size
    return 0


def sizes_of(paths: Iterable[Location]) -> Iterator[int]:
    """The size of each file in bytes; 0 if it is unknown. Requests to a store are concurrent."""
    paths = list(paths)
    if any(isinstance(path, RemotePath) for path in paths):
        return threaded_map("recordspec-sizes", size_of, ((path,) for path in paths), _REQUESTS)
    return map(size_of, paths)


class Scanner:
    """Reads the records of files, or the rows of their blocks.

    Args:
        dataset: the files. Their blocks are unpacked with its schema.
        unpack: whether blocks are unpacked, if there is a schema.

    Attributes:
        dataset: as given.

    Raises StoreError if the dataset was written with a schema that the given one contradicts: other names of
    classes would be read as if they had been written.
    """

    def __init__(self, dataset: StoredDataset, *, unpack: bool = True) -> None:
        if unpack and (problems := dataset.known_mismatches):
            raise StoreError(problems)
        self.dataset = dataset
        note_sizes(self.dataset.paths, self.dataset.manifests)
        self._unpack = unpack
        self._counts: dict[Location, int] = {}

    @classmethod
    def of_rows(cls, dataset: StoredDataset) -> Scanner:
        """Returns a scanner of rows. Raises StoreError for blocks without a schema to unpack them."""
        if dataset.manifest is not None:
            dataset.require_schema()
        return cls(dataset)

    def blocks_of(self, path: Location) -> Schema | None:
        """The schema that unpacks the blocks of a file; None if they are not unpacked."""
        return self.dataset.schema if self._unpack and self.dataset.has_blocks(path) else None

    @property
    def files(self) -> Iterator[FileRange]:
        """Each file as a whole, in order."""
        for number, path in enumerate(self.dataset.paths):
            # known without a request to the store
            shard = self.dataset.shards.get(path) if isinstance(path, RemotePath) else None
            yield FileRange(
                path=path,
                file=number,
                split=self.dataset.splits[path],
                blocks=self.blocks_of(path),
                size=None if shard is None else shard.bytes,
            )

    @property
    def ranges(self) -> Iterator[FileRange]:
        """All files, in order; large files in ranges."""
        return file_ranges(self.files)

    def batches(self) -> Iterator[RowBatch]:
        """Yields all rows. Raises RecordError at an unreadable row, after the rows before it."""
        return self.first(None)

    def first(self, count: int | None = FIRST) -> Iterator[RowBatch]:
        """Yields the first `count` rows of each file; None means all. Raises RecordError at an unreadable
        row."""
        for file in self.files:
            yield from first_rows(file, count)

    def count(self, path: Location) -> int:
        """Returns the number of rows of a file."""
        if path in self._counted:
            return self._counted[path]
        if path not in self._counts:
            schema = self.blocks_of(path)
            index = self.dataset.index_of(path) if schema is None else None
            if schema is not None:
                rows = sum(map(len, _readable(FileRange(path=path, blocks=schema))))
            else:
                rows = tfrecord.count(path) if index is None else index.records
            self._counts[path] = rows
        return self._counts[path]

    @cached_property
    def _counted(self) -> dict[Location, int]:
        """The number of rows of each file in an object store, from the manifest: counting takes requests."""
        manifest, shards = self.dataset.manifest, self.dataset.shards
        if manifest is None or isinstance(self.dataset.paths[0], Path):
            return {}
        unpacked = self._unpack and manifest.block and self.dataset.schema
        return {path: shard.rows if unpacked else shard.records for path, shard in shards.items()}

    def pick(self, numbers: Sequence[int]) -> Iterator[RowBatch]:
        """Yields the rows with these ascending numbers, counted across all files, one by one. Files are not
        read beyond the last of these rows.

        Raises SpecError for a number that is too large.
        """
        first = 0
        left = list(numbers)
        for file in self.files if left and left[0] >= 0 else ():
            if file.path in self._counted and left[0] - first >= self._counted[file.path]:
                first += self._counted[file.path]
                continue
            for batch in self._picked(file, [number - first for number in left]):
                yield batch
                del left[0]
            if not left:
                return
            first += self.count(file.path)
        if left:
            total = sum(map(self.count, self.dataset.paths))
            expected = f"a number from 0 to {total - 1}" if total else "a record"
            got = str(left[0] if left[0] < 0 else left[-1]) if total else "files without any"
            raise SpecError(Problem(path=("record",), expected=expected, got=got))

    def _picked(self, file: FileRange, numbers: list[int]) -> Iterator[RowBatch]:
        """The wanted rows of one file."""
        path = file.path
        if file.blocks is None and compression_of(path) == "none":
            for record in find_records(path, numbers, self.dataset.index_of(path)):
                yield from _readable(replace(file, records=record))
            return
        count = 0
        for batch in _readable(file):
            wanted = np.flatnonzero(np.isin(batch.numbers, numbers))
            yield from (batch.take(wanted[place : place + 1]) for place in range(len(wanted)))
            count += len(batch)
            if count > numbers[-1]:
                return
        self._counts[path] = count


def small_together(items: Iterable[RowBatch | U]) -> Iterator[tuple[RowBatch, ...] | U]:
    """Yields batches in groups, and other items unchanged. Adjacent small batches form a group; a large batch
    is alone.

    Summarizing a group of small batches takes no longer than summarizing one batch.
    """
    small: list[RowBatch] = []
    for item in items:
        if isinstance(item, RowBatch) and len(small) < _MOST_SMALL:
            rows = item.rows
            if isinstance(rows, RecordSpans) and len(rows.buffer) <= _SMALL_BYTES:
                # the next rows of the file may overwrite the buffer
                small.append(replace(item, rows=replace(rows, buffer=rows.buffer.copy())))
                continue
        if small:
            yield tuple(small)
            small = []
        yield (item,) if isinstance(item, RowBatch) else item
    if small:
        yield tuple(small)


def map_together(
    function: Callable[[tuple[RowBatch, ...], RecordSpans | UnpackedRows], T],
    items: Iterable[RowBatch | UnreadableRecord],
    threads: int | None = None,
) -> Iterator[T | UnreadableRecord]:
    """Calls `function(batches, rows)` in threads, and yields the results. `batches` are adjacent small
    batches or a large one, `rows` their rows concatenated. Unreadable records are yielded unchanged."""

    def call(item: tuple[RowBatch, ...] | UnreadableRecord) -> T | UnreadableRecord:
        if isinstance(item, UnreadableRecord):
            return item
        is_alone = len(item) == 1
        return function(item, item[0].rows if is_alone else RecordSpans.joined([one.spans for one in item]))

    tasks = (
        ((item[0].kept(),) if isinstance(item, tuple) and len(item) == 1 else item,)
        for item in small_together(items)
    )
    return threaded_map("recordspec-stats", call, tasks, threads)


def first_rows(file: FileRange, count: int | None) -> Iterator[RowBatch]:
    """The first `count` rows of a file; None means all. Raises RecordError at an unreadable row."""
    left = count
    for batch in _readable(file):
        yield batch if left is None else batch.first(left)
        if left is not None:
            left -= len(batch)
            if left <= 0:
                return


def _readable(part: FileRange) -> Iterator[RowBatch]:
    for item in scan(part):
        if isinstance(item, UnreadableRecord):
            raise item.error
        yield item
