"""recordspec: `rs.write` in one process, into one shard where no other number is named.

Checks every value, computes the SHA-256 of the shard, flushes it to the disk and publishes it by a rename.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import recordspec as rs
from ways import UnsupportedError
from writing.data import Dataset, rows_of
from writing.ways import Run


def columns(dataset: Dataset, rows: int) -> Run:
    """From a dict of NumPy arrays; lists of different length, and files, are lists of arrays and of bytes."""
    return _writing(dataset, dataset.make(rows))


def rows(dataset: Dataset, rows: int) -> Run:
    """From a list of dicts."""
    return _writing(dataset, rows_of(dataset.make(rows)))


def shuffled(dataset: Dataset, rows: int) -> Run:
    """As `columns`, in an order that a seed gives."""
    return _writing(dataset, dataset.make(rows), shuffle={"seed": 1})


def blocks(dataset: Dataset, rows: int) -> Run:
    """As `columns`, 256 rows a record."""
    return _writing(dataset, dataset.make(rows), layout={"blocks": 256})


def default_shards(dataset: Dataset, rows: int) -> Run:
    """As `columns`, into as many shards as there are by default."""
    return _writing(dataset, dataset.make(rows), shards="auto")


def default_blocks(dataset: Dataset, rows: int) -> Run:
    """As `blocks`, into as many shards as there are by default."""
    return _writing(dataset, dataset.make(rows), shards="auto", layout={"blocks": 256})


def arrow(dataset: Dataset, rows: int) -> Run:
    """From a `pyarrow.Table`: plain columns, lists of fixed size where every row has as many, else lists."""
    table = _table(dataset.make(rows))
    with tempfile.TemporaryDirectory() as folder:
        try:
            _writing(dataset, table.slice(0, 2))(Path(folder))
        except rs.RecordspecError as error:
            raise UnsupportedError(f"no Arrow tables yet: {error}") from None
    return _writing(dataset, table)


def _writing(dataset: Dataset, given: Any, **options: Any) -> Run:
    schema = rs.Schema.loads(dataset.schema)

    def run(folder: Path) -> None:
        rs.write(given, schema, folder / "data", **{"force": True, "shards": 1, "progress": False, **options})

    return run


def _table(columns: dict[str, Any]) -> Any:
    import pyarrow

    return pyarrow.table({name: _arrow(values) for name, values in columns.items()})


def _arrow(values: Any) -> Any:
    import pyarrow

    if isinstance(values, np.ndarray) and values.ndim == 2:
        return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values.reshape(-1)), values.shape[1])
    if isinstance(values, np.ndarray) and values.dtype.kind == "S":
        return pyarrow.array(values, pyarrow.binary()).cast(pyarrow.string())
    if isinstance(values[0], bytes):
        return pyarrow.array(values, pyarrow.binary())
    return pyarrow.array(values)
