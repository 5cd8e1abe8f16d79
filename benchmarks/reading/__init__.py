"""Other readers of TFRecords, each in a separate process and environment; see `../readers.py`.

A peer is `prepare(folder) -> read`, where `read(split)` returns the rows of a split, in the order of the
files: dicts of Python and NumPy values, images as pixels. Each has a module, the only one that imports the
package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Read = Callable[[str], Iterator[Row]]
Prepare = Callable[[Path], Read]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One reader.

    Attributes:
        title: for the table.
        module: in this folder.
        function: that prepares it.
        environment: the requirements file, and the virtual environment made from it.
        package: whose version is reported.
        datasets: that it can read, by their names in `data.py`.
    """

    title: str
    module: str
    function: str = "prepare"
    environment: str = "bench"
    package: str
    datasets: tuple[str, ...]

    def load(self) -> Prepare:
        prepare: Prepare = getattr(import_module(f"{__name__}.{self.module}"), self.function)
        return prepare


PEERS = {
    "tensorflow": Peer(
        title="tf.data, what `explain --python` prints",
        module="plain_tensorflow",
        package="tensorflow",
        datasets=("rows", "gzip"),
    ),
    "blocks": Peer(
        title="tf.data, `Schema.decode_block`",
        module="plain_tensorflow",
        function="prepare_blocks",
        package="tensorflow",
        datasets=("blocks",),
    ),
    "tfrecord": Peer(
        title="tfrecord package, `tfrecord_loader`",
        module="tfrecord_package",
        environment="bench-tfrecord",
        package="tfrecord",
        datasets=("rows", "gzip"),
    ),
    # TFDS and DALI have no option for compressed files.
    "tfds": Peer(
        title="TFDS, `builder_from_directory`",
        module="tfds_folder",
        package="tensorflow-datasets",
        datasets=("rows",),
    ),
    "dali": Peer(
        title="DALI, `fn.readers.tfrecord` on the CPU",
        module="dali_pipeline",
        environment="bench-dali",
        package="nvidia-dali-cuda120",
        datasets=("rows",),
    ),
}
