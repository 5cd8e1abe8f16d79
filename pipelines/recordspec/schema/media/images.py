"""Encodes images for records: checks files, bytes, arrays and PIL images, and returns encoded bytes."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Collection
from contextlib import ExitStack
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recordspec.errors import Problem, describe, missing_package, show_shape
from recordspec.locations import Location, is_path, open_file
from recordspec.schema.media import file_of, path_of, read_file
from recordspec.schema.media.resizing import decoding_ratio
from recordspec.schema.values import Array, BadValue
from recordspec.wire.file_types import describe_type

if TYPE_CHECKING:
    from recordspec.schema.features.image import Image

ImageEncoding = Literal["png", "jpeg", "webp", "bmp", "gif", "raw"]

# Pillow's names. Pillow reports a phone's JPEG with a second picture as MPO.
_ENCODINGS = {"PNG": "png", "JPEG": "jpeg", "MPO": "jpeg", "WEBP": "webp", "BMP": "bmp", "GIF": "gif"}
_SUFFIXES = {f".{name}": name for name in ("png", "jpeg", "webp", "bmp", "gif")} | {
    ".jpg": "jpeg",
    ".jpe": "jpeg",
    ".jfif": "jpeg",
}
# Suffixes of image files, including formats that are not stored but re-encoded.
SUFFIXES = (
    *_SUFFIXES,
    *(".tif", ".tiff", ".avif", ".heic", ".heif", ".jp2", ".j2k", ".mpo"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".tga", ".ico", ".dib"),
)
# The packages for formats that not every Pillow reads.
_READERS = {
    "a HEIC image": "pip install pillow-heif",
    "a HEIF image": "pip install pillow-heif",
    "an AVIF image": "pip install 'pillow>=11.3'",
}
# The Pillow modes that convert to these channels and dtype without loss: grey to colour, colour to colour
# with an alpha channel. `RGB;16` and `RGBA;16` are our names, for PNG files that Pillow verifies but cannot
# represent.
_MODES = {
    (1, "uint8"): ("1", "L"),
    (3, "uint8"): ("1", "L", "P", "RGB"),
    (4, "uint8"): ("1", "L", "LA", "P", "PA", "RGB", "RGBA"),
    (1, "uint16"): ("I;16", "I;16B", "I;16L"),
    (3, "uint16"): ("I;16", "RGB;16"),
    (4, "uint16"): ("I;16", "LA;16", "RGB;16", "RGBA;16"),
}
_CONVERTED = {1: "L", 3: "RGB", 4: "RGBA"}
# The colour types of PNG (ISO/IEC 15948, 11.2.2), at 16 bits.
_PNG_MODES_16 = {0: "I;16", 2: "RGB;16", 4: "LA;16", 6: "RGBA;16"}
_PNG_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
_GREY_WEIGHTS = (9797, 19234, 3737)  # for red, green and blue, in units of 2^-15
_LUMA_WEIGHTS = (19595, 38470, 7471)  # Pillow's weights, of ITU-R 601-2, in units of 2^-16
_GREYS = ("1", "L")
# Modes of values without full scale, and a mode that Pillow does not convert.
_UNSCALED = ("F", "LAB")
# Formats whose numbers have 16 bits although Pillow's mode, I, has 32.
_OF_16_BITS = ("PNG", "PPM")
# The options of Pillow's encoders if no quality is given.
_USUAL: dict[str, dict[str, Any]] = {"jpeg": {"quality": 95}, "webp": {"lossless": True, "exact": True}}
_MULTI_PICTURE = b"MPF\0"  # marks a JPEG with a second picture, an MPO; Pillow cannot read its luminance
_ORIENTATION = 0x0112  # the EXIF tag; 1 is upright
_TIFF_WIDTH, _TIFF_HEIGHT = 256, 257  # the tags
# Pillow's name of the transposition that turns an upright image to the stored one, by orientation.
_TURNED_BACK = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_90",
    7: "TRANSVERSE",
    8: "ROTATE_270",
}
_MOST_COLOURS = 256  # the colours of a GIF
# The last chunk of a PNG: no data, its type, and the CRC of the type (ISO/IEC 15948, 11.2.5).
_IEND = b"\0\0\0\0IEND\xaeB`\x82"
_EXTENSION, _IMAGE, _TRAILER = b"!,;"  # the first bytes of blocks in a GIF
_LONGEST_PNG = 1_000_000  # libpng's default limit for a side


def encoded(target: Image, row: int, value: Any) -> bytes:
    """Encodes an image, given as a path, a file's bytes, an array or a PIL image, to stored bytes. Raises
    BadValue.
    """
    value = file_of(value)
    if is_path(value):
        return _from_file(target, row, path_of(row, value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return _stored(target, row, data, _opened(row, data, "", _hint(target)), "")
    if isinstance(value, np.ndarray) and not np.ma.is_masked(value):
        return from_pixels(target, row, np.asarray(value))
    if isinstance(value, pillow("images").Image):
        return _from_image(target, row, value, "")
    raise BadValue(row, "a path, bytes, an array or a PIL image", describe(value))


def mask_pixels(target: Image, row: int, value: Any) -> Array:
    """The class of each pixel of a mask, `[h, w, 1]`, in the dtype of `target`: the palette indices of an
    image, or its values if it has one channel. Raises BadValue for other images, and for classes out of
    range.
    """
    value, name = file_of(value), ""
    if isinstance(value, np.ndarray) and not np.ma.is_masked(value):
        numbers = np.asarray(value)
    else:
        data = b""
        if is_path(value):
            path = path_of(row, value)
            value, name = read_file(row, path, "an image file"), f"{path}: "
        if isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
            value = _opened(row, data, name)
        if not is_image(value):
            raise BadValue(row, "a path, bytes, an array or a PIL image", describe(value))
        numbers = _classes(row, value, data, name)
    if numbers.ndim == 2:
        numbers = numbers[:, :, None]
    most = np.iinfo(target.dtype).max
    if numbers.dtype.kind not in "biu" or numbers.ndim != 3:
        raise BadValue(row, _expected(target), describe(numbers))
    if numbers.size and (numbers.min() < 0 or numbers.max() > most):
        has_more = most == 0xFF and numbers.min() >= 0 and numbers.max() <= 0xFFFF
        hint = "`dtype: uint16` has more" if has_more else ""
        got = f"{name}values from {numbers.min()} to {numbers.max()}"
        raise BadValue(row, f"classes from 0 to {most}", got, hint)
    return numbers.astype(target.dtype)


def _classes(row: int, image: Any, data: bytes, name: str) -> Array:
    """The palette indices, or the values of one channel, as they are stored: decoders scale fewer than 8
    bits to the full range.
    """
    if _encoding(image) == "jpeg":
        hint = "its compression mixes classes: give a PNG file"
        raise BadValue(row, "a mask without a loss", f"{name}a JPEG image", hint)
    if image.mode not in ("1", "L", "P", "I") and not image.mode.startswith("I;16"):
        hint = "an array tells the class of each pixel"
        raise BadValue(row, "an image with a palette, or of one channel", f"{name}mode {image.mode}", hint)
    numbers = np.asarray(image)
    bits = data[24] if image.format == "PNG" and image.mode == "L" and data else 8
    return numbers if bits >= 8 else numbers // (0xFF // (2**bits - 1))


def decoded(target: Image, row: int, data: bytes) -> tuple[Array, tuple[int, int]]:
    """Decodes stored bytes to pixels `[h, w, c]`, equal to those of TensorFlow's decoders; for jpeg within 2
    of 255.

    If `target.resizing` has `scaled_decoding`, they may be the pixels of a smaller image.

    Returns:
        The pixels, and the height and width of the whole image.

    Raises BadValue for bytes that do not decode, or an image of another shape.
    """
    pixels = _jpeg_pixels(target, data) if target.encoding == "jpeg" else None
    if pixels is not None:
        sides = pixels.shape[0], pixels.shape[1]
    else:
        pixels, sides = _pillow_pixels(target, row, data)
    _check_shape(target, row, (*sides, target.channels), "")
    return pixels.reshape(*pixels.shape[:2], target.channels), sides


def _jpeg_pixels(target: Image, data: bytes) -> Array | None:
    """Decodes a JPEG file to the same pixels as Pillow; None if Pillow has to decode it.

    simplejpeg calls libjpeg-turbo directly. Pillow calls it too, but takes 1.4 times as long, since it reads
    the header itself and copies the pixels twice.
    """
    library = _simplejpeg()
    if library is None:
        return None
    try:
        height, width, colours, _ = library.decode_jpeg_header(data)
        ratio = 1 if target.resizing is None else decoding_ratio((height, width), target.resizing)
        limit = pillow("images").MAX_IMAGE_PIXELS
        usual = colours in ("Gray", "YCbCr", "RGB") and (limit is None or height * width <= limit)
        if not usual or ratio > 1 or (target.channels == 1 and _MULTI_PICTURE in data):
            return None
        pixels: Array = library.decode_jpeg(data, "RGB" if target.channels == 3 else "GRAY")
        return pixels
    except (ValueError, KeyError, RuntimeError):  # also for files that Pillow tolerates; KeyError for 4:4:1
        return None


def _pillow_pixels(target: Image, row: int, data: bytes) -> tuple[Array, tuple[int, int]]:
    """`decoded` with Pillow."""
    library = pillow("images")
    try:
        image = library.open(io.BytesIO(data))
        mode, sides = _mode(data, image), (image.height, image.width)
        if _encoding(image) == "jpeg":
            ratio = 1 if target.resizing is None else decoding_ratio(sides, target.resizing)
            # for one channel, the stored luminance
            grey_of = "L" if target.channels == 1 and image.format == "JPEG" else None
            if ratio > 1 or grey_of is not None:
                image.draft(grey_of, (sides[1] // ratio, sides[0] // ratio))
        if mode.endswith(";16") or mode == "I":
            pixels = _deep_pixels(data, image, mode, target.channels)
            pixels = pixels if target.dtype == "uint16" else (pixels >> 8).astype(np.uint8)
        else:
            grey = target.channels == 1 and image.format == "PNG" and mode not in ("1", "L", "LA")
            wanted = "RGB" if grey else _CONVERTED[target.channels]
            # np.asarray also copies an image that has the mode
            pixels = np.asarray(image if image.mode == wanted else image.convert(wanted))
            pixels = _grey(pixels) if grey else pixels
            # the factor 257 maps 255 to 65535, as libpng does
            pixels = pixels.astype(np.uint16) * np.uint16(257) if target.dtype == "uint16" else pixels
    except Exception as error:  # Pillow's decoders raise many types for bad data
        reason = "Pillow cannot open it" if isinstance(error, library.UnidentifiedImageError) else error
        expected, got = f"{target.encoding} data that decodes", f"{describe_type(data)}: {reason}"
        raise BadValue(row, expected, got) from None
    return pixels, sides


def _deep_pixels(data: bytes, image: Any, mode: str, channels: int) -> Array:
    """The pixels of an image with 16 bits, uint16 `[h, w, channels]`."""
    stored = np.asarray(image).astype(np.uint16)[:, :, None] if mode.startswith("I") else _from_png_16(data)
    colours = stored[:, :, : stored.shape[2] - (stored.shape[2] in (2, 4))]
    if colours.shape[2] == 3 and channels == 1:
        return _grey(colours)
    transparent = image.info.get("transparency")  # a single grey or colour; its pixels have no alpha
    alpha = np.full_like(colours[:, :, :1], 0xFFFF)
    if stored.shape[2] in (2, 4):
        alpha = stored[:, :, -1:]
    elif transparent is not None:
        alpha[(colours == transparent).all(axis=2)] = 0
    colours = np.repeat(colours, 3, axis=2) if colours.shape[2] < min(channels, 3) else colours
    return colours if channels < 4 else np.concatenate([colours, alpha], axis=2)


def _grey(colours: Array) -> Array:
    """Converts the pixels of a PNG to grey like libpng; Pillow rounds 8-bit pixels differently."""
    half = 1 << 14 if colours.dtype == np.uint16 else 0
    grey = colours.astype(np.int64) @ _GREY_WEIGHTS + half >> 15
    return np.asarray(grey.astype(colours.dtype)[:, :, None])


def _expected(target: Image) -> str:
    return f"an image {target.dtype} {show_shape(target.shape)}"


def _from_file(target: Image, row: int, path: Location) -> bytes:
    data = read_file(row, path, "an image file")
    name = f"{path}: "
    image = _opened(row, data, name, _hint(target))
    said, encoding = encoding_named(str(path)), _encoding(image)
    if said is not None and said != encoding and not target.convert:
        hint = f"it is named {path.suffix}; `convert: true` takes it"
        raise BadValue(row, f"{said} data", f"{name}{describe_type(data)}", hint)
    return _stored(target, row, data, image, name)


def _hint(target: Image) -> str:
    return "give raw pixels as an array" if target.encoding == "raw" else ""


def _stored(target: Image, row: int, data: bytes, image: Any, name: str) -> bytes:
    """The bytes unchanged if they have the encoding; otherwise re-encoded."""
    mode = _mode(data, image)
    turned = _turned(target, row, image, name)
    lossless = _check_mode(target, row, mode, image, name)
    _check_shape(target, row, (turned.height, turned.width, target.channels), name)
    if (
        lossless
        and turned is image
        and _encoding(image) == target.encoding
        and _decodes(target.encoding, target.channels, data, image)
    ):
        return data
    deep = mode.startswith(("RGB", "LA")) and mode.endswith(";16")
    if deep and (lossless or turned is not image):
        hint = "Pillow has no pixels of 16 bits in colour: give an array"
        raise BadValue(row, f"{target.encoding} data", f"{name}mode {mode}", hint)
    pixels = _deep_pixels(data, image, mode, 4) if deep else _pixels(target, row, turned, lossless, name)
    return from_pixels(target, row, pixels, name)


def _from_image(target: Image, row: int, image: Any, name: str) -> bytes:
    try:
        image.load()  # for an image that was opened, but not read yet
    except Exception as error:
        raise BadValue(row, "an image that decodes", f"{name}{error}") from None
    turned = _turned(target, row, image, name)
    lossless = _check_mode(target, row, image.mode, image, name)
    return from_pixels(target, row, _pixels(target, row, turned, lossless, name), name)


def _pixels(target: Image, row: int, image: Any, lossless: bool, name: str) -> Array:
    """The pixels of an image; in the feature's channels if the conversion is lossless."""
    if not image.mode.startswith("I"):
        image = image.convert("LA") if image.mode == "La" else image  # Pillow converts it to no other mode
        mode = "RGBA" if image.has_transparency_data else "L" if image.mode in _GREYS else "RGB"
        return np.asarray(image.convert(_CONVERTED[target.channels] if lossless else mode))
    numbers = np.asarray(image)
    if numbers.min() < 0 or numbers.max() > 0xFFFF:  # mode I has 32 bits
        raise BadValue(row, _expected(target), f"{name}values from {numbers.min()} to {numbers.max()}")
    grey = numbers.astype(np.uint16)[:, :, None]
    transparent = image.info.get("transparency")
    alpha = np.where(grey == transparent, 0, 0xFFFF).astype(np.uint16)
    parts = {1: [grey], 3: [grey] * 3, 4: [grey, grey, grey, alpha]}
    if not lossless:
        return grey if transparent is None else np.concatenate([grey, alpha], axis=2)
    return np.concatenate(parts[target.channels], axis=2)


def _opened(row: int, data: bytes, name: str, hint: str = "") -> Any:
    """The image, fully decoded. Raises BadValue if that fails, or if there are several frames."""
    library = pillow("images")
    try:
        stream = io.BytesIO(data)
        image = library.open(stream)
        image.verify()  # checks the end of a PNG, which `load` does not need
        # `verify` stops after the type of the last chunk, without comparing the rest
        if image.format == "PNG" and not data.startswith(_IEND, stream.tell() - 8):
            raise ValueError("its IEND chunk is not whole")
        image = library.open(io.BytesIO(data))
        if image.format == "JPEG":
            # reads all data, but makes only an eighth of the pixels: finds the same errors in half of the
            # time
            tried = library.open(io.BytesIO(data))
            tried.draft(tried.mode, (1, 1))
            tried.load()
        else:
            image.load()
        if image.format == "GIF":
            _check_gif(data, image)
    except Exception as error:  # Pillow's decoders raise many types for bad data
        if (too_large := size_problem(data)) is not None:
            raise BadValue(row, too_large.expected, f"{name}{too_large.got}", too_large.hint) from None
        described = describe_type(data)
        if not described.endswith(" image"):
            raise BadValue(row, "an image", f"{name}{described}", hint) from None
        reason = "Pillow cannot open it" if isinstance(error, library.UnidentifiedImageError) else error
        hint = reader_hint(data)
        raise BadValue(row, "an image that decodes", f"{name}{described}: {reason}", hint) from None
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":
        hint = "`kind: video` stores frames"
        raise BadValue(row, "a single image", f"{name}{describe_type(data)} of {frames} frames", hint)
    return _as_stored(library.open(io.BytesIO(data)), image) if image.format == "TIFF" else image


def size_problem(data: bytes) -> Problem | None:
    """The problem of an image with more pixels than Pillow opens; None for other bytes."""
    library = pillow("images")
    try:
        library.open(io.BytesIO(data))
    except library.DecompressionBombError:
        expected = f"an image of at most {2 * library.MAX_IMAGE_PIXELS:,} pixels"
        return Problem(expected=expected, got=f"{describe_type(data)} that is too large")
    except Exception:  # Pillow's decoders raise many types for bad data
        pass
    return None


def _as_stored(header: Any, image: Any) -> Any:
    """A TIFF image with its pixels as stored, and its orientation: when Pillow loads an image, it turns
    it upright and drops the orientation. `header` is the image before loading.
    """
    orientation = orientation_of(header)
    if orientation == 1:
        return image
    from PIL.Image import Transpose

    stored = image.transpose(Transpose[_TURNED_BACK[orientation]])
    stored.format = image.format
    stored.getexif()[_ORIENTATION] = orientation
    return stored


def features_storing(data: bytes, image: Any) -> frozenset[tuple[int, str]]:
    """The channels and dtypes of the features that would store an image's bytes unchanged."""
    if getattr(image, "is_animated", False) and image.format != "MPO":
        return frozenset()
    mode, encoding = _mode(data, image), _encoding(image)
    return frozenset(
        (channels, dtype)
        for channels, dtype in _MODES
        if _mode_loss(channels, dtype, mode, image) is None and _decodes(encoding, channels, data, image)
    )


def encoding_named(path: str) -> str | None:
    """The encoding named by a file's suffix; None for another suffix."""
    return _SUFFIXES.get(PurePath(path).suffix.lower())


def lossless(modes: Collection[str]) -> tuple[int, str] | None:
    """The fewest channels, with the dtype, to which images of all the given Pillow modes convert without
    loss.
    """
    return next((form for form, known in _MODES.items() if set(modes) <= set(known)), None)


def _encoding(image: Any) -> str:
    return _ENCODINGS.get(image.format, str(image.format).lower())


def _mode(data: bytes, image: Any) -> str:
    """Pillow's mode; for 16-bit PNG files, our own."""
    if image.format == "PNG" and data[24] == 16:  # the bit depth, then the colour type
        return _PNG_MODES_16.get(data[25], str(image.mode))
    return str(image.mode)


def _decodes(encoding: str, channels: int, data: bytes, image: Any) -> bool:
    """Whether TensorFlow decodes these bytes to the same pixels as Pillow."""
    if encoding == "png":  # if channels have fewer bits, the alpha channel that TensorFlow adds is not opaque
        return channels < 4 or data[24] >= 8
    if encoding == "webp":  # an animation of one frame may be smaller than the image
        return not (data[12:16] == b"VP8X" and data[20] & 2)
    if encoding == "gif":  # may be smaller than the image as well
        return tuple(pillow("images").open(io.BytesIO(data)).tile[0][1]) == (0, 0, *image.size)
    return encoding != "bmp" or _is_plain_bmp(channels, data, image)


def _is_plain_bmp(channels: int, data: bytes, image: Any) -> bool:
    """Whether a BMP has 8 or 24 bits, no palette, no compression, and no bytes after the pixels."""
    bits, start = int.from_bytes(data[28:30], "little"), int.from_bytes(data[10:14], "little")
    end = start + (bits * image.width + 31) // 32 * 4 * image.height
    same = bool(_CONVERTED[channels] == image.mode and bits in (8, 24))
    return same and end == len(data) and image.info.get("compression", 0) == 0


def orientation_of(image: Any) -> int:
    """The EXIF orientation of an image: 2 to 8, or 1 if it is upright or has none."""
    orientation = image.getexif().get(_ORIENTATION, 1)
    return int(orientation) if orientation in range(2, 9) else 1  # other values are undefined


def header_of(value: Any) -> tuple[int, int, int] | None:
    """The EXIF orientation, 1 if none, and the stored height and width of an image in the forms of `encoded`.

    None for a value that is no image, which `encoded` refuses. Reads only the header of a file. The size of a
    PIL image is that of its pixels as Pillow gives them, which are upright for a TIFF.
    """
    library, value = pillow("images"), file_of(value)
    try:
        with ExitStack() as stack:
            if is_path(value):
                value = stack.enter_context(open_file(path_of(0, value)))
            elif isinstance(value, (bytes, bytearray, memoryview)):
                value = io.BytesIO(value)
            if isinstance(value, library.Image):
                value.load()
                return orientation_of(value), value.height, value.width
            image = library.open(value)
            if image.format == "TIFF":  # Pillow's size is that of the upright image
                return orientation_of(image), image.tag_v2[_TIFF_HEIGHT], image.tag_v2[_TIFF_WIDTH]
            return orientation_of(image), image.height, image.width
    except Exception:  # Pillow's decoders raise many types for bad data
        return None


def is_image(value: Any) -> bool:
    """Whether a value is a PIL image; does not import Pillow."""
    loaded = sys.modules.get("PIL.Image")
    return loaded is not None and isinstance(value, loaded.Image)


def copied(image: Any) -> Any:
    """A copy of a PIL image.

    Pillow's own copies, and those of `copy` and `pickle`, lose an orientation that was set in memory. Those
    of `copy` and `pickle` also lose the alpha of a palette.
    """
    return _restored(*_state(image))


def reduced(image: Any) -> tuple[Any, ...]:
    """A copy for `pickle`: a function, and its arguments to create the image."""
    return _restored, _state(image)


def _state(image: Any) -> tuple[Any, ...]:
    orientation, data = orientation_of(image), image.tobytes()  # loads the image, and its palette
    palette = (image.palette.mode, image.palette.tobytes()) if image.mode in ("P", "PA") else None
    transparency = image.info.get("transparency")
    return image.mode, image.size, data, palette, transparency, orientation


def _restored(mode: str, size: Any, data: bytes, palette: Any, transparency: Any, orientation: int) -> Any:
    library = pillow("images")
    image = library.frombytes(mode, size, data)
    if palette is not None:
        image.putpalette(palette[1], palette[0])
    if transparency is not None:
        image.info["transparency"] = transparency
    exif = library.Exif()
    exif[_ORIENTATION] = orientation
    image.info["exif"] = exif.tobytes()
    return image


def _turned(target: Image, row: int, image: Any, name: str) -> Any:
    """The image itself, or turned upright."""
    orientation = 1 if target.orientation == "keep" else orientation_of(image)
    if orientation == 1:
        return image
    if target.orientation == "error":
        hint = "`orientation: upright` turns it, `keep` leaves it"
        raise BadValue(row, "an upright image", f"{name}EXIF orientation {orientation}", hint)
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def _check_mode(target: Image, row: int, mode: str, image: Any, name: str) -> bool:
    """Whether an image converts without loss. Raises BadValue if it would lose something and may not be
    converted.
    """
    loss = _mode_loss(target.channels, target.dtype, mode, image)
    if loss is None:
        return True
    is_palette_in_grey = mode in ("P", "PA") and target.channels == 1  # indices, or brightness?
    if target.convert and _has_scale(mode, image) and not is_palette_in_grey:
        return False
    got, hint = loss
    raise BadValue(row, _expected(target), f"{name}{got}", hint)


def _mode_loss(channels: int, dtype: str, mode: str, image: Any) -> tuple[str, str] | None:
    """Describes the loss if an image is converted to these channels and dtype, with a hint; None if it is
    lossless.
    """
    if mode == "I" and dtype == "uint16":  # how Pillow before 11 opens a 16-bit PNG
        mode = "I;16"
    if not _has_scale(mode, image):
        return f"mode {mode}", "give an array: the range of its values is unknown"
    if mode in ("P", "PA") and channels == 1:
        return f"mode {mode} with a palette", "3 channels keep its colours, `mask_of` its indices"
    if mode not in _MODES.get((channels, dtype), ()):
        return f"mode {mode}", "`convert: true` converts it"
    if channels < 4 and image.has_transparency_data:
        return f"mode {mode} with transparency", "4 channels keep it, `convert: true` with a `background` not"
    return None


def _has_scale(mode: str, image: Any) -> bool:
    """Whether the brightest value of the mode is known."""
    return mode not in _UNSCALED and (mode != "I" or image.format in _OF_16_BITS)


def _check_shape(target: Image, row: int, shape: tuple[int, ...], name: str) -> None:
    fits = len(shape) == 3 and all(
        size > 0 if known is None else known == size for known, size in zip(target.shape, shape, strict=True)
    )
    if not fits:
        raise BadValue(row, _expected(target), f"{name}shape {show_shape(shape)}")
    if target.encoding == "png" and max(shape[:2]) > _LONGEST_PNG:
        expected = f"sides of at most {_LONGEST_PNG:,} for png"
        raise BadValue(row, expected, f"{name}shape {show_shape(shape)}")


def from_pixels(target: Image, row: int, pixels: Array, name: str = "") -> bytes:
    """Encodes an array `[h, w, c]`, or `[h, w]` for one channel, to stored bytes. Raises BadValue."""
    if pixels.ndim == 2 and (target.channels == 1 or target.convert):
        pixels = pixels[:, :, None]
    if target.convert and pixels.ndim == 3 and pixels.dtype.name in ("uint8", "uint16"):
        pixels = _converted(target, row, pixels, name)
    if pixels.dtype.name != target.dtype:
        raise BadValue(row, _expected(target), describe(pixels))
    _check_shape(target, row, pixels.shape, "")
    if target.encoding == "raw":
        return np.ascontiguousarray(pixels).astype(pixels.dtype.newbyteorder("<")).tobytes()
    if target.dtype == "uint16":
        return _png_16(pixels)
    image = _exact_palette(row, pixels) if target.encoding == "gif" else _image(pixels)
    stream = io.BytesIO()
    try:
        options = _USUAL.get(target.encoding, {}) if target.quality is None else {"quality": target.quality}
        image.save(stream, target.encoding, **options)
    except (OSError, ValueError, OverflowError, struct.error) as error:  # e.g. a side too large for JPEG
        raise BadValue(row, f"an image that {target.encoding} can hold", str(error)) from None
    return stream.getvalue()


def _converted(target: Image, row: int, pixels: Array, name: str) -> Array:
    """Converts pixels `[h, w, c]` to the channels and the dtype of a feature.

    Takes 1 to 4 channels; the last of 2 or 4 channels is the alpha. Other pixels are returned unchanged.
    Raises BadValue for transparent pixels without a background.
    """
    channels, most = pixels.shape[2], np.iinfo(target.dtype).max
    same = channels == target.channels and pixels.dtype == target.dtype
    if same or channels not in (1, 2, 3, 4):
        return pixels
    if pixels.dtype != target.dtype:  # keeps the upper 8 bits, as decoders of PNG do
        pixels = (pixels >> 8).astype(np.uint8) if most == 0xFF else pixels.astype(np.uint16) * np.uint16(257)
    has_alpha = channels in (2, 4)
    alpha = pixels[:, :, -1:] if has_alpha else np.full_like(pixels[:, :, :1], most)
    colours = pixels[:, :, : channels - has_alpha]
    if target.channels < 4 and bool((alpha < most).any()):
        if target.background is None:
            hint = "`background: 255` draws it on white, 4 channels keep it"
            raise BadValue(row, _expected(target), f"{name}an image with transparency", hint)
        weights = alpha.astype(np.int64)
        drawn = colours * weights + target.background * (most - weights)
        colours = ((drawn + most // 2) // most).astype(pixels.dtype)
    if colours.shape[2] == 3 and target.channels == 1:
        grey = colours.astype(np.int64) @ _LUMA_WEIGHTS + 0x8000 >> 16
        return np.asarray(grey.astype(pixels.dtype)[:, :, None])
    if colours.shape[2] == 1 and target.channels > 1:
        colours = np.repeat(colours, 3, axis=2)
    return np.concatenate([colours, alpha], axis=2) if target.channels == 4 else colours


def _image(pixels: Array) -> Any:
    squeezed = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    return pillow("making images of arrays").fromarray(np.ascontiguousarray(squeezed))


def _exact_palette(row: int, pixels: Array) -> Any:
    """The image with an exact palette, for GIF. Raises BadValue if it has more colours than a palette."""
    colours, places = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    if len(colours) > _MOST_COLOURS:
        hint = "store it as png or webp"
        raise BadValue(row, f"at most {_MOST_COLOURS} colours for gif", f"{len(colours):,}", hint)
    image = _image(places.reshape(*pixels.shape[:2], 1).astype(np.uint8))
    image.putpalette(colours.astype(np.uint8).tobytes())
    return image


def _png_16(pixels: Array) -> bytes:
    """A 16-bit PNG file (ISO/IEC 15948, 5 and 11). Pillow cannot write 16 bits in colour."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + 2 * width * channels), np.uint8)  # each begins with its filter type, none
    rows[:, 1:] = np.ascontiguousarray(pixels).astype(">u2").view(np.uint8).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 16, _PNG_COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


# The first column and row of each pass of an interlaced PNG, and the steps to the next (ISO/IEC 15948, 8.2).
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def _from_png_16(data: bytes) -> Array:
    """The pixels of a 16-bit PNG file, uint16 `[h, w, c]`: Pillow keeps only 8 bits of colours."""
    width, height, _, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    parts, at = [], 8
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IDAT":
            parts.append(data[at + 8 : at + 8 + size])
            if struct.pack(">I", zlib.crc32(kind + parts[-1])) != data[at + 8 + size : at + 12 + size]:
                raise ValueError("it is damaged")
        at += 12 + size
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    shapes = [(-(-(height - top) // down), -(-(width - left) // right)) for left, top, right, down in passes]
    sizes = [rows * (1 + 2 * channels * columns) if columns > 0 < rows else 0 for rows, columns in shapes]
    raw = np.frombuffer(zlib.decompressobj().decompress(b"".join(parts), sum(sizes)), np.uint8)
    if len(raw) < sum(sizes):
        raise ValueError("it is truncated")
    pixels = np.empty((height, width, channels), np.uint16)
    for (left, top, right, down), (rows, columns), size in zip(passes, shapes, sizes, strict=True):
        if size:
            lines = _unfiltered(raw[:size].reshape(rows, -1), 2 * channels)
            pixels[top::down, left::right] = lines.view(">u2").reshape(rows, columns, channels)
            raw = raw[size:]
    return pixels


def _unfiltered(lines: Array, width: int) -> Array:
    """Reverses the filters of a PNG's lines (ISO/IEC 15948, 9). Each line begins with its filter; `width`
    is the number of bytes per pixel.
    """
    done = np.zeros((len(lines) + 1, lines.shape[1] - 1), np.uint8)
    for number, line in enumerate(lines):
        above, own, kind = done[number], done[number + 1], line[0]
        own[:] = line[1:]
        if kind == 1:
            own[:] = np.cumsum(own.reshape(-1, width), axis=0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            own += above
        elif kind in (3, 4):
            _add_predicted(own.reshape(-1, width), above.reshape(-1, width).astype(np.int32), paeth=kind == 4)
        elif kind:
            raise ValueError(f"it has a filter {kind}")
    return done[1:]


def _add_predicted(line: Array, above: Array, *, paeth: bool) -> None:
    """Adds to each pixel, `[w, bytes]`, the prediction from the pixels on the left and above."""
    left, corner = np.zeros_like(above[0]), np.zeros_like(above[0])
    for place, pixel in enumerate(line):
        up = above[place]
        predicted = (left + up) // 2
        if paeth:
            away = np.abs([up - corner, left - corner, left + up - 2 * corner])
            predicted = np.choose(np.argmin(away, axis=0), [left, up, corner])
        pixel += predicted.astype(np.uint8)
        left, corner = pixel.astype(np.int32), up


@cache
def _simplejpeg() -> Any:
    """The module simplejpeg; None if it is not installed."""
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


@cache
def pillow(purpose: str) -> Any:
    """The module PIL.Image. Raises MissingExtra."""
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_package("Pillow", purpose, "pillow>=10.2", error) from None
    _register_plugins()
    return Image


@cache
def _register_plugins() -> None:
    """Lets Pillow read HEIC if pillow-heif is installed."""
    try:
        import pillow_heif
    except ImportError:
        return
    pillow_heif.register_heif_opener()


def reader_hint(data: bytes) -> str:
    """The way to read an image of a format that this Pillow does not read; "" for other bytes."""
    return _READERS.get(describe_type(data), "")


# Errors in files that Pillow tolerates, and TensorFlow's decoders do not.


def _check_gif(data: bytes, image: Any) -> None:
    """Raises ValueError for a GIF (with one loaded image) without a trailer, or with undefined colours."""
    try:
        colours = _colours(data)
    except IndexError:
        raise ValueError("it has no end") from None
    highest = image.getextrema()[1]
    if highest >= colours:
        raise ValueError(f"it has {colours} colours, and a pixel of colour {highest}")


def _colours(data: bytes) -> int:
    """The number of colours of the first image; reads all blocks (GIF89a, 17 to 27).

    Raises IndexError if there is no trailer.
    """
    shared, colours = _in_table(data[10]), None
    at = 13 + 3 * shared
    while data[at] != _TRAILER:
        if data[at] == _IMAGE:
            own = _in_table(data[at + 9])
            colours = (own or shared) if colours is None else colours
            at = _behind(data, at + 11 + 3 * own)
        elif data[at] == _EXTENSION:
            at = _behind(data, at + 2)
        else:
            raise ValueError(f"it has a block of type {data[at]}")
    return colours or 0


def _in_table(flags: int) -> int:
    """The number of colours of the following table; 0 without a table."""
    return 2 << (flags & 7) if flags & 0x80 else 0


def _behind(data: bytes, at: int) -> int:
    """The end of a series of sub-blocks. Each begins with its size; the last is empty."""
    while data[at]:
        at += 1 + data[at]
    return at + 1
