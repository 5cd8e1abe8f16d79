"""What is wrong in files, record by record: found by reading them as a pipeline would, but outside of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recordspec._tf import tf
from recordspec.errors import Problem
from recordspec.spec.decoder import decode_errors, decode_problems
from recordspec.spec.schema import Schema
from recordspec.store.shards import File
from recordspec.wire import tfrecord
from recordspec.wire.framing import place
from recordspec.wire.tfrecord import Damage, Record

# Problems by number of record.
Problems = Mapping[int, tuple[Problem, ...]]

# Records that are decoded together.
_RECORDS_AT_ONCE = 256
_BYTES_AT_ONCE = 4 << 20


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A record that cannot be read, or the rest of a file from it on.

    Attributes:
        path: of the file.
        record: its number.
        offset: the byte where it begins; in a compressed file, of the uncompressed ones.
        problems: what is wrong with it, each placed at file and record.
        rows: how many are lost; None where nobody knows.
        ends: whether all behind it is lost too.
    """

    path: Path
    record: int
    offset: int
    problems: tuple[Problem, ...]
    rows: int | None
    ends: bool = False


@dataclass(kw_only=True)
class Checked:
    """What files were found to be.

    Attributes:
        faults: in order of record.
        records, rows: that can be read.
    """

    faults: list[Fault] = field(default_factory=list)
    records: int = 0
    rows: int = 0


def check(file: File, schema: Schema, most: int | None = None) -> Checked:
    """Reads a file, every byte of it, and decodes its records; up to so many faults."""
    checked = Checked()
    for found in _examined(file, schema):
        if isinstance(found, Record):
            rows = file.rows_of(found.number)
            checked.records += 1
            checked.rows += rows
            continue
        checked.faults.append(found)
        if len(checked.faults) == most:
            break
    return checked


def _examined(file: File, schema: Schema) -> Iterator[Record | Fault]:
    """The records of a file that can be read, and faults in the place of the others."""
    trial = Trial(schema, in_blocks=file.block is not None)
    number = stop = 0
    for some in tfrecord.batched(
        tfrecord.one_by_one(tfrecord.salvage(file.path)), _BYTES_AT_ONCE, _RECORDS_AT_ONCE
    ):
        problems = trial.problems([found for found in some if isinstance(found, Record)])
        for found in some:
            judged = _judged(file, found, problems)
            yield judged
            if isinstance(judged, Fault) and judged.ends:
                return
            number, stop = found.number + 1, found.stop or 0
    if file.shard is not None and number < file.shard.records:
        expected = f"{file.shard.records:,} records, as the manifest says"
        where = f"{file.path}: {place(number, stop)}"
        problem = Problem(where=where, expected=expected, got="the end of the file")
        yield _fault(file, number, stop, (problem,), ends=True)


def _judged(file: File, found: Record | Damage, problems: Problems) -> Record | Fault:
    number, offset = found.number, found.offset
    if isinstance(found, Damage):
        return _fault(file, number, offset, (found.problem,), ends=found.stop is None)
    where = f"{file.path}: {place(number, offset)}"
    if file.shard is not None and number >= file.shard.records:
        expected = f"the end of the file, after {file.shard.records:,} records, as the manifest says"
        problem = Problem(where=where, expected=expected, got="another record")
        return _fault(file, number, offset, (problem,), ends=True)
    if number not in problems:
        return found
    return _fault(file, number, offset, tuple(problem.at(where) for problem in problems[number]))


def _fault(
    file: File, record: int, offset: int, problems: tuple[Problem, ...], *, ends: bool = False
) -> Fault:
    rows = file.rows_from(record) if ends else file.rows_of(record)
    return Fault(path=file.path, record=record, offset=offset, problems=problems, rows=rows, ends=ends)


class Trial:
    """Decodes records, as reading does, to see whether they can be."""

    def __init__(self, schema: Schema, *, in_blocks: bool) -> None:
        self._schema, self._in_blocks = schema, in_blocks
        decode = schema.decode_block if in_blocks else schema.decode
        serialized = tf.TensorSpec([None], tf.string)
        self._decode = tf.function(decode, input_signature=[serialized], autograph=False)

    def problems(self, records: list[Record]) -> dict[int, tuple[Problem, ...]]:
        """The problems of those that do not decode. Only among records that do not together, they are
        looked for, half by half."""
        if not records or self._decodes(records):
            return {}
        if len(records) > 1:
            half = len(records) // 2
            return self.problems(records[:half]) | self.problems(records[half:])
        (record,) = records
        return {record.number: decode_problems(self._schema, record.data, in_blocks=self._in_blocks)}

    def _decodes(self, records: list[Record]) -> bool:
        try:
            self._decode(tf.constant([record.data for record in records], tf.string))
        except decode_errors():
            return False
        return True
