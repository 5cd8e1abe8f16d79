"""A build: rows are encoded, put into shards, and published as a dataset.

A build is a plan and three functions: `encode`, `shard` and `publish`. All builds have the same `publish`.
The other two belong to an engine: the processes of this machine (`local`), or a cluster (`recordspec.spark`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from recordspec.errors import Problem, RecordError, SpecError, State
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.schema.schema import Schema
from recordspec.store.manifest import LabelCounts, Manifest
from recordspec.store.remote_transaction import ConflictError, transaction
from recordspec.store.transaction import Transaction
from recordspec.writing import rejects
from recordspec.writing.build_plan import BuildPlan, budget
from recordspec.writing.checkpoint import Checkpoint
from recordspec.writing.failures import BuildStatus, SourceError, disk_errors, source_errors
from recordspec.writing.label_counts import summed_counts
from recordspec.writing.publication import keep_rejects, list_rejects, publish, warn
from recordspec.writing.row_encoder import PART_BITS, EncodedPart, EncodedParts
from recordspec.writing.sharding import Shards
from recordspec.writing.sorter import EXISTING
from recordspec.writing.sources.base import NumberedSource
from recordspec.writing.write_options import Execution, Write

# How often publishing is repeated if other writers change the dataset meanwhile.
_CONFLICTS = 8

# Returns the location of a row for messages by the number of its part, its number in the part, and the number
# of rows before the part. All are counted from 0.
PlaceInPart = Callable[[int, int, int], str]
# Returns the numbers of two rows with the same key, the earlier first; None if there are none. For a row that
# the dataset had before, `EXISTING` is added to its number.
DuplicateKeys = Callable[[BuildPlan, EncodedParts], tuple[int, int] | None]
# Orders encoded rows, and writes the shards of each split to the plan's `output`, and the hashes of keys and
# the index of each shard to its `folder`. Returns the shards, and the changes of the label counts: copies may
# move to another split.
WriteShards = Callable[[BuildPlan, EncodedParts], tuple[Shards, LabelCounts]]


class BuildSource(Protocol):
    """The provider of the parts of a build. Only the task that encodes a part uses more of its methods."""

    @property
    def rows(self) -> int | None:
        """The number of rows; None if unknown."""

    def parts(self, schema: Any, extra: tuple[str, ...]) -> Iterator[Any]:
        """The parts, in the order of the rows. Each has a `place`, like a `SourcePart`."""

    def identity(self) -> Any:
        """The identity of the source, like `Source.identity`."""


@dataclass(frozen=True, kw_only=True)
class Build:
    """What is common to the builds of all engines. Publishes nothing before the end of `complete`.

    Attributes:
        plan: the plan, not completed yet.
        transaction: has the partial folder, and publishes it.
        checkpoint: the parts and shards that survive a crash.
        status: the progress of the build, for messages.
        allow_empty: whether a source without rows makes a dataset without rows.
        revise: completes the manifest; it may write files to its argument, the partial folder.
        is_sample: whether the dataset is deleted at once, so that no message mentions it or its files.
    """

    plan: BuildPlan
    transaction: Transaction
    checkpoint: Checkpoint
    status: BuildStatus
    allow_empty: bool
    revise: Callable[[Manifest, Path], Manifest] = lambda manifest, folder: manifest
    is_sample: bool = False

    @contextmanager
    def begun(self) -> Iterator[BuildPlan]:
        """Opens the partial folder of the build: within the block, no other process writes to it. Yields the
        complete plan. Annotates errors of the block with the build's progress."""
        with self.status.annotating(), self.transaction:
            with disk_errors(self.plan.name):
                plan = self.plan.within(self.transaction)
                self.checkpoint.begin(plan)
            try:
                yield plan
            except BaseException as error:
                self._fail(error)
                raise

    def _fail(self, error: BaseException) -> None:
        """Decides whether the partial folder is kept, so that a build can resume."""
        if isinstance(error, (RecordError, SpecError)):
            self.transaction.keep = False  # the next build has other rows or other options
            return
        self.status.published = self.transaction.published
        # without a journal, finished parts cannot be told from unfinished ones
        self.status.safe = self.checkpoint.safe if self.transaction.resumable else None
        self.transaction.keep = bool(self.status.safe)

    def complete(
        self,
        plan: BuildPlan,
        encoded: Iterable[EncodedPart],
        *,
        source: str,
        place: PlaceInPart,
        duplicate_keys: DuplicateKeys,
        shard: WriteShards,
        bar: Progress,
    ) -> Manifest:
        """Encodes rows, writes their shards and publishes them. Call it within `with build.begun()`.

        Args:
            plan: the complete plan.
            encoded: encodes all rows; yields each part, in the order of the source. Raises RecordError for an
                invalid row, with its number in its part, WriteError, StoreError.
            source: the name of the source in messages.
        """
        parts = self._gathered(plan, encoded)

        def check(plan: BuildPlan) -> int:
            """Checks that keys are unique, and lists the invalid rows. Returns their number."""
            if plan.options.unique:
                with disk_errors(plan.name):
                    pair = duplicate_keys(plan, parts)
                if pair is not None:
                    raise _duplicate(plan, parts, pair, place)
            return self._list_rejects(plan, parts, source)

        rejected = check(plan)
        with disk_errors(plan.name):
            shards, moved = shard(plan, parts)
        counts = summed_counts([*(part.label_counts for part in parts.all), moved])
        with disk_errors(plan.name):
            written = self.revise(new_manifest(plan, shards, rejected, counts), plan.output)
        for attempt in range(_CONFLICTS + 1):
            try:
                manifest = publish(plan, self.transaction, written, bar)
                break
            except ConflictError:
                if attempt == _CONFLICTS:
                    raise
                with disk_errors(plan.name):
                    if not self.transaction.appends:
                        raise
                    self.transaction.check_target()
                    plan = plan.within(self.transaction)
                check(plan)
        if not self.is_sample:
            warn(self.transaction.name, written, manifest)
        return manifest

    def _gathered(self, plan: BuildPlan, encoded: Iterable[EncodedPart]) -> EncodedParts:
        """Encodes all rows. Raises RecordError for an invalid row, or if too many rows are invalid."""
        parts = EncodedParts()
        try:
            for part in encoded:
                parts.add(part)
                self.status.rows = parts.seen
                if part.rejected:
                    rejects.check(plan.options.quarantine, parts.rejected, parts.reasons)
        except RecordError as error:
            row = None if error.row is None else parts.seen + error.row
            raise RecordError(error.problems, row) from None
        return parts

    def _list_rejects(self, plan: BuildPlan, parts: EncodedParts, source: str) -> int:
        """Lists all invalid rows. Returns their number.

        Raises RecordError if too many rows are invalid, or if no row is valid.
        """
        files = parts.reject_files(plan.folder)
        keep = partial(keep_rejects, self.transaction.target, files)
        rejects.check(
            plan.options.quarantine,
            parts.rejected,
            parts.reasons,
            rows=parts.seen,
            keep=(lambda: None) if self.is_sample else keep,
        )
        path = list_rejects(plan, files)
        rejects.check_some(parts.rows, parts.rejected, path, source, allow_empty=self.allow_empty)
        return parts.rejected


def planned_build(
    schema: Schema | None,
    directory: str | os.PathLike[str] | RemotePath,
    options: Write,
    execution: Execution,
    *,
    identity: Any = None,
    **how: Any,
) -> Build:
    """Plans the build of a dataset, without beginning it.

    Args:
        schema: the schema of the rows; None if records are only copied.
        identity: as for `Checkpoint`.
        how: other attributes of `Build`.

    Raises StoreError; SpecError for a limit of rows, which only the builds of `writing.local` keep.
    """
    if execution.limit is not None:
        expected = "none on this engine, which would encode all rows"
        raise SpecError(Problem(path=("limit",), expected=expected, got=str(execution.limit)))
    committing = transaction(
        directory, force=execution.force, resume=execution.resume, append=execution.append
    )
    plan = BuildPlan(
        schema=schema,
        options=options,
        name=str(directory),
        folder=committing.work,
        output=committing.partial,
        budget=budget(execution.memory, execution.processes),
        durable=identity is not None,
    )
    return Build(
        plan=plan,
        transaction=committing,
        checkpoint=Checkpoint(identity),
        status=BuildStatus(name=plan.name, quarantines=options.quarantine is not None),
        allow_empty=execution.allow_empty,
        **how,
    )


def parts_of(source: BuildSource, plan: BuildPlan) -> Iterator[Any]:
    """Yields the parts of a source. Raises WriteError if the source fails."""
    return source_errors(source.parts(plan.schema, plan.options.columns), plan.name)


def place_of(source: BuildSource, plan: BuildPlan, part: int, row: int, before: int) -> str:
    """The location of a row of a source, like `PlaceInPart`. Reads the parts of the source again, unless the
    source knows the location by the number of the row.
    """
    if isinstance(source, NumberedSource):
        return source.place(before + row)
    return str(next(islice(parts_of(source, plan), part, None)).place(row))


def check_unchanged(source: BuildSource, identity: Any, name: str) -> None:
    """Raises SourceError if the source changed while it was read: its parts may be of different versions.

    Args:
        identity: the identity of the source before it was read; None if its rows cannot be read again.
        name: the name of the dataset in messages.
    """
    if identity is not None and identity != source.identity():
        raise SourceError(State(where=name, got="cannot be built: its source changed while it was read"))


def _duplicate(
    plan: BuildPlan, parts: EncodedParts, pair: tuple[int, int], place: PlaceInPart
) -> RecordError:
    """The error of two rows with the same key; it names both."""

    def place_by_number(number: int) -> str:
        if number >= EXISTING:
            assert plan.base is not None
            return plan.base.place(number - EXISTING)
        part = number >> PART_BITS
        return place(part, number & (1 << PART_BITS) - 1, parts.before[part])

    # an existing row is never reported as the wrong one
    first, second = map(place_by_number, pair if pair[1] < EXISTING else pair[::-1])
    expected = "a key that no other row has"
    problem = Problem(path=plan.options.keys, expected=expected, got=f"that of {first}")
    return RecordError(problem.at(second))


def new_manifest(plan: BuildPlan, splits: Shards, rejected: int, label_counts: LabelCounts) -> Manifest:
    """The manifest of the shards just written."""
    options, schema = plan.options, plan.schema
    return Manifest(
        schema=None if schema is None else schema.name,
        fingerprint=None if schema is None else schema.fingerprint,
        record="example" if schema is None else schema.record,
        compression=options.compression,
        splits=splits,
        key=options.keys,
        shuffle_seed=plan.seed,
        labels={} if schema is None else _labels(schema),
        label_counts={split: label_counts[split] for split in splits if split in label_counts},
        rejected=rejected,
        block=options.block,
        division=options.division,
    )


def _labels(schema: Schema) -> dict[str, tuple[str, ...]]:
    """The names of the classes by label."""
    return {
        feature.name: feature.traits.known_names
        for _, feature in schema._placed
        if feature.traits.class_names
    }
