"""The presentation of the results of the read benchmark."""

from __future__ import annotations

from reading_speed.data import BATCH, DATASETS, SHARDS, buffer
from reading_speed.ways import WAYS
from report import Against, Report

NOTES = f"""\
Each run is one pass over all rows, in prefetched batches of {BATCH}, from {SHARDS} files in the page cache.
Each variant has a separate process, in which its graph is traced before; runs are interleaved, one at a time,
and the median of each variant is reported, after two warm-ups. In every run each variant found all rows,
and in the first the same sum over one column. All values of a row are decoded; timed runs only count the
rows.

- "Shuffled" is a shuffle buffer of that many rows. recordspec, `make_batched_features_dataset` and TFDS
  also shuffle the files; only recordspec's order is a function of the seed and the epoch.
- recordspec reads with its defaults: `rs.read(folder, schema, batch={BATCH})`, and `shuffle=..., seed=1`. Its
  blocks are the same rows written with `layout: {{blocks: 256}}`; all others except TFDS read its rows.
- `make_batched_features_dataset` has one reader and two parsers by default; tuned, both are AUTOTUNE, and
  the order is not deterministic.
- "By hand" is `TFRecordDataset`, shuffle, batch, `map(parse_example, AUTOTUNE)`, prefetch; and two variants
  with parallel reads. Lists of variable length are ragged wherever TensorFlow parses them.
- TFDS reads the output of its `SequentialWriter`, and parses rows individually. Without shuffling, it
  caches datasets below 250 MiB in memory (its `try_autocache`): timed runs then read the cached, decoded
  rows.
- "All permuted" is `shuffle: {{global: true}}`, which has no buffer; "to NumPy" is `rs.iterate`, without
  TensorFlow, which permutes all rows where the others have a buffer. Parquet is not compressed.
- Grain reads the same records from an ArrayRecord file, and parses each with `tf.train.Example.FromString`;
  it has 16 threads, and permutes all rows.
- The tfrecord package yields dicts of arrays, which are not batched.
- The limits are batches of the same records without parsing, and the bytes of the files, read into one
  buffer.
- Ratios are of wall times, and in brackets of CPU times (user and system, all threads): 10x (9x) takes a
  tenth of the time and a ninth of the CPU time. MB/s counts the bytes of the files that the variant reads.
"""


def heading(dataset: str, shuffle: int) -> str:
    """The heading of the table of a dataset."""
    order = f"shuffled ({buffer(dataset, shuffle):,} rows)" if shuffle else "in order"
    return f"{DATASETS[dataset].title}; {order}"


def report(shuffles: list[int]) -> Report:
    """The report for these buffer sizes."""
    return Report(
        name="read",
        title="Read performance",
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
