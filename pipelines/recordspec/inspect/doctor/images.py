"""Probes of image formats: those that TensorFlow reads, and those that Pillow writes."""

from __future__ import annotations

import io
from typing import Any

from recordspec._tf import tf
from recordspec.inspect.doctor.finding import check, version
from recordspec.inspect.doctor.samples import BMP, GIF, WEBP
from recordspec.spec.media.decoders import decode_webp

_PIXELS = [[[255, 0, 0], [0, 0, 255]]]  # red, blue: of both axes and the channels, none can be swapped


def read_png() -> str:
    return _read(tf.io.decode_png(tf.io.encode_png(tf.constant(_PIXELS, tf.uint8))))


def read_jpeg() -> str:
    grey = tf.fill([8, 16, 3], tf.constant(128, tf.uint8))  # JPEG keeps a uniform grey exactly
    decoded = tf.io.decode_jpeg(tf.io.encode_jpeg(grey))
    check(decoded.shape == (8, 16, 3) and bool(tf.reduce_all(decoded == grey)), "pixels")
    return _tensorflow()


def read_gif() -> str:
    return _read(tf.io.decode_gif(GIF)[0])


def read_bmp() -> str:
    return _read(tf.io.decode_bmp(BMP))


def read_webp() -> str:
    found = _read(decode_webp(WEBP, 3))
    return found if hasattr(tf.io, "decode_webp") else version("tensorflow-io")


def _read(decoded: Any) -> str:
    check(decoded.numpy().tolist() == _PIXELS, "pixels")
    return _tensorflow()


def _tensorflow() -> str:
    return f"TensorFlow {tf.__version__}"


def write(form: str) -> str:
    """Encodes an array 3 wide and 2 high, and decodes it again."""
    import numpy as np
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.zeros((2, 3, 3), np.uint8)).save(stream, form)
    with Image.open(stream) as image:
        image.load()
        check(image.format == form.upper(), "format")
        check(image.size == (3, 2), "size")
    return f"Pillow {version('pillow').removeprefix('pillow ')}"
