"""Label counts: the rows of every class, by split. They are counted while rows are encoded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from recordspec.schema.row_blocks import Sections
from recordspec.schema.schema import Schema
from recordspec.store.manifest import LabelCounts, Manifest
from recordspec.wire.arrays import Ints, flat_of

# Differences of class shares are reported where chance explains none as large in 1 of 10,000 datasets.
_CHANCE = 1e-4
# Terms of a tail that are added: each is less than the one before, and these are many standard deviations.
_MOST_TERMS = 1 << 20


class ClassCounter:
    """Counts the classes of encoded rows, by split and by label; those of no schema have none."""

    def __init__(self, schema: Schema | None) -> None:
        self._classes = {} if schema is None else schema.counted_classes
        self._names = {} if schema is None else {schema.names[name].stored: name for name in self._classes}
        # one split after another, as far as any has rows
        self._counts = {name: np.zeros(0, np.int64) for name in self._classes}

    def add(self, sections: Sections, splits: Ints | None) -> None:
        """Counts the rows of a batch; `splits` has the index of each one's split (None: the first)."""
        for key, array in (*sections["features"].items(), *sections["context"].items()):
            name = self._names.get(key)
            if name is not None:
                first = 0 if splits is None else splits * self._classes[name]
                known = self._counts[name]
                counts = np.bincount(first + flat_of(array), minlength=len(known))
                counts[: len(known)] += known
                self._counts[name] = counts

    def by_split(self, splits: Sequence[str]) -> LabelCounts:
        """The counts; the splits have these names."""
        tables = {name: np.zeros((len(splits), classes), np.int64) for name, classes in self._classes.items()}
        for name, counts in self._counts.items():
            tables[name].flat[: len(counts)] = counts
        return {
            split: {name: tuple(table[index].tolist()) for name, table in tables.items()}
            for index, split in enumerate(splits)
        }


def summed_counts(parts: Iterable[LabelCounts]) -> LabelCounts:
    """The label counts of several parts together."""
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
    """The rows of each class, by split, label and name; those of unknown names are `other`."""
    return {
        split: {
            label: dict(zip((*manifest.labels[label], "other"), rows, strict=False))
            for label, rows in by_label.items()
        }
        for split, by_label in manifest.label_counts.items()
    }


def uneven_classes(manifest: Manifest) -> Iterator[str]:
    """Yields a sentence for each label whose classes have other shares in some split than chance explains.

    The rows of a split are a sample of all rows without replacement: the number of those of a class has a
    hypergeometric distribution. The probability that it is as far from its mean, on one side, is multiplied
    by the number of comparisons (Bonferroni). Of each label, the one is compared for which a bound of that
    probability is lowest: `exp(-n * KL(q, p))`, for a class that has the share `p` of all rows, and `q` of
    the `n` rows of a split (Hoeffding 1963).
    """
    tables = _tables(manifest)
    comparisons = sum(2 * math.prod(map(_distinct, table.shape)) for _, table in tables.values())
    for label, (splits, table) in tables.items():
        rows, classes = table.sum(axis=1, keepdims=True), table.sum(axis=0)
        total = int(classes.sum())
        unlikely = np.maximum(
            rows * _divergence(table / rows, classes / total),
            # the other rows are a sample, too
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
    """By label, the splits with rows, and the counts of their classes, int64 `[splits, classes]`, where there
    are several of both."""
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
    """How many of several counts with a given sum can be compared: of two, the second says what the first
    does."""
    return 1 if number == 2 else number


def log_tail(hits: int, drawn: int, marked: int, total: int) -> float:
    """The logarithm of the probability of at least `hits` marked rows among `drawn` ones, or of at most that
    many if fewer are expected: `drawn` of `total` rows are taken at random, of which `marked` are marked."""
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
    """The Kullback-Leibler divergence of one share from another, of two outcomes each, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(share > 0, share * np.log(share / expected), 0)
        miss = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - expected)), 0)
    return np.where(expected > 0, hit + miss, 0)
