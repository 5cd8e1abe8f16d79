"""Images resized in NumPy, and the points in them, are those of TensorFlow."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest

from recordspec._tf import tf
from recordspec.schema.features import geometry
from recordspec.schema.features.geometry import Resize
from recordspec.schema.media import resizing
from recordspec.schema.ragged_array import RaggedArray

METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5"]
ASPECTS = get_args(geometry.Aspect)
SIZES = [(1, 1), (1, 7), (5, 3), (17, 32), (40, 23)]
WANTED = [(1, 1), (2, 9), (13, 5), (32, 48)]


def pixels(rng: np.random.Generator, size: tuple[int, int], dtype: str) -> np.ndarray:
    return rng.integers(0, np.iinfo(dtype).max, (*size, 2), dtype, endpoint=True)


def assert_resized(image: np.ndarray, resize: Resize) -> None:
    """The picked pixels of `nearest` are the same, others are rounded from floats that differ a bit."""
    expected = geometry.resized(tf.constant(image), resize, 9).numpy()
    found = resizing.resized(image, image.shape[:2], resize, 9)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    apart = np.abs(found.astype(int) - expected.astype(int)).max()
    assert apart <= (resize.method != "nearest"), (image.shape, resize)


@pytest.mark.tensorflow
@pytest.mark.parametrize("aspect", ASPECTS)
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_images_are_those_that_tensorflow_resizes(method, antialias, aspect):
    rng = np.random.default_rng(0)
    for size, wanted, dtype in product(SIZES, WANTED, ["uint8", "uint16"]):
        resize = Resize(size=wanted, method=method, aspect=aspect, antialias=antialias)
        assert_resized(pixels(rng, size, dtype), resize)


@pytest.mark.tensorflow
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_places_in_large_images_are_rounded_as_tensorflow_rounds_them(method, antialias):
    """To float32: with exact ones, pixels of 16 bits differ by up to 11."""
    rng = np.random.default_rng(0)
    for size, wanted in [
        ((1972, 1), (1859, 2)),
        ((3, 1001), (2, 1890)),
        ((1968, 2), (77, 1)),
        ((120, 1), (1697, 1)),
    ]:
        assert_resized(pixels(rng, size, "uint16"), Resize(size=wanted, method=method, antialias=antialias))


@pytest.mark.tensorflow
@pytest.mark.parametrize("aspect", ASPECTS)
def test_windows_and_points_are_those_of_tensorflow(aspect):
    rng = np.random.default_rng(0)
    sides = rng.integers(1, 60, (400, 2))
    values = rng.uniform(-9, 70, (400, 2)).astype(np.float32)
    for size in [(1, 1), (7, 30), (48, 32)]:
        resize = Resize(size=size, aspect=aspect)
        in_graph = tf.constant(sides, tf.int32)
        for expected, found in zip(
            geometry.resize_window(in_graph, resize), resizing.window(sides, resize), strict=True
        ):
            np.testing.assert_array_equal(found, np.broadcast_to(expected, sides.shape))
        for expected, found in zip(
            geometry.resized_points(values, in_graph, resize),
            resizing.points(values, sides, resize),
            strict=True,
        ):
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, np.broadcast_to(expected, sides.shape))


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("shape", [(2, 3, 1), (None, 3, 1), (2, None, 1), (None, None, 1)])
def test_images_are_stacked_as_their_sizes_say(shape, count):
    rng = np.random.default_rng(0)
    sizes = [(shape[0] or 1 + place, shape[1] or 5 - place) for place in range(count)]
    images = [pixels(rng, size, "uint16")[:, :, :1] for size in sizes]
    batch = resizing.stacked(images, len(images), shape, "uint16")
    assert isinstance(batch, RaggedArray) == (None in shape)
    assert len(batch) == count
    for place, image in enumerate(images):
        np.testing.assert_array_equal(batch[place], image)
    flat = batch
    while isinstance(flat, RaggedArray):
        flat = flat.values
    assert (flat.dtype, flat.shape[-1]) == (np.uint16, 1)
    if shape[1] is not None:
        assert flat.shape[-2] == 3
