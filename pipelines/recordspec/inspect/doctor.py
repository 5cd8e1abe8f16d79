"""What this installation can do. Each probe runs the thing: an import proves nothing."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recordspec._tf import tf


@dataclass(frozen=True)
class Finding:
    """One capability: whether it works, what was found, and what to do about it."""

    capability: str
    works: bool
    found: str
    advice: str = ""


def examine() -> list[Finding]:
    """Runs every probe. Loads TensorFlow."""
    return [_finding(*probe) for probe in _PROBES]


def _finding(capability: str, probe: Callable[[], str], advice: str) -> Finding:
    try:
        return Finding(capability, True, probe())
    except Exception as error:  # whatever is broken is what the report is for
        lines = str(error).splitlines() or [""]
        return Finding(capability, False, f"{type(error).__name__}: {lines[0][:80]}", advice)


def _python() -> str:
    return f"Python {platform.python_version()}"


def _checksums() -> str:
    import crc32c

    if crc32c.crc32c(b"123456789") != 0xE3069283:  # the check value of CRC-32C, RFC 3720
        raise ValueError("wrong checksum")
    kind = "in hardware" if crc32c.hardware_based else "in software, slow"
    return f"{_version('crc32c')}, {kind}"


def _parsing() -> str:
    example = b"\n\x0c\n\n\n\x01x\x12\x05\x1a\x03\n\x01\x07"  # {"x": 7}
    parsed = tf.io.parse_example([example], {"x": tf.io.FixedLenFeature([], tf.int64)})
    if parsed["x"].numpy().tolist() != [7]:
        raise ValueError("wrong value")
    return f"TensorFlow {tf.__version__}"


def _images_in_graph() -> str:
    pixels = tf.zeros([2, 2, 3], tf.uint8)
    for encode, decode in ((tf.io.encode_png, tf.io.decode_png), (tf.io.encode_jpeg, tf.io.decode_jpeg)):
        if decode(encode(pixels)).shape != (2, 2, 3):
            raise ValueError("wrong shape")
    return "PNG, JPEG"


def _images_at_write() -> str:
    import io

    from PIL import Image

    for form in ("png", "jpeg"):
        stream = io.BytesIO()
        Image.new("RGB", (2, 2)).save(stream, form)
        Image.open(stream).load()
    return f"Pillow {_version('pillow')}"


def _csv() -> str:
    import pyarrow
    from pyarrow import csv

    csv.read_csv(pyarrow.BufferReader(b"a\n1\n"))
    return f"pyarrow {pyarrow.__version__}"


def _frames() -> str:
    import pandas

    pandas.DataFrame({"a": [1]}).isna()
    return f"pandas {pandas.__version__}"


def _tensorflow_io() -> str:
    import tensorflow_io as tfio

    flac: Any = tfio.audio.encode_flac(tf.zeros([16, 1], tf.int16), 8000)
    if tfio.audio.decode_flac(flac, dtype=tf.int16).shape != (16, 1):
        raise ValueError("wrong shape")
    return f"tensorflow-io {_version('tensorflow-io')}"


def _version(package: str) -> str:
    return importlib.metadata.version(package)


_PROBES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("python", _python, ""),
    ("checksums", _checksums, "pip install crc32c"),
    ("parsing", _parsing, "pip install tensorflow"),
    ("images when reading", _images_in_graph, "pip install tensorflow"),
    ("images when writing", _images_at_write, "pip install 'recordspec[image]'"),
    ("csv files", _csv, "pip install 'recordspec[csv]'"),
    ("pandas frames", _frames, "pip install 'recordspec[frames]'"),
    (
        "tensorflow-io",
        _tensorflow_io,
        "needs TensorFlow 2.16 and Python 3.12 or older: pip install 'recordspec[io]'",
    ),
)
