"""TFDS: metadata beside the shards make them a TFDS dataset.

See https://www.tensorflow.org/datasets/external_tfrecord. TFDS counts the rows of a split.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow_datasets as tfds

from reading import Read, Row
from reading.data import LABELS, VECTOR

TEMPLATE = "{SPLIT}-{SHARD_X_OF_Y}.{FILEFORMAT}"
# One shard after another; by default TFDS interleaves them.
IN_ORDER = tfds.ReadConfig(interleave_cycle_length=1)


def prepare(folder: Path) -> Read:
    template = tfds.core.ShardedFileTemplate(folder, template=TEMPLATE)
    tfds.folder_dataset.write_metadata(
        data_dir=folder,
        features=_features(),
        split_infos=tfds.folder_dataset.compute_split_info(filename_template=template),
        filename_template=TEMPLATE,
    )
    return partial(_rows, tfds.builder_from_directory(folder))


def _rows(builder: tfds.core.DatasetBuilder, split: str) -> Iterator[Row]:
    yield from tfds.as_numpy(builder.as_dataset(split=split, read_config=IN_ORDER))


def _features() -> tfds.features.FeaturesDict:
    return tfds.features.FeaturesDict(
        {
            "id": np.int64,
            "vector": tfds.features.Tensor(shape=(VECTOR,), dtype=np.float32),
            "name": tfds.features.Text(),
            "tokens": tfds.features.Tensor(shape=(None,), dtype=np.int64),
            "label": tfds.features.ClassLabel(names=LABELS),
            "image": tfds.features.Image(shape=(None, None, 3), encoding_format="png"),
        }
    )
