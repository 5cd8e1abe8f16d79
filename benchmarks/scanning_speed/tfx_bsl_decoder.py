"""tfx_bsl: its decoders, of records that tf.data reads, 1,024 at once."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf
from tfx_bsl.coders import example_coder, sequence_example_coder

from scanning_speed.ways import Run


def read(folder: Path) -> Run:
    files = sorted(map(str, (folder / "rows").glob("*.tfrecord")))
    if folder.name == "sequences":
        decoder = sequence_example_coder.SequenceExamplesToRecordBatchDecoder("steps")
    else:
        decoder = example_coder.ExamplesToRecordBatchDecoder()
    dataset = tf.data.TFRecordDataset(files).batch(1024)
    return lambda: sum(decoder.DecodeBatch(batch.tolist()).num_rows for batch in dataset.as_numpy_iterator())
