"""Names for the keys of records and for class indices: stored names, or names from a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from recordspec.errors import Problem, SpecError, nearest, one_of
from recordspec.schema.features.box import Box, BoxFormat
from recordspec.schema.features.fixed_len import FixedLen

if TYPE_CHECKING:
    from recordspec.schema.dates import DateUnit
    from recordspec.schema.schema import Schema

# Whether a key has a feature list, and the key.
FeatureKey = tuple[bool, str]

SEQUENCE = "sequence/"
_STORED = " (stored)"
_MOST_LISTED = 40  # names that a message lists


@dataclass(frozen=True, kw_only=True)
class FeatureNames:
    """Names for keys and for class indices.

    Attributes:
        names: the name of a feature by its key, if they differ.
        classes: the class names, for keys that store class indices.
        dates: the unit of the dates and times, for keys that store them.
        boxes: the format of the boxes, for keys that store all four sides of boxes.
        stored: whether the key of a feature with another name may be used for the stored values.
    """

    names: Mapping[FeatureKey, str] = field(default_factory=dict)
    classes: Mapping[FeatureKey, tuple[str, ...]] = field(default_factory=dict)
    dates: Mapping[FeatureKey, DateUnit] = field(default_factory=dict)
    boxes: Mapping[FeatureKey, BoxFormat] = field(default_factory=dict)
    stored: bool = False

    @classmethod
    def of(cls, schema: Schema | None, *, stored: bool = False) -> FeatureNames:
        """The names in a schema; without one, keys are names and classes are indices."""
        if schema is None:
            return cls()
        placed = [
            ((place.in_steps, place.key), feature)
            for place, feature in schema._placed
            if any(column.key == feature.stored for column in feature.columns())
        ]
        return cls(
            names={key: feature.name for key, feature in placed},
            classes={
                key: feature.traits.class_names
                for key, feature in placed
                if feature.traits.class_names and feature.columns()[0].storage != "bytes"
            },
            dates={
                key: feature.date
                for key, feature in placed
                if isinstance(feature, FixedLen) and feature.date is not None
            },
            boxes={key: feature.format for key, feature in placed if isinstance(feature, Box)},
            stored=stored,
        )

    def name(self, key: FeatureKey) -> str:
        """The name of a key, unique within the context or the sequence.

        A key without a feature may equal the name of a feature with another key; ` (stored)` is then
        appended.
        """
        if key in self.names:
            return self.names[key]
        in_sequence, stored = key
        taken = (in_sequence, stored.replace(_STORED, "")) in self._taken
        return stored + _STORED * taken

    def words(self, key: FeatureKey) -> tuple[str, ...]:
        """The words for a key; for a feature list also with a prefix, which distinguishes it from a
        feature of the same name.
        """
        names = (self.name(key), *self._stored_words(key))
        return (*names, *(SEQUENCE + name for name in names)) if key[0] else names

    def keys_of(self, words: Iterable[str]) -> set[str]:
        """The keys that words may mean, and possibly others."""
        bare = {part for word in words for part in (word, word.removeprefix(SEQUENCE))}
        bare |= {word.removesuffix(_STORED) for word in bare}
        return bare | {key for (_, key), name in self.names.items() if name in bare}

    def classes_of(self, key: FeatureKey, word: str) -> tuple[str, ...] | None:
        """The class names for the values that a word means; None if the word means the stored values."""
        stored = self._stored_words(key)
        if word in stored or (key[0] and word.removeprefix(SEQUENCE) in stored):
            return None
        return self.classes.get(key)

    def _stored_words(self, key: FeatureKey) -> tuple[str, ...]:
        """The key itself, if it may be used as a word and no feature has that name."""
        return (key[1],) if self.stored and key in self.names and key not in self._taken else ()

    @cached_property
    def _taken(self) -> set[FeatureKey]:
        """The names, each with whether it belongs to a feature list."""
        return {(in_sequence, name) for (in_sequence, _), name in self.names.items()}


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
