"""Codecs that only some installations of TensorFlow have, in graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recordspec._tf import tf
from recordspec.errors import MissingExtra, Problem, see
from recordspec.schema.tensors import Tensor


def decode_webp(data: Tensor, channels: int) -> Tensor:
    """Decodes a WebP image, string `[]`, to uint8 `[h, w, channels]`. Raises MissingExtra."""
    if not hasattr(tf.io, "decode_webp"):
        pixels = by_tensorflow_io(
            "decode webp", lambda tfio: tfio.image.decode_webp(data), "store it as png or jpeg"
        )
        return pixels[:, :, :channels]  # the op always returns an alpha channel
    (pixels,) = tf.unstack(tf.ensure_shape(tf.io.decode_webp(data), [1, None, None, None]))
    if channels == 3:
        return pixels
    opaque = tf.fill([*tf.unstack(tf.shape(pixels)[:2]), 4 - tf.shape(pixels)[2]], tf.constant(255, tf.uint8))
    return tf.concat([pixels, opaque], 2)


def decode_sound(encoding: str, data: Tensor) -> Tensor:
    """Decodes an audio file, string `[]`, to `[samples, channels]`: flac to int16, mp3 and ogg (Vorbis) to
    float32.

    Raises MissingExtra.
    """
    calls: dict[str, Callable[[Any], Tensor]] = {
        "flac": lambda tfio: tfio.audio.decode_flac(data, dtype=tf.int16),
        "mp3": lambda tfio: tfio.audio.decode_mp3(data),
        "ogg": lambda tfio: tfio.audio.decode_vorbis(data),
    }
    return by_tensorflow_io(f"decode {encoding}", calls[encoding], "store it as wav or raw")


def by_tensorflow_io(purpose: str, call: Callable[[Any], Any], otherwise: str) -> Any:
    """Calls an op of tensorflow-io. Raises MissingExtra; `otherwise` is its hint.

    Even if the package can be imported, its ops may not load: their library fails with another version of
    TensorFlow than it was built for.
    """
    try:
        import tensorflow_io

        return call(tensorflow_io)
    except ImportError as error:
        got = str(error).splitlines()[0]
    except NotImplementedError:  # the error's text is a path and a mangled symbol
        import importlib.metadata

        version = importlib.metadata.version("tensorflow-io")
        got = f"tensorflow-io {version}, which does not load with TensorFlow {tf.__version__}"
    expected = f"tensorflow-io to {purpose} with TensorFlow {tf.__version__}"
    brings = "which brings TensorFlow 2.16 (Python 3.12 or older)"
    hint = f"{otherwise}, or pip install 'recordspec[io]', {brings}; {see('installing')}"
    raise MissingExtra(Problem(expected=expected, got=got, hint=hint))
