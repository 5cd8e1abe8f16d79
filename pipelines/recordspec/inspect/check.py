"""Every record of files against a schema, without TensorFlow: what does not fit, how often, and where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recordspec.errors import Path as Place
from recordspec.errors import Problem, RecordError, nearest
from recordspec.executors import executor
from recordspec.inspect.fitting import Code, Misfit, misfits
from recordspec.inspect.looking.naming import check_known
from recordspec.inspect.report import Fault, Report
from recordspec.inspect.shares import jobs_for, stretches
from recordspec.progress import Progress
from recordspec.spec.blocks import columns_in, rows_of_block
from recordspec.spec.features import Feature
from recordspec.spec.schema import Schema
from recordspec.store.files import File
from recordspec.wire import tfrecord
from recordspec.wire.columns import KeySteps, KeyValues, Section
from recordspec.wire.framing import FOOTER_BYTES, place
from recordspec.wire.record_batch import RecordBatch, decode
from recordspec.wire.tfrecord import Chunk, Damage, RecordRange


def check(
    files: Sequence[File],
    schema: Schema,
    *,
    examples: int = 10,
    allow_absent: Collection[str] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compares every record of files with a schema.

    A feature with a key that no record of any file has is a finding, too, unless there are no records.

    Args:
        files: as `store.files.known` gives them, or `compared` where the schema is not their own.
        examples: of each sort of fault, how many are kept; all are counted.
        allow_absent: names of features that no record need have.
        jobs: processes that share the work; None for one a processor where there is much to read.
        progress: is told of it.

    Damage is found, not raised; raises StoreError where a file cannot be opened, SpecError for a name in
    `allow_absent` that no feature has.
    """
    check_known(allow_absent, schema.names, "allow_absent")
    rows = [None if file.shard is None else file.shard.rows for file in files]
    progress = Progress(show=False) if progress is None else progress
    progress.begin("checking", None if None in rows else sum(count or 0 for count in rows))
    report = Report(files=len(files))
    parts = [part for file in files for part in _parts(file)]
    jobs = jobs_for((file.path for file in files), jobs)
    with executor(max(1, min(jobs, len(parts))), "checking") as pool:
        tasks = ((part, schema, examples) for part in parts)
        for part, found in zip(parts, pool.map(_check, tasks), strict=True):
            report.merge(found, examples)
            progress.advance(found.rows, part.bytes)
    report.absent = tuple(_absent(schema, report, allow_absent))
    return report


def _absent(schema: Schema, report: Report, allowed: Collection[str]) -> Iterator[Problem]:
    """Features of which no row has a key that they need."""
    for section, feature in schema.placed if report.whole else ():
        keys = [
            column.key
            for column in columns_in(section, feature)
            if (section, column.key) not in report.present
        ]
        if not keys or feature.name in allowed:
            continue
        named = " and ".join(f"`{key}`" for key in keys)
        yield Problem(
            path=(section, feature.name),
            expected=f"the key{'s' * (len(keys) > 1)} {named} in any row",
            got=f"none in {report.whole:,} row{'s' * (report.whole != 1)}",
            hint=f"{_elsewhere(section, keys, report)}: {_remedy(section, feature, report)}",
        )


def _remedy(section: Section, feature: Feature, report: Report) -> str:
    """What makes a feature fit that no record has."""
    if ((section, feature.name), "missing") not in report.groups:
        return f"--allow-absent {feature.name}"
    return "give it a default" if hasattr(feature, "default") else "leave it out"


def _elsewhere(section: Section, keys: list[str], report: Report) -> str:
    """Where keys stand that no row has in this section, or what is called much like them."""
    for other, found in report.unknown:
        if found in keys and other != section:
            return f"`{found}` is in the {other}; otherwise"
    known = [str(found) for other, found in report.unknown if other == section]
    near = next(filter(None, (nearest(key, known) for key in keys)), "")
    return f"{near} otherwise" if near else "if that is intended"


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Records that are checked together.

    Attributes:
        stretch: of the file; None for all of it.
        last: whether the file ends there.
    """

    file: File
    stretch: RecordRange | None
    last: bool

    @property
    def bytes(self) -> int:
        if self.stretch is None:
            return self.file.path.stat().st_size
        return self.stretch.stop - self.stretch.start


def _parts(file: File) -> Iterator[_Part]:
    found = list(stretches(file.path))
    for index, stretch in enumerate(found, 1):
        yield _Part(file=file, stretch=stretch, last=index == len(found))


def _check(part: _Part, schema: Schema, examples: int, attempt: str) -> Report:
    """What is found in a part, by whichever process."""
    report = Report(files=0)
    _Checking(part.file, schema, report, examples).check(part)
    return report


class _Checking:
    """A file, what its records should be, and the report of what is found."""

    def __init__(self, file: File, schema: Schema, report: Report, examples: int) -> None:
        self._file, self._schema, self._report, self._examples = file, schema, report, examples

    def check(self, part: _Part) -> None:
        number = offset = 0
        for found in tfrecord.salvage(self._file.path, part.stretch):
            if isinstance(found, Damage):
                self._damaged(found)
                if found.stop is None:
                    return
                number, offset = found.number + 1, found.stop
            else:
                self._whole(found)
                number, offset = found.number + len(found), found.offset + int(found.stops[-1]) + FOOTER_BYTES
        if part.last:
            self._ended(number, offset)

    def _whole(self, chunk: Chunk) -> None:
        if self._file.block is None:
            self._records(chunk)
        else:
            self._blocks(chunk)

    def _damaged(self, damage: Damage) -> None:
        """A record that cannot be read, or all from there on."""
        report, rows = self._report, self._file.rows_of(damage.number)
        report.rows += rows
        report.unfit += rows
        self._add("record", rows, damage.number, damage.offset, damage.problem)
        left = self._file.rows_from(damage.number)
        if damage.stop is None and left is not None:
            report.lost += left - rows

    def _ended(self, number: int, offset: int) -> None:
        """At the end of the file, where its manifest says more, or less."""
        shard = self._file.shard
        if shard is not None and number != shard.records:
            problem = Problem(
                where=f"{self._file.path}: {place(number, offset)}",
                expected=f"{shard.records:,} records, as the manifest says",
                got=f"the end of the file after {number:,}",
            )
            lost = self._file.rows_from(number) or 0
            self._report.lost += lost
            self._add("record", max(1, lost), number, offset, problem)

    def _records(self, chunk: Chunk) -> None:
        """A record a row."""
        records = decode(
            chunk.buffer, chunk.starts, chunk.stops, sequence=self._schema.record == "sequence_example"
        )
        self._judge(records, lambda row: (chunk.number + row, chunk.offset_of(row), ""))

    def _blocks(self, chunk: Chunk) -> None:
        """Many rows a record."""
        for index in range(len(chunk.starts)):
            number, offset = chunk.number + index, chunk.offset_of(index)
            try:
                found = rows_of_block(self._schema, chunk.data(index))
            except RecordError as error:
                lost = self._file.rows_of(number)
                self._report.rows += lost
                self._report.unfit += lost
                for problem in error.problems:
                    where = f"{self._file.path}: {place(number, offset)}"
                    self._add("record", lost, number, offset, problem.at(where))
                continue
            self._judge(found, lambda row, at=(number, offset): (*at, f", row {row}"))  # type: ignore[misc]

    def _judge(self, records: RecordBatch, at: Callable[[int], tuple[int, int, str]]) -> None:
        """Rows; `at` tells of each its record, where that begins, and what its place has more."""
        unfit = np.zeros(records.rows, bool)
        for misfit in (
            *_broken(records),
            *_conflicts(self._schema, records),
            *_repeated(records),
            *misfits(self._schema, records),
        ):
            unfit[misfit.rows] = True
            self._count(misfit, at)
        self._report.rows += records.rows
        self._report.whole += records.rows - len(records.broken)
        self._report.unfit += int(unfit.sum())
        self._keys(self._schema.sections[0], records.features)
        self._keys("sequence", records.sequence)

    def _count(self, misfit: Misfit, at: Callable[[int], tuple[int, int, str]]) -> None:
        rows, firsts = np.unique(misfit.rows, return_index=True)
        room = self._report.room(misfit.code, misfit.path, self._examples)
        faults = []
        for row, first in zip(rows[:room].tolist(), firsts[:room].tolist(), strict=True):
            number, offset, more = at(row)
            problem = misfit.problem(first).at(f"{self._file.path}: {place(number, offset)}{more}")
            faults.append(Fault(path=self._file.path, record=number, offset=offset, problem=problem))
        self._report.add(misfit.code, misfit.path, len(rows), faults, misfit.found)

    def _add(self, code: Code, rows: int, number: int, offset: int, problem: Problem) -> None:
        fault = Fault(path=self._file.path, record=number, offset=offset, problem=problem)
        self._report.add(code, (), rows, [fault][: self._report.room(code, (), self._examples)])

    def _keys(
        self, section: Section, found: dict[str, tuple[KeyValues, ...]] | dict[str, tuple[KeySteps, ...]]
    ) -> None:
        """Keys that the schema does not have, and those without values."""
        known = {column.key for column in self._schema.columns(section)} if found else set()
        for key, held in found.items():
            if key not in known:
                rows, kinds = (
                    sum(len(one.rows) for one in held),
                    {kind for one in held for kind in _kinds(one)},
                )
                self._report.add_unknown((section, key), rows, kinds)
                continue
            self._report.present.add((section, key))
            if empty := sum(map(_empty, held)):
                self._report.add_empty((section, key), empty)


def _kinds(held: KeyValues | KeySteps) -> Iterator[str]:
    for one in held.values if isinstance(held, KeySteps) else (held,):
        yield one.kind


def _empty(held: KeyValues | KeySteps) -> int:
    """How many rows have a key and no values."""
    counts = held.counts if isinstance(held, KeySteps) else np.asarray(held.cells.lengths)
    return int((np.broadcast_to(counts, len(held.rows)) == 0).sum())


def _broken(records: RecordBatch) -> Iterator[Misfit]:
    rows = sorted(records.broken)
    if rows:
        yield Misfit("record", (), np.array(rows), lambda place: records.broken[rows[place]])


def _conflicts(schema: Schema, records: RecordBatch) -> Iterator[Misfit]:
    """Rows that TensorFlow refuses, or reads otherwise. It ignores what stands under other keys."""
    if not records.conflicts:
        return
    features: dict[Place, str] = {
        (section, column.key): feature.name
        for section, feature in schema.placed
        for column in columns_in(section, feature)
    }
    for row, conflicts in sorted(records.conflicts.items()):
        for conflict in conflicts:
            path = conflict.problem.path
            if path:
                if path not in features:
                    continue
                path = (path[0], features[path])
            code: Code = "refused" if conflict.refused else "misread"
            problem = replace(conflict.problem, path=path)
            yield Misfit(code, path, np.array([row]), lambda place, one=problem: one)  # type: ignore[misc]


def _repeated(records: RecordBatch) -> Iterator[Misfit]:
    by_key: dict[str, list[int]] = {}
    for row, key in records.repeated:
        by_key.setdefault(key, []).append(row)
    for key, rows in by_key.items():
        problem = Problem(path=("features", key), expected="the key once", got="it twice or more")
        # one sort of fault, whatever the key is: data may have any number of them
        yield Misfit("repeated", (), np.unique(rows), lambda place, one=problem: one)  # type: ignore[misc]
