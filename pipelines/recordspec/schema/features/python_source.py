"""The Python that decodes each kind of feature with TensorFlow alone, as expressions of its columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.base import Feature
from recordspec.schema.features.box import Box
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.fixed_len_sequence import FixedLenSequence
from recordspec.schema.features.geometry import Pictures, Resize
from recordspec.schema.features.image import Image
from recordspec.schema.features.label import Label
from recordspec.schema.features.options import static
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.sparse import SparseValues
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.features.video import Video
from recordspec.schema.values import numpy_dtype
from recordspec.wire.columns import Column, literal

# Expressions by the names of the tensors that they give.
Outputs = dict[tuple[str, ...], str]


def refused(option: str, expected: str, got: str) -> SpecError:
    return SpecError(Problem(path=(option,), expected=expected, got=got, hint="leave it out of the schema"))


def outputs_of(feature: Feature, values: Mapping[str, str]) -> Outputs:
    """The expressions of the tensors of a feature, of the expressions of its columns, a batch, by key.

    Raises SpecError for any other kind, which may decode inherited columns in another way, and
    for an encoding that TensorFlow alone does not decode.
    """
    if type(feature) not in outputs.registry:
        raise refused("kind", "a kind of recordspec", feature.kind)
    return outputs(feature, values)


@singledispatch
def outputs(feature: Feature, values: Mapping[str, str]) -> Outputs:
    """The expressions of the tensors of a feature, of the expressions of its columns, a batch, by key."""
    raise refused("kind", "a kind of recordspec", feature.kind)


@outputs.register
def _label(feature: Label, values: Mapping[str, str]) -> Outputs:
    if feature.encoding != "name":
        return _as_parsed(feature, values)
    known = f"CLASS_NAMES[{feature.name!r}]{'[:-1]' if feature.oov == 'index' else ''}"
    return {feature.outputs: f"indices_of({values[feature.stored]}, {known}, {feature.unknown_name!r})"}


@outputs.register(Text)
@outputs.register(RaggedLists)
@outputs.register(SparseValues)
def _as_parsed(feature: Feature, values: Mapping[str, str]) -> Outputs:
    return {feature.outputs: values[feature.stored]}


@outputs.register
def _fixed_len(feature: FixedLen, values: Mapping[str, str]) -> Outputs:
    value = values[feature.stored]
    if feature.with_missing:
        value = f"with_default({value}, {literal(feature.default)}, {static(feature.shape)!r})"
    return {feature.outputs: value}


@outputs.register
def _var_len(feature: VariableLen, values: Mapping[str, str]) -> Outputs:
    value = values[feature.stored]
    return {feature.outputs: value} if feature.as_ != "dense" else _padded(feature, value, (), True)


@outputs.register
def _fixed_len_sequence(feature: FixedLenSequence, values: Mapping[str, str]) -> Outputs:
    value = values[feature.stored]
    # steps with a padding are parsed as ragged ones, since `tf.io` takes no padding there
    ragged = feature.with_length or "merged_steps" in value
    return _padded(feature, value, static(feature.shape), ragged)


def _padded(
    feature: VariableLen | FixedLenSequence, value: str, shape: tuple[int, ...], ragged: bool
) -> Outputs:
    """A list padded to a dense tensor, which it may be already, and its lengths."""
    dense = f"{value}.to_tensor({'' if feature.pad is None else literal(feature.pad)})" if ragged else value
    if feature.max_length is not None:
        dense = f"padded({value}, {literal(feature.pad)}, {feature.max_length}, {shape!r})"
    decoded: Outputs = {feature.outputs[:1]: dense}
    return decoded | {(length,): f"{value}.row_lengths()" for length in feature.outputs[1:]}


@outputs.register
def _tensor(feature: AnyTensor, values: Mapping[str, str]) -> Outputs:
    (column,) = feature.columns()
    if not feature.with_missing:
        return {feature.outputs: _numbers(feature, column, values[feature.stored])}
    layout: Any = column.layout
    filled = f"with_default({values[feature.stored]}, {literal(layout.default)}, {layout.shape!r})"
    # the values and which are missing, of which the values are decoded
    decoded = _numbers(feature, column, "parsed")
    return {feature.outputs: f"(lambda parsed, missing: ({decoded}, missing))(*{filled})"}


def _numbers(feature: AnyTensor, column: Column, value: str) -> str:
    dtype = feature.dtype
    varies = feature.shape[:1] == (None,)
    cell = static(feature.shape[1:] if varies else feature.shape)
    if column.storage != "bytes":
        if dtype != column.storage:
            value = f"narrowed({value}, {dtype!r})" if "int" in dtype else f"tf.cast({value}, tf.{dtype})"
        return value
    if feature.encoding == "zlib":
        value = f"tf.io.decode_compressed({value}, 'ZLIB')"
    if varies:
        size = math.prod(cell) * numpy_dtype(dtype).itemsize
        return f"split_raw({value}, lambda data: {_raw('data', dtype)}, {size}, {list(cell)})"
    return f"reshaped({_raw(value, dtype)}, {value}, {cell!r})"


def _raw(data: str, dtype: str) -> str:
    twin = {"uint32": "int32", "uint64": "int64"}.get(dtype)  # `decode_raw` does not have these
    if twin is not None:
        return f"tf.bitcast(tf.io.decode_raw({data}, tf.{twin}), tf.{dtype})"
    return f"tf.io.decode_raw({data}, tf.{dtype})"


@outputs.register
def _image(feature: Image, values: Mapping[str, str]) -> Outputs:
    return {feature.outputs: _images(feature, values[feature.stored])}


def _images(feature: Image, value: str) -> str:
    data, resize = _of_one(feature.spec()) if feature.per_example else value, feature.resizing
    pixels = _pixels(feature, data)
    if resize is not None:
        arguments = ", ".join(map(repr, resize.arguments(feature.pad)))
        pixels = f"resized({pixels}, {arguments})"
        if resize.scaled_decoding:
            pixels = f"resized_jpeg({data}, {feature.shape}, True, {arguments})[0]"
    if not feature.per_example:
        return pixels
    return _one_by_one(pixels, value, feature.spec())


@singledispatch
def sides_of_images(feature: Pictures, values: Mapping[str, str]) -> str:
    """The expression of the height and width of images before they are resized, int32 `[n, 2]`."""
    raise refused("kind", "a kind of recordspec", feature.kind)


@sides_of_images.register
def _sides_of_images(feature: Image, values: Mapping[str, str]) -> str:
    return _sides(feature, values[feature.stored])


@sides_of_images.register
def _sides_of_videos(feature: Video, values: Mapping[str, str]) -> str:
    return f"sides_of_videos({values[feature.stored]}, lambda frames: {_sides(feature.frame, 'frames')})"


def _sides(feature: Image, value: str) -> str:
    if not feature.per_example:
        return f"sides_of({_pixels(feature, value)}, {value})"
    return _one_by_one(f"sides_of({_pixels(feature, 'data')}, data)", value, tf.TensorSpec([2], tf.int32))


def _is_ragged(spec: Any) -> bool:
    return type(spec).__name__ == "RaggedTensorSpec"


def _of_one(spec: Any) -> str:
    """The string of one record in an expression for `_one_by_one`."""
    return "record['data']" if _is_ragged(spec) else "data"


def _one_by_one(expression: str, value: str, spec: Any) -> str:
    """The decoded strings of a batch, of the expression that decodes one."""
    shape, dtype = spec.shape.as_list(), f"tf.{spec.dtype.name}"
    if not _is_ragged(spec):
        type_ = f"tf.TensorSpec({shape}, {dtype})"
        return (
            f"tf.map_fn(\n    lambda data: {expression},\n    {value},\n    fn_output_signature={type_},\n)"
        )
    type_ = f"tf.RaggedTensorSpec({shape}, {dtype}, {spec.ragged_rank}, tf.int64)"
    return f"one_by_one(\n    lambda record: {expression},\n    {{'data': {value}}},\n    {type_},\n)"


def _pixels(feature: Image, data: str) -> str:
    calls = {
        "png": f"tf.io.decode_png({data}, {feature.channels}, tf.{feature.dtype})",
        "jpeg": f"tf.io.decode_jpeg({data}, {feature.channels})",
        "bmp": f"tf.io.decode_bmp({data})",
        "gif": f"tf.io.decode_gif({data})[0]",
        "raw": f"reshaped(tf.io.decode_raw({data}, tf.{feature.dtype}), {data}, {static(feature.shape)!r})",
    }
    if feature.encoding not in calls:
        raise refused("encoding", "one that every TensorFlow decodes", feature.encoding)
    call = calls[feature.encoding]
    return call if feature.encoding == "raw" else f"tf.ensure_shape({call}, {list(feature.shape)})"


@outputs.register
def _video(feature: Video, values: Mapping[str, str]) -> Outputs:
    frames = _images(feature.frame, "frames")
    return {feature.outputs: f"decode_videos({values[feature.stored]}, lambda frames: {frames})"}


@outputs.register
def _audio(feature: Audio, values: Mapping[str, str]) -> Outputs:
    value = values[feature.stored]
    if feature.encoding == "raw":
        size = feature.channels * np.dtype(feature.dtype).itemsize
        samples = (
            f"split_raw({value}, lambda data: {_raw('data', feature.dtype)}, {size}, [{feature.channels}])"
        )
    elif feature.encoding == "wav":
        decoded = f"decode_wav({_of_one(feature.spec())}, {feature.sample_rate})"
        samples = f"converted_samples({decoded}, {feature.channels}, {feature.dtype!r})"
    else:
        raise refused("encoding", "one that every TensorFlow decodes", feature.encoding)
    if feature.resample not in (None, feature.sample_rate):
        samples = f"resampled({samples}, {feature.sample_rate}, {feature.resample})"
    if feature.per_example:
        samples = _one_by_one(samples, value, feature.spec())
    return {feature.outputs: samples}


@outputs.register
def _box(feature: Box, values: Mapping[str, str]) -> Outputs:
    if not feature.keys:
        return _as_parsed(feature, values)
    return {feature.outputs: f"stacked([{', '.join(values[key] for key in feature.keys)}])"}


@singledispatch
def in_resized(feature: Feature, value: str, sides: str, resize: Resize) -> str:
    """The expression of coordinates in resized images.

    `value` is that of the coordinates before, `sides` that of the height and width of the images before.
    """
    raise refused("kind", "a kind of recordspec", feature.kind)


@in_resized.register
def _box_in_resized(feature: Box, value: str, sides: str, resize: Resize) -> str:
    if feature.drop is not None:
        raise refused("drop", "none, as boxes are not dropped there", "one")
    options = (feature.format, resize.size, resize.aspect, feature.pad or 0)
    return f"resized_boxes({value}, {sides}, {', '.join(map(repr, options))})"
