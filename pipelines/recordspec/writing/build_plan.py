"""The plan of a build: the common arguments of all its stages and tasks."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from recordspec.errors import system_errors
from recordspec.remote import RemotePath
from recordspec.schema.options import parse_bytes
from recordspec.schema.schema import Schema
from recordspec.store.remote_transaction import transaction
from recordspec.store.transaction import Transaction
from recordspec.writing.append import ExistingDataset
from recordspec.writing.write_options import Write

# Larger runs and chunks are not sorted faster: the caches are smaller than either. The allocator keeps blocks
# of the size of a chunk.
_LARGEST_RUN = 256 << 20
_LARGEST_CHUNK = 16 << 20
# The chunks in memory while shards are written: one is merged, and others are hashed and written.
_CHUNKS_WAITING = 4
# The memory of a process for Python, NumPy and Arrow, and for the rows being encoded.
_PROCESS = 206 << 20
_SMALLEST_BUDGET = 32 << 20
# The default memory of each process.
_MEMORY = 512 << 20


def allowance(memory: str | None, jobs: int) -> int:
    """The bytes of memory that a build may use; by default 512 MiB for each process. Raises SpecError."""
    return _processes(jobs) * _MEMORY if memory is None else parse_bytes(memory, "memory")


def budget(memory: str | None, jobs: int) -> int:
    """The bytes of rows that each process may hold, if all processes together may use `memory`.

    Raises SpecError.
    """
    return max(_SMALLEST_BUDGET, (allowance(memory, jobs) - _processes(jobs) * _PROCESS) // jobs)


def free_space(directory: str | os.PathLike[str] | RemotePath) -> int:
    """The free bytes of the disk on which a dataset is built. Raises StoreError."""
    with system_errors("write", directory):
        folder = transaction(directory).target
        return shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free


def _processes(jobs: int) -> int:
    return jobs + (jobs > 1)  # several workers have a parent process


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """The common arguments of all tasks of a build.

    Attributes:
        schema: the schema of the rows; None if records are only copied.
        options: the options of sharding.
        name: the name of the dataset in messages.
        folder: the folder where tasks write their files.
        output: the folder of the finished shards.
        budget: the bytes of rows that a task may hold in memory.
        durable: whether files must survive a power failure as soon as a task is done.
        base: the dataset to which rows are appended, if any.
        suffix: the suffix of the split in the names of shards, if a dataset is replaced or appended to.
    """

    schema: Schema | None
    options: Write
    name: str
    folder: Path
    output: Path
    budget: int
    durable: bool
    base: ExistingDataset | None = None
    suffix: str = ""

    def within(self, transaction: Transaction) -> BuildPlan:
        """Completes the plan with the facts about the existing dataset, in a transaction that has begun. If
        rows are appended, the transaction keeps the existing shards.

        Raises StoreError if the rows of the plan cannot be appended to the dataset.
        """
        if not transaction.appends:
            return replace(self, suffix=transaction.shard_suffix)
        base = ExistingDataset.load(
            transaction.dataset, transaction.existing, self.checked_schema, self.options
        )
        transaction.keep_shards(base.manifest)
        return replace(self, base=base, suffix=base.suffix(transaction.shard_suffix))

    @property
    def for_tasks(self) -> BuildPlan:
        """The plan for tasks on other machines: without the manifest of the existing dataset, which may be
        large."""
        return replace(self, base=None)

    @property
    def checked_schema(self) -> Schema:
        """The schema of a build that needs one."""
        assert self.schema is not None
        return self.schema

    @property
    def free(self) -> int:
        """The free bytes of the disk to which tasks write their files."""
        return shutil.disk_usage(self.folder).free

    @property
    def as_encoded(self) -> bool:
        """Whether shards consist of the bytes of the encoded rows, so that their size is known in advance."""
        return self.options.compression == "none" and self.options.block is None

    @property
    def seed(self) -> int | None:
        """The seed of the shuffle; None keeps the order of the rows."""
        return None if self.options.shuffle is None else self.options.shuffle.seed

    @property
    def chunk(self) -> int:
        """The bytes of rows that are merged at once."""
        return min(_LARGEST_CHUNK, self.budget // 4)

    @property
    def run(self) -> int:
        """The bytes of rows that are sorted in memory and written as one run."""
        return min(_LARGEST_RUN, self.kept)

    @property
    def kept(self) -> int:
        """The bytes of rows that may stay in memory until their shards are written, beside the chunks that
        are merged or wait to be hashed and written."""
        return max(self.budget // 2, self.budget - _CHUNKS_WAITING * self.chunk)
