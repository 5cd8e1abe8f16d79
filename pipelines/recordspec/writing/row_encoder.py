"""Validates and encodes rows in batches; computes the key hash, the split and the class of each row.

`encode_part` is a task: a function of values that can be pickled. It writes files with the attempt in their
names, and returns a description of them. A task may run twice, or die half-way: only its caller takes the
files over.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from recordspec.errors import RecordError
from recordspec.locations import sync_file
from recordspec.schema.features import Feature
from recordspec.schema.media import images
from recordspec.schema.schema import Schema
from recordspec.store.manifest import LabelCounts
from recordspec.wire.arrays import Ints
from recordspec.wire.hashes import Words
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.division import Division
from recordspec.writing.encoded_rows import ColumnRows, EncodedRows
from recordspec.writing.failures import disk_errors, source_errors
from recordspec.writing.label_counts import ClassCounter
from recordspec.writing.rejects import Rejects, add_line, lines
from recordspec.writing.sorter import Run, SortedRun, Sorter
from recordspec.writing.sources.base import Columns, SourcePart
from recordspec.writing.sources.rows import not_a_mapping, row_batches

# The most rows encoded at once; fewer if rows are large. Forty narrow columns were encoded at 0.5, 1.1 and
# 1.7 million rows/s with 512, 2048 and 8192 rows at once.
_MOST_ROWS = 8192
_BYTES_AT_ONCE = 16 << 20
_FIRST_ROWS = 64  # until the size of a row is known
_FEWEST_ROWS = 16  # after an invalid row

# The number of a row has the number of its part above these bits, and its place in the part below.
PART_BITS = 40
# The largest block that glibc's allocator keeps for reuse after a block of this size was freed (mallopt(3),
# M_MMAP_THRESHOLD). Otherwise each large array causes its page faults again.
_KEPT_BLOCK = (32 << 20) - 8192

PlaceOfRow = Callable[[int], str]
# Receives the number of finished rows, and the bytes of their records.
Advance = Callable[[int, int], None]


def no_progress(rows: int, size: int) -> None:
    """Shows nothing."""


class Sink(Protocol):
    """The receiver of encoded rows."""

    def add(self, rows: EncodedRows, numbers: Words, hashed: Words | None, splits: Ints | None) -> None:
        """Adds rows.

        Args:
            rows: the rows.
            numbers: the number of each row, uint64 `[n]`.
            hashed: the hashes of the keys, uint64 `[n, 2]`; None if the order needs none.
            splits: the index of each row's split in the encoder's `splits`; None if all are in the first.
        """


class Encoder:
    """Encodes rows in batches. Valid rows go to the sink; invalid rows go to the rejects, or are an error.

    Args:
        rejects: receives the lines of `rejects.jsonl`, which number the rows from 0.
        check: receives, after each invalid row, the number of invalid rows and the first reasons; it may
            raise.

    Attributes:
        rows: the number of encoded rows.
        classes: counts the classes of the encoded rows.
    """

    def __init__(
        self,
        plan: BuildPlan,
        sink: Sink,
        rejects: Callable[[str], None],
        check: Callable[[int, list[str]], None] | None = None,
    ) -> None:
        self.rows = 0
        self.classes = ClassCounter(plan.checked_schema)
        self._plan, self._sink = plan, sink
        self._rejects = None if plan.options.quarantine is None else Rejects(rejects, check)
        self._division = Division(plan.options)
        self._waiting = WaitingRows(plan.checked_schema)
        self._part = PartRows()
        np.empty(_KEPT_BLOCK, np.uint8)

    def begin(self, part: int, place: PlaceOfRow) -> None:
        """Begins another part of the rows; `place` is the location for messages of a row, counted from 0."""
        self.flush()
        self._part = PartRows(part, place, self.seen)

    @property
    def splits(self) -> list[str]:
        """The names of the splits; if a column names the splits, the names found so far."""
        return self._division.splits

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return 0 if self._rejects is None else self._rejects.count

    @property
    def reasons(self) -> tuple[str, ...]:
        """The locations of the first rejected rows, each with its first problem."""
        return () if self._rejects is None else tuple(self._rejects.reasons)

    @property
    def seen(self) -> int:
        """The number of rows encoded or rejected."""
        return self.rows + self.rejected

    @property
    def taken(self) -> int:
        """The number of rows given, including rows that wait for their batch."""
        return self.seen + len(self._waiting.rows)

    def add_row(self, row: Any) -> None:
        """Adds a row, a mapping. It is validated when its batch is encoded."""
        if self._rejects is None and not isinstance(row, Mapping):
            raise self._placed(not_a_mapping(row, len(self._waiting.rows)))
        self._waiting.add(row)
        if self._waiting.is_full:
            self.flush()

    def flush(self) -> None:
        """Encodes the rows that wait for their batch."""
        for batch in row_batches(self._waiting.take(), self._plan.checked_schema, self._plan.options.columns):
            self.add(batch)

    def add(self, batch: Columns | RecordError, advance: Advance = no_progress) -> None:
        """Adds a batch, or the error of an invalid row.

        Raises RecordError for the first invalid row, unless invalid rows are rejected; and the errors of
        `check`.
        """
        if isinstance(batch, RecordError):
            self._reject(batch)
            return
        start = 0
        while start < batch.rows:
            stop = min(start + self._waiting.rows_at_once, batch.rows)
            start += self._encode_valid(batch.part(start, stop), advance)

    def _encode_valid(self, batch: Columns, advance: Advance) -> int:
        """Encodes rows up to the first invalid one, and rejects that. Returns the number of rows consumed."""
        try:
            self._encode(batch, advance)
        except RecordError as error:
            if error.row is None:
                raise
            if self._rejects is None:
                raise self._placed(error) from None
            valid = error.row
            # the rows before it passed this check; a later check may still fail for them
            self.add(batch.part(0, valid), advance)
            self._reject(RecordError(error.problems, 0))
            advance(1, 0)
            self._waiting.had_invalid(valid)
            return valid + 1
        return batch.rows

    def _reject(self, error: RecordError) -> None:
        """Rejects the next row."""
        if self._rejects is None:
            raise self._placed(RecordError(error.problems, 0)) from None
        problems = [str(problem.at("")) for problem in error.problems]
        with disk_errors(self._plan.name):
            self._rejects.add(self.seen, self._part.place(self.seen - self._part.before), problems)

    def _placed(self, error: RecordError) -> RecordError:
        """Converts an error that names a row by its number in a batch to one that names the row by its place
        in the part, and has its number among all rows."""
        row = self.seen + (error.row or 0)
        return RecordError(error.at(self._part.place(row - self._part.before)).problems, row)

    def _encode(self, batch: Columns, advance: Advance) -> None:
        schema, extra = self._plan.checked_schema, self._plan.options.columns
        values = {
            name: one for name, one in batch.values.items() if name in schema.names or name not in extra
        }
        rows = ColumnRows.encode(schema, values, batch.rows)
        hashed, splits = self._division.of(batch.values, rows)
        first = self._part.number_of(self.seen)
        with disk_errors(self._plan.name):
            self._sink.add(rows, np.arange(first, first + batch.rows, dtype=np.uint64), hashed, splits)
        self.classes.add(rows.sections, splits)
        self.rows += batch.rows
        self._waiting.had_valid(batch.rows, rows.bytes)
        advance(batch.rows, rows.bytes)


@dataclass(frozen=True)
class PartRows:
    """The part of a source that is being encoded.

    Attributes:
        part: the number of the part.
        place: the location of a row for messages, counted from 0 within the part.
        before: the number of rows before the part.
    """

    part: int = 0
    place: PlaceOfRow = "row {}".format
    before: int = 0

    def number_of(self, row: int) -> int:
        """The number of a row, with the bits of its part; `row` is counted across all parts."""
        return (self.part << PART_BITS) + row - self.before


class WaitingRows:
    """Rows added one by one, which wait until there are enough for a batch.

    Attributes:
        rows: the rows.
        rows_at_once: the number of rows in the next batch.
    """

    def __init__(self, schema: Schema) -> None:
        self._changeable = {name for name, feature in schema.names.items() if not _is_immutable(feature)}
        self.rows: list[Any] = []
        self.rows_at_once = _FIRST_ROWS

    def add(self, row: Any) -> None:
        """Adds a row. The caller may change its values afterwards."""
        self.rows.append(_owned_row(row, self._changeable) if isinstance(row, Mapping) else row)

    def take(self) -> list[Any]:
        """Removes and returns the rows."""
        rows, self.rows = self.rows, []
        return rows

    @property
    def is_full(self) -> bool:
        return len(self.rows) >= self.rows_at_once

    def had_valid(self, rows: int, size: int) -> None:
        """Enlarges the next batch, up to some megabytes, after `rows` rows of `size` bytes were encoded."""
        most = min(_MOST_ROWS, _BYTES_AT_ONCE * rows // (size + 1))
        self.rows_at_once = max(1, min(most, 2 * self.rows_at_once))

    def had_invalid(self, valid: int) -> None:
        """Shrinks the next batch after a row was invalid that followed `valid` valid ones."""
        # invalid rows are often close together: try as many rows as were valid, then more again
        self.rows_at_once = max(_FEWEST_ROWS, valid)


def _owned_row(row: Mapping[str, Any], changeable: set[str]) -> dict[str, Any]:
    """Copies a row: the caller may reuse the same dict, list or array for the next row."""
    owned = dict(row)
    for name in changeable & owned.keys():
        owned[name] = _owned(owned[name])
    return owned


def _owned(value: Any) -> Any:
    try:
        return _copied(value)
    except Exception:  # a PIL image of a truncated file, or a list of itself: encoding it reports the error
        return value


def _copied(value: Any) -> Any:
    if value is None or isinstance(value, (str, bytes, os.PathLike)):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.copy()
    if type(value) is list:
        numbers = bool(value) and isinstance(value[0], (int, float, np.generic))
        return value.copy() if numbers else [_copied(item) for item in value]
    if type(value) is tuple:
        return tuple(map(_copied, value))
    if type(value) is dict:
        return {name: _copied(one) for name, one in value.items()}
    if isinstance(value, memoryview):
        return bytes(value) if value.format == "B" and value.ndim == 1 else np.array(value)
    return images.copied(value) if images.is_image(value) else copy.deepcopy(value)


def _is_immutable(feature: Feature) -> bool:
    """Whether the value of a feature is one number or text, which the caller cannot change in place."""
    kind = feature.value_type
    return kind.shape == () and (kind.is_number or kind.item in ("text", "class"))


@dataclass(frozen=True, kw_only=True)
class EncodedPart:
    """An encoded part of a source.

    Attributes:
        rows: the number of valid rows.
        rejected: the number of invalid rows.
        runs: the runs of the valid rows.
        rejects: the name of the file that lists the invalid rows.
        label_counts: the classes of the valid rows; empty if they are not counted.
        reasons: the locations of the first invalid rows, each with its first problem.
    """

    rows: int
    rejected: int
    runs: tuple[Run, ...]
    rejects: str
    label_counts: LabelCounts
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, encoder: Encoder, runs: tuple[Run, ...], rejects: str) -> EncodedPart:
        """The part encoded by an encoder, with its files."""
        return cls(
            rows=encoder.rows,
            rejected=encoder.rejected,
            runs=runs,
            rejects=rejects,
            label_counts=encoder.classes.by_split(encoder.splits),
            reasons=encoder.reasons,
        )

    @property
    def seen(self) -> int:
        """The number of rows, valid or not."""
        return self.rows + self.rejected

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files of the part."""
        return (self.rejects, *(name for run in self._stored for name in (run.name, run.index_name)))

    @property
    def bytes(self) -> int:
        """The bytes of the records on disk."""
        return sum(run.bytes for run in self._stored)

    def is_whole(self, folder: Path) -> bool:
        """Whether all files of the part exist and are complete."""
        listed = sum(1 for _ in lines(folder / self.rejects))
        return listed == self.rejected and all(run.is_whole(folder) for run in self._stored)

    @property
    def _stored(self) -> list[SortedRun]:
        return [run for run in self.runs if isinstance(run, SortedRun)]


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

    def reject_files(self, folder: Path) -> list[tuple[Path, int]]:
        """The file of the invalid rows of each part, and the number of rows before the part."""
        return [(folder / part.rejects, before) for part, before in zip(self.all, self.before, strict=False)]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs of all valid rows."""
        return tuple(run for part in self.all for run in part.runs)


def encode_part(
    plan: BuildPlan, number: int, part: SourcePart, attempt: str, advance: Advance = no_progress
) -> EncodedPart:
    """Encodes part `number` of a source. Raises RecordError, WriteError, StoreError."""
    stem = f"part-{number:05d}.{attempt}"
    rejects = f"{stem}.rejects"
    sink = Sorter(plan, stem)
    encoder = Encoder(plan, sink, partial(add_line, plan.folder / rejects))
    encoder.begin(number, part.place)
    for batch in source_errors(part.batches(plan.checked_schema, plan.options.columns), plan.name):
        encoder.add(batch, advance)
    with disk_errors(plan.name):
        runs = sink.finish(encoder.splits)
        if plan.durable:
            sync_file(plan.folder / rejects)
    return EncodedPart.of(encoder, runs, rejects)
