"""Images: how they come back, which way up and at which size; and options that do not go together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from media import decodes, image_bytes, noise, photo
from one_feature import decoded, stored
from one_feature import image_schema as schema
from recordspec._tf import tf
from recordspec.schema.features import geometry
from recordspec.schema.features.geometry import Resize
from recordspec.schema.features.image import Image as ImageFeature
from recordspec.schema.features.video import Video
from recordspec.schema.media.resizing import decoding_ratio
from recordspec.wire.arrays import strings_array

LOSSLESS = [("png", c, dtype) for c in (1, 3, 4) for dtype in ("uint8", "uint16")]
LOSSLESS += [("bmp", c, "uint8") for c in (1, 3)]
LOSSLESS += [("raw", c, dtype) for c in (1, 2, 5) for dtype in ("uint8", "uint16")]
LOSSLESS += [("webp", c, "uint8") for c in (3, 4) if decodes("webp")]


@pytest.mark.parametrize(("encoding", "channels", "dtype"), LOSSLESS)
def test_an_array_comes_back_as_it_was(encoding, channels, dtype):
    pixels = noise(channels, dtype)
    given = schema(shape=(7, 5, channels), encoding=encoding, dtype=dtype)
    np.testing.assert_array_equal(decoded(given, pixels), pixels)
    swapped = pixels.astype(pixels.dtype.newbyteorder(">"))
    np.testing.assert_array_equal(decoded(given, swapped), pixels)
    if channels == 1:
        np.testing.assert_array_equal(decoded(given, pixels[:, :, 0]), pixels)


def test_jpeg_and_webp_take_a_quality():
    sizes = [len(stored(schema(encoding="jpeg", quality=quality), photo())) for quality in (10, 95)]
    assert sizes[0] < sizes[1] == len(stored(schema(encoding="jpeg"), photo()))
    assert stored(schema(encoding="webp", quality=50), photo()) != stored(schema(encoding="webp"), photo())


def test_exif_orientation_is_kept_applied_or_refused():
    image = Image.fromarray(photo())
    exif = image.getexif()
    exif[0x0112] = 6  # to be turned by a quarter
    data = image_bytes(photo(), "png", exif=exif)
    assert stored(schema(), data) == data
    assert decoded(schema(), data).shape == (30, 40, 3)
    upright = decoded(schema(orientation="upright"), data)
    np.testing.assert_array_equal(upright, np.rot90(photo(), -1))
    with pytest.raises(rs.RecordError) as caught:
        schema(orientation="error").encode({"x": data})
    assert str(caught.value) == (
        "row 0: features.x: expected an upright image, got EXIF orientation 6 "
        "(`orientation: upright` turns it, `keep` leaves it)"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"shape": (2, 2)}, "shape: expected [height, width, channels], the channels known, got [2, 2]"),
        ({"encoding": "jpeg", "shape": (2, 2, 4)}, "shape: expected one of 1, 3 channels for jpeg, got 4"),
        ({"encoding": "gif", "shape": (2, 2, 1)}, "shape: expected 3 channels for gif, got 1"),
        ({"encoding": "raw"}, "shape: expected sizes that are known for raw, got [null, null, 3]"),
        ({"encoding": "webp", "dtype": "uint16"}, "dtype: expected uint8 for webp, got `uint16`"),
        (
            {"resize": Resize(size=(2, 2), scaled_decoding=True)},
            "resize: expected no scaled_decoding for png, got one (only jpeg has it)",
        ),
        ({"quality": 7}, "quality: expected none for png, got 7 (only jpeg and webp have one)"),
        ({"encoding": "jpeg", "quality": 0}, "quality: expected 1 to 100, got 0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, expected):
    with pytest.raises(rs.SpecError) as caught:
        ImageFeature(name="x", **options)
    assert str(caught.value) == expected


@pytest.mark.skipif(decodes("webp"), reason="this installation decodes WebP")
def test_without_a_decoder_of_webp_the_graph_is_not_made(tmp_path):
    given = schema(encoding="webp")
    rs.write([{"x": photo()}], given, tmp_path / "data")
    with pytest.raises(rs.MissingExtra, match="store it as png or jpeg"):
        rs.read(tmp_path / "data", given, batch=2)


def test_an_orientation_that_means_nothing_turns_nothing():
    image = Image.fromarray(photo())
    exif = image.getexif()
    exif[0x0112] = 0
    data = image_bytes(photo(), "jpeg", exif=exif)
    for orientation in ("keep", "upright", "error"):
        assert stored(schema(encoding="jpeg", orientation=orientation), data) == data


def resized(pixels: np.ndarray, **options) -> np.ndarray:
    return decoded(schema(resize=Resize(**options), pad=7), pixels)[..., 0]


def test_images_are_resized_as_tensorflow_does():
    pixels = noise(3)
    for method in ("bilinear", "area", "lanczos3"):
        found = decoded(schema(resize=Resize(size=(3, 4), method=method, antialias=True)), pixels)
        expected = tf.image.resize(pixels, (3, 4), method, antialias=True).numpy()
        np.testing.assert_array_equal(found, np.clip(np.rint(expected), 0, 255).astype(np.uint8))
    short = schema(resize=(3, 4))
    np.testing.assert_array_equal(decoded(short, pixels), decoded(schema(resize=Resize(size=(3, 4))), pixels))
    assert rs.Schema.loads(short.dump()) == short
    assert short.fingerprint == schema().fingerprint


def test_other_aspect_ratios_are_cropped_or_padded():
    wide = np.stack([np.tile(np.arange(6, dtype=np.uint8), (2, 1))] * 3, -1)
    assert resized(wide, size=(2, 2), aspect="crop").tolist() == [[2, 3]] * 2
    assert resized(wide, size=(1, 1), aspect="crop", method="nearest").tolist() == [[3]]
    assert resized(wide, size=(4, 6), aspect="pad").tolist() == [[7] * 6, *wide[..., 0].tolist(), [7] * 6]
    assert resized(wide.transpose(1, 0, 2), size=(6, 5), aspect="pad").tolist() == [
        [7, row, row, 7, 7] for row in range(6)
    ]
    assert resized(wide, size=(1, 1), aspect="pad", method="nearest").shape == (1, 1)


def photographs() -> Iterator[bytes]:
    """JPEG files of parts of photographs, of many sizes and subsamplings."""
    from sklearn.datasets import load_sample_images  # takes 1.5 s

    whole, rng = load_sample_images().images, np.random.default_rng(0)
    for number in range(30):
        height, width = (int(side) for side in rng.integers(1, 240, 2))
        top, left = (int(place) for place in rng.integers(0, 180, 2))
        part = whole[number % 2][top : top + height, left : left + width]
        yield image_bytes(part, "jpeg", subsampling=number % 3, progressive=number % 5 == 0)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_part_of_a_jpeg_that_is_kept_is_decoded_as_it_is_in_the_whole(channels):
    for size in [(20, 30), (7, 1), (300, 9)]:
        resize = Resize(size=size, aspect="crop")
        feature = schema(shape=(None, None, channels), encoding="jpeg", resize=resize).names["x"]
        for data in photographs():
            pixels = tf.io.decode_jpeg(data, channels)
            found, sides = feature.decode_with_sides({"x": tf.constant(data)})
            np.testing.assert_array_equal(found, geometry.resized(pixels, resize, None))
            assert sides.numpy().tolist() == pixels.shape[:2]


# The mean of the differences over all photographs, of 255: without a filter, the smaller image lacks the
# aliasing of the larger one.
@pytest.mark.parametrize(("antialias", "most"), [(True, 4.0), (False, 12.0)])
@pytest.mark.parametrize("aspect", ["stretch", "crop", "pad"])
def test_scaled_decoding_gives_nearly_the_same_pixels(aspect, antialias, most):
    apart, smaller, of_numpy = [], 0, []
    for size in [(20, 30), (48, 48)]:
        resize = Resize(size=size, aspect=aspect, antialias=antialias, scaled_decoding=True)
        feature = schema(encoding="jpeg", resize=resize).names["x"]
        for data in photographs():
            whole = geometry.resized(tf.io.decode_jpeg(data, 3), resize, None).numpy()
            found, sides = feature.decode_with_sides({"x": tf.constant(data)})
            difference = np.abs(found.numpy().astype(int) - whole)
            if decoding_ratio(tuple(sides.numpy()), resize) == 1:
                assert not difference.any()
                continue
            smaller += 1
            apart.append(difference.mean())
            (in_numpy,), _ = feature.decode_numpy_with_sides({"x": strings_array([data])})
            of_numpy.append(np.abs(found.numpy().astype(int) - in_numpy).mean())
    assert smaller > 10
    assert np.mean(apart) < most
    assert np.mean(of_numpy) < 1


def test_a_jpeg_that_is_no_jpeg_or_has_another_shape_is_read_as_before():
    """ImageNet has a PNG among its JPEG files."""
    feature = schema(encoding="jpeg", resize=Resize(size=(2, 2), aspect="crop")).names["x"]
    data = image_bytes(photo(), "png")
    expected = geometry.resized(tf.io.decode_png(data, 3), feature.resizing, None)
    np.testing.assert_array_equal(feature.pixels(tf.constant(data)), expected)
    tall = image_bytes(photo(400, 20), "jpeg", quality=95)
    for data in (b"", b"\xff", tall[: len(tall) * 9 // 10]):  # of which the part in the middle is whole
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"JPEG|Input is empty"):
            feature.pixels(tf.constant(data))
    known = replace(feature, shape=(4, None, 3))
    for made in (image_bytes(photo(), "png"), image_bytes(photo(), "jpeg")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected a shape of|compatible"):
            known.pixels(tf.constant(made))


def test_a_batch_of_several_sizes_is_dense():
    given = schema(resize=(4, 3))
    rows = [{"x": noise(3)}, {"x": noise(3)[:2]}, {"x": noise(3)[:, :1]}]
    batch = given.decode([given.encode(row) for row in rows])["x"]
    assert batch.shape == (3, 4, 3, 3)
    assert batch.dtype == tf.uint8


@pytest.mark.parametrize(
    ("feature", "grows"),
    [
        (ImageFeature(name="x", shape=(2, 2, 3), encoding="raw"), False),
        (ImageFeature(name="x", shape=(2, 2, 3), encoding="raw", resize=(99, 99)), True),
        (ImageFeature(name="x", shape=(2, 2, 3)), True),
        (Video(name="x", shape=(3, 2, 2, 3)), True),
        (Video(name="x", shape=(3, 2, 2, 3), encoding="raw"), False),
    ],
)
def test_pixels_that_are_larger_than_their_bytes_are_decoded_by_the_batch(feature, grows):
    assert rs.Schema(name="s", features=(feature,))._keeps_in_any_batch is not grows
