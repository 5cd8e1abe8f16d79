"""A schema of ours as features.json of TFDS, and the names of its labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.interop.forms import filled
from recordspec.interop.notes import Note
from recordspec.interop.tfds.dtypes import optional_default
from recordspec.interop.tfds.places import FLAT, ROW_LENGTHS, file_stem
from recordspec.spec.features import Feature
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.box import Box
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.fixed_len_sequence import FixedLenSequence
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import OOV_NAME, Label
from recordspec.spec.features.ragged import RaggedLists
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen
from recordspec.spec.features.video import Video
from recordspec.spec.schema import Schema

Json = dict[str, Any]

_MODULE = "tensorflow_datasets.core.features"
# What BBoxFeature knows.
_BOXES = ("xyxy", "yxyx", "xywh", "rel_xyxy", "rel_yxyx")
_IMAGES = ("png", "jpeg")


class UntoldError(Exception):
    """A feature that TFDS cannot read: how it is stored is none of its ways."""


def write_features(schema: Schema) -> tuple[Json, list[Note]]:
    """The JSON of features.json, and notes on features that are left out: TFDS passes over their keys.

    Raises SpecError where nothing is left.
    """
    if schema.shared_keys:
        raise SpecError(schema.shared_keys)
    features, notes = {}, []
    for section, feature in schema.placed:
        try:
            if section != "features":
                raise UntoldError("TFDS stores Examples, not SequenceExamples")
            key, node = _key(feature), told(feature)
        except UntoldError as untold:
            notes.append(Note(path=(section, feature.name), text=f"left out: {untold}"))
            continue
        features[key] = node | ({"description": feature.description} if feature.description else {})
    if not features:
        expected = "a feature that TFDS can read"
        raise SpecError(
            [Problem(where=schema.name, path=note.path, expected=expected, got=note.text) for note in notes]
        )
    root = _node("features_dict.FeaturesDict", "featuresDict", {"features": features})
    return root | ({"description": schema.description} if schema.description else {}), notes


def label_files(schema: Schema) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The stem of the file that TFDS looks for the names of a label's classes in, and the names.

    Those are left out that it would not read as they are: it strips lines, and passes over empty ones.
    """
    for _, feature in schema.placed:
        if isinstance(feature, Label):
            names = (*feature.names, *([OOV_NAME] * (feature.oov == "index")))
            if all(name.strip() == name != "" and "\n" not in name for name in names):
                yield file_stem(feature.stored), names


def _key(feature: Feature) -> str:
    """What TFDS calls a feature: the key that it is stored under, or of ragged ones what comes before."""
    key = feature.columns()[0].key
    return key.removesuffix(f"/{FLAT}") if isinstance(feature, RaggedLists) else key


def _node(name: str, field: str, content: Json) -> Json:
    return {"pythonClassName": f"{_MODULE}.{name}", field: content}


def _shape(shape: tuple[int | None, ...]) -> Json:
    return {"dimensions": [str(-1 if size is None else size) for size in shape]} if shape else {}


def _tensor(dtype: str, shape: tuple[int | None, ...] = (), encoding: str = "none", **more: Any) -> Json:
    content = {"shape": _shape(shape), "dtype": dtype, "encoding": encoding, **more}
    return _node("tensor_feature.Tensor", "tensor", content)


def _sequence(feature: Json, length: int | None = None) -> Json:
    content = {"feature": feature, "length": str(-1 if length is None else length)}
    return _node("sequence_feature.Sequence", "sequence", content)


@singledispatch
def told(feature: Feature) -> Json:
    """The node of a feature. Raises UntoldError."""
    raise UntoldError(f"kind {feature.kind} is none of TFDS")


@told.register
def _(feature: FixedLen) -> Json:
    default = optional_default(feature.dtype)
    optional = feature.default is not None and feature.default == filled(default, feature.shape)
    more: Json = {"optional": True} if optional else {}
    return _tensor(feature.dtype, feature.shape, **more)


@told.register
def _(feature: VariableLen) -> Json:
    return _sequence(_tensor(feature.dtype))


@told.register
def _(feature: FixedLenSequence) -> Json:
    return _sequence(_tensor(feature.dtype, feature.shape))


@told.register
def _(feature: RaggedLists) -> Json:
    values, *lengths = (column.key for column in feature.columns())
    base = values.removesuffix(f"/{FLAT}")
    if lengths and lengths != [f"{base}/{ROW_LENGTHS}{level}" for level in range(len(lengths))]:
        wanted = f"`{base}/{FLAT}` and `{base}/{ROW_LENGTHS}0`"
        raise UntoldError(f"TFDS looks for lists in lists under keys such as {wanted}")
    levels = 1 + len(lengths)
    node = _tensor(feature.dtype, feature.shape[levels:])
    for _ in range(levels):
        node = _sequence(node)
    return node


@told.register
def _(feature: AnyTensor) -> Json:
    if feature.columns()[0].storage != "bytes":
        return _tensor(feature.dtype, feature.shape)
    if feature.dtype == "uint32":
        raise UntoldError("TFDS does not decode bytes of uint32")
    encoding = "zlib" if feature.encoding == "zlib" else "bytes"
    return _tensor(feature.dtype, feature.shape, encoding)


@told.register
def _(feature: Label) -> Json:
    content = {"numClasses": str(feature.classes)}
    node = _node("class_label_feature.ClassLabel", "classLabel", content)
    return _sequence(node, feature.shape[0]) if feature.shape else node


@told.register
def _(feature: Text) -> Json:
    return _node("text_feature.Text", "text", {})


@told.register
def _(feature: Image) -> Json:
    if feature.encoding == "raw":
        return _tensor(feature.dtype, feature.shape, "bytes")
    if feature.encoding in _IMAGES:
        return _node("image_feature.Image", "image", _pixels(feature))
    return _tensor("string")  # its decoder is another one, or gives another shape


@told.register
def _(feature: Video) -> Json:
    if feature.encoding in _IMAGES:
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


@told.register
def _(feature: Audio) -> Json:
    if feature.encoding != "raw":
        return _tensor("string")  # decoded by a package that TFDS does not bring
    content = {
        "shape": _shape((None, feature.channels)),
        "dtype": feature.dtype,
        "sampleRate": str(feature.sample_rate),
        "encoding": "BYTES",
    }
    return _node("audio_feature.Audio", "audio", content)


@told.register
def _(feature: Box) -> Json:
    if feature.format not in _BOXES:
        return _sequence(_tensor("float32", (4,)))
    content = {"shape": _shape((4,)), "dtype": "float32", "bboxFormat": feature.format.upper()}
    return _sequence(_node("bounding_boxes.BBoxFeature", "boundingBox", content))
