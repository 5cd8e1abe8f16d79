"""How many rows of each class a build writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from recordspec.spec.blocks import Sections
from recordspec.spec.schema import Schema
from recordspec.store.manifest import LabelCounts
from recordspec.wire.strings import Ints

# More are things to look up, not classes to weigh; and every part of a build has a count of each.
_MOST_CLASSES = 1 << 15


class Tally:
    """Counts the classes of rows as they are encoded, by split and by label."""

    def __init__(self, schema: Schema) -> None:
        self._classes = {name: count for name, count in schema.classes.items() if count <= _MOST_CLASSES}
        self._names = {schema.names[name].stored: name for name in self._classes}
        # one split after another, as far as any has rows
        self._counts = {name: np.zeros(0, np.int64) for name in self._classes}

    def add(self, sections: Sections, splits: Ints | None) -> None:
        """Counts the rows of a batch; `splits` has the index of each one's split (None: the first)."""
        for entry in (*sections["features"], *sections["context"]):
            name = self._names.get(entry.column.key)
            if name is not None:
                first = 0 if splits is None else splits * self._classes[name]
                found = np.bincount(first + np.asarray(entry.cells.flat))
                self._counts[name] = _sum(self._counts[name], found)

    def by_split(self, splits: Sequence[str]) -> LabelCounts:
        """The counts; the splits have these names."""
        tables = {
            name: _sum(np.zeros(len(splits) * classes, np.int64), self._counts[name]).reshape(-1, classes)
            for name, classes in self._classes.items()
        }
        return {
            split: {name: tuple(table[index].tolist()) for name, table in tables.items()}
            for index, split in enumerate(splits)
        }


def _sum(one: Ints, other: Ints) -> Ints:
    """The sum, where what the shorter lacks is 0; one of them is changed."""
    shorter, longer = sorted((one, other), key=len)
    longer[: len(shorter)] += shorter
    return longer


def summed(parts: Iterable[LabelCounts]) -> LabelCounts:
    """The counts of several parts together."""
    total: dict[str, dict[str, Ints]] = {}
    for part in parts:
        for split, by_label in part.items():
            known = total.setdefault(split, {})
            for label, rows in by_label.items():
                known[label] = known.get(label, 0) + np.array(rows, np.int64)
    return {
        split: {label: tuple(rows.tolist()) for label, rows in by_label.items()}
        for split, by_label in total.items()
    }
