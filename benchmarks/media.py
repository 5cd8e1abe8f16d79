"""Images and tokens, compared with hand-tuned graphs in one run.

    python benchmarks/media.py [--photos 1000] [--images 20000] [--tokens 20000]
        [--pictures 2000] [--mixed 560] [--runs 5]

Photos are JPEG files of 500x375 pixels, crops of the two that come with scikit-learn; small images are PNG
files of 8x8 and 28x28 pixels; tokens are 512 int32 a row. The files are in the page cache.

The second table has images of 160x160 pixels that are augmented, in CPU time an image: by recordspec, by the
same ops of `tf.image` written by hand, whose seeds are those of no position, and by Keras' layers, of which
`RandomZoom` is the nearest to a crop.

The third table has a folder of images of 500x375 pixels, of all modes, built with `convert` and read at
160x160 pixels, in CPU time an image: by recordspec, by Keras' reader of folders, and by `decode_image` in
a parallel map. The two latter leave out transparency.

The fourth table is the basis of how `schema/tensors.py` lifts a codec to a batch: `map_fn` in the graph of
a batch, against records that are parsed and decoded individually and then batched, and against batches that
are parsed, unbatched for decoding, and batched again.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_sample_images

import recordspec as rs
from side_by_side import Run, compare, drain, header, medians

AUTOTUNE = tf.data.AUTOTUNE
TOKENS = 512


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--photos", type=int, default=1000)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--mixed", type=int, default=560)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    header(options.runs)
    with tempfile.TemporaryDirectory() as folder:
        photos(Path(folder), options)
        tokens(Path(folder), options)
        augmented(Path(folder), options)
        mixed(Path(folder), options)
        codecs(Path(folder), options)


def image_schema(encoding: str, shape: tuple[int | None, ...]) -> rs.Schema:
    sizes = ", ".join("null" if size is None else str(size) for size in shape)
    image = f"{{kind: image, encoding: {encoding}, shape: [{sizes}]}}"
    return rs.Schema.loads(f"schema: images\nfeatures:\n  image: {image}\n  label: int64\n")


def photos(folder: Path, options: argparse.Namespace) -> None:
    """Reading JPEG, against a hand-tuned graph."""
    schema = image_schema("jpeg", (375, 500, 3))
    files = written(schema, folder / "photos", (crop(index) for index in range(options.photos)))
    for batch in (32, 128):

        def ours(batch: int = batch) -> None:
            drain(rs.read(files, schema, batch=batch))

        def peer(batch: int = batch) -> None:
            drain(one_by_one(files, batch, tf.io.decode_jpeg, (375, 500, 3)))

        title = f"read JPEG 500x375, batch {batch}, against parse and decode in map, then batch"
        compare(title, ours, peer, options.photos, options.runs)


def tokens(folder: Path, options: argparse.Namespace) -> None:
    """Reading tokens as raw int32, against an Int64List."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 50_000, (options.tokens, TOKENS), np.int32)
    raw = rs.Schema.loads(
        f"schema: raw\nfeatures:\n  x: {{kind: tensor, dtype: int32, shape: [{TOKENS}], encoding: raw}}"
    )
    listed = rs.Schema.loads(f"schema: listed\nfeatures:\n  x: {{dtype: int64, shape: [{TOKENS}]}}")
    rs.write({"x": values}, raw, folder / "raw")
    rs.write({"x": values}, listed, folder / "listed")
    spec = {"x": tf.io.FixedLenFeature([TOKENS], tf.int64)}

    def ours() -> None:
        drain(rs.read(folder / "raw", raw, batch=256))

    def peer() -> None:
        records = tf.data.TFRecordDataset(tf.io.gfile.glob(f"{folder}/listed/*.tfrecord")).batch(256)
        drain(records.map(lambda x: tf.io.parse_example(x, spec), AUTOTUNE).prefetch(AUTOTUNE))

    title = f"read {TOKENS} tokens, tensor raw, against FixedLenFeature([{TOKENS}], int64)"
    compare(title, ours, peer, options.tokens, options.runs)
    with tf.io.TFRecordWriter(f"{folder}/blocks") as writer:
        for start in range(0, options.tokens, 256):
            part = values[start : start + 256]
            writer.write(raw.encode_block({"x": part}, len(part)))
    held = tf.autograph.experimental.do_not_convert(raw.decode_block)

    def in_blocks() -> None:
        drain(tf.data.TFRecordDataset(f"{folder}/blocks").map(held, AUTOTUNE).prefetch(AUTOTUNE))

    title = f"read {TOKENS} tokens, tensor raw in blocks of 256, against the same"
    compare(title, in_blocks, peer, options.tokens, options.runs)
    decode = tf.function(raw.decode)
    parse = tf.function(lambda x: tf.io.parse_example(x, spec))
    batches = {
        schema: [tf.constant(schema.encode_batch({"x": values[:256]}, 256))] * 80 for schema in (raw, listed)
    }
    title = f"decode {TOKENS} tokens, batches of 256 in memory, the same two"
    compare(
        title,
        lambda: [decode(batch) for batch in batches[raw]],
        lambda: [parse(batch) for batch in batches[listed]],
        80 * 256,
        options.runs,
    )


def augmented(folder: Path, options: argparse.Namespace) -> None:
    """Flips, crops, brightness and contrast."""
    rng = np.random.default_rng(0)
    schema = rs.Schema.loads(
        "schema: pictures\nfeatures: {photo: {kind: image, shape: [160, 160, 3], encoding: raw}}\n"
    )
    pixels = rng.integers(0, 256, (options.pictures, 160, 160, 3), np.uint8)
    rs.write({"photo": pixels}, schema, folder / "pictures")
    files = tf.io.gfile.glob(f"{folder}/pictures/*.tfrecord")
    changes: dict[str, Any] = {"flip": "horizontal", "crop": [0.7, 1.0]}
    changes |= {"brightness": 0.1, "contrast": [0.8, 1.2]}
    layers = keras.layers
    keras_layers = [
        layers.RandomFlip("horizontal"),
        layers.RandomZoom((-0.16, 0)),
        layers.RandomBrightness(0.1),
        layers.RandomContrast(0.2),
    ]

    def parsed(record: tf.Tensor) -> tf.Tensor:
        raw = tf.io.parse_example(record, {"photo": tf.io.FixedLenFeature([], tf.string)})["photo"]
        return tf.ensure_shape(
            tf.reshape(tf.io.decode_raw(raw, tf.uint8), [-1, 160, 160, 3]), [None, 160, 160, 3]
        )

    def by_hand(number: tf.Tensor, photo: tf.Tensor) -> tf.Tensor:
        seeds = [tf.stack([number, tf.constant(change, tf.int64)]) for change in range(5)]
        photo = tf.image.stateless_random_flip_left_right(photo, seeds[0])
        side = tf.cast(160 * tf.sqrt(tf.random.stateless_uniform([], seeds[1], 0.7, 1.0)), tf.int32)
        photo = tf.image.stateless_random_crop(photo, tf.stack([side, side, 3]), seeds[2])
        photo = tf.image.resize(photo, [160, 160])
        photo = tf.image.stateless_random_brightness(photo, 25.5, seeds[3])
        photo = tf.image.stateless_random_contrast(photo, 0.8, 1.2, seeds[4])
        return tf.saturate_cast(tf.round(photo), tf.uint8)

    def hand() -> None:
        batches = tf.data.TFRecordDataset(files).batch(32).map(parsed, AUTOTUNE)
        photos = batches.unbatch().enumerate().map(by_hand, AUTOTUNE)
        drain(photos.batch(32).prefetch(AUTOTUNE))

    def with_layers(some: list[Any]) -> Run:
        def change(photos: tf.Tensor) -> tf.Tensor:
            for layer in some:
                photos = layer(photos, training=True)
            return photos

        batches = tf.data.TFRecordDataset(files).batch(32).map(parsed, AUTOTUNE)
        return lambda: drain(batches.map(change, AUTOTUNE).prefetch(AUTOTUNE))

    def read(**some: Any) -> Run:
        dataset = rs.read(files, schema, batch=32, augment={"seed": 1, **some} if some else None)
        return lambda: drain(dataset)

    flips = {"flip": "horizontal"}
    colours = {name: changes[name] for name in ("brightness", "contrast")}
    ways: dict[str, Run] = {
        "recordspec, none": read(),
        "recordspec, a flip": read(**flips),
        "Keras, a flip": with_layers(keras_layers[:1]),
        "recordspec, a flip, brightness, contrast": read(**flips, **colours),
        "Keras, a flip, brightness, contrast": with_layers([keras_layers[0], *keras_layers[2:]]),
        "recordspec, a flip, a crop, brightness, contrast": read(**changes),
        "tf.image by hand, the same": hand,
        "Keras, with a zoom": with_layers(keras_layers),
    }
    print("\n| augmentation, 160x160, batch 32 | CPU time, ms an image | images/s |\n|---|--:|--:|")
    for name, (wall, cpu) in zip(ways, medians([*ways.values()], options.runs), strict=True):
        print(f"| {name} | {cpu / options.pictures * 1e3:.2f} | {options.pictures / wall:,.0f} |", flush=True)


# Pillow's mode and format of each kind of image.
MODES = (
    ("RGB", "jpeg"),
    ("L", "jpeg"),
    ("CMYK", "jpeg"),
    ("RGBA", "png"),
    ("LA", "png"),
    ("P", "png"),
    ("I;16", "png"),
)


def mixed(folder: Path, options: argparse.Namespace) -> None:
    """A folder of images of all modes."""
    for index in range(options.mixed):
        mode, form = MODES[index % len(MODES)]
        path = folder / f"mixed/{'ab'[index // len(MODES) % 2]}/{index:05d}.{form}"
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.open(io.BytesIO(crop(index)))
        if mode == "I;16":
            image = Image.fromarray(np.asarray(image.convert("L"), np.uint16) << 8)
        else:
            image = image.convert(mode)
        image.save(path, form)
    side, count = 160, options.mixed
    image_spec = f"kind: image, encoding: jpeg, convert: true, resize: {{size: [{side}, {side}]}}"
    schema = rs.Schema.loads(
        f"schema: mixed\nfeatures:\n  image: {{{image_spec}}}\n  label: {{kind: label, names: [a, b]}}\n"
    )
    rows = [
        {"image": path.read_bytes(), "label": path.parent.name}
        for path in sorted((folder / "mixed").glob("*/*"))
    ]

    def build() -> None:
        rs.write(rows, schema, folder / "mixed_built", force=True)

    def by_keras() -> None:
        drain(
            keras.utils.image_dataset_from_directory(
                folder / "mixed", image_size=(side, side), batch_size=32, shuffle=False, verbose=False
            ).prefetch(AUTOTUNE)
        )

    def by_hand() -> None:
        def decode(path: tf.Tensor) -> tf.Tensor:
            pixels = tf.io.decode_image(tf.io.read_file(path), 3, expand_animations=False)
            return tf.image.resize(pixels, [side, side])

        paths = tf.data.Dataset.list_files(f"{folder}/mixed/*/*", shuffle=False)
        drain(paths.map(decode, AUTOTUNE).batch(32).prefetch(AUTOTUNE))

    build()
    ways: dict[str, Run] = {
        "recordspec, the build": build,
        "recordspec, an epoch": lambda: drain(rs.read(folder / "mixed_built", schema, batch=32)),
        "Keras' `image_dataset_from_directory`, an epoch": by_keras,
        "`tf.io.decode_image` by hand, an epoch": by_hand,
    }
    print("\n| mixed images, 500x375 to 160x160 | CPU time, ms an image | images/s |\n|---|--:|--:|")
    for name, (wall, cpu) in zip(ways, medians([*ways.values()], options.runs), strict=True):
        print(f"| {name} | {cpu / count * 1e3:.2f} | {count / wall:,.0f} |", flush=True)


def codecs(folder: Path, options: argparse.Namespace) -> None:
    """Ways to lift a codec to a batch."""
    rng = np.random.default_rng(0)
    print(
        "\n| codec | map_fn, rows/s | one by one, then batch | batch, take apart, batch |\n|---|---|---|---|"
    )
    for side in (8, 28):
        pixels = (rng.integers(0, 256, (side, side, 1), np.uint8) for _ in range(options.images))
        schema = image_schema("png", (side, side, 1))
        files = written(schema, folder / f"png{side}", pixels)
        line(f"PNG {side}x{side}, batch 128", schema, files, 128, tf.io.decode_png, options.images, options)
    schema = image_schema("jpeg", (375, 500, 3))
    line(
        "JPEG 500x375, batch 32",
        schema,
        str(folder / "photos/*.tfrecord"),
        32,
        tf.io.decode_jpeg,
        options.photos,
        options,
    )


def line(
    title: str,
    schema: rs.Schema,
    files: str,
    batch: int,
    decode: Callable[..., Any],
    rows: int,
    options: argparse.Namespace,
) -> None:
    shape = schema.names["image"].shape
    ways: list[Run] = [
        lambda: drain(rs.read(files, schema, batch=batch)),
        lambda: drain(one_by_one(files, batch, decode, shape)),
        lambda: drain(taken_apart(files, batch, decode, shape)),
    ]
    rates = [f"{rows / wall:,.0f}" for wall, _ in medians(ways, options.runs)]
    print(f"| {title} | {' | '.join(rates)} |", flush=True)


SPEC = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def one_by_one(files: str, batch: int, decode: Callable[..., Any], shape: tuple[int, ...]) -> Any:
    """Each record parsed and decoded in a parallel map, then batched."""

    def parse(record: Any) -> dict[str, Any]:
        return pixels(tf.io.parse_single_example(record, SPEC), decode, shape)

    records = tf.data.TFRecordDataset(tf.io.gfile.glob(files))
    return records.map(parse, AUTOTUNE).batch(batch).prefetch(AUTOTUNE)


def taken_apart(files: str, batch: int, decode: Callable[..., Any], shape: tuple[int, ...]) -> Any:
    """Records parsed in batches, unbatched, decoded one by one, and batched again."""
    records = tf.data.TFRecordDataset(tf.io.gfile.glob(files)).batch(batch)
    rows = records.map(lambda block: tf.io.parse_example(block, SPEC), AUTOTUNE).unbatch()
    decoded = rows.map(lambda row: pixels(row, decode, shape), AUTOTUNE)
    return decoded.batch(batch).prefetch(AUTOTUNE)


def pixels(row: dict[str, Any], decode: Callable[..., Any], shape: tuple[int, ...]) -> dict[str, Any]:
    return {**row, "image": tf.ensure_shape(decode(row["image"], shape[2]), shape)}


def crop(index: int) -> bytes:
    """A JPEG file of a random crop of one photograph, 500 pixels wide and 375 high."""
    rng = np.random.default_rng(index)
    photo = PHOTOS[index % len(PHOTOS)]
    top, left = (int(rng.integers(0, size)) for size in (photo.shape[0] - 375, photo.shape[1] - 500))
    stream = io.BytesIO()
    Image.fromarray(photo[top : top + 375, left : left + 500]).save(stream, "jpeg", quality=90)
    return stream.getvalue()


PHOTOS = load_sample_images().images


def written(schema: rs.Schema, folder: Path, images: Any) -> str:
    """Writes a dataset of the images. Returns the pattern of its files."""
    rs.write(({"image": image, "label": index % 10} for index, image in enumerate(images)), schema, folder)
    return f"{folder}/*.tfrecord"


if __name__ == "__main__":
    main()
