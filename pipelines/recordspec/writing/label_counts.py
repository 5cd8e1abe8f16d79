"""Label counts: the number of rows of every class, by split. Rows are counted while they are encoded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from recordspec.schema.row_blocks import Sections
from recordspec.schema.schema import Schema
from recordspec.store.manifest import LabelCounts, Manifest
from recordspec.wire.arrays import Ints, counts_of, flat_of

# A difference of class shares is reported if chance explains one as large in fewer than 1 of 10,000 datasets.
_CHANCE = 1e-4
# The number of terms of a tail that are summed: terms decrease, and this many span many standard deviations.
_MOST_TERMS = 1 << 20


class ClassCounter:
    """Counts the classes of encoded rows, by split and by label. Counts nothing without a schema."""

    def __init__(self, schema: Schema | None) -> None:
        self._classes = {} if schema is None else schema._counted_classes
        self._names = {} if schema is None else {schema.names[name].stored: name for name in self._classes}
        # the counts of one split after another, up to the last split with rows so far
        self._counts = {name: np.zeros(0, np.int64) for name in self._classes}

    def add(self, sections: Sections, splits: Ints | None) -> None:
        """Counts the rows of a batch; `splits` has the index of each row's split (None: all the first)."""
        for key, array in (*sections["features"].items(), *sections["context"].items()):
            name = self._names.get(key)
            if name is not None:
                known, indices = self._counts[name], flat_of(array)
                labelled = indices >= 0  # -1 is a missing label
                counted = indices[labelled].astype(
                    np.int64, copy=False
                )  # from float32 with `encoding: float`
                if splits is not None:
                    counted = counted + splits[counts_of(array) > 0][labelled] * self._classes[name]
                counts = np.bincount(counted, minlength=len(known))
                counts[: len(known)] += known
                self._counts[name] = counts

    def by_split(self, splits: Sequence[str]) -> LabelCounts:
        """The counts; `splits` are the names of the splits."""
        tables = {name: np.zeros((len(splits), classes), np.int64) for name, classes in self._classes.items()}
        for name, counts in self._counts.items():
            tables[name].flat[: len(counts)] = counts
        return {
            split: {name: tuple(table[index].tolist()) for name, table in tables.items()}
            for index, split in enumerate(splits)
        }


def summed_counts(parts: Iterable[LabelCounts]) -> LabelCounts:
    """Sums the label counts of several parts."""
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


def classes_by_name(manifest: Manifest) -> dict[str, dict[str, dict[str, int]]]:
    """The number of rows by split, label and name of the class; unknown names are counted as `other`."""
    return {
        split: {
            label: dict(zip((*manifest.labels[label], "other"), rows, strict=False))
            for label, rows in by_label.items()
        }
        for split, by_label in manifest.label_counts.items()
    }


def uneven_classes(manifest: Manifest) -> Iterator[str]:
    """Yields a sentence for each label if its class shares differ more between splits than chance explains.

    The rows of a split are a sample of all rows without replacement, so the number of rows of a class has a
    hypergeometric distribution. The one-sided tail probability of that number is multiplied by the number of
    comparisons (Bonferroni). For each label, the tail is computed only for the class and split with the
    lowest bound of it: `exp(-n * KL(q, p))`, where `p` is the share of the class in all rows, and `q` its
    share in the `n` rows of the split (Hoeffding 1963).
    """
    tables = _tables(manifest)
    comparisons = sum(2 * math.prod(map(_distinct, table.shape)) for _, table in tables.values())
    for label, (splits, table) in tables.items():
        rows, classes = table.sum(axis=1, keepdims=True), table.sum(axis=0)
        total = int(classes.sum())
        unlikely = np.maximum(
            rows * _divergence(table / rows, classes / total),
            # the rows of the other splits are a sample, too
            (total - rows) * _divergence((classes - table) / np.maximum(1, total - rows), classes / total),
        )
        split, number = np.unravel_index(int(unlikely.argmax()), table.shape)
        counted = int(table[split, number]), int(rows[split, 0]), int(classes[number]), total
        if log_tail(*counted) < math.log(_CHANCE / comparisons):
            name = (*manifest.labels[label], "other")[number]
            share = table[split, number] / rows[split, 0]
            others = (classes[number] - table[split, number]) / (total - rows[split, 0])
            yield (
                f"{label}: {share:.1%} of {splits[split]} are `{name}`, and {others:.1%} of the other rows:"
                " more than chance explains (p < 0.0001)"
            )


def _tables(manifest: Manifest) -> dict[str, tuple[list[str], Ints]]:
    """The splits with rows, and their class counts, int64 `[splits, classes]`, by label. Leaves out labels
    with fewer than two splits or classes."""
    tables = {}
    for label in manifest.labels:
        counts = {
            split: by_label[label] for split, by_label in manifest.label_counts.items() if label in by_label
        }
        splits = [split for split, rows in counts.items() if sum(rows)]
        table = np.array([counts[split] for split in splits], np.int64)
        if len(splits) > 1 and np.count_nonzero(table.sum(axis=0)) > 1:
            tables[label] = splits, table
    return tables


def _distinct(number: int) -> int:
    """The number of distinct comparisons among counts with a given sum. Two counts yield only one comparison:
    the first determines the second."""
    return 1 if number == 2 else number


def log_tail(hits: int, drawn: int, marked: int, total: int) -> float:
    """The logarithm of a one-sided tail probability of the hypergeometric distribution.

    `drawn` rows are drawn at random from `total` rows, of which `marked` are marked. The tail is at least
    `hits` marked rows among the drawn rows; at most `hits` if that is below the mean.
    """
    if hits * total < drawn * marked:
        hits, marked = drawn - hits, total - marked
    log_first = (
        _log_choose(marked, hits) + _log_choose(total - marked, drawn - hits) - _log_choose(total, drawn)
    )
    more = np.arange(hits, min(drawn, marked, hits + _MOST_TERMS), dtype=np.float64)
    ratios = (marked - more) * (drawn - more) / ((more + 1) * (total - marked - drawn + more + 1))
    return log_first + math.log1p(float(np.cumprod(ratios).sum()))


def _log_choose(number: int, some: int) -> float:
    return math.lgamma(number + 1) - math.lgamma(some + 1) - math.lgamma(number - some + 1)


def _divergence(share: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The Kullback-Leibler divergence between two Bernoulli distributions with these shares, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(share > 0, share * np.log(share / expected), 0)
        miss = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - expected)), 0)
    return np.where(expected > 0, hit + miss, 0)
