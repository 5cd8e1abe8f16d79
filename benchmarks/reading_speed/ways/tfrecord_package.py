"""The `tfrecord` package: its `tfrecord_loader`, file by file, and its `shuffle_iterator`.

It gives rows as dicts of arrays. They are not put into batches, which would take it still longer.
"""

from __future__ import annotations

from itertools import chain

from tfrecord.iterator_utils import shuffle_iterator
from tfrecord.reader import tfrecord_loader

from reading_speed.data import Given, amount
from reading_speed.ways import Run


def prepare(given: Given) -> Run:
    kinds = {name: "byte" if kind == "bytes" else kind for name, kind in given.dataset.kinds.items()}
    files, summed = given.files("rows"), given.summed

    def run(check: bool) -> tuple[int, int | None]:
        found = chain.from_iterable(tfrecord_loader(file, None, kinds) for file in files)
        rows, total = 0, 0
        for row in shuffle_iterator(found, given.shuffle) if given.shuffle else found:
            rows += 1
            total += amount(row[summed]) if check else 0
        return rows, total if check else None

    return run
