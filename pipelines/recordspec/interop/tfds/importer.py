"""Imports features.json of TFDS as a schema.

A Sequence adds a dimension to every feature in it: TFDS stores one list per feature, not one per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from recordspec.errors import Problem, SpecError, show_shape
from recordspec.interop.notes import Note
from recordspec.interop.stored_tensor import StoredTensor, full_default
from recordspec.interop.tfds.nodes import (
    FLAT,
    OPTIONAL_DEFAULTS,
    ROW_LENGTHS,
    STORED_DTYPES,
    TFDS_DTYPES,
    FeatureNode,
    file_stem,
)
from recordspec.schema.features import Feature
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.box import Box, BoxFormat
from recordspec.schema.features.image import Image
from recordspec.schema.features.label import OOV_NAME, Label
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.video import Video
from recordspec.schema.media.sounds import SoundEncoding
from recordspec.schema.schema import Schema

PartialShape = tuple[int | None, ...]
# Returns the class names of a ClassLabel, by the stem of its file; None if there is no such file.
ClassNames = Callable[[str], "tuple[str, ...] | None"]

# The largest number of classes for which a ClassLabel without names gets numbers as names.
_MAX_CLASSES = 1 << 20
_MAX_LEVELS = 16
_SAMPLE_DTYPES = ("int16", "float32")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The context of a feature.

    Attributes:
        key: the key of the feature: the names on the path to it, joined by slashes.
        lengths: the lengths of the enclosing sequences, outermost first; None if a length varies.
        file: the stem of the file with the class names.
    """

    key: str = ""
    lengths: PartialShape = ()
    file: str = ""

    def child(self, name: str) -> Scope:
        """The scope of a feature nested in this one."""
        stem = file_stem(name)
        return Scope(
            key=f"{self.key}/{name}" if self.key else name,
            lengths=self.lengths,
            file=f"{self.file}-{stem}" if self.file else stem,
        )

    def item(self, length: int | None) -> Scope:
        """The scope of the items of a sequence."""
        return Scope(key=self.key, lengths=(*self.lengths, length), file=self.file)


class _NoCounterpartError(SpecError):
    """A feature that no kind can express: it is omitted, with a note."""


class _FeatureImporter:
    """Converts nodes to features, and collects notes on parts without a counterpart."""

    def __init__(self, class_names: ClassNames) -> None:
        self.notes: list[Note] = []
        self._class_names = class_names

    def schema(self, root: FeatureNode, name: str) -> Schema:
        """The schema of a whole file. Raises SpecError."""
        features = tuple(self._features(root, Scope()))
        if not features:
            raise root.wrong("a feature with a counterpart", "; ".join(map(str, self.notes)) or "none")
        return Schema(name=name, description=root.description, features=features)

    def _features(self, node: FeatureNode, scope: Scope) -> Iterator[Feature]:
        if node.kind == "FeaturesDict":
            for name, child in node.children().items():
                try:
                    yield from self._features(child, scope.child(name))
                except _NoCounterpartError as error:
                    (problem,) = error.problems
                    self.notes.append(
                        Note(
                            path=problem.path,
                            text=f"left out: expected {problem.expected}, got {problem.got}",
                        )
                    )
        elif node.kind in ("Sequence", "Dataset"):
            if node.kind == "Dataset":
                self._note(node, "a dataset in each record: read as lists")
            length = node.number("length")
            if len(scope.lengths) == _MAX_LEVELS:
                raise node.wrong(f"at most {_MAX_LEVELS} nested sequences", "more")
            inner = node.child(node.option("feature"))
            yield from self._features(inner, scope.item(None if length in (None, -1) else length))
        elif node.kind in ("Translation", "TranslationVariableLanguages"):
            yield from self._translation(node, scope)
        elif node.kind in _CONVERTERS:
            yield self._convert(node, scope)
        else:
            known = ", ".join((*_STRUCTURES, *_CONVERTERS))
            raise _no_counterpart(node, f"one of {known}", f"`{node.kind}`")

    def _convert(self, node: FeatureNode, scope: Scope) -> Feature:
        if not scope.key:
            problem = Problem(
                path=node.path, expected="features by name", got=f"a single {node.kind}", hint=_ALONE
            )
            raise SpecError(problem)
        try:
            return _CONVERTERS[node.kind](self, node, scope)
        except SpecError as error:  # raised by a feature kind, with the path of an option
            own = len(node.path)
            raise type(error)(
                [
                    problem if problem.path[:own] == node.path else problem.under(*node.path)
                    for problem in error.problems
                ]
            ) from None

    def _note(self, node: FeatureNode, text: str, *option: str) -> None:
        """Adds a note on a node, or on an option of it."""
        self.notes.append(Note(path=(*node.path, *option), text=text))

    def _stored(
        self, node: FeatureNode, scope: Scope, dtype: str, shape: PartialShape = (), default: Any = None
    ) -> Feature:
        """A list of numbers or bytes. Its shape combines the enclosing sequences and the shape of the
        node.
        """
        whole = (*scope.lengths, *shape)
        key, row_lengths = scope.key, tuple[str, ...]()
        if len(scope.lengths) > 1:
            if scope.lengths != (None,) * len(scope.lengths) or None in shape:
                # TFDS 4.9 writes such features as ragged, and reads them as if they were not
                raise _no_counterpart(
                    node, "nested sequences that all vary in length", "one of a fixed length"
                )
            levels = range(len(scope.lengths) - 1)
            key = f"{scope.key}/{FLAT}"
            row_lengths = tuple(f"{scope.key}/{ROW_LENGTHS}{level}" for level in levels)
            dtype = self._widened(node, dtype)
        elif None in whole[1:]:
            self._note(node, f"{show_shape(whole)} is read as one list", "shape")
            dtype, whole = self._widened(node, dtype), (None,)
        stored = StoredTensor(
            **_named(node, scope),
            key=key,
            dtype=dtype,
            shape=whole,
            default=default,
            row_lengths=row_lengths,
        )
        return stored.feature()

    def _widened(self, node: FeatureNode, dtype: str) -> str:
        """The stored dtype, with a note: only `tensor` narrows it, and takes no nested lists."""
        stored = STORED_DTYPES[dtype]
        if stored != dtype:
            self._note(node, f"{dtype} is read as {stored}, which stores it", "dtype")
        return stored

    def _tensor(self, node: FeatureNode, scope: Scope) -> Feature:
        dtype, shape = self._dtype(node), node.shape()
        for bound in ("minimum", "maximum"):
            if node.option(bound) is not None:
                self._note(node, "not checked", bound)
        encoding = node.text("encoding").lower() or "none"
        if encoding != "none":
            return self._encoded(node, scope, dtype, encoding)
        if dtype not in STORED_DTYPES:
            raise _no_counterpart(node, "an encoding for complex numbers", "none", "encoding")
        default = None
        if node.option("optional"):
            if dtype not in OPTIONAL_DEFAULTS or scope.lengths or None in shape or 0 in shape:
                self._note(node, "a record without it cannot be read", "optional")
            else:
                default = full_default(OPTIONAL_DEFAULTS[dtype], shape)
        if dtype in ("float64", "uint64"):  # TFDS keeps 24 bits of float64, and the sign bit of uint64
            dtype = self._widened(node, dtype)
        return self._stored(node, scope, dtype, shape, default)

    def _encoded(self, node: FeatureNode, scope: Scope, dtype: str, encoding: str) -> Feature:
        if encoding not in ("bytes", "zlib") or dtype == "string":
            raise node.wrong("one of none, bytes, zlib", f"`{encoding}` of {dtype}", "encoding")
        shape = node.shape()
        if shape.count(None) > 1:
            raise _no_counterpart(node, "at most one unknown size", show_shape(shape), "shape")
        if scope.lengths or None in shape[1:]:
            self._note(node, f"{dtype} {show_shape(shape)} as bytes: kept as bytes", "encoding")
            return self._stored(node, scope, "string")
        return AnyTensor(
            **_named(node, scope), dtype=dtype, shape=shape, encoding="zlib" if encoding == "zlib" else "raw"
        )

    def _dtype(self, node: FeatureNode) -> str:
        dtype = node.text("dtype")
        if dtype not in TFDS_DTYPES:
            raise node.wrong(f"one of {', '.join(TFDS_DTYPES)}", f"`{dtype}`", "dtype")
        return TFDS_DTYPES[dtype]

    def _label(self, node: FeatureNode, scope: Scope) -> Feature:
        names = self._class_names(scope.file)
        if not names:  # TFDS names classes without names by their numbers
            count = node.number("num_classes") or 0
            names = tuple(map(str, range(count))) if count <= _MAX_CLASSES else ()
        if not names or len(scope.lengths) > 1:
            self._note(node, "its classes have no counterpart: read as integers")
            return self._stored(node, scope, "int64")
        known = names[:-1] if names[-1] == OOV_NAME and len(names) > 1 else names
        oov: Any = "error" if known == names else "index"
        return Label(**_named(node, scope), names=known, shape=scope.lengths, oov=oov)

    def _text(self, node: FeatureNode, scope: Scope) -> Feature:
        return self._stored(node, scope, "string") if scope.lengths else Text(**_named(node, scope))

    def _translation(self, node: FeatureNode, scope: Scope) -> Iterator[Feature]:
        variable = node.option("variableLanguagesPerExample") or node.kind != "Translation"
        languages = node.option("languages")
        if variable:
            names, inner = ["language", "translation"], scope.item(None)
        elif isinstance(languages, list) and all(isinstance(name, str) for name in languages):
            names, inner = languages, scope
        else:
            raise node.wrong("a list of languages", str(languages), "languages")
        for name in names:
            yield self._text(node, inner.child(name))

    def _image(self, node: FeatureNode, scope: Scope) -> Feature:
        """An Image or LabeledImage; in a sequence it is a video, which TFDS stores in the same way."""
        if node.kind == "LabeledImage":
            self._note(node, "the names of its classes have no counterpart", "label")
        return self._pixels(node, scope, node.shape() or (None, None, 3))

    def _video(self, node: FeatureNode, scope: Scope) -> Feature:
        frames, *frame = node.shape() or (None, None, None, 3)
        return self._pixels(node, scope.item(frames), tuple(frame))

    def _pixels(self, node: FeatureNode, scope: Scope, shape: PartialShape) -> Feature:
        """Encoded images, if TFDS and recordspec decode them equally; otherwise bytes."""
        encoding, dtype = node.text("encoding_format"), node.text("dtype") or "uint8"
        if not encoding:
            encoding = "png"
            self._note(node, "not given: png is assumed, as TFDS does for arrays", "encoding_format")
        options: dict[str, Any] = {**_named(node, scope), "encoding": encoding, "dtype": dtype}
        known = encoding in ("png", "jpeg") and dtype in ("uint8", "uint16") and len(scope.lengths) < 2
        try:
            if known and scope.lengths:
                return Video(**options, shape=(*scope.lengths, *shape))
            if known:
                return Image(**options, shape=shape)
            why = f"{encoding} of {dtype}"
        except SpecError as error:
            why = str(error.problems[0])
        self._note(node, f"{why}: kept as bytes")
        return self._stored(node, scope, "string")

    def _audio(self, node: FeatureNode, scope: Scope) -> Feature:
        """Samples as a list or as bytes, or an encoded file that is decoded at read."""
        dtype = self._dtype(node)
        if node.option("lazy_decode"):
            return self._encoded_audio(node, scope, node.text("file_format"))
        if node.text("encoding").lower() == "bytes" and dtype in _SAMPLE_DTYPES:
            return self._encoded_audio(node, scope, "raw")
        self._note(node, "has no counterpart", "sample_rate")
        return self._tensor(node, scope)

    def _encoded_audio(self, node: FeatureNode, scope: Scope, encoding: str) -> Feature:
        shape, rate, dtype = node.shape(), node.number("sample_rate") or 0, self._dtype(node)
        if encoding not in get_args(SoundEncoding) or rate < 1 or scope.lengths:
            self._note(node, "its encoding or its sample rate is unknown: kept as bytes")
            return self._stored(node, scope, "string")
        if len(shape) < 2:
            self._note(node, "read as [samples, 1]", "shape")
        # TFDS casts the samples of a file to any dtype, but a file contains only int16
        if encoding != "raw" and (dtype != "int16" or encoding in ("mp3", "ogg")):
            self._note(node, f"{dtype} is read as float32, with 1.0 as full scale", "dtype")
            dtype = "float32"
        channels = shape[1] if len(shape) > 1 else 1
        options: dict[str, Any] = {"channels": channels or 0, "encoding": encoding, "dtype": dtype}
        return Audio(**_named(node, scope), sample_rate=rate, **options)

    def _boxes(self, node: FeatureNode, scope: Scope) -> Feature:
        """The BBoxFeatures of a sequence; a single one is four floats."""
        form: Any = node.text("bbox_format").lower()
        if scope.lengths == (None,) and form in get_args(BoxFormat):
            return Box(**_named(node, scope), format=form)
        self._note(node, f"{form or 'not given'}: read as four floats", "bbox_format")
        return self._stored(node, scope, "float32", (4,))


_ALONE = "no key is known; the files alone can be inferred: give them in place of the folder"
_STRUCTURES = ("FeaturesDict", "Sequence", "Translation")
_CONVERTERS: dict[str, Callable[[_FeatureImporter, FeatureNode, Scope], Feature]] = {
    "Tensor": _FeatureImporter._tensor,
    "Scalar": _FeatureImporter._tensor,
    "ClassLabel": _FeatureImporter._label,
    "Text": _FeatureImporter._text,
    "Image": _FeatureImporter._image,
    "LabeledImage": _FeatureImporter._image,
    "Video": _FeatureImporter._video,
    "Audio": _FeatureImporter._audio,
    "BBoxFeature": _FeatureImporter._boxes,
}


def _no_counterpart(node: FeatureNode, expected: str, got: str, *option: str) -> _NoCounterpartError:
    return _NoCounterpartError(node.wrong(expected, got, *option).problems)


def _named(node: FeatureNode, scope: Scope) -> dict[str, Any]:
    """The options common to every kind."""
    return {"name": scope.key, "description": node.description}


def import_schema(
    root: FeatureNode, name: str, class_names: ClassNames, source: str
) -> tuple[Schema, tuple[Note, ...]]:
    """Imports a schema. Also returns notes on parts without a counterpart. Raises SpecError, located at
    `source`.
    """
    importer = _FeatureImporter(class_names)
    try:
        schema = importer.schema(root, name)
    except SpecError as error:
        raise SpecError([problem.at(source) for problem in error.problems]) from None
    return schema, tuple(importer.notes)
