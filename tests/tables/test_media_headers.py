"""Images and sounds in a few words."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

import recordspec as rs
from recordspec.schema.features.audio import Audio
from recordspec.statistics.stats import stats
from recordspec.tables import media_headers
from recordspec.wire.arrays import bytes_in


def png(width: int, height: int) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("L", (width, height)).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "BMP", "WebP"])
def test_images_are_described(name):
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (28, 30)).save(stream, name)
    data = stream.getvalue()
    assert media_headers.describe(data) == f"{name} 28x30"
    assert media_headers.describe(data[:12]) == f"{name} image, 12 bytes"


def wav(seconds: float, rate: int, channels: int = 1) -> bytes:
    import wave

    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(2 * channels * round(seconds * rate)))
    return stream.getvalue()


def test_sounds_are_described():
    import soundfile

    assert media_headers.describe(wav(1.2, 16_000)) == "WAV 1.2 s at 16 kHz"
    assert media_headers.describe(wav(0.05, 44_100, 2)) == "WAV 0.05 s at 44.1 kHz, 2 channels"
    stream = io.BytesIO()
    soundfile.write(stream, np.zeros(8000), 8000, format="FLAC")
    assert media_headers.describe(stream.getvalue()) == "FLAC 1.0 s at 8 kHz"
    assert media_headers.describe(b"RIFF\x04\x00\x00\x00WAVE") == "WAV file, 12 bytes"


@pytest.mark.parametrize(
    ("rate", "channels"), [(8000, 1), (16_000, 2), (22_050, 1), (44_100, 1), (48_000, 2)]
)
def test_mp3_files_without_metadata_are_recognized(rate, channels, tmp_path):
    """Those that a build writes begin with a frame of MPEG 1, 2 or 2.5, not with ID3."""
    features = f"{{x: {{kind: audio, encoding: mp3, sample_rate: {rate}, channels: {channels}}}}}"
    schema = rs.Schema.loads(f"schema: s\nfeatures: {features}")
    rs.write([{"x": np.zeros((rate, channels), np.float32)}] * 2, schema, tmp_path / "data", key=None)
    (split,) = stats(tmp_path / "data").splits
    (feature,) = split.features
    assert feature.strings.forms == {"MP3 file": 2}
    assert feature.strings.measures == {"seconds": (1.0, 1.0, 1.0)}
    data = Audio(name="x", encoding="mp3", sample_rate=rate, channels=channels)
    (stored,) = bytes_in(data.encode([np.zeros((rate, channels), np.float32)])[0])
    several = ", 2 channels" * (channels == 2)
    assert media_headers.describe(stored) == f"MP3 1.0 s at {rate / 1000:g} kHz{several}"
    assert media_headers.describe(stored[:13]) == "13 bytes"


def test_odd_images_and_sounds_are_described_without_a_word(capfd):
    sound = bytearray(wav(0.001, 8000))
    sound[4:8], sound[16:20] = b"\x64\x1f\0\0", b"\x10\xff\0\0"
    assert media_headers.describe(bytes(sound)) == f"WAV file, {len(sound)} bytes"
    entries = [(256, 4, 1, 1), (257, 4, 1, 1), (258, 3, 3, 0), (277, 3, 1, 9)]
    tiff = struct.pack("<2sHIH", b"II", 42, 8, len(entries)) + b"".join(
        struct.pack("<HHII", *one) for one in entries
    )
    assert media_headers.describe(tiff + bytes(4)).startswith("TIFF")
    assert capfd.readouterr().err == ""


def test_without_extras_headers_are_read(monkeypatch):
    def missing(purpose: str):
        raise rs.errors.MissingExtra(rs.errors.Problem(expected=purpose, got="none"))

    monkeypatch.setattr("recordspec.schema.media.sounds.soundfile", missing)
    assert media_headers.describe(wav(2, 8000)) == "WAV 2.0 s at 8 kHz"
    assert media_headers.describe(b"\xff\xd8\xff\xe0") == "JPEG image, 4 bytes"
    assert media_headers.describe(b"RIFF\x04\x00\x00\x00WAVE") == "WAV file, 12 bytes"
    assert media_headers.describe(struct.pack(">H", 0xFFFF)) == "2 bytes"
