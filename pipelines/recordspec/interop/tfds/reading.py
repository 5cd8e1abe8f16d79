"""features.json of TFDS as a schema of ours.

A Sequence is a dimension of all that is in it: TFDS stores a list for each feature, not one for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from recordspec.errors import SpecError, show_shape
from recordspec.interop.forms import Form, filled
from recordspec.interop.notes import Note
from recordspec.interop.tfds import media
from recordspec.interop.tfds.dtypes import DTYPES, STORED, optional_default
from recordspec.interop.tfds.nodes import Node
from recordspec.interop.tfds.places import FLAT, ROW_LENGTHS, Place, Shape, named
from recordspec.spec.features import Feature
from recordspec.spec.features.label import OOV_NAME, Label
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.schema import Schema

# What gives the names of a ClassLabel, by the stem of its file; None where there is no such file.
Names = Callable[[str], "tuple[str, ...] | None"]


class Reader:
    """Reads features, and keeps notes on what has no counterpart."""

    def __init__(self, names: Names) -> None:
        self.notes: list[Note] = []
        self._names = names

    def schema(self, root: Node, name: str) -> Schema:
        """The schema of the whole. Raises SpecError."""
        if root.kind != "FeaturesDict":
            raise root.wrong("a FeaturesDict", root.kind)
        features = tuple(self._features(root, Place()))
        return Schema(name=name, description=root.description, features=features)

    def _features(self, node: Node, place: Place) -> Iterator[Feature]:
        if node.kind == "FeaturesDict":
            for name, child in node.children().items():
                yield from self._features(child, place.of(name))
        elif node.kind in ("Sequence", "Dataset"):
            if node.kind == "Dataset":
                self.note(node, "a dataset in each record: read as lists")
            length = node.number("length")
            if len(place.lengths) == _MOST_LEVELS:
                raise node.wrong(f"at most {_MOST_LEVELS} sequences in each other", "more")
            inner = node.child(node.option("feature"))
            yield from self._features(inner, place.each(None if length in (None, -1) else length))
        elif node.kind in ("Translation", "TranslationVariableLanguages"):
            yield from self._translation(node, place)
        elif node.kind in _KINDS:
            yield self._made(node, place)
        else:
            raise node.wrong(f"one of {', '.join((*_STRUCTURES, *_KINDS))}", f"`{node.kind}`")

    def _made(self, node: Node, place: Place) -> Feature:
        try:
            return _KINDS[node.kind](self, node, place)
        except SpecError as error:  # of one of our kinds, whose path is that of an option
            own = len(node.path)
            raise SpecError(
                [one if one.path[:own] == node.path else one.under(*node.path) for one in error.problems]
            ) from None

    def note(self, node: Node, text: str, *option: str) -> None:
        """Keeps a note on a node, or on an option of it."""
        self.notes.append(Note(path=(*node.path, *option), text=text))

    def values(self, node: Node, place: Place, dtype: str, shape: Shape = (), default: Any = None) -> Feature:
        """A list of numbers or bytes, of the shape that all sequences give it together."""
        whole = (*place.lengths, *shape)
        key, row_lengths = place.key, tuple[str, ...]()
        if len(place.lengths) > 1:
            key, row_lengths = self._ragged(node, place, shape)
            dtype = self._wide(node, dtype)
        elif None in whole[1:]:
            self.note(node, f"{show_shape(whole)} is read as one list", "shape")
            dtype, whole = self._wide(node, dtype), (None,)
        form = Form(
            name=place.key,
            key=key,
            dtype=dtype,
            shape=whole,
            default=default,
            row_lengths=row_lengths,
            description=node.description,
        )
        return form.feature()

    def _ragged(self, node: Node, place: Place, shape: Shape) -> tuple[str, tuple[str, ...]]:
        """The keys of sequences in sequences."""
        if place.lengths != (None,) * len(place.lengths) or None in shape:
            # TFDS 4.9 writes such features as ragged, and looks for them as if they were not
            raise node.wrong("sequences in sequences whose lengths are all free", "one that is fixed")
        levels = range(len(place.lengths) - 1)
        return f"{place.key}/{FLAT}", tuple(f"{place.key}/{ROW_LENGTHS}{level}" for level in levels)

    def _wide(self, node: Node, dtype: str) -> str:
        """Only `tensor` narrows what a list holds, and it takes no list in a list."""
        stored = STORED[dtype]
        if stored != dtype:
            self.note(node, f"{dtype} is read as {stored}, which stores it", "dtype")
        return stored

    def tensor(self, node: Node, place: Place) -> Feature:
        """A Tensor: a list, or bytes."""
        dtype, shape = self.dtype(node), node.shape()
        for bound in ("minimum", "maximum"):
            if node.option(bound) is not None:
                self.note(node, "not checked", bound)
        encoding = node.text("encoding").lower() or "none"
        if encoding != "none":
            return self._encoded(node, place, dtype, encoding)
        if dtype not in STORED:
            raise node.wrong("an encoding for complex numbers", "none", "encoding")
        if dtype in ("float64", "uint64"):  # TFDS keeps 24 bits of the one, and the sign bit of the other
            dtype = self._wide(node, dtype)
        default = None
        if node.option("optional"):
            default = self._default(node, place, dtype, shape)
        return self.values(node, place, dtype, shape, default)

    def _default(self, node: Node, place: Place, dtype: str, shape: Shape) -> Any:
        """What TFDS reads where an optional value is missing."""
        default = optional_default(dtype)
        if default is None or place.lengths or None in shape or 0 in shape:
            self.note(node, "a record without it cannot be read", "optional")
            return None
        return filled(default, shape)

    def _encoded(self, node: Node, place: Place, dtype: str, encoding: str) -> Feature:
        if encoding not in ("bytes", "zlib") or dtype == "string":
            raise node.wrong("one of none, bytes, zlib", f"`{encoding}` of {dtype}", "encoding")
        shape = node.shape()
        if shape.count(None) > 1:
            raise node.wrong("at most one size that is not known", show_shape(shape), "shape")
        if place.lengths or None in shape[1:]:
            self.note(node, f"{dtype} {show_shape(shape)} as bytes: they stay bytes", "encoding")
            return self.values(node, place, "string")
        return AnyTensor(
            **named(node, place), dtype=dtype, shape=shape, encoding="zlib" if encoding == "zlib" else "raw"
        )

    def dtype(self, node: Node) -> str:
        """Its dtype, by our name. Raises SpecError for one that we have none for."""
        given = node.text("dtype")
        if given not in DTYPES:
            raise node.wrong(f"one of {', '.join(DTYPES)}", f"`{given}`", "dtype")
        return DTYPES[given]

    def _label(self, node: Node, place: Place) -> Feature:
        names = self._names(place.file) or self._numbers(node)
        if not names or len(place.lengths) > 1:
            self.note(node, "its classes have no counterpart: read as integers")
            return self.values(node, place, "int64")
        known = names[:-1] if names[-1] == OOV_NAME and len(names) > 1 else names
        oov: Any = "error" if known == names else "index"
        return Label(**named(node, place), names=known, shape=place.lengths, oov=oov)

    def _numbers(self, node: Node) -> tuple[str, ...]:
        """What TFDS calls classes without names; none where nobody said how many they are."""
        count = node.number("num_classes") or 0
        return tuple(map(str, range(count))) if count <= _MOST_CLASSES else ()

    def _text(self, node: Node, place: Place) -> Feature:
        return self.values(node, place, "string") if place.lengths else Text(**named(node, place))

    def _translation(self, node: Node, place: Place) -> Iterator[Feature]:
        variable = node.option("variableLanguagesPerExample") or node.kind != "Translation"
        languages = node.option("languages")
        if variable:
            names, inner = ["language", "translation"], place.each(None)
        elif isinstance(languages, list) and all(isinstance(name, str) for name in languages):
            names, inner = languages, place
        else:
            raise node.wrong("a list of languages", str(languages), "languages")
        for name in names:
            yield self._text(node, inner.of(name))


# Names that are made up for classes without any.
_MOST_CLASSES = 1 << 20
_MOST_LEVELS = 16
_STRUCTURES = ("FeaturesDict", "Sequence", "Translation")
_KINDS: dict[str, Callable[[Reader, Node, Place], Feature]] = {
    "Tensor": Reader.tensor,
    "Scalar": Reader.tensor,
    "ClassLabel": Reader._label,
    "Text": Reader._text,
    "Image": media.image,
    "LabeledImage": media.image,
    "Video": media.video,
    "Audio": media.audio,
    "BBoxFeature": media.boxes,
}


def read_schema(root: Node, name: str, names: Names, source: str) -> tuple[Schema, list[Note]]:
    """The schema, and what has no counterpart in it. Raises SpecError, placed at `source`."""
    reader = Reader(names)
    try:
        schema = reader.schema(root, name)
    except SpecError as error:
        raise SpecError([problem.at(source) for problem in error.problems]) from None
    return schema, reader.notes
