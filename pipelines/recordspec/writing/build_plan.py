"""The plan of a build: what all of its stages, and all of their tasks, have in common."""

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

# Larger ones sort no faster: the caches are smaller than either. A chunk is a block that the allocator keeps.
_LARGEST_RUN = 256 << 20
_LARGEST_CHUNK = 16 << 20
# The memory of a process without rows, and for the rows being encoded: Python, NumPy and Arrow.
_PROCESS = 200 << 20
_SMALLEST_BUDGET = 32 << 20
# The default memory of each process.
_MEMORY = 512 << 20


def allowance(memory: str | None, jobs: int) -> int:
    """The bytes that a build may use; by default 512 MiB for each process. Raises SpecError."""
    return _processes(jobs) * _MEMORY if memory is None else parse_bytes(memory, "memory")


def budget(memory: str | None, jobs: int) -> int:
    """The bytes of rows that each process may hold, if all may use `memory` together.

    Raises SpecError.
    """
    return max(_SMALLEST_BUDGET, (allowance(memory, jobs) - _processes(jobs) * _PROCESS) // jobs)


def free_space(directory: str | os.PathLike[str] | RemotePath) -> int:
    """The free bytes of the disk on which a dataset is built. Raises StoreError."""
    with system_errors("write", directory):
        folder = transaction(directory).target
        return shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free


def _processes(jobs: int) -> int:
    return jobs + (jobs > 1)  # and the one that gives them work


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """The common arguments of all tasks of a build.

    Attributes:
        schema: the schema of the rows; records that are only copied need none.
        options: how rows become shards.
        name: the name of the dataset in messages.
        folder: the folder of the files of tasks.
        budget: the bytes of rows that a task may hold.
        durable: whether files must survive a power failure as soon as a task is done.
        base: the dataset to which rows are appended, if any.
        suffix: the suffix of the split in the names of shards, if a dataset is replaced or added to.
    """

    schema: Schema | None
    options: Write
    name: str
    folder: Path
    budget: int
    durable: bool
    base: ExistingDataset | None = None
    suffix: str = ""

    def added_to(self, transaction: Transaction) -> BuildPlan:
        """The plan of rows that are appended to an existing dataset, whose files are kept."""
        base = ExistingDataset.load(
            transaction.dataset, transaction.existing, self.checked_schema, self.options
        )
        transaction.keep_shards(base.manifest)
        return replace(self, base=base, suffix=base.suffix(transaction.shard_suffix))

    @property
    def for_tasks(self) -> BuildPlan:
        """The plan as tasks on other machines get it: without the manifest of the dataset that rows are added
        to, which may be large."""
        return replace(self, base=None)

    @property
    def checked_schema(self) -> Schema:
        """The schema, where there must be one."""
        assert self.schema is not None
        return self.schema

    @property
    def free(self) -> int:
        """The free bytes of the disk of the files of tasks."""
        return shutil.disk_usage(self.folder).free

    @property
    def as_encoded(self) -> bool:
        """Whether shards have the bytes of the encoded rows, so that their size is known before."""
        return self.options.compression == "none" and self.options.block is None

    @property
    def seed(self) -> int | None:
        """The seed of the shuffle; None keeps the order of the rows."""
        return None if self.options.shuffle is None else self.options.shuffle.seed

    @property
    def chunk(self) -> int:
        """The bytes of rows that are put in order at once."""
        return min(_LARGEST_CHUNK, self.budget // 4)

    @property
    def run(self) -> int:
        """The bytes of rows that are sorted in memory, and then written as a run."""
        return min(_LARGEST_RUN, self.budget // 2)
