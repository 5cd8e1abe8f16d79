"""TensorFlow Datasets, without a builder class and without a network.

`tfds.core.SequentialWriter` keeps the order of the rows. `tfds.core.writer.Writer` is what
`download_and_prepare` writes with: it keeps the records until all are there (in memory up to 1 GB), and sorts
them by a hash of their keys. Both are given rows as dicts, and one shard.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from tensorflow_datasets.core.example_serializer import ExampleSerializer
from tensorflow_datasets.core.file_adapters import FileFormat
from tensorflow_datasets.core.naming import ShardedFileTemplate
from tensorflow_datasets.core.utils.shard_utils import ShardConfig
from tensorflow_datasets.core.writer import ExampleWriter, Writer

from writing.data import Columns, Dataset, rows_of
from writing.ways import Run

DTYPES = {"int": np.int64, "float": np.float32, "bytes": np.object_}


def sequential(dataset: Dataset, rows: int) -> Run:
    columns = dataset.make(rows)
    features = _features(dataset, columns)
    given = rows_of(columns)
    return lambda folder: _write(dataset, features, given, folder, rows)


def write(dataset: Dataset, columns: Columns, folder: Path, *, rows_a_shard: int) -> None:
    """A dataset that TFDS reads, in the order of the rows."""
    _write(dataset, _features(dataset, columns), rows_of(columns), folder, rows_a_shard)


def _write(
    dataset: Dataset,
    features: tfds.features.FeaturesDict,
    given: list[dict[str, Any]],
    folder: Path,
    rows_a_shard: int,
) -> None:
    identity = tfds.core.dataset_info.DatasetIdentity(
        name=dataset.name, version=tfds.core.Version("1.0.0"), data_dir=str(folder), module_name=""
    )
    info = tfds.core.DatasetInfo(builder=identity, features=features)
    writer = tfds.core.SequentialWriter(info, max_examples_per_shard=rows_a_shard)
    writer.initialize_splits(["train"])
    writer.add_examples({"train": given})
    writer.close_all()


def shuffled(dataset: Dataset, rows: int) -> Run:
    tfds.disable_progress_bar()
    columns = dataset.make(rows)
    features = _features(dataset, columns)
    given = rows_of(columns)

    def run(folder: Path) -> None:
        template = ShardedFileTemplate(folder, dataset_name="data", split="train", filetype_suffix="tfrecord")
        writer = Writer(
            ExampleSerializer(features.get_serialized_info()),
            template,
            hash_salt="train",
            disable_shuffling=False,
            example_writer=ExampleWriter(FileFormat.TFRECORD),
            shard_config=ShardConfig(num_shards=1),
        )
        for key, row in enumerate(given):
            writer.write(key, features.encode_example(row))
        writer.finalize()

    return run


def _features(dataset: Dataset, columns: dict[str, Any]) -> tfds.features.FeaturesDict:
    return tfds.features.FeaturesDict(
        {
            name: tfds.features.Tensor(shape=_shape(columns[name]), dtype=DTYPES[kind])
            for name, kind in dataset.kinds.items()
        }
    )


def _shape(values: Any) -> tuple[int | None, ...]:
    if isinstance(values, np.ndarray):
        return values.shape[1:]
    return () if isinstance(values[0], bytes) else (None,)
