"""The finished parts and shards of a build, from which another build can continue after a crash."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from recordspec import __version__
from recordspec.schema.options import to_builtins
from recordspec.store import key_hashes
from recordspec.store.journal import FILE as JOURNAL
from recordspec.store.journal import Journal
from recordspec.store.manifest import PIECES, Shard
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.row_encoder import EncodedPart
from recordspec.writing.sorter import SortedRun
from recordspec.writing.sources import base


class Checkpoint:
    """The encoded parts and written shards that survive a crash.

    Args:
        identity: the identity of the source. None if its rows cannot be read again; then nothing survives.

    Attributes:
        parts: the finished parts, from the first part of the source on.
        shards: the finished shards, by file name.
    """

    def __init__(self, identity: Any = None) -> None:
        self.identity = identity
        self.parts: list[EncodedPart] = []
        self.shards: dict[str, Shard] = {}
        self._journal: Journal | None = None

    def begin(self, plan: BuildPlan) -> None:
        """Takes over the finished parts and shards of an interrupted build, and removes its other files.

        Raises StoreError if the interrupted build had another plan.
        """
        if self.identity is None:
            return
        described = {
            "version": [__version__, base.PART_BYTES],
            "schema": None if plan.schema is None else plan.schema.dump(),
            "options": to_builtins(plan.options),
            "source": self.identity,
            "append": None if plan.base is None else plan.base.manifest.dump(),
            "dataset to replace": plan.suffix,
        }
        journal = Journal(plan.folder, json.loads(json.dumps(described)), plan.name)
        journal.keep(sum(1 for _ in takewhile(lambda entry: self._take_over(entry, plan), journal.entries)))
        known = {name for part in self.parts for name in part.files}
        known |= {JOURNAL, *(f"{file}{suffix}" for file in self.shards for suffix in PIECES)}
        for path in plan.folder.iterdir():
            if path.name not in known:
                path.unlink()
        self._journal = journal

    def _take_over(self, entry: Mapping[str, Any], plan: BuildPlan) -> bool:
        """Takes over a part or a shard if its files are whole. Returns False for an incomplete part."""
        if "part" in entry:
            runs = tuple(SortedRun(**run) for run in entry["part"]["runs"])
            reasons = tuple(entry["part"].get("reasons", ()))
            part = EncodedPart(**{**entry["part"], "runs": runs, "reasons": reasons})
            whole = part.is_whole(plan.folder)
            if whole:
                self.parts.append(part)
            return whole
        shard = Shard(**entry["shard"])
        path = plan.output / shard.file
        keys, index = (plan.folder / f"{shard.file}{suffix}" for suffix in PIECES)
        keyed = not plan.options.unique or (keys.exists() and key_hashes.rows(keys) == shard.rows)
        if keyed and index.exists() and path.exists() and path.stat().st_size == shard.bytes:
            self.shards[shard.file] = shard
        return True

    @property
    def is_durable(self) -> bool:
        """Whether finished parts and shards survive a crash."""
        return self._journal is not None

    @property
    def safe(self) -> int | None:
        """The number of rows that need not be read again; None if nothing survives."""
        return sum(part.seen for part in self.parts) if self.is_durable else None

    def add_part(self, part: EncodedPart) -> None:
        """Adds a part whose files are durable."""
        if self._journal is not None:
            self._journal.add({"part": dataclasses.asdict(part)})
            self.parts.append(part)

    def add_shard(self, shard: Shard) -> None:
        """Adds a shard whose file is durable."""
        if self._journal is not None:
            self._journal.add({"shard": dataclasses.asdict(shard)})
        self.shards[shard.file] = shard

    def drop(self) -> None:
        """Removes the journal, so that nothing survives a crash."""
        if self._journal is not None:
            self._journal.remove()
        self._journal = None
