"""The ways of writing: what each is called, which environment it runs in, and the function that prepares it.

A way is `prepare(dataset, rows) -> run`, where `run(folder)` writes the rows into an empty folder. What it is
given lies in memory before, in the form that the way takes; what counts is the time from there to a finished,
closed file. Each stands in a module of its own, which alone imports what it measures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from writing.data import Dataset

Run = Callable[[Path], None]
Prepare = Callable[[Dataset, int], Run]


class UnsupportedError(Exception):
    """The way cannot write this dataset; its message says why."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way of writing.

    Attributes:
        title: for the table.
        module: in this folder.
        function: prepares it.
        environment: the requirements file, and the virtual environment made from it.
        packages: those whose versions matter.
        side: ours, a peer, or the limit.
    """

    title: str
    module: str
    function: str = "prepare"
    environment: str = "bench"
    packages: tuple[str, ...] = ()
    side: Literal["ours", "peer", "limit"] = "peer"

    def load(self) -> Prepare:
        prepare: Prepare = getattr(import_module(f"{__name__}.{self.module}"), self.function)
        return prepare


_OURS = ("recordspec", "numpy", "crc32c")
_TENSORFLOW = ("tensorflow", "protobuf", "numpy")

WAYS = {
    "columns": Way(
        title="recordspec, columns (NumPy)",
        module="ours",
        function="columns",
        packages=_OURS,
        side="ours",
    ),
    "arrow": Way(
        title="recordspec, columns (Arrow)",
        module="ours",
        function="arrow",
        packages=(*_OURS, "pyarrow"),
        side="ours",
    ),
    "rows": Way(title="recordspec, dict rows", module="ours", function="rows", packages=_OURS, side="ours"),
    "loop": Way(title="tf.train.Example loop, as tutorials have it", module="loop", packages=_TENSORFLOW),
    "loop_tuned": Way(
        title="tf.train.Example loop, tuned", module="loop", function="prepare_tuned", packages=_TENSORFLOW
    ),
    "tfx_bsl": Way(
        title="tfx_bsl, RecordBatchToExamplesEncoder",
        module="tfx_bsl_encoder",
        environment="bench-tfx-bsl",
        packages=("tfx-bsl", "pyarrow", *_TENSORFLOW),
    ),
    "tfrecord": Way(
        title="tfrecord package",
        module="tfrecord_package",
        environment="bench-tfrecord",
        packages=("tfrecord", "protobuf", "numpy", "crc32c"),
    ),
    "tfds": Way(
        title="TFDS, SequentialWriter",
        module="tfds_writers",
        function="sequential",
        packages=("tensorflow-datasets", *_TENSORFLOW),
    ),
    "tfds_shuffled": Way(
        title="TFDS, Writer (shuffles)",
        module="tfds_writers",
        function="shuffled",
        packages=("tensorflow-datasets", *_TENSORFLOW),
    ),
    "limit": Way(title="limit: copy, CRC32C, write, fsync", module="limit", packages=_OURS, side="limit"),
}
