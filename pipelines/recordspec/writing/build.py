"""A build by parts: processes share them, and one that was broken off can go on."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from typing import Any, Protocol

import numpy as np

from recordspec import __version__
from recordspec.errors import Problem, RecordError, SpecError, describe
from recordspec.executors import Executor, executor
from recordspec.progress import Progress
from recordspec.spec.options import to_builtins
from recordspec.spec.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.journal import FILE as JOURNAL
from recordspec.store.journal import Journal
from recordspec.store.manifest import REJECTS_FILE, Manifest, Shard
from recordspec.store.transaction import Transaction
from recordspec.writing import rejects
from recordspec.writing.assembly import (
    Encoded,
    Shards,
    check_unique,
    heading,
    place_shards,
    publish,
    write_shards,
)
from recordspec.writing.ending import Account, SourceError, guarded, on_disk, told
from recordspec.writing.label_counts import summed
from recordspec.writing.options import Write
from recordspec.writing.runs import Run
from recordspec.writing.sources import Rows, Source, base
from recordspec.writing.sources.rows import packed
from recordspec.writing.tasks import PartDone, Plan, budget, encode_part

_WHOLE = (int, np.integer)


@dataclass(frozen=True, kw_only=True)
class Work:
    """How a build is done; but for `limit` its result does not depend on it.

    Attributes:
        jobs: the processes that share the work.
        memory: what they may use together, such as `2GiB`; by default 512 MiB each.
        limit: so many rows of the source are taken, and no more.
        allow_empty: whether a source without rows makes a dataset without rows; by default it is an error.
        force: whether a dataset that stands there is replaced.
        append: whether the rows are added to the dataset that stands there.
        resume: whether to go on with a build that was broken off.
        progress: whether to show it on stderr; by default on a terminal.
    """

    jobs: int = 1
    memory: str | None = None
    limit: int | None = None
    allow_empty: bool = False
    force: bool = False
    append: bool = False
    resume: bool = False
    progress: bool | None = None

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    def _check(self) -> Iterator[Problem]:
        if not isinstance(self.jobs, _WHOLE) or not 1 <= self.jobs <= 1024:
            yield Problem(path=("jobs",), expected="1 to 1024", got=_shown(self.jobs))
        if self.limit is not None and (not isinstance(self.limit, _WHOLE) or self.limit < 1):
            yield Problem(path=("limit",), expected="a number of rows", got=_shown(self.limit))
        if self.limit is not None and self.resume:
            yield Problem(path=("resume",), expected="a build of all rows", got=f"limit {self.limit}")
        if self.force and self.append:
            yield Problem(path=("append",), expected="either `append` or `force`", got="both")


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, _WHOLE) else describe(value)


class Placed(Protocol):
    """A part of what a build takes in; its task knows more of it."""

    def place(self, row: int) -> str:
        """How messages name row `row`, counted from 0 within the part."""


@dataclass
class _Progress:
    """The parts that are done, in order, and the rows before each."""

    parts: list[PartDone] = field(default_factory=list)
    before: list[int] = field(default_factory=lambda: [0])

    def add(self, part: PartDone) -> None:
        self.parts.append(part)
        self.before.append(self.rows + part.rows + part.rejected)

    @property
    def rows(self) -> int:
        """All that have been taken."""
        return self.before[-1]


@dataclass(frozen=True, kw_only=True)
class Input:
    """What a build takes in.

    Attributes:
        name: what messages call the source.
        rows: how many, None where nobody knows.
        parts: gives the parts, each time anew if `identity` does not give None.
        identity: gives plain JSON values that change when the rows do; None where they cannot be had again.
        encode: the task that encodes a part.
        place: how messages name a row, counted through all parts, where the parts cannot be had again.
    """

    name: str
    rows: int | None
    parts: Callable[[], Iterator[Placed]]
    identity: Callable[[], Any]
    encode: Callable[..., PartDone]
    place: Callable[[int], str] | None = None

    @classmethod
    def of(cls, source: Source | Rows, schema: Schema, options: Write) -> Input:
        """The rows of a source, to be encoded with a schema."""
        if isinstance(source, Rows):
            parts: Callable[[], Iterator[Placed]] = partial(packed, source)
            return cls(
                name=base.name_of(source),
                rows=source.rows,
                parts=parts,
                identity=lambda: None,
                encode=encode_part,
                place=source.place,
            )
        return cls(
            name=base.name_of(source),
            rows=source.rows,
            parts=partial(source.parts, schema, options.columns),
            identity=source.identity,
            encode=encode_part,
        )


class Build:
    """A build by parts, which processes share, and which can be resumed where its rows can be had again."""

    def __init__(
        self,
        schema: Schema | None,
        given: Input,
        directory: str | os.PathLike[str],
        options: Write,
        work: Work,
    ) -> None:
        self._given, self._work = given, work
        self._identity = given.identity()
        self._transaction = Transaction(directory, force=work.force, resume=work.resume, append=work.append)
        self._account = Account(name=str(directory))
        self._done = _Progress()
        self._shards: dict[str, Shard] = {}
        self._plan = Plan(
            schema=schema,
            options=options,
            name=str(directory),
            folder=self._transaction.work,
            budget=budget(work.memory, work.jobs),
            durable=self._identity is not None,
        )

    def run(self) -> Manifest:
        """Builds and publishes. Raises what `write` raises."""
        with told(self._account), self._transaction, Progress(show=self._work.progress) as bar:
            with on_disk(self._plan.name):
                if self._work.append:
                    self._plan = self._plan.added_to(self._transaction)
                journal = self._journal()
            try:
                return self._built(journal, bar)
            except (RecordError, SpecError):  # the next build will be of other rows, or another one
                self._transaction.keep = False
                raise
            except BaseException:
                self._account.published = self._transaction.published
                if not self._transaction.resumable:  # all is written, and publishing it failed
                    self._account.safe = None
                self._transaction.keep = bool(self._account.safe)
                raise

    def _built(self, journal: Journal | None, bar: Progress) -> Manifest:
        jobs = self._work.jobs
        with executor(jobs, self._plan.name) as pool:
            bar.begin("encoding", self._given.rows)
            self._encode(pool, journal, bar)
            self._check_unchanged()
            encoded = self._encoded()
            bar.begin("writing shards", encoded.rows)
            with on_disk(self._plan.name):
                shards = write_shards(self._plan, encoded, pool, self._shards, self._finished(journal, bar))
            return publish(self._transaction, self._plan, self._heading(shards, encoded.rejected))

    def _heading(self, shards: Shards, rejected: int) -> Manifest:
        """What the dataset says of itself, but for the rows that were there before."""
        return heading(self._plan, shards, rejected, summed(part.label_counts for part in self._done.parts))

    def _encode(self, pool: Executor, journal: Journal | None, bar: Progress) -> None:
        for part in self._done.parts:
            bar.advance(part.rows + part.rejected)
        numbered = enumerate(self._parts())
        missing = islice(numbered, len(self._done.parts), None)
        encode = partial(self._given.encode, self._plan)
        if pool.in_process:
            encode = partial(encode, advance=bar.advance)
        for part in self._placed(pool.map(encode, missing)):
            if journal is not None:
                with on_disk(self._plan.name):
                    journal.add({"part": dataclasses.asdict(part)})
            self._done.add(part)
            self._account.rows = self._done.rows
            self._account.safe = None if journal is None else self._done.rows
            if not pool.in_process:
                bar.advance(part.rows + part.rejected, sum(run.bytes for run in part.runs))

    def _check_unchanged(self) -> None:
        """Raises SourceError where the source changed while it was read: parts of it may be of before."""
        if self._given.identity() != self._identity:
            self._account.safe = None
            expected = "a source that stays as it is"
            problem = Problem(expected=expected, got="one that changed meanwhile")
            raise SourceError(problem.at(self._plan.name))

    def _parts(self) -> Iterator[Placed]:
        return guarded(self._given.parts(), self._plan.name)

    def _placed(self, results: Iterator[PartDone]) -> Iterator[PartDone]:
        """The results; an error of a part counts its rows from the first of the source."""
        try:
            yield from results
        except RecordError as error:
            row = None if error.row is None else self._done.rows + error.row
            raise RecordError(error.problems, row) from None

    def _encoded(self) -> Encoded:
        """All parts together. Raises RecordError for rows with one key, or too many that do not fit."""
        parts = self._done.parts
        runs = tuple(run for part in parts for run in part.runs)
        check_unique(self._plan, runs, self._place)
        path = self._transaction.staging / REJECTS_FILE
        how = self._plan.options.quarantine
        with on_disk(self._plan.name):
            path.unlink(missing_ok=True)  # of a build that is resumed
            if self._plan.base is not None:
                self._plan.base.put_rejects_into(self._transaction.staging)
            files = [self._plan.folder / part.rejects for part in parts]
            rejects.join(
                zip(files, self._done.before, strict=False), path, None if how is None else how.max_invalid
            )
        rows, rejected = sum(part.rows for part in parts), sum(part.rejected for part in parts)
        rejects.check_some(rows, rejected, path, self._given.name, allow_empty=self._work.allow_empty)
        return Encoded.of(self._plan, runs, rows, rejected)

    def _place(self, part: int, row: int) -> str:
        if self._given.place is not None:
            return self._given.place(self._done.before[part] + row)
        return next(islice(self._parts(), part, None)).place(row)

    def _finished(self, journal: Journal | None, bar: Progress) -> Any:
        """What is done with each shard that is written."""
        put = place_shards(self._transaction)

        def finished(file: str, shard: Shard) -> None:
            put(file, shard)
            if journal is not None:
                journal.add({"shard": dataclasses.asdict(shard)})
            bar.advance(shard.rows, shard.bytes)

        return finished

    def _journal(self) -> Journal | None:
        """The journal, and what it says is done already; None where rows cannot be had again."""
        if self._identity is None:
            return None
        plan = {
            "version": [__version__, base.PART_BYTES],
            "schema": None if self._plan.schema is None else self._plan.schema.dump(),
            "options": to_builtins(self._plan.options),
            "source": self._identity,
            "append": None if self._plan.base is None else self._plan.base.manifest.dump(),
        }
        journal = Journal(self._plan.folder, json.loads(json.dumps(plan)), self._plan.name)
        journal.keep(sum(1 for _ in takewhile(self._goes_on, journal.entries)))
        self._clear()
        self._account.rows = self._account.safe = self._done.rows
        return journal

    def _clear(self) -> None:
        """Removes what tasks left that did not come to their end."""
        known = {name for part in self._done.parts for name in part.files}
        known |= {JOURNAL, *(f"{file}.keys" for file in self._shards)}
        for path in self._plan.folder.iterdir():
            if path.name not in known:
                path.unlink()

    def _goes_on(self, entry: Mapping[str, Any]) -> bool:
        """Takes over what the journal says is done, if its files are whole."""
        if "part" in entry:
            runs = tuple(Run(**run) for run in entry["part"]["runs"])
            part = PartDone(**{**entry["part"], "runs": runs})
            whole = part.is_whole(self._plan.folder)
            if whole:
                self._done.add(part)
            return whole
        shard = Shard(**entry["shard"])
        path, keys = self._transaction.staging / shard.file, self._plan.folder / f"{shard.file}.keys"
        keyed = not self._plan.options.unique or key_hashes.rows(keys) == shard.rows
        if keyed and path.exists() and path.stat().st_size == shard.bytes:
            self._shards[shard.file] = shard
        return True
