"""Names for the keys of records and for the indices of classes: as stored, or by a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from recordspec.errors import Problem, SpecError, nearest, one_of
from recordspec.wire.strings import Ints, Strings

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

# Whether a key is that of a feature list, and the key.
FeatureKey = tuple[bool, str]

SEQUENCE = "sequence/"
_STORED = " (stored)"
_MOST_LISTED = 40  # in a message


@dataclass(frozen=True, kw_only=True)
class FeatureNames:
    """Names for keys, and for the indices of classes.

    Attributes:
        names: by key, where a feature has another name than its key.
        classes: of keys that hold indices of classes, the names of these.
    """

    names: Mapping[FeatureKey, str] = field(default_factory=dict)
    classes: Mapping[FeatureKey, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema | None) -> FeatureNames:
        """The names in a schema; without one, keys are names and classes are indices."""
        if schema is None:
            return cls()
        placed = [((section == "sequence", feature.stored), feature) for section, feature in schema.placed]
        return cls(
            names={key: feature.name for key, feature in placed},
            classes={
                key: feature.class_names
                for key, feature in placed
                if feature.class_names and feature.columns()[0].storage == "int64"
            },
        )

    def name(self, key: FeatureKey) -> str:
        """The name of a key, unique in the context or the sequence. A key that no feature has may be the name
        of a feature that has another key; then ` (stored)` follows it.
        """
        if key in self.names:
            return self.names[key]
        in_sequence, stored = key
        taken = (in_sequence, stored.replace(_STORED, "")) in self._taken
        return stored + _STORED * taken

    def words(self, key: FeatureKey) -> tuple[str, ...]:
        """The words that mean a key; a feature list may be prefixed, to differ from a feature of its name."""
        name = self.name(key)
        return (name, SEQUENCE + name) if key[0] else (name,)

    @cached_property
    def _taken(self) -> set[FeatureKey]:
        """The names, each with whether it is that of a feature list."""
        return {(in_sequence, name) for (in_sequence, _), name in self.names.items()}


def with_class_names(values: Iterable[int], classes: tuple[str, ...]) -> list[int | str]:
    """The names of indices; an index without one stays what it is."""
    return [classes[value] if 0 <= value < len(classes) else value for value in values]


def class_name_strings(indices: Ints, classes: tuple[str, ...]) -> Strings:
    """The names of many indices; of one without a name, its digits."""
    distinct, places = np.unique(indices, return_inverse=True)
    return Strings.of([str(one).encode() for one in with_class_names(distinct.tolist(), classes)]).take(
        places
    )


def check_known(wanted: Iterable[str], known: Iterable[str], option: str) -> None:
    """Raises SpecError that lists every unknown name."""
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
