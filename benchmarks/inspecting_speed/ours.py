"""recordspec, without TensorFlow."""

from __future__ import annotations

from pathlib import Path

from inspecting_speed.ways import Run
from recordspec import Schema
from recordspec.integrity.check import check_files
from recordspec.integrity.verify import verify as verify_files
from recordspec.statistics.count import count as count_records
from recordspec.statistics.stats import stats as tell
from recordspec.store.shards import File
from writing.data import DATASETS


def count(file: Path) -> Run:
    return lambda: sum(one.records for one in count_records(file))


def verify(file: Path) -> Run:
    return lambda: sum(one.integrity.records for one in verify_files(file) if one.integrity is not None)


def check(file: Path) -> Run:
    schema = Schema.loads(DATASETS["criteo"].schema)

    def run() -> int:
        found = check_files([File(path=file)], schema)
        return found.rows - found.invalid

    return run


def stats(file: Path) -> Run:
    return lambda: sum(split.rows for split in tell(file).splits)
