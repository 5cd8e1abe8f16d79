"""features.json of TFDS as a schema of ours.

A Sequence is a dimension of all that is in it: TFDS stores a list for each feature, not one for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from recordspec.errors import SpecError, show_shape
from recordspec.foreign.forms import Form, filled
from recordspec.foreign.notes import Note
from recordspec.foreign.tfds.dtypes import DTYPES, STORED, optional_default
from recordspec.foreign.tfds.nodes import Node
from recordspec.spec.features import Feature
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.box import Box, Format
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import OOV_NAME, Label
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.video import Video
from recordspec.spec.media.sounds import Encoding
from recordspec.spec.schema import Schema

# What gives the names of a ClassLabel, by the stem of its file; None where there is no such file.
Names = Callable[[str], "tuple[str, ...] | None"]
Shape = tuple[int | None, ...]

FLAT, ROW_LENGTHS = "ragged_flat_values", "ragged_row_lengths_"
_BYTES = "string"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a feature stands.

    Attributes:
        key: what it is stored under: the names on the way to it.
        lengths: of the sequences that it is in, outermost first; null if it is not fixed.
        file: the stem of the file of its names.
    """

    key: str = ""
    lengths: Shape = ()
    file: str = ""

    def of(self, name: str) -> Place:
        """That of a feature in this one."""
        dotted = name.replace("/", ".")
        return Place(
            key=f"{self.key}/{name}" if self.key else name,
            lengths=self.lengths,
            file=f"{self.file}-{dotted}" if self.file else dotted,
        )

    def each(self, length: int | None) -> Place:
        """That of the items of a sequence."""
        return Place(key=self.key, lengths=(*self.lengths, length), file=self.file)


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
                self._note(node, "a dataset in each record: read as lists")
            length = node.number("length")
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

    def _note(self, node: Node, text: str, *option: str) -> None:
        self.notes.append(Note(path=(*node.path, *option), text=text))

    def _form(self, node: Node, place: Place, dtype: str, shape: Shape, default: Any = None) -> Feature:
        """A list of numbers or bytes, of the shape that all sequences give it together."""
        whole = (*place.lengths, *shape)
        key, row_lengths = place.key, tuple[str, ...]()
        if len(place.lengths) > 1:
            key, row_lengths = self._ragged(node, place, shape)
            dtype = self._wide(node, dtype)
        elif None in whole[1:]:
            self._note(node, f"{show_shape(whole)} is read as one list", "shape")
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
            self._note(node, f"{dtype} is read as {stored}, which stores it", "dtype")
        return stored

    def _tensor(self, node: Node, place: Place) -> Feature:
        dtype, shape = self._dtype(node), node.shape()
        for bound in ("minimum", "maximum"):
            if node.option(bound) is not None:
                self._note(node, "not checked", bound)
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
        return self._form(node, place, dtype, shape, default)

    def _default(self, node: Node, place: Place, dtype: str, shape: Shape) -> Any:
        """What TFDS reads where an optional value is missing."""
        default = optional_default(dtype)
        if default is None or place.lengths or None in shape:
            self._note(node, "a record without it cannot be read", "optional")
            return None
        return filled(default, shape)

    def _encoded(self, node: Node, place: Place, dtype: str, encoding: str) -> Feature:
        if encoding not in ("bytes", "zlib") or dtype == "string":
            raise node.wrong("one of none, bytes, zlib", f"`{encoding}` of {dtype}", "encoding")
        shape = node.shape()
        if shape.count(None) > 1:
            raise node.wrong("at most one size that is not known", str(list(shape)), "shape")
        if place.lengths or None in shape[1:]:
            self._note(node, f"bytes of {dtype} {list(shape)}: they stay bytes", "encoding")
            return self._form(node, place, _BYTES, ())
        return AnyTensor(
            **_named(node, place), dtype=dtype, shape=shape, encoding="zlib" if encoding == "zlib" else "raw"
        )

    def _dtype(self, node: Node) -> str:
        given = node.text("dtype")
        if given not in DTYPES:
            raise node.wrong(f"one of {', '.join(DTYPES)}", f"`{given}`", "dtype")
        return DTYPES[given]

    def _label(self, node: Node, place: Place) -> Feature:
        names = self._names(place.file) or tuple(map(str, range(self._classes(node))))
        if not names or len(place.lengths) > 1:
            self._note(node, "the names of its classes are lost" if names else "without names")
            return self._form(node, place, "int64", ())
        known = names[:-1] if names[-1] == OOV_NAME and len(names) > 1 else names
        oov: Any = "error" if known == names else "index"
        return Label(**_named(node, place), names=known, shape=place.lengths, oov=oov)

    def _classes(self, node: Node) -> int:
        count = node.number("num_classes") or 0
        if not 0 <= count <= _MOST_CLASSES:
            raise node.wrong(f"0 to {_MOST_CLASSES:,}", str(count), "num_classes")
        return count

    def _text(self, node: Node, place: Place) -> Feature:
        return self._form(node, place, _BYTES, ()) if place.lengths else Text(**_named(node, place))

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

    def _image(self, node: Node, place: Place) -> Feature:
        shape = node.shape() or (None, None, 3)
        encoding, dtype = node.text("encoding_format"), node.text("dtype") or "uint8"
        if node.kind == "LabeledImage":
            self._note(node, "the names of its classes have no counterpart", "label")
        if not encoding:
            encoding = "png"
            self._note(node, "not said: png is taken, as TFDS does for arrays", "encoding_format")
        return self._pixels(node, place, shape, encoding, dtype)

    def _pixels(self, node: Node, place: Place, shape: Shape, encoding: str, dtype: str) -> Feature:
        """Encoded images, where they are of those that both decode to the same."""
        options: dict[str, Any] = {"encoding": encoding, "dtype": dtype}
        known = encoding in ("png", "jpeg") and dtype in ("uint8", "uint16") and len(place.lengths) < 2
        try:
            if known and place.lengths:
                return Video(**_named(node, place), shape=(*place.lengths, *shape), **options)
            if known:
                return Image(**_named(node, place), shape=shape, **options)
            why = f"{encoding} of {dtype}"
        except SpecError as error:
            why = str(error.problems[0])
        self._note(node, f"{why}: they stay bytes")
        return self._form(node, place, _BYTES, ())

    def _video(self, node: Node, place: Place) -> Feature:
        shape = node.shape() or (None, None, None, 3)
        content = {**node.content, "shape": list(shape[1:])}
        frame = Node(kind="Image", path=node.path, content=content, description=node.description)
        return self._image(frame, place.each(shape[0]))

    def _audio(self, node: Node, place: Place) -> Feature:
        dtype = self._dtype(node)
        if node.option("lazy_decode"):
            return self._sound(node, place, node.text("file_format"), self._dtype_of_sound(node, dtype))
        if node.text("encoding").lower() == "bytes" and dtype in _SAMPLES:
            return self._sound(node, place, "raw", dtype)
        self._note(node, "has no counterpart", "sample_rate")
        return self._tensor(node, place)

    def _sound(self, node: Node, place: Place, encoding: str, dtype: str) -> Feature:
        """Encoded samples; `audio` must know what the encoding is, and the rate."""
        shape, rate = node.shape(), node.number("sample_rate") or 0
        if encoding not in get_args(Encoding) or rate < 1 or place.lengths:
            self._note(node, "its encoding or its sample rate is not said: it stays bytes")
            return self._form(node, place, _BYTES, ())
        if len(shape) < 2:
            self._note(node, "read as [samples, 1]", "shape")
        channels = shape[1] if len(shape) > 1 else 1
        options: dict[str, Any] = {"channels": channels or 0, "encoding": encoding, "dtype": dtype}
        return Audio(**_named(node, place), sample_rate=rate, **options)

    def _dtype_of_sound(self, node: Node, dtype: str) -> str:
        """TFDS gives the integers of a sound in any dtype; of ours, int16 are these."""
        if dtype == "int16" and node.text("file_format") not in ("mp3", "ogg"):
            return dtype
        self._note(node, f"{dtype} is read as float32, with 1.0 as full scale", "dtype")
        return "float32"

    def _boxes(self, node: Node, place: Place) -> Feature:
        given = node.text("bbox_format").lower()
        if place.lengths == (None,) and given in get_args(Format):
            return Box(**_named(node, place), format=given)  # type: ignore[arg-type]
        self._note(node, f"{given or 'not said'}: read as four floats", "bbox_format")
        return self._form(node, place, "float32", (4,))


_MOST_CLASSES = 1 << 24
_SAMPLES = ("int16", "float32")
_STRUCTURES = ("FeaturesDict", "Sequence", "Translation")
_KINDS: dict[str, Callable[[Reader, Node, Place], Feature]] = {
    "Tensor": Reader._tensor,
    "Scalar": Reader._tensor,
    "ClassLabel": Reader._label,
    "Text": Reader._text,
    "Image": Reader._image,
    "LabeledImage": Reader._image,
    "Video": Reader._video,
    "Audio": Reader._audio,
    "BBoxFeature": Reader._boxes,
}


def _named(node: Node, place: Place) -> dict[str, Any]:
    return {"name": place.key, "description": node.description}


def read_schema(root: Node, name: str, names: Names, source: str) -> tuple[Schema, list[Note]]:
    """The schema, and what has no counterpart in it. Raises SpecError, placed at `source`."""
    reader = Reader(names)
    try:
        schema = reader.schema(root, name)
    except SpecError as error:
        raise SpecError([problem.at(source) for problem in error.problems]) from None
    return schema, reader.notes
