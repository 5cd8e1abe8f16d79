"""What one language of schemas says and another cannot: told beside the result, never lost in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recordspec.errors import Path, show_path
from recordspec.spec.features import Feature
from recordspec.spec.plain import plain
from recordspec.spec.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Note:
    """One thing that has no counterpart.

    Attributes:
        path: where it stands in what was given.
        text: what it is, and what becomes of it.
    """

    path: Path
    text: str

    def __str__(self) -> str:
        return f"{show_path(self.path)}: {self.text}"


def losses(schema: Schema, back: Schema) -> Iterator[Note]:
    """What another language does not say of `schema`, told from what comes `back` from there."""
    for option in ("name", "version", "description"):
        if getattr(schema, option) != getattr(back, option):
            path = "schema" if option == "name" else option
            yield Note(path=(path,), text="not said")
    found = {(section, _key(feature)): feature for section, feature in back.placed}
    for section, feature in schema.placed:
        other = found.get((section, _key(feature)))
        if other is not None:
            yield from _differences(section, feature, other)


def _key(feature: Feature) -> str:
    return feature.columns()[0].key


def _differences(section: str, feature: Feature, back: Feature) -> Iterator[Note]:
    mine, theirs = plain(feature.shortest), plain(back.shortest)
    lost = [option for option, value in mine.items() if theirs.get(option) != value]
    if feature.kind != back.kind:
        options = f", without {', '.join(lost)}" * bool(lost)
        text = f"kind {feature.kind} is said as {back.kind}, by what it stores{options}"
        yield Note(path=(section, feature.name), text=text)
        return
    for option in lost:
        yield Note(path=(section, feature.name, option), text="not said")
