"""tensorflow-io: its import succeeds, with warnings, where none of its ops can be called."""

from __future__ import annotations

from recordspec._tf import tf
from recordspec.inspect.doctor.finding import check, version
from recordspec.spec.media.decoders import by_tensorflow_io


def tensorflow_io() -> str:
    flac = by_tensorflow_io(
        "encode", lambda tfio: tfio.audio.encode_flac(tf.zeros([16, 1], tf.int16), 8000), "do without"
    )
    check(flac.numpy().startswith(b"fLaC"), "bytes")
    return f"{version('tensorflow-io')} with TensorFlow {tf.__version__}"
