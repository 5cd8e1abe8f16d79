"""Finds the changes between two schemas, and their consequences for old records, old readers and models."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recordspec.errors import Path
from recordspec.schema.feature_set import differences
from recordspec.schema.features import Feature
from recordspec.schema.options import to_builtins
from recordspec.schema.schema import Schema

# The possible consequences of a change.
OLD_RECORDS, OLD_READERS, MODELS = "reading old records", "old readers of new records", "models"

_HEAD = ("name", "version", "description")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A difference between two schemas.

    Attributes:
        path: the path of the changed part.
        old, new: the old and the new value, as in YAML; None if a schema lacks it.
        breaks: the uses that no longer work; empty if the change is compatible.
        why: the reason, as text.
    """

    path: Path
    old: Any
    new: Any
    breaks: tuple[str, ...]
    why: str


def changes(old: Schema, new: Schema) -> tuple[Change, ...]:
    """All differences between two schemas, in the order of the new schema."""
    return tuple(_changes(old, new))


def _changes(old: Schema, new: Schema) -> Iterator[Change]:
    for name in _HEAD:
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            path = ("schema" if name == "name" else name,)
            yield _change(path, before, after, (), "no record depends on it")
    if old.record != new.record:
        why = "records of one kind are not read as the other"
        yield _change(("record",), old.record, new.record, (OLD_RECORDS, OLD_READERS), why)
        return
    unread = {problem.path for problem in differences(old, new)}
    needed = {problem.path for problem in differences(new, old)}
    before = {(place.section, feature.name): feature for place, feature in old._placed}
    after = {(place.section, feature.name): feature for place, feature in new._placed}
    for place in dict.fromkeys((*after, *before)):
        if place not in before:
            breaks: tuple[str, ...] = (OLD_RECORDS,) if place in unread else ()
            why = "it has no default" if breaks else "read its default"
            yield _change(place, None, _options_of(after[place]), breaks, f"old records lack it, and {why}")
        elif place not in after:
            breaks = (OLD_READERS, MODELS) if place in needed else (MODELS,)
            why = "find no value in new records" if place in needed else "read its default"
            why = f"models lose an input; readers that keep the old schema {why}"
            yield _change(place, _options_of(before[place]), None, breaks, why)
        else:
            yield from _options(before[place], after[place], place, (unread, needed))


def _options(
    old: Feature, new: Feature, path: Path, refused: tuple[set[Path], set[Path]]
) -> Iterator[Change]:
    """The differences between two features with the same name, except in spelling.

    `refused` holds the paths at which the new schema cannot read old records, and the paths at which the old
    schema cannot read new records.
    """
    if old.kind != new.kind:
        why = "another kind stores other values"
        yield _change(path, _options_of(old), _options_of(new), (OLD_RECORDS, OLD_READERS, MODELS), why)
        return
    for field in dataclasses.fields(new):
        before, after = getattr(old, field.name), getattr(new, field.name)
        same = getattr(old.shortest, field.name) == getattr(new.shortest, field.name)
        if before != after and not same:
            place = (*path, field.name.removesuffix("_"))
            unread, unreadable = (any(at[: len(place)] == place for at in paths) for paths in refused)
            broken = ((OLD_RECORDS, unread), (OLD_READERS, unreadable))
            breaks = tuple(what for what, refuses in broken if refuses)
            yield _change(place, before, after, *_broken(field, old, new, breaks))


def _broken(field: Any, old: Feature, new: Feature, breaks: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Returns the uses that a change of an option breaks, and the reason; `breaks` lists the uses that
    readers reject."""
    if field.name == "description":
        return (), "no record depends on it"
    if not breaks and not field.metadata.get("reading"):
        return (), "new records are written differently, and read the same"
    breaks = (*breaks, MODELS)
    if old.traits.class_names and new.traits.class_names and field.name == "names":
        return breaks, _of_names(old.traits.class_names, new.traits.class_names)
    if old.traits.optional and not new.traits.optional and field.name == "default":
        return breaks, "old records may lack it, and there is no default any more"
    if new.traits.optional and not old.traits.optional and field.name == "default":
        return breaks, "new records may lack it, and readers that keep the old schema have no default"
    if field.metadata.get("reading"):
        return breaks, "the same records are decoded differently"
    return breaks, "it is stored differently"


def _of_names(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """Returns why a change of class names changes the data."""
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            return f"records hold indices: {index} meant `{before}`, and would mean `{after}`"
    more = len(new) - len(old)
    classes = "one class" if abs(more) == 1 else f"{abs(more):,} classes"
    if more > 0:
        return f"old indices keep their meaning, but models lack {classes}"
    return f"records may hold indices of {classes} that have no name now"


def _options_of(feature: Feature) -> Any:
    return {"kind": feature.kind, **to_builtins(feature)}


def _change(path: Path, old: Any, new: Any, breaks: tuple[str, ...], why: str) -> Change:
    return Change(path=path, old=_listed(old), new=_listed(new), breaks=breaks, why=why)


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value
