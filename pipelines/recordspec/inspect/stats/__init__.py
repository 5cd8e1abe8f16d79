"""What is in files: how often each feature is there, and what values it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordspec.inspect.stats.parts import Source, count
from recordspec.inspect.stats.report import Report
from recordspec.inspect.stats.summary import report
from recordspec.progress import Progress
from recordspec.store.shards import Files

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

__all__ = ["Report", "stats"]


def stats(
    files: Files, schema: Schema | None = None, *, jobs: int | None = None, progress: Progress | None = None
) -> Report:
    """Reads files once, and tells what each feature of their records holds.

    Takes bounded memory, whatever is in them, and gives the same for any number of processes.

    Args:
        files: paths, patterns, or a folder.
        schema: what the records are; without one, that which lies beside them, if any. It gives names.
        jobs: processes that share the work; None for one a processor where there is much to read.
        progress: is told of it.

    Raises:
        StoreError: where there are no files, or one cannot be opened. Of records that cannot be read, the
            report tells.
    """
    source = Source.of(files, schema)
    return report(source, count(source, jobs, progress))
