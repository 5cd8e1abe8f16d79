"""Rows to framed records: the part of a build that no row depends on another in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, RecordError, SpecError, describe, nearest
from recordspec.spec.encoder import records_of, sections_of
from recordspec.spec.schema import Schema
from recordspec.wire import framing
from recordspec.wire.strings import Ints, Strings
from recordspec.writing import shuffle
from recordspec.writing.ending import on_disk
from recordspec.writing.keys import key_bytes
from recordspec.writing.label_counts import Tally
from recordspec.writing.options import SPLIT_NAME, ByColumn, Write, is_split_name
from recordspec.writing.rejects import Rejects
from recordspec.writing.sources.base import Batch

# Rows are encoded at most this many at once, and fewer where they are large. Forty narrow columns were
# encoded at 0.5, 1.1 and 1.7 million rows/s with 512, 2048 and 8192 rows at once.
_MOST_ROWS = 8192
_BYTES_AT_ONCE = 16 << 20
_FIRST_ROWS = 64  # until the size of a row is known
_FEWEST_ROWS = 16  # after a row that does not fit

# A row's number: its part above these bits, its place in the part below.
PART_BITS = 40
# The most that glibc's allocator keeps for the next use once a block of this size was freed (mallopt(3),
# M_MMAP_THRESHOLD). Without it each large array costs its page faults anew.
_KEPT_BLOCK = (32 << 20) - 8192

Place = Callable[[int], str]
# Is told of rows that are done, and the bytes of their records.
Advance = Callable[[int, int], None]
Words = npt.NDArray[np.uint64]


class Sink(Protocol):
    """Where encoded rows go."""

    def add(
        self, records: Strings, numbers: Words, hashed: shuffle.Hashes | None, splits: Ints | None
    ) -> None:
        """Takes framed records, their rows' numbers, the hashes of their keys, and of each the index of
        its split among the encoder's `splits` (None: all are in the first)."""


class Encoder:
    """Encodes rows in batches. What fits goes to the sink, the rest to the rejects, or is an error.

    Attributes:
        splits: the names of the splits; where rows name theirs, those met so far.
        rows: how many are encoded.
        bytes: of their records.
        tally: the classes of the rows that are encoded.
        rows_at_once: how many should come in a batch.
    """

    def __init__(self, schema: Schema, options: Write, sink: Sink, rejects: Path, name: str) -> None:
        self.schema, self.options = schema, options
        self.splits: list[str] = list(options.weights or ())
        self.rows = self.bytes = 0
        self.tally = Tally(schema)
        self.rows_at_once = _FIRST_ROWS
        self.place: Place = "row {}".format
        how = options.quarantine
        self._rejects = None if how is None else Rejects(rejects, how.max_invalid)
        self._sink, self._name = sink, name
        self._part = 0
        self._before = 0  # rows of the parts before
        np.empty(_KEPT_BLOCK, np.uint8)

    def begin(self, part: int, place: Place) -> None:
        """What comes now is another part; `place` names its rows in messages."""
        self._before = self.seen
        self._part, self.place = part, place

    @property
    def rejected(self) -> int:
        """How many rows did not fit, and were set aside."""
        return 0 if self._rejects is None else self._rejects.count

    @property
    def quarantines(self) -> bool:
        """Whether rows that do not fit are set aside."""
        return self._rejects is not None

    @property
    def seen(self) -> int:
        """How many rows have been taken."""
        return self.rows + self.rejected

    @property
    def _here(self) -> int:
        """How many of them are of this part."""
        return self.seen - self._before

    def take(self, batch: Batch, advance: Advance | None = None) -> None:
        """Takes the rows of a batch; `advance` is told what is done, as it is.

        Raises RecordError for the first that does not fit, or that is one more than may be set aside.
        """
        start = 0
        while start < batch.rows:
            stop, size = min(start + self.rows_at_once, batch.rows), self.bytes
            done = self._encode_valid(batch, start, stop)
            if advance is not None:
                advance(done, self.bytes - size)
            start += done

    def _encode_valid(self, batch: Batch, start: int, stop: int) -> int:
        """Encodes rows up to the first that does not fit, which is rejected; how many that makes."""
        try:
            self._encode(batch.columns(start, stop), stop - start)
        except RecordError as error:
            if error.row is None:
                raise
            placed = self.placed(error)
            if self._rejects is None:
                raise placed from None
            good = error.row
            # what is before it fits in this respect; a row of it may not in another
            self.take(Batch(good, lambda first, last: batch.columns(start + first, start + last)))
            with on_disk(self._name):
                self._rejects.add(self.seen, self.place(self._here), placed)
            # where one row is bad others are near: as many at once as went well, then more again
            self.rows_at_once = max(_FEWEST_ROWS, good)
            return good + 1
        return stop - start

    def placed(self, error: RecordError) -> RecordError:
        """An error of a batch names the row within it; outside it is named among all."""
        row = error.row or 0
        return RecordError(error.at(self.place(self._here + row)).problems, self.seen + row)

    def check_columns(self, columns: Mapping[str, Any]) -> None:
        """Raises SpecError for a column that nothing takes."""
        known = (*self.schema.names, *self.options.columns)
        for name in columns:
            if name not in known:
                hint = nearest(name, [one for one in known if one not in columns])
                expected = f"names of `{self.schema.name}`"
                raise SpecError(Problem(expected=expected, got=f"`{name}`", hint=hint))

    def _encode(self, columns: Mapping[str, Any], rows: int) -> None:
        self.check_columns(columns)
        features = {name: values for name, values in columns.items() if name in self.schema.names}
        sections = sections_of(self.schema, features, rows)
        records = records_of(
            self.schema, sections, rows, head=framing.HEADER_BYTES, tail=framing.FOOTER_BYTES
        )
        hashed = self._hashes(columns, records)
        splits = self._splits(columns, hashed, rows)
        framing.seal(records)
        first = (self._part << PART_BITS) + self._here
        with on_disk(self._name):
            self._sink.add(records, np.arange(first, first + rows, dtype=np.uint64), hashed, splits)
        self.tally.add(sections, splits)
        self.rows += rows
        self.bytes += len(records.buffer)
        most = min(_MOST_ROWS, _BYTES_AT_ONCE * rows // (len(records.buffer) + 1))
        self.rows_at_once = max(1, min(most, 2 * self.rows_at_once))

    def _hashes(self, columns: Mapping[str, Any], records: Strings) -> shuffle.Hashes | None:
        """Of the key of each row; None where nothing depends on it."""
        if self.options.keys:
            return shuffle.hashes(key_bytes(columns, self.options.keys))
        by_content = self.options.group_by is None and len(self.splits) > 1
        if self.options.shuffle or (by_content and self.options.weights):
            return shuffle.hashes(records.inner(framing.HEADER_BYTES, framing.FOOTER_BYTES))
        return None

    def _splits(self, columns: Mapping[str, Any], hashed: shuffle.Hashes | None, rows: int) -> Ints | None:
        """The index of each row's split; None where there is but one."""
        if isinstance(self.options.splits, ByColumn):
            return self._named_splits(columns, self.options.splits.column)
        if len(self.splits) == 1:
            return None
        if self.options.group_by is not None:
            hashed = shuffle.hashes(key_bytes(columns, (self.options.group_by,)))
        assert hashed is not None
        assert self.options.weights is not None
        return shuffle.split_of(hashed, self.options.weights)

    def _named_splits(self, columns: Mapping[str, Any], column: str) -> Ints:
        names = [name.decode(errors="replace") for name in key_bytes(columns, (column,))]
        for row, name in enumerate(names):
            if name not in self.splits:
                if not is_split_name(name):
                    problem = Problem(path=(column,), expected=SPLIT_NAME, got=describe(name))
                    raise RecordError(problem.at(f"row {row}"), row)
                self.splits.append(name)
        index = {name: number for number, name in enumerate(self.splits)}
        return np.fromiter((index[name] for name in names), np.int64, len(names))
