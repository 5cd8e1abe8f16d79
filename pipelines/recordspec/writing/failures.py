"""Errors that abort a build, annotated with its progress and with whether it was published."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from recordspec.errors import (
    Interrupted,
    Problem,
    RecordError,
    RecordspecError,
    StoreError,
    WriteError,
    counted,
    see,
    show_text,
    system_problem,
)

_T = TypeVar("_T")

log = logging.getLogger("recordspec")


class DiskError(StoreError):
    """The disk failed, or is full."""


class SourceError(WriteError):
    """The source of the rows failed."""


@dataclass
class BuildStatus:
    """The progress of a build.

    Attributes:
        name: the name of the dataset.
        rows: the number of rows read.
        safe: the number of rows that need not be read again; None if the build cannot be resumed.
        published: whether the dataset was published.
        quarantines: whether invalid rows are listed and left out, instead of aborting the build.
    """

    name: str
    rows: int = 0
    safe: int | None = None
    published: bool = False
    quarantines: bool = False

    @property
    def hint(self) -> str:
        if self.published:
            return "the dataset was published"
        if not self.safe:
            return "nothing was published"
        how = "resume=True, or --resume, continues from there"
        return f"nothing was published; {self.safe:,} rows are safe: {how}"

    @contextmanager
    def annotating(self) -> Iterator[None]:
        """Annotates errors of the block with the status. Raises Interrupted for Ctrl-C."""
        try:
            yield
        except (DiskError, SourceError) as error:
            kind = StoreError if isinstance(error, DiskError) else WriteError
            after = f", after {counted(self.rows, 'row')}"
            problems = [
                replace(problem, got=problem.got + after, hint=self.hint) for problem in error.problems
            ]
            raise kind(problems) from error.__cause__
        except (WriteError, StoreError, Interrupted):
            raise
        except KeyboardInterrupt as error:
            message = f"{self.name}: interrupted after {counted(self.rows, 'row')} ({self.hint})"
            raise Interrupted(show_text(message)) from error
        except BaseException as error:
            note = f"{self.name}: nothing was published, after {counted(self.rows, 'row')}"
            if isinstance(error, RecordError) and error.row and not self.quarantines:
                # if the first row is invalid, the schema is wrong rather than the row
                note += f" (`invalid: quarantine` leaves out invalid rows; {see('building')})"
            _add_note(error, note)
            raise


@contextmanager
def disk_errors(name: str) -> Iterator[None]:
    """Raises an OSError, such as a full disk, as a DiskError."""
    try:
        yield
    except OSError as error:
        file = f" {os.path.basename(error.filename)}" if isinstance(error.filename, str) else ""
        raise DiskError(system_problem(f"write{file}", error, name)) from error


def source_errors(items: Iterable[_T], name: str) -> Iterator[_T]:
    """Yields the items of a source. Raises its failure as a SourceError."""
    # One `try` around the loop, not one per row: exceptions of the consumer do not pass through here.
    try:
        yield from items
    except RecordspecError:
        raise
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise SourceError(Problem(where=name, expected="all the rows", got=got)) from error


def _add_note(error: BaseException, text: str) -> None:
    note = show_text(text)
    if hasattr(error, "add_note"):
        error.add_note(note)
    elif isinstance(error, RecordspecError):  # Python 3.10; the command line prints them
        error.__dict__.setdefault("__notes__", []).append(note)
    else:
        log.error(note)
