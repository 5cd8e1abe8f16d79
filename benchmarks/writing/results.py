"""The presentation of the results of the write benchmark."""

from __future__ import annotations

from report import Against, Report
from writing.data import DATASETS
from writing.ways import WAYS

NOTES = """\
All variants have the same values in memory, in the types that they take, and end with a finished, closed
file; each has a separate process. Runs are interleaved, one at a time, and the median of each variant is
reported, after a warm-up. Before each run the output of the others is deleted, the disk is flushed, and
memory for the file is touched.

- recordspec validates every value, computes the SHA-256 of the shard, fsyncs it, and publishes it with a
  manifest by a rename. All of this is in its times. The others do none of it, and no fsync is added to
  them.
- The limit is a copy of the bytes of recordspec's finished file, in chunks of 1 MiB, with their CRC32C,
  written and fsynced.
- The loop is measured twice: as in tutorials (messages built by keyword arguments, arrays passed as they
  are), and tuned (messages filled in place, arrays converted to lists first).
- tfx_bsl gets prepared Arrow record batches, with a list in every cell, which is its input type; its
  records are written with `tf.io.TFRecordWriter`.
- TFDS's `Writer` sorts the records by a hash of their keys, as for every dataset that TFDS builds;
  `SequentialWriter` keeps their order.
- Ratios are of wall times, and in brackets of CPU times (user and system, all threads): 10x (9x) takes a
  tenth of the time and a ninth of the CPU time. MB/s counts the bytes of the file that the variant writes.
"""

REPORT = Report(
    name="write",
    title="Write performance",
    notes=NOTES,
    ways=WAYS,
    headings={name: dataset.title for name, dataset in DATASETS.items()},
    columns=(
        Against(heading="against the loop", way="loop"),
        Against(heading="against tfx_bsl", way="tfx_bsl"),
        Against(heading="recordspec columns against it", way="columns", turned=True),
        Against(heading="recordspec dict rows against it", way="rows", turned=True),
    ),
    image="svg",
)
