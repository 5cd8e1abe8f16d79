"""Tests what this installation supports. Each probe runs the feature: an import proves nothing."""

from __future__ import annotations

import importlib.metadata
import io
import platform
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordspec._tf import tf
from recordspec.errors import MissingExtra, Problem, see

_PIXELS = [[[255, 0, 0], [0, 0, 255]]]  # red, blue: of both axes and the channels, none can be swapped
# The shortest files of formats that have no encoder in TensorFlow. The images are these pixels.
GIF = b64decode("R0lGODdhAgABAIEAAP8AAAAA/wAAAAAAACwAAAAAAgABAAAIBQABBAgIADs=")
BMP = b64decode("Qk0+AAAAAAAAADYAAAAoAAAAAgAAAAEAAAABABgAAAAAAAgAAADEDgAAxA4AAAAAAAAAAAAAAAD//wAAAAA=")
WEBP = b64decode("UklGRh4AAABXRUJQVlA4TBEAAAAvAQAAAA8Q87//8x8OMqL/AQA=")
# The sounds have one channel.
SAMPLES = (0, 3835, 6731, 7979, 7274, 4787, 1128, -2806)  # int16 at 8,000 Hz
WAV = b64decode("UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YRAAAAAAAPsOSxorH2ocsxJoBAr1")
FLAC = b64decode(
    "ZkxhQ4AAACIQABAAAAAZAAAZAfQA8AAAAAgrq7fVJX3XbYOewr1mnlF7//hkCAAH9hgAAA77GksfKwJZQ7htyPiAqg=="
)
# 2,304 samples of a tone at 24,000 Hz: the rate at which 8 kbit/s make the fewest bytes, and no tag
MP3 = b64decode(
    "//MUxAABuMLYAUAQAf//QgGBix7///nC//MUxAQDONb0AYBQAOGBx0ZBrxmLb/////MUxAIC0Nb4AYA4APzQm4mCRsuD09X///MU"
    "xAECYMrIAcAQAP5SlDAQEBGepUxB"
)
# 32 samples at 8,000 Hz, with one codebook of two entries: those of an encoder take thousands of bytes.
OGG = b64decode(
    "T2dnUwACAAAAAAAAAAABAAAAAAAAAFnn/5ABHgF2b3JiaXMAAAAAAUAfAAAAAAAAAAAAAAAAAABmAU9nZ1MAAAAAAAAAAAAAAQAA"
    "AAEAAAC+uRXOAhA9A3ZvcmJpcwAAAAAAAAAAAQV2b3JiaXMAQkNWAQACAAAAEAEAgOICAIBiQAAAAAgAABQQAAAAAAACAPABAAAA"
    "BAAAAAAAAAAAAAAAAIBPZ2dTAAQgAAAAAAAAAAEAAAACAAAAb1osGgIHB1pawnEcxwFaWsJxHMcB"
)
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


def _read_images() -> str:
    _checked_pixels(tf.io.decode_png(tf.io.encode_png(tf.constant(_PIXELS, tf.uint8))))
    _checked_pixels(tf.io.decode_gif(GIF)[0])
    _checked_pixels(tf.io.decode_bmp(BMP))
    grey = tf.fill([8, 16, 3], tf.constant(128, tf.uint8))  # JPEG keeps a uniform grey exactly
    decoded = tf.io.decode_jpeg(tf.io.encode_jpeg(grey))
    _check(decoded.shape == (8, 16, 3) and bool(tf.reduce_all(decoded == grey)), "pixels")
    return _tensorflow()


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


def _read_sounds() -> str:
    sound = _decoders().decode_sound("flac", FLAC)
    _check(sound[:, 0].numpy().tolist() == list(SAMPLES), "samples")
    for form, data, samples, peak in (("mp3", MP3, 2304, 0.29), ("ogg", OGG, 32, 0.02)):
        sound = _decoders().decode_sound(form, data)
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


_PROBES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("python", _python, ""),
    ("codec", _codec, "pip install numpy"),
    ("checksums", _checksums, "pip install crc32c"),
    ("parsing", _parsing, _TENSORFLOW),
    ("images when reading: png, jpeg, gif, bmp", _read_images, _TENSORFLOW),
    ("images when reading: webp", _read_webp, _TENSORFLOW),
    *(
        (f"images when writing: {form}", partial(_write_image, form), _IMAGE)
        for form in ("png", "jpeg", "webp", "bmp", "gif")
    ),
    ("audio when reading: wav", _read_wav, _TENSORFLOW),
    ("audio when reading: flac, mp3, ogg", _read_sounds, _TENSORFLOW),
    *(
        (f"audio when writing: {form}", partial(_write_sound, form), _AUDIO)
        for form in ("wav", "flac", "mp3", "ogg")
    ),
    ("csv and parquet files", _tables, _ARROW),
    ("pandas frames", _pandas, "pip install 'recordspec[frames]'"),
    ("polars frames", _polars, "pip install 'recordspec[frames]'"),
)
