"""Checks every record of files against a schema, without TensorFlow. Counts violations and keeps examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any

import numpy as np

from recordspec.errors import Path, Problem, counted, nearest, show_path
from recordspec.locations import AnyPath, Location
from recordspec.progress import Progress
from recordspec.schema.feature_set import columns_in
from recordspec.schema.features import Feature
from recordspec.schema.schema import Schema
from recordspec.schema.validate import Code, Violation, of_other_message, other_message, violations
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, Split
from recordspec.store.scan import (
    WORTH_CHECKING,
    FileRange,
    RowBatch,
    UnreadableRecord,
    file_ranges,
    run,
    scan,
)
from recordspec.store.shards import File
from recordspec.tables.feature_names import check_known
from recordspec.wire import framing
from recordspec.wire.arrays import ArrowArray, counts_of, is_list, items_of, storage_of
from recordspec.wire.columns import Place, Section
from recordspec.wire.record_batch import RecordBatch

# The titles of violations in a report.
TITLES: dict[Code, str] = {
    "record": "unreadable",
    "refused": "refused by TensorFlow",
    "misread": "read differently by TensorFlow",
    "missing": "missing",
    "kind": "wrong kind of list",
    "count": "wrong number of values",
    "value": "invalid values",
}
# The most unknown or duplicate keys that are listed: every record may have a new key.
MOST_UNKNOWN = 1000


@dataclass(frozen=True, kw_only=True)
class InvalidRecord:
    """A record that violates the schema, or that cannot be read.

    Attributes:
        path: the path of the file.
        record: the number of the record.
        offset: its first byte; in a compressed file, an offset in the uncompressed data.
        problem: the problem, located by file and record.
    """

    path: Location
    record: int
    offset: int
    problem: Problem

    def dump(self) -> dict[str, Any]:
        """The record as values for JSON and for a table."""
        place = {"file": str(self.path), "record": self.record, "byte": self.offset}
        return place | dump_problem(self.problem)


def dump_problem(problem: Problem) -> dict[str, str]:
    """The problem as values for JSON."""
    texts = {"expected": problem.expected, "got": problem.got, "hint": problem.hint}
    return {"feature": show_path(problem.path), **texts}


@dataclass(kw_only=True)
class ViolationGroup:
    """Violations of one feature with one code.

    Attributes:
        count: the number of rows with such a violation.
        examples: the first such rows.
    """

    code: Code
    path: Path
    count: int = 0
    examples: list[InvalidRecord] = field(default_factory=list)


@dataclass(kw_only=True)
class UnknownKey:
    """A key that the schema does not have.

    Attributes:
        rows: the number of rows that have the key.
        kinds: the kinds of its lists.
    """

    rows: int = 0
    kinds: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class CheckReport:
    """The result of a check.

    Attributes:
        files: the number of files.
        rows: the number of rows found, readable or not; without rows lost after a corrupt length.
        invalid: the number of rows that violate the schema, or cannot be read.
        lost: the number of rows that a manifest counts, and that are missing.
        readable: the number of rows that can be read.
        groups: the violations, by feature and code.
        empty: the number of rows that have a feature without any values, by feature.
        unknown: the keys that the schema does not have. Reading ignores them.
        more: whether there are more unknown keys than `unknown` lists.
        repeated: the number of rows with a duplicate key, by key. Every reader takes the last value.
        present: the keys of the schema that rows have.
        absent: a problem for each feature of the schema with a key that no row has.
        mismatches: the differences because of which the schema cannot read a dataset of another schema.
    """

    files: int = 0
    rows: int = 0
    invalid: int = 0
    lost: int = 0
    readable: int = 0
    groups: dict[tuple[Path, Code], ViolationGroup] = field(default_factory=dict)
    empty: dict[Place, int] = field(default_factory=dict)
    unknown: dict[Place, UnknownKey] = field(default_factory=dict)
    more: bool = False
    repeated: Counter[str] = field(default_factory=Counter)
    present: set[Place] = field(default_factory=set)
    absent: tuple[Problem, ...] = ()
    mismatches: tuple[Problem, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether all rows are valid, and each feature is in at least one row."""
        return not self.groups and not self.absent

    @property
    def examples(self) -> Iterator[InvalidRecord]:
        """The first violations of each group."""
        return (example for group in self.groups.values() for example in group.examples)

    def add(self, code: Code, path: Path, count: int, examples: Iterable[InvalidRecord], most: int) -> None:
        """Counts violations of a feature, and keeps the first examples, at most `most` of a group."""
        group = self.groups.setdefault((path, code), ViolationGroup(code=code, path=path))
        group.count += count
        group.examples += islice(examples, most - len(group.examples))

    def merge(self, other: CheckReport, most: int) -> None:
        """Adds the report of the next records, with at most `most` examples a group."""
        for name in (one.name for one in fields(self)):
            ours, theirs = getattr(self, name), getattr(other, name)
            if isinstance(ours, (bool, set)):
                setattr(self, name, ours | theirs)
            elif isinstance(ours, (int, tuple)):
                setattr(self, name, ours + theirs)
            else:
                self._merge_by_key(name, theirs, most)

    def _merge_by_key(self, name: str, theirs: Any, most: int) -> None:
        """Adds the field `name` of another report, a mapping."""
        if name == "groups":
            for group in theirs.values():
                self.add(group.code, group.path, group.count, group.examples, most)
        elif name == "empty":
            for place, rows in theirs.items():
                self.add_empty(place, rows)
        elif name == "unknown":
            for place, key in theirs.items():
                self.add_unknown(place, key.rows, key.kinds)
        elif name == "repeated":
            self.add_repeated(theirs)
        else:
            raise TypeError(f"{name} has no rule for merging")

    def add_empty(self, place: Place, rows: int) -> None:
        """Counts rows that have a feature without any values."""
        self.empty[place] = self.empty.get(place, 0) + rows

    def add_unknown(self, place: Place, rows: int, kinds: Set[str]) -> None:
        """Counts rows with a key that the schema does not have."""
        if self.has_room(place):
            key = self.unknown.setdefault(place, UnknownKey())
            key.rows += rows
            key.kinds |= kinds

    def has_room(self, place: Place) -> bool:
        """Whether an unknown key can still be listed. If not, sets `more`."""
        room = place in self.unknown or len(self.unknown) < MOST_UNKNOWN
        self.more |= not room
        return room

    def add_repeated(self, rows: Counter[str]) -> None:
        """Counts rows with a duplicate key, by key."""
        for key, count in rows.items():
            if key in self.repeated or len(self.repeated) < MOST_UNKNOWN:
                self.repeated[key] += count

    def dump(self) -> dict[str, Any]:
        """The report as values for JSON."""
        return {
            "files": self.files,
            "rows": self.rows,
            "invalid": self.invalid,
            "lost": self.lost,
            "violations": [
                {
                    "feature": show_path(group.path),
                    "code": group.code,
                    "rows": group.count,
                    "examples": [example.dump() for example in group.examples],
                }
                for group in self.groups.values()
            ],
            "absent": [dump_problem(problem) for problem in self.absent],
            "empty": {show_path(path): rows for path, rows in self.empty.items()},
            "unknown": {
                show_path(path): {"rows": key.rows, "kinds": sorted(key.kinds)}
                for path, key in self.unknown.items()
            },
            "more unknown": self.more,
            "duplicate keys": dict(self.repeated),
        }


def check(
    files: Files,
    schema: Schema | AnyPath | None = None,
    *,
    split: Split = None,
    examples: int = 10,
    allow_absent: Collection[str] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Checks every record of files against a schema.

    Corruption is a part of the report, not raised.

    Args:
        files: a path, a folder of shards, a pattern, or several of these.
        schema: the schema of the records, or its path; by default the schema beside the files.
        split: the split to check; by default all.
        examples, allow_absent, jobs, progress: as for `check_files`.

    Raises StoreError if a file cannot be opened, or without a schema; SpecError for a name in `allow_absent`
    that no feature has.

    Example:
        >>> report = rs.check("data/points", schema)
        >>> report.valid, report.rows
        (True, 20)
    """
    dataset = StoredDataset.asked(files, schema, split, "rs.check")
    wanted = dataset.schema_for("rs.check")
    report = check_files(
        dataset.files, wanted, examples=examples, allow_absent=allow_absent, jobs=jobs, progress=progress
    )
    report.mismatches = dataset.mismatches
    return report


def check_files(
    files: Sequence[File],
    schema: Schema,
    *,
    examples: int = 10,
    allow_absent: Collection[str] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Checks every record of the files of a dataset against a schema.

    A feature with a key that is in no record of any file is reported too, unless there are no records.

    Args:
        files: the files of a `StoredDataset`.
        examples: the largest number of examples returned for each kind of violation; all are counted.
        allow_absent: the names of features that may be in no record.
        jobs: the number of processes; None for one per processor if there is much to read.
        progress: receives the number of rows and bytes.

    Corruption is returned, not raised. Raises StoreError if a file cannot be opened, SpecError for a name in
    `allow_absent` that no feature has.
    """
    check_known(allow_absent, schema.names, "allow_absent")
    rows = [None if file.shard is None else file.shard.rows for file in files]
    progress = Progress(show=False) if progress is None else progress
    progress.begin("checking", None if None in rows else sum(count or 0 for count in rows))
    report = CheckReport(files=len(files))
    whole = [
        FileRange(path=file.path, file=number, blocks=None if file.block is None else schema)
        for number, file in enumerate(files)
    ]
    tasks = [(part, files[part.file], schema, examples) for part in file_ranges(whole)]
    sizes, paths = [part.bytes for part, *_ in tasks], [file.path for file in files]
    results = run(_check_range, tasks, paths, jobs, "checking", WORTH_CHECKING, sizes=sizes)
    for size, result in zip(sizes, results, strict=True):
        report.merge(result, examples)
        progress.advance(result.rows, size)
    report.absent = tuple(_absent(schema, report, allow_absent))
    return report


def _absent(schema: Schema, report: CheckReport, allowed: Collection[str]) -> Iterator[Problem]:
    """Features with a key that is in no row."""
    for place, feature in schema._placed if report.readable else ():
        keys = [
            column.key
            for column in columns_in(place, feature)
            if Place(place.section, column.key) not in report.present
        ]
        if not keys or feature.name in allowed:
            continue
        named = " and ".join(f"`{key}`" for key in keys)
        yield Problem(
            path=(place.section, feature.name),
            expected=f"the key{'s' * (len(keys) > 1)} {named} in any row",
            got=f"none in {counted(report.readable, 'row')}",
            hint=f"{_elsewhere(place.section, keys, report)}: {_remedy(place, feature, report)}",
        )


def _remedy(place: Place, feature: Feature, report: CheckReport) -> str:
    """A hint for a feature that is in no record."""
    if ((place.section, feature.name), "missing") not in report.groups:
        return f"--allow-absent {feature.name}"
    if place.in_steps:
        return "give it `missing: empty`"
    return "give it a default" if feature.traits.takes_default else "leave it out"


def _elsewhere(section: Section, keys: list[str], report: CheckReport) -> str:
    """A hint that names the other section with the missing key, or a similar key."""
    for other, unknown_key in report.unknown:
        if unknown_key in keys and other != section:
            return f"`{unknown_key}` is in the {other}; otherwise"
    known = [str(found) for other, found in report.unknown if other == section]
    near = next(filter(None, (nearest(key, known) for key in keys)), "")
    return f"{near} otherwise" if near else "if that is intended"


def _check_range(part: FileRange, file: File, schema: Schema, examples: int, _attempt: str) -> CheckReport:
    report = CheckReport(files=0)
    _RangeCheck(file, schema, report, examples).check(part)
    return report


class _RangeCheck:
    """Checks rows of a file, and counts their violations in a report."""

    def __init__(self, file: File, schema: Schema, report: CheckReport, examples: int) -> None:
        self._file, self._schema, self._report, self._examples = file, schema, report, examples

    def check(self, part: FileRange) -> None:
        number = offset = 0
        for item in scan(part):
            if isinstance(item, UnreadableRecord):
                self._add_unreadable(item)
            else:
                self._add_rows(item)
            if item.end is None:
                return
            number, offset = item.end
        if part.last:
            self._check_end(number, offset)

    def _add_unreadable(self, unreadable: UnreadableRecord) -> None:
        """Counts a record that cannot be read. If reading cannot continue, counts the rest as lost."""
        rows = self._file.rows_of(unreadable.number)
        self._report.rows += rows
        self._report.invalid += rows
        for problem in unreadable.problems:
            self._add("record", rows, unreadable.number, unreadable.offset, problem)
        left = self._file.rows_from(unreadable.number)
        if unreadable.end is None and left is not None:
            self._report.lost += left - rows

    def _check_end(self, number: int, offset: int) -> None:
        """Compares the number of records in the file with the number in its manifest."""
        shard = self._file.shard
        if shard is not None and number != shard.records:
            problem = Problem(
                where=f"{self._file.path}: {framing.place(number, offset)}",
                expected=f"{shard.records:,} records, as the manifest says",
                got=f"the end of the file after {number:,}",
            )
            lost = self._file.rows_from(number) or 0
            self._report.lost += lost
            self._add("record", max(1, lost), number, offset, problem)

    def _add_rows(self, rows: RowBatch) -> None:
        records = rows.decode(sequence=self._schema.record == "sequence_example")
        invalid = np.zeros(records.rows, bool)
        for violation in violations_in(self._schema, records, rows.data):
            invalid[violation.rows] = True
            self._count(violation, rows)
        self._report.rows += records.rows
        self._report.readable += records.rows - len(records.broken)
        self._report.invalid += int(invalid.sum())
        self._report.add_repeated(Counter(key for _, key in set(records.repeated)))
        self._keys(self._schema._sections[0], records.features)
        self._keys("sequence", records.sequence)
        if rows.block_rows is not None:  # a block that can be unpacked has all features of the schema
            for section in self._schema._sections:
                keys = (column.key for column in self._schema.columns(section))
                self._report.present.update(Place(section, key) for key in keys)

    def _count(self, violation: Violation, batch: RowBatch) -> None:
        rows, firsts = np.unique(violation.rows, return_index=True)
        examples = (
            InvalidRecord(
                path=self._file.path,
                record=int(batch.records[row]),
                offset=int(batch.offsets[row]),
                problem=violation.problem(first).at(batch.place(row)),
            )
            for row, first in zip(rows.tolist(), firsts.tolist(), strict=True)
        )
        self._report.add(violation.code, violation.path, len(rows), examples, self._examples)

    def _add(self, code: Code, rows: int, number: int, offset: int, problem: Problem) -> None:
        example = InvalidRecord(path=self._file.path, record=number, offset=offset, problem=problem)
        self._report.add(code, (), rows, [example], self._examples)

    def _keys(self, section: Section, values: Mapping[str, tuple[ArrowArray, ...]]) -> None:
        """Counts keys that the schema does not have, and keys without values."""
        known = {column.key for column in self._schema.columns(section)} if values else set()
        for key in values:
            place = Place(section, key)
            if key not in known and not self._report.has_room(place):
                continue
            lists = values[key]
            # each array of a feature list has all rows
            rows = lists[:1] if place.in_steps else lists
            if key in known:
                self._report.present.add(place)
                if empty := sum(map(_empty, rows)):
                    self._report.add_empty(place, empty)
            else:
                lists = tuple(map(items_of, lists)) if place.in_steps else lists
                kinds = {storage_of(array) for array in lists if array.null_count < len(array)}
                count = sum(len(array) - array.null_count for array in rows)
                self._report.add_unknown(place, count, kinds)


def _empty(array: ArrowArray) -> int:
    """The number of rows that have a list without values."""
    return int((counts_of(array) == 0).sum()) - int(array.null_count) if is_list(array) else 0


def violations_in(
    schema: Schema, records: RecordBatch, data: Callable[[int], bytes | memoryview]
) -> Iterator[Violation]:
    """All violations of rows. `data` returns the bytes of the row with a number."""
    every = (*_broken(records), *_conflicts(schema, records), *violations(schema, records))
    return _without_other_messages(schema, records, data, every)


def _broken(records: RecordBatch) -> Iterator[Violation]:
    rows = sorted(records.broken)
    if rows:
        yield Violation("record", (), np.array(rows), lambda place: records.broken[rows[place]])


def _without_other_messages(
    schema: Schema,
    records: RecordBatch,
    data: Callable[[int], bytes | memoryview],
    invalid: tuple[Violation, ...],
) -> Iterator[Violation]:
    """The violations. A row that lacks features because it is of the other message has only one."""
    missing = [violation.rows for violation in invalid if violation.code == "missing"]
    wrong = (
        np.intersect1d(of_other_message(schema, records, data), np.concatenate(missing))
        if missing
        else np.array([], np.int64)
    )
    if not len(wrong):
        yield from invalid
        return
    right = np.ones(records.rows, bool)
    right[wrong] = False
    yield Violation("record", (), wrong, lambda _: other_message(schema))
    yield from (left for violation in invalid if len((left := violation.only(right)).rows))


def _conflicts(schema: Schema, records: RecordBatch) -> Iterator[Violation]:
    """The rows that TensorFlow rejects or reads differently, in keys of the schema."""
    if not records.conflicts:
        return
    features: dict[Path, str] = {
        Place(place.section, column.key): feature.name
        for place, feature in schema._placed
        for column in columns_in(place, feature)
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
            yield Violation(code, path, np.array([row]), lambda place, each=problem: each)  # type: ignore[misc]
