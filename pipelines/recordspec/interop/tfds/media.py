"""Images, sounds and boxes of TFDS as kinds of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from recordspec.errors import SpecError
from recordspec.interop.tfds.nodes import Node
from recordspec.interop.tfds.places import Place, Shape, named
from recordspec.spec.features import Feature
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.box import Box, Format
from recordspec.spec.features.image import Image
from recordspec.spec.features.video import Video
from recordspec.spec.media.sounds import Encoding

if TYPE_CHECKING:
    from recordspec.interop.tfds.reading import Reader

_SAMPLES = ("int16", "float32")


def image(reader: Reader, node: Node, place: Place) -> Feature:
    """An Image or LabeledImage; in a sequence a video, which TFDS stores as one."""
    shape = node.shape() or (None, None, 3)
    if node.kind == "LabeledImage":
        reader.note(node, "the names of its classes have no counterpart", "label")
    return _pixels(reader, node, place, shape)


def video(reader: Reader, node: Node, place: Place) -> Feature:
    """A Video: a sequence of images."""
    frames, *frame = node.shape() or (None, None, None, 3)
    return _pixels(reader, node, place.each(frames), tuple(frame))


def _pixels(reader: Reader, node: Node, place: Place, shape: Shape) -> Feature:
    """Encoded images, where they are of those that both decode to the same."""
    encoding, dtype = node.text("encoding_format"), node.text("dtype") or "uint8"
    if not encoding:
        encoding = "png"
        reader.note(node, "not said: png is taken, as TFDS does for arrays", "encoding_format")
    options: dict[str, Any] = {"encoding": encoding, "dtype": dtype}
    known = encoding in ("png", "jpeg") and dtype in ("uint8", "uint16") and len(place.lengths) < 2
    try:
        if known and place.lengths:
            return Video(**named(node, place), shape=(*place.lengths, *shape), **options)
        if known:
            return Image(**named(node, place), shape=shape, **options)
        why = f"{encoding} of {dtype}"
    except SpecError as error:
        why = str(error.problems[0])
    reader.note(node, f"{why}: they stay bytes")
    return reader.values(node, place, "string")


def audio(reader: Reader, node: Node, place: Place) -> Feature:
    """An Audio: samples as a list or as bytes, or a file that is decoded when it is read."""
    dtype = reader.dtype(node)
    if node.option("lazy_decode"):
        return _sound(reader, node, place, node.text("file_format"))
    if node.text("encoding").lower() == "bytes" and dtype in _SAMPLES:
        return _sound(reader, node, place, "raw")
    reader.note(node, "has no counterpart", "sample_rate")
    return reader.tensor(node, place)


def _sound(reader: Reader, node: Node, place: Place, encoding: str) -> Feature:
    """Encoded samples; `audio` must know what the encoding is, and the rate."""
    shape, rate = node.shape(), node.number("sample_rate") or 0
    if encoding not in get_args(Encoding) or rate < 1 or place.lengths:
        reader.note(node, "its encoding or its sample rate is not said: it stays bytes")
        return reader.values(node, place, "string")
    if len(shape) < 2:
        reader.note(node, "read as [samples, 1]", "shape")
    channels = shape[1] if len(shape) > 1 else 1
    options: dict[str, Any] = {"channels": channels or 0, "encoding": encoding}
    dtype: Any = _dtype_of_sound(reader, node, encoding)
    return Audio(**named(node, place), sample_rate=rate, dtype=dtype, **options)


def _dtype_of_sound(reader: Reader, node: Node, encoding: str) -> str:
    """TFDS gives the integers of a file in any dtype; of ours, int16 are these."""
    dtype = reader.dtype(node)
    if encoding == "raw" or (dtype == "int16" and encoding not in ("mp3", "ogg")):
        return dtype
    reader.note(node, f"{dtype} is read as float32, with 1.0 as full scale", "dtype")
    return "float32"


def boxes(reader: Reader, node: Node, place: Place) -> Feature:
    """BBoxFeatures of a sequence; one alone is four floats."""
    given: Any = node.text("bbox_format").lower()
    if place.lengths == (None,) and given in get_args(Format):
        return Box(**named(node, place), format=given)
    reader.note(node, f"{given or 'not said'}: read as four floats", "bbox_format")
    return reader.values(node, place, "float32", (4,))
