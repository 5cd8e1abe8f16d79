"""What was found in files, as values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recordspec.errors import Problem
from recordspec.inspect.stats.figures import Classes, Common, Numbers, Order, Spread, Strings
from recordspec.inspect.stats.smallest import Estimate
from recordspec.wire.columns import Kind


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A feature of the records of a split.

    Attributes:
        section: `features`, or of SequenceExamples `context` or `sequence`.
        feature: its name in the spec, or else its key.
        key: that it stands under.
        records: that have a value; of a feature list, that have the list.
        missing: records without the key.
        no_kind: records, or steps, that have the key and no list.
        empty: that have a list without a value.
        kinds: of lists, with counts.
        lengths: of lists, in values; None where there is no list.
        steps: of feature lists; None of others.
        numbers, strings: what is told of values of the most frequent kind of list.
        common: the frequent values; None of floats.
        classes, order: of what looks like a label, or is one by the spec.
        warnings: what is odd about it, in words.
    """

    section: str
    feature: str
    key: str
    records: int
    missing: int
    no_kind: int
    empty: int
    kinds: dict[Kind, int]
    lengths: Spread | None = None
    steps: Spread | None = None
    numbers: Numbers | None = None
    strings: Strings | None = None
    common: Common | None = None
    classes: Classes | None = None
    order: Order | None = None
    warnings: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """The most frequent kind of its lists."""
        return max(self.kinds, key=lambda kind: self.kinds[kind], default="none")


@dataclass(frozen=True, kw_only=True)
class Split:
    """The records of a split.

    Attributes:
        records: in the files.
        rows: that were counted: one a record, or many of a block.
        sizes: of records, in bytes; None without any.
        broken: records that are damaged, or none of TensorFlow's messages.
        problems: the first of these.
        copies: rows that are, byte for byte, as one before them.
        warnings: what is odd about them, in words.
    """

    split: str
    files: int
    records: int
    rows: int
    sizes: Spread | None
    broken: int
    problems: tuple[Problem, ...]
    copies: Estimate
    features: tuple[Feature, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Different rows that are in two splits."""

    splits: tuple[str, str]
    rows: Estimate

    @property
    def warning(self) -> str:
        about = "about " * (self.rows.error > 0)
        rows = f"{self.rows.value:,} row{'s are' if self.rows.value != 1 else ' is'}"
        return f"{about}{rows} both in `{self.splits[0]}` and in `{self.splits[1]}`"


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found in files.

    Attributes:
        splits: in their order.
        shared: of each two splits that have rows in common.
    """

    splits: tuple[Split, ...]
    shared: tuple[Shared, ...]

    @property
    def broken(self) -> int:
        """Records that could not be read."""
        return sum(split.broken for split in self.splits)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that is odd, in words, with the split in front where there are several."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        for split in self.splits:
            place = f"{split.split}: " if len(self.splits) > 1 else ""
            yield from (f"{place}{warning}" for warning in split.warnings)
            for feature in split.features:
                yield from (f"{place}`{feature.feature}` {warning}" for warning in feature.warnings)
        yield from (shared.warning for shared in self.shared)

    def lines(self) -> Iterator[dict[str, Any]]:
        """As JSON: of each split a line, then one of each of its features; then one of each `shared`."""
        for split in self.splits:
            head = _plain(split)
            head["problems"] = [str(problem) for problem in split.problems]
            del head["features"]
            yield head
            for feature in split.features:
                yield {"split": split.split, **_plain(feature)}
        for shared in self.shared:
            yield {**_plain(shared), "warnings": [shared.warning]}


def _plain(value: Any) -> Any:
    """Dataclasses as dicts, without what is None."""
    if dataclasses.is_dataclass(value):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: _plain(one) for name, one in fields if one is not None}
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
