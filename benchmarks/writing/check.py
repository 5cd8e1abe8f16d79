"""Checks that a variant wrote the rows, by reading its file with plain TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from writing.data import Dataset, rows_of

_LISTS = {"int": "int64_list", "float": "float_list", "bytes": "bytes_list"}


class Rows:
    """The expected rows of a file."""

    def __init__(self, dataset: Dataset, rows: int) -> None:
        self._dataset = dataset
        self._rows = rows_of(dataset.make(rows))

    def check(self, folder: Path) -> None:
        """Raises AssertionError unless there are as many records, and the first is one of the rows."""
        files = [str(path) for path in folder.rglob("*") if ".tfrecord" in path.name]
        records = tf.data.TFRecordDataset(files)
        count = int(records.reduce(np.int64(0), lambda total, _: total + 1))
        assert count == len(self._rows), f"{files}: expected {len(self._rows)} records, got {count}"
        first = tf.train.Example.FromString(next(iter(records)).numpy())
        assert any(self._equal(first, row) for row in self._rows), f"{files}: the first record is no row"

    def _equal(self, example: tf.train.Example, row: dict[str, Any]) -> bool:
        feature = example.features.feature
        return all(
            list(getattr(feature[name], _LISTS[kind]).value) == _listed(row[name])
            for name, kind in self._dataset.kinds.items()
        )


def _listed(value: Any) -> list[Any]:
    return value.tolist() if isinstance(value, np.ndarray) else [value]
