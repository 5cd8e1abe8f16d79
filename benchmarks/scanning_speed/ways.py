"""The variants, by name.

A variant is `prepare(folder) -> run`, where `run()` reads all rows, and returns their number. The folder has
the same rows as `rows/` and `blocks/`, as recordspec writes them, and as `table.parquet`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ways import Way

Run = Callable[[], int]
Prepare = Callable[[Path], Run]

_HERE = "scanning_speed"


def _ours(title: str, function: str) -> Way:
    packages = ("recordspec", "pyarrow", "duckdb")
    return Way(title=title, module=f"{_HERE}.ours", function=function, packages=packages, side="ours")


def _peer(title: str, module: str, function: str, environment: str, *packages: str) -> Way:
    return Way(
        title=title,
        module=f"{_HERE}.{module}",
        function=function,
        environment=environment,
        packages=packages,
    )


WAYS = {
    "scan": _ours("rs.scan", "scan"),
    "scan_blocks": _ours("rs.scan of blocks", "scan_blocks"),
    "parquet": _peer("pyarrow.parquet", "parquet", "read", "bench", "pyarrow"),
    "tfx_bsl": _peer("tfx_bsl's decoder", "tfx_bsl_decoder", "read", "bench-tfx-bsl", "tfx-bsl"),
    "tfrecord": _peer("the package tfrecord", "tfrecord_package", "read", "bench-tfrecord", "tfrecord"),
    "scan_one": _ours("rs.scan, one column", "scan_one"),
    "scan_blocks_one": _ours("rs.scan of blocks, one column", "scan_blocks_one"),
    "parquet_one": _peer("pyarrow.parquet, one column", "parquet", "read_one", "bench", "pyarrow"),
    "query": _ours("recordspec query, an aggregate", "query"),
    "query_blocks": _ours("recordspec query of blocks, an aggregate", "query_blocks"),
    "duckdb": _peer("DuckDB over Parquet, an aggregate", "parquet", "query", "bench", "duckdb"),
    "stats": _ours("recordspec stats", "stats"),
    "stats_blocks": _ours("recordspec stats of blocks", "stats_blocks"),
    "infer": _ours("recordspec infer", "infer"),
    "summarize": _peer("DuckDB's SUMMARIZE over Parquet", "parquet", "summarize", "bench", "duckdb"),
    "export_parquet": _ours("recordspec export to Parquet", "export_parquet"),
    "export_jsonl": _ours("recordspec export to JSON lines", "export_jsonl"),
}
# What the aggregates are of, and the one column: by dataset.
AGGREGATES = {
    "criteo": ("f03", "SELECT label, count(*), avg(f03), min(c05), max(c05) FROM t GROUP BY label"),
    "taxi": ("n3", "SELECT company, count(*), avg(n3), max(n4) FROM t GROUP BY company"),
    "sequences": ("user", "SELECT count(*), avg(len(items)), min(user), max(user) FROM t"),
    "tokens": ("tokens", "SELECT count(*), sum(len(tokens)), max(list_max(tokens)) FROM t"),
}
