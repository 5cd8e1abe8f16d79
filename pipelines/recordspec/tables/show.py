"""Single records of files for a person or a script: the first, one by its number, or a random sample."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recordspec.errors import Problem, RecordError, counted
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files
from recordspec.store.scan import A_RECORD, RowBatch, Scanner
from recordspec.tables.cells import Cell, CellKind, cell_of_listed, cell_of_values, plain_numbers
from recordspec.tables.feature_names import FeatureKey
from recordspec.tables.query import Query
from recordspec.wire import proto
from recordspec.wire.proto import Entries, Listed

if TYPE_CHECKING:
    from recordspec.schema.dates import DateUnit

# `short` cuts what is long, `full` does not, and `raw` does not describe bytes either.
Style = Literal["short", "full", "raw"]

# Values of a list, which has a line of its own; of more, their number and range are shown.
_MOST_VALUES = 16
_WORDS = {"int64": "integer", "float32": "float", "bytes": "bytes value", "date": "date"}

Shown = dict[str, Any]


class RecordViewer:
    """Records of files, each as a dict.

    `file` is its path, and `record` its number there (`row` for a row of a block); `features` has the
    values by name, and `sequence` the lists of steps of a SequenceExample. A list of one value is that value,
    bytes that are not UTF-8 are described in `<>`, and long values are truncated, depending on `style`.
    `repeated` has the duplicate keys, of which the last counts. A record that is not an Example has
    `problem`, which says so, and its `bytes` instead. `tensorflow` has what TensorFlow rejects in a record,
    or reads differently.

    Raises SpecError for unknown names, RecordError at a corrupt record, StoreError without files.
    """

    def __init__(self, files: Files, query: Query | None = None, style: Style = "short") -> None:
        query = query or Query()
        self._scanner = Scanner(StoredDataset.of(files, query.schema))
        # what lies beside the files names features and classes as a given schema does
        self._query = replace(query, schema=self._scanner.dataset.schema, stored=True)
        self._style: Style = style
        if self._query.columns or self._query.where is not None:
            self._query.check(self._scanner)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the files, to print beside the records."""
        first = self._scanner.dataset.paths[0]
        if not self._scanner.dataset.has_blocks(first) or self._scanner.blocks_of(first) is not None:
            return ()
        return ("each record is a block of rows; a schema beside the shards, or --schema, unpacks them",)

    def head(self, count: int) -> Iterator[Shown]:
        """Yields the first records that match the query."""
        shown = (
            self.shown(batch, row)
            for batch in self._query.batches(self._scanner)
            for row in range(len(batch))
        )
        return islice(shown, count)

    def show(self, number: int) -> Shown:
        """Returns a record by its number, counted from 0 across all files; SpecError if it is too large."""
        (batch,) = self._scanner.pick([number])
        return self.shown(batch, 0)

    def sample(self, count: int, seed: int) -> Iterator[Shown]:
        """A random sample of the records that match the query, in their order, each equally likely.

        The sample is a function of the seed and of the number of records.
        """
        total = sum(map(self._scanner.count, self._scanner.dataset.paths))
        known = range(total) if self._query.where is None else array("q", self._matching())
        numbers = random.Random(seed).sample(known, min(count, len(known)))
        for batch in self._scanner.pick(sorted(numbers)):
            yield self.shown(batch, 0)

    def _matching(self) -> Iterator[int]:
        """The numbers of all records that match the query, counted through all the files."""
        starts, first = {}, 0
        for path in self._scanner.dataset.paths:
            starts[path] = first
            first += self._scanner.count(path)
        for batch in self._query.batches(self._scanner):
            yield from (batch.numbers + starts[batch.path]).tolist()

    def shown(self, batch: RowBatch, row: int) -> Shown:
        """One of the rows."""
        number = "record" if batch.block_rows is None else "row"
        return {"file": str(batch.path), number: int(batch.numbers[row])} | self._content(batch.data(row))

    def _content(self, data: bytes | memoryview) -> Shown:
        try:
            entries = proto.entries(data, sequence=None)
        except RecordError as error:
            return self._other(data, replace(error.problems[0], expected=A_RECORD))
        if entries.unknown_fields:
            got = f"another message of {counted(len(data), 'byte')}"
            shown = self._other(data, Problem(expected=A_RECORD, got=got))
        else:
            shown = self._example(entries)
        if entries.conflicts:
            shown["tensorflow"] = [str(conflict.problem) for conflict in entries.conflicts]
        return shown

    def _example(self, entries: Entries) -> Shown:
        context, lists = entries.features, entries.lists
        values = {(False, key): listed for key, listed in context}
        steps = {(True, key): many for key, many in lists}
        style, of_key = self._style, self._words
        shown: Shown = {
            "features": {
                name: shown_list(values[key], style, *of_key(key)) for name, key in self._names(values)
            }
        }
        if steps:
            shown["sequence"] = {
                name: shown_steps(steps[key], style, *of_key(key)) for name, key in self._names(steps)
            }
        if len(context) + len(lists) > len(values) + len(steps):
            shown["repeated"] = sorted({*_repeated(context), *_repeated(lists)})
        return shown

    def _words(self, key: FeatureKey) -> tuple[tuple[str, ...], DateUnit | None]:
        """The names of the classes, and the unit of dates, that the integers under a key stand for."""
        names = self._query.names
        return names.classes.get(key, ()), names.dates.get(key)

    def _names(self, keys: Iterable[FeatureKey]) -> list[tuple[str, FeatureKey]]:
        """The names to show and their keys, in the order of the query."""
        names = self._query.names
        if not self._query.columns:
            return sorted((names.name(key), key) for key in keys)
        by_word = {word: key for key in keys for word in names.words(key)}
        return [(names.name(by_word[word]), by_word[word]) for word in self._query.columns if word in by_word]

    def _other(self, data: bytes | memoryview, problem: Problem) -> Shown:
        """A record that is neither an Example nor a SequenceExample."""
        return {"problem": str(problem), "bytes": shown_list(Listed("bytes", [bytes(data)]), self._style)}


def _repeated(entries: Iterable[tuple[str, Any]]) -> list[str]:
    counts = Counter(key for key, _ in entries)
    return [key for key, count in counts.items() if count > 1]


def shown_steps(
    steps: list[Listed], style: Style, classes: tuple[str, ...] = (), date: DateUnit | None = None
) -> Any:
    """The lists of a feature list."""
    if style == "short" and len(steps) > _MOST_VALUES:
        return f"<{len(steps):,} steps: {_all_together(steps, classes, date)}>"
    return [shown_list(step, style, classes, date) for step in steps]


def shown_list(
    listed: Listed, style: Style, classes: tuple[str, ...] = (), date: DateUnit | None = None
) -> Any:
    """A list of a Feature: the value where it is one, None if there is no list."""
    if style == "raw":
        return None if listed.kind == "none" else _raw(listed)
    return shown(cell_of_listed(listed, classes, date), style)


def _raw(listed: Listed) -> Any:
    values = plain_numbers(np.array(listed.values, np.float32)) if listed.kind == "float32" else listed.values
    return values[0] if len(values) == 1 else values


def shown(cell: Cell, style: Style) -> Any:
    """A cell as text, a number, or a list of them."""
    return _DRAWN[cell.kind](cell, style)


def _text(cell: Cell, style: Style) -> str:
    return cell.short_text if style == "short" else str(cell.value)


def _description(cell: Cell, style: Style) -> str:
    return f"<{cell.description}>"


def _numbers(cell: Cell, style: Style) -> Any:
    is_long = style == "short" and len(cell.value) > _MOST_VALUES
    return f"<{_summary(cell)}>" if is_long else plain_numbers(cell.value)


def _list(cell: Cell, style: Style) -> Any:
    is_long = style == "short" and (cell.length or 0) > _MOST_VALUES
    return f"<{_summary(cell)}>" if is_long else [shown(item, style) for item in cell.items]


_DRAWN: dict[CellKind, Callable[[Cell, Style], Any]] = {
    "missing": lambda cell, style: None,
    "number": lambda cell, style: cell.value,
    "label": lambda cell, style: cell.value,
    "text": _text,
    "bytes": _description,
    "image": _description,
    "audio": _description,
    "numbers": _numbers,
    "list": _list,
    "fields": lambda cell, style: {
        name: shown(item, style) for name, item in zip(cell.names, cell.items, strict=True)
    },
}


def _all_together(steps: list[Listed], classes: tuple[str, ...], date: DateUnit | None) -> str:
    """The values of steps of one kind; of several, how many."""
    kinds = {kind for kind, values in steps if values}
    if len(kinds) != 1:
        return f"{sum(len(values) for _, values in steps):,} values"
    kind = kinds.pop()
    values = Listed(kind, [value for _, values in steps for value in values])
    return _summary(cell_of_values(values, classes, date))


def _summary(cell: Cell) -> str:
    """A list in words: `784 floats in [-0.5, 0.5]`."""
    count = counted(cell.length or 0, _WORDS[cell.form])
    if cell.kind == "list":
        return f"{count}, the first {shown(next(iter(cell.items)), 'short')!r}"
    numbers = cell.value
    whole = numbers[~np.isnan(numbers)]
    nan = f", {len(numbers) - len(whole):,} NaN" if len(whole) < len(numbers) else ""
    if not len(whole):
        return f"{len(numbers):,} NaN"
    low, high = plain_numbers(np.array([whole.min(), whole.max()]))
    return f"{count} in [{low}, {high}]{nan}"
