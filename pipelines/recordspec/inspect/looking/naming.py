"""What the keys of records are called, and the values of labels: as they are stored, or as a schema says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from recordspec.errors import Problem, SpecError, nearest, one_of
from recordspec.wire.strings import Ints, Strings

if TYPE_CHECKING:
    from recordspec.spec.features.label import Label
    from recordspec.spec.schema import Schema

# A key, and whether it is that of a feature list.
Key = tuple[bool, str]

SEQUENCE = "sequence/"
_STORED = " (stored)"
_MOST_LISTED = 40  # in a message


@dataclass(frozen=True, kw_only=True)
class Naming:
    """Names for keys, and for the indices of labels.

    Attributes:
        names: of keys that are called otherwise than they are stored.
        classes: of keys that hold indices of labels: the names of these.
    """

    names: Mapping[Key, str] = field(default_factory=dict)
    classes: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema | None) -> Naming:
        """Those of a schema; without one, everything is as it is stored."""
        if schema is None:
            return cls()
        # the kinds of features take 0.1 s to import
        from recordspec.spec.features.label import Label

        placed = [((section == "sequence", feature.stored), feature) for section, feature in schema.placed]
        return cls(
            names={key: feature.name for key, feature in placed},
            classes={key: _classes(feature) for key, feature in placed if isinstance(feature, Label)},
        )

    def name(self, key: Key) -> str:
        """What a key is called, as no other of the context, or of the sequence, is. One that no feature has
        may be the name of a feature that has another.
        """
        if key in self.names:
            return self.names[key]
        in_sequence, stored = key
        return stored + _STORED * self._taken.get((in_sequence, _times_stored(stored)[0]), 0)

    def words(self, key: Key) -> tuple[str, ...]:
        """What may be said for a key; of a feature list also what tells it from a feature of its name."""
        name = self.name(key)
        return (name, SEQUENCE + name) if key[0] else (name,)

    @cached_property
    def _taken(self) -> dict[Key, int]:
        """The names that features have, and how often what is stored under one is to say so."""
        taken: dict[Key, int] = {}
        for (in_sequence, _), name in self.names.items():
            plain, times = _times_stored(name)
            taken[in_sequence, plain] = max(times + 1, taken.get((in_sequence, plain), 0))
        return taken


def _times_stored(name: str) -> tuple[str, int]:
    """A name without the word behind it, and how often that was there."""
    plain = name
    while plain.endswith(_STORED):
        plain = plain.removesuffix(_STORED)
    return plain, (len(name) - len(plain)) // len(_STORED)


def _classes(label: Label) -> tuple[str, ...]:
    from recordspec.spec.features.label import OOV_NAME

    return (*label.names, OOV_NAME) if label.oov == "index" else label.names


def named(values: Iterable[int], classes: tuple[str, ...]) -> list[int | str]:
    """The names of indices; an index without one stays what it is."""
    return [classes[value] if 0 <= value < len(classes) else value for value in values]


def texts(indices: Ints, classes: tuple[str, ...]) -> Strings:
    """The names of many indices; of one without a name, its digits."""
    distinct, places = np.unique(indices, return_inverse=True)
    return Strings.of([str(one).encode() for one in named(distinct.tolist(), classes)]).take(places)


def check_known(wanted: Iterable[str], known: Iterable[str], option: str) -> None:
    """Raises SpecError with every name that nobody knows."""
    there = list(dict.fromkeys(known))
    problems = [
        Problem(path=(option,), expected=_expected(there), got=f"`{name}`", hint=nearest(name, there))
        for name in wanted
        if name not in there
    ]
    if problems:
        raise SpecError(problems)


def _expected(known: list[str]) -> str:
    if len(known) > _MOST_LISTED:
        return f"one of {len(known):,} names"
    return one_of(known) if known else "no names, as the records have none"
