"""The presentation of the results of the read benchmark."""

from __future__ import annotations

from reading_speed.data import BATCH, DATASETS, SHARDS, buffer
from reading_speed.ways import WAYS
from report import Against, Report

NOTES = f"""\
A run is one pass over all rows, in batches of {BATCH}, made ahead, from {SHARDS} files in the page cache.
Each way is a process of its own, whose graph is traced before; the ways take turns, and of each the median
counts; two turns before warm up. Only one works at a time. In every run each way found all rows, and in the
first the same sum over one column. All values of a row are made; the runs that count look at none.

- "Shuffled" is a buffer of so many rows. recordspec, `make_batched_features_dataset` and TFDS mix the files
  too; recordspec's order is a function of the seed and the epoch, which the others' is not.
- recordspec reads with its defaults: `rs.read(schema, folder, batch={BATCH})`, and `shuffle=..., seed=1`.
  Its blocks are the same rows written with `layout: {{blocks: 256}}`; all others but TFDS read its rows.
- `make_batched_features_dataset` with its defaults has one reader and two parsers; tuned, both are AUTOTUNE,
  and the order is free.
- "By hand" is `TFRecordDataset`, shuffle, batch, `map(parse_example, AUTOTUNE)`, prefetch; and two forms of
  it with parallel reads. Lists of any length are ragged wherever TensorFlow parses them.
- TFDS reads what its `SequentialWriter` wrote, and parses rows one by one. In order, it keeps datasets below
  250 MiB in memory (its `try_autocache`): of those it is the decoded rows that the runs that count read.
- The tfrecord package gives dicts of arrays, which are not put into batches.
- The limits are the same records in batches, which nobody parses, and the bytes of the files, read into one
  buffer.
- A ratio is of wall times, and of CPU times (user and system, all threads) in brackets: 10x (9x) takes a
  tenth of the time and a ninth of the CPU time. MB/s counts the bytes of the files that the way read.
"""


def heading(dataset: str, shuffle: int) -> str:
    """The heading of the table of a dataset."""
    order = f"shuffled ({buffer(dataset, shuffle):,} rows)" if shuffle else "in order"
    return f"{DATASETS[dataset].title}; {order}"


def report(shuffles: list[int]) -> Report:
    """The report for these buffer sizes."""
    return Report(
        name="read",
        title="Reading, side by side",
        notes=NOTES,
        ways=WAYS,
        headings={key(name, rows): heading(name, rows) for name in DATASETS for rows in shuffles},
        columns=(
            Against(heading="against make_batched's defaults", way="make_batched"),
            Against(heading="recordspec rows against it", way="rows", turned=True),
            Against(heading="recordspec blocks against it", way="blocks", turned=True),
        ),
        image="png",
    )


def key(dataset: str, shuffle: int) -> str:
    """The key of a table."""
    return f"{dataset}, shuffle {shuffle}"
