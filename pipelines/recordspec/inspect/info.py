"""What files hold: how many records, of which kind, and with which features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from recordspec.inspect.count import Counted
from recordspec.inspect.count import count as count_records
from recordspec.inspect.looking.choice import keys_of
from recordspec.inspect.looking.naming import Key
from recordspec.inspect.looking.source import FIRST, Source
from recordspec.store.manifest import Manifest
from recordspec.store.shards import Files
from recordspec.wire.decoded import Decoded, of_rows
from recordspec.wire.held import Held
from recordspec.wire.proto import Kind
from recordspec.wire.strings import Ints

RecordKind = Literal["Example", "SequenceExample", "neither"]

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
    """

    key: str
    sequence: bool
    records: int = 0
    steps: Lengths = field(default_factory=Lengths)
    kinds: dict[Kind, Lengths] = field(default_factory=dict)

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
        kinds: how many of them are Examples, SequenceExamples, and neither.
        blocks: whether a record of any file is a block of rows.
        features: by key.
        more_keys: whether there are others, which are not told.
        manifest: what lies beside the files, if anything does.
    """

    files: tuple[Counted, ...]
    looked_at: int
    kinds: dict[RecordKind, int]
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
    source = Source(files, taken_apart=False)
    found = _Found()
    for part in source.starts(most):
        found.add(part.decode())
    return Info(
        files=tuple(count_records(source.paths)),
        looked_at=found.records,
        kinds=found.kinds,
        blocks=any(map(source.are_blocks, source.paths)),
        features=tuple(found.features[key] for key in sorted(found.features)),
        more_keys=found.more_keys,
        manifest=source.manifest,
    )


class _Found:
    def __init__(self) -> None:
        self.records = 0
        self.kinds: dict[RecordKind, int] = {"Example": 0, "SequenceExample": 0, "neither": 0}
        self.features: dict[Key, FeatureInfo] = {}
        self.more_keys = False

    def add(self, decoded: Decoded) -> None:
        neither = {*decoded.broken, *decoded.foreign}
        if decoded.foreign:
            known = np.ones(decoded.rows, bool)
            known[decoded.foreign] = False
            decoded = of_rows(decoded, known)
        in_lists = np.zeros(decoded.rows, bool)
        for many in decoded.sequence.values():
            for steps in many:
                in_lists[steps.rows] = True
        for key in keys_of(decoded):
            self._add(key, decoded)
        self.records += decoded.rows
        self.kinds["neither"] += len(neither)
        self.kinds["SequenceExample"] += int(in_lists.sum())
        self.kinds["Example"] += decoded.rows - int(in_lists.sum()) - len(neither)

    def _add(self, key: Key, decoded: Decoded) -> None:
        if key not in self.features and len(self.features) == _MOST_KEYS:
            self.more_keys = True
            return
        feature = self.features.setdefault(key, FeatureInfo(key[1], key[0]))
        if not feature.sequence:
            feature.records += _add(feature, decoded.features[feature.key])
            return
        for steps in decoded.sequence[feature.key]:
            feature.records += len(steps.rows)
            feature.steps.add(steps.counts, len(steps.rows))
            _add(feature, steps.held)


def _add(feature: FeatureInfo, many: tuple[Held, ...]) -> int:
    """Counts lists. Gives how many there are."""
    for held in many:
        feature.kinds.setdefault(held.kind, Lengths()).add(held.cells.lengths, len(held.rows))
    return sum(len(held.rows) for held in many)
