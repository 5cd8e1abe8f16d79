"""Classes that some rows are of more often than others: what they weigh, and the share of rows to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recordspec.errors import Path as OptionPath
from recordspec.errors import Problem, SpecError, StoreError, nearest, one_of
from recordspec.spec.schema import Schema

Counts = tuple[int, ...]


def counts_of(
    label: str, schema: Schema, known: Mapping[str, Counts], data: Path, option: OptionPath
) -> Counts:
    """The rows of every class of a label; `option` is where it was named.

    Raises SpecError where it is no label that gives a row one class, StoreError where nobody counted.
    """
    if problems := list(check(label, schema, option)):
        raise SpecError(problems)
    if label not in known:
        expected = f"the rows of every class of `{label}` in the manifest"
        hint = "build the dataset again"
        raise StoreError(Problem(where=str(data), path=option, expected=expected, got="none", hint=hint))
    return known[label]


def check(label: str, schema: Schema, option: OptionPath) -> Iterator[Problem]:
    """What is no label that gives a row one class."""
    if label not in schema.classes:
        expected = one_of(schema.classes) if schema.classes else "a schema with a label, one for each row"
        hint = nearest(label, schema.classes)
        yield Problem(path=option, expected=expected, got=f"`{label}`", hint=hint)


def weights(counts: Sequence[int]) -> dict[int, float]:
    """Of each class, rows / (classes * rows of the class), what scikit-learn calls balanced.

    A class without rows is none of these classes; it weighs 1, because Keras wants a number for each.
    """
    present = sum(count > 0 for count in counts)
    rows = sum(counts)
    return {index: rows / (present * count) if count else 1.0 for index, count in enumerate(counts)}


def shares(counts: Sequence[int]) -> list[float]:
    """Of each class, the share of its rows that makes it as frequent as the rarest that has rows."""
    least = min((count for count in counts if count), default=0)
    return [least / count if count else 1.0 for count in counts]
