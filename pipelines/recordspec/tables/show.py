"""Single records of files for a person or a script: the first, one by its number, or a random sample."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Literal

import numpy as np

from recordspec.errors import Problem, RecordError, counted
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files
from recordspec.store.scan import A_RECORD, RowBatch, Scanner
from recordspec.tables.column_types import shortest
from recordspec.tables.feature_names import FeatureKey, with_class_names
from recordspec.tables.media_headers import describe
from recordspec.tables.query import Query
from recordspec.wire import proto
from recordspec.wire.columns import Kind
from recordspec.wire.file_types import printable
from recordspec.wire.proto import Entries, Listed

# `short` cuts what is long, `full` does not, and `raw` does not describe bytes either.
Style = Literal["short", "full", "raw"]

_LONGEST_TEXT = 200
_MOST_VALUES = 16
_WORDS = {"int64": "integer", "float32": "float", "bytes": "bytes value"}

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
        self._scanner = Scanner(StoredDataset.of(files, query.spec))
        # what lies beside the files names features and classes as a given spec does
        self._query = replace(query, spec=self._scanner.dataset.schema, stored=True)
        self._style: Style = style
        if self._query.columns or self._query.where is not None:
            self._query.check(self._scanner)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the files, to print beside the records."""
        first = self._scanner.dataset.paths[0]
        if not self._scanner.dataset.has_blocks(first) or self._scanner.blocks_of(first) is not None:
            return ()
        return ("each record is a block of rows; a schema beside the shards, or --spec, unpacks them",)

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
        values = {(False, key): self._labelled((False, key), listed) for key, listed in context}
        steps = {(True, key): [self._labelled((True, key), part) for part in many] for key, many in lists}
        shown: Shown = {
            "features": {name: shown_list(values[key], self._style) for name, key in self._names(values)}
        }
        if steps:
            shown["sequence"] = {
                name: shown_steps(steps[key], self._style) for name, key in self._names(steps)
            }
        if len(context) + len(lists) > len(values) + len(steps):
            shown["repeated"] = sorted({*_repeated(context), *_repeated(lists)})
        return shown

    def _names(self, keys: Iterable[FeatureKey]) -> list[tuple[str, FeatureKey]]:
        """The names to show and their keys, in the order of the query."""
        names = self._query.names
        if not self._query.columns:
            return sorted((names.name(key), key) for key in keys)
        by_word = {word: key for key in keys for word in names.words(key)}
        return [(names.name(by_word[word]), by_word[word]) for word in self._query.columns if word in by_word]

    def _labelled(self, key: FeatureKey, listed: Listed) -> Listed:
        classes = self._query.names.classes.get(key)
        if classes is None or listed.kind != "int64" or self._style == "raw":
            return listed
        return Listed(listed.kind, with_class_names(listed.values, classes))

    def _other(self, data: bytes | memoryview, problem: Problem) -> Shown:
        """A record that is neither an Example nor a SequenceExample."""
        return {"problem": str(problem), "bytes": shown_value(bytes(data), self._style)}


def _repeated(entries: Iterable[tuple[str, Any]]) -> list[str]:
    counts = Counter(key for key, _ in entries)
    return [key for key, count in counts.items() if count > 1]


def shown_list(listed: Listed, style: Style) -> Any:
    """A list of a Feature: the value where it is one, None if there is no list."""
    kind, values = listed
    if kind == "none":
        return None
    if len(values) == 1:
        return shown_values(kind, values, style)[0]
    if style == "short" and len(values) > _MOST_VALUES:
        return f"<{_counted(kind, values)}>"
    return shown_values(kind, values, style)


def shown_steps(steps: list[Listed], style: Style) -> Any:
    """The lists of a feature list."""
    if style == "short" and len(steps) > _MOST_VALUES:
        return f"<{len(steps):,} steps: {_all_together(steps)}>"
    return [shown_list(step, style) for step in steps]


def shown_values(kind: Kind, values: list[Any], style: Style) -> list[Any]:
    if kind == "float32":
        return list(shortest(np.array(values, np.float32)))
    return [shown_value(value, style) for value in values]


def shown_value(value: Any, style: Style) -> Any:
    """A number or the name of a label unchanged; bytes as text if they are UTF-8, else a description."""
    if not isinstance(value, bytes) or style == "raw":
        return value
    text = printable(value)
    if text is None:
        return f"<{describe(value)}>"
    if style == "full" or len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}... {len(text):,} characters"


def _all_together(steps: list[Listed]) -> str:
    """The values of steps of one kind; of several, how many."""
    kinds = {kind for kind, values in steps if values}
    if len(kinds) != 1:
        return f"{sum(len(values) for _, values in steps):,} values"
    return _counted(kinds.pop(), [value for _, values in steps for value in values])


def _counted(kind: Kind, values: list[Any]) -> str:
    """`784 floats in [-0.5, 0.5]`."""
    count = counted(len(values), _WORDS[kind])
    if kind == "bytes" or any(isinstance(value, str) for value in values):
        return f"{count}, the first {shown_value(values[0], 'short')!r}"
    numbers = np.array(values, "float32" if kind == "float32" else "int64")
    whole = numbers[~np.isnan(numbers)] if kind == "float32" else numbers
    nan = f", {len(numbers) - len(whole):,} NaN" if len(whole) < len(numbers) else ""
    if not len(whole):
        return f"{len(numbers):,} NaN"
    low, high = (
        [whole.min(), whole.max()] if kind == "int64" else shortest(np.array([whole.min(), whole.max()]))
    )
    return f"{count} in [{low}, {high}]{nan}"
