"""Exports a schema to features.json of TFDS, and the class names of its labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.interop.notes import Note
from recordspec.interop.stored_tensor import full_default
from recordspec.interop.tfds.nodes import FLAT, OPTIONAL_DEFAULTS, ROW_LENGTHS, file_stem
from recordspec.schema.features import Feature
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.box import Box
from recordspec.schema.features.image import Image
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.video import Video
from recordspec.schema.schema import Schema
from recordspec.wire.columns import TF_DTYPES, Column, Component, Fixed, Ragged, Sequence, VarLen

Json = dict[str, Any]

_MODULE = "tensorflow_datasets.core.features"
# The formats of BBoxFeature.
_BOX_FORMATS = ("xyxy", "yxyx", "xywh", "rel_xyxy", "rel_yxyx")
# Image encodings that TFDS and recordspec decode equally.
_IMAGE_ENCODINGS = ("png", "jpeg")


class UnsupportedFeatureError(Exception):
    """A feature whose stored form TFDS cannot read."""


def export_features(schema: Schema) -> tuple[Json, list[Note]]:
    """The JSON of features.json, and notes on omitted features. TFDS ignores the keys of omitted features.

    Raises SpecError if no feature is left.
    """
    if schema._shared_keys:
        raise SpecError(schema._shared_keys)
    features: Json = {}
    notes = []
    for place, feature in schema._placed:
        described = {"description": feature.description} if feature.description else {}
        try:
            if place.section != "features":
                raise UnsupportedFeatureError("TFDS stores Examples, not SequenceExamples")
            features |= {key: node | described for key, node in to_nodes(feature).items()}
        except UnsupportedFeatureError as why:
            notes.append(Note(path=(place.section, feature.name), text=f"left out: {why}"))
    if not features:
        expected = "a feature that TFDS can read"
        raise SpecError(
            [Problem(where=schema.name, path=note.path, expected=expected, got=note.text) for note in notes]
        )
    root = _node("features_dict.FeaturesDict", "featuresDict", {"features": features})
    return root | ({"description": schema.description} if schema.description else {}), notes


def label_files(schema: Schema) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The stem of the file in which TFDS expects the class names of a label, and the names.

    A label is omitted if TFDS would change its names: TFDS strips lines, and ignores empty lines.
    """
    for _, feature in schema._placed:
        names = feature.traits.class_names
        if names and all(name.strip() == name != "" and "\n" not in name for name in names):
            yield file_stem(feature.stored), names


def _node(name: str, field: str, content: Json) -> Json:
    return {"pythonClassName": f"{_MODULE}.{name}", field: content}


def _shape(shape: tuple[int | None, ...]) -> Json:
    return {"dimensions": [str(-1 if size is None else size) for size in shape]} if shape else {}


def _tensor(
    dtype: str, shape: tuple[int | None, ...] = (), encoding: str = "none", optional: bool = False
) -> Json:
    content: Json = {"shape": _shape(shape), "dtype": dtype, "encoding": encoding}
    content |= {"optional": True} if optional else {}
    return _node("tensor_feature.Tensor", "tensor", content)


def _sequence(feature: Json, length: int | None = None) -> Json:
    content = {"feature": feature, "length": str(-1 if length is None else length)}
    return _node("sequence_feature.Sequence", "sequence", content)


def to_nodes(feature: Feature) -> Json:
    """The nodes of a feature by key; TFDS reads a node from its key. Raises UnsupportedFeatureError if TFDS
    cannot read the feature."""
    node = _meaning(feature)
    if node is not None:
        return {feature.columns()[0].key: node}
    columns = [column for column in feature.columns() if not isinstance(column.layout, Component)]
    return dict(_stored(feature, column) for column in columns)


def _stored(feature: Feature, column: Column) -> tuple[str, Json]:
    """Describes a column of any kind. Returns the key from which TFDS reads it, and its node."""
    dtype, layout = TF_DTYPES[column.storage], column.layout
    if (
        feature.traits.class_names
        and column.storage == "int64"
        and isinstance(layout, Fixed | VarLen | Ragged)
    ):
        return column.key, _class_label(feature, layout)
    if isinstance(layout, Fixed):
        optional = layout.default is not None and layout.default == full_default(
            OPTIONAL_DEFAULTS[dtype], layout.shape
        )
        return column.key, _tensor(dtype, layout.shape, optional=optional)
    if isinstance(layout, VarLen):
        return column.key, _sequence(_tensor(dtype))
    if isinstance(layout, Sequence):
        return column.key, _sequence(_tensor(dtype, layout.shape))
    if isinstance(layout, Ragged):
        base = column.key.removesuffix(f"/{FLAT}") if layout.row_lengths else column.key
        levels = range(len(layout.row_lengths))
        keys = (f"{base}/{FLAT}", *(f"{base}/{ROW_LENGTHS}{level}" for level in levels))
        if layout.row_lengths and (column.key, *layout.row_lengths) != keys:
            expected = f"`{keys[0]}` and `{keys[1]}`"
            raise UnsupportedFeatureError(f"TFDS expects nested sequences under keys such as {expected}")
        node = _sequence(_tensor(dtype, layout.shape))
        for _ in levels:
            node = _sequence(node)
        return base, node
    raise UnsupportedFeatureError(f"kind {feature.kind} cannot be expressed in TFDS")


def _class_label(feature: Feature, layout: Fixed | VarLen | Ragged) -> Json:
    content = {"numClasses": str(len(feature.traits.class_names))}
    node = _node("class_label_feature.ClassLabel", "classLabel", content)
    for length in reversed(layout.shape) if isinstance(layout, Fixed) else (None,):
        node = _sequence(node, length)
    return node


@singledispatch
def _meaning(feature: Feature) -> Json | None:
    """The node of a kind for which TFDS has a class or a dtype. None for any other kind: its columns are
    exported instead.

    Raises UnsupportedFeatureError if TFDS cannot read the feature.
    """
    return None


@_meaning.register
def _(feature: AnyTensor) -> Json:
    if feature.columns()[0].storage != "bytes":
        return _tensor(feature.dtype, feature.shape)
    if feature.dtype == "uint32":
        raise UnsupportedFeatureError("TFDS does not decode bytes of uint32")
    return _tensor(feature.dtype, feature.shape, "zlib" if feature.encoding == "zlib" else "bytes")


@_meaning.register
def _(feature: Text) -> Json:
    return _node("text_feature.Text", "text", {})


@_meaning.register
def _(feature: Image) -> Json | None:
    if feature.encoding == "raw":
        return _tensor(feature.dtype, feature.shape, "bytes")
    if feature.encoding in _IMAGE_ENCODINGS:
        return _node("image_feature.Image", "image", _pixels(feature))
    return None


@_meaning.register
def _(feature: Video) -> Json | None:
    if feature.encoding in _IMAGE_ENCODINGS:
        return _node("video_feature.Video", "video", _pixels(feature))
    if feature.encoding == "raw":
        return _sequence(_tensor(feature.dtype, feature.shape[1:], "bytes"), feature.shape[0])
    return _sequence(_tensor("string"), feature.shape[0])


def _pixels(feature: Image | Video) -> Json:
    return {
        "shape": _shape(feature.shape),
        "dtype": feature.dtype,
        "encodingFormat": feature.encoding,
    }


@_meaning.register
def _(feature: Audio) -> Json | None:
    if feature.encoding != "raw":
        return None
    content = {
        "shape": _shape((None, feature.channels)),
        "dtype": feature.dtype,
        "sampleRate": str(feature.sample_rate),
        "encoding": "BYTES",
    }
    return _node("audio_feature.Audio", "audio", content)


@_meaning.register
def _(feature: Box) -> Json | None:
    if feature.format not in _BOX_FORMATS or feature.keys:
        return None
    content = {"shape": _shape((4,)), "dtype": "float32", "bboxFormat": feature.format.upper()}
    return _sequence(_node("bounding_boxes.BBoxFeature", "boundingBox", content))
