"""What is counted of records: of each feature, and of records as a whole. Counts of parts can be merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from recordspec.errors import Problem
from recordspec.inspect.stats.neighbours import Neighbours
from recordspec.inspect.stats.rows import Part, Rows, read
from recordspec.inspect.stats.sizes import Sizes
from recordspec.inspect.stats.smallest import Smallest
from recordspec.inspect.stats.values import Values, of_kind
from recordspec.wire.columns import KeySteps, KeyValues, Kind
from recordspec.wire.hashes import Words, splitmix64
from recordspec.wire.record_batch import RecordBatch, decode
from recordspec.wire.strings import Ints, offsets

# Of so many features at most, values are counted: each may take 0.6 MB.
MOST_FEATURES = 1000
# Up to so many records, copies are counted; of more, they are estimated. 4 MB.
MOST_HASHES = 1 << 18
MOST_PROBLEMS = 10

# Of a key: whether it is that of a feature list, and itself.
Key = tuple[bool, str]

# Values of a record are as far apart as multiples of the golden ratio, which never meet (Weyl).
_NEXT = np.uint64(0x9E3779B97F4A7C15)


class FeatureTally:
    """What is counted of a feature.

    Attributes:
        present: records that have the key.
        kinds: by kind of list, how many lists (of a feature list: steps).
        empty: lists without a value.
        lengths: values of each list.
        steps: of each feature list.
        of: by kind, what is counted of values.
        neighbours: whether records that follow each other have the same value.
    """

    def __init__(self) -> None:
        self.present = self.empty = 0
        self.kinds: Counter[Kind] = Counter()
        self.lengths, self.steps = Sizes(), Sizes()
        self.of: dict[Kind, Values] = {}
        self.neighbours = Neighbours()

    def add(self, many: Iterable[KeyValues], places: Words) -> None:
        """What records have under the key, and the hashes of where these stand."""
        codes: list[tuple[Ints, Words]] = []
        for held in many:
            self.present += len(held.rows)
            found = self._count(held, places[held.rows])
            if found is not None:
                lengths = np.broadcast_to(np.asarray(held.cells.lengths), (len(held.rows),))
                self.neighbours.single &= bool((lengths <= 1).all())
                codes.append((held.rows[lengths == 1], found))
        if codes and self.neighbours.single:
            self.neighbours.add(_in_order(codes))

    def add_steps(self, steps: KeySteps, places: Words) -> None:
        """What records have in the feature list."""
        self.present += len(steps.rows)
        self.steps.add(steps.counts, len(steps.rows))
        self.neighbours.single = False
        of_steps = splitmix64(_spread(places[steps.rows], steps.counts))
        for held in steps.values:
            self._count(held, of_steps[held.rows])

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

    def _count(self, held: KeyValues, places: Words) -> Words | None:
        """Counts lists of a kind. Gives what tells their values apart, where they are told apart."""
        count, lengths = len(held.rows), held.cells.lengths
        self.kinds[held.kind] += count
        if held.kind == "none":
            return None
        self.lengths.add(lengths, count)
        self.empty += count - int(np.count_nonzero(np.broadcast_to(np.asarray(lengths), (count,))))
        values: Any = self.of.setdefault(held.kind, of_kind(held.kind))
        found: Words | None = values.add(held.cells.flat, _spread(places, lengths))
        return found


def _spread(places: Words, lengths: int | Ints) -> Words:
    """Places of so many things each, from the places of what they are in."""
    if isinstance(lengths, int):
        if lengths == 1:
            return places
        of_all: Words = np.add.outer(places, np.arange(lengths, dtype=np.uint64) * _NEXT)
        return of_all.reshape(-1)
    if (lengths == 1).all():
        return places
    starts = np.repeat(offsets(lengths)[:-1], lengths)
    index = (np.arange(len(starts)) - starts).astype(np.uint64)
    spread: Words = np.repeat(places, lengths) + index * _NEXT
    return spread


def _in_order(codes: list[tuple[Ints, Words]]) -> Words:
    """What tells values apart, in the order of their records."""
    if len(codes) == 1:
        return codes[0][1]
    rows = np.concatenate([rows for rows, _ in codes])
    return np.concatenate([some for _, some in codes])[np.argsort(rows, kind="stable")]


class Tally:
    """What is counted of the records of a split, or of a part of it.

    Args:
        only: the keys whose values are counted; None for the first MOST_FEATURES.

    Attributes:
        rows: that were counted. A block has many.
        sizes: of records, in bytes.
        hashes: of rows.
        broken: records that are none, or are damaged.
        problems: the first of these.
        foreign: rows with fields that no Example has, which may be other messages.
        conflicts: rows that TensorFlow refuses, or reads otherwise than they are counted.
        repeated: keys that a record has twice, and how many have.
        features: by key, in the order in which they appear.
        crowded: whether there were more.
    """

    def __init__(self, only: Collection[Key] | None = None) -> None:
        self.rows = self.broken = self.foreign = self.conflicts = 0
        self.sizes = Sizes()
        self.hashes = Smallest(MOST_HASHES)
        self.problems: list[Problem] = []
        self.repeated: Counter[str] = Counter()
        self.features: dict[Key, FeatureTally] = {}
        self.crowded = False
        self._only = only

    def add(self, rows: Rows) -> None:
        """Rows of a chunk."""
        chunk = rows.chunk
        self.sizes.add(chunk.stops - chunk.starts, len(chunk.starts))
        decoded = decode(rows.buffer, rows.starts, rows.stops, sequence=None)
        whole = np.ones(decoded.rows, bool)
        whole[list(decoded.broken)] = False
        for row, problem in sorted(decoded.broken.items()):
            known = replace(problem, expected="an Example or a SequenceExample")
            self.add_broken(known.at(rows.place(row)))
        self.hashes.add(rows.hashes[whole])
        self.rows += int(whole.sum())
        self.foreign += len(decoded.unknown_fields)
        self.conflicts += len(decoded.conflicts)
        self._add_features(decoded, rows.places)

    def _add_features(self, decoded: RecordBatch, places: Words) -> None:
        for _, key in decoded.repeated:
            self._count_repeated(key, 1)
        self._make_room(_firsts(decoded))
        for key, many in decoded.features.items():
            if (tally := self.features.get((False, key))) is not None:
                tally.add(many, places)
        for key, lists in decoded.sequence.items():
            if (tally := self.features.get((True, key))) is not None:
                for steps in lists:
                    tally.add_steps(steps, places)

    def add_broken(self, problem: Problem) -> None:
        self.broken += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def merge(self, other: Tally) -> None:
        """The same of records that follow."""
        self.rows += other.rows
        self.broken += other.broken
        self.foreign += other.foreign
        self.conflicts += other.conflicts
        self.sizes.merge(other.sizes)
        self.hashes.merge(other.hashes)
        self.problems += other.problems[: MOST_PROBLEMS - len(self.problems)]
        for key, count in other.repeated.items():
            self._count_repeated(key, count)
        self.crowded |= other.crowded
        self._make_room(other.features)
        for place, tally in other.features.items():
            if place in self.features:
                self.features[place].merge(tally)

    def _make_room(self, keys: Iterable[Key]) -> None:
        """For the keys that are counted."""
        for key in keys:
            if key in self.features or (self._only is not None and key not in self._only):
                continue
            if len(self.features) < MOST_FEATURES:
                self.features[key] = FeatureTally()
            else:
                self.crowded = True

    def _count_repeated(self, key: str, count: int) -> None:
        if key in self.repeated or len(self.repeated) < MOST_FEATURES:
            self.repeated[key] += count


def _firsts(decoded: RecordBatch) -> list[Key]:
    """The keys of records in the order in which they appear; those of one record by name."""
    firsts: dict[Key, int] = {}
    for sequence, by_key in ((False, decoded.features), (True, decoded.sequence)):
        for key, many in by_key.items():
            rows = [int(held.rows[0]) for held in many if len(held.rows)]
            if rows:
                firsts[sequence, key] = min(rows)
    return sorted(firsts, key=lambda key: (firsts[key], key))


def count_part(part: Part, only: Collection[Key] | None, _attempt: str = "") -> Tally:
    """Counts the rows of a part. Raises StoreError where the file cannot be read."""
    tally = Tally(only)
    for found in read(part):
        if isinstance(found, Problem):
            tally.add_broken(found)
        else:
            tally.add(found)
    return tally
