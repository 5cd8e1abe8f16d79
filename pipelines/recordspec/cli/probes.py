"""Tests what this installation supports. Each probe runs the feature: an import proves nothing."""

from __future__ import annotations

import importlib.metadata
import io
import platform
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recordspec._tf import tf
from recordspec.errors import MissingExtra, Problem, see

# Short files of formats that TensorFlow has no encoder for: red and blue pixels, so that of both axes and the
# channels none can be swapped; and a sound of one channel, int16 at 8,000 Hz.
PIXELS = [[[255, 0, 0], [0, 0, 255]]]
WEBP = b64decode("UklGRh4AAABXRUJQVlA4TBEAAAAvAQAAAA8Q87//8x8OMqL/AQA=")
SAMPLES = (0, 3835, 6731, 7979, 7274, 4787, 1128, -2806)
FLAC = b64decode(
    "ZkxhQ4AAACIQABAAAAAZAAAZAfQA8AAAAAgrq7fVJX3XbYOewr1mnlF7//hkCAAH9hgAAA77GksfKwJZQ7htyPiAqg=="
)
_IMAGES = ("png", "jpeg", "webp", "bmp", "gif")
_SOUNDS = ("wav", "flac", "mp3", "ogg")
_LOSSLESS = ("wav", "flac")

_TENSORFLOW = "pip install 'recordspec[tensorflow]'"
_CODEC = "install a C++ compiler, then pip install recordspec again"
_IMAGE = "pip install 'pillow>=10.2'"
_ARROW = "pip install 'pyarrow<26'"
_AUDIO = "pip install 'recordspec[audio]'"


@dataclass(frozen=True)
class Finding:
    """One capability: whether it works, what was found, and what to do about it."""

    capability: str
    works: bool
    found: str
    advice: str = ""


def examine() -> list[Finding]:
    """Runs every probe. Loads TensorFlow."""
    return [find(*probe) for probe in _PROBES]


def find(capability: str, probe: Callable[[], str], advice: str) -> Finding:
    """Runs a probe, which returns what it found, or raises anything."""
    try:
        return Finding(capability, True, probe())
    except MissingExtra as error:  # as a user's pipeline reports it
        (problem,) = error.problems
        # each row would name the same page
        return Finding(capability, False, problem.got, problem.hint.removesuffix(f"; {see('installing')}"))
    except Exception as error:  # whatever is broken is what the report is for
        lines = str(error).splitlines() or [""]
        return Finding(capability, False, f"{type(error).__name__}: {lines[0][:80]}", advice)


def _codec() -> str:
    from recordspec.wire import native

    if native.missing():
        raise MissingExtra(Problem(expected="the native codec", got=native.describe(), hint=_CODEC))
    return native.describe()


def _check(holds: bool, what: str) -> None:
    """Raises ValueError if what came out is not what went in."""
    if not holds:
        raise ValueError(f"wrong {what}")


def _version(package: str) -> str:
    """A package by name and version."""
    return f"{package} {importlib.metadata.version(package)}"


def _decoders() -> Any:
    """recordspec's decoders. They import NumPy: without it, their probes fail, and no others."""
    from recordspec.schema.media import decoders

    return decoders


def _tensorflow() -> str:
    return f"TensorFlow {tf.__version__}"


def _python() -> str:
    return f"Python {platform.python_version()}"


def _checksums() -> str:
    import crc32c

    # the check value of CRC-32C, RFC 3720
    _check(crc32c.crc32c(b"123456789") == 0xE3069283, "checksum")
    kind = "in hardware" if crc32c.hardware_based else "in software, slow"
    return f"{importlib.metadata.version('crc32c')}, {kind}"


def _parsing() -> str:
    example = b"\n\x0c\n\n\n\x01x\x12\x05\x1a\x03\n\x01\x07"  # {"x": 7}
    parsed = tf.io.parse_example([example], {"x": tf.io.FixedLenFeature([], tf.int64)})
    _check(parsed["x"].numpy().tolist() == [7], "value")
    return _tensorflow()


def _read_webp() -> str:
    decoded = _decoders().decode_webp(WEBP, 3)
    _check(decoded.numpy().tolist() == PIXELS, "pixels")
    return _tensorflow() if hasattr(tf.io, "decode_webp") else _version("tensorflow-io")


def _read_sounds() -> str:
    sound = _decoders().decode_sound("flac", FLAC)
    _check(sound[:, 0].numpy().tolist() == list(SAMPLES), "samples")
    return _version("tensorflow-io")


def _write_images() -> str:
    """Encodes an array 3 wide and 2 high, and decodes it again."""
    import numpy as np
    from PIL import Image

    for form in _IMAGES:
        stream = io.BytesIO()
        Image.fromarray(np.zeros((2, 3, 3), np.uint8)).save(stream, form)
        with Image.open(stream) as image:
            image.load()
            _check(image.format == form.upper() and image.size == (3, 2), form)
    return f"Pillow {importlib.metadata.version('pillow')}"


def _write_sounds() -> str:
    """Encodes a short ramp, and decodes it again."""
    import numpy as np
    import soundfile

    ramp = np.arange(0, 6400, 200, dtype=np.int16)
    for form in _SOUNDS:
        stream = io.BytesIO()
        soundfile.write(stream, ramp, 8000, format=form)
        sound, rate = soundfile.read(io.BytesIO(stream.getvalue()), dtype="int16")
        _check((sound.shape, rate) == (ramp.shape, 8000), form)
        _check(form not in _LOSSLESS or sound.tolist() == ramp.tolist(), form)
    return f"soundfile {soundfile.__version__}, libsndfile {soundfile.__libsndfile_version__}"


def _tables() -> str:
    import pyarrow
    from pyarrow import csv, parquet

    text = csv.read_csv(pyarrow.BufferReader(b"a\n1\n"))
    _check(text.to_pydict() == {"a": [1]}, "value")
    file = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"a": [1]}), file)
    table = parquet.read_table(pyarrow.BufferReader(file.getvalue()))
    _check(table.to_pydict() == {"a": [1]}, "value")
    return f"pyarrow {pyarrow.__version__}"


def _pandas() -> str:
    import pandas

    frame = pandas.DataFrame({"a": [1, None]})
    _check(frame["a"].isna().tolist() == [False, True], "value")
    return f"pandas {pandas.__version__}"


def _polars() -> str:
    import polars

    table = polars.DataFrame({"a": [1, None]}).to_arrow()
    _check(table.to_pydict() == {"a": [1, None]}, "value")
    return f"polars {polars.__version__}"


def _stores() -> str:
    import obstore
    from obstore.store import MemoryStore

    store = MemoryStore()
    obstore.put(store, "a", b"1")
    _check(bytes(obstore.get(store, "a").bytes()) == b"1", "bytes")
    return _version("obstore")


def _jax() -> str:
    import jax

    _check(jax.numpy.arange(3).tolist() == [0, 1, 2], "values")
    return f"{_version('jax')}, {_version('keras')}"


def _torch() -> str:
    import torch

    _check(torch.arange(3).tolist() == [0, 1, 2], "values")
    return f"{_version('torch')}, {_version('keras')}"


_PROBES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("python", _python, ""),
    ("codec", _codec, "pip install numpy"),
    ("checksums", _checksums, "pip install crc32c"),
    ("tensorflow", _parsing, _TENSORFLOW),
    ("webp images when TensorFlow reads", _read_webp, _TENSORFLOW),
    ("flac, mp3 and ogg sounds when TensorFlow reads", _read_sounds, _TENSORFLOW),
    ("images when writing", _write_images, _IMAGE),
    ("sounds when writing", _write_sounds, _AUDIO),
    ("csv and parquet files", _tables, _ARROW),
    ("pandas frames", _pandas, "pip install 'recordspec[frames]'"),
    ("polars frames", _polars, "pip install 'recordspec[frames]'"),
    ("object stores", _stores, "pip install 'recordspec[remote]'"),
    ("training on jax", _jax, "pip install 'recordspec[jax]'"),
    ("training on pytorch", _torch, "pip install 'recordspec[torch]'"),
)
