"""Batches of NumPy without TensorFlow: `rs.iterate` of rows and of blocks, and Parquet.

A shuffle of `rs.iterate` permutes all rows; Parquet is read in order alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import recordspec as rs
from reading_speed.data import BATCH, Form, Given, amount
from reading_speed.ways import Run


def rows(given: Given) -> Run:
    return _iterated(given, "rows")


def blocks(given: Given) -> Run:
    return _iterated(given, "blocks")


def _iterated(given: Given, form: Form) -> Run:
    opened = rs.open(given.folder / form, rs.Schema.loads(given.dataset.schema))
    name, shuffle = given.summed, bool(given.shuffle)

    def run(check: bool) -> tuple[int, int | None]:
        batches = rs.iterate(opened, batch=BATCH, shuffle=shuffle, seed=1)
        return _counted((batch[name] for batch in batches), check=check)

    return run


def parquet(given: Given) -> Run:
    from pyarrow import parquet as files

    place = list(given.dataset.make(2)).index(given.summed)

    def run(check: bool) -> tuple[int, int | None]:
        parts = files.ParquetFile(given.folder / "parquet/rows.parquet").iter_batches(batch_size=BATCH)
        # all columns become arrays, as batches of features are
        batches = ([column.to_numpy(zero_copy_only=False) for column in part.columns] for part in parts)
        return _counted((batch[place] for batch in batches), check=check)

    return run


def _counted(columns: Iterable[Any], *, check: bool) -> tuple[int, int | None]:
    rows, total = 0, 0
    for column in columns:
        rows += len(column)
        if check:
            values = column.values if isinstance(column, rs.RaggedArray) else column
            total += sum(map(amount, values)) if values.dtype == object else int(np.sum(values))
    return rows, total if check else None
