"""Images and sounds are sent as what this program encodes, never as their own bytes."""

from __future__ import annotations

import io
import wave

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from media import image_bytes, photo, sound_bytes, tone
from recordspec.errors import RecordError
from recordspec.viewer import media_previews
from recordspec.viewer.media_previews import medium


def pixels_of(made) -> np.ndarray:
    assert made.type == "image/png"
    return np.asarray(Image.open(io.BytesIO(made.data)))


@pytest.mark.parametrize("encoding", ["png", "jpeg", "gif", "bmp", "webp"])
def test_an_image_is_a_small_or_a_large_png(encoding):
    data = image_bytes(photo(300, 400), encoding) + b"<script>"
    assert pixels_of(medium(pa.scalar(data), large=True)).shape == (300, 400, 3)
    small = medium(pa.scalar(data), large=False)
    assert pixels_of(small).shape == (120, 160, 3)
    assert b"<script>" not in small.data


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "int64"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pixels_are_drawn(dtype, channels):
    pixels = np.zeros((4, 6, channels), dtype)
    pixels[1] = 65535 if dtype == "uint16" else 255
    drawn = pixels_of(medium(pa.scalar(pixels.tolist(), _lists(dtype)), large=False))
    assert drawn.shape[:2] == (4, 6)
    assert drawn[1].min() == 255
    assert drawn[0, :, :1].max() == 0


def _lists(dtype):
    return pa.large_list(pa.large_list(pa.large_list(pa.from_numpy_dtype(dtype))))


@pytest.mark.parametrize(("encoding", "subtype"), [("WAV", "FLOAT"), ("FLAC", None), ("OGG", None)])
def test_a_sound_is_a_wav_file_of_16_bits(encoding, subtype):
    made = medium(pa.scalar(sound_bytes(tone(0.5, channels=2), 8000, encoding, subtype)), large=False)
    assert made.type == "audio/wav"
    with wave.open(io.BytesIO(made.data)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (8000, 2, 2)
        samples = np.frombuffer(sound.readframes(1 << 20), "<i2").reshape(-1, 2)
    assert len(samples) == 4000
    assert np.corrcoef(samples[:, 0], tone(0.5)[:, 0])[0, 1] > 0.99


def test_what_is_no_medium_or_too_large_is_refused(monkeypatch):
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
    for value in (svg, b"\x89PNG\r\n\x1a\n", image_bytes(photo(), "png")[:60], "text", 5, [1, 2], None):
        with pytest.raises(RecordError):
            medium(pa.scalar(value, pa.int64()) if value is None else pa.scalar(value), large=False)
    monkeypatch.setattr(media_previews, "_MOST_PIXELS", 1000)
    with pytest.raises(RecordError, match="expected an image of at most 1,000 pixels, got 40 x 30"):
        medium(pa.scalar(image_bytes(photo(), "png")), large=False)
    monkeypatch.setattr(media_previews, "_MOST_SAMPLES", 1000)
    made = medium(pa.scalar(sound_bytes(tone(1), 8000)), large=False)
    assert len(made.data) == 44 + 2000
