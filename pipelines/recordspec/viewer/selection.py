"""Selects rows by a condition or a text, and sorts them by a column. Their numbers are available as they are
found."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec._duckdb import quoted
from recordspec.errors import Problem, SpecError
from recordspec.store.scan import RowBatch, Scanner, UnreadableRecord
from recordspec.tables.column_types import is_list_type
from recordspec.tables.scan_columns import ColumnReader, ScanColumn
from recordspec.tables.sql import Condition
from recordspec.viewer.jobs import JobProgress
from recordspec.viewer.row_pages import NumberedRows, PlacedRows
from recordspec.wire.arrays import Ints, take

# The most matching rows, and the most bytes of sort keys. Beyond either limit, the selection ends and says
# so.
_MOST_ROWS, _MOST_BYTES = 1 << 24, 1 << 28
# The most skipped rows, after which the selection ends: a row whose condition cannot be evaluated takes 1 ms.
_MOST_SKIPPED = 10_000
# The bytes of rows that are evaluated together.
_GROUP_BYTES = 1 << 24
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A predicate on rows, and their order.

    Attributes:
        where: a condition in SQL; empty for all rows.
        text: a text that a value contains, whatever the case, or a number that a value equals; empty for all
            rows.
        sort: the column by which rows are sorted; empty for the order of the files. Bytes are sorted by size,
            lists by length, and missing values come last.
        descending: whether the largest values come first.
    """

    where: str = ""
    text: str = ""
    sort: str = ""
    descending: bool = False

    def __bool__(self) -> bool:
        return bool(self.where.strip() or self.text or self.sort)


class Selection:
    """The selected rows.

    Args:
        choice: the predicate and the order.
        rows: all rows.
        scanner, columns: the scanner and the columns of the files.

    Attributes:
        ends: the reason why the search ended before the last row; empty if it did not.
        skipped: the number of rows that cannot be read, or for which the condition cannot be evaluated.

    Raises SpecError for an invalid condition or an unknown column.
    """

    def __init__(
        self, choice: Choice, rows: NumberedRows, scanner: Scanner, columns: Mapping[str, ScanColumn]
    ) -> None:
        self._choice, self._rows = choice, rows
        self._condition = _condition(choice, scanner, columns)
        if choice.sort and choice.sort not in columns:
            raise SpecError(Problem(path=("sort",), expected="a column", got=f"`{choice.sort}`"))
        self._key = ColumnReader([columns[choice.sort]], scanner.dataset.schema) if choice.sort else None
        self._keys: list[Any] = []
        self._numbers, self._count = np.zeros(1 << 10, np.int64), 0
        self._is_ordered = not choice.sort
        self._lock = threading.Lock()
        self.ends, self.skipped = "", 0

    def __len__(self) -> int:
        """The number of selected rows so far; 0 until they are sorted."""
        return self._count if self._is_ordered else 0

    def numbers(self, first: int, count: int) -> list[int]:
        """The numbers of at most `count` selected rows from the index `first` on."""
        with self._lock:
            chosen: list[int] = self._numbers[first : min(first + count, len(self))].tolist()
        return chosen

    def find(self, progress: JobProgress) -> None:
        """Searches all rows."""
        try:
            self._find(progress)
        finally:
            self._keys = []

    def _find(self, progress: JobProgress) -> None:
        progress.begin("searching", self._rows.total)
        if self._condition is not None:
            progress.interrupt = self._condition.interrupt
        size = 0
        for group in _together(self._rows.following(0, progress)):
            for numbers, keys in self._of_group(group):
                size += 0 if keys is None else keys.nbytes
                if self._count + len(numbers) > _MOST_ROWS or size > _MOST_BYTES:
                    self.ends = "too many rows to keep: only the first rows are shown"
                    break
                self._add(numbers, keys)
            if self.skipped > _MOST_SKIPPED:
                self.ends = "too many rows cannot be read, or have no value: only the first rows are shown"
            if self.ends:
                break
        self._sort()

    def _of_group(self, group: list[PlacedRows]) -> Iterator[tuple[Ints, Any]]:
        """The result of `_matches` for a group. If all rows are readable, they are evaluated in one call,
        since a call of DuckDB takes 1 ms."""
        batches = [placed.item for placed in group if isinstance(placed.item, RowBatch)]
        if self._condition is not None and self._key is None and len(batches) == len(group) > 1:
            matches, error = self._condition.matches(batches)
            if error is None:
                yield np.concatenate([p.first + rows for p, rows in zip(group, matches, strict=True)]), None
                return
        for placed in group:
            yield from self._matches(placed.item, placed.first)

    def _matches(self, item: RowBatch | UnreadableRecord, first: int) -> Iterator[tuple[Ints, Any]]:
        """The numbers of matching rows, and their sort keys."""
        if isinstance(item, UnreadableRecord):
            self.skipped += 1
            return
        while len(item) and self.skipped <= _MOST_SKIPPED:
            rows, stop = self._evaluated(item)
            keys = None
            if self._key is not None:
                made, error = self._key.made(item)
                stop = stop if error is None else min(stop, error.row or 0)
                rows = rows[rows < stop]
                if len(rows):
                    keys = take(_order_of(arrow().Table.from_batches(made)[0]), rows)
            yield first + rows, keys
            if stop == len(item):
                return
            self.skipped += 1
            item, first = item.take(np.arange(stop + 1, len(item))), first + stop + 1

    def _evaluated(self, batch: RowBatch) -> tuple[Ints, int]:
        """The matching rows up to the first row for which the condition cannot be evaluated, and the number
        of this row."""
        if self._condition is None:
            return np.arange(len(batch)), len(batch)
        (rows,), error = self._condition.matches([batch])
        return rows, len(batch) if error is None else error.row or 0

    def _add(self, numbers: Ints, keys: Any) -> None:
        if keys is not None:
            self._keys.append(keys)
        with self._lock:
            stop = self._count + len(numbers)
            if stop > len(self._numbers):
                self._numbers = np.resize(self._numbers, max(stop, 2 * len(self._numbers)))
            self._numbers[self._count : stop] = numbers
            self._count = stop

    def _sort(self) -> None:
        if self._is_ordered:
            return
        keys, self._keys = self._keys, []
        if keys:
            order = "descending" if self._choice.descending else "ascending"
            table = arrow().table({"key": arrow().chunked_array(keys), "row": self._numbers[: self._count]})
            by = [("key", order), ("row", "ascending")]
            self._numbers = arrow().compute.sort_indices(table, sort_keys=by).to_numpy()
            self._numbers = table["row"].to_numpy()[self._numbers]
        self._is_ordered = True


def _together(rows: Iterator[PlacedRows]) -> Iterator[list[PlacedRows]]:
    """Groups rows. The first group has one batch, and each next group twice as many, up to _GROUP_BYTES."""
    group, size, most = list[PlacedRows](), 0, 1
    for placed in rows:
        group.append(placed)
        size += placed.item.bytes if isinstance(placed.item, RowBatch) else 0
        if len(group) >= most or size >= _GROUP_BYTES:
            yield group
            group, size, most = [], 0, 2 * most
    if group:
        yield group


def _condition(choice: Choice, scanner: Scanner, columns: Mapping[str, ScanColumn]) -> Condition | None:
    parts = []
    if choice.where.strip():
        Condition(choice.where, scanner)  # must be valid by itself, not only joined with the text
        parts.append(f"({choice.where}\n)")
    if choice.text:
        text = choice.text.replace("'", "''")
        tests = [_contains(quoted(name), column.type, text) for name, column in columns.items()]
        parts.append(f"({' OR '.join(f'coalesce({test}, false)' for test in tests if test) or 'false'})")
    return Condition(" AND ".join(parts), scanner) if parts else None


def _contains(value: str, kind: Any, text: str) -> str | None:
    """The condition in SQL that a value, or any value in its lists and fields, contains a text; None for
    types without text.

    Args:
        value: the name of the value in SQL.
        kind: the Arrow type of the value.
        text: the text, escaped for SQL.
    """
    types = arrow().types
    if is_list_type(kind):
        item = f"item{value.count('item')}"  # a new name for each level of nested lists
        test = _contains(item, kind.value_type, text)
        is_number = types.is_integer(kind.value_type) or types.is_floating(kind.value_type)
        return None if test is None or is_number else f"len([{item} FOR {item} IN {value} IF {test}]) > 0"
    if types.is_struct(kind):
        tests = [_contains(f"{value}.{quoted(field.name)}", field.type, text) for field in kind]
        return " OR ".join(f"coalesce({test}, false)" for test in tests if test) or None
    if types.is_floating(kind) and _NUMBER.fullmatch(text):
        return f"({value} = {text} OR CAST({value} AS VARCHAR) = '{text}')"  # for 12, and for 0.1
    if types.is_integer(kind) or types.is_temporal(kind):
        return f"CAST({value} AS VARCHAR) = '{text}'"
    if types.is_large_string(kind) or types.is_string(kind) or types.is_dictionary(kind):
        return f"contains(lower(CAST({value} AS VARCHAR)), lower('{text}'))"
    return None


def _order_of(column: Any) -> Any:
    """The sort keys of values: the values, or the sizes of bytes and lists."""
    types, compute, kind = arrow().types, arrow().compute, column.type
    if types.is_dictionary(kind) or types.is_struct(kind):
        column = column.cast("large_string") if types.is_dictionary(kind) else compute.is_null(column)
    elif types.is_binary(kind) or types.is_large_binary(kind):
        column = compute.binary_length(column)
    elif is_list_type(kind):
        column = compute.list_value_length(column)
    return arrow().concat_arrays(column.chunks)
