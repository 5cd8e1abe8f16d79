"""What files hold: how often each feature is there, and what values it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordspec.inspect.scan import Scanner
from recordspec.inspect.stats.summarize import stats_report
from recordspec.inspect.stats.summary import StatsReport
from recordspec.inspect.stats.tally import count
from recordspec.progress import Progress
from recordspec.store.shards import Files

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

__all__ = ["StatsReport", "stats"]


def stats(
    files: Files, schema: Schema | None = None, *, jobs: int | None = None, progress: Progress | None = None
) -> StatsReport:
    """Reads files once, and summarizes each feature of their records.

    Takes bounded memory, and gives the same for any number of processes.

    Args:
        files: paths, patterns, or a folder.
        schema: of the records, for the names of features and classes; by default that which lies beside them.
        jobs: processes that share the work; None for one a processor where there is much to read.
        progress: receives the number of records and bytes.

    Raises:
        StoreError: where there are no files, or one cannot be opened. Records that cannot be read are counted
            in the report.
    """
    scanner = Scanner.of_rows(files, schema)
    return stats_report(scanner, count(scanner, jobs, progress))
