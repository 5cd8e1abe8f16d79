"""Images that are changed at random for training, and the boxes in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.kinds import Column as StoredColumn
from recordspec.kinds import Coordinates, Fixed, numbers, to_arrow
from recordspec.order.read_options import Augment
from recordspec.reading.augmentation import _DRAWS, Augmentation, _drawn
from recordspec.reading.seeds import pass_seed
from recordspec.schema.features.box import BoxFormat
from recordspec.schema.options import literals

ALL = {"flip": "both", "crop": (0.5, 0.9), "brightness": 0.2, "contrast": (0.5, 1.5)}
SEED = tf.constant([3, 4], tf.int64)


def graph_of(schema: rs.Schema, single: int | None = None, **options) -> Callable:
    """A function of records, which decodes and augments a batch, at positions from 0 on; or a single one."""
    augmentation = Augmentation.of(Augment(seed=1, **options), schema)

    @partial(tf.function, autograph=False)
    def apply(records):
        first = 0 if single is None else single
        return augmentation.apply(
            schema.decode(records), SEED, lambda count: first + tf.range(count, dtype=tf.int64)
        )

    return apply


def changed(schema: rs.Schema, rows: list[dict], single: int | None = None, **options) -> dict:
    """The rows, decoded and augmented as one batch; or a single one of them."""
    records = [schema.encode(row) for row in rows]
    given = records if single is None else records[single]
    return graph_of(schema, single, **options)(tf.constant(given))


def by_hand(pixels: np.ndarray, draws: dict[str, float], options: dict) -> np.ndarray:
    """What an image becomes, computed in float64 with NumPy."""
    most, channels = np.iinfo(pixels.dtype).max, pixels.shape[2]
    image, sides = pixels.astype(np.float64), np.array(pixels.shape[:2])
    if "crop" in options:
        low, high = options["crop"]
        part = np.maximum(1, np.rint(sides * np.sqrt(low + (high - low) * draws["area"]))).astype(int)
        top, left = np.floor([draws["top"], draws["left"]] * (sides - part + 1)).astype(int)
        image = image[top : top + part[0], left : left + part[1]]
        for axis in (0, 1):  # the centres of the new pixels among those of the old
            places = (np.arange(sides[axis]) + 0.5) * part[axis] / sides[axis] - 0.5
            image = np.apply_along_axis(partial(interpolated, places), axis, image)
    for axis, name in enumerate(("vertical", "horizontal")):
        if options.get("flip") in (name, "both") and draws[f"flip_{name}"] < 0.5:
            image = np.flip(image, axis)
    colours = image[..., :3]
    if "brightness" in options:
        colours = colours + options["brightness"] * (2 * draws["brightness"] - 1) * most
    if "contrast" in options:
        low, high = options["contrast"]
        mean = colours.mean(axis=(0, 1))
        colours = (colours - mean) * (low + (high - low) * draws["contrast"]) + mean
    image = np.concatenate([colours, image[..., 3:]], axis=2)
    assert image.shape[2] == channels
    return np.clip(image, 0, most)


def interpolated(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.interp(places, np.arange(len(values)), values)


def drawn(rows: int) -> list[dict[str, float]]:
    draws = _drawn(SEED, tf.range(rows, dtype=tf.int64)).numpy().astype(np.float64)
    return [dict(zip(_DRAWS, row, strict=True)) for row in draws]


@pytest.mark.parametrize(
    ("image", "sizes"),
    [
        ("{kind: image, shape: [13, 17, 3]}", [(13, 17, 3)] * 12),
        ("{kind: image, shape: [6, 9, 1], dtype: uint16, encoding: raw}", [(6, 9, 1)] * 12),
        ("{kind: image, shape: [null, null, 4]}", [(13, 17, 4), (5, 8, 4), (1, 1, 4), (20, 3, 4)] * 3),
        ("{kind: image, shape: [null, 7, 3]}", [(13, 7, 3), (5, 7, 3), (1, 7, 3)] * 4),
    ],
    ids=["uint8", "uint16", "sizes", "heights"],
)
def test_pixels_are_those_that_numpy_computes(image, sizes):
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{photo: {image}}}\n")
    dtype = np.dtype(schema.names["photo"].dtype)
    rng = np.random.default_rng(0)
    photos = [rng.integers(0, np.iinfo(dtype).max, size, dtype, endpoint=True) for size in sizes]
    rows, draws = [{"photo": photo} for photo in photos], drawn(len(sizes))
    assert {(one["flip_vertical"] < 0.5, one["flip_horizontal"] < 0.5) for one in draws} == {
        (one, other) for one in (True, False) for other in (True, False)
    }
    each_alone = [{name: value} for name, value in ALL.items()] + [{"flip": "horizontal"}]
    for options in [ALL, *(each_alone if photos[0].shape == (13, 17, 3) else [])]:
        batch = changed(schema, rows, **options)["photo"]
        assert batch.dtype == dtype
        for place, photo in enumerate(photos):
            made = batch[place]
            made = (made.to_tensor() if isinstance(made, tf.RaggedTensor) else made).numpy()
            expected = by_hand(photo, draws[place], options)
            # the halves are rounded up or down, as float32 has them
            np.testing.assert_allclose(made, expected, rtol=0, atol=0.5 + 1e-6 * np.iinfo(dtype).max * 4)
    alone = changed(schema, rows, single=3, **ALL)["photo"].numpy()
    batch = changed(schema, rows, **ALL)["photo"][3]
    assert np.array_equal(alone, batch.to_tensor() if isinstance(batch, tf.RaggedTensor) else batch)


@pytest.mark.parametrize(
    ("shape", "masks"),
    [
        (
            "[13, 17, 3]",
            "mask: {kind: image, shape: [13, 17, 1]}, classes: {dtype: int64, shape: [13, 17]}, "
            "depth: {kind: tensor, dtype: bool, shape: [13, 17, 2, 2], encoding: raw}",
        ),
        ("[null, null, 3]", "mask: {kind: image, shape: [null, null, 1]}"),
    ],
)
def test_masks_have_the_pixels_of_their_image(shape, masks):
    """Each pixel of a mask tells where it was; that of the image tells it, too, where nothing is resized."""
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{photo: {{kind: image, shape: {shape}}}, {masks}}}\n")
    sizes = [(13, 17)] * 9 if "13" in shape else [(13, 17), (5, 8), (1, 1)] * 3
    rows = []
    for height, width in sizes:
        numbers = np.arange(height * width).reshape(height, width)
        row = {
            "photo": np.repeat(numbers[..., None], 3, 2).astype(np.uint8),
            "mask": numbers[..., None].astype(np.uint8),
        }
        if "classes" in schema.names:
            depth = (numbers[..., None] >> np.arange(4) & 1).reshape(height, width, 2, 2).astype(np.bool_)
            row |= {"classes": numbers + 1000, "depth": depth}
        rows.append(row)
    names = [name for name in schema.names if name != "photo"]
    flipped = changed(schema, rows, flip="both", masks=names)
    for photo, mask in zip(flipped["photo"], flipped["mask"], strict=True):
        photo, mask = (one.to_tensor() if isinstance(one, tf.RaggedTensor) else one for one in (photo, mask))
        assert np.array_equal(photo[..., :1], mask)
    made = changed(schema, rows, flip="both", crop=(0.3, 0.9), brightness=0.3, masks=names)
    for place, draws in enumerate(drawn(len(rows))):
        sides = np.array(sizes[place])
        part = np.maximum(1, np.rint(sides * np.sqrt(0.3 + 0.6 * draws["area"]))).astype(int)
        starts = np.floor([draws["top"], draws["left"]] * (sides - part + 1)).astype(int)
        axes = []
        for side, start, kept, axis in zip(sides, starts, part, ("vertical", "horizontal"), strict=True):
            old = start + np.floor((np.arange(side) + 0.5) * kept / side).astype(int)
            axes.append(old[::-1] if draws[f"flip_{axis}"] < 0.5 else old)
        for name in names:
            mask = made[name][place]
            mask = mask.to_tensor() if isinstance(mask, tf.RaggedTensor) else mask
            assert np.array_equal(mask, rows[place][name][np.ix_(*axes)]), (name, place)
    alone = changed(schema, rows, single=3, flip="both", crop=(0.3, 0.9), masks=names)["mask"]
    mask = made["mask"][3]
    assert np.array_equal(alone, mask.to_tensor() if isinstance(mask, tf.RaggedTensor) else mask)


def test_a_mask_of_another_size_than_its_image_is_an_error():
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {photo: {kind: image, shape: [null, null, 3]}, "
        "mask: {kind: image, shape: [null, null, 1]}}\n"
    )
    row = {"photo": np.zeros((4, 6, 3), np.uint8), "mask": np.zeros((6, 4, 1), np.uint8)}
    graph, records = graph_of(schema, flip="both", masks=["mask"]), tf.constant([schema.encode(row)] * 40)
    for _ in range(100):  # ops without an order between them race: one run in twenty told of an index
        with pytest.raises(tf.errors.InvalidArgumentError, match="`mask` has another size than `photo`"):
            graph(records)


def test_draws_are_a_function_of_the_position():
    draws = _drawn(SEED, tf.range(1000, dtype=tf.int64)).numpy()
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.abs(draws.mean(axis=0) - 0.5).max() < 0.05
    assert np.abs(np.corrcoef(draws.T) - np.eye(len(_DRAWS))).max() < 0.15
    assert len(np.unique(draws)) > 6900
    for positions in ([5], [999], [700, 3, 127, 128, 129], range(1, 1000, 97)):
        some = _drawn(SEED, tf.constant(list(positions), tf.int64)).numpy()
        assert np.array_equal(some, draws[list(positions)])
    assert _drawn(SEED, tf.zeros([0], tf.int64)).shape == (0, len(_DRAWS))
    other = _drawn(SEED + 1, tf.range(1000, dtype=tf.int64)).numpy()
    assert np.abs(np.corrcoef(draws.ravel(), other.ravel())[0, 1]) < 0.05


# A resumed training of a later release must see the same pictures.
def test_draws_are_those_of_all_releases():
    schema = rs.Schema.loads("schema: s\nfeatures: {photo: {kind: image, shape: [1, 1, 3]}}\n")
    augmentation = Augmentation.of(Augment(seed=7, flip="both"), schema)
    draws = _drawn(augmentation.seed_of(pass_seed(1), 2), tf.constant([0, 130], tf.int64)).numpy()
    assert draws[:, ::6].tolist() == [
        [0.5912837982177734, 0.8759462833404541],
        [0.14837789535522461, 0.7775896787643433],
    ]


BOXES = """
schema: s
features:
  photo: {kind: image, shape: SHAPE}
  boxes: {kind: box, format: FORMAT, pad: PAD}
  labels: {kind: label, names: [a, b, c], shape: [null]}
"""


def with_boxes(shape: str, format_: str, pad: int = 0, drop: str = "") -> rs.Schema:
    text = BOXES.replace("SHAPE", shape).replace("FORMAT", format_).replace("PAD", f"{pad}{drop}")
    return rs.Schema.loads(text)


def painted(box: list[int], sides: tuple[int, int]) -> np.ndarray:
    """A black picture of which the area of a box, [left, top, right, bottom], is white."""
    picture = np.zeros((*sides, 3), np.uint8)
    picture[box[1] : box[3], box[0] : box[2]] = 255
    return picture


def in_format(schema: rs.Schema, boxes: list[list[int]], sides: tuple[int, int]) -> list:
    """Boxes (left, top, right, bottom) as the schema has them."""
    height, width = sides
    return schema.names["boxes"].of_corners(np.array(boxes, np.float64).reshape(-1, 4), width, height)


@pytest.mark.parametrize(
    ("shape", "format_"),
    [("[40, 60, 3]", format_) for format_ in literals(BoxFormat)]
    + [("[null, null, 3]", "xyxy"), ("[null, null, 3]", "rel_center_xywh")],
)
def test_a_box_is_where_its_area_is_painted(shape, format_):
    schema, rng = with_boxes(shape, format_), np.random.default_rng(1)
    rows, pictures = [], []
    for number in range(12):
        sides = (40, 60) if shape != "[null, null, 3]" else (30 + number, 70 - 3 * number)
        left, top = rng.integers(0, 12, 2)
        box = [left, top, left + rng.integers(9, 18), top + rng.integers(9, 17)]
        pictures.append(sides)
        photo = painted(box, sides)
        rows.append({"photo": photo, "boxes": in_format(schema, [box], sides), "labels": ["a"]})
    batch = changed(schema, rows, flip="both", crop=(0.4, 1.0))
    unpacked = with_boxes(shape, "xyxy").names["boxes"]
    seen = 0
    for place, sides in enumerate(pictures):
        photo = batch["photo"][place]
        photo = (photo.to_tensor() if isinstance(photo, tf.RaggedTensor) else photo).numpy()
        (box,) = batch["boxes"][place].numpy()
        low, high = schema.names["boxes"]._corners(box[None])
        unit = [sides[1], sides[0]] if format_.startswith("rel_") else [1, 1]
        left, top, right, bottom = unpacked.of_corners(np.concatenate([low * unit, high * unit], 1), 1, 1)[0]
        white = np.argwhere(photo[..., 0] > 127)
        if not len(white):
            assert min(right - left, bottom - top) < 1
            continue
        seen += 1
        found = [*white.min(axis=0)[::-1], *(white.max(axis=0) + 1)[::-1]]
        np.testing.assert_allclose([left, top, right, bottom], found, atol=1)
    assert seen > 8


DROPPING = ", drop: {with: [labels], below: 0.25}"


@pytest.mark.parametrize("shape", ["[40, 60, 3]", "[null, null, 3]"])
def test_boxes_of_which_a_crop_leaves_little_go_with_their_labels_or_stay_as_padding(shape):
    rng = np.random.default_rng(2)
    rows, corners_of = [], []
    for number in range(30):
        corners = rng.integers(0, [50, 30], (number % 5, 2))
        boxes = np.concatenate([corners, corners + rng.integers(1, 10, corners.shape)], 1)
        corners_of.append(boxes)
        labels = (boxes[:, 0] % 3).tolist()
        given = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
        rows.append({"photo": np.zeros((40, 60, 3), np.uint8), "boxes": given, "labels": labels})
    options = {"flip": "horizontal", "crop": (0.2, 0.5)}
    padded, dropped = (
        changed(with_boxes(shape, "xywh", -1, drop), rows, **options) for drop in ("", DROPPING)
    )
    plain = changed(with_boxes(shape, "xywh", -1, ", drop: {with: [], below: 0}"), rows, **options)
    gone = 0
    for place, row in enumerate(rows):
        # what the part that is kept shows of each box, in pixels before
        draws = drawn(len(rows))[place]
        part = np.rint(np.array([60, 40]) * np.sqrt(0.2 + 0.3 * draws["area"]))
        start = np.floor([draws["left"], draws["top"]] * (np.array([60, 40]) - part + 1))
        low, high = corners_of[place][:, :2], corners_of[place][:, 2:]
        inside = np.clip(np.minimum(high, start + part) - np.maximum(low, start), 0, None).prod(axis=1)
        share = inside / (high - low).prod(axis=1)
        assert padded["labels"][place].numpy().tolist() == row["labels"]
        boxes = padded["boxes"][place].numpy()
        assert ((boxes == -1).all(axis=1) == (share == 0)).all()
        assert len(plain["boxes"][place]) == (share > 0).sum()
        assert np.array_equal(plain["boxes"][place], boxes[share > 0])
        kept = share >= 0.25
        assert np.array_equal(dropped["boxes"][place], boxes[kept])
        assert dropped["labels"][place].numpy().tolist() == [
            row["labels"][one] for one in np.flatnonzero(kept)
        ]
        np.testing.assert_allclose(
            boxes[share > 0, 2:].prod(1), (inside * 2400 / part.prod())[share > 0], rtol=1e-4
        )
        gone += int((share == 0).sum())
    assert gone > 10


def test_boxes_that_are_padding_stay_padding():
    """`resize` left nothing of them; in this format the corners of the padding are the wrong way round."""
    text = BOXES.replace("SHAPE", "[10, 40, 3], resize: {size: [10, 10], aspect: crop}")
    schema = rs.Schema.loads(text.replace("FORMAT", "xywh").replace("PAD", "-1"))
    row = {
        "photo": np.zeros((10, 40, 3), np.uint8),
        "boxes": [[0, 0, 5, 5], [18, 2, 4, 4]],
        "labels": ["a", "b"],
    }
    batch = changed(schema, [row] * 8, flip="both")
    assert (batch["boxes"].numpy()[:, 0] == -1).all()
    corners = {tuple(one) for one in batch["boxes"].numpy()[:, 1].tolist()}
    assert corners == {(3, 2, 4, 4), (3, 4, 4, 4)}


STEPS = """
schema: s
record: sequence_example
context: {photo: {kind: image, shape: [8, 20, 3]}}
sequence:
  boxes: {kind: box, format: xywh, image: photo, drop: {with: [labels]}}
  labels: {kind: label, names: [a, b, c], shape: [null]}
"""


def test_boxes_of_steps_follow_the_image_of_their_record():
    schema = rs.Schema.loads(STEPS)
    rows = [
        {
            "photo": np.zeros((8, 20, 3), np.uint8),
            "boxes": [[[number, 0, 2, 8]], [], [[0, 0, 20, 8], [18, 0, 2, 8]]],
            "labels": [["a"], [], ["b", "c"]],
        }
        for number in range(6)
    ]
    batch = changed(schema, rows, flip="horizontal")
    for number, draws in enumerate(drawn(6)):
        flipped = draws["flip_horizontal"] < 0.5
        left = [18 - number, 0, 0] if flipped else [number, 0, 18]
        expected = [[[left[0], 0, 2, 8]], [], [[left[1], 0, 20, 8], [left[2], 0, 2, 8]]]
        assert batch["boxes"][number].to_list() == expected
        assert changed(schema, rows, single=number, flip="horizontal")["boxes"].to_list() == expected
    batch = changed(schema, rows, crop=(0.3, 0.3))
    sizes = [[len(step) for step in row] for row in batch["boxes"].to_list()]
    assert sizes == [[len(step) for step in row] for row in batch["labels"].to_list()]
    assert [1, 0, 2] not in sizes or len({tuple(one) for one in sizes}) > 1
    alone = changed(schema, rows, single=2, crop=(0.3, 0.3))
    assert alone["boxes"].to_list() == batch["boxes"][2].to_list()
    assert alone["labels"].to_list() == batch["labels"][2].to_list()


@dataclass(frozen=True, kw_only=True)
class Corner(Coordinates):
    """A point (x, y) in pixels. Decodes to float32 `[2, 2]`, twice the same."""

    kind: ClassVar[str] = "corner"

    def columns(self):
        return (StoredColumn(key=self.stored, storage="float32", layout=Fixed(shape=(2, 2))),)

    def encode(self, values):
        return (to_arrow(numbers(values, "float32", (2, 2)).reshape(-1), 4),)

    def spec(self):
        return tf.TensorSpec([2, 2], tf.float32)

    def sample(self, rng):
        return rng.uniform(0, 4, (2, 2)).astype(np.float32)

    def turned(self, value, turn):
        return value

    def resized(self, value, sides, resize):
        return resize.points(value, sides[..., None, :])


class Following(Corner):
    def augmented(self, value, transform):
        return transform.points(value), None


def test_coordinates_of_other_kinds_follow_or_are_refused():
    text = "schema: s\nfeatures: {photo: {kind: image, shape: [4, 10, 3]}, corner: corner}\n"
    row = {"photo": np.zeros((4, 10, 3), np.uint8), "corner": [[1, 2], [10, 4]]}
    schema = rs.Schema.loads(text, kinds=rs.KINDS | {"corner": Following})
    batch = changed(schema, [row] * 12, flip="both")
    expected = {
        (False, False): [[1, 2], [10, 4]],
        (False, True): [[9, 2], [0, 4]],
        (True, False): [[1, 2], [10, 0]],
        (True, True): [[9, 2], [0, 0]],
    }
    for place, draws in enumerate(drawn(12)):
        flips = draws["flip_vertical"] < 0.5, draws["flip_horizontal"] < 0.5
        assert batch["corner"][place].numpy().tolist() == expected[flips]
        alone = changed(schema, [row] * 12, single=place, flip="both") if place < 2 else batch
        assert place > 1 or alone["corner"].numpy().tolist() == expected[flips]
    deaf = rs.Schema.loads(text, kinds=rs.KINDS | {"corner": Corner})
    assert changed(deaf, [row], contrast=(1, 2))["corner"].numpy().tolist() == [row["corner"]]
    with pytest.raises(rs.SpecError) as caught:
        changed(deaf, [row], flip="both")
    assert str(caught.value) == (
        "read.augment: expected no flip and no crop of `photo`, got one (`corner`, a corner, has no method `augmented`)"
    )


PHOTOS = """
schema: s
features:
  photo: {kind: image, shape: [6, 8, 3]}
  n: int64
  tags: {kind: var_len, dtype: int64}
  boxes: {kind: box, format: xyxy, drop: {with: [tags]}}
  mood: {kind: label, names: [calm, glad]}
"""
CONFIG = """
schema: s.yaml
data: data
write: {shards: 3, layout: LAYOUT, splits: {column: split}}
read:
  batch: 8
  augment: {seed: 7, flip: both, crop: [0.4, 0.9], brightness: 0.2, contrast: [0.5, 1.5]}
"""
ROWS = 53


def made(folder, layout: str) -> rs.Pipeline:
    (folder / "s.yaml").write_text(PHOTOS)
    (folder / "c.yaml").write_text(CONFIG.replace("LAYOUT", layout))
    pipeline = rs.Pipeline.load(folder / "c.yaml")
    rng = np.random.default_rng(3)
    pipeline.build(
        {
            "photo": rng.integers(0, 256, (6, 8, 3), np.uint8),
            "n": number,
            "tags": list(range(number % 3)),
            "boxes": [[0, 0, 8, 6], [0, 0, 2, 2]][: number % 3],
            "mood": number % 2,
            "split": "train" if number < ROWS else "test",
        }
        for number in range(ROWS + 10)
    )
    return pipeline


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> rs.Pipeline:
    return made(tmp_path_factory.mktemp("augmented"), "rows")


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory, pipeline) -> dict[str, rs.Pipeline]:
    return {"rows": pipeline, "blocks": made(tmp_path_factory.mktemp("blocks"), "{blocks: 5}")}


def batches(dataset) -> list[tuple]:
    """Of each batch the numbers of its rows, its pictures as bytes, and its boxes and tags as text."""
    read = []
    for batch in dataset:
        boxes, tags = (
            one.to_list() if isinstance(one, tf.RaggedTensor) else [one.numpy().tolist()]
            for one in (batch["boxes"], batch["tags"])
        )
        assert [*map(len, boxes)] == [*map(len, tags)]
        read.append((batch["n"].numpy().tolist(), batch["photo"].numpy().tobytes(), str(boxes), str(tags)))
    return read


BUFFER = {"buffer": 20, "seed": 3}
GLOBAL = {"global": True, "seed": 3}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "options"),
    [
        ("rows", {}),
        ("rows", {"shuffle": BUFFER}),
        ("rows", {"shuffle": GLOBAL, "repeat": 3, "batch": {"size": 7, "drop_remainder": True}}),
        ("rows", {"shuffle": BUFFER, "repeat": 2, "cache": "memory"}),
        ("rows", {"shuffle": BUFFER, "batch": None}),
        ("rows", {"shuffle": BUFFER, "balance": "mood", "bucket": {"by": "tags", "boundaries": [1, 2]}}),
        ("blocks", {"shuffle": BUFFER}),
        ("blocks", {"shuffle": GLOBAL}),
        ("blocks", {"batch": None}),
    ],
    ids=str,
)
def test_a_pass_that_resumes_has_the_same_pictures(pipelines, layout, options):
    options = {**options, "augment": {"seed": 7, "flip": "both", "brightness": 0.2}}
    dataset = pipelines[layout].dataset("train", **options)
    tf.random.set_seed(4)
    try:
        epochs = [batches(dataset)]
    finally:
        tf.random.set_seed(None)
    epochs.append(batches(dataset))
    whole, passes = epochs[0] + epochs[1], options.get("repeat", 1)
    size = len(epochs[0]) // passes  # of a pass
    # the same rows, as other pictures
    for one, other in zip(
        batches(pipelines[layout].dataset("train", **options | {"augment": None})), whole, strict=False
    ):
        assert one[0] == other[0]
        assert one[1] != other[1]
    assert {photos for _, photos, *_ in whole[:size]}.isdisjoint(
        photos for _, photos, *_ in whole[size : 2 * size]
    )
    resumed = batches(pipelines[layout].dataset("train", **options, start=(1, 3)))
    assert len(resumed) == size * passes - 3
    known = len(whole) - size - 3  # of a dataset of several passes, two iterations end before
    assert resumed[:known] == whole[size + 3 :][: len(resumed)]
    if "balance" not in options:
        assert int(dataset.cardinality()) == pipelines[layout].steps("train", **options)


def pictures(batches: list[tuple]) -> list[bytes]:
    """The pictures of batches, one by one."""
    photos = b"".join(photo for _, photo, *_ in batches)
    return [photos[start : start + 144] for start in range(0, len(photos), 144)]


@pytest.mark.slow
def test_pictures_are_those_of_their_positions(pipeline):
    """Not of the batch, of threads, or of the other features."""
    wanted = pictures(batches(pipeline.dataset("train")))
    assert len(set(wanted)) == ROWS
    for options in (
        {"batch": 53},
        {"batch": None},
        {"batch": 5, "interleave": {"cycle": 1, "parallel": None}, "corrupt": "skip"},
    ):
        assert pictures(batches(pipeline.dataset("train", **options))) == wanted
    only = [batch["photo"].numpy().tobytes() for batch in pipeline.dataset("train", features=["photo"])]
    assert b"".join(only) == b"".join(wanted)
    tags = [batch["tags"].to_list() for batch in pipeline.dataset("train", features=["tags"])]
    assert [str(one) for one in tags] == [tags for *_, tags in batches(pipeline.dataset("train"))]
    assert list(pipeline.dataset("train", features=["n"]).element_spec) == ["n"]
    other = {"seed": 8, "flip": "both", "crop": [0.4, 0.9], "brightness": 0.2, "contrast": [0.5, 1.5]}
    assert set(pictures(batches(pipeline.dataset("train", augment=other)))).isdisjoint(wanted)
    files = rs.read(f"{pipeline.data}/train-*", pipeline.schema, batch=8, augment=other | {"seed": 7})
    assert pictures(batches(files)) == wanted


def test_a_map_and_a_filter_see_what_they_should(pipeline):
    stored = (
        [row["photo"].tobytes() for row in pipeline.open("train")[:]["photo"][:, None]] if False else None
    )
    assert stored is None
    plain = pipeline.open("train")[:]["photo"]

    def dark(features):
        return tf.reduce_mean(tf.cast(features["photo"], tf.float32), [1, 2, 3]) < 127

    kept = [number for number, photo in enumerate(plain) if photo.astype(np.float32).mean() < 127]
    filtered = batches(pipeline.dataset("train", filter=dark))
    assert [n for numbers, *_ in filtered for n in numbers] == kept
    wanted = pictures(batches(pipeline.dataset("train")))
    assert pictures(filtered) != [
        wanted[number] for number in kept
    ]  # their positions are those that are left
    mapped = pipeline.dataset("train", map=lambda features: {"photo": features["photo"]})
    assert b"".join(batch["photo"].numpy().tobytes() for batch in mapped) == b"".join(wanted)


def of_workers(pipeline, workers: int, replicas: int, **options) -> list[list[tuple]]:
    contexts = [tf.distribute.InputContext(workers, worker, replicas) for worker in range(workers)]
    make = pipeline.input_fn("train", **options)
    return [batches(make(context)) for context in contexts]


def by_number(read: list[tuple]) -> dict[int, bytes]:
    numbers = [number for numbers, *_ in read for number in numbers]
    return dict(zip(numbers, pictures(read), strict=True))


@pytest.mark.slow
def test_workers_of_a_global_shuffle_see_the_pictures_of_one(pipeline):
    options = {"shuffle": GLOBAL, "batch": {"size": 8, "drop_remainder": True}}
    options["augment"] = {"seed": 7, "flip": "both", "brightness": 0.2}
    whole = by_number(batches(pipeline.dataset("train", **options)))
    for workers, replicas in ((3, 3), (2, 4)):
        parts = of_workers(pipeline, workers, replicas, **options)
        assert {number: photo for part in parts for number, photo in by_number(part).items()} == whole
        later = of_workers(pipeline, workers, replicas, **options, start=pipeline.position(0, 2, **options))
        apart = replicas // workers
        assert later == [part[2 * apart :] for part in parts]


@pytest.mark.slow
def test_workers_with_a_buffer_have_draws_of_their_own(pipeline):
    one, other = of_workers(pipeline, 2, 2, shuffle=BUFFER, augment={"seed": 1, "flip": "both"})
    plain = [by_number(part) for part in of_workers(pipeline, 2, 2, shuffle=BUFFER, augment=None)]
    flips = []
    for part, stored in zip((one, other), plain, strict=True):
        changed_photos = by_number(part)
        flips.append([changed_photos[number] == stored[number] for number in changed_photos])
    same = np.mean(np.array(flips[0][:24]) == np.array(flips[1][:24]))
    assert 0 < np.mean(flips[0]) < 0.6
    assert 0 < np.mean(flips[1]) < 0.6
    assert same < 1
    start = pipeline.position(0, 2, workers=2, shuffle=BUFFER)
    assert of_workers(pipeline, 2, 2, shuffle=BUFFER, augment={"seed": 1, "flip": "both"}, start=start) == [
        part[2:] for part in (one, other)
    ]


def test_a_checkpoint_of_the_iterator_goes_on(pipeline, tmp_path):
    iterator = iter(pipeline.dataset("train", shuffle=BUFFER))
    for _ in range(3):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "at")
    again = iter(pipeline.dataset("train", shuffle=BUFFER))
    tf.train.Checkpoint(iterator=again).restore(path)
    assert batches(again) == batches(iterator)


@pytest.mark.slow
def test_only_the_splits_that_are_named_are_augmented(pipeline):
    stored = {name: pipeline.open(name)[:]["photo"].tobytes() for name in ("train", "test")}

    def joined(split, **options) -> bytes:
        return b"".join(pictures(batches(pipeline.dataset(split, **options))))

    assert joined("test") == stored["test"]
    assert joined("train", augment=None) == stored["train"]
    assert joined("train") != stored["train"]
    augment = {"seed": 7, "flip": "both", "splits": ["test"]}
    assert joined("train", augment=augment) == stored["train"]
    assert joined("test", augment=augment) != stored["test"]
    augment["splits"] = ["train", "test"]
    assert joined(["train", "test"], augment=augment) != stored["train"] + stored["test"]
    seen = pipeline.preview("train", rows=4)
    assert np.array_equal(seen["photo"], pipeline.preview("train", rows=4)["photo"])
    plain = pipeline.preview("train", rows=4, augment=None)
    assert seen["n"].tolist() == plain["n"].tolist()
    assert all((one != other).any() for one, other in zip(seen["photo"], plain["photo"], strict=True))
    with pytest.raises(rs.SpecError) as caught:
        pipeline.dataset(["train", "test"])
    together = "expected all of train, test, which are read together, or none, got train"
    assert str(caught.value) == f"read.augment.splits: {together}"
    for read in (pipeline.dataset, pipeline.preview, partial(pipeline.bench, seconds=0.01)):
        with pytest.raises(rs.SpecError) as caught:
            read("test", augment={"seed": 7, "flip": "both", "splits": ["test", "trian"]})
        expected = "expected one of test, train, got `trian` (did you mean `train`?)"
        assert str(caught.value) == f"read.augment.splits: {expected}"
    with pytest.raises(rs.SpecError) as caught:
        rs.read(pipeline.data, pipeline.schema, augment=augment)
    assert (
        str(caught.value) == "augment.splits: expected none, since all files are augmented, got train, test"
    )


@pytest.mark.slow
def test_a_served_model_gets_the_pictures_of_its_request(pipeline, tmp_path):
    from dataclasses import replace

    from recordspec.training.fit import Fit

    served = rs.Pipeline(replace(pipeline.config, fit=Fit(inputs="photo")), pipeline.schema, pipeline.folder)
    served.export_model(tf.function(lambda photo: photo), tmp_path / "model")
    signature = tf.saved_model.load(str(tmp_path / "model")).signatures["examples"]
    photos = pipeline.open("train")[:3]["photo"]
    request = pipeline.schema.only(["photo"])
    records = [request.encode({"photo": photo}) for photo in photos]
    (answer,) = signature(examples=tf.constant(records)).values()
    assert np.array_equal(answer, photos)


@pytest.mark.slow
def test_a_bench_has_the_stage(pipeline):
    found = pipeline.bench("train", seconds=0.01)
    assert [stage.name for stage in found.stages][-3:] == ["decode", "augment", "whole"]
    assert [stage.name for stage in pipeline.bench("test", seconds=0.01).stages][-2:] == ["decode", "whole"]


@pytest.fixture
def refused(tmp_path):
    """The problems of a config, by its `augment`, its features and other sections."""

    def problems(
        augment: str, features: str = "features: {photo: image, n: int64}", more: str = ""
    ) -> list[str]:
        (tmp_path / "s.yaml").write_text(f"schema: s\n{features}\n")
        config = f"schema: s.yaml\ndata: data\nread: {{batch: 4, augment: {augment}}}\n{more}"
        (tmp_path / "c.yaml").write_text(config)
        with pytest.raises(rs.SpecError) as caught:
            rs.Pipeline.load(tmp_path / "c.yaml")
        return [str(one).replace(f"{tmp_path}/c.yaml:3:", "") for one in caught.value.problems]

    return problems


def test_options_that_are_wrong_are_refused_when_a_config_is_loaded(refused):
    shares, factors = (
        "two shares above 0 and up to 1, the smaller first",
        "two factors of 0 to 100, the smaller first",
    )
    share = "a share above 0 and up to 1"
    for augment, *expected in [
        ("{flip: both}", "27: read.augment: expected the key `seed`, got none"),
        (
            "{seed: 1}",
            "27: read.augment: expected at least one of flip, crop, brightness, contrast, got none",
        ),
        (
            "{seed: 1, flip: up}",
            "43: read.augment.flip: expected one of horizontal, vertical, both or null, got `up`",
        ),
        ("{seed: 1, crop: [0, 1.5]}", f"43: read.augment.crop: expected {shares}, got [0, 1.5]"),
        ("{seed: 1, crop: [0.5]}", f"43: read.augment.crop: expected {shares}, got [0.5]"),
        (
            "{seed: 1, crop: [0.9, 0.8], brightness: 2, contrast: [-1, 2]}",
            f"43: read.augment.crop: expected {shares}, got [0.9, 0.8]",
            f"67: read.augment.brightness: expected {share}, got 2",
            f"80: read.augment.contrast: expected {factors}, got [-1, 2]",
        ),
        (
            "{seed: 1, brightness: .nan, contrast: [0, 1e9], splits: []}",
            f"49: read.augment.brightness: expected {share}, got nan",
            f"65: read.augment.contrast: expected {factors}, got [0, 1e+09]",
            "83: read.augment.splits: expected at least one split, got none",
        ),
    ]:
        assert refused(augment) == expected
    service = "none with a service, got one (random draws depend on positions, which its batches do not have: augment with `map_fit`)"
    with pytest.raises(rs.SpecError) as caught:
        rs.read(
            "x", rs.Schema.loads(PHOTOS), augment={"seed": 1, "flip": "both"}, service="grpc://localhost:1"
        )
    assert str(caught.value) == f"augment: expected {service}"


def test_images_and_coordinates_that_cannot_be_changed_are_refused(refused):
    without = "read.augment: expected a schema with an image, one for each row, got none"
    photo = "features: {photo: image, n: int64}"
    two = "features: {photo: image, boxes: {kind: box, format: xyxy}, mask: image}"
    steps = "context: {photo: image}\nsequence: {frame: image}"
    for features, image, expected in [
        ("features: {n: int64}", "", f"27: {without}"),
        ("features: {clip: video}", "", f"27: {without}"),
        ("sequence: {frame: image}", "", f"27: {without}"),
        (
            two,
            "",
            "27: read.augment.image: expected one of photo, mask, got none (others are not changed, but for `masks`)",
        ),
        (photo, "phot", "56: read.augment.image: expected photo, got `phot` (did you mean `photo`?)"),
        (photo, "n", "56: read.augment.image: expected photo, got `n`, a fixed_len"),
        (steps, "frame", "56: read.augment.image: expected photo, got `frame`, which each step has"),
        (
            two,
            "photo",
            "27: read.augment: expected the image that `boxes` is in, got none (the option `image` of `boxes` names it)",
        ),
    ]:
        given = f", image: {image}" if image else ""
        assert refused(f"{{seed: 1, flip: both{given}}}", features) == [expected]
    sized = (
        "features: {photo: {kind: image, shape: [4, 6, 3]}, other: {kind: image, shape: [4, 5, 1]}, n: int64}"
    )
    like = "an image, a tensor or a fixed_len of [4, 6], as `photo` has"
    for masks, expected in [
        ("other", f"{like}, got `other` of [4, 5, 1]"),
        ("n", f"{like}, got `n` of []"),
        ("others", f"{like}, got `others` (did you mean `other`?)"),
        ("photo", "another feature than the image, got `photo`"),
    ]:
        given = f"{{seed: 1, flip: both, image: photo, masks: [{masks}]}}"
        assert refused(given, sized) == [f"70: read.augment.masks: expected {expected}"]
    assert refused("{seed: 1, contrast: [1, 2], masks: [mask]}", two) == [
        "62: read.augment.masks: expected a flip or a crop, which masks follow, got neither"
    ]
    schema = rs.Schema.loads(f"schema: s\n{two}\n")
    assert Augmentation.of(Augment(seed=1, contrast=(1, 2), image="mask"), schema).image.name == "mask"


def test_splits_that_a_config_does_not_write_are_refused(refused):
    wrong = "read.augment.splits: expected one of training, test, got `train` (did you mean `training`?)"
    source = "source: {csv: a.csv}, "
    weights = "write: {SOURCEsplits: {training: 8, test: 2}}\n"
    assert refused("{seed: 1, flip: both}", more=weights.replace("SOURCE", source)) == [f"27: {wrong}"]
    sources = "write: {source: {training: {csv: a.csv}, test: {csv: b.csv}}}\n"
    assert refused("{seed: 1, flip: both}", more=sources) == [f"27: {wrong}"]
    with pytest.raises(pytest.fail.Exception):  # rows that are given in Python may name their splits
        refused("{seed: 1, flip: both}", more=weights.replace("SOURCE", ""))
