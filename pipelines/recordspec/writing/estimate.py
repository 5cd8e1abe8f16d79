"""Estimates the output of a build and its needs of disk and memory, from a sample of its rows."""

from __future__ import annotations

import logging
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recordspec.errors import RecordspecError
from recordspec.remote import RemotePath
from recordspec.schema.inferred import Inferred
from recordspec.schema.schema import Schema
from recordspec.store.dataset import StoredDataset
from recordspec.store.manifest import Manifest
from recordspec.wire.arrays import buffer_of
from recordspec.writing.build_plan import allowance, free_space
from recordspec.writing.local import build_locally
from recordspec.writing.reshard import StoredRecords
from recordspec.writing.sharding import shard_count
from recordspec.writing.sources.base import Columns, Source
from recordspec.writing.sources.rows import DictRows
from recordspec.writing.sources.splits import SplitSources
from recordspec.writing.write import named_rows, write_options
from recordspec.writing.write_options import Execution, Quarantine, Write

log = logging.getLogger("recordspec")

# Enough rows to estimate the size of a row; even images take only a second.
_SAMPLED_ROWS = 2000
# The number of parts of a source whose rows are counted; the other parts are assumed to be alike.
_PARTS = 4


@dataclass(frozen=True, kw_only=True)
class BuildEstimate:
    """An estimate of the output of a build, and of its needs.

    Attributes:
        splits: the number of shards, rows and bytes of each split.
        rows: the number of rows of the source, up to `limit`.
        about: whether the number of rows is itself an estimate.
        sampled: the number of rows sampled.
        disk: the bytes of disk needed: rows are stored twice while the shards are written.
        disk_free: the free bytes of the disk.
        memory: the bytes of memory that the build may use.
    """

    splits: dict[str, tuple[int, int, int]]
    rows: int
    about: bool
    sampled: int
    disk: int
    disk_free: int
    memory: int

    @classmethod
    def joined(cls, many: Sequence[BuildEstimate]) -> BuildEstimate:
        """Combines the estimates of the splits of one build."""
        return replace(
            many[0],
            splits={split: shards for part in many for split, shards in part.splits.items()},
            rows=sum(part.rows for part in many),
            about=any(part.about for part in many),
            sampled=sum(part.sampled for part in many),
            disk=sum(part.disk for part in many),
        )


def estimate(
    rows: Any, schema: Schema | Inferred, directory: str | os.PathLike[str] | RemotePath, **options: Any
) -> BuildEstimate:
    """Estimates a build with the arguments of `recordspec.write`, from a sample in a temporary folder.

    Raises the errors of `recordspec.write`, except for a dataset that exists already.
    """
    free = free_space(directory)  # raises before the rows are sampled, which takes time
    run_options = {name: options.pop(name) for name in Execution.__dataclass_fields__ if name in options}
    execution = Execution(**run_options)
    ignore, split = options.pop("ignore", ()), options.pop("split", "train")
    schema, source = named_rows(rows, schema, ignore, split, options)
    if isinstance(source, SplitSources):
        return BuildEstimate.joined(
            [
                estimate(part, schema, directory, split=name, **run_options, **options)
                for name, part in source.sources.items()
            ]
        )
    limit = min(_SAMPLED_ROWS, execution.limit or _SAMPLED_ROWS)
    how_written = write_options(schema, split, options)
    if how_written.quarantine is not None and how_written.quarantine.is_share:
        options["invalid"] = Quarantine(max_invalid=None)  # a share of all rows, not of the sample
    how = Execution(limit=limit, allow_empty=execution.allow_empty, progress=False)
    sample, encoded = _sample(schema, source, write_options(schema, split, options), how)
    sampled = sum(map(sample.rows, sample.splits)) + sample.rejected
    _warn_of_rejected(sample.rejected, sampled, how_written.quarantine)
    total, about = (sampled, False) if sampled < limit else _rows(source, schema, how_written, execution)
    total = min(total, execution.limit or total)
    times = total / max(1, sampled)
    return BuildEstimate(
        splits={split: _shards(sample, split, encoded[split], how_written, times) for split in sample.splits},
        rows=total,
        about=about,
        sampled=sampled,
        disk=round(sum(encoded[split] + sample.bytes(split) for split in sample.splits) * times),
        disk_free=free,
        memory=allowance(execution.memory, execution.jobs),
    )


def _shards(sample: Manifest, split: str, encoded: int, how: Write, times: float) -> tuple[int, int, int]:
    """Scales the number of shards, rows and bytes of a split from the sample to all rows.

    `encoded` is the bytes of the sampled rows before they are compressed or become blocks.
    """
    rows = round(sample.rows(split) * times)
    return shard_count(how, round(encoded * times), rows), rows, round(sample.bytes(split) * times)


def _warn_of_rejected(rejected: int, sampled: int, how: Quarantine | None) -> None:
    """Logs the number of invalid rows of a sample, and whether it exceeds the limit."""
    limit = None if how is None else how.limit(sampled)
    over = "" if limit is None or rejected <= limit else f", more than are allowed ({how})"
    if rejected:
        log.warning("%s of %s sampled rows are invalid%s", f"{rejected:,}", f"{sampled:,}", over)


def _sample(
    schema: Schema, source: Source, options: Write, execution: Execution
) -> tuple[Manifest, Counter[str]]:
    """Writes a dataset of the first rows, and deletes it.

    Returns:
        The manifest of the dataset, and the bytes of the encoded rows of each split, neither compressed nor
        in blocks: the number of shards and the bytes spilled to disk depend on them.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "sample")
        try:
            manifest = build_locally(schema, source, folder, options, execution, is_sample=True)
        except RecordspecError as error:  # without the note that the sample was not published
            raise type(error)(error.problems) from None
        encoded: Counter[str] = Counter()
        for part in StoredRecords(StoredDataset.of(folder)).parts(schema, ()):
            encoded[part.split] += sum(len(buffer_of(records)) for records in part.records(schema))
        return manifest, encoded


def _rows(source: Source, schema: Schema, how: Write, execution: Execution) -> tuple[int, bool]:
    """The number of rows, and whether it is only an estimate from the first parts."""
    if source.rows is not None:
        return source.rows, False
    if isinstance(source, DictRows):
        return execution.limit or _SAMPLED_ROWS, True
    parts = list(source.parts(schema, how.columns))
    counted = parts[:_PARTS]
    batches = [batch for part in counted for batch in part.batches(schema, how.columns)]
    rows = sum(batch.rows if isinstance(batch, Columns) else 1 for batch in batches)
    return rows * len(parts) // max(1, len(counted)), len(counted) < len(parts)
