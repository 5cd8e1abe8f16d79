"""Copies of damaged files, without what cannot be read: so counts, shuffles and shares stay exact."""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from recordspec.errors import RecordError, show_text
from recordspec.reading.faults import Checked, Fault, check
from recordspec.spec.schema import Schema
from recordspec.store.shards import File
from recordspec.wire import file_types, tfrecord
from recordspec.wire.framing import framed
from recordspec.wire.tfrecord import Record

log = logging.getLogger("recordspec")

# Faults of a file that the log names one by one.
_NAMED = 20
# Files that this process reads copies of.
_passed_over: set[Path] = set()


def mended(file: File, schema: Schema) -> tuple[Path, int]:
    """A file to read in the place of this one, and its rows: the same file where nothing is wrong.

    What is left out is logged. A file is checked once, as long as it does not change.

    Raises RecordError where it is no TFRecord file at all.
    """
    problem = file_types.not_tfrecord(file.path)
    if problem is not None:
        raise RecordError(problem)
    return _mended(file, schema, _stamp(file.path))


def is_mended(path: Path) -> bool:
    """Whether a copy is read in the place of a file: then its faults are known, and do no harm."""
    return path.resolve() in _passed_over


def _stamp(path: Path) -> Any:
    """What changes with a file."""
    stat = path.stat()
    return path.resolve(), stat.st_size, stat.st_mtime_ns


@cache
def _mended(file: File, schema: Schema, stamp: Any) -> tuple[Path, int]:
    checked = check(file, schema)
    if not checked.faults:
        return file.path, checked.rows
    log.warning("%s", _report(file, checked))
    _passed_over.add(file.path.resolve())
    copy = Path(tempfile.mkdtemp(dir=_folder())) / file.path.name
    _copy(file.path, copy, checked.faults)
    return copy, checked.rows


def _report(file: File, checked: Checked) -> str:
    lost = [fault.rows for fault in checked.faults]
    rows = "unknown" if None in lost else f"{sum(row or 0 for row in lost):,}"
    lines = [f"{show_text(str(file.path))}: rows left out: {rows}, read: {checked.rows:,}"]
    lines += [str(problem) for fault in checked.faults[:_NAMED] for problem in fault.problems]
    more = len(checked.faults) - _NAMED
    return "\n".join([*lines, f"records that are not named here: {more:,}"] if more > 0 else lines)


def _copy(path: Path, copy: Path, faults: list[Fault]) -> None:
    bad = {fault.record for fault in faults}
    with copy.open("xb") as file:
        for found in tfrecord.one_by_one(tfrecord.salvage(path)):
            if isinstance(found, Record) and found.number not in bad:
                file.write(framed(found.data))
            elif faults[-1].ends and found.number == faults[-1].record:
                return


@cache
def _folder() -> str:
    """Where copies are, as long as this process lives."""
    folder = tempfile.mkdtemp(prefix="recordspec-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
