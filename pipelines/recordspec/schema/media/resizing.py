"""Resizes images in NumPy with the formulas of `tf.image.resize`, and moves the points in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec.schema.ragged_array import RaggedArray
from recordspec.schema.values import Array
from recordspec.wire.arrays import Ints

if TYPE_CHECKING:
    from recordspec.schema.features.geometry import Resize

# Cached matrices, enough for images of some hundred sizes.
_REMEMBERED = 512
# tensorflow/core/kernels/image/resize_bicubic_op.cc looks up its weights in a table of this size.
_TABLE = 1024


def resized(pixels: Array, sides: tuple[int, ...], resize: Resize, pad: int) -> Array:
    """Resizes an integer image `[h, w, c]`, within 1 of the result of `geometry.resized`.

    Args:
        pixels: the decoded pixels.
        sides: the height and width of the image; `pixels` are fewer if their decoder made the image smaller.
    """
    parts = window(np.array(sides), resize)
    ratio = 1 if pixels.shape[:2] == sides else decoding_ratio(sides, resize)
    first, stop = parts[0] // ratio, -(-(parts[0] + parts[1]) // ratio)
    kept = pixels[first[0] : stop[0], first[1] : stop[1]]
    part, before, inner = kept.shape[:2], parts[2].tolist(), parts[3].tolist()
    if resize.method == "nearest":
        rows, columns = (_nearest(*sizes) for sizes in zip(part, inner, strict=True))
        made = kept[rows[:, None], columns]
    else:
        down, across = (
            _weights(resize.method, resize.antialias, *sizes) for sizes in zip(part, inner, strict=True)
        )
        floats = np.tensordot(down, kept.astype(np.float32), (1, 0))
        floats = np.tensordot(floats, across, (1, 1)).transpose(0, 2, 1)
        info = np.iinfo(pixels.dtype)
        made = np.clip(np.rint(floats), info.min, info.max).astype(pixels.dtype)
    if resize.aspect != "pad":
        return made
    around = np.full((*resize.size, pixels.shape[2]), pad, pixels.dtype)
    around[before[0] : before[0] + inner[0], before[1] : before[1] + inner[1]] = made
    return around


def decoding_ratio(sides: tuple[int, ...], resize: Resize) -> int:
    """The factor by which the JPEG decoder makes an image of this height and width smaller: 1, 2, 4 or 8."""
    _, part, _, inner = window(np.array(sides), resize)
    larger = int((part // inner).min()) if resize.scaled_decoding else 1
    return max(ratio for ratio in (1, 2, 4, 8) if ratio <= max(larger, 1))


def window(sides: Ints, resize: Resize) -> tuple[Ints, Ints, Ints, Ints]:
    """`geometry.resize_window` in NumPy, for images of these heights and widths, int64 `[..., 2]`."""
    wanted = np.array(resize.size, np.int64)
    part, inner = sides, np.broadcast_to(wanted, sides.shape)
    if resize.aspect == "crop":
        part = np.minimum(sides, np.maximum(1, sides[..., ::-1] * wanted // wanted[::-1]))
    if resize.aspect == "pad":
        scale = (wanted / sides).min(axis=-1, keepdims=True)
        inner = np.clip(np.rint(sides * scale).astype(np.int64), 1, wanted)
    return (sides - part) // 2, part, (wanted - inner) // 2, inner


def points(values: Array, sides: Ints, resize: Resize) -> tuple[Array, Array, Array]:
    """`geometry.resized_points` in NumPy: converts points of images, (x, y) in pixels, float32 `[..., 2]`, to
    the resized images. Also returns the first and the last corner of the part that is not padding.
    """
    parts = window(sides, resize)
    start, part, before, inner = (one[..., ::-1].astype(np.float32) for one in parts)
    return (values - start) * (inner / part) + before, before, before + inner


def stacked(images: Iterable[Array], count: int, shape: tuple[int | None, ...], dtype: str) -> Any:
    """Stacks `count` images to a batch: an array `[n, h, w, c]`, or a RaggedArray if a size of `shape` is
    unknown.
    """
    known = tuple(size or 0 for size in shape)
    if None not in shape:
        batch = np.empty((count, *known), dtype)
        for place, image in zip(batch, images, strict=True):
            place[...] = image
        return batch
    images = list(images)
    heights = np.array([len(image) for image in images], np.int64)
    if shape[1] is not None:
        return RaggedArray(np.concatenate([np.zeros((0, *known[1:]), dtype), *images]), heights)
    widths = np.repeat(np.array([image.shape[1] for image in images], np.int64), heights)
    pixels = [image.reshape(-1, known[2]) for image in images]
    rows = RaggedArray(np.concatenate([np.zeros((0, known[2]), dtype), *pixels]), widths)
    return RaggedArray(rows, heights, dense_rows=True)


def _nearest(size: int, wanted: int) -> Ints:
    scale = np.float32(size) / np.float32(wanted)
    places = np.floor((np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * scale)
    return np.asarray(np.minimum(places.astype(np.int64), size - 1))


@lru_cache(_REMEMBERED)
def _weights(method: str, antialias: bool, size: int, wanted: int) -> Array:
    """The weights for resizing a side from `size` to `wanted` pixels, float32 `[wanted, size]`."""
    if method == "area":
        return _area(size, wanted)
    if method == "bilinear" and not antialias:
        return _bilinear(size, wanted)
    if method == "bicubic" and not antialias:
        return _bicubic(size, wanted)
    return _scaled(*_KERNELS[method], antialias, size, wanted)


def _area(size: int, wanted: int) -> Array:
    """The weights of tensorflow/core/kernels/image/resize_area_op.cc, which computes positions in float32."""
    scale = np.float32(size) / np.float32(wanted)
    edges = (np.arange(wanted + 1, dtype=np.float32) * scale).astype(np.float64)[:, None]
    first, stops, pixels = edges[:-1], edges[1:], np.arange(size)[None, :]
    covered = np.clip(np.minimum(stops, pixels + 1) - np.maximum(first, pixels), 0, None)
    covered[(pixels < first) & (pixels + 1 > stops)] = scale
    covered[:, -1:] += np.clip(stops - size, 0, None)  # rounding may move the last edge past the end
    return np.asarray((covered / scale).astype(np.float32))


def _places(size: int, wanted: int) -> Array:
    """The centre of each new pixel among the old ones."""
    scale = np.float32(size) / np.float32(wanted)
    return np.asarray((np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * scale - np.float32(0.5))


def _bilinear(size: int, wanted: int) -> Array:
    places = _places(size, wanted)
    low = np.floor(places)
    weights, rows = np.zeros((wanted, size), np.float32), np.arange(wanted)
    lower, upper = (np.clip(one.astype(np.int64), 0, size - 1) for one in (low, np.ceil(places)))
    np.add.at(weights, (rows, lower), 1 - (places - low))
    np.add.at(weights, (rows, upper), places - low)
    return weights


def _bicubic(size: int, wanted: int) -> Array:
    places = _places(size, wanted)
    low = np.floor(places)
    part = np.rint((places - low) * _TABLE) / _TABLE
    weights, rows = np.zeros((wanted, size), np.float32), np.arange(wanted)
    for step in range(-1, 3):
        place = low.astype(np.int64) + step
        there = (place >= 0) & (place < size)
        weights[rows[there], place[there]] = _cubic(np.abs(step - part))[there]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _cubic(x: Array) -> Array:
    """The kernel of Keys (1981) with a = -0.5."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _triangle(x: Array) -> Array:
    return np.asarray(np.maximum(0, 1 - x))


def _lanczos(radius: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x <= radius, np.sinc(x) * np.sinc(x / radius), 0)


_KERNELS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "bilinear": (_triangle, 1),
    "bicubic": (_cubic, 2),
    "lanczos3": (_lanczos(3), 3),
    "lanczos5": (_lanczos(5), 5),
}


def _scaled(
    kernel: Callable[[Array], Array], radius: float, antialias: bool, size: int, wanted: int
) -> Array:
    """The weights of tensorflow/core/kernels/image/scale_and_translate_op.cc."""
    inverse = np.float32(1) / (np.float32(wanted) / np.float32(size))
    stretch = max(float(inverse), 1.0) if antialias else 1.0
    weights = np.zeros((wanted, size))
    for row in range(wanted):
        centre = float(np.float32(row + 0.5) * inverse)
        first = max(0, min(size - 1, math.ceil(centre - radius * stretch - 0.5)))
        last = max(0, min(size - 1, math.floor(centre + radius * stretch - 0.5)))
        some = kernel(np.abs((np.arange(first, last + 1) + 0.5 - centre) / stretch))
        total = some.sum()
        if abs(total) >= 1000 * np.finfo(np.float32).tiny:
            weights[row, first : last + 1] = some / total
    return weights.astype(np.float32)
