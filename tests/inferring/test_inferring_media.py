"""Images and sounds of every sort: what is inferred of them fits, and is read."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from examples import example, file_of
from recordspec.inferring.record_schemas import infer_records as infer
from recordspec.integrity.check import check_files
from recordspec.store.shards import File
from recordspec.wire.arrays import bytes_in

GREY = Image.fromarray(np.arange(63, dtype=np.uint8).reshape(7, 9))
COLOUR = Image.fromarray(np.arange(189, dtype=np.uint8).reshape(7, 9, 3))
FRAMES = [Image.fromarray(np.full((4, 4), 40 * shade, np.uint8)) for shade in range(3)]


def image(picture: Image.Image, encoding: str, **options) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, encoding, **options)
    return stream.getvalue()


def deep(channels: int) -> bytes:
    """A PNG of 16 bits."""
    spec = f"schema: s\nfeatures: {{x: {{kind: image, dtype: uint16, shape: [null, null, {channels}]}}}}"
    (column,) = rs.Schema.loads(spec).names["x"].encode([np.zeros((4, 5, channels), np.uint16)])
    return bytes_in(column)[0]


def wav(width: int, channels: int = 1, samples: int = 1000) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(width)
        sound.setframerate(16000)
        sound.writeframes(bytes(width * channels * samples))
    return stream.getvalue()


SORTS = {
    "grey": ([image(GREY, "PNG")], "image 1 uint8"),
    "grey and colour": ([image(GREY, "PNG"), image(COLOUR, "PNG")], "image 3 uint8"),
    "transparent": ([image(GREY.convert("P"), "PNG", transparency=3)], "image 4 uint8"),
    "of 16 bits": ([deep(1)], "image 1 uint16"),
    "of 16 bits in colour": ([deep(3)], "image 3 uint16"),
    "of 16 bits and transparent": ([deep(4), deep(3)], "image 4 uint16"),
    "of 8 and 16 bits": ([deep(1), image(GREY, "PNG")], "string"),
    "of inks": ([image(COLOUR.convert("CMYK"), "JPEG")], "string"),
    "moving": ([image(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:])], "string"),
    "still": ([image(FRAMES[0], "GIF")], "image 3 uint8"),
    "mapped": ([image(GREY, "BMP")], "image 1 uint8"),
    "mapped in two depths": ([image(GREY, "BMP"), image(COLOUR, "BMP")], "string"),
    "packed": ([image(COLOUR.convert("1"), "BMP")], "string"),
    "moving WebP": ([image(COLOUR, "WebP", save_all=True, append_images=[GREY.convert("RGB")])], "string"),
    "sound": ([wav(2), wav(2, samples=7)], "audio 1 float32"),
    "stereo": ([wav(2, 2)], "audio 2 float32"),
    "mono and stereo": ([wav(2), wav(2, 2)], "string"),
    "sound of 24 bits": ([wav(3)], "string"),
    "sound of 8 bits": ([wav(1)], "string"),
    "sound without samples": ([wav(2, samples=0)], "string"),
}


@pytest.mark.parametrize("sort", SORTS)
def test_what_is_inferred_of_media_fits_and_is_read(tmp_path, sort):
    values, what = SORTS[sort]
    records = [example({"x": ("bytes", [value])}) for value in values * 3]
    path = file_of(tmp_path / "x", records)
    schema = infer(str(path), "s").schema
    x = schema.names["x"]
    channels = {"image": lambda: f"{x.shape[2]} ", "audio": lambda: f"{x.channels} "}.get(x.kind, str)()
    assert f"{x.kind} {channels}{x.dtype}".replace("fixed_len ", "") == what
    assert list(check_files([File(path=path)], schema).examples) == []
    assert sum(1 for _ in rs.read(path, schema)) == len(records)


def test_what_is_damaged_does_not_decide(tmp_path):
    for name, whole, broken in [("image", image(GREY, "PNG"), 30), ("audio", wav(2), 900)]:
        values = [whole] * 5 + [whole[:broken], *([wav(2, samples=0)] if name == "audio" else [])]
        path = file_of(tmp_path / name, [example({"x": ("bytes", [value])}) for value in values])
        schema = infer(str(path), "s").schema
        assert schema.names["x"].kind == name
        assert check_files([File(path=path)], schema).invalid == len(values) - 5
