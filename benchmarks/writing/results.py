"""The presentation of the results of the write benchmark."""

from __future__ import annotations

from report import Against, Report
from writing.data import DATASETS
from writing.ways import WAYS

NOTES = """\
Every way has the same values in memory, in the form that it takes, and ends with a finished, closed file; one
process each. The ways take turns, and of each the median counts; the first turn warms up. Only one works at
a time, and before each run what the others wrote has been deleted, the disk has settled, and memory for the
file has been touched.

- recordspec checks every value, computes the SHA-256 of the shard, fsyncs it, and publishes it with a
  manifest by a rename. All that is in its times. The peers do none of it, nor was an fsync added to them.
- The limit is a copy of the bytes of recordspec's finished file, in pieces of 1 MiB, with their CRC32C,
  written and fsynced.
- The loop is there twice: as tutorials have it (messages built by keyword, arrays handed over as they are),
  and tuned (the message filled in place, arrays turned into lists first).
- tfx_bsl gets Arrow record batches made beforehand, a list in every cell, which is the form that it takes;
  its records go through `tf.io.TFRecordWriter`.
- TFDS's `Writer` sorts the records by a hash of their keys, as it does for every dataset that TFDS builds;
  `SequentialWriter` keeps their order.
- A ratio is of wall times, and of CPU times (user and system, all threads) in brackets: 10x (9x) takes a
  tenth of the time and a ninth of the CPU time. MB/s counts the bytes of the file that the way wrote.
"""

REPORT = Report(
    name="write",
    title="Writing, side by side",
    notes=NOTES,
    ways=WAYS,
    headings={name: dataset.title for name, dataset in DATASETS.items()},
    columns=(
        Against(heading="against the loop", way="loop"),
        Against(heading="recordspec columns against it", way="columns", turned=True),
        Against(heading="recordspec dict rows against it", way="rows", turned=True),
    ),
    image="svg",
)
