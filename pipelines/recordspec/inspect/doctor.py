"""What this installation can do. Each probe runs the thing: an import proves nothing."""

from __future__ import annotations

import importlib.metadata
import io
import os
import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordspec._tf import tf
from recordspec.errors import MissingExtra
from recordspec.inspect.doctor_samples import BMP, FLAC, GIF, MP3, OGG, SAMPLES, WAV, WEBP

_PIXELS = [[[255, 0, 0], [0, 0, 255]]]  # red, blue: of both axes and the channels, none can be swapped
_LOSSLESS = ("wav", "flac")

_TENSORFLOW = "pip install tensorflow"
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
        return Finding(capability, False, problem.got, problem.hint)
    except Exception as error:  # whatever is broken is what the report is for
        lines = str(error).splitlines() or [""]
        return Finding(capability, False, f"{type(error).__name__}: {lines[0][:80]}", advice)


def _check(holds: bool, what: str) -> None:
    """Raises ValueError if what came out is not what went in."""
    if not holds:
        raise ValueError(f"wrong {what}")


def _version(package: str) -> str:
    """A package by name and version."""
    return f"{package} {importlib.metadata.version(package)}"


def _decoders() -> Any:
    """recordspec's decoders. They import NumPy: without it, their probes fail, and no others."""
    from recordspec.spec.media import decoders

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


def _read_png() -> str:
    return _checked_pixels(tf.io.decode_png(tf.io.encode_png(tf.constant(_PIXELS, tf.uint8))))


def _read_jpeg() -> str:
    grey = tf.fill([8, 16, 3], tf.constant(128, tf.uint8))  # JPEG keeps a uniform grey exactly
    decoded = tf.io.decode_jpeg(tf.io.encode_jpeg(grey))
    _check(decoded.shape == (8, 16, 3) and bool(tf.reduce_all(decoded == grey)), "pixels")
    return _tensorflow()


def _read_gif() -> str:
    return _checked_pixels(tf.io.decode_gif(GIF)[0])


def _read_bmp() -> str:
    return _checked_pixels(tf.io.decode_bmp(BMP))


def _read_webp() -> str:
    found = _checked_pixels(_decoders().decode_webp(WEBP, 3))
    return found if hasattr(tf.io, "decode_webp") else _version("tensorflow-io")


def _checked_pixels(decoded: Any) -> str:
    _check(decoded.numpy().tolist() == _PIXELS, "pixels")
    return _tensorflow()


def _write_image(form: str) -> str:
    """Encodes an array 3 wide and 2 high, and decodes it again."""
    import numpy as np
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.zeros((2, 3, 3), np.uint8)).save(stream, form)
    with Image.open(stream) as image:
        image.load()
        _check(image.format == form.upper(), "format")
        _check(image.size == (3, 2), "size")
    return f"Pillow {importlib.metadata.version('pillow')}"


def _read_wav() -> str:
    sound, rate = tf.audio.decode_wav(WAV)
    _check(sound[:, 0].numpy().tolist() == [sample / 2**15 for sample in SAMPLES], "samples")
    _check(int(rate) == 8000, "rate")
    return _tensorflow()


def _read_flac() -> str:
    sound = _decoders().decode_sound("flac", FLAC)
    _check(sound[:, 0].numpy().tolist() == list(SAMPLES), "samples")
    return _version("tensorflow-io")


def _read_mp3() -> str:
    return _checked_samples(_decoders().decode_sound("mp3", MP3), samples=2304, peak=0.29)


def _read_ogg() -> str:
    return _checked_samples(_decoders().decode_sound("ogg", OGG), samples=32, peak=0.02)


def _checked_samples(sound: Any, samples: int, peak: float) -> str:
    _check(sound.shape == (samples, 1), "shape")
    # decoders round differently: a tenth either way is the same sound
    _check(0.9 * peak < float(tf.reduce_max(abs(sound))) < 1.1 * peak, "samples")
    return _version("tensorflow-io")


def _write_sound(form: str) -> str:
    """Encodes a short ramp, and decodes it again."""
    import numpy as np
    import soundfile

    ramp = np.arange(0, 6400, 200, dtype=np.int16)
    stream = io.BytesIO()
    soundfile.write(stream, ramp, 8000, format=form)
    sound, rate = soundfile.read(io.BytesIO(stream.getvalue()), dtype="int16")
    _check((sound.shape, rate) == (ramp.shape, 8000), "shape")
    _check(form not in _LOSSLESS or sound.tolist() == ramp.tolist(), "samples")
    return f"soundfile {soundfile.__version__}, libsndfile {soundfile.__libsndfile_version__}"


def _tensorflow_io() -> str:
    """Its import succeeds, with warnings, where none of its ops can be called."""
    flac = _decoders().by_tensorflow_io(
        "encode", lambda tfio: tfio.audio.encode_flac(tf.zeros([16, 1], tf.int16), 8000), "do without"
    )
    _check(flac.numpy().startswith(b"fLaC"), "bytes")
    return f"{_version('tensorflow-io')} with {_tensorflow()}"


def _csv() -> str:
    import pyarrow
    from pyarrow import csv

    table = csv.read_csv(pyarrow.BufferReader(b"a\n1\n"))
    _check(table.to_pydict() == {"a": [1]}, "value")
    return f"pyarrow {pyarrow.__version__}"


def _parquet() -> str:
    import pyarrow
    from pyarrow import parquet

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


def _local_files() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return _write_and_read(os.path.join(folder, "file"))


def _ram_files() -> str:
    return _write_and_read(f"ram://recordspec-doctor-{os.getpid()}/file")


def _write_and_read(path: str) -> str:
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(b"7")
    with tf.io.gfile.GFile(path, "rb") as file:
        _check(file.read() == b"7", "bytes")
    tf.io.gfile.remove(path)
    return "written and read by tf.io.gfile"


_PROBES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("python", _python, ""),
    ("checksums", _checksums, "pip install crc32c"),
    ("parsing", _parsing, _TENSORFLOW),
    ("images when reading: png", _read_png, _TENSORFLOW),
    ("images when reading: jpeg", _read_jpeg, _TENSORFLOW),
    ("images when reading: gif", _read_gif, _TENSORFLOW),
    ("images when reading: bmp", _read_bmp, _TENSORFLOW),
    ("images when reading: webp", _read_webp, _TENSORFLOW),
    *(
        (f"images when writing: {form}", partial(_write_image, form), _IMAGE)
        for form in ("png", "jpeg", "webp", "bmp", "gif")
    ),
    ("audio when reading: wav", _read_wav, _TENSORFLOW),
    ("audio when reading: flac", _read_flac, _TENSORFLOW),
    ("audio when reading: mp3", _read_mp3, _TENSORFLOW),
    ("audio when reading: ogg", _read_ogg, _TENSORFLOW),
    *(
        (f"audio when writing: {form}", partial(_write_sound, form), _AUDIO)
        for form in ("wav", "flac", "mp3", "ogg")
    ),
    ("tensorflow-io", _tensorflow_io, _TENSORFLOW),
    ("csv files", _csv, _ARROW),
    ("parquet files", _parquet, _ARROW),
    ("pandas frames", _pandas, "pip install 'recordspec[frames]'"),
    ("polars frames", _polars, "pip install 'recordspec[frames]'"),
    # after tensorflow-io, which registers file systems when it is imported
    ("files: local", _local_files, _TENSORFLOW),
    ("files: ram://", _ram_files, _TENSORFLOW),
)
