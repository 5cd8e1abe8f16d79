"""Checks that a variant wrote the rows, by reading its file with plain TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from writing.data import Dataset, rows_of

# Under this key, a record of the layout `blocks` has the number of its rows.
_ROWS = "/rows"
_LISTS = {"int": "int64_list", "float": "float_list", "bytes": "bytes_list"}


class Rows:
    """The expected rows of a file."""

    def __init__(self, dataset: Dataset, rows: int) -> None:
        self._dataset = dataset
        self._rows = rows_of(dataset.make(rows))

    def check(self, folder: Path) -> None:
        """Raises AssertionError unless there are as many rows, and the first record is one of them.

        A block begins with the values of its first row; it is compared by the features of one value.
        """
        files = [str(path) for path in folder.rglob("*") if ".tfrecord" in path.name]
        records = [tf.train.Example.FromString(one.numpy()) for one in tf.data.TFRecordDataset(files)]
        count = sum(_rows_in(record) for record in records)
        assert count == len(self._rows), f"{files}: expected {len(self._rows)} rows, got {count}"
        first = records[0]
        assert any(self._equal(first, row) for row in self._rows), f"{files}: the first record is no row"

    def _equal(self, example: tf.train.Example, row: dict[str, Any]) -> bool:
        feature, is_block = example.features.feature, _ROWS in example.features.feature
        for name, kind in self._dataset.kinds.items():
            found, expected = list(getattr(feature[name], _LISTS[kind]).value), _listed(row[name])
            if is_block and len(expected) == 1:
                found = found[:1]
            elif is_block:
                continue
            if found != expected:
                return False
        return True


def _rows_in(record: tf.train.Example) -> int:
    feature = record.features.feature
    return feature[_ROWS].int64_list.value[0] if _ROWS in feature else 1


def _listed(value: Any) -> list[Any]:
    return value.tolist() if isinstance(value, np.ndarray) else [value]
