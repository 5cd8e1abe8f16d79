"""tensorflow-io: its import succeeds, with warnings, where none of its ops can be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recordspec._tf import tf
from recordspec.inspect.doctor.finding import UnusableError, check, version


def tensorflow_io() -> str:
    samples = by_tensorflow_io(lambda tfio: tfio.audio.encode_flac(tf.zeros([16, 1], tf.int16), 8000))
    check(samples.numpy().startswith(b"fLaC"), "bytes")
    return f"{version('tensorflow-io')} with TensorFlow {tf.__version__}"


def by_tensorflow_io(call: Callable[[Any], Any]) -> Any:
    """What an op of tensorflow-io gives. Raises UnusableError where its library does not load."""
    import tensorflow_io

    try:
        return call(tensorflow_io)
    except NotImplementedError:  # its text is a path and a mangled symbol
        together = f"{version('tensorflow-io')} does not load with TensorFlow {tf.__version__}"
        raise UnusableError(together) from None
