"""The files of a dataset, and functions that damage them."""

from __future__ import annotations

import json

import numpy as np

import recordspec as rs
from examples import sealed
from recordspec._tf import tf
from recordspec.reading.corrupt_records import check_file
from recordspec.store.dataset import StoredDataset
from recordspec.wire import framing, tfrecord
from recordspec.wire.compression import CODECS

SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  n: int64
  pair: {dtype: float32, shape: [2], key: p}
  kept: {dtype: int64, default: 7}
  words: {kind: var_len, dtype: string}
  steps: {kind: fixed_len_sequence, dtype: int64, shape: [2]}
  lists: {kind: ragged, dtype: int64, shape: [null, null], row_lengths: [l]}
  points: {kind: sparse, dtype: float32, size: 9, index_keys: [i]}
  picture: {kind: image, shape: [2, 2, 3]}
"""
)
STEPS = rs.Schema.loads(
    """
schema: steps
record: sequence_example
context: {n: int64}
sequence:
  v: {kind: fixed_len_sequence, dtype: int64}
  words: {kind: var_len, dtype: string}
"""
)
PICTURE = np.zeros((2, 2, 3), np.uint8)
ROWS = 100
PER_SHARD = 25


def row(number: int) -> dict:
    return {
        "n": number,
        "pair": [0.5, 1.5],
        "kept": number,
        "words": ["w"] * (number % 3),
        "steps": [[1, 2]],
        "lists": [[1], [2, 3]],
        "points": ([4], [0.5]),
        "picture": PICTURE,
    }


def step_row(number: int) -> dict:
    return {"n": number, "v": [1, 2], "words": [["a"], []]}


def shard(folder, index: int):
    return sorted(folder.glob("train-*"))[index]


def records(path) -> list[tfrecord.Record]:
    return list(tfrecord.scan(path))


def store(path, data: list[bytes], compression="none") -> None:
    stream = CODECS[compression].compressor()
    framed = b"".join(map(framing.framed, data))
    path.write_bytes(bytes(stream.compress(framed)) + stream.flush())


def replace(path, number: int, data: bytes, compression="none") -> str:
    """Replaces the data of a record. Returns the place of the record."""
    found = records(path)
    store(path, [data if one.number == number else one.data for one in found], compression)
    tell_size(path)
    return f"{path}: record {number} at byte {found[number].offset:,}"


def tell_size(path) -> None:
    """Sets the size of the file in the manifest."""
    manifest = path.with_name("manifest.json")
    told = json.loads(manifest.read_text())
    for one in (one for shards in told["splits"].values() for one in shards if one["file"] == path.name):
        one["bytes"] = path.stat().st_size
    manifest.write_text(sealed(told))


def changed(data: bytes, **values) -> bytes:
    """An Example with new values for some keys; None removes a key."""
    example = tf.train.Example.FromString(data)
    for key, given in values.items():
        del example.features.feature[key]
        if given is not None:
            example.features.feature[key].CopyFrom(feature(given))
    return example.SerializeToString()


def feature(values: list) -> tf.train.Feature:
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def flip(path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def told(schema, folder) -> list[str]:
    return [
        str(problem)
        for file in StoredDataset.of(folder, schema).checked_files()
        for fault in check_file(file, schema).corrupt
        for problem in fault.problems
    ]


def numbers(dataset) -> list[int]:
    return [number for batch in dataset for number in batch["n"].numpy().reshape(-1).tolist()]
