"""Profiles records: reads them and counts the values of each feature.

The first pass counts every value while few are distinct. Candidates for the most frequent values, and the
bounds of a numeric histogram, are known only at its end: a second pass counts them, and decodes only the
columns that need it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem
from recordspec.executors import cluster
from recordspec.progress import Progress
from recordspec.schema.features.box import corners_of
from recordspec.statistics.content import ContentTypes
from recordspec.statistics.distinct import SmallestHashes, ValueCounts, counted_pairs
from recordspec.statistics.sizes import SizeCounts
from recordspec.statistics.value_counts import (
    SHARES,
    BytesValues,
    EstimatedCount,
    Frequencies,
    KindValues,
    NumberCounter,
    NumberValues,
    Sample,
)
from recordspec.store.scan import (
    FileRange,
    RecordSpans,
    RowBatch,
    Scanner,
    UnpackedRows,
    UnreadableRecord,
    map_together,
    range_groups,
    run,
    scan,
)
from recordspec.tables.column_types import keys_of
from recordspec.tables.feature_names import FeatureKey, FeatureNames
from recordspec.wire.arrays import (
    ArrowArray,
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
    strings_array,
    take,
    to_numpy,
    truth_array,
    values_array,
)
from recordspec.wire.columns import Kind
from recordspec.wire.hashes import Words, of_parts, of_strings
from recordspec.wire.record_batch import RecordBatch

# The largest number of features whose values are counted.
MOST_FEATURES = 1000
MOST_PROBLEMS = 10
# Each value of a column is counted up to this many distinct values; a label's, up to its number of classes.
MOST_DISTINCT = 1 << 12
MOST_STRINGS = 1 << 12
# Rows up to which duplicates are counted; beyond, they are estimated. 96 MB.
MOST_ROWS = 1 << 22
# The first bytes of a value that are kept; one more shows whether the value is longer.
SHOWN = 64
# The number of most frequent values that are listed if not every value is counted.
TOP = 20
# The measures of a box.
BOX_MEASURES = ("width", "height", "area")
# With at least this share of distinct values, no value can be frequent enough to be listed.
_DIFFERENT = 0.9


class FeatureCounts:
    """The lists and values under a key, counted.

    Attributes:
        present: the number of records that have the key.
        kinds: the number of lists by kind; in a feature list, each step is a list.
        empty: the number of lists without a value.
        lengths: the number of values of each list.
        steps: the number of steps of each feature list.
        of: the values, by kind.
        boxes: the widths, heights and areas of boxes; empty for another feature.
        order: pairs of adjacent values, counted for labels only; None for another feature.
    """

    def __init__(self) -> None:
        self.present = self.empty = 0
        self.kinds: Counter[Kind] = Counter()
        self.lengths, self.steps = SizeCounts(), SizeCounts()
        self.of: dict[Kind, KindValues] = {}
        self.boxes: dict[str, NumberValues] = {}
        self.order: AdjacentValues | None = None

    @property
    def is_single(self) -> bool:
        """Whether each record has at most one value, all of one kind, and none is in a feature list."""
        return self.lengths.high <= 1 and not self.steps.count and len(self.kinds.keys() - {"none"}) == 1

    def add(self, arrays: Sequence[ArrowArray], *, in_steps: bool) -> None:
        """Adds the lists that records have under the key, or in the feature list."""
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

    def merge(self, other: FeatureCounts) -> None:
        """Adds the lists of the records that follow."""
        self.present += other.present
        self.empty += other.empty
        self.kinds.update(other.kinds)
        self.lengths.merge(other.lengths)
        self.steps.merge(other.steps)


class AdjacentValues:
    """Counts pairs of adjacent values, one value a record, and the pairs of equal values.

    Attributes:
        pairs: the number of pairs.
        same: the number of pairs of equal values.
    """

    def __init__(self) -> None:
        self.pairs = self.same = 0
        self._first: ArrowArray | None = None
        self._last: ArrowArray | None = None

    def add(self, values: ArrowArray) -> None:
        """Adds the next values, at least one."""
        equal = arrow().compute.equal
        if self._last is not None:
            self.pairs += 1
            self.same += equal(self._last, values[:1]).true_count
        else:
            self._first = take(values, np.array([0]))
        self.pairs += len(values) - 1
        self.same += equal(values[1:], values[:-1]).true_count
        self._last = take(values, np.array([len(values) - 1]))  # a copy, which keeps no other memory

    def merge(self, other: AdjacentValues) -> None:
        """Adds the pairs of the values that follow."""
        if other._first is None:
            return
        if self._last is None:
            self._first = other._first
        else:
            self.pairs += 1
            self.same += arrow().compute.equal(self._last, other._first).true_count
        self.pairs += other.pairs
        self.same += other.same
        self._last = other._last


class Profile:
    """The statistics of records.

    Attributes:
        rows: the number of counted rows. A block has many.
        sizes: the sizes of records, in bytes.
        hashes: the hashes of rows.
        broken: the number of records that are corrupt, or of another type.
        problems: the problems of the first broken records, at most MOST_PROBLEMS.
        unknown_fields: the number of rows with fields that no Example has. They may be other messages.
        conflicts: the number of rows that TensorFlow rejects, or reads differently.
        repeated: duplicate keys, with the number of records that have them.
        features: the features by key: the first MOST_FEATURES by name.
        truncated: whether there are more features.
    """

    def __init__(self) -> None:
        self.rows = self.broken = self.unknown_fields = self.conflicts = 0
        self.sizes = SizeCounts()
        self.hashes = SmallestHashes(MOST_ROWS)
        self.problems: list[Problem] = []
        self.repeated: Counter[str] = Counter()
        self.features: dict[FeatureKey, FeatureCounts] = {}
        self.truncated = False

    def add(self, batches: Sequence[RowBatch], records: RecordBatch) -> None:
        """Adds rows and their decoded records."""
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

    def merge(self, other: Profile) -> None:
        """Adds the records that follow."""
        for name in ("rows", "broken", "unknown_fields", "conflicts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.problems = [*self.problems, *other.problems][:MOST_PROBLEMS]
        self.sizes.merge(other.sizes)
        self.hashes.merge(other.hashes)
        for name, times in other.repeated.items():
            if name in self.repeated or len(self.repeated) < MOST_FEATURES:
                self.repeated[name] += times
        self.truncated |= other.truncated
        self._make_room(other.features)
        for key, counts in other.features.items():
            if key in self.features:
                self.features[key].merge(counts)

    def add_unreadable(self, record: UnreadableRecord) -> None:
        if record.size is not None:
            self.sizes.add(np.array([record.size]))
        self._add_broken(record.problems[0])

    @property
    def used_features(self) -> dict[FeatureKey, FeatureCounts]:
        """The features that at least one row has. A block has a column for every feature of the schema."""
        return {key: counts for key, counts in self.features.items() if counts.present}

    def _add_broken(self, problem: Problem) -> None:
        self.broken += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def _make_room(self, keys: Iterable[FeatureKey]) -> None:
        """Adds empty counts for new keys, and keeps the first MOST_FEATURES by name."""
        known = {*self.features, *keys}
        if len(known) > len(self.features):
            self.truncated |= len(known) > MOST_FEATURES
            some = sorted(known)[:MOST_FEATURES]
            self.features = {key: self.features.get(key) or FeatureCounts() for key in some}


def _arrays(records: RecordBatch) -> Iterator[tuple[FeatureKey, Sequence[ArrowArray]]]:
    """The lists of records by key, with an array for each kind."""
    for name, arrays in records.features.items():
        yield (False, name), arrays
    for name, arrays in records.sequence.items():
        yield (True, name), arrays


ColumnKey = tuple[FeatureKey, Kind]


@dataclass(frozen=True, kw_only=True)
class _Chunk:
    """Rows that are decoded together.

    Attributes:
        batches: the rows.
        records: the decoded rows.
        hashes: the hashes of the readable rows; None in the second pass.
    """

    batches: Sequence[RowBatch]
    records: RecordBatch
    hashes: Words | None

    @property
    def bytes(self) -> int:
        return sum(batch.bytes for batch in self.batches)


class _Counted:
    """Counts the values of one kind under one key.

    Args:
        number: the number of the column, which seeds its samples.
        most: the number of distinct values up to which each is counted; floats are counted only while the
            sample holds all of them.

    Attributes:
        numbers: the counts of numbers; None for strings.
        sizes, forms: the sizes and formats of strings.
        sample: a random sample of the values; of strings as `told_apart` returns them.
        counts: the counts of integers or strings; None for floats.
        order: the pairs of adjacent values; None for floats, and once there are many distinct values.
        values, times: the counted values, with their counts.
        is_counted: whether every value is counted.
    """

    def __init__(self, number: int, kind: Kind, most: int) -> None:
        self.kind = kind
        self.numbers = None if kind == "bytes" else NumberCounter(kind, number)
        self.sample = self.numbers.sample if self.numbers else Sample(MOST_STRINGS, number)
        self.sizes, self.forms = SizeCounts(), ContentTypes()
        self.counts = None if kind == "float32" else ValueCounts(most)
        self.order: AdjacentValues | None = AdjacentValues() if self.counts else None
        self.is_counted = False
        self.values = strings_array([]) if kind == "bytes" else numbers_array(np.zeros(0, kind))
        self.times = np.zeros(0, np.int64)

    @property
    def count(self) -> int:
        """The number of values; for floats, of finite values."""
        return self.sizes.count if self.numbers is None else self.numbers.count

    @property
    def is_read_again(self) -> bool:
        return self.count > 0 and not self.is_counted and bool(self.numbers or len(self.values))

    def add(self, values: Any) -> None:
        """Counts values in the first pass."""
        told_apart = self.told_apart(values)
        if self.numbers is not None:
            self.numbers.add(values)
        else:
            self.sizes.add(sizes_of(values))
            self.forms.add(values)
            self.sample.add(told_apart)
        if self.counts is not None:
            self.counts.add(told_apart)
        if self.order is not None:
            self.order.add(told_apart)
            self.order = self.order if self.counts and self.counts.are_few else None

    def merge(self, other: _Counted) -> None:
        """Adds the values that follow, as counted in the first pass; `other` changes, too."""
        if self.numbers is not None and other.numbers is not None:
            self.numbers.merge(other.numbers)
        else:
            self.sizes.merge(other.sizes)
            self.forms.merge(other.forms)
            self.sample.merge(other.sample)
        if self.counts is not None and other.counts is not None:
            self.counts.merge(other.counts)
        if self.order is not None and other.order is not None and self.counts and self.counts.are_few:
            self.order.merge(other.order)
        else:
            self.order = None

    def again(self) -> _Counted:
        """Counts the values of a part in the second pass."""
        made = copy(self)
        made.numbers = None if self.numbers is None else self.numbers.again()
        made.sizes, made.forms, made.counts, made.order = SizeCounts(), ContentTypes(), None, None
        made.sample, made.times = Sample(0, 0), np.zeros_like(self.times)
        return made

    def merge_again(self, other: _Counted) -> None:
        """Adds the values that follow, as counted in the second pass."""
        self.times = self.times + other.times
        if self.numbers is not None and other.numbers is not None:
            self.numbers.merge_again(other.numbers)

    def told_apart(self, values: Any) -> ArrowArray:
        """The values in Arrow, with each long string replaced by its first bytes and its hash."""
        if self.kind == "bytes" and (sizes := sizes_of(values)).max(initial=0) > SHOWN:
            some = take(values, np.flatnonzero(sizes > SHOWN))
            ends = rows_array(of_strings(some).view(np.uint8).reshape(-1, 8))
            cut = arrow().compute.binary_join_element_wise(prefixes(some, SHOWN), ends, string_scalar(b"\0"))
            return arrow().compute.replace_with_mask(values, truth_array(sizes > SHOWN), cut)
        return values_array(values)

    def choose(self, shares: Sequence[float]) -> None:
        """Takes the counts if every value is counted. Otherwise prepares the second pass: chooses the values
        that may be frequent, and the bounds for numbers."""
        pairs = self.counts.pairs if self.counts else None
        self.order = self.order if pairs else None
        if pairs is None and self.sample.is_whole and self.count:
            pairs = counted_pairs(values_array(self.sample.values))
        if pairs is not None:
            self.values, self.times = pairs
            self.is_counted = True
        elif self.counts is not None and self.counts.distinct.value < _DIFFERENT * self.count:
            values, times = counted_pairs(values_array(self.sample.values))
            some = np.flatnonzero(times > 1)
            some = some[np.argsort(-times[some], kind="stable")[: 2 * TOP]]
            self.values, self.times = take(values, some), np.zeros(len(some), np.int64)
        if self.numbers is not None and not self.is_counted and self.count:
            self.numbers.find_bounds(shares)

    def count_again(self, values: Any) -> None:
        """Counts the values that may be frequent, and the numbers below each bound, in the second pass."""
        if len(self.values):
            told_apart = self.told_apart(values)
            places = arrow().compute.index_in(told_apart, value_set=self.values).drop_null()
            self.times += np.bincount(to_numpy(places), minlength=len(self.times))
        if self.numbers is not None:
            self.numbers.count_below(values)

    @property
    def summary(self) -> KindValues:
        if self.numbers is None:
            return BytesValues(sizes=self.sizes, forms=self.forms, frequent=self._frequent)
        frequent = self._frequent if self.counts else None
        if not (self.count and self.is_counted):
            return self.numbers.summary(frequent)
        order = np.argsort(to_numpy(self.values))
        return self.numbers.summary_of(to_numpy(self.values)[order], self.times[order], frequent)

    @property
    def _frequent(self) -> Frequencies:
        assert self.counts is not None
        pairs = arrow().Table.from_arrays([self.values, numbers_array(self.times)], names=["value", "times"])
        pairs = pairs.sort_by([("times", "descending"), ("value", "ascending")])
        pairs = pairs if self.is_counted else pairs.slice(0, TOP)
        values, times = (_whole(pairs[name]) for name in ("value", "times"))
        return Frequencies(
            distinct=EstimatedCount(value=len(values)) if self.is_counted else self.counts.distinct,
            values=bytes_in(values) if self.kind == "bytes" else to_numpy(values).tolist(),
            times=to_numpy(times).tolist(),
            whole=self.is_counted,
        )


@dataclass(frozen=True, kw_only=True)
class Counting:
    """How rows are counted.

    Attributes:
        as_records: whether the rows of blocks are hashed as records, since other files hold no blocks.
        names: the class names of labels, of which each class is counted, and the formats of boxes.
        threads: the number of threads; None for one per processor.
        most: at most so many rows are read, the first ones; None for all.
    """

    as_records: bool
    names: FeatureNames
    threads: int | None
    most: int | None

    @classmethod
    def of(cls, scanner: Scanner, threads: int | None, most: int | None = None) -> Counting:
        """How the rows of some files are counted."""
        dataset = scanner.dataset
        layouts = {dataset.has_blocks(path) for path in dataset.paths}
        names = FeatureNames.of(dataset.schema)
        return cls(as_records=len(layouts) > 1, names=names, threads=threads, most=most)

    def read(
        self, files: Iterable[FileRange], keys: Collection[str] | None
    ) -> Iterator[RowBatch | UnreadableRecord]:
        """The rows of files. Blocks are decoded only for the given keys; None decodes all."""
        items = chain.from_iterable(scan(replace(file, keys=keys)) for file in files)
        return items if self.most is None else _first_of(items, self.most)

    def chunks(self, files: Iterable[FileRange], counts: GroupCounts, *, again: bool) -> Iterator[_Chunk]:
        """Decodes the readable rows. The first time, all keys are decoded, and unreadable records are
        counted; `again`, the keys of the columns alone.
        """
        keys = {key for (_, key), _ in counts.columns} if again else None

        def decode(batches: Sequence[RowBatch], rows: RecordSpans | UnpackedRows) -> _Chunk:
            records = rows.decode(None, keys)
            hashes = self._hashes(rows, records) if keys is None else None
            return _Chunk(batches=batches, records=records, hashes=hashes)

        threads = self.threads or len(os.sched_getaffinity(0))
        for made in map_together(decode, self.read(files, keys), threads):
            if isinstance(made, _Chunk):
                yield made
            elif keys is None:
                counts.profile.add_unreadable(made)

    def _hashes(self, rows: RecordSpans | UnpackedRows, records: RecordBatch) -> Words:
        """The hashes of the readable rows: of the values for rows of blocks, otherwise of the records."""
        if isinstance(rows, UnpackedRows):
            if not self.as_records:
                return rows.hashes
            rows = rows.records
        broken = list(records.broken)
        return of_parts(rows.buffer, np.delete(rows.starts, broken), np.delete(rows.stops, broken))


def profile_splits(
    scanner: Scanner,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    shares: Sequence[float] = SHARES,
    most: int | None = None,
    only: str | None = None,
) -> dict[str, Profile]:
    """The profile of each split, in order; with `only`, of that split alone; with `most`, of at most so many
    first rows of a split. Raises what `profile_all` raises.
    """
    files = [file for file in scanner.files if only in (None, file.split)]
    counting = Counting.of(scanner, threads, most)
    return {
        split: _profile(counting, [file for file in files if file.split == split], shares, progress)
        for split in dict.fromkeys(file.split for file in files)
    }


def profile_all(
    scanner: Scanner,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    shares: Sequence[float] = SHARES,
) -> Profile:
    """The profile of all records.

    Args:
        threads: the number of threads; None for one per processor.
        progress: receives the number of records and bytes.
        shares: the shares of quantiles.

    Raises StoreError if a file cannot be opened. Unreadable records are counted.
    """
    return _profile(Counting.of(scanner, threads), list(scanner.files), shares, progress)


def _profile(
    counting: Counting, files: Sequence[FileRange], shares: Sequence[float], progress: Progress | None
) -> Profile:
    """Reads groups of files once, or twice if a column needs it. What is counted of groups is merged in their
    order: so the result is the same wherever they are read.
    """
    groups = [files] if counting.most is not None else list(range_groups(files))
    progress = progress or Progress(show=False)
    here, paths = progress if cluster() is None else None, [file.path for file in files]
    counts = GroupCounts(counting.names)
    tasks = [(counting, group, here) for group in groups]
    for some in run(_count, tasks, paths, 1, "statistics"):
        counts.merge(some)
        if here is None:
            progress.advance(some.profile.rows)
    again = counts.choose(shares)
    repeated = [(counting, group, again.again(), here) for group in groups] if again.columns else []
    for some in run(_count_again, repeated, paths, 1, "statistics"):
        again.merge_again(some)
    return counts.summarized()


def _count(
    counting: Counting, files: Sequence[FileRange], progress: Progress | None, attempt: str
) -> GroupCounts:
    """Counts the rows of files in the first pass."""
    counts = GroupCounts(counting.names)
    for chunk in counting.chunks(files, counts, again=False):
        if progress is not None:
            progress.advance(chunk.records.rows, chunk.bytes)
        counts.add(chunk)
    return counts


def _count_again(
    counting: Counting,
    files: Sequence[FileRange],
    counts: GroupCounts,
    progress: Progress | None,
    attempt: str,
) -> GroupCounts:
    """Counts the rows of files in the second pass."""
    for chunk in counting.chunks(files, counts, again=True):
        if progress is not None:
            progress.advance(0)  # may cancel the work
        counts.add_again(chunk)
    return counts


def _first_of(
    items: Iterable[RowBatch | UnreadableRecord], most: int
) -> Iterator[RowBatch | UnreadableRecord]:
    for item in items:
        if isinstance(item, RowBatch) and len(item) > most:
            sizes = item.sizes[:most] if item.block_rows is None else item.sizes
            yield replace(item.first(most), sizes=sizes)
        else:
            yield item
        most -= len(item) if isinstance(item, RowBatch) else 1
        if most <= 0:
            return


class GroupCounts:
    """What is counted of some rows.

    Attributes:
        profile: the profile, which gets the values at the end.
        columns: the values of each kind under each key; of boxes also their measures, by `width`, `height`
            and `area` instead of the kind.
    """

    def __init__(self, names: FeatureNames) -> None:
        self._names = names
        self.profile = Profile()
        self.columns: dict[tuple[FeatureKey, str], _Counted] = {}

    def add(self, chunk: _Chunk) -> None:
        """Counts rows in the first pass."""
        self.profile.add(chunk.batches, chunk.records)
        if chunk.hashes is not None:
            self.profile.hashes.add(chunk.hashes)
        for place, flat in self._values(chunk.records):
            if place[0] not in self.profile.features:
                continue
            if place not in self.columns:
                most = max(MOST_DISTINCT, len(self._names.classes.get(place[0], ())))
                kind = cast("Kind", "float32" if place[1] in BOX_MEASURES else place[1])
                self.columns[place] = _Counted(len(self.columns), kind, most)
            self.columns[place].add(flat)

    def merge(self, other: GroupCounts) -> None:
        """Adds the rows that follow, as counted in the first pass; `other` changes, too."""
        if not self.profile.rows and not self.profile.broken:
            self.profile, self.columns = other.profile, other.columns
            return
        self.profile.merge(other.profile)
        for place, column in other.columns.items():
            if place in self.columns:
                self.columns[place].merge(column)
            elif place[0] in self.profile.features:
                self.columns[place] = column

    def choose(self, shares: Sequence[float]) -> GroupCounts:
        """Ends the first pass. Returns the columns that need a second one."""
        features = self.profile.features = self.profile.used_features
        self.columns = {place: one for place, one in self.columns.items() if place[0] in features}
        for column in self.columns.values():
            column.choose(shares)
        made = GroupCounts(self._names)
        made.columns = {place: column for place, column in self.columns.items() if column.is_read_again}
        return made

    def again(self) -> GroupCounts:
        """Counts a part of the rows in the second pass."""
        made = GroupCounts(self._names)
        made.columns = {place: column.again() for place, column in self.columns.items()}
        return made

    def add_again(self, chunk: _Chunk) -> None:
        """Counts rows in the second pass."""
        for place, flat in self._values(chunk.records):
            if place in self.columns:
                self.columns[place].count_again(flat)

    def merge_again(self, other: GroupCounts) -> None:
        """Adds the rows that follow, as counted in the second pass."""
        for place, column in other.columns.items():
            self.columns[place].merge_again(column)

    def summarized(self) -> Profile:
        """The profile with the values."""
        features = self.profile.features
        for (key, kind), column in self.columns.items():
            summary = column.summary
            if kind == column.kind:
                features[key].of[column.kind] = summary
            elif isinstance(summary, NumberValues):
                features[key].boxes[kind] = summary
            if column.order is not None and features[key].is_single:
                features[key].order = column.order
        return self.profile

    def _values(self, records: RecordBatch) -> Iterator[tuple[tuple[FeatureKey, str], Any]]:
        """The values of each kind under each key, and the measures of boxes."""
        for (key, kind), flat in flat_values(records):
            yield (key, kind), flat
            if key in self._names.boxes and kind == "float32" and len(flat) % 4 == 0:
                low, high = corners_of(flat.reshape(-1, 4), self._names.boxes[key])
                sides = high - low
                measures = (sides[:, 0], sides[:, 1], sides[:, 0] * sides[:, 1])
                for name, values in zip(BOX_MEASURES, measures, strict=True):
                    yield (key, name), np.ascontiguousarray(values)


def flat_values(records: RecordBatch) -> Iterator[tuple[ColumnKey, Any]]:
    """The values of each kind under each key, concatenated."""
    for key, arrays in _arrays(records):
        for array in arrays:
            lists = items_of(array) if key[0] else array
            kind = storage_of(lists)
            if kind != "none" and len(flat := flat_of(lists)):
                yield (key, kind), flat


def _whole(column: Any) -> ArrowArray:
    """A column of a table as one array. Its `combine_chunks` imports pandas, which takes 0.2 s."""
    return arrow().concat_arrays(column.chunks) if column.num_chunks else arrow().nulls(0, column.type)
