"""What files hold: how many records, of which kind, and with which features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from recordspec.inspect.count import FileCount
from recordspec.inspect.count import count as count_records
from recordspec.inspect.feature_names import FeatureKey
from recordspec.inspect.query import keys_of
from recordspec.inspect.scan import FIRST, RowBatch, Scanner
from recordspec.store.manifest import Manifest
from recordspec.store.shards import Files
from recordspec.wire.columns import KeyValues, Kind
from recordspec.wire.proto import ListWithContext, list_with_context
from recordspec.wire.record_batch import RecordBatch, decode, only_rows
from recordspec.wire.strings import Ints, Strings

RecordKind = Literal["Example", "SequenceExample", "ExampleListWithContext", "neither"]
# The part of an ExampleListWithContext that has a feature; empty of features of other records.
Within = Literal["", "context", "examples"]

# Records may each have a key of their own.
_MOST_KEYS = 10_000


@dataclass
class Lengths:
    """Of lists: how many there are, and the lengths of the shortest and the longest."""

    lists: int = 0
    least: int | None = None
    most: int | None = None

    def add(self, lengths: Ints | int, lists: int) -> None:
        if lists:
            low, high = int(np.min(lengths)), int(np.max(lengths))
            self.lists += lists
            self.least = low if self.least is None else min(low, self.least)
            self.most = high if self.most is None else max(high, self.most)


@dataclass
class FeatureInfo:
    """What the records that were looked at have under a key.

    Attributes:
        key: as it is stored.
        sequence: whether it is that of a feature list.
        records: how many have it.
        steps: how many steps they have of a feature list.
        kinds: of lists, by kind; a Feature without one is of the kind `none`. Of a feature list, each
            step has one.
        within: the part of an ExampleListWithContext that has it. Of `examples`, these are counted, not the
            records.
    """

    key: str
    sequence: bool
    records: int = 0
    steps: Lengths = field(default_factory=Lengths)
    kinds: dict[Kind, Lengths] = field(default_factory=dict)
    within: Within = ""

    @property
    def lengths(self) -> Lengths:
        """Of all lists; a Feature without a kind has none."""
        whole = Lengths()
        for kind, lengths in self.kinds.items():
            if kind != "none" and lengths.least is not None and lengths.most is not None:
                whole.add(np.array([lengths.least, lengths.most]), lengths.lists)
        return whole


@dataclass(frozen=True, kw_only=True)
class Info:
    """What files hold.

    Attributes:
        files: each, with its records, bytes and compression.
        looked_at: of how many records the rest is told.
        kinds: how many of them are Examples, SequenceExamples, and neither; and ExampleListWithContexts, if
            any are.
        examples: how many Examples these have.
        conflicts: the number of records that TensorFlow refuses, or of which it reads other values.
        blocks: whether a record of any file is a block of rows.
        features: by key.
        more_keys: whether there are others, which are not told.
        manifest: what lies beside the files, if anything does.
    """

    files: tuple[FileCount, ...]
    looked_at: int
    kinds: dict[RecordKind, int]
    examples: Lengths
    conflicts: int
    blocks: bool
    features: tuple[FeatureInfo, ...]
    more_keys: bool
    manifest: Manifest | None

    @property
    def records(self) -> int:
        return sum(one.records for one in self.files)


def info(files: Files, most: int | None = FIRST) -> Info:
    """What files hold, as the first `most` records of each file tell; None looks at all of them.

    Raises RecordError where a file is not whole, StoreError where there is none.
    """
    scanner = Scanner(files, unpack=False)
    found = _Counts()
    for batch in scanner.first(most):
        found.add(batch)
    return Info(
        files=tuple(count_records(scanner.paths)),
        looked_at=found.records,
        kinds=found.kinds,
        examples=found.examples,
        conflicts=found.conflicts,
        blocks=any(map(scanner.has_blocks, scanner.paths)),
        features=tuple(found.features[key] for key in sorted(found.features)),
        more_keys=found.more_keys,
        manifest=scanner.manifest,
    )


class _Counts:
    def __init__(self) -> None:
        self.records = 0
        self.kinds: dict[RecordKind, int] = {"Example": 0, "SequenceExample": 0, "neither": 0}
        self.examples = Lengths()
        self.conflicts = 0
        self.features: dict[tuple[Within, FeatureKey], FeatureInfo] = {}
        self.more_keys = False

    def add(self, batch: RowBatch) -> None:
        decoded = batch.decode()
        lists = [one for row in decoded.broken if (one := list_with_context(batch.data(row))) is not None]
        if lists:
            self._add_lists(lists)
        self.conflicts += len(decoded.conflicts)
        neither = {*decoded.broken, *decoded.unknown_fields}
        if decoded.unknown_fields:
            known = np.ones(decoded.rows, bool)
            known[decoded.unknown_fields] = False
            decoded = only_rows(decoded, known)
        in_lists = np.zeros(decoded.rows, bool)
        for many in decoded.sequence.values():
            for steps in many:
                in_lists[steps.rows] = True
        self._add_features(decoded)
        self.records += decoded.rows
        self.kinds["neither"] += len(neither) - len(lists)
        self.kinds["SequenceExample"] += int(in_lists.sum())
        self.kinds["Example"] += decoded.rows - int(in_lists.sum()) - len(neither)

    def _add_lists(self, lists: list[ListWithContext]) -> None:
        name: RecordKind = "ExampleListWithContext"
        self.kinds[name] = self.kinds.get(name, 0) + len(lists)
        self.examples.add(np.array([len(one.examples) for one in lists]), len(lists))
        self._add_features(_decoded(one.context for one in lists if one.context is not None), "context")
        self._add_features(_decoded(example for one in lists for example in one.examples), "examples")

    def _add_features(self, decoded: RecordBatch, within: Within = "") -> None:
        for key in keys_of(decoded):
            self._add(key, decoded, within)

    def _add(self, key: FeatureKey, decoded: RecordBatch, within: Within) -> None:
        if (within, key) not in self.features and len(self.features) == _MOST_KEYS:
            self.more_keys = True
            return
        feature = self.features.setdefault((within, key), FeatureInfo(key[1], key[0], within=within))
        if not feature.sequence:
            feature.records += _add(feature, decoded.features[feature.key])
            return
        for steps in decoded.sequence[feature.key]:
            feature.records += len(steps.rows)
            feature.steps.add(steps.counts, len(steps.rows))
            _add(feature, steps.values)


def _decoded(examples: Iterable[bytes]) -> RecordBatch:
    held = Strings.of(list(examples))
    return decode(held.buffer, held.offsets[:-1], held.offsets[1:])


def _add(feature: FeatureInfo, many: tuple[KeyValues, ...]) -> int:
    """Counts lists. Gives how many there are."""
    for held in many:
        feature.kinds.setdefault(held.kind, Lengths()).add(held.cells.lengths, len(held.rows))
    return sum(len(held.rows) for held in many)
