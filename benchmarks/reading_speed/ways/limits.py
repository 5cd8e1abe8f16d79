"""The limits: records in batches that nobody parses, and the bytes of the files."""

from __future__ import annotations

import os

import tensorflow as tf

from reading_speed.data import BATCH, Given
from reading_speed.draining import counts
from reading_speed.ways import Run

PIECE = 1 << 20


def records(given: Given) -> Run:
    found = tf.data.TFRecordDataset(given.files("rows"), buffer_size=PIECE)
    if given.shuffle:
        found = found.shuffle(given.shuffle)
    return counts(found.batch(BATCH).prefetch(tf.data.AUTOTUNE))


def cat(given: Given) -> Run:
    """Into one buffer, in pieces of 1 MiB."""
    files, buffer = given.files("rows"), bytearray(PIECE)

    def run(check: bool) -> tuple[None, None]:
        total = 0
        for path in files:
            with open(path, "rb", buffering=0) as file:
                while count := file.readinto(buffer):
                    total += count
        assert total == sum(os.path.getsize(path) for path in files)
        return None, None

    return run
