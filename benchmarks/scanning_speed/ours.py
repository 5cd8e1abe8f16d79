"""recordspec, without TensorFlow."""

from __future__ import annotations

from pathlib import Path

import recordspec as rs
from recordspec.statistics.stats import stats as tell
from recordspec.tables.export import export
from recordspec.tables.sql import query as ask
from scanning_speed.ways import AGGREGATES, Run


def _read(folder: Path, columns: list[str] | None) -> Run:
    table = rs.scan(folder)
    return lambda: sum(batch.num_rows for batch in table.to_batches(columns))


def scan(folder: Path) -> Run:
    return _read(folder / "rows", None)


def scan_blocks(folder: Path) -> Run:
    return _read(folder / "blocks", None)


def scan_one(folder: Path) -> Run:
    return _read(folder / "rows", [AGGREGATES[folder.name][0]])


def scan_blocks_one(folder: Path) -> Run:
    return _read(folder / "blocks", [AGGREGATES[folder.name][0]])


def _asked(folder: Path, layout: str) -> Run:
    table = rs.scan(folder / layout)

    def run() -> int:
        with ask(AGGREGATES[folder.name][1], {"t": table}) as result:
            assert result.read_all().num_rows
        return int(table.count_rows())

    return run


def query(folder: Path) -> Run:
    return _asked(folder, "rows")


def query_blocks(folder: Path) -> Run:
    return _asked(folder, "blocks")


def stats(folder: Path) -> Run:
    return lambda: sum(split.rows for split in tell(folder / "rows").splits)


def stats_blocks(folder: Path) -> Run:
    return lambda: sum(split.rows for split in tell(folder / "blocks").splits)


def infer(folder: Path) -> Run:
    return lambda: rs.infer(folder / "rows").rows or 0


def _exported(folder: Path, suffix: str) -> Run:
    return lambda: export(folder / "rows", folder / f"out{suffix}", force=True).rows


def export_parquet(folder: Path) -> Run:
    return _exported(folder, ".parquet")


def export_jsonl(folder: Path) -> Run:
    return _exported(folder, ".jsonl")
