"""A build: rows are encoded, put into shards, and published as a dataset.

Encoding and sharding are protocols. `local` implements them with the processes of this machine, and
`recordspec.spark` with a cluster. Both get the plan and the publication from the build.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any, Protocol

from recordspec.errors import Problem, RecordError, SpecError, State
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.schema.schema import Schema
from recordspec.store.manifest import LabelCounts, Manifest, Shard
from recordspec.store.remote_transaction import ConflictError, transaction
from recordspec.store.transaction import Transaction
from recordspec.writing import rejects
from recordspec.writing.build_plan import BuildPlan, budget
from recordspec.writing.checkpoint import Checkpoint
from recordspec.writing.failures import BuildStatus, SourceError, disk_errors, source_errors
from recordspec.writing.label_counts import summed_counts
from recordspec.writing.publication import Publication
from recordspec.writing.row_encoder import PART_BITS
from recordspec.writing.sorter import EXISTING, Run
from recordspec.writing.tasks import EncodedPart
from recordspec.writing.write_options import Execution, Write

# How often publishing is repeated if other writers change the dataset meanwhile.
_CONFLICTS = 8

# The shards of each split.
Shards = dict[str, tuple[Shard, ...]]
# The rejects of all parts, each with the number of rows before its part.
RejectLines = Iterator[tuple[Mapping[str, Any], int]]


class BuildSource(Protocol):
    """The provider of the parts of a build. Only the task that encodes a part uses more of its methods."""

    @property
    def rows(self) -> int | None:
        """The number of rows; None if unknown."""

    def parts(self, schema: Any, extra: tuple[str, ...]) -> Iterator[Any]:
        """The parts, in the order of the rows. Each has a `place`, like a `SourcePart`."""

    def identity(self) -> Any:
        """The identity of the source, like `Source.identity`."""


class Encoding(Protocol):
    """The first stage of a build: the rows of a source are validated and encoded, part by part."""

    @property
    def name(self) -> str:
        """The name of the source in messages."""

    def encode(self, bar: Progress) -> Iterator[EncodedPart]:
        """Encodes all rows; yields each part, in the order of the source.

        Raises RecordError for an invalid row, with its number in its part, WriteError, StoreError.
        """

    def place(self, part: int, row: int) -> str:
        """The location of a row of a part for messages; both are counted from 0."""

    def rejected(self) -> RejectLines:
        """Yields the lines of the invalid rows, in the order of the source."""


class Sharding(Protocol):
    """The second stage of a build: encoded rows are ordered and written as shards."""

    def duplicate_keys(self) -> tuple[int, int] | None:
        """The numbers of two rows with the same key, the earlier first; None if there are none.

        For a row that the dataset had before, `EXISTING` is added to its number.
        """

    def move_copies(self, bar: Progress) -> LabelCounts:
        """Gives each copy of a row its own place in the order, and its own split, as `copies` defines them.

        Does nothing unless the options ask for it. Returns the changes of the label counts.
        """

    def write(self, bar: Progress) -> Shards:
        """Writes the shards of each split; the publication takes them over."""


# A context manager of the two stages of a build: encoding and sharding.
Stages = Callable[["Build"], AbstractContextManager[tuple[Encoding, Sharding]]]


class Build:
    """Runs the three stages: encoding, sharding, publication. Publishes nothing before the end of `complete`.

    Attributes:
        plan: the common arguments of all tasks.
        publication: publishes the shards.
        checkpoint: the parts and shards that survive a crash.
        status: the progress of the build, for messages.
        parts: the encoded parts.
    """

    def __init__(
        self, plan: BuildPlan, publication: Publication, checkpoint: Checkpoint, *, allow_empty: bool
    ) -> None:
        self.plan, self.publication, self.checkpoint = plan, publication, checkpoint
        self.status = BuildStatus(name=plan.name, quarantines=plan.options.quarantine is not None)
        self.parts = EncodedParts()
        self._allow_empty = allow_empty

    def run(self, stages: Stages, *, progress: bool | None = None) -> Manifest:
        """Builds and publishes. Raises the errors of `write`."""
        with self.begun(), Progress(show=progress) as bar, stages(self) as (encoding, sharding):
            return self.complete(encoding, sharding, bar)

    @contextmanager
    def begun(self) -> Iterator[Build]:
        """Opens the partial folder of the build. Annotates errors in the block with the build's progress."""
        with self.status.annotating(), self.publication:
            with disk_errors(self.plan.name):
                self.plan = self.publication.planned(self.plan)
                self.checkpoint.begin(self.plan, self.publication.transaction.partial)
            try:
                yield self
            except BaseException as error:
                self._fail(error)
                raise

    def _fail(self, error: BaseException) -> None:
        """Decides whether the partial folder is kept, so that a build can resume."""
        status, transaction = self.status, self.publication.transaction
        status.rows = max(status.rows, self.parts.seen)
        if isinstance(error, (RecordError, SpecError)):
            transaction.keep = False  # the next build has other rows or other options
            return
        status.published = transaction.published
        # without a journal, finished parts cannot be told from unfinished ones
        status.safe = self.checkpoint.safe if transaction.resumable else None
        transaction.keep = bool(status.safe)

    def complete(self, encoding: Encoding, sharding: Sharding, bar: Progress) -> Manifest:
        """Runs the stages. Call it within `with build.begun()`."""
        try:
            for part in encoding.encode(bar):
                self.parts.add(part)
                if part.rejected:
                    rejects.check(self.plan.options.quarantine, self.parts.rejected, self.parts.reasons)
        except RecordError as error:
            row = None if error.row is None else self.parts.seen + error.row
            raise RecordError(error.problems, row) from None
        self._check_unique(encoding, sharding)
        rejected = self._list_rejects(encoding)
        with disk_errors(self.plan.name):
            moved = sharding.move_copies(bar)
            shards = sharding.write(bar)
        counts = summed_counts([*(part.label_counts for part in self.parts.all), moved])
        manifest = new_manifest(self.plan, shards, rejected, counts)
        with disk_errors(self.plan.name):
            manifest = self.publication.revised(manifest)
        for _ in range(_CONFLICTS):
            try:
                return self.publication.publish(self.plan, manifest, bar)
            except ConflictError:
                with disk_errors(self.plan.name):
                    if not self.publication.transaction.refresh():
                        raise
                    self.plan = self.publication.planned(self.plan)
                self._check_unique(encoding, sharding)
                self._list_rejects(encoding)
        return self.publication.publish(self.plan, manifest, bar)

    def _check_unique(self, encoding: Encoding, sharding: Sharding) -> None:
        """Raises RecordError if keys must be unique and two rows have the same key; the error names both."""
        if not self.plan.options.unique:
            return
        with disk_errors(self.plan.name):
            pair = sharding.duplicate_keys()
        if pair is None:
            return
        # an existing row is never reported as the wrong one
        first, second = (self._place(row, encoding) for row in (pair if pair[1] < EXISTING else pair[::-1]))
        expected = "a key that no other row has"
        problem = Problem(path=self.plan.options.keys, expected=expected, got=f"that of {first}")
        raise RecordError(problem.at(second))

    def _place(self, number: int, encoding: Encoding) -> str:
        """The location of a row by its number, for messages."""
        if number >= EXISTING:
            assert self.plan.base is not None
            return self.plan.base.place(number - EXISTING)
        return encoding.place(number >> PART_BITS, number & (1 << PART_BITS) - 1)

    def _list_rejects(self, encoding: Encoding) -> int:
        """Lists all invalid rows. Returns their number.

        Raises RecordError if too many rows are invalid, or if no row is valid.
        """
        parts, publication = self.parts, self.publication
        rejects.check(
            self.plan.options.quarantine,
            parts.rejected,
            parts.reasons,
            rows=parts.seen,
            keep=lambda: publication.keep_rejects(encoding.rejected()),
        )
        path = publication.list_rejects(self.plan, encoding.rejected())
        rejects.check_some(parts.rows, parts.rejected, path, encoding.name, allow_empty=self._allow_empty)
        return parts.rejected


def planned_build(
    schema: Schema | None,
    directory: str | os.PathLike[str] | RemotePath,
    options: Write,
    execution: Execution,
    *,
    identity: Any = None,
    publication: Callable[[Transaction], Publication] = Publication,
) -> Build:
    """Plans the build of a dataset, without beginning it.

    Args:
        schema: the schema of the rows; None if records are only copied.
        identity: as for `Checkpoint`.
        publication: creates the publication of the dataset.

    Raises SpecError, StoreError.
    """
    committing = transaction(
        directory, force=execution.force, resume=execution.resume, append=execution.append
    )
    plan = BuildPlan(
        schema=schema,
        options=options,
        name=str(directory),
        folder=committing.work,
        budget=budget(execution.memory, execution.processes),
        durable=identity is not None,
    )
    return Build(plan, publication(committing), Checkpoint(identity), allow_empty=execution.allow_empty)


def parts_of(source: BuildSource, plan: BuildPlan) -> Iterator[Any]:
    """Yields the parts of a source. Raises WriteError if the source fails."""
    return source_errors(source.parts(plan.schema, plan.options.columns), plan.name)


def place_of(source: BuildSource, plan: BuildPlan, part: int, row: int) -> str:
    """The location of a row of a part for messages; both are counted from 0."""
    return str(next(islice(parts_of(source, plan), part, None)).place(row))


def check_unchanged(source: BuildSource, identity: Any, name: str) -> None:
    """Raises SourceError if the source changed while it was read: its parts may be of different versions.

    Args:
        identity: the identity of the source before it was read; None if its rows cannot be read again.
        name: the name of the dataset in messages.
    """
    if identity is not None and identity != source.identity():
        raise SourceError(State(where=name, got="cannot be built: its source changed while it was read"))


class EncodedParts:
    """The encoded parts of a source, in its order.

    Attributes:
        all: the parts.
        before: the number of rows, valid or not, before each part; and, last, in all parts.
    """

    def __init__(self) -> None:
        self.all: list[EncodedPart] = []
        self.before = [0]

    def add(self, part: EncodedPart) -> None:
        self.all.append(part)
        self.before.append(self.seen + part.seen)

    @property
    def seen(self) -> int:
        """The number of rows, valid or not."""
        return self.before[-1]

    @property
    def rows(self) -> int:
        """The number of valid rows."""
        return sum(part.rows for part in self.all)

    @property
    def rejected(self) -> int:
        """The number of invalid rows."""
        return sum(part.rejected for part in self.all)

    @property
    def reasons(self) -> Sequence[str]:
        """The locations of the first invalid rows, each with its first problem."""
        return [reason for part in self.all for reason in part.reasons]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs of all valid rows."""
        return tuple(run for part in self.all for run in part.runs)


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
        feature.name: feature.traits.known_names for _, feature in schema.placed if feature.traits.class_names
    }
