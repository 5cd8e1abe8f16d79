"""What kinds take and refuse, each with its message: `schema.features.option_checks`, `schema.features.text`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import recordspec as rs
from media import photo
from one_feature import schema


def refusal(options: str, value) -> str:
    with pytest.raises(rs.RecordError) as caught:
        schema(options).encode({"f": value})
    return str(caught.value).removeprefix("row 0: features.f: ")


@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        ("video", [photo(), photo(31, 40)], "expected frames of one size, [30, 40], got [31, 40] at item 1"),
        ("video", [photo(), b"<html>"], "expected an image, got an HTML page at item 1"),
        ("video", "a.mp4", "expected a list of images, got str 'a.mp4'"),
        ("{kind: video, shape: [2, 30, 40, 3]}", [photo()], "expected 2 frames, got 1"),
        ("{kind: box, format: xyxy}", [[0, 0, 5, 5], [3, 3, 2, 9]], "expected a box xyxy with an area, got [3, 3, 2, 9] at item 1 (is the format right?)"),
        ("{kind: box, format: yxyx}", [[0, 0, 0, 9]], "expected a box yxyx with an area, got [0, 0, 0, 9] at item 0 (is the format right?)"),
        ("{kind: box, format: xywh}", [[0, 0, 3, -1]], "expected a box xywh with an area, got [0, 0, 3, -1] at item 0 (is the format right?)"),
        ("{kind: box, format: xywh}", [[-1, 0, 3, 4]], "expected a box xywh from 0, got [-1, 0, 3, 4] at item 0 (clip it to the image)"),
        ("{kind: box, format: rel_xyxy}", [[0, 0, 0.5, 1.2]], "expected a box rel_xyxy up to 1, got [0, 0, 0.5, 1.2] at item 0 (clip it to the image)"),
        ("{kind: box, format: rel_center_xywh}", [[0.9, 0.5, 0.3, 0.2]], "expected a box rel_center_xywh up to 1, got [0.9, 0.5, 0.3, 0.2] at item 0 (clip it to the image)"),
        ("{kind: box, format: xyxy, size: [480, 640]}", [[0, 0, 640, 481]], "expected a box xyxy up to 640 x 480, got [0, 0, 640, 481] at item 0 (clip it to the image)"),
        ("{kind: box, format: xyxy}", [[0, 0, float("nan"), 1]], "expected a box xyxy of finite numbers, got [0, 0, nan, 1] at item 0"),
        ("{kind: box, format: xyxy}", [[0, 0, 1]], "expected float32 of shape [4], got shape [3] at item 0"),
        ("{kind: label, names: [cat, dog], shape: [null]}", ["cat", "dgo"], "expected one of `cat`, `dog`, or an index, got `dgo` at item 1 (did you mean `dog`?)"),
        ("{kind: label, names: [a, bc], shape: [null]}", "a", "expected a list of labels [null], got str 'a'"),
        ("{kind: label, names: [a, bc], shape: [2]}", ["a"], "expected 2 labels, got 1"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(options, value, expected):
    assert refusal(options, value) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("{kind: video, shape: [2, 2, 3]}", "expected [frames, height, width, channels], got [2, 2, 3]"),
        ("{kind: video, shape: [0, 2, 2, 3]}", "expected at least 1 frame, got 0"),
        ("{kind: video, shape: [null, 2, 2, 4]}", "expected one of 1, 3 channels for jpeg, got 4"),
        (
            "{kind: box, format: rel_xyxy, size: [4, 4]}",
            "expected none for rel_xyxy, got one (its bounds are 0 and 1)",
        ),
        ("{kind: box, format: xyxy, size: [4]}", "expected [height, width], got [4]"),
        (
            "{kind: box, format: rel_yxyx, keys: [a, b, b, c]}",
            "expected four different keys, in the order of rel_yxyx, got ['a', 'b', 'b', 'c']",
        ),
        ("{kind: box, format: xyxy, key: a, keys: [a, b, c, d]}", "expected none beside `keys`, got `a`"),
        ("{kind: label, names: [a], shape: [2, 2]}", "expected [], [null] or [k], got [2, 2]"),
        (
            "{kind: label, names: [a], vocabulary: b.txt}",
            "expected names, or a vocabulary file of them, got both",
        ),
        (
            "{kind: var_len, dtype: int64, with_length: true}",
            "expected false unless `as: dense`, got true (a ragged value knows it)",
        ),
        (
            "{kind: tensor, dtype: int8, shape: [null], missing_item: 300}",
            "expected int8 (-128 to 127), got 300",
        ),
        (
            "{kind: ragged, dtype: int64, shape: [null, 2], missing_item: 0}",
            "expected a list of single values, whose shape has only nulls, got shape [null, 2]",
        ),
        (
            "{dtype: int64, with_missing: true}",
            "expected false without a default, got true (no value is ever missing)",
        ),
        ("{kind: image, resize: [4]}", "expected [height, width] of at least 1, got [4]"),
        ("{kind: image, resize: {size: [4, 0]}}", "expected [height, width] of at least 1, got [4, 0]"),
        ("{kind: audio, sample_rate: 8000, resample: 0}", "expected at least 1, got 0"),
        (
            "{kind: audio, sample_rate: 44100, resample: 44101}",
            "expected a rate that has a large divisor in common with 44100, got 44101",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, expected):
    with pytest.raises(rs.SpecError) as caught:
        schema(options)
    assert str(caught.value).split(": ", 2)[2] == expected


def test_the_length_of_a_padded_list_is_told():
    given = schema("{kind: var_len, dtype: int64, as: dense, pad: 7, with_length: true}")
    decoded = given.decode(given.encode_batch({"f": [[7], [], [1, 7]]}, 3))
    assert decoded["f"].numpy().tolist() == [[7, 7], [7, 7], [1, 7]]
    assert decoded["f_length"].numpy().tolist() == [1, 0, 2]


def test_text_names_the_byte_that_is_no_utf8():
    rows = {"f": ["ok", b"caf\xe9 au lait"]}
    with pytest.raises(rs.RecordError) as caught:
        schema("text").encode_batch(rows, 2)
    assert str(caught.value) == "row 1: features.f: expected UTF-8 text, got the byte 0xe9 at position 3"


def test_another_quality_is_no_other_image(tmp_path):
    written = schema("{kind: image, encoding: jpeg, quality: 80}")
    rs.write([{"f": photo()}], written, tmp_path / "data")
    (batch,) = rs.read(tmp_path / "data", schema("{kind: image, encoding: jpeg}"), batch=1)
    assert batch["f"].shape[0] == 1
    with pytest.raises(rs.StoreError, match=r"features\.f\.encoding: expected `jpeg`, .* got `png`"):
        rs.read(tmp_path / "data", schema("{kind: image, encoding: png}"), batch=1)


# Encodes values in every encoding that there is, twice, and prints a hash of the bytes of each.
ENCODE_ALL = """
import hashlib
from typing import get_args

import numpy as np

from recordspec.schema.features.audio import Audio
from recordspec.schema.features.image import Image
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.video import Video
from recordspec.schema.media.images import ImageEncoding
from recordspec.schema.media.sounds import SoundEncoding
from recordspec.wire import arrays

rng = np.random.default_rng(0)
pixels = rng.integers(0, 2, (3, 40, 50, 3), np.uint8) * np.uint8(255)  # of 8 colours, for GIF
deep = pixels[0].astype(np.uint16) * 257
samples = rng.normal(0, 0.1, (40_000, 2)).clip(-1, 1).astype(np.float32)
values = [
    *((Image(name=f"image {e}", shape=(40, 50, 3), encoding=e), pixels[0]) for e in get_args(ImageEncoding)),
    *((Image(name=f"deep {e}", shape=(40, 50, 3), encoding=e, dtype="uint16"), deep) for e in ("png", "raw")),
    *((Video(name=f"video {e}", shape=(3, 40, 50, 3), encoding=e), pixels) for e in get_args(ImageEncoding)),
    *(
        (Audio(name=f"audio {e}", sample_rate=8000, channels=2, encoding=e), samples)
        for e in get_args(SoundEncoding)
    ),
    (AnyTensor(name="zlib", dtype="float32", shape=samples.shape, encoding="zlib"), samples),
]
for _ in range(2):
    for feature, value in values:
        (column,) = feature.encode([value])
        print(feature.name, hashlib.sha256(arrays.buffer_of(arrays.flat_of(column))).hexdigest())
"""


def test_every_encoder_gives_equal_bytes_in_every_process():
    """The hash of a row without a key is its place in the order, and its split."""
    command = [sys.executable, "-c", ENCODE_ALL]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    one, other = (process.communicate()[0].splitlines() for process in processes)
    assert len(one) == 2 * len(set(one)) == 2 * 20
    assert one[:20] == one[20:] == other[:20] == other[20:]
