"""Grain over an ArrayRecord file of the rows' `tf.train.Example`s, parsed by its `map`, in batches of arrays.

`tf.train.Example.FromString` is the parser that protobuf has; Grain has none of its own. A shuffle of Grain
permutes all rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import grain
import numpy as np
import tensorflow as tf
from array_record.python.array_record_data_source import ArrayRecordDataSource

from reading_speed.data import BATCH, Given, amount
from reading_speed.ways import Run

_FIELDS = {"int": "int64_list", "float": "float_list", "bytes": "bytes_list"}
_DTYPES = {"int": np.int64, "float": np.float32, "bytes": object}


def prepare(given: Given) -> Run:
    kinds, summed = given.dataset.kinds, given.summed
    source = ArrayRecordDataSource([str(given.folder / "array_record/rows.array_record")])
    single = {name for name, values in given.dataset.make(2).items() if np.ndim(values[0]) == 0}
    records = grain.MapDataset.source(source)
    ordered = records.seed(1).shuffle() if given.shuffle else records
    parsed = ordered.map(partial(_parsed, kinds, single))
    batches = parsed.batch(BATCH, batch_fn=_batched).to_iter_dataset()

    def run(check: bool) -> tuple[int, int | None]:
        rows, total = 0, 0
        for batch in batches:
            rows += len(batch[summed])
            total += sum(map(amount, batch[summed])) if check else 0
        return rows, total if check else None

    return run


def _parsed(kinds: dict[str, str], single: set[str], record: bytes) -> dict[str, Any]:
    features = tf.train.Example.FromString(record).features.feature
    row = {}
    for name, kind in kinds.items():
        values = getattr(features[name], _FIELDS[kind]).value
        row[name] = values[0] if name in single else np.array(values, _DTYPES[kind])
    return row


def _batched(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Arrays of the features of as many values in each row, lists of the others."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: values if len(set(map(np.shape, values))) > 1 else np.array(values, _kind(values[0]))
        for name, values in columns.items()
    }


def _kind(value: Any) -> Any:
    return object if isinstance(value, bytes) else np.float32 if isinstance(value, float) else None
