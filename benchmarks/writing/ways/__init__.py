"""The ways of writing: what each is called, which environment it runs in, and the function that prepares it.

A way is `prepare(dataset, rows) -> run`, where `run(folder)` writes the rows into an empty folder. What it is
given lies in memory before, in the form that the way takes; what counts is the time from there to a finished,
closed file. Each stands in a module of its own, which alone imports what it measures.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ways import Way

Run = Callable[[Path], None]

_OURS = ("recordspec", "numpy", "crc32c")
_TENSORFLOW = ("tensorflow", "protobuf", "numpy")

WAYS = {
    "columns": Way(
        title="recordspec, columns (NumPy)",
        module="writing.ways.ours",
        function="columns",
        packages=_OURS,
        side="ours",
    ),
    "arrow": Way(
        title="recordspec, columns (Arrow)",
        module="writing.ways.ours",
        function="arrow",
        packages=(*_OURS, "pyarrow"),
        side="ours",
    ),
    "rows": Way(
        title="recordspec, dict rows",
        module="writing.ways.ours",
        function="rows",
        packages=_OURS,
        side="ours",
    ),
    "shuffled": Way(
        title="recordspec, columns (NumPy), shuffled",
        module="writing.ways.ours",
        function="shuffled",
        packages=_OURS,
        side="ours",
    ),
    "blocks": Way(
        title="recordspec, columns (NumPy), blocks of 256 rows",
        module="writing.ways.ours",
        function="blocks",
        packages=_OURS,
        side="ours",
    ),
    "default_shards": Way(
        title="recordspec, columns (NumPy), shards of the default size",
        module="writing.ways.ours",
        function="default_shards",
        packages=_OURS,
        side="ours",
    ),
    "default_blocks": Way(
        title="recordspec, columns (NumPy), blocks of 256 rows, shards of the default size",
        module="writing.ways.ours",
        function="default_blocks",
        packages=_OURS,
        side="ours",
    ),
    "loop": Way(
        title="tf.train.Example loop, as tutorials have it", module="writing.ways.loop", packages=_TENSORFLOW
    ),
    "loop_tuned": Way(
        title="tf.train.Example loop, tuned",
        module="writing.ways.loop",
        function="prepare_tuned",
        packages=_TENSORFLOW,
    ),
    "tfx_bsl": Way(
        title="tfx_bsl, RecordBatchToExamplesEncoder",
        module="writing.ways.tfx_bsl_encoder",
        environment="bench-tfx-bsl",
        packages=("tfx-bsl", "pyarrow", *_TENSORFLOW),
    ),
    "tfrecord": Way(
        title="tfrecord package",
        module="writing.ways.tfrecord_package",
        environment="bench-tfrecord",
        packages=("tfrecord", "protobuf", "numpy", "crc32c"),
    ),
    "tfds": Way(
        title="TFDS, SequentialWriter",
        module="writing.ways.tfds_writers",
        function="sequential",
        packages=("tensorflow-datasets", *_TENSORFLOW),
    ),
    "tfds_shuffled": Way(
        title="TFDS, Writer (shuffles)",
        module="writing.ways.tfds_writers",
        function="shuffled",
        packages=("tensorflow-datasets", *_TENSORFLOW),
    ),
    "limit": Way(
        title="limit: copy, CRC32C, write, fsync", module="writing.ways.limit", packages=_OURS, side="limit"
    ),
}
