"""Statistics of files: the presence and the values of each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordspec.inspect.scan import Scanner
from recordspec.inspect.stats.summarize import stats_report
from recordspec.inspect.stats.summary import StatsReport
from recordspec.inspect.stats.tally import count
from recordspec.progress import Progress
from recordspec.store.expand import Files

if TYPE_CHECKING:
    from recordspec.schema.schema import Schema

__all__ = ["StatsReport", "stats"]


def stats(
    files: Files, schema: Schema | None = None, *, jobs: int | None = None, progress: Progress | None = None
) -> StatsReport:
    """Reads files once, and summarizes each feature of their records.

    Uses bounded memory, and returns the same for any number of processes.

    Args:
        files: paths, patterns, or a folder.
        schema: the schema, for the names of features and classes; by default the one beside the files.
        jobs: the number of processes; None for one per processor if there is much to read.
        progress: receives the number of records and bytes.

    Raises:
        StoreError: there are no files, or one cannot be opened. Records that cannot be read are counted
            in the report.
    """
    scanner = Scanner.of_rows(files, schema)
    return stats_report(scanner, count(scanner, jobs, progress))
