"""Plain TensorFlow: `tf.data.TFRecordDataset`, and the parse dictionary that `recordspec explain` printed.

Rows are read without recordspec, with the module that `recordspec explain SCHEMA --python` printed. Blocks
are decoded with their schema.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import tensorflow as tf

from reading import Read, Row
from reading.data import PARSE, SCHEMA, files_of

Parse = Callable[[tf.Tensor], dict[str, tf.Tensor]]

BATCH = 32


def prepare(folder: Path) -> Read:
    parse = runpy.run_path(str(folder.parent / PARSE))["parse"]
    assert "recordspec" not in sys.modules
    return partial(_parsed, folder, parse)


def _parsed(folder: Path, parse: Parse, split: str) -> Iterator[Row]:
    for batch in _records(folder, split).batch(BATCH).map(parse):
        for row in _unstacked(batch):
            yield {**row, "image": tf.io.decode_png(row["image"]).numpy()}


def prepare_blocks(folder: Path) -> Read:
    import recordspec

    schema = recordspec.Schema.loads(SCHEMA)

    def read(split: str) -> Iterator[Row]:
        for batch in _records(folder, split).map(schema.decode_block):
            yield from _unstacked(batch)

    return read


def _records(folder: Path, split: str) -> tf.data.Dataset:
    files = files_of(folder, split)
    return tf.data.TFRecordDataset(files, "GZIP" if files[0].endswith(".gz") else "")


def _unstacked(batch: dict[str, tf.Tensor]) -> Iterator[Row]:
    """The rows of a batch of dense, ragged and sparse tensors."""
    dense = {name: _ragged(value) for name, value in batch.items()}
    for index in range(len(batch["id"])):
        yield {name: _array(value[index]) for name, value in dense.items()}


def _ragged(value: tf.Tensor) -> tf.Tensor:
    return tf.RaggedTensor.from_sparse(value) if isinstance(value, tf.SparseTensor) else value


def _array(value: tf.Tensor) -> object:
    return value.to_tensor().numpy() if isinstance(value, tf.RaggedTensor) else value.numpy()
