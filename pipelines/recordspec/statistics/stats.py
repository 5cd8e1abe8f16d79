"""Computes statistics of files: the presence and the values of each feature."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from recordspec.locations import AnyPath
from recordspec.progress import Progress
from recordspec.statistics.profile import profile_splits
from recordspec.statistics.summarize import stats_report
from recordspec.statistics.summary import StatsReport
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, Split
from recordspec.store.scan import Scanner

if TYPE_CHECKING:
    from recordspec.schema.schema import Schema

__all__ = ["StatsReport", "stats"]


def stats(
    files: Files,
    schema: Schema | AnyPath | None = None,
    *,
    split: Split = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> StatsReport:
    """Reads files, and summarizes each feature of their records.

    Uses bounded memory. Counts are exact. Three figures are estimates and have an error: quantiles of many
    values, the number of distinct values if there are many, and duplicates among millions of rows.

    Args:
        files: paths, patterns, or a folder.
        schema: the schema, or its path, for the names of features and classes; by default the schema beside
            the files.
        split: the split to summarize; by default all, each apart.
        jobs: the number of threads; None for one per processor.
        progress: receives the number of records and bytes; by default a bar, on a terminal or in a notebook.

    Returns:
        A report of splits, `report["train"]`, and their features, `report["train"]["x"]`. A notebook shows
        a table for each split.

    Raises:
        StoreError: there are no files, or a file cannot be opened. Unreadable records are counted in the
            report.

    Example:
        >>> rs.stats("data/points")["train"]["x"].records
        15
    """
    scanner = Scanner.of_rows(StoredDataset.asked(files, schema, split, "rs.stats"))
    with Progress() if progress is None else nullcontext(progress) as bar:
        bar.begin("reading", None)
        return stats_report(scanner, profile_splits(scanner, jobs, bar))
