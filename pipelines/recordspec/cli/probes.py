"""Probes the capabilities of this installation, one probe a package. An import alone proves nothing."""

from __future__ import annotations

import importlib.metadata
import io
import platform
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass

from recordspec._tf import tf
from recordspec.errors import MissingExtra, Problem, see

# A FLAC file of 8 samples, one channel, int16 at 8,000 Hz: TensorFlow cannot encode FLAC.
FLAC = b64decode(
    "ZkxhQ4AAACIQABAAAAAZAAAZAfQA8AAAAAgrq7fVJX3XbYOewr1mnlF7//hkCAAH9hgAAA77GksfKwJZQ7htyPiAqg=="
)
_IMAGES = ("png", "jpeg", "webp", "bmp", "gif")
_SOUNDS = ("wav", "flac", "mp3", "ogg")

_TENSORFLOW = "pip install 'recordspec[tensorflow]'"
_CODEC = "install a C++ compiler, then pip install recordspec again"


@dataclass(frozen=True)
class Finding:
    """A capability: its name, whether it works, the version or the problem found, and advice for a
    problem."""

    capability: str
    works: bool
    found: str
    advice: str = ""


def examine() -> list[Finding]:
    """Runs every probe. Loads TensorFlow."""
    return [find(*probe) for probe in _PROBES]


def find(capability: str, probe: Callable[[], str], advice: str) -> Finding:
    """Runs a probe. The probe returns the version it found, or raises any exception."""
    try:
        return Finding(capability, True, probe())
    except MissingExtra as error:  # the message that the pipeline of a user would show
        (problem,) = error.problems
        # each row would name the same page
        return Finding(capability, False, problem.got, problem.hint.removesuffix(f"; {see('installing')}"))
    except Exception as error:  # the report exists to show any failure
        lines = str(error).splitlines() or [""]
        return Finding(capability, False, f"{type(error).__name__}: {lines[0][:80]}", advice)


def _codec() -> str:
    from recordspec.wire import native

    if native.missing():
        raise MissingExtra(Problem(expected="the native codec", got=native.describe(), hint=_CODEC))
    return native.describe()


def _version(package: str) -> str:
    """The name and the version of a package."""
    return f"{package} {importlib.metadata.version(package)}"


def _python() -> str:
    return f"Python {platform.python_version()}"


def _checksums() -> str:
    import crc32c

    kind = "in hardware" if crc32c.hardware_based else "in software, slow"
    return f"{importlib.metadata.version('crc32c')}, {kind}"


def _tensorflow() -> str:
    tf.io.parse_example([b""], {"x": tf.io.VarLenFeature(tf.int64)})
    return f"TensorFlow {tf.__version__}"


def _tensorflow_io() -> str:
    from recordspec.schema.media import decoders

    decoders.decode_sound("flac", FLAC)
    return _version("tensorflow-io")


def _pillow() -> str:
    from PIL import Image

    for form in _IMAGES:
        Image.new("RGB", (3, 2)).save(io.BytesIO(), form)
    return f"Pillow {importlib.metadata.version('pillow')}"


def _soundfile() -> str:
    import soundfile

    for form in _SOUNDS:
        soundfile.write(io.BytesIO(), [0.0] * 32, 8000, format=form)
    return f"soundfile {soundfile.__version__}, libsndfile {soundfile.__libsndfile_version__}"


def _pyarrow() -> str:
    import pyarrow
    from pyarrow import csv, parquet

    table = csv.read_csv(pyarrow.BufferReader(b"a\n1\n"))
    parquet.write_table(table, pyarrow.BufferOutputStream())
    return _version("pyarrow")


def _pandas() -> str:
    import pandas

    pandas.DataFrame({"a": [1, None]})
    return _version("pandas")


def _polars() -> str:
    import polars

    polars.DataFrame({"a": [1, None]}).to_arrow()
    return _version("polars")


def _obstore() -> str:
    import obstore
    from obstore.store import MemoryStore

    obstore.put(MemoryStore(), "a", b"1")
    return _version("obstore")


def _jax() -> str:
    import jax

    jax.numpy.arange(3)
    return f"{_version('jax')}, {_version('keras')}"


def _torch() -> str:
    import torch

    torch.arange(3)
    return f"{_version('torch')}, {_version('keras')}"


_PROBES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("python", _python, ""),
    ("codec", _codec, "pip install numpy"),
    ("checksums", _checksums, "pip install crc32c"),
    ("tensorflow", _tensorflow, _TENSORFLOW),
    ("decoding of flac, mp3 and ogg by TensorFlow", _tensorflow_io, _TENSORFLOW),
    ("encoding of images", _pillow, "pip install 'pillow>=10.2'"),
    ("encoding of audio", _soundfile, "pip install 'recordspec[audio]'"),
    ("csv and parquet files", _pyarrow, "pip install 'pyarrow<26'"),
    ("pandas frames", _pandas, "pip install 'recordspec[frames]'"),
    ("polars frames", _polars, "pip install 'recordspec[frames]'"),
    ("object stores", _obstore, "pip install 'recordspec[remote]'"),
    ("training on jax", _jax, "pip install 'recordspec[jax]'"),
    ("training on pytorch", _torch, "pip install 'recordspec[torch]'"),
)
