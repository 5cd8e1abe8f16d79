"""Encodes audio for records: checks files, bytes and samples, and returns encoded bytes."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recordspec.errors import describe, missing_package, show_shape
from recordspec.locations import Location, is_path
from recordspec.schema.media import file_of, path_of, read_file
from recordspec.schema.media.resampling import MOST_WEIGHTS, resampled_array, weights
from recordspec.schema.values import Array, BadValue
from recordspec.wire.file_types import describe_type

if TYPE_CHECKING:
    from recordspec.schema.features.audio import Audio

SoundEncoding = Literal["wav", "flac", "mp3", "ogg", "raw"]

# libsndfile's names of the formats, and of the subtypes that TensorFlow's decoders accept.
_FORMATS = {
    "wav": ("WAV", ("PCM_16",)),
    "flac": ("FLAC", ("PCM_16",)),
    "mp3": ("MP3", ("MPEG_LAYER_III",)),
    "ogg": ("OGG", ("VORBIS",)),
}
_SUFFIXES = {".wav": "WAV", ".flac": "FLAC", ".mp3": "MP3", ".ogg": "OGG", ".oga": "OGG"}
# Suffixes of audio files, including formats that are not stored but re-encoded.
SUFFIXES = (*_SUFFIXES, ".opus", ".aif", ".aiff")
# Formats of libsndfile that share a suffix.
_ALIKE = {"WAVEX": "WAV"}
_EXACT_16 = ("PCM_16", "PCM_U8", "PCM_S8")  # 16 bits hold every sample
_LOUD = ("MPEG_LAYER_III", "VORBIS", "OPUS")
# Formats whose truncation is detected: by their chunks, or by libsndfile.
_CHECKABLE = ("WAV", "WAVEX", "AIFF", "FLAC", "OGG", "MP3")
_SAMPLES_AT_ONCE = 1 << 16
_MOST_SAMPLES = 1 << 40  # libsndfile reports 2^63 - 1 for a FLAC file without a length
_FULL_SCALE = 1 << 15  # the int16 of 1.0; tf.audio.decode_wav divides by it


def encoded(target: Audio, row: int, value: Any) -> bytes:
    """Encodes audio, given as a path, a file's bytes, or samples, to stored bytes. Raises BadValue."""
    value = file_of(value)
    if is_path(value):
        return _from_file(target, row, path_of(row, value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return _stored(target, row, data, _opened(row, data, "", _hint(target)), "")
    if isinstance(value, np.ndarray) and not np.ma.is_masked(value):
        samples = np.asarray(value)
        return _from_samples(target, row, _mixed(target, row, samples, "") if target.convert else samples)
    raise BadValue(row, "a path, bytes, or an array of samples", describe(value))


def _expected(target: Audio) -> str:
    return f"samples {target.dtype} {show_shape((None, target.channels))}"


def _from_file(target: Audio, row: int, path: Location) -> bytes:
    data = read_file(row, path, "a sound file")
    name = f"{path}: "
    sound = _opened(row, data, name, _hint(target))
    said, encoding = format_named(str(path)), _ALIKE.get(sound.format, sound.format)
    if said is not None and said != encoding and not target.convert:
        hint = f"it is named {path.suffix}; `convert: true` takes it"
        raise BadValue(row, f"{said} data", f"{name}{describe_type(data)}", hint)
    return _stored(target, row, data, sound, name)


def _hint(target: Audio) -> str:
    return "give raw samples as an array" if target.encoding == "raw" else ""


def format_named(path: str) -> str | None:
    """libsndfile's name of the format that a file's suffix means; None for another suffix."""
    return _SUFFIXES.get(PurePath(path).suffix.lower())


class _PlainWav:
    """A 16-bit WAV file without other chunks, with the attributes of a `soundfile.SoundFile`."""

    format, subtype = "WAV", "PCM_16"

    def __init__(self, data: bytes) -> None:
        self.channels, self.samplerate = struct.unpack_from("<HI", data, 22)
        start = 28 + int.from_bytes(data[16:20], "little")
        self._rest = np.frombuffer(data, "<i2", offset=start).reshape(-1, self.channels)
        self.frames = len(self._rest)

    def read(self, frames: int, dtype: str, always_2d: bool) -> Array:
        block, self._rest = self._rest[:frames], self._rest[frames:]
        return block.astype(np.int16) if dtype == "int16" else block / np.float32(_FULL_SCALE)


def opened(data: bytes) -> Any:
    """Opens audio as a `soundfile.SoundFile`; a plain WAV file does not need soundfile.

    Raises MissingExtra; soundfile.LibsndfileError for other bytes.
    """
    return _PlainWav(data) if _is_plain_wav(data) else soundfile("audio").SoundFile(io.BytesIO(data))


def _opened(row: int, data: bytes, name: str, hint: str = "") -> Any:
    try:
        return opened(data)
    except RuntimeError:  # soundfile's LibsndfileError
        raise BadValue(row, "a sound", f"{name}{describe_type(data)}", hint) from None


def _stored(target: Audio, row: int, data: bytes, sound: Any, name: str) -> bytes:
    """The bytes unchanged if TensorFlow decodes them; otherwise re-encoded."""
    fits = (sound.samplerate, sound.channels) == (target.sample_rate, target.channels)
    if not fits and not target.convert and sound.samplerate != target.sample_rate:
        got = f"{name}{sound.samplerate} Hz"
        raise BadValue(row, f"a sample rate of {target.sample_rate} Hz", got, "`convert: true` resamples it")
    if not fits and not target.convert:
        hint = "`convert: true` mixes them" if target.channels == 1 else ""
        raise BadValue(row, f"channels: {target.channels}", f"{name}{sound.channels}", hint)
    _check_whole(row, data, sound, name)
    same = fits and (sound.format, (sound.subtype,)) == _FORMATS.get(target.encoding)
    same = same and (target.encoding != "wav" or _is_plain_wav(data))
    samples = _samples(target, row, sound, name, target.dtype if same or not target.convert else "float32")
    if len(samples) != sound.frames:
        got = f"{name}{describe_type(data)} with {len(samples):,}"
        raise BadValue(row, f"{sound.frames:,} samples", got, "it is cut or damaged")
    if not fits:
        samples = _resampled(target, row, _mixed(target, row, samples, name), sound.samplerate, name)
    _check_length(target, row, len(samples), name)
    if same:
        return data
    if (sound.subtype in _LOUD or not fits) and target.encoding != "raw":
        samples = np.clip(samples, -1, 1)  # as players do: lossy codecs and filters exceed full scale
    if target.dtype == "int16" and samples.dtype != np.int16:
        samples = _of_16_bits(samples)
    return _from_samples(target, row, samples, name)


def _mixed(target: Audio, row: int, samples: Array, name: str) -> Array:
    """Converts samples `[n, c]` to the feature's channels: to one by the mean, to several by repeating
    one.
    """
    channels = samples.shape[1] if samples.ndim == 2 else target.channels
    if channels == target.channels:
        return samples
    if target.channels == 1:
        mean = samples.mean(axis=1, dtype=np.float64, keepdims=True)
        return np.asarray((np.rint(mean) if samples.dtype.kind == "i" else mean).astype(samples.dtype))
    if channels == 1:
        return np.repeat(samples, target.channels, axis=1)
    hint = "`channels: 1` mixes them"
    raise BadValue(row, f"1 channel, or {target.channels}", f"{name}{channels}", hint)


def _resampled(target: Audio, row: int, samples: Array, rate: int, name: str) -> Array:
    """Resamples to the feature's rate, like the option `resample` at read."""
    if rate == target.sample_rate or not len(samples):
        return samples
    if weights(rate, target.sample_rate) > MOST_WEIGHTS:
        expected = f"a rate that has a large divisor in common with {target.sample_rate}"
        raise BadValue(row, expected, f"{name}{rate} Hz")
    return resampled_array(samples, rate, target.sample_rate)


def features_storing(data: bytes, sound: Any) -> frozenset[tuple[int, str]] | None:
    """The channels and dtype of a feature that would store the audio unchanged, from its header as
    reported by soundfile; None for truncated audio, or audio without samples.
    """
    try:
        _check_whole(0, data, sound, "")
    except BadValue:
        return None
    if not sound.frames:
        return None
    plain = (sound.format, (sound.subtype,)) in _FORMATS.values()
    if not plain or (sound.format == "WAV" and not _is_plain_wav(data)):
        return frozenset()
    return frozenset({(int(sound.channels), "float32")})


def _check_whole(row: int, data: bytes, sound: Any, name: str) -> None:
    """Raises BadValue for a truncated file, judged by the sizes of its chunks: libsndfile reads the rest
    without an error.
    """
    if sound.format not in _CHECKABLE:
        hint = "write it as WAV or FLAC"
        raise BadValue(row, f"one of {', '.join(_CHECKABLE)}", f"{name}{sound.format_info}", hint)
    if sound.frames > _MOST_SAMPLES:
        hint = "it was streamed: write it again"
        raise BadValue(
            row, "a file that says how long it is", f"{name}{describe_type(data)} that does not", hint
        )
    order = {b"RIFF": "little", b"RIFX": "big", b"FORM": "big"}.get(data[:4])
    place = 12 if order else len(data)
    while place + 8 <= len(data):
        size = int.from_bytes(data[place + 4 : place + 8], order)  # type: ignore[arg-type]
        missing = place + 8 + size - len(data)
        if missing > 0:
            got = f"{name}{describe_type(data)} that lacks {missing:,} bytes"
            raise BadValue(row, "all of its samples", got)
        place += 8 + size + size % 2


def _is_plain_wav(data: bytes) -> bool:
    """Whether a WAV file has only a header and samples: tf.audio.decode_wav rejects some other chunks."""
    if len(data) < 44:
        return False
    size = int.from_bytes(data[16:20], "little")
    start = 28 + size
    fields = struct.unpack_from("<HHIIHH", data, 20)
    _, channels, rate, *_ = fields
    return (
        data[:4] + data[8:16] == b"RIFFWAVEfmt "
        and size in (16, 18)
        and fields == (1, channels, rate, rate * channels * 2, channels * 2, 16)
        and data[20 + size : 24 + size] == b"data"
        and int.from_bytes(data[24 + size : start], "little") == len(data) - start
        and channels > 0 == (len(data) - start) % (2 * channels)
    )


def _samples(target: Audio, row: int, sound: Any, name: str, dtype: str) -> Array:
    if dtype == "int16" and sound.subtype not in _EXACT_16:
        hint = "dtype float32 takes it, or `convert: true`"
        raise BadValue(row, "samples of 16 bits", f"{name}{sound.subtype_info}", hint)
    blocks = []
    try:
        while len(block := sound.read(_SAMPLES_AT_ONCE, dtype=dtype, always_2d=True)):
            blocks.append(block)
    except RuntimeError as error:  # soundfile's LibsndfileError
        raise BadValue(row, "audio that decodes", f"{name}{_reason(error)}") from None
    return np.concatenate(blocks) if blocks else np.zeros((0, sound.channels), dtype)


def _reason(error: Any) -> str:
    """The message of libsndfile, as part of a sentence."""
    return str(getattr(error, "error_string", error)).removeprefix("Error : ").rstrip(".")


def _check_length(target: Audio, row: int, frames: int, name: str) -> None:
    if not frames:
        raise BadValue(row, "at least one sample", f"{name}none")
    seconds = frames / target.sample_rate
    if target.max_seconds is not None and seconds > target.max_seconds:
        expected = f"at most {target.max_seconds:g} s (max_seconds)"
        raise BadValue(row, expected, f"{name}{seconds:.3f} s")


def _from_samples(target: Audio, row: int, samples: Array, name: str = "") -> bytes:
    """Encodes an array `[n, channels]`, or `[n]` for one channel, to stored bytes."""
    if samples.ndim == 1 and target.channels == 1:
        samples = samples[:, None]
    if samples.ndim != 2 or samples.shape[1] != target.channels:
        raise BadValue(row, _expected(target), f"shape {show_shape(samples.shape)}")
    _check_length(target, row, len(samples), "")
    samples = _cast(target, row, samples, name)
    if target.encoding == "raw":
        return bytes(samples.astype(samples.dtype.newbyteorder("<")).tobytes())
    format_, (subtype,) = _FORMATS[target.encoding]
    stream = io.BytesIO()
    if format_ == "WAV":  # the bytes that libsndfile writes
        with wave.open(stream, "wb") as file:
            file.setparams((target.channels, 2, target.sample_rate, 0, "NONE", ""))
            file.writeframes(_quantised(target, samples).astype("<i2").tobytes())
        return stream.getvalue()
    try:
        soundfile("encoding audio").write(
            stream, _quantised(target, samples), target.sample_rate, format=format_, subtype=subtype
        )
    except soundfile(
        "encoding audio"
    ).LibsndfileError as error:  # for example a rate that MP3 does not support
        raise BadValue(row, f"audio that {target.encoding} can hold", _reason(error)) from None
    return _with_serial_0(stream.getvalue()) if format_ == "OGG" else stream.getvalue()


def decoded(target: Audio, row: int, data: bytes) -> Array:
    """Decodes stored bytes to samples `[n, channels]`, equal to those of TensorFlow's decoders; for mp3
    and ogg, which TensorFlow decodes with other libraries, within 1e-4 of full scale. Raises BadValue.
    """
    sound = _opened(row, data, "")
    if sound.samplerate != target.sample_rate:
        raise BadValue(row, f"a sample rate of {target.sample_rate} Hz", f"{sound.samplerate} Hz")
    _check_whole(row, data, sound, "")
    samples = _samples(target, row, sound, "", target.dtype)
    if samples.shape[1] != target.channels or not len(samples):
        expected = f"samples {show_shape((None, target.channels))}, at least one"
        raise BadValue(row, expected, f"shape {show_shape(samples.shape)}")
    return samples


_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _with_serial_0(data: bytes) -> bytes:
    """Sets the serial number of an Ogg file with one stream to 0: libsndfile draws it at random, but equal
    samples must have equal bytes.

    Pages follow RFC 3533: the serial number is at byte 14, the page's CRC (computed with 0 in its place) at
    22, the number of segments at 26, followed by their sizes. The CRC has the polynomial of zlib's, but the
    reverse order of bits, and no inversion at the start and the end.
    """
    pages, start = bytearray(data), 0
    while start < len(pages):
        body = start + 27 + pages[start + 26]
        end = body + sum(pages[start + 27 : body])
        pages[start + 14 : start + 18] = pages[start + 22 : start + 26] = bytes(4)
        crc = zlib.crc32(pages[start:end].translate(_MIRRORED), 0xFFFFFFFF) ^ 0xFFFFFFFF
        pages[start + 22 : start + 26] = crc.to_bytes(4, "big").translate(_MIRRORED)
        start = end
    return bytes(pages)


def _cast(target: Audio, row: int, samples: Array, name: str) -> Array:
    """Casts samples to the dtype of the format: 16-bit samples convert to floats, but floats not to 16
    bits.
    """
    if samples.dtype.name == "int16":
        return (
            samples.astype(np.int16)
            if target.dtype == "int16"
            else (samples / np.float32(_FULL_SCALE)).astype(np.float32)
        )
    if target.dtype == "int16" or samples.dtype.name not in ("float32", "float64"):
        raise BadValue(row, _expected(target), describe(samples))
    if not bool(np.isfinite(samples).all()):
        raise BadValue(row, "finite samples", f"{name}NaN or infinity")
    loudest = float(np.abs(samples).max())
    if loudest > 1 and target.encoding != "raw":
        raise BadValue(row, "samples from -1 to 1", f"{name}{loudest:g}", "divide by the full scale")
    with np.errstate(over="ignore"):
        cast = samples.astype(np.float32)
    if not bool(np.isfinite(cast).all()):
        raise BadValue(row, "float32, which holds it without overflow", f"{name}{loudest:g}")
    return cast


def _quantised(target: Audio, samples: Array) -> Array:
    """The samples as the encoding stores them: WAV and FLAC have 16 bits, in which 1.0 is one step too
    large.
    """
    if samples.dtype.name == "int16" or target.encoding in ("mp3", "ogg"):
        return samples
    return _of_16_bits(samples)


def _of_16_bits(samples: Array) -> Array:
    steps = np.rint(samples * _FULL_SCALE)
    return np.asarray(np.clip(steps, -_FULL_SCALE, _FULL_SCALE - 1).astype(np.int16))


@cache
def soundfile(purpose: str) -> Any:
    """The module soundfile. Raises MissingExtra."""
    try:
        import soundfile
    except (ImportError, OSError) as error:  # OSError: the C library is missing
        missing = error if isinstance(error, ImportError) else ImportError(str(error))
        raise missing_package("soundfile", purpose, "recordspec[audio]", missing) from None
    return soundfile
