"""Readers of Parquet: pyarrow's, and DuckDB."""

from __future__ import annotations

from pathlib import Path

from pyarrow import parquet

from scanning_speed.ways import AGGREGATES, Run


def read(folder: Path) -> Run:
    return lambda: int(parquet.read_table(folder / "table.parquet").num_rows)


def read_one(folder: Path) -> Run:
    columns = [AGGREGATES[folder.name][0]]
    return lambda: int(parquet.read_table(folder / "table.parquet", columns=columns).num_rows)


def _asked(folder: Path, sql: str) -> Run:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS FROM read_parquet('{folder}/table.parquet')")
    rows = parquet.read_metadata(folder / "table.parquet").num_rows

    def run() -> int:
        assert connection.execute(sql).fetchall()
        return int(rows)

    return run


def query(folder: Path) -> Run:
    return _asked(folder, AGGREGATES[folder.name][1])


def summarize(folder: Path) -> Run:
    return _asked(folder, "SUMMARIZE t")
