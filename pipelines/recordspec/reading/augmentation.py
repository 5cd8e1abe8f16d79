"""Random augmentation of images for training: flips, crops, brightness and contrast.

The masks and coordinates of an image follow it. The random numbers of a row are a function of a seed, the
epoch and the position of the row in the epoch. The arithmetic is in float32, in the units of the image's
dtype: a crop is resized (bilinear), brightness is added, contrast multiplies the distance from the mean of
each channel, and the result is rounded and clipped once.

Images are changed one by one, which keeps them in the CPU caches. For images of 160x160 pixels in batches of
32, a flip took 0.37 ms of CPU time an image as a `tf.where` of the batch, and 0.05 ms one by one. A crop took
0.75 ms by `crop_and_resize` or `ImageProjectiveTransformV3`, and 0.22 ms by a slice and a resize (TensorFlow
2.21).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError, nearest, one_of, show_shape
from recordspec.order.read_options import Augment
from recordspec.schema import tensors
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.geometry import Coordinates, ImageTransform
from recordspec.schema.features.image import Image
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor, TypeSpec

_PATH = ("read", "augment")
# The draws of a row, in this order. All are drawn, so that one option does not change the draws of another.
_DRAWS = ("flip_vertical", "flip_horizontal", "area", "top", "left", "brightness", "contrast")
# The number of consecutive positions for which one call draws random numbers.
_TOGETHER = 128
# The number of dimensions that a mask shares with its image: height and width.
_SIDES = 2
# The number of colour channels; a fourth channel is transparency.
_COLOURS = 3


def check(options: Augment, schema: Schema) -> Iterator[Problem]:
    """Yields the problems of a missing image, and of coordinates and masks that cannot follow the image."""
    images = _images(schema)
    image = _image_name(options, images)
    if not images:
        expected = "a schema with an image, one for each row"
        yield Problem(path=_PATH, expected=expected, got=f"`{image}`" if image else "none")
    elif image is None:
        hint = "others are not changed, but for `masks`"
        yield Problem(path=(*_PATH, "image"), expected=one_of(images), got="none", hint=hint)
    elif image not in images:
        other, got = schema.names.get(image), f"`{image}`"
        if other is not None:
            got += ", which each step has" if isinstance(other, Image) else f", a {other.kind}"
        hint = nearest(image, images)
        yield Problem(path=(*_PATH, "image"), expected=one_of(images), got=got, hint=hint)
    elif options.is_moving:
        yield from _check_coordinates(image, schema)
        for mask in options.masks:
            yield from _check_mask(mask, images[image], schema)


def _check_coordinates(image: str, schema: Schema) -> Iterator[Problem]:
    """Yields the problems of coordinates that cannot follow an image that is flipped or cropped."""
    for name, feature in schema.names.items():
        if not isinstance(feature, Coordinates):
            continue
        if name not in schema._images:
            expected = f"the image that `{name}` is in"
            hint = f"the option `image` of `{name}` names it"
            yield Problem(path=_PATH, expected=expected, got="none", hint=hint)
        elif schema._images[name].name == image and type(feature).augmented is Coordinates.augmented:
            expected = f"no flip and no crop of `{image}`"
            hint = f"`{name}`, a {feature.kind}, has no method `augmented`"
            yield Problem(path=_PATH, expected=expected, got="one", hint=hint)


def _check_mask(name: str, image: Image, schema: Schema) -> Iterator[Problem]:
    """Yields the problem of a mask that does not match the image pixel by pixel."""
    path, feature, sides = (*_PATH, "masks"), schema.names.get(name), image.decoded_shape[:_SIDES]
    expected = f"an image, a tensor or a fixed_len of {show_shape(sides)}, as `{image.name}` has"
    if feature is None:
        hint = nearest(name, [other for other in schema.names if other != image.name])
        yield Problem(path=path, expected=expected, got=f"`{name}`", hint=hint)
    elif feature is image:
        yield Problem(path=path, expected="another feature than the image", got=f"`{name}`")
    elif name in schema.steps:
        yield Problem(path=path, expected=expected, got=f"`{name}`, which each step has")
    elif not isinstance(feature, (Image, AnyTensor, FixedLen)):
        yield Problem(path=path, expected=expected, got=f"`{name}`, a {feature.kind}")
    else:
        shape = feature.decoded_shape if isinstance(feature, Image) else feature.shape
        resize = feature.resizing if isinstance(feature, Image) else None
        if resize is not None and resize.method != "nearest":
            hint = f"`mask_of: {image.name}`, or `method: nearest` of its `resize`"
            got = f"`{name}`, resized by `{resize.method}`"
            yield Problem(path=path, expected="masks whose classes are not mixed", got=got, hint=hint)
        # with an unknown size, a mask must be ragged in a batch, as the image is: only images are
        if shape[:_SIDES] != sides or (None in sides and not isinstance(feature, Image)):
            yield Problem(path=path, expected=expected, got=f"`{name}` of {show_shape(shape)}")


def _spec_of_mask(feature: Any) -> TypeSpec:
    return feature.spec() if isinstance(feature, Image) else tf.TensorSpec(feature.shape, feature.dtype)


def _image_name(options: Augment, images: Mapping[str, Image]) -> str | None:
    """The name of the image: the option, or the only image that is not a mask; None if neither exists."""
    others = [name for name, image in images.items() if name not in options.masks and not image.mask_of]
    return options.image or (others[0] if len(others) == 1 else None)


def _images(schema: Schema) -> dict[str, Image]:
    """The images outside of steps, by name: each row has one value of each."""
    return {
        name: feature
        for name, feature in schema.names.items()
        if isinstance(feature, Image) and name not in schema.steps
    }


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How the images of a dataset are augmented.

    Attributes:
        options: the options.
        image: the image.
        schema: the schema of the decoded features.
    """

    options: Augment
    image: Image
    schema: Schema

    @property
    def masks(self) -> tuple[str, ...]:
        """The decoded masks: the masks of the options, and the masks of the image by the schema."""
        own = [name for name, image in self.schema._images.items() if image.name == self.image.name]
        own = [name for name in own if self.schema.names[name].traits.mask_of is not None]
        return tuple(name for name in dict.fromkeys((*self.options.masks, *own)) if name in self.schema.names)

    @classmethod
    def of(cls, options: Augment, schema: Schema) -> Augmentation:
        """Returns the augmentation of a schema. Raises SpecError if the options do not agree with it."""
        problems = list(check(options, schema))
        if problems:
            raise SpecError(problems)
        images = _images(schema)
        return cls(options=options, image=images[_image_name(options, images) or ""], schema=schema)

    def among(self, schema: Schema) -> Augmentation | None:
        """The augmentation for a schema of fewer features; None if the schema lacks the image."""
        return replace(self, schema=schema) if self.image.name in schema.names else None

    def seed_of(self, of_pass: Tensor, worker: int) -> Tensor:
        """The seed of one worker in a pass, int64 `[2]`, from the seed of the pass, of `seeds.passes`."""
        seed = of_pass
        for number in (self.options.seed, worker):
            seed = tf.random.experimental.stateless_fold_in(seed, tf.constant(number, tf.int64), "philox")
        return seed

    def apply(
        self, decoded: Mapping[str, Tensor], seed: Tensor, positions: Callable[[Tensor], Tensor]
    ) -> dict[str, Tensor]:
        """The features of rows, with the image augmented, and its masks and coordinates moved with it.

        Args:
            decoded: the features of one row or of a batch.
            seed: int64 `[2]`.
            positions: a function from the number of rows to the positions of the rows, int64 `[n]`.
        """
        pixels = decoded[self.image.name]
        if pixels.shape.rank == len(self.image.decoded_shape):
            draws = _drawn(seed, positions(tf.ones([], tf.int64)))[0]
        else:
            draws = _drawn(seed, positions(tensors.rows_of_batch(pixels)))
        of_masks = {name: _spec_of_mask(self.schema.names[name]) for name in self.masks}
        pixels, numbers, masks = tensors.one_by_one(
            self._changed,
            {"draws": draws, "pixels": pixels, "masks": {name: decoded[name] for name in of_masks}},
            (self.image.spec(), tf.TensorSpec([6], tf.float32), of_masks),
            1,
        )
        changed = {**decoded, self.image.name: pixels, **masks}
        if not self.options.is_moving:
            return changed
        return self._followed(changed, ImageTransform(*tf.split(numbers, 3, -1)))

    def _changed(self, row: Mapping[str, Any]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """The augmented image, `[h, w, c]`, the numbers of its `ImageTransform`, float32 `[6]`, and masks."""
        options, pixels = self.options, _dense(row["pixels"])
        draws = dict(zip(_DRAWS, tf.unstack(row["draws"]), strict=True))
        sides = tf.shape(pixels)[:2]
        start, part = tf.zeros([2], tf.int32), sides
        if options.crop is not None:
            low, high = options.crop
            side = tf.sqrt(low + (high - low) * draws["area"])
            part = tf.maximum(1, tf.cast(tf.round(tf.cast(sides, tf.float32) * side), tf.int32))
            free = tf.cast(sides - part + 1, tf.float32)
            start = tf.cast(tf.stack([draws["top"], draws["left"]]) * free, tf.int32)
            # the product may be rounded up to `free`
            start = tf.minimum(start, sides - part)
            pixels = tf.slice(pixels, [*tf.unstack(start), 0], [*tf.unstack(part), -1])
        flipped = tf.stack(
            [
                draws[f"flip_{axis}"] < 0.5 if options.flip in (axis, "both") else tf.constant(False)
                for axis in ("vertical", "horizontal")
            ]
        )
        if options.flip is not None:
            pixels = tf.raw_ops.Reverse(tensor=pixels, dims=tf.concat([flipped, [False]], 0))
        if options.crop is not None:
            pixels = tf.image.resize(pixels, sides)
        pixels = tf.ensure_shape(self._coloured(pixels, draws), self.image.decoded_shape)
        places = [
            _nearest(*each) for each in zip(*map(tf.unstack, (sides, start, part, flipped)), strict=True)
        ]
        masks = {}
        for name, mask in row["masks"].items():
            mask = _dense(mask)
            before = mask.shape
            told = f"`{name}` has another size than `{self.image.name}`"
            # without it, the error could be an index outside of the mask: the ops would run in any order
            with tf.control_dependencies([tf.debugging.assert_equal(tf.shape(mask)[:_SIDES], sides, told)]):
                for axis, along in enumerate(places):
                    mask = tf.gather(mask, along, axis=axis)
            masks[name] = tf.ensure_shape(mask, before)
        return pixels, _numbers(sides, start, part, flipped), masks

    def _coloured(self, pixels: Tensor, draws: Mapping[str, Tensor]) -> Tensor:
        """Pixels with brightness and contrast changed, rounded to the dtype of the image."""
        options, dtype = self.options, tf.as_dtype(self.image.dtype)
        if pixels.dtype == dtype and options.brightness is None and options.contrast is None:
            return pixels
        pixels = tf.cast(pixels, tf.float32)
        colours, rest = pixels, None
        if self.image.channels > _COLOURS:
            colours, rest = pixels[..., :_COLOURS], pixels[..., _COLOURS:]
        if options.brightness is not None:
            colours += (2 * draws["brightness"] - 1) * (options.brightness * dtype.max)
        if options.contrast is not None:
            low, high = options.contrast
            colours = tf.image.adjust_contrast(colours, low + (high - low) * draws["contrast"])
        pixels = colours if rest is None else tf.concat([colours, rest], -1)
        return tf.cast(tf.clip_by_value(tf.round(pixels), 0, dtype.max), dtype)

    def _followed(self, decoded: dict[str, Tensor], transform: ImageTransform) -> dict[str, Tensor]:
        """The features with the coordinates in the image moved, without the items that are dropped."""
        kept: dict[str, Tensor] = {}  # masks of the items to keep, by feature
        for name, image in self.schema._images.items():
            follow, value = self.schema.names[name], decoded[name]
            if not isinstance(follow, Coordinates) or image.name != self.image.name:
                continue
            if name in self.schema.steps and transform.is_batch:
                each = transform.of_items(value.value_rowids())
                moved, mask = follow.augmented(value.values, each)
                moved, mask = value.with_values(moved), None if mask is None else value.with_values(mask)
            else:
                moved, mask = follow.augmented(value, transform)
            decoded[name] = moved
            if mask is not None:
                kept |= dict.fromkeys((name, *(follow.dropped_with or ())), mask)
        return decoded | {name: tensors.masked(decoded[name], mask) for name, mask in kept.items()}


def _drawn(seed: Tensor, positions: Tensor) -> Tensor:
    """Uniform numbers in [0, 1) for each position, one for each of `_DRAWS`: float32 `[n, d]`."""
    first = tf.reduce_min(positions) // _TOGETHER
    last = tf.reduce_max(positions) // _TOGETHER

    def some(number: Tensor) -> Tensor:
        both = tf.random.experimental.stateless_fold_in(seed, number, "philox")
        return tf.random.stateless_uniform([_TOGETHER, len(_DRAWS)], both, alg="philox")

    blocks = tf.range(first, tf.maximum(first, last + 1))  # without positions, the last is below the first
    drawn = tensors.mapped(some, blocks, tf.TensorSpec([_TOGETHER, len(_DRAWS)], tf.float32))
    return tf.gather(tf.reshape(drawn, [-1, len(_DRAWS)]), positions - first * _TOGETHER)


def _dense(value: Tensor) -> Tensor:
    return value.to_tensor() if isinstance(value, tf.RaggedTensor) else value


def _nearest(side: Tensor, start: Tensor, part: Tensor, flipped: Tensor) -> Tensor:
    """For each pixel along a side of the augmented image, its place in the original, int32 `[side]`."""
    # the original pixel that holds the centre, in exact integers: (place + 1/2) * part / side
    places = start + (2 * tf.range(side) + 1) * part // (2 * side)
    return tf.where(flipped, places[::-1], places)


def _numbers(sides: Tensor, start: Tensor, part: Tensor, flipped: Tensor) -> Tensor:
    """The numbers of an `ImageTransform`, concatenated, float32 `[6]`.

    Args:
        sides: the height and width of the image, int32 `[2]`.
        start, part: the top and left of the crop, and its height and width, int32 `[2]`.
        flipped: whether the image is flipped vertically, and horizontally, bool `[2]`.
    """
    # not [::-1], for which TensorFlow's layout optimizer logs an error (2.21)
    turned = [tf.reverse(one, [0]) for one in (sides, start, part, flipped)]
    size, first, kept = (tf.cast(one, tf.float32) for one in turned[:3])
    scale = tf.where(turned[3], -size / kept, size / kept)
    offset = tf.where(turned[3], size, 0.0) - first * scale
    return tf.concat([scale, offset, size], 0)
