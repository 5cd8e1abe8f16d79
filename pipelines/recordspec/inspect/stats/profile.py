"""Reads records twice, and counts each of their features.

What has a feature, and its numbers, are counted in NumPy; how many values differ, and how often each of few
is there, by DuckDB. It gets the values of all columns end to end, with the number of their column: to count
those of a thousand columns takes no longer than as many of one. The second reading decodes only the columns
of which more is asked.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec._duckdb import connected, errors_of, reader_of
from recordspec.errors import Problem
from recordspec.inspect.columns import keys_of
from recordspec.inspect.feature_names import FeatureKey, FeatureNames
from recordspec.inspect.scan import (
    FileRange,
    RecordSpans,
    RowBatch,
    Scanner,
    UnpackedRows,
    UnreadableRecord,
    decoded,
    map_together,
    scan,
    size_of,
)
from recordspec.inspect.stats.content import ContentTypes
from recordspec.inspect.stats.sizes import SizeCounts
from recordspec.inspect.stats.values import (
    SHARES,
    BytesValues,
    EstimatedCount,
    Frequencies,
    KindValues,
    NumberCounter,
    NumberValues,
    Sample,
    counted_numbers,
)
from recordspec.progress import Progress
from recordspec.wire.arrays import (
    ArrowArray,
    binary_array,
    bytes_in,
    counts_of,
    flat_of,
    items_of,
    numbers_array,
    offsets,
    prefixes,
    present_in,
    rows_array,
    sizes_of,
    storage_of,
    string_scalar,
    take,
    to_binary,
    to_numpy,
    truth_array,
    values_array,
)
from recordspec.wire.columns import Kind
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES
from recordspec.wire.hashes import Words, of_strings, of_values
from recordspec.wire.record_batch import RecordBatch

# The largest number of features whose values are counted.
MOST_FEATURES = 1000
MOST_PROBLEMS = 10
# Of so many different values of a column, each is counted, and up to twice as many strings are.
MOST_DISTINCT = 1 << 12
MOST_STRINGS = 1 << 12
# Rows up to which duplicates are counted; beyond, they are estimated. 32 MB.
MOST_ROWS = 1 << 22
# The first bytes of a value that are kept; one more shows whether the value is longer.
SHOWN = 64
# The most frequent values that are named, of those that are not all counted.
TOP = 20
# Hashes of values that are counted for an estimate: a standard error of 1.6 %.
_HASHES = 1 << 12
_WORDS = 1 << 64
# DuckDB's estimate of the number of different values has a standard error of 13 % up to 1.4 and of 3 % in
# 2.0, measured: it decides what is counted, and is not shown.
_MARGIN = 1.5
# The first values of a column, which tell whether they repeat.
_FIRST = 1 << 13
# With at least this share of different values, none can be frequent enough to be named.
_DIFFERENT = 0.9
_NO_HASHES = np.zeros(0, np.uint64)

# What reads the records, of blocks only these keys, as often as they are needed.
Reading = Callable[[Collection[str] | None], Iterable[RowBatch | UnreadableRecord]]


class FeatureCounts:
    """What records have under a key.

    Attributes:
        present: the number of records that have the key.
        kinds: the number of lists by kind (of a feature list: steps).
        empty: the number of lists without a value.
        lengths: the number of values of each list.
        steps: the number of steps of each feature list.
        of: the values, by kind.
        order: whether values that follow each other are the same; None of others than labels.
    """

    def __init__(self) -> None:
        self.present = self.empty = 0
        self.kinds: Counter[Kind] = Counter()
        self.lengths, self.steps = SizeCounts(), SizeCounts()
        self.of: dict[Kind, KindValues] = {}
        self.order: AdjacentValues | None = None

    @property
    def is_single(self) -> bool:
        """Whether no record has several values, nor values of several kinds."""
        return self.lengths.high <= 1 and not self.steps.count and len(self.kinds.keys() - {"none"}) == 1

    def add(self, arrays: Sequence[ArrowArray], *, in_steps: bool) -> None:
        """Adds the lists of records under the key, or in the feature list."""
        if in_steps:
            present = present_in(arrays[0])
            self.present += int(present.sum())
            self.steps.add(counts_of(arrays[0])[present])
        for array in arrays:
            lists = items_of(array) if in_steps else array
            count = len(lists) - lists.null_count
            self.present += 0 if in_steps else count
            if count:
                kind = storage_of(lists)
                self.kinds[kind] += count
                if kind != "none":
                    lengths = counts_of(lists)
                    lengths = lengths[present_in(lists)] if lists.null_count else lengths
                    self.lengths.add(lengths)
                    self.empty += count - int(np.count_nonzero(lengths))


class AdjacentValues:
    """Counts pairs of values that follow each other, one a record, and those of equal ones.

    Attributes:
        pairs, same: the numbers of pairs.
    """

    def __init__(self) -> None:
        self.pairs = self.same = 0
        self._last: ArrowArray | None = None

    def add(self, values: ArrowArray) -> None:
        """Values that follow those that were added before."""
        if self._last is not None:
            values = arrow().concat_arrays([self._last, values])
        if len(values):
            self.pairs += len(values) - 1
            self.same += arrow().compute.equal(values[1:], values[:-1]).true_count
            self._last = values[-1:]


@dataclass(frozen=True, kw_only=True)
class RowHashes:
    """The hashes of rows below a limit.

    Attributes:
        hashes: rising, with those of duplicates.
        limit: 2^64 if they are those of all rows.
    """

    hashes: Words
    limit: int = _WORDS

    @property
    def copies(self) -> EstimatedCount:
        """The number of rows that equal an earlier row."""
        return _of_all(int(np.count_nonzero(self.hashes[1:] == self.hashes[:-1])), self.limit)

    def shared(self, other: RowHashes) -> EstimatedCount:
        """The number of different rows that are in both."""
        limit, common = min(self.limit, other.limit), np.intersect1d(self.hashes, other.hashes)
        return _of_all(int(np.count_nonzero(common <= np.uint64(limit - 1))), limit)


class Profile:
    """What is in records.

    Attributes:
        rows: the number of counted rows. A block has many.
        sizes: the sizes of records, in bytes.
        hashes: the hashes of rows.
        broken: the number of records that are corrupt, or of another type.
        problems: the first problems of these.
        unknown_fields: the number of rows with fields that no Example has, which may be other messages.
        conflicts: the number of rows that TensorFlow rejects, or reads differently.
        repeated: duplicate keys, with the number of records that have them.
        features: the features by key: the first MOST_FEATURES by name.
        truncated: whether there are more.
    """

    def __init__(self) -> None:
        self.rows = self.broken = self.unknown_fields = self.conflicts = 0
        self.sizes = SizeCounts()
        self.hashes = RowHashes(hashes=np.zeros(0, np.uint64))
        self.problems: list[Problem] = []
        self.repeated: Counter[str] = Counter()
        self.features: dict[FeatureKey, FeatureCounts] = {}
        self.truncated = False

    def add(self, batches: Sequence[RowBatch], records: RecordBatch) -> None:
        """Adds rows, and what is decoded of them."""
        for batch in batches:
            self.sizes.add(batch.sizes)
        firsts = offsets(np.array([len(batch) for batch in batches]))
        for row, problem in sorted(records.broken.items()):
            known = replace(problem, expected="an Example or a SequenceExample")
            place = int(np.searchsorted(firsts, row, "right")) - 1
            self._add_broken(known.at(batches[place].place(row - int(firsts[place]))))
        self.rows += records.rows - len(records.broken)
        self.unknown_fields += len(records.unknown_fields)
        self.conflicts += len(records.conflicts)
        for _, name in records.repeated:
            if name in self.repeated or len(self.repeated) < MOST_FEATURES:
                self.repeated[name] += 1
        self._make_room(keys_of(records))
        for key, arrays in _arrays(records):
            if key in self.features:
                self.features[key].add(arrays, in_steps=key[0])

    def add_unreadable(self, record: UnreadableRecord) -> None:
        if record.size is not None:
            self.sizes.add(np.array([record.size]))
        self._add_broken(record.problems[0])

    @property
    def used_features(self) -> dict[FeatureKey, FeatureCounts]:
        """Those that some row has: a block has a column of each."""
        return {key: counts for key, counts in self.features.items() if counts.present}

    def _add_broken(self, problem: Problem) -> None:
        self.broken += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def _make_room(self, keys: Iterable[FeatureKey]) -> None:
        """For the keys that are counted."""
        known = {*self.features, *keys}
        if len(known) > len(self.features):
            self.truncated |= len(known) > MOST_FEATURES
            some = sorted(known)[:MOST_FEATURES]
            self.features = {key: self.features.get(key) or FeatureCounts() for key in some}


def _arrays(records: RecordBatch) -> Iterator[tuple[FeatureKey, Sequence[ArrowArray]]]:
    """The lists of records by key, those of each kind in an array."""
    for name, arrays in records.features.items():
        yield (False, name), arrays
    for name, arrays in records.sequence.items():
        yield (True, name), arrays


# The fields of the table that DuckDB reads, beside the number `k` of a column: integers and strings that may
# repeat; those that hardly do; rows, or the hashes of those of blocks.
_FIELDS = {
    "i": "int64",
    "b": "large_binary",
    "n": "int64",
    "m": "large_binary",
    "r": "large_binary",
    "h": "uint64",
}
_FIELD_OF: dict[Kind, str] = {"int64": "i", "bytes": "b"}
_ROWS = -1  # the number of the column of rows

# The values of a column in some rows: its number, their field, and they.
Part = tuple[int, str, ArrowArray]
ColumnKey = tuple[FeatureKey, Kind]


@dataclass(frozen=True, kw_only=True)
class _Chunk:
    """Rows that are decoded together.

    Attributes:
        batches: the rows.
        records: what is decoded of them.
        compared: the rows to compare, or their hashes, where `r` or `h` is the field.
    """

    batches: Sequence[RowBatch]
    records: RecordBatch
    compared: Sequence[tuple[str, ArrowArray]]

    @property
    def bytes(self) -> int:
        return sum(batch.bytes for batch in self.batches)


class _Counted:
    """The values of a kind under a key, and what is known of them.

    Attributes:
        number: of the column, for DuckDB.
        field: in which DuckDB gets it first; empty of floats.
        repeats: whether its first values are so few that all may be.
        numbers: the counts of numbers.
        sizes, forms: of strings.
        sample: of the values; of strings, as they are told apart.
        is_kept, is_few: whether each value is counted: here, as there are few; or by DuckDB, as few differ.
        values, times: those that are counted, and how often each is there.
        limit: of the hashes that are kept; 0 of columns without.
        distinct: the number of different values, or about how many.
        order: of labels.
    """

    def __init__(self, number: int, kind: Kind, first: Any, *, has_classes: bool) -> None:
        some = values_array(first)[:_FIRST]
        self.number, self.kind = number, kind
        self.repeats = has_classes or len(some.unique()) < _DIFFERENT * len(some)
        fields = {"int64": "in", "bytes": "bm", "float32": ("", "")}[kind]
        self.field = fields[0] if self.repeats else fields[1]
        self.numbers = None if kind == "bytes" else NumberCounter(kind, number)
        self.sample = self.numbers.sample if self.numbers else Sample(MOST_STRINGS, number)
        self.sizes, self.forms = SizeCounts(), ContentTypes()
        self.is_kept = self.is_few = False
        self.limit, self._hashes = 0, [_NO_HASHES]
        self.values, self.times = some[:0], np.zeros(0, np.int64)
        self.distinct = EstimatedCount(value=0)
        self.order: AdjacentValues | None = None

    @property
    def count(self) -> int:
        """The number of values; of floats, of the finite ones."""
        return self.sizes.count if self.numbers is None else self.numbers.count

    @property
    def is_counted(self) -> bool:
        return self.is_kept or self.is_few

    @property
    def is_read_again(self) -> bool:
        if self.order is not None or self.is_few:
            return True
        return not self.is_kept and bool(self.numbers or self.limit or len(self.values))

    def look_at(self, values: Any) -> ArrowArray:
        """Counts what DuckDB is not asked, in the first reading. Returns what it may be asked."""
        told_apart = self.told_apart(values)
        if self.numbers is not None:
            self.numbers.add(values)
        else:
            self.sizes.add(sizes_of(values))
            self.forms.add(values)
            self.sample.add(told_apart)
        return told_apart

    def told_apart(self, values: Any) -> ArrowArray:
        """What DuckDB gets of integers and strings: of long ones the beginning and a hash."""
        if self.kind == "bytes" and (sizes := sizes_of(values)).max(initial=0) > SHOWN:
            some = take(values, np.flatnonzero(sizes > SHOWN))
            ends = rows_array(of_strings(some).view(np.uint8).reshape(-1, 8))
            cut = arrow().compute.binary_join_element_wise(prefixes(some, SHOWN), ends, string_scalar(b"\0"))
            return arrow().compute.replace_with_mask(values, truth_array(sizes > SHOWN), cut)
        return values_array(values)

    def count_sample(self) -> None:
        """Counts the values of the sample: all there are, or those that may be the most frequent ones."""
        if self.numbers is not None and not self.numbers.count:
            return
        counted = values_array(self.sample.values).value_counts()
        values, times = counted.field(0), to_numpy(counted.field(1))
        if not self.is_kept:
            some = np.flatnonzero(times > 1)
            some = some[np.argsort(-times[some], kind="stable")[: 2 * TOP]]
            values, times = take(values, some), np.zeros(len(some), np.int64)
        self.values, self.times = values, times

    def count_again(self, values: ArrowArray) -> None:
        """Counts values that may be frequent, and about how many differ, in the second reading."""
        if len(self.values):
            places = arrow().compute.index_in(values, value_set=self.values).drop_null()
            self.times += np.bincount(to_numpy(places), minlength=len(self.times))
        if self.limit:
            hashes = of_values(values)
            self._hashes.append(np.unique(hashes[hashes < np.uint64(self.limit)]))
            if sum(map(len, self._hashes)) > 4 * _HASHES:  # to join them each time takes 0.4 ms
                self._hashes = [self.hashes]

    @property
    def hashes(self) -> Words:
        """The different ones below `limit`, of columns of which not all values are counted."""
        return np.unique(np.concatenate(self._hashes))

    @property
    def summary(self) -> KindValues:
        if self.numbers is None:
            return BytesValues(sizes=self.sizes, forms=self.forms, frequent=self._frequent)
        numbers = self.numbers
        if not numbers.count:
            none = np.zeros(0, self.kind)
            made = NumberValues(count=0, quantiles={}, points=none, below=none.astype(np.int64))
        elif self.is_counted:
            order = np.argsort(to_numpy(self.values))
            made = counted_numbers(to_numpy(self.values)[order], self.times[order])
        else:
            made = numbers.summary(self._frequent if self.field else None)
        count = made.count + numbers.nans + numbers.infinite
        return replace(made, count=count, nans=numbers.nans, infinite=numbers.infinite, lowest=numbers.lowest)

    @property
    def _frequent(self) -> Frequencies:
        pairs = arrow().Table.from_arrays([self.values, numbers_array(self.times)], names=["value", "times"])
        pairs = pairs.sort_by([("times", "descending"), ("value", "ascending")])
        pairs = pairs if self.is_counted else pairs.slice(0, TOP)
        values, times = (_whole(pairs[name]) for name in ("value", "times"))
        distinct = EstimatedCount(value=len(values)) if self.is_counted else self.distinct
        return Frequencies(
            distinct=_of_all(len(self.hashes), self.limit) if self.limit else distinct,
            values=bytes_in(values) if self.kind == "bytes" else to_numpy(values).tolist(),
            times=to_numpy(times).tolist(),
            whole=self.is_counted,
        )


def profile(
    read: Reading,
    *,
    size: int = 0,
    as_records: bool = False,
    classes: Mapping[FeatureKey, int] | None = None,
    shares: Sequence[float] = SHARES,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Profile:
    """Counts the features of records.

    Args:
        read: reads them.
        size: about how many bytes the files have.
        as_records: whether the rows of blocks are compared as records, since there are others.
        classes: of labels with named classes, how many there are: each is counted.
        shares: the shares of quantiles.
        threads: their number; None for one per processor.
        progress: receives the number of records and bytes.

    Raises StoreError if a file cannot be opened. Records that cannot be read are counted.
    """
    threads = threads or len(os.sched_getaffinity(0))
    with connected(threads=threads) as connection:
        profiler = _Profiler(connection, read, as_records, classes or {}, tuple(shares), threads)
        return profiler.run(size, progress or Progress(show=False))


def profile_splits(
    scanner: Scanner,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    shares: Sequence[float] = SHARES,
) -> dict[str, Profile]:
    """The profile of each split, in order. Raises what `profile` raises."""
    files = list(scanner.files)
    return {
        split: _profile(scanner, [file for file in files if file.split == split], threads, progress, shares)
        for split in dict.fromkeys(file.split for file in files)
    }


def profile_all(
    scanner: Scanner,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    shares: Sequence[float] = SHARES,
) -> Profile:
    """The profile of all records. Raises what `profile` raises."""
    return _profile(scanner, list(scanner.files), threads, progress, shares)


def _profile(
    scanner: Scanner,
    files: Sequence[FileRange],
    threads: int | None,
    progress: Progress | None,
    shares: Sequence[float],
) -> Profile:
    names = FeatureNames.of(scanner.schema)
    return profile(
        partial(_read, files),
        size=sum(size_of(file.path) for file in files),
        as_records=len({scanner.has_blocks(path) for path in scanner.paths}) > 1,
        classes={key: len(classes) for key, classes in names.classes.items()},
        shares=shares,
        threads=threads,
        progress=progress,
    )


def _read(files: Iterable[FileRange], keys: Collection[str] | None) -> Iterator[RowBatch | UnreadableRecord]:
    for file in files:
        yield from scan(replace(file, keys=keys))


class _Profiler:
    """Reads records as often as needed; see `profile`.

    Attributes:
        failure: the error that a reading ended with, of which DuckDB tells only the text.
    """

    def __init__(
        self,
        connection: Any,
        read: Reading,
        as_records: bool,
        classes: Mapping[FeatureKey, int],
        shares: tuple[float, ...],
        threads: int,
    ) -> None:
        self._connection, self._read, self._as_records = connection, read, as_records
        self._classes, self._shares, self._threads = classes, shares, threads
        self._columns: dict[ColumnKey, _Counted] = {}
        self._profile = Profile()
        self.failure: BaseException | None = None

    def run(self, size: int, progress: Progress) -> Profile:
        self._summarize(size, progress)
        features = self._profile.features = self._profile.used_features
        self._columns = {place: one for place, one in self._columns.items() if place[0] in features}
        for (key, kind), column in self._columns.items():
            few = _MARGIN * max(MOST_DISTINCT, self._classes.get(key, 0))
            distinct = column.distinct.value
            column.is_kept = column.sample.is_whole
            column.is_few = not column.is_kept and column.repeats and 0 < distinct <= few
            is_varied = not column.field or distinct >= _DIFFERENT * column.count
            if column.is_kept or not (column.is_few or is_varied):
                column.count_sample()
            if not column.is_counted and column.field and column.repeats:
                column.limit = min(_WORDS - 1, _HASHES * _WORDS // distinct)
            if column.numbers is not None and not column.is_counted:
                column.numbers.find_bounds(self._shares)
            if kind != "float32" and column.is_counted and features[key].is_single:
                features[key].order = column.order = AdjacentValues()
        self._read_again()
        for (key, kind), column in self._columns.items():
            features[key].of[kind] = column.summary
        return self._profile

    def _summarize(self, size: int, progress: Progress) -> None:
        """Reads all records, and asks DuckDB about how many values differ."""
        chunks = self._chunks(None)
        first = next(chunks, None)
        rows = first.records.rows if first else 0
        if first:  # about how many rows there are
            frames = (HEADER_BYTES + FOOTER_BYTES) * sum(len(batch.sizes) for batch in first.batches)
            rows = max(rows, size * rows // max(1, first.bytes + frames))
        below = {"values": 2 * _HASHES, "rows": MOST_ROWS}
        below = {name: min(_WORDS, most * _WORDS // max(rows, 1)) - 1 for name, most in below.items()}
        made = self._asked(
            f"""SELECT k, approx_count_distinct(i) + approx_count_distinct(b) AS about,
                list(hash(n)) FILTER (n IS NOT NULL AND hash(n) <= {below["values"]}) AS hashes_n,
                list(m) FILTER (m <= {below["values"]}) AS hashes_m,
                list(r) FILTER (r <= {below["rows"]}) AS hashes_r,
                list(h) FILTER (h <= {below["rows"]}) AS hashes_h
            FROM (SELECT k, i, b, n, h, {_hash_of("m")}, {_hash_of("r")} FROM t) GROUP BY k""",
            self._all_parts(chain([first] if first else (), chunks), progress),
        )
        columns = {column.number: column for column in self._columns.values()}
        for row, number in enumerate(made["k"].to_pylist()):
            lists = [made[f"hashes_{field}"][row].values for field in "nmrh"]
            kept = np.concatenate([to_numpy(one) for one in lists if one is not None] or [_NO_HASHES])
            if number == _ROWS:
                self._profile.hashes = RowHashes(hashes=np.sort(kept), limit=below["rows"] + 1)
            elif columns[number].repeats:
                columns[number].distinct = EstimatedCount(value=made["about"][row].as_py())
            else:
                columns[number].distinct = _of_all(len(np.unique(kept)), below["values"] + 1)

    def _all_parts(self, chunks: Iterable[_Chunk], progress: Progress) -> Iterator[list[Part]]:
        """The values of all columns, and the rows. What DuckDB is not asked is counted on the way."""
        for chunk in chunks:
            self._profile.add(chunk.batches, chunk.records)
            progress.advance(chunk.records.rows, chunk.bytes)
            parts: list[Part] = [(_ROWS, field, rows) for field, rows in chunk.compared]
            for place, flat in flat_values(chunk.records):
                if place[0] not in self._profile.features:
                    continue
                if place not in self._columns:
                    number, has_classes = len(self._columns), place[0] in self._classes
                    self._columns[place] = _Counted(number, place[1], flat, has_classes=has_classes)
                column = self._columns[place]
                values = column.look_at(flat)
                if column.field:
                    parts.append((column.number, column.field, values))
            yield parts

    def _read_again(self) -> None:
        """Counts the values of columns of which few differ, and what is asked of others."""
        columns = {place: column for place, column in self._columns.items() if column.is_read_again}

        def parts() -> Iterator[list[Part]]:
            for pieces in self._pieces(columns):
                some: list[Part] = []
                for column, values in pieces:
                    if column.order is not None:
                        column.order.add(values)
                    if column.is_few:
                        some.append((column.number, _FIELD_OF[column.kind], values))
                    if column.is_counted:
                        continue
                    column.count_again(values)
                    if column.numbers is not None:
                        column.numbers.count_below(to_numpy(values))
                yield some

        made = self._asked("SELECT k, i, b, count(*) AS times FROM t GROUP BY ALL", parts())
        numbers = to_numpy(_whole(made["k"]))
        for column in columns.values():
            if column.is_few:
                some = made.take(np.flatnonzero(numbers == column.number))
                values = _whole(some[_FIELD_OF[column.kind]])
                column.values = to_binary(values) if column.kind == "bytes" else values
                column.times = to_numpy(_whole(some["times"]))

    def _pieces(self, columns: Mapping[ColumnKey, _Counted]) -> Iterator[list[tuple[_Counted, ArrowArray]]]:
        """The values of these columns, of some rows after others."""
        for chunk in self._chunks({key for (_, key), _ in columns}) if columns else ():
            yield [
                (columns[place], columns[place].told_apart(flat))
                for place, flat in flat_values(chunk.records)
                if place in columns
            ]

    def _chunks(self, keys: Collection[str] | None) -> Iterator[_Chunk]:
        """The rows that can be read, with what is decoded of them; of all keys, also what cannot be read is
        counted."""

        def decode(batches: Sequence[RowBatch], rows: RecordSpans | UnpackedRows) -> _Chunk:
            records = decoded(rows, keys)
            compared = [] if keys is not None else [self._compared(rows, records)]
            return _Chunk(batches=batches, records=records, compared=compared)

        for made in map_together(decode, self._read(keys), self._threads):
            if isinstance(made, _Chunk):
                yield made
            elif keys is None:
                self._profile.add_unreadable(made)

    def _compared(self, rows: RecordSpans | UnpackedRows, records: RecordBatch) -> tuple[str, ArrowArray]:
        """The rows that can be read: the hashes of those of blocks, else records, null between them."""
        if isinstance(rows, UnpackedRows):
            if not self._as_records:
                return "h", numbers_array(rows.hashes)
            rows = rows.records
        places = np.stack([rows.starts, rows.stops], 1).reshape(-1)
        present = np.arange(len(places)) % 2 == 0
        present[[2 * row for row in records.broken]] = False
        return "r", binary_array(rows.buffer, places, present[:-1])

    def _asked(self, sql: str, parts: Iterator[list[Part]]) -> Any:
        """What DuckDB tells of a table `t` of these parts, an Arrow table."""
        pyarrow = arrow()
        schema = pyarrow.schema([("k", pyarrow.int32()), *_field_types().items()])

        def batches() -> Iterator[Any]:
            try:
                for some in parts:
                    if some:
                        yield _record_batch(some, schema)
            except Exception as error:
                self.failure = error
                raise

        with errors_of(sql, {}, [self]):
            self._connection.register("t", pyarrow.RecordBatchReader.from_batches(schema, batches()))
            return reader_of(self._connection.sql(sql)).read_all()


def _hash_of(field: str) -> str:
    """The hash of strings, in SQL; NULL of NULL.

    DuckDB's alone has 256 numbers for 16,384 strings that differ in their bytes 7 and 15: the last byte of
    each 8 changes few bits of it. In the second hash that byte is the fourth of 8.
    """
    hashed = f"xor(hash({field}), hash('1234'::BLOB || {field}))"
    return f"CASE WHEN {field} IS NOT NULL THEN {hashed} END AS {field}"


def _field_types() -> dict[str, Any]:
    """The type of each field."""
    pyarrow = arrow()
    return {
        name: pyarrow.large_binary() if kind == "large_binary" else pyarrow.type_for_alias(kind)
        for name, kind in _FIELDS.items()
    }


def _record_batch(parts: list[Part], schema: Any) -> Any:
    """The parts one below the other, each in its field; the others are null there."""
    pyarrow = arrow()
    parts = sorted(parts, key=lambda part: part[1])  # long runs of null take no time
    counts = [len(values) for _, _, values in parts]
    arrays = [numbers_array(np.repeat(np.array([number for number, _, _ in parts], np.int32), counts))]
    for name, kind in zip(schema.names[1:], schema.types[1:], strict=True):
        pieces, missing = [], 0
        for _, field, values in parts:
            if field != name:
                missing += len(values)
                continue
            pieces += [pyarrow.nulls(missing, kind), values] if missing else [values]
            missing = 0
        if missing or not pieces:
            pieces.append(pyarrow.nulls(missing, kind))
        arrays.append(pieces[0] if len(pieces) == 1 else pyarrow.concat_arrays(pieces))
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def flat_values(records: RecordBatch) -> Iterator[tuple[ColumnKey, Any]]:
    """The values of each kind under each key, end to end."""
    for key, arrays in _arrays(records):
        for array in arrays:
            lists = items_of(array) if key[0] else array
            kind = storage_of(lists)
            if kind != "none" and len(flat := flat_of(lists)):
                yield (key, kind), flat


def _whole(column: Any) -> ArrowArray:
    """A column of a table as one array. Its `combine_chunks` imports pandas, which takes 0.2 s."""
    return arrow().concat_arrays(column.chunks) if column.num_chunks else arrow().nulls(0, column.type)


def _of_all(count: int, limit: int) -> EstimatedCount:
    """How many there are, of which so many have a hash below a limit."""
    if limit >= _WORDS:
        return EstimatedCount(value=count)
    return EstimatedCount(value=round(count * _WORDS / limit), error=1 / max(count, 1) ** 0.5)
