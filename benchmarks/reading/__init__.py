"""Who else reads what recordspec wrote, each in a process and an environment of its own; see `../readers.py`.

A peer is `prepare(folder) -> read`, where `read(split)` gives the rows of a split, in the order of the files:
dicts of Python's and NumPy's values, images as pixels. Each stands in a module of its own, which alone
imports the peer.
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
    """One way of reading.

    Attributes:
        title: for the table.
        module: in this folder.
        function: prepares it.
        environment: the requirements file, and the virtual environment made from it.
        package: the one whose version matters.
        datasets: those that it can read, by their names in `data.py`.
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
