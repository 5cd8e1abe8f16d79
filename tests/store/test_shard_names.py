"""The names of shards, and of other files of TFRecords."""

from __future__ import annotations

import pytest

from recordspec.store.shard_names import ShardName, is_tfrecord_name, parse_name


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_a_shard_name_says_what_it_is(compression):
    name = ShardName(split="train-a", index=3, count=12)
    assert parse_name(name.file(compression)) == name


def test_a_shard_name_is_the_one_tensorflow_users_know():
    name = ShardName(split="train", index=0, count=8)
    assert name.file("none") == "train-00000-of-00008.tfrecord"
    assert name.file("gzip") == "train-00000-of-00008.tfrecord.gz"
    assert parse_name("train.tfrecord") is None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("train-00000-of-00008.tfrecord.gz", True),
        ("a.TFRECORD", True),
        ("coco_train.record-00000-of-00100", True),
        ("x.tfrecord-00003", True),
        ("part-m-00000", True),
        ("part-00000-6f-c000.snappy.parquet", False),
        ("mnist-train.array_record-00000-of-00001", False),
        ("train-00000-of-00002.parquet", False),
        ("a.tfrecord.idx", False),
        ("a.tfrecord.crc", False),
        (".a.tfrecord", False),
        ("_part-r-00000", False),
    ],
)
def test_a_name_of_tfrecords(name, known):
    assert is_tfrecord_name(name) is known
