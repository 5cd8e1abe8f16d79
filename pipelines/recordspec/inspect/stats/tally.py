"""Counts records as a whole, and each of their features. Counts of parts can be merged."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem
from recordspec.inspect.feature_names import FeatureKey
from recordspec.inspect.media import MEDIA, media_info
from recordspec.inspect.query import keys_of
from recordspec.inspect.scan import (
    FileRange,
    RecordSpans,
    RowBatch,
    Scanner,
    UnreadableRecord,
    decoded,
    run,
    scan,
    small_together,
)
from recordspec.inspect.stats.sketches import (
    MOST_VALUES,
    SAMPLE_SIZE,
    AdjacentValues,
    BottomK,
    FrequentValues,
    KMinimumValues,
    Moments,
    SizeCounts,
)
from recordspec.progress import Progress
from recordspec.wire import hashes
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    Mask,
    are_text,
    bytes_in,
    counts_of,
    data_of,
    flat_of,
    items_of,
    offsets,
    prefixes,
    present_in,
    sizes_of,
    sliding_windows,
    storage_of,
    take,
)
from recordspec.wire.columns import Kind
from recordspec.wire.file_types import first_bytes, identify
from recordspec.wire.hashes import Words, splitmix64
from recordspec.wire.record_batch import RecordBatch

TEXT, EMPTY, ZEROS, OTHER = "text", "empty", "zero bytes", "other bytes"

# The format of a string is detected from its first bytes; whether it is UTF-8, from all of them.
_PREFIX = 256
# The kind of a byte in text: 0 is plain ASCII, 1 may be part of another letter, 2 is a control character.
_LEVELS = np.zeros(256, np.uint8)
_LEVELS[128:] = 1
_LEVELS[:32] = _LEVELS[127] = 2
_LEVELS[[9, 10, 13]] = 0  # tab, line feed, carriage return
# The number of first bytes of a value that are kept; one more shows whether the value is longer.
SHOWN = 64
_MEDIA_SAMPLE = 1 << 10  # reading a header takes 50 us
_FIRST_BYTES = np.frombuffer(b"".join(first_bytes()), ">u2")


class ContentTypes:
    """Counts the formats of strings.

    Attributes:
        counts: the number of strings by format.
        media: the `MediaInfo` of a sample of the images and sounds; None if the header cannot be read, or
            not without a missing package.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.media = BottomK(_MEDIA_SAMPLE, object)

    def add(self, strings: ArrowArray, places: Words) -> None:
        """Adds strings, with the hashes of their positions."""
        first, sizes = prefixes(strings, _PREFIX), sizes_of(strings)
        some = sizes > 0
        text = _are_text(first, sizes) & some
        text[_with_other_bytes(strings, np.flatnonzero(text & (sizes > _PREFIX)))] = False
        others = np.flatnonzero(some & ~text)
        known = others[_may_be_known(first, others)] if len(others) else others
        counts = {TEXT: int(text.sum()), EMPTY: int((~some).sum()), OTHER: len(others) - len(known)}
        self.counts.update({form: count for form, count in counts.items() if count})
        for index, head in zip(known.tolist(), bytes_in(take(first, known)), strict=True):
            form = _form(head)
            self.counts[form] += 1
            if form in MEDIA and (self.media.limit is None or places[index] < self.media.limit):
                (data,) = bytes_in(strings.slice(index, 1))
                self.media.add(places[index : index + 1], np.array([media_info(data, form)], object))

    def merge(self, other: ContentTypes) -> None:
        self.counts.update(other.counts)
        self.media.merge(other.media)


def _are_text(first: ArrowArray, sizes: Ints) -> Mask:
    """Which are UTF-8 without control characters, judging by their first bytes."""
    data, starts = data_of(first)
    levels = _LEVELS[data]
    text = np.ones(len(first), bool)
    if not levels.any():
        return text
    some = np.flatnonzero(sizes)
    highest = np.maximum.reduceat(levels, starts[some])
    text[some] = highest < 2
    letters = some[highest == 1]
    for index, head in zip(letters.tolist(), bytes_in(take(first, letters)), strict=True):
        text[index] = _decodes(head, whole=bool(sizes[index] <= _PREFIX))
    return text


def _with_other_bytes(strings: ArrowArray, which: Ints) -> Ints:
    """Which strings that begin as text are not UTF-8 later."""
    if not len(which) or are_text(take(strings, which)):
        return which[:0]
    return np.array([index for index in which.tolist() if not are_text(strings.slice(index, 1))])


def _decodes(data: bytes, *, whole: bool) -> bool:
    """Whether it is UTF-8, of which the last letter may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _may_be_known(first: ArrowArray, which: Ints) -> Mask:
    """Which strings may have a known format."""
    data, starts = data_of(first)
    may = np.diff(starts)[which] >= 2
    begin = sliding_windows(data, 2)[starts[which[may]]].view(">u2")
    may[may] = np.isin(begin, _FIRST_BYTES)
    return may


def _form(head: bytes) -> str:
    """The name of a format, without an article."""
    if not head.strip(b"\0"):
        return ZEROS
    name = identify(head)
    if name is None or name.startswith("text"):
        return OTHER
    return name.removeprefix("a ").removeprefix("an ")


# Indices of classes from here on are not counted one by one.
MOST_INDICES = 1 << 17


class NumberTally:
    """Int64 or float32 values.

    Attributes:
        moments: the moments of all values.
        sample: a sample of the finite values.
        frequent: the frequent integers; None for floats.
        indices: the counts of the integers from 0, int64 `[at most MOST_INDICES]`.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.moments = Moments()
        self.sample = BottomK(SAMPLE_SIZE, dtype)
        self.frequent = FrequentValues() if np.dtype(dtype).kind == "i" else None
        self.indices: Ints = np.zeros(0, np.int64)

    def add(self, values: npt.NDArray[Any], places: Words) -> Words | None:
        """Adds values, with the hashes of their positions. Returns their hashes if values are counted."""
        finite = self.moments.add(values)
        if finite is None:
            self.sample.add(places, values)
        else:
            self.sample.add(places[finite], values[finite])
        if self.frequent is None:
            return None
        codes = values.view(np.uint64)
        self.frequent.add(codes)
        self._add_indices(np.bincount(values[codes < MOST_INDICES]))
        return codes

    def _add_indices(self, counts: Ints) -> None:
        more, less = sorted((self.indices, counts), key=len, reverse=True)
        self.indices = more.copy()
        self.indices[: len(less)] += less

    def merge(self, other: NumberTally) -> None:
        self.moments.merge(other.moments)
        self.sample.merge(other.sample)
        if self.frequent is not None and other.frequent is not None:
            self.frequent.merge(other.frequent)
            self._add_indices(other.indices)

    @property
    def count(self) -> int:
        return self.moments.count

    @property
    def top(self) -> list[tuple[int, int]]:
        """The values that are counted, with their counts; the most frequent first."""
        if self.frequent is None:
            return []
        values = self.frequent.codes.view(np.int64).tolist()
        return sorted(
            zip(values, self.frequent.counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0])
        )


class BytesTally:
    """Bytes values.

    Attributes:
        sizes: in bytes.
        forms: their formats.
    """

    def __init__(self) -> None:
        self.sizes = SizeCounts()
        self.forms = ContentTypes()
        self.frequent = FrequentValues()
        self._names: dict[int, bytes] = {}

    def add(self, values: ArrowArray, places: Words) -> Words:
        """Adds values, with the hashes of their positions. Returns their hashes."""
        self.sizes.add(sizes_of(values))
        self.forms.add(values, places)
        codes = hashes.of_strings(values)
        new = self.frequent.add(codes)
        if len(new):
            order = np.argsort(codes)
            some = take(prefixes(values, SHOWN + 1), order[np.searchsorted(codes, new, sorter=order)])
            self._name(dict(zip(new.tolist(), bytes_in(some), strict=True)))
        return codes

    def merge(self, other: BytesTally) -> None:
        self.sizes.merge(other.sizes)
        self.forms.merge(other.forms)
        self.frequent.merge(other.frequent)
        self._name(other._names)

    def _name(self, names: Mapping[int, bytes]) -> None:
        """Keeps the beginnings of values, of which those that are counted no more are forgotten in time."""
        self._names.update(names)
        if len(self._names) > 2 * MOST_VALUES:
            self._names = {code: self._names[code] for code in self.frequent.codes.tolist()}

    @property
    def count(self) -> int:
        return self.sizes.count

    @property
    def named(self) -> list[tuple[bytes, int, int]]:
        """The counted values, or their first bytes, with their hashes and counts."""
        codes, counts = self.frequent.codes.tolist(), self.frequent.counts.tolist()
        return [(self._names[code], code, count) for code, count in zip(codes, counts, strict=True)]

    @property
    def top(self) -> list[tuple[bytes, int]]:
        """The values that are counted, or their beginnings, with their counts; the most frequent first."""
        return sorted(((name, count) for name, _, count in self.named), key=lambda pair: (-pair[1], pair[0]))


ValueTally = NumberTally | BytesTally


def of_kind(kind: Kind) -> ValueTally:
    """Creates the tally of values of a kind."""
    return BytesTally() if kind == "bytes" else NumberTally(kind)


# The largest number of features whose values are counted: each may use 0.6 MB.
MOST_FEATURES = 1000
# Up to this many records, duplicates are counted; beyond, they are estimated. 4 MB.
MOST_HASHES = 1 << 18
MOST_PROBLEMS = 10
# Small files are counted in groups, and their rows together: 0.6 ms a file where each alone takes 4.
_GROUP_BYTES = 1 << 22

# Values of a record are as far apart as multiples of the golden ratio, which never meet (Weyl).
_NEXT = np.uint64(0x9E3779B97F4A7C15)


class FeatureTally:
    """The counts of a feature.

    Attributes:
        present: the number of records that have the key.
        kinds: the number of lists by kind (of a feature list: steps).
        empty: the number of lists without a value.
        lengths: the number of values of each list.
        steps: the number of steps of each feature list.
        of: the counts of values, by kind.
        neighbours: whether consecutive records have the same value.
    """

    def __init__(self) -> None:
        self.present = self.empty = 0
        self.kinds: Counter[Kind] = Counter()
        self.lengths, self.steps = SizeCounts(), SizeCounts()
        self.of: dict[Kind, ValueTally] = {}
        self.neighbours = AdjacentValues()

    def add(self, arrays: tuple[ArrowArray, ...], places: Words) -> None:
        """Adds the values of records under the key, with the hashes of their positions."""
        codes: list[tuple[Ints, Words]] = []
        for array in arrays:
            self.present += len(array) - array.null_count
            counted = self._count(array, places)
            if counted is not None:
                lengths = counts_of(array)
                self.neighbours.single &= bool((lengths <= 1).all())
                codes.append((np.flatnonzero(lengths), counted))
        if codes and self.neighbours.single:
            self.neighbours.add(_in_order(codes))

    def add_steps(self, arrays: tuple[ArrowArray, ...], places: Words) -> None:
        """Adds the values of records in the feature list."""
        counts, present = counts_of(arrays[0]), present_in(arrays[0])
        self.present += int(present.sum())
        self.steps.add(counts[present])
        self.neighbours.single = False
        of_steps = splitmix64(_spread(places, counts))
        for array in arrays:
            self._count(items_of(array), of_steps)

    def merge(self, other: FeatureTally) -> None:
        """The same of records that follow."""
        self.present += other.present
        self.empty += other.empty
        self.kinds.update(other.kinds)
        self.lengths.merge(other.lengths)
        self.steps.merge(other.steps)
        self.neighbours.merge(other.neighbours)
        for kind, values in other.of.items():
            mine: Any = self.of.setdefault(kind, of_kind(kind))
            mine.merge(values)

    def _count(self, array: ArrowArray, places: Words) -> Words | None:
        """Counts lists of a kind. Returns the hashes of their values, if values are counted."""
        kind, count = storage_of(array), len(array) - array.null_count
        if count:
            self.kinds[kind] += count
        if kind == "none" or not count:
            return None
        present = present_in(array)
        lengths = counts_of(array)[present]
        self.lengths.add(lengths)
        self.empty += count - int(np.count_nonzero(lengths))
        values: Any = self.of.setdefault(kind, of_kind(kind))
        hashed: Words | None = values.add(flat_of(array), _spread(places[present], lengths))
        return hashed


def _spread(places: Words, lengths: Ints) -> Words:
    """Hashes of the positions of items, from those of the lists that contain them."""
    if len(lengths) and (lengths == lengths[0]).all():
        of_all: Words = np.add.outer(places, np.arange(lengths[0], dtype=np.uint64) * _NEXT)
        return of_all.reshape(-1)
    starts = np.repeat(offsets(lengths)[:-1], lengths)
    index = (np.arange(len(starts)) - starts).astype(np.uint64)
    spread: Words = np.repeat(places, lengths) + index * _NEXT
    return spread


def _in_order(codes: list[tuple[Ints, Words]]) -> Words:
    """The hashes of values, in the order of their records."""
    if len(codes) == 1:
        return codes[0][1]
    rows = np.concatenate([rows for rows, _ in codes])
    return np.concatenate([some for _, some in codes])[np.argsort(rows, kind="stable")]


class SplitTally:
    """The counts of the records of a split, or of a part of it.

    Attributes:
        rows: the number of counted rows. A block has many.
        sizes: the sizes of records, in bytes.
        hashes: the hashes of rows.
        broken: the number of records that are corrupt, or of another type.
        problems: the first problems of these.
        unknown_fields: the number of rows with fields that no Example has, which may be other messages.
        conflicts: the number of rows that TensorFlow rejects, or reads differently.
        repeated: duplicate keys, with the number of records that have them.
        features: the features by key: the first MOST_FEATURES by name, also of each part.
        truncated: whether there were more.
    """

    def __init__(self) -> None:
        self.rows = self.broken = self.unknown_fields = self.conflicts = 0
        self.sizes = SizeCounts()
        self.hashes = KMinimumValues(MOST_HASHES)
        self.problems: list[Problem] = []
        self.repeated: Counter[str] = Counter()
        self.features: dict[FeatureKey, FeatureTally] = {}
        self.truncated = False

    def add(self, *batches: RowBatch) -> None:
        """Adds rows. It takes no longer for several small batches than for one."""
        for batch in batches:
            self.sizes.add(batch.sizes)
        firsts = offsets(np.array([len(batch) for batch in batches]))
        rows = batches[0].rows if len(batches) == 1 else RecordSpans.joined([one.spans for one in batches])
        columns = decoded(rows)
        whole = np.ones(columns.rows, bool)
        whole[list(columns.broken)] = False
        for row, problem in sorted(columns.broken.items()):
            known = replace(problem, expected="an Example or a SequenceExample")
            place = int(np.searchsorted(firsts, row, "right")) - 1
            self._add_broken(known.at(batches[place].place(row - int(firsts[place]))))
        self.hashes.count(np.concatenate([batch.hashes for batch in batches])[whole])
        self.rows += int(whole.sum())
        self.unknown_fields += len(columns.unknown_fields)
        self.conflicts += len(columns.conflicts)
        self._add_features(columns, np.concatenate([batch.place_hashes for batch in batches]))

    def _add_features(self, decoded: RecordBatch, places: Words) -> None:
        for _, key in decoded.repeated:
            self._count_repeated(key, 1)
        self._make_room(keys_of(decoded))
        for key in decoded.features:
            if (tally := self.features.get((False, key))) is not None:
                tally.add(decoded.features[key], places)
        for key in decoded.sequence:
            if (tally := self.features.get((True, key))) is not None:
                tally.add_steps(decoded.sequence[key], places)

    def add_unreadable(self, record: UnreadableRecord) -> None:
        if record.size is not None:
            self.sizes.add(np.array([record.size]))
        self._add_broken(record.problems[0])

    def _add_broken(self, problem: Problem) -> None:
        self.broken += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def merge(self, other: SplitTally) -> None:
        """The same of records that follow."""
        self.rows += other.rows
        self.broken += other.broken
        self.unknown_fields += other.unknown_fields
        self.conflicts += other.conflicts
        self.sizes.merge(other.sizes)
        self.hashes.merge(other.hashes)
        self.problems += other.problems[: MOST_PROBLEMS - len(self.problems)]
        for key, count in other.repeated.items():
            self._count_repeated(key, count)
        self.truncated |= other.truncated
        self._make_room(other.features)
        for place, tally in other.features.items():
            if place in self.features:
                self.features[place].merge(tally)

    def _make_room(self, keys: Iterable[FeatureKey]) -> None:
        """For the keys that are counted."""
        known = {*self.features, *keys}
        if len(known) > len(self.features):
            self.truncated |= len(known) > MOST_FEATURES
            kept = sorted(known)[:MOST_FEATURES]
            self.features = {key: self.features.get(key) or FeatureTally() for key in kept}

    def _count_repeated(self, key: str, count: int) -> None:
        if key in self.repeated or len(self.repeated) < MOST_FEATURES:
            self.repeated[key] += count


def together(tallies: Iterable[SplitTally]) -> SplitTally:
    """The tally of the records of all splits."""
    whole = SplitTally()
    for tally in tallies:
        whole.merge(tally)
    return whole


def count(
    scanner: Scanner, jobs: int | None = None, progress: Progress | None = None
) -> dict[str, SplitTally]:
    """The tally of each split, the same for any number of `jobs`; None for one per processor."""
    tallies: dict[str, SplitTally] = {}
    tasks = [(parts,) for parts in _groups(scanner.ranges)]
    results = run(_count_ranges, tasks, scanner.paths, jobs, "counting")
    for ((part, *_),), tally in zip(tasks, results, strict=True):
        if progress is not None:
            progress.advance(tally.rows, tally.sizes.total)
        if part.split in tallies:
            tallies[part.split].merge(tally)
        else:
            tallies[part.split] = tally
    return tallies


def _groups(parts: Iterable[FileRange]) -> Iterator[tuple[FileRange, ...]]:
    """Groups small files of a split that follow each other."""
    group: list[FileRange] = []
    size = 0
    for part in parts:
        size += part.bytes
        if group and (size > _GROUP_BYTES or part.split != group[0].split):
            yield tuple(group)
            group, size = [], part.bytes
        group.append(part)
    if group:
        yield tuple(group)


def _count_ranges(parts: tuple[FileRange, ...], _attempt: str) -> SplitTally:
    tally = SplitTally()
    for item in small_together(chain.from_iterable(map(scan, parts))):
        if isinstance(item, UnreadableRecord):
            tally.add_unreadable(item)
        else:
            tally.add(*item)
    return tally
