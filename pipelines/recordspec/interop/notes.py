"""Notes on parts of a schema that one format expresses and another cannot, and features in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recordspec.errors import Path, show_path
from recordspec.schema.features import Feature
from recordspec.schema.options import option_texts, to_builtins
from recordspec.schema.schema import Schema

# Options with class names, which a description has elsewhere.
_CLASS_NAMES = ("names", "vocabulary")


@dataclass(frozen=True, kw_only=True)
class Note:
    """A part of a schema that has no counterpart in the other format.

    Attributes:
        path: the place in the converted schema.
        text: a description of the part, and how it is converted or ignored.
    """

    path: Path
    text: str

    def __str__(self) -> str:
        return f"{show_path(self.path)}: {self.text}"


def losses(schema: Schema, back: Schema) -> Iterator[Note]:
    """Notes on parts of `schema` that another format cannot express; `back` is the schema imported from
    that format.
    """
    for option in ("name", "version", "description"):
        if getattr(schema, option) != getattr(back, option):
            path = "schema" if option == "name" else option
            yield Note(path=(path,), text="not expressed")
    imported = {(place.section, _key(feature)): feature for place, feature in back._placed}
    for place, feature in schema._placed:
        other = imported.get((place.section, _key(feature)))
        if other is None:
            continue
        mine, theirs = to_builtins(feature.shortest), to_builtins(other.shortest)
        lost = [option for option, value in mine.items() if theirs.get(option) != value]
        if feature.kind == other.kind:
            for option in lost:
                yield Note(path=(place.section, feature.name, option), text="not expressed")
        else:
            options = f", without {', '.join(lost)}" * bool(lost)
            text = f"kind {feature.kind} is exported as {other.kind}, by its columns{options}"
            yield Note(path=(place.section, feature.name), text=text)


def _key(feature: Feature) -> str:
    return feature.columns()[0].key


def feature_line(feature: Feature) -> str:
    """The kind of a feature and the options that are set, on one line, for a description in another format;
    without its name, description and class names.
    """
    options = {"kind": feature.kind, **option_texts(feature.shortest)}
    return ", ".join(f"{name} {text}" for name, text in options.items() if name not in _CLASS_NAMES)
