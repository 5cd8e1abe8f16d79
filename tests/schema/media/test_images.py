"""Checks and conversions of encoded images, given as bytes, files or arrays, and of values that are no image."""

from __future__ import annotations

import io
import struct
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
import simplejpeg
from PIL import Image

import recordspec as rs
from media import image_bytes, noise, photo
from one_feature import decoded, stored
from one_feature import image_schema as schema
from recordspec._tf import tf
from recordspec.schema.features.image import Image as ImageFeature
from recordspec.schema.media import images
from recordspec.schema.values import BadValue
from recordspec.wire.arrays import bytes_in


def few_colours(gif: bytes) -> bytes:
    """A GIF of which the table of 256 colours was cut to 2."""
    return gif[:10] + bytes([gif[10] & 0xF8]) + gif[11:19] + gif[13 + 3 * 256 :]


def test_a_gif_holds_256_colours_and_no_more():
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16, 1) * np.ones(3, np.uint8)
    given = schema(encoding="gif")
    np.testing.assert_array_equal(decoded(given, pixels), pixels)
    pixels[0, 0] = [1, 2, 3]
    pixels = np.concatenate([pixels, pixels[:1]])
    pixels[-1, 0] = [0, 0, 0]
    with pytest.raises(rs.RecordError) as caught:
        given.encode({"x": pixels})
    assert str(caught.value) == (
        "row 0: features.x: expected at most 256 colours for gif, got 257 (store it as png or webp)"
    )


@pytest.mark.parametrize("encoding", ["png", "jpeg", "bmp", "gif", "webp"])
def test_bytes_of_the_encoding_are_stored_as_they_are(encoding, tmp_path):
    pixels = photo() if encoding != "gif" else photo(8, 8)
    data = image_bytes(pixels, encoding)
    given = schema(encoding=encoding)
    (tmp_path / f"x.{encoding}").write_bytes(data)
    assert stored(given, data) == data
    assert stored(given, tmp_path / f"x.{encoding}") == data
    assert stored(given, str(tmp_path / f"x.{encoding}")) == data


@pytest.mark.parametrize("source", ["png", "bmp", "tiff", "webp"])
def test_bytes_of_another_encoding_are_encoded_anew(source):
    pixels = photo()
    options = {"lossless": True} if source == "webp" else {}
    for encoding in ("png", "raw", "bmp"):
        shape = pixels.shape if encoding == "raw" else (None, None, 3)
        given = schema(encoding=encoding, shape=shape)
        data = image_bytes(pixels, source, **options)
        if encoding == "raw":
            image = Image.open(io.BytesIO(data))
            np.testing.assert_array_equal(decoded(given, image), pixels)
        else:
            np.testing.assert_array_equal(decoded(given, data), pixels)


@pytest.mark.parametrize(
    ("mode", "channels"),
    [
        ("1", 1),
        ("L", 1),
        ("1", 3),
        ("L", 3),
        ("P", 3),
        ("RGB", 3),
        ("P", 4),
        ("LA", 4),
        ("PA", 4),
        ("RGBA", 4),
    ],
)
def test_a_pil_image_is_taken_where_nothing_is_lost(mode, channels):
    image = Image.fromarray(photo()).convert(mode)
    expected = np.asarray(image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels]))
    given = schema(shape=(None, None, channels))
    np.testing.assert_array_equal(decoded(given, image).squeeze(), expected)
    stream = io.BytesIO()
    if mode != "PA":
        image.save(stream, "png")
        np.testing.assert_array_equal(decoded(given, stream.getvalue()).squeeze(), expected)


def test_deep_png_files_are_stored_as_they_are_and_read_whole():
    for channels in (1, 3, 4):
        pixels = noise(channels, "uint16")
        data = tf.io.encode_png(pixels).numpy()  # by another hand than ours
        given = schema(shape=(None, None, channels), dtype="uint16")
        assert stored(given, data) == data
        np.testing.assert_array_equal(decoded(given, data), pixels)


def test_a_photo_with_a_second_picture_behind_it_is_a_jpeg():
    first = Image.fromarray(photo())
    stream = io.BytesIO()
    first.save(stream, "MPO", save_all=True, append_images=[first.rotate(180)])
    given = schema(encoding="jpeg")
    assert stored(given, stream.getvalue()) == stream.getvalue()
    assert decoded(given, stream.getvalue()).shape == (30, 40, 3)


WHOLE = image_bytes(photo(), "png")
JPEG = image_bytes(photo(), "jpeg")
CMYK = io.BytesIO()
Image.fromarray(photo()).convert("CMYK").save(CMYK, "jpeg")
ICON = Image.fromarray(photo()).quantize(8)
ICON.info["transparency"] = 0
SPOTS = io.BytesIO()
ICON.save(SPOTS, "png", transparency=0)
FRAMES = [Image.fromarray(np.full((4, 4, 3), value, np.uint8)) for value in (0, 100, 200)]


def animated(encoding: str) -> bytes:
    stream = io.BytesIO()
    FRAMES[0].save(stream, encoding, save_all=True, append_images=FRAMES[1:])
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<!DOCTYPE html><html>", "expected an image, got an HTML page"),
        (b'<?xml version="1.0"?><svg/>', "expected an image, got an XML document"),
        (b"version https://git-lfs.github.com/spec/v1\n", "expected an image, got a Git LFS pointer (run git lfs pull)"),
        (b"%PDF-1.7", "expected an image, got a PDF document"),
        (b"\0" * 500, "expected an image, got 500 zero bytes"),
        (b"Not found", "expected an image, got text that begins 'Not found'"),
        (b"\x01\x02\xff\xfe", "expected an image, got bytes that begin b'\\x01\\x02\\xff\\xfe'"),
        (b"\0\0\0\x1cftypheic\0\0", "expected an image that decodes, got a HEIC image: Pillow cannot open it"),
        (WHOLE[:20], "expected an image that decodes, got a PNG image: "),
        (JPEG[:-100], "expected an image that decodes, got a JPEG image: image file is truncated"),
        (CMYK.getvalue(), "expected an image uint8 [null, null, 3], got mode CMYK (`convert: true` converts it)"),
        (SPOTS.getvalue(), "expected an image uint8 [null, null, 3], got mode P with transparency (4 channels keep it, `convert: true` with a `background` not)"),
        (image_bytes(noise(1, "uint16"), "png"), "expected an image uint8 [null, null, 3], got mode I"),
        (tf.io.encode_png(noise(3, "uint16")).numpy(), "expected an image uint8 [null, null, 3], got mode RGB;16 (`convert: true` converts it)"),
        (image_bytes(noise(4), "png"), "expected an image uint8 [null, null, 3], got mode RGBA (`convert: true` converts it)"),
        (animated("gif"), "expected a single image, got a GIF image of 3 frames (`kind: video` stores frames)"),
        (animated("png"), "expected a single image, got a PNG image of 3 frames (`kind: video` stores frames)"),
        (animated("webp"), "expected a single image, got a WebP image of 3 frames (`kind: video` stores frames)"),
        (7, "expected a path, bytes, an array or a PIL image, got int 7"),
        (None, "expected a path, bytes, an array or a PIL image, got nothing"),
    ],
)  # fmt: skip
def test_what_is_no_such_image_is_named(data, expected):
    with pytest.raises(rs.RecordError) as caught:
        schema(encoding="jpeg").encode({"x": data})
    assert str(caught.value).startswith(f"row 0: features.x: {expected}")


@pytest.mark.parametrize("encoding", ["png", "gif"])
def test_what_tensorflow_does_not_decode_is_refused(encoding):
    """Of files cut short, and of files with another byte somewhere."""
    given = ImageFeature(name="x", encoding=encoding)
    data = image_bytes(photo(4, 4) // 64 * 64, encoding)
    spoilt = [data[:-count] for count in range(1, 16)] + [data + b"more"]
    spoilt += [
        data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :] for at in range(len(data)) for bit in (1, 96)
    ]
    taken = [made for one in spoilt if (made := accepted(given, one)) is not None]
    assert 0 < len(taken) < len(spoilt)
    for one in taken:
        tf.io.decode_image(one, channels=3, expand_animations=False)


def accepted(feature: ImageFeature, data: bytes) -> bytes | None:
    """What is stored of it, if it is taken."""
    try:
        (column,) = feature.encode([data])
    except BadValue:
        return None
    return bytes_in(column)[0]


@pytest.mark.parametrize(
    ("encoding", "spoil", "expected"),
    [
        ("png", lambda data: data[:-1], "its IEND chunk is not whole"),
        ("png", lambda data: data[:-1] + b"!", "its IEND chunk is not whole"),
        ("gif", lambda data: data[:-1], "it has no end"),
        ("gif", lambda data: data[:-1] + b"?;", "it has a block of type 63"),
        ("gif", few_colours, "it has 2 colours, and a pixel of colour 255"),
    ],
)
def test_what_pillow_passes_over_is_named(encoding, spoil, expected):
    data = spoil(image_bytes(np.arange(256, dtype=np.uint8).reshape(16, 16), encoding))
    with pytest.raises(rs.RecordError) as caught:
        schema(encoding=encoding).encode({"x": data})
    found = {"png": "a PNG image", "gif": "a GIF image"}[encoding]
    message = f"row 0: features.x: expected an image that decodes, got {found}: {expected}"
    assert str(caught.value) == message


def test_a_file_whose_name_is_wrong_is_refused(tmp_path):
    path = tmp_path / "x.jpg"
    path.write_bytes(WHOLE)
    for encoding in ("jpeg", "png"):
        with pytest.raises(rs.RecordError) as caught:
            schema(encoding=encoding).encode({"x": path})
        expected = f"row 0: features.x: expected jpeg data, got {path}: a PNG image (it is named .jpg; `convert: true` takes it)"
        assert str(caught.value) == expected


MODES = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV")


def in_mode(mode: str) -> Image.Image:
    """A picture whose left half is transparent, where the mode has transparency."""
    pixels = np.dstack([photo(), np.full((30, 40), 255, np.uint8)])
    pixels[:, :20, 3] = 0
    picture = Image.fromarray(pixels)
    via = {"La": "LA", "PA": "LA", "RGBa": "RGBA"}.get(mode)
    if mode == "RGBA":
        return picture
    return picture.convert(via).convert(mode) if via else picture.convert("RGB").convert(mode)


def on_white(picture: Image.Image) -> np.ndarray:
    """Its pixels as Pillow draws it on white."""
    if not picture.has_transparency_data:
        return np.asarray(picture.convert("RGB"))
    whole = picture.convert("RGBA")
    return np.asarray(Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB"))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_of_all_modes_are_converted(channels):
    """Within 1 of Pillow, which rounds what is half transparent in another way."""
    given = schema(shape=(None, None, channels), convert=True, background=None if channels == 4 else 255)
    for mode in MODES:
        picture = in_mode(mode)
        if channels == 1 and mode in ("P", "PA"):  # grey levels of its colours, or its indices?
            with pytest.raises(rs.RecordError, match="3 channels keep its colours, `mask_of` its indices"):
                stored(given, picture)
            continue
        made = decoded(given, stored(given, picture)).astype(int)
        picture = picture.convert("LA") if mode == "La" else picture  # Pillow converts it to nothing else
        whole = np.asarray(picture.convert("RGBA")) if picture.has_transparency_data else on_white(picture)
        if channels == 4:
            np.testing.assert_array_equal(made[:, :, : whole.shape[2]], whole, mode)
            assert whole.shape[2] == 4 or (made[:, :, 3] == 255).all()
        elif channels == 3:
            assert np.abs(made - on_white(picture)).max() <= 1, mode
        else:
            grey = np.asarray(Image.fromarray(on_white(picture)).convert("L"))
            assert np.abs(made[:, :, 0] - grey).max() <= 1, mode
    assert (decoded(given, stored(given, in_mode("RGBA")))[:, :20] == 255).all() == (channels < 4)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_deep_images_are_converted(channels):
    """16 bits become their upper 8, which times 257 are 16 again; arrays are converted like files."""
    for own, deep in ((1, 1), (2, 2), (3, 3), (4, 4)):
        pixels = noise(own, "uint16")
        if own in (2, 4):
            pixels[:, :, -1] = 65535
        shallow = (pixels >> 8).astype(np.uint8)
        for dtype, source in (("uint8", pixels), ("uint16", shallow)):
            given = schema(shape=(None, None, channels), convert=True, dtype=dtype)
            png = tf.io.encode_png(source).numpy()
            expected = source[:, :, : own - (own in (2, 4))]
            expected = (expected >> 8) if dtype == "uint8" else expected.astype(np.uint16) * 257
            if channels == 1 and deep > 2:
                expected = expected.astype(int) @ [19595, 38470, 7471] + 0x8000 >> 16
                expected = expected[:, :, None]
            if channels > 1:
                expected = np.broadcast_to(expected, (*expected.shape[:2], 3))
            if channels == 4:
                expected = np.dstack([expected, np.full(expected.shape[:2], np.iinfo(dtype).max)])
            for value in (png, source):
                np.testing.assert_array_equal(decoded(given, stored(given, value)), expected)


def test_what_need_not_be_converted_is_stored_unchanged(tmp_path):
    given = schema(encoding="jpeg", convert=True)
    assert stored(given, JPEG) == JPEG
    path = tmp_path / "really.png"
    path.write_bytes(JPEG)
    assert stored(given, path) == JPEG


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (SPOTS.getvalue(), "got an image with transparency (`background: 255` draws it on white, 4 channels keep it)"),
        (Image.new("F", (4, 4)), "got mode F (give an array: the range of its values is unknown)"),
        (Image.new("LAB", (4, 4)), "got mode LAB (give an array: the range of its values is unknown)"),
        (np.zeros((4, 4, 5), np.uint8), "got shape [4, 4, 5]"),
        (np.zeros((4, 4, 3), np.float32), "got float32 of shape [4, 4, 3]"),
    ],
)  # fmt: skip
def test_what_has_no_conversion_is_named(value, message):
    with pytest.raises(rs.RecordError) as caught:
        schema(convert=True).encode({"x": value})
    assert str(caught.value) == f"row 0: features.x: expected an image uint8 [null, null, 3], {message}"


def test_numbers_of_32_bits_do_not_wrap():
    given = schema(shape=(1, 2, 1), dtype="uint16")
    assert decoded(given, Image.fromarray(np.array([[65535, 0]], np.int32))).ravel().tolist() == [65535, 0]
    with pytest.raises(rs.RecordError) as caught:
        given.encode({"x": Image.fromarray(np.array([[70000, -1]], np.int32))})
    assert str(caught.value) == (
        "row 0: features.x: expected an image uint16 [1, 2, 1], got values from -1 to 70000"
    )


def test_numbers_of_32_bits_have_no_scale(tmp_path):
    """A TIFF of 32 bits does not say which number is the brightest, so it is not converted to 8 bits."""
    for number in range(20):
        numbers = np.full((3, 4), 200 + number, np.int32)
        Image.fromarray(numbers).save(tmp_path / f"{number}.tif")
    path = tmp_path / "7.tif"
    with pytest.raises(rs.RecordError) as caught:
        schema(shape=(3, 4, 1), convert=True).encode({"x": path})
    told = f"got {path}: mode I (give an array: the range of its values is unknown)"
    assert str(caught.value).endswith(told)
    (tmp_path / "rows.csv").write_text("x\n" + "".join(f"{number}.tif\n" for number in range(20)))
    found = rs.infer(tmp_path / "rows.csv")
    assert decoded(found.schema, path).ravel().tolist() == [207] * 12


def test_a_bmp_that_tensorflow_does_not_read_is_encoded_anew():
    data = image_bytes(np.concatenate([photo(4, 5), np.full((4, 5, 1), 255, np.uint8)], 2), "bmp")
    given = schema(encoding="bmp")
    assert stored(given, data) != data
    np.testing.assert_array_equal(decoded(given, data), photo(4, 5))


def test_a_gif_whose_frame_is_smaller_than_the_image_is_encoded_anew():
    data = bytearray(image_bytes(photo(4, 4), "gif"))
    data[6:10] = (6).to_bytes(2, "little") + (5).to_bytes(2, "little")  # the size of the whole
    expected = np.asarray(Image.open(io.BytesIO(bytes(data))).convert("RGB"))
    assert expected.shape == (5, 6, 3)
    given = schema(encoding="gif")
    np.testing.assert_array_equal(decoded(given, bytes(data)), expected)


def test_a_pil_image_of_a_cut_file_is_named(tmp_path):
    (tmp_path / "cut.jpg").write_bytes(JPEG[:-20])
    rows = [{"x": Image.open(tmp_path / "cut.jpg")}]
    with pytest.raises(rs.RecordError, match="got image file is truncated"):
        rs.write(rows, schema(), tmp_path / "data")


@pytest.mark.parametrize("channels", [2, 5])
def test_raw_images_of_odd_channels_are_arrays(channels):
    given = schema(encoding="raw", shape=(30, 40, channels))
    with pytest.raises(rs.RecordError, match=r"expected an image uint8 \[30, 40, .\], got mode RGB"):
        given.encode({"x": Image.fromarray(photo())})


def test_a_webp_animation_of_one_frame_is_encoded_anew():
    """TensorFlow 2.21 writes past its memory where the frame is smaller than the image."""
    still = image_bytes(photo(6, 8), "webp", lossless=True)[12:]
    frame = bytes(6) + (7).to_bytes(3, "little") + (5).to_bytes(3, "little") + bytes(4) + still
    chunks = (
        (b"VP8X", bytes([2, 0, 0, 0]) + (9).to_bytes(3, "little") + (9).to_bytes(3, "little")),
        (b"ANIM", bytes(6)),
        (b"ANMF", frame),
    )
    body = b"WEBP" + b"".join(kind + len(data).to_bytes(4, "little") + data for kind, data in chunks)
    data = b"RIFF" + len(body).to_bytes(4, "little") + body
    again = stored(schema(encoding="webp"), data)
    assert again[12:16] == b"VP8L"
    assert Image.open(io.BytesIO(again)).size == (10, 10)


@pytest.mark.parametrize("colours", [2, 4, 16])
def test_png_files_of_few_bits_are_whole_in_four_channels(colours):
    stream = io.BytesIO()
    Image.fromarray(photo()).quantize(colours).save(stream, "png")
    expected = np.asarray(Image.open(io.BytesIO(stream.getvalue())).convert("RGBA"))
    np.testing.assert_array_equal(decoded(schema(shape=(None, None, 4)), stream.getvalue()), expected)
    black = io.BytesIO()
    Image.fromarray(photo()).convert("1").save(black, "png")
    expected = np.asarray(Image.open(io.BytesIO(black.getvalue())).convert("RGBA"))
    np.testing.assert_array_equal(decoded(schema(shape=(None, None, 4)), black.getvalue()), expected)


def test_a_bmp_with_bytes_behind_it_is_encoded_anew():
    data = image_bytes(photo(), "bmp") + b"zzz"
    np.testing.assert_array_equal(decoded(schema(encoding="bmp"), data), photo())


@pytest.mark.parametrize(
    ("encoding", "shape", "expected"),
    [
        ("png", (1, 1_000_001, 1), "expected sides of at most 1,000,000 for png, got shape [1, 1000001, 1]"),
        ("gif", (1, 70_000, 3), "expected an image that gif can hold, got "),
    ],
)
def test_sides_that_are_too_long_are_refused(encoding, shape, expected):
    given = schema(encoding=encoding, shape=(None, None, shape[2]))
    with pytest.raises(rs.RecordError) as caught:
        given.encode({"x": np.zeros(shape, np.uint8)})
    assert str(caught.value).startswith(f"row 0: features.x: {expected}")


COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of channels
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
KEYED = (77, 78, 79)  # the colour without alpha


def png(pixels: np.ndarray, *, interlaced: bool = False, keyed: bool = False, first_filter: int = 0) -> bytes:
    """A PNG of 8 or 16 bits, in three chunks, whose lines have all filters in turn; `keyed` has a colour that
    is transparent."""
    (height, width, channels), depth = pixels.shape, 8 * pixels.dtype.itemsize
    lines = b""
    for left, top, right, down in PASSES if interlaced else [(0, 0, 1, 1)]:
        some = np.ascontiguousarray(pixels[top::down, left::right])
        if some.size:
            stored = some.astype(some.dtype.newbyteorder(">")).view(np.uint8).reshape(len(some), -1)
            lines += filtered(stored, channels * depth // 8, first_filter)
    data = zlib.compress(lines)
    header = struct.pack(">IIBBBBB", width, height, depth, COLOUR_TYPES[channels], 0, 0, interlaced)
    key = [(b"tRNS", struct.pack(f">{channels}H", *KEYED[:channels]))] if keyed else []
    parts = [(b"IDAT", data[at : at + len(data) // 3 + 1]) for at in range(0, len(data), len(data) // 3 + 1)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in [(b"IHDR", header), *key, *parts, (b"IEND", b"")]
    )


def filtered(lines: np.ndarray, width: int, first: int) -> bytes:
    """The bytes of lines, uint8 `[rows, bytes]`, each less what its filter predicts of the pixels before."""
    around = np.pad(lines.astype(int), [(1, 0), (width, 0)])
    left, up, corner = around[1:, :-width], around[:-1, width:], around[:-1, :-width]
    near = np.argmin(np.abs([up - corner, left - corner, left + up - 2 * corner]), axis=0)
    predicted = [0 * up, left, up, (left + up) // 2, np.choose(near, [left, up, corner])]
    kinds = [(first + row) % 5 for row in range(len(lines))]
    rows = [
        (line - predicted[kind][row]) % 256 for row, (line, kind) in enumerate(zip(lines, kinds, strict=True))
    ]
    return b"".join(bytes([kind, *row.tolist()]) for kind, row in zip(kinds, rows, strict=True))


@pytest.mark.tensorflow
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("stored", ["uint8", "uint16"])
def test_png_files_of_any_form_are_read_without_tensorflow(stored, interlaced, keyed):
    """Of any channels and filters, in the channels and the dtype of any schema."""
    rng = np.random.default_rng(0)
    for (height, width), channels in [
        ((7, 9), 1),
        ((7, 9), 2),
        ((7, 9), 3),
        ((7, 9), 4),
        ((1, 1), 3),
        ((6, 1), 4),
    ]:
        if keyed and channels in (2, 4):
            continue
        pixels = rng.integers(0, np.iinfo(stored).max, (height, width, channels), stored, endpoint=True)
        pixels[0, 0] = KEYED[:channels] if keyed else 5
        for first in range(5):
            data = png(pixels, interlaced=interlaced, keyed=keyed, first_filter=first)
            for wanted, dtype in [(1, "uint8"), (1, "uint16"), (3, "uint16"), (4, "uint8"), (4, "uint16")]:
                feature = ImageFeature(name="x", shape=(None, None, wanted), dtype=dtype)
                (found, _), expected = images.decoded(feature, 0, data), tf.io.decode_png(data, wanted, dtype)
                assert found.dtype == dtype
                np.testing.assert_array_equal(found, expected.numpy(), f"{pixels.shape} {feature}")


def reason_of(feature: ImageFeature, data: bytes) -> str:
    with pytest.raises(BadValue) as caught:
        images.decoded(feature, 3, data)
    assert caught.value.index == 3
    return str(caught.value.problem)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_a_damaged_png_is_not_read(dtype):
    """Not wherever it is cut, nor where a bit of its pixels is another."""
    data, feature = png(noise(3, dtype)), ImageFeature(name="x", dtype=dtype)
    last = data.rindex(b"IDAT")
    for place in (40, data.index(b"IDAT") + 5, last + 5, last + 20):
        assert reason_of(feature, data[:place]).startswith(
            "expected png data that decodes, got a PNG image: "
        )
        damaged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        assert reason_of(feature, damaged).startswith("expected png data that decodes, got a PNG image: ")
    assert reason_of(feature, b"<html>") == (
        "expected png data that decodes, got an HTML page: Pillow cannot open it"
    )
    assert reason_of(ImageFeature(name="x", shape=(7, 6, 3), dtype=dtype), data) == (
        f"expected an image {dtype} [7, 6, 3], got shape [7, 5, 3]"
    )


def test_an_unknown_filter_of_a_png_is_an_error():
    (line,) = noise(3, "uint16")[:1].astype(">u2")
    data = png(np.zeros((1, 5, 3), np.uint16))
    lines = zlib.compress(b"\5" + line.tobytes())
    chunk = struct.pack(">I", len(lines)) + b"IDAT" + lines + struct.pack(">I", zlib.crc32(b"IDAT" + lines))
    reason = reason_of(ImageFeature(name="x", dtype="uint16"), data[:33] + chunk + data[-12:])
    assert reason == "expected png data that decodes, got a PNG image: it has a filter 5"


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "options", [{"subsampling": 0}, {"subsampling": 2}, {"progressive": True, "quality": 30}]
)
def test_jpeg_files_are_read_as_the_exact_transform_of_tensorflow_reads_them(options):
    rng = np.random.default_rng(0)
    for shape in [(1, 1, 3), (17, 33, 3), (16, 5)]:
        data = image_bytes(rng.integers(0, 256, shape, np.uint8), "jpeg", **options)
        for channels in (1, 3):
            feature = ImageFeature(name="x", shape=(None, None, channels), encoding="jpeg")
            exact = tf.io.decode_jpeg(data, channels, dct_method="INTEGER_ACCURATE").numpy()
            np.testing.assert_array_equal(images.decoded(feature, 0, data)[0], exact)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK", "YCbCr"])
@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"keep_rgb": True}, {"progressive": True}])
def test_jpeg_files_have_the_same_pixels_without_simplejpeg(mode, options, monkeypatch):
    """Also where it refuses the file, or a file has a second picture, which are left to Pillow."""
    pixels = np.random.default_rng(0).integers(0, 256, (35, 19, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(stream, "jpeg", **options)
    whole = stream.getvalue()
    comment = whole[:2] + b"\xff\xff" + whole[2:]  # fill bytes before a marker
    damaged = whole[:-40] + b"\xff\xd9"
    mpo = io.BytesIO()
    Image.fromarray(pixels).save(mpo, "mpo", save_all=True, append_images=[Image.fromarray(pixels[::-1])])
    for data in (whole, whole + b"more", comment, damaged, mpo.getvalue()):
        for feature in (
            ImageFeature(name="x", shape=(None, None, channels), encoding="jpeg") for channels in (1, 3)
        ):
            read = []
            for library in (simplejpeg, None):
                monkeypatch.setattr(images, "_simplejpeg", lambda library=library: library)
                try:
                    read.append(images.decoded(feature, 0, data)[0].tolist())
                except BadValue as error:
                    read.append(str(error.problem))
            assert read[0] == read[1]


def test_pillow_decodes_jpeg_where_simplejpeg_fails(monkeypatch):
    feature, data = ImageFeature(name="x", encoding="jpeg"), image_bytes(noise(3), "jpeg")
    (expected, _) = images.decoded(feature, 0, data)

    def failing(error):
        def decode(*_):
            raise error

        return SimpleNamespace(decode_jpeg_header=simplejpeg.decode_jpeg_header, decode_jpeg=decode)

    for error in (ValueError("corrupt"), KeyError(6), RuntimeError("no decoder")):
        library = failing(error)
        monkeypatch.setattr(images, "_simplejpeg", lambda library=library: library)
        np.testing.assert_array_equal(images.decoded(feature, 0, data)[0], expected)
    monkeypatch.undo()
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    np.testing.assert_array_equal(images.decoded(feature, 0, data)[0], expected)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4)
    assert "could be decompression bomb" in reason_of(feature, data)
