"""Large files in stretches, and how many processes share what there is to read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from recordspec.errors import RecordError
from recordspec.wire import file_types, tfrecord
from recordspec.wire.tfrecord import RecordRange

# Large files are read in stretches of this size, whoever does it: so what is found is the same for any number
# of processes.
_STRETCH = 64 << 20
# Less is read before other processes have begun.
_WORTH = 64 << 20


def jobs_for(paths: Iterable[Path], jobs: int | None) -> int:
    """Processes: `jobs`, or if that is None one a processor where there is much to read."""
    if jobs is not None:
        return jobs
    return 1 if sum(path.stat().st_size for path in paths) < _WORTH else len(os.sched_getaffinity(0))


def stretches(path: Path) -> Iterator[RecordRange | None]:
    """A large file in stretches; None is all of it. What cannot be read is in the last one."""
    size = path.stat().st_size
    if size <= _STRETCH or not _is_plain(path):
        yield None
        return
    last: RecordRange | None = None
    try:
        for stretch in tfrecord.record_ranges(path, _STRETCH):
            if last is not None:
                yield last
            last = stretch
    except RecordError:
        last = RecordRange(0, 0, size) if last is None else replace(last, stop=size)
    yield last


def _is_plain(path: Path) -> bool:
    """Whether a file is a TFRecord file that is not compressed."""
    try:
        return file_types.compression_of(path) == "none"
    except RecordError:
        return False
