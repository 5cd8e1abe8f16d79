"""Finds corrupt records by decoding files outside of a pipeline, and skips or locates them."""

from __future__ import annotations

import atexit
import hashlib
import logging
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, RecordError, StoreError, show_text
from recordspec.locations import Location, absolute, resolved
from recordspec.order.read_plan import Piece
from recordspec.schema.decoder import decode_errors, decode_problems
from recordspec.schema.schema import Schema
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, path_list
from recordspec.store.shards import File, replaced
from recordspec.store.staging import failure_in
from recordspec.wire import tfrecord
from recordspec.wire.file_types import FileStart, compression_of
from recordspec.wire.framing import framed, place
from recordspec.wire.tfrecord import Damage, Record

# Problems by the number of the record.
Problems = Mapping[int, tuple[Problem, ...]]

log = logging.getLogger("recordspec")

# The most records, and about the most bytes of them, that are decoded together.
_RECORDS_AT_ONCE = 256
_BYTES_AT_ONCE = 4 << 20
# The most corrupt records of a file that the log names one by one.
_NAMED = 20
# A problem of a value that `fit` refuses, in the message of TensorFlow.
_REFUSED = re.compile(r"assertion failed: \[(fit\..*)\](?=\n|$)")
# The files in place of which this process reads copies.
_replaced: set[Location] = set()


@dataclass(frozen=True, kw_only=True)
class CorruptRecord:
    """A record that cannot be read, or the rest of a file from that record.

    Attributes:
        path: the file.
        record: the number of the record.
        offset: the byte at which the record begins; in a compressed file, counted in uncompressed bytes.
        problems: the problems of the record, each with file and record.
        rows: the number of lost rows; None if it is unknown.
        ends: whether the rest of the file is lost, too.
    """

    path: Location
    record: int
    offset: int
    problems: tuple[Problem, ...]
    rows: int | None
    ends: bool = False


@dataclass(kw_only=True)
class CheckedFile:
    """The result of checking a file.

    Attributes:
        corrupt: the corrupt records, in order.
        records, rows: the numbers of readable records and rows.
    """

    corrupt: list[CorruptRecord] = field(default_factory=list)
    records: int = 0
    rows: int = 0


def check_file(file: File, schema: Schema, most: int | None = None) -> CheckedFile:
    """Reads every byte of a file and decodes its records. Stops after `most` corrupt records."""
    checked = CheckedFile()
    for record in _decoded(file, schema):
        if isinstance(record, Record):
            checked.records += 1
            checked.rows += file.rows_of(record.number)
            continue
        checked.corrupt.append(record)
        if len(checked.corrupt) == most:
            break
    return checked


def _decoded(file: File, schema: Schema) -> Iterator[Record | CorruptRecord]:
    """Yields the records of a file that decode, and the corrupt records, in order."""
    trial = TrialDecode(schema, in_blocks=file.block is not None)
    number = stop = 0
    records = tfrecord.one_by_one(tfrecord.salvage(file.path))
    for some in tfrecord.batched(records, _BYTES_AT_ONCE, _RECORDS_AT_ONCE):
        problems = trial.problems([found for found in some if isinstance(found, Record)])
        for record in some:
            judged = _judged(file, record, problems)
            yield judged
            if isinstance(judged, CorruptRecord) and judged.ends:
                return
            number, stop = record.number + 1, record.stop or 0
    if file.shard is not None and number < file.shard.records:
        expected = f"{file.shard.records:,} records, as the manifest says"
        where = f"{file.path}: {place(number, stop)}"
        problem = Problem(where=where, expected=expected, got="the end of the file")
        yield _corrupt(file, number, stop, (problem,), ends=True)


def _judged(file: File, record: Record | Damage, problems: Problems) -> Record | CorruptRecord:
    number, offset = record.number, record.offset
    if isinstance(record, Damage):
        return _corrupt(file, number, offset, (record.problem,), ends=record.stop is None)
    where = f"{file.path}: {place(number, offset)}"
    if file.shard is not None and number >= file.shard.records:
        expected = f"the end of the file, after {file.shard.records:,} records, as the manifest says"
        problem = Problem(where=where, expected=expected, got="another record")
        return _corrupt(file, number, offset, (problem,), ends=True)
    if number not in problems:
        return record
    return _corrupt(file, number, offset, tuple(problem.at(where) for problem in problems[number]))


def _corrupt(
    file: File, record: int, offset: int, problems: tuple[Problem, ...], *, ends: bool = False
) -> CorruptRecord:
    rows = file.rows_from(record) if ends else file.rows_of(record)
    return CorruptRecord(
        path=file.path, record=record, offset=offset, problems=problems, rows=rows, ends=ends
    )


class TrialDecode:
    """Decodes records as reading does, to find the records that fail."""

    def __init__(self, schema: Schema, *, in_blocks: bool) -> None:
        self._schema, self._in_blocks = schema, in_blocks
        decode = schema.decode_block if in_blocks else schema.decode
        serialized = tf.TensorSpec([None], tf.string)
        self._decode = tf.function(decode, input_signature=[serialized], autograph=False)

    def problems(self, records: list[Record]) -> dict[int, tuple[Problem, ...]]:
        """The problems of the records that do not decode, found by halving a batch that fails."""
        if not records:
            return {}
        try:
            self._decode(tf.constant([record.data for record in records], tf.string))
            return {}
        except decode_errors():
            pass
        if len(records) > 1:
            half = len(records) // 2
            return self.problems(records[:half]) | self.problems(records[half:])
        (record,) = records
        return {record.number: decode_problems(self._schema, record.data, in_blocks=self._in_blocks)}


def without_corrupt(file: File, schema: Schema) -> Piece:
    """Returns the whole of a file, or of a copy without its corrupt records.

    A file with corrupt records is replaced by a copy without them, so that counts, shuffles and sharding
    among workers stay exact. Skipped records are logged. A file is checked once, as long as it does not
    change.

    Raises RecordError for a file that is not a TFRecord file.
    """
    problem = FileStart(file.path).problem
    if problem is not None:
        raise RecordError(problem)
    stat = file.path.stat()
    return _replacement(file, schema, (resolved(file.path), stat.st_size, stat.st_mtime_ns))


@cache
def _replacement(file: File, schema: Schema, stamp: Any) -> Piece:
    """`stamp` changes with the file, so that a changed file is checked again."""
    checked = check_file(file, schema)
    # without a manifest, the last block of a file may have fewer rows
    rows = checked.rows if file.shard is not None or file.block is None else None
    if not checked.corrupt:
        return Piece(path=file.path, compression=compression_of(file.path), rows=rows, shard=file.shard)
    log.warning("%s", _report(file, checked))
    _replaced.add(resolved(file.path))
    copy, last = Path(tempfile.mkdtemp(dir=_folder())) / file.path.name, checked.corrupt[-1]
    numbers = {one.record for one in checked.corrupt}
    sha256 = hashlib.sha256()
    with copy.open("xb") as copied:
        for record in tfrecord.one_by_one(tfrecord.salvage(file.path)):
            if isinstance(record, Record) and record.number not in numbers:
                frame = framed(record.data)
                sha256.update(frame)
                copied.write(frame)
            elif last.ends and record.number == last.record:
                break
    digest = sha256.hexdigest()
    return Piece(path=copy, compression="none", rows=rows, shard=file.shard, copy_sha256=digest)


def _report(file: File, checked: CheckedFile) -> str:
    lost = [corrupt.rows for corrupt in checked.corrupt]
    rows = "unknown" if None in lost else f"{sum(row or 0 for row in lost):,}"
    lines = [f"{show_text(str(file.path))}: rows left out: {rows}, read: {checked.rows:,}"]
    lines += [str(problem) for corrupt in checked.corrupt[:_NAMED] for problem in corrupt.problems]
    more = len(checked.corrupt) - _NAMED
    return "\n".join([*lines, f"records that are not named here: {more:,}"] if more > 0 else lines)


def _dataset_replaced(message: str, files: Iterable[str]) -> Problem | None:
    """The problem of a dataset that has been replaced, if TensorFlow's message names one of its shards."""
    for path in map(absolute, files):
        for folder in (path, path.parent):
            shard = message.partition(f"{folder}/")[2].partition(";")[0]
            if shard:
                return replaced(folder / shard)
    return None


@cache
def _folder() -> str:
    """The folder of the copies, which is removed when this process ends."""
    folder = tempfile.mkdtemp(prefix="recordspec-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def locating(schema: Schema, files: Files) -> Iterator[None]:
    """A context manager in which TensorFlow's read errors name the record that caused them.

        with recordspec.locating(schema, "data/digits"):
            for batch in recordspec.read("data/digits", schema, batch=32):
                ...

    If a read error leaves the block, the files are checked up to the first corrupt record. Without an error,
    the context manager costs nothing.

    Raises:
        RecordError: a record is corrupt. The message names the shard, the record, the byte, the feature, the
            expected and the actual value. The original error is its cause; if no record is corrupt, the
            original error is raised. Or `fit` refuses a value, such as a missing target.
        StoreError: files are missing, or have another spec; the dataset has been replaced; a shard in an
            object store could not be read; or the local copy of a shard was changed while it was read: the
            copy is deleted, and the next pass copies the shard again.
        SpecError: a path is a URL, but not of a store.

    Example:
        >>> with rs.locating(schema, "data/points"):
        ...     sum(1 for _ in rs.read("data/points", schema, split="train", batch=8))
        2
    """
    paths = path_list(files)
    try:
        yield
    except Exception as error:
        if failure := failure_in(error):
            raise failure from error
        if not isinstance(error, decode_errors()):
            raise
        if isinstance(error, tf.errors.NotFoundError) and (problem := _dataset_replaced(str(error), paths)):
            raise StoreError(problem) from error
        if refused := _REFUSED.search(str(error)):
            raise RecordError(Problem(expected="", got=refused[1])) from error
        for file in StoredDataset.of(paths, schema).checked_files():
            # if a copy replaces a file, its corrupt records are known, and were not read
            if resolved(file.path) not in _replaced and (corrupt := check_file(file, schema).corrupt):
                *others, last = corrupt[0].problems
                more = f"{len(corrupt):,} records of this file are corrupt" if corrupt[1:] else ""
                last = replace(last, hint="; ".join(filter(None, [last.hint, more])))
                raise RecordError([*others, last], corrupt[0].record) from error
        raise
