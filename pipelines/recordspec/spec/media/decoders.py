"""Codecs that only some installations of TensorFlow have, in graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recordspec._tf import tf
from recordspec.errors import MissingExtra, Problem

Tensor = Any


def decode_webp(data: Tensor, channels: int) -> Tensor:
    """A WebP image, string `[]`, as uint8 `[h, w, channels]`. Raises MissingExtra."""
    if not hasattr(tf.io, "decode_webp"):
        pixels = _by_tensorflow_io("webp", lambda tfio: tfio.image.decode_webp(data), "png or jpeg")
        return pixels[:, :, :channels]  # it is always given with transparency
    (pixels,) = tf.unstack(tf.ensure_shape(tf.io.decode_webp(data), [1, None, None, None]))
    if channels == 3:
        return pixels
    opaque = tf.fill([*tf.unstack(tf.shape(pixels)[:2]), 4 - tf.shape(pixels)[2]], tf.constant(255, tf.uint8))
    return tf.concat([pixels, opaque], 2)


def decode_flac(data: Tensor) -> Tensor:
    """A FLAC file, string `[]`, as int16 `[samples, channels]`. Raises MissingExtra."""
    return _sound("flac", lambda tfio: tfio.audio.decode_flac(data, dtype=tf.int16))


def decode_mp3(data: Tensor) -> Tensor:
    """An MP3 file, string `[]`, as float32 `[samples, channels]`. Raises MissingExtra."""
    return _sound("mp3", lambda tfio: tfio.audio.decode_mp3(data))


def decode_ogg(data: Tensor) -> Tensor:
    """An Ogg Vorbis file, string `[]`, as float32 `[samples, channels]`. Raises MissingExtra."""
    return _sound("ogg", lambda tfio: tfio.audio.decode_vorbis(data))


def _sound(encoding: str, decode: Callable[[Any], Tensor]) -> Tensor:
    return _by_tensorflow_io(encoding, decode, "wav or raw")


def _by_tensorflow_io(encoding: str, decode: Callable[[Any], Tensor], others: str) -> Tensor:
    """What an op of tensorflow-io gives; that the package can be imported says nothing of its ops."""
    try:
        import tensorflow_io

        return decode(tensorflow_io)
    except (ImportError, NotImplementedError, AttributeError) as error:
        got = (str(error).splitlines() or [type(error).__name__])[0]
        hint = f"store it as {others}, or pip install 'recordspec[io]' with Python 3.12 or older"
        expected = f"tensorflow-io to decode {encoding} with TensorFlow {tf.__version__}"
        raise MissingExtra(Problem(expected=expected, got=got, hint=hint)) from None
