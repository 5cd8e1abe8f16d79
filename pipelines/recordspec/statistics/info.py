"""Summarizes files: the number and type of records, and their features."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from recordspec.statistics.count import FileCount, count_dataset
from recordspec.statistics.sizes import SizeCounts
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files
from recordspec.store.manifest import Manifest
from recordspec.store.scan import FIRST, RecordSpans, Scanner, small_together
from recordspec.tables.column_types import keys_of
from recordspec.tables.feature_names import FeatureKey
from recordspec.wire.arrays import ArrowArray, counts_of, items_of, present_in, storage_of
from recordspec.wire.columns import Kind
from recordspec.wire.proto import list_with_context
from recordspec.wire.record_batch import RecordBatch

RecordKind = Literal["Example", "SequenceExample", "ExampleListWithContext", "neither"]

# Records may each have a key of their own.
_MOST_KEYS = 10_000


@dataclass
class FeatureInfo:
    """The lists under a key in the records that were read.

    Attributes:
        key: the key as it is stored.
        sequence: whether the key names a feature list.
        records: the number of records that have the key.
        steps: the numbers of steps of feature lists.
        kinds: the number of lists of each kind; a Feature without a list has the kind `none`. In a feature
            list, each step is a list.
        lengths: the lengths of all lists; a Feature of the kind `none` is not counted.
    """

    key: str
    sequence: bool
    records: int = 0
    steps: SizeCounts = field(default_factory=SizeCounts)
    kinds: Counter[Kind] = field(default_factory=Counter)
    lengths: SizeCounts = field(default_factory=SizeCounts)

    def add(self, arrays: tuple[ArrowArray, ...]) -> None:
        """Adds the lists of records, an array for each kind."""
        if self.sequence:
            steps = counts_of(arrays[0].drop_null())
            self.records += len(steps)
            self.steps.add(steps)
            arrays = tuple(map(items_of, arrays))
        for array in arrays:
            lengths, kind = counts_of(array.drop_null()), storage_of(array)
            self.records += 0 if self.sequence else len(lengths)
            if len(lengths):
                self.kinds[kind] += len(lengths)
            if kind != "none":
                self.lengths.add(lengths)


@dataclass(kw_only=True)
class Info:
    """The contents of files.

    Attributes:
        blocks: whether the records of any file are blocks of rows.
        manifest: the manifest beside the files; None if there is none.
        files: the records, bytes and compression of each file.
        looked_at: the number of records read; the following attributes describe these records.
        kinds: the number of Examples, of SequenceExamples, and of records that are neither; with
            ExampleListWithContexts only if there are any.
        conflicts: the number of records that TensorFlow rejects, or reads differently.
        by_key: the features, by key.
        more_keys: whether there are more keys than `by_key` holds.
    """

    blocks: bool
    manifest: Manifest | None
    files: tuple[FileCount, ...] = ()
    looked_at: int = 0
    kinds: dict[RecordKind, int] = field(
        default_factory=lambda: {"Example": 0, "SequenceExample": 0, "neither": 0}
    )
    conflicts: int = 0
    by_key: dict[FeatureKey, FeatureInfo] = field(default_factory=dict)
    more_keys: bool = False

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    @property
    def features(self) -> tuple[FeatureInfo, ...]:
        """The features, sorted by key."""
        return tuple(self.by_key[key] for key in sorted(self.by_key))

    def add(self, records: RecordSpans) -> None:
        decoded = records.decode(None)
        lists = [row for row in decoded.broken if list_with_context(records.data(row)) is not None]
        if lists:
            self.kinds["ExampleListWithContext"] = self.kinds.get("ExampleListWithContext", 0) + len(lists)
        self.conflicts += len(decoded.conflicts)
        neither = {*decoded.broken, *decoded.unknown_fields}
        self.looked_at += len(records)
        if neither:
            records = records.take(np.setdiff1d(np.arange(len(records)), list(neither)))
            decoded = records.decode(None)
        in_lists = np.zeros(len(records), bool)
        for steps in decoded.sequence.values():
            in_lists |= present_in(steps[0])
            if in_lists.all():
                break
        self._add_features(decoded)
        self.kinds["neither"] += len(neither) - len(lists)
        self.kinds["SequenceExample"] += int(in_lists.sum())
        self.kinds["Example"] += len(records) - int(in_lists.sum())

    def _add_features(self, decoded: RecordBatch) -> None:
        for key in keys_of(decoded):
            if key in self.by_key or len(self.by_key) < _MOST_KEYS:
                feature = self.by_key.setdefault(key, FeatureInfo(key[1], key[0]))
                feature.add((decoded.sequence if key[0] else decoded.features)[key[1]])
            else:
                self.more_keys = True


def info(files: Files, most: int | None = FIRST) -> Info:
    """Summarizes files by the first `most` records of each file. None reads all records.

    Raises RecordError if a file is incomplete, StoreError if there are no files.
    """
    dataset = StoredDataset.of(files)
    scanner = Scanner(dataset, unpack=False)
    summary = Info(blocks=any(map(dataset.has_blocks, dataset.paths)), manifest=dataset.manifest)
    for batches in small_together(scanner.first(most)):
        summary.add(RecordSpans.joined([batch.spans for batch in batches]))
    summary.files = tuple(count_dataset(dataset))
    return summary
