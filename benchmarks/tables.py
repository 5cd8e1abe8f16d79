"""Writing and reading, compared with the usual code in one run.

    python benchmarks/tables.py [--rows 100000] [--runs 5]

Writing is measured against the usual loop: a `tf.train.Example` for each row, and `tf.io.TFRecordWriter`.
Reading is measured against `tf.data.experimental.make_batched_features_dataset` on the same files. Runs
are interleaved, and medians are reported; their ratios carry over to other machines. CPU time is that of all
threads of the process. Rows are taxi trips (18 columns with missing values; those of the TFX repository
if `--trips` gives their CSV file, otherwise random) and handwritten digits (8x8 PNG images, scikit-learn).
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_digits

import recordspec as rs
from recordspec.writing.sources.csv import Csv
from side_by_side import Run, compare, drain, header

ROOT = Path(__file__).parents[1]
BATCH = 128


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--trips", type=Path, default=ROOT.parent / "shared/data/taxi/trips.csv")
    options = parser.parse_args()
    header(options.runs)
    with tempfile.TemporaryDirectory() as folder:
        taxi(Path(folder), options)
        digits(Path(folder), options)


def taxi(folder: Path, options: argparse.Namespace) -> None:
    schema = rs.Schema.load(ROOT / "schemas/taxi.yaml")
    rows = trips(schema, options.trips, options.rows, folder)
    columns = columns_of(rows)

    def write_rows() -> None:
        rs.write(rows, schema, folder / "ours", force=True, shards=1)

    def write_columns() -> None:
        rs.write(columns, schema, folder / "columns", force=True, shards=1)

    def loop() -> None:
        write_by_hand(rows, folder / "loop.tfrecord", trip_by_hand)

    compare(
        "write taxi, dict rows, against the tf.train.Example loop", write_rows, loop, len(rows), options.runs
    )
    compare(
        "write taxi, columns, against the tf.train.Example loop", write_columns, loop, len(rows), options.runs
    )
    read(schema, folder / "ours", "taxi", options.runs, len(rows), lambda row: row)


def digits(folder: Path, options: argparse.Namespace) -> None:
    schema = rs.Schema.load(ROOT / "schemas/digits.yaml")
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 8, 8, 1) * 15.9375).astype(np.uint8)
    places = np.arange(options.images) % len(images)
    rows = [{"image": images[place], "label": int(labels[place])} for place in places]
    columns = {"image": images[places], "label": labels[places]}

    def write_rows() -> None:
        rs.write(rows, schema, folder / "digits", force=True, shards=1)

    def write_columns() -> None:
        rs.write(columns, schema, folder / "digit_columns", force=True, shards=1)

    def loop() -> None:
        write_by_hand(rows, folder / "digits.tfrecord", digit_by_hand)

    what = "both encode PNG with Pillow"
    compare(f"write digits, dict rows, against the loop ({what})", write_rows, loop, len(rows), options.runs)
    compare(f"write digits, columns, against the loop ({what})", write_columns, loop, len(rows), options.runs)

    def decode(row: dict[str, Any]) -> dict[str, Any]:
        image = tf.map_fn(
            lambda png: tf.ensure_shape(tf.io.decode_png(png, 1), (8, 8, 1)),
            row["image"],
            fn_output_signature=tf.uint8,
        )
        return {**row, "image": image}

    read(schema, folder / "digits", "digits", options.runs, len(rows), decode)


def read(schema: rs.Schema, data: Path, name: str, runs: int, rows: int, decode: Run) -> None:
    """Compares with make_batched_features_dataset, with and without a shuffle."""
    files = f"{data}/train-*"
    for shuffle in (None, 10_000):

        def ours(shuffle: int | None = shuffle) -> None:
            seed = None if shuffle is None else 7
            drain(rs.read(files, schema, batch=BATCH, shuffle=shuffle, seed=seed))

        def peer(shuffle: int | None = shuffle) -> None:
            dataset = tf.data.experimental.make_batched_features_dataset(
                files,
                BATCH,
                schema.parse_dict(),
                num_epochs=1,
                shuffle=shuffle is not None,
                shuffle_buffer_size=shuffle or 1,
                drop_final_batch=False,
            )
            drain(dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE))

        how = "no shuffle" if shuffle is None else f"shuffle {shuffle:,}"
        title = f"read {name}, batch {BATCH}, {how}, against make_batched_features_dataset"
        compare(title, ours, peer, rows, runs)


def trips(schema: rs.Schema, path: Path, count: int, folder: Path) -> list[dict[str, Any]]:
    """Rows with missing values, as Python values."""
    if not path.exists():
        rng = np.random.default_rng(0)
        few = [{name: one.sample(rng) for name, one in schema.names.items()} for _ in range(1000)]
        return [few[index % len(few)] for index in range(count)]
    rs.write(Csv(files=path.name).open(path.parent), schema, folder / "trips")
    batch = next(iter(rs.read(folder / "trips", schema, batch=1_000_000)))
    shutil.rmtree(folder / "trips")
    values = {name: value.numpy().tolist() for name, value in batch.items()}
    gaps = {name: feature.default for name, feature in schema.names.items()}
    gaps = {name: gap.encode() if isinstance(gap, str) else gap for name, gap in gaps.items()}
    total = len(batch["fare"])
    return [
        {
            name: None if column[index % total] == gaps[name] else column[index % total]
            for name, column in values.items()
        }
        for index in range(count)
    ]


def columns_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows as NumPy arrays: numbers with missing values are floats with NaN, strings are objects."""
    columns = {}
    for name in rows[0]:
        column = [row[name] for row in rows]
        if any(isinstance(value, bytes) for value in column):
            columns[name] = np.array(column, object)
        elif None in column:
            columns[name] = np.ma.array([value or 0 for value in column], mask=[v is None for v in column])
        else:
            columns[name] = np.array(column)
    return columns


def write_by_hand(rows: list[dict[str, Any]], path: Path, feature: Callable[[dict], dict]) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            example = tf.train.Example(features=tf.train.Features(feature=feature(row)))
            writer.write(example.SerializeToString())


def trip_by_hand(row: dict[str, Any]) -> dict[str, tf.train.Feature]:
    return {
        name: as_bytes(value)
        if isinstance(value, bytes)
        else as_int(value)
        if isinstance(value, int)
        else tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        for name, value in row.items()
        if value is not None
    }


def digit_by_hand(row: dict[str, Any]) -> dict[str, tf.train.Feature]:
    stream = io.BytesIO()
    Image.fromarray(row["image"][:, :, 0]).save(stream, "png")
    return {"image": as_bytes(stream.getvalue()), "label": as_int(row["label"])}


def as_int(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def as_bytes(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


if __name__ == "__main__":
    main()
