"""Rows are checked and encoded in batches, with the hash of each one's key, its split and its class."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, describe, nearest
from recordspec.spec.blocks import Sections, sections_of_records
from recordspec.spec.encoder import records_of, sections_of
from recordspec.spec.features import Feature
from recordspec.spec.media import images
from recordspec.spec.schema import Schema
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    buffer_of,
    bytes_in,
    is_arrow,
    is_text,
    joined,
    numbers_array,
    part,
    take,
    to_binary,
    views_of,
)
from recordspec.wire.example import check_sizes, least_bytes
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES
from recordspec.wire.hashes import Words, splitmix64
from recordspec.writing.failures import disk_errors
from recordspec.writing.label_counts import ClassCounter
from recordspec.writing.options import SPLIT_NAME, ByColumn, Write, is_split_name
from recordspec.writing.rejects import Rejects
from recordspec.writing.sources.base import Columns
from recordspec.writing.sources.rows import not_a_mapping, row_batches

# Rows are encoded at most this many at once, and fewer where they are large. Forty narrow columns were
# encoded at 0.5, 1.1 and 1.7 million rows/s with 512, 2048 and 8192 rows at once.
_MOST_ROWS = 8192
_BYTES_AT_ONCE = 16 << 20
_FIRST_ROWS = 64  # until the size of a row is known
_FEWEST_ROWS = 16  # after an invalid row

# A row's number: its part above these bits, its place in the part below.
PART_BITS = 40
# The most that glibc's allocator keeps for the next use once a block of this size was freed (mallopt(3),
# M_MMAP_THRESHOLD). Without it each large array costs its page faults again.
_KEPT_BLOCK = (32 << 20) - 8192
_WORD = 1 << 64

Place = Callable[[int], str]
# Receives the number of rows that are done, and the bytes of their records.
Advance = Callable[[int, int], None]


class EncodedRows:
    """Rows with validated values: as columns, or as records in their frames.

    Each form is computed from the other on demand, for all rows together.
    """

    def __init__(
        self,
        schema: Schema | None,
        rows: int,
        *,
        sections: Sections | None = None,
        records: ArrowArray | None = None,
    ) -> None:
        self._schema, self._rows = schema, rows
        self._sections, self._records = sections, records

    @classmethod
    def encode(cls, schema: Schema, columns: Mapping[str, Any], rows: int) -> EncodedRows:
        """The rows of a batch of columns. Raises RecordError, SpecError."""
        sections = sections_of(schema, columns, rows)
        check_sizes(sections.values(), rows)
        return cls(schema, rows, sections=sections)

    def __len__(self) -> int:
        return self._rows

    @property
    def records(self) -> ArrowArray:
        """The record of each row in its frame. Raises RecordError for one that is too large."""
        if self._records is None:
            assert self._schema is not None
            assert self._sections is not None
            self._records = records_of(self._schema, self._sections, self._rows, framed=True)
        return self._records

    @property
    def sections(self) -> Sections:
        """The columns, by section and key. Raises RecordError for records that are not of the schema."""
        if self._sections is None:
            assert self._schema is not None
            self._sections = sections_of_records(self._schema, self.records, HEADER_BYTES, FOOTER_BYTES)
        return self._sections

    @property
    def is_decoded(self) -> bool:
        """Whether their columns are at hand."""
        return self._sections is not None

    @property
    def bytes(self) -> int:
        """About how many bytes they have."""
        if self._records is not None:
            return len(buffer_of(self._records))
        return sum(least_bytes(array) for table in self.sections.values() for array in table.values())

    def part(self, start: int, stop: int) -> EncodedRows:
        """Rows `start` to `stop`."""
        if (start, stop) == (0, self._rows):
            return self
        sections = self._sections and _mapped(self._sections, lambda array: part(array, start, stop))
        records = None if self._records is None else part(self._records, start, stop)
        return EncodedRows(self._schema, stop - start, sections=sections, records=records)

    def take(self, rows: Ints) -> EncodedRows:
        """These rows, in this order."""
        if self._sections is None:
            return EncodedRows(self._schema, len(rows), records=take(self.records, rows))
        sections = _mapped(self._sections, lambda array: take(array, rows))
        return EncodedRows(self._schema, len(rows), sections=sections)

    def without_records(self) -> EncodedRows:
        """The columns alone."""
        return EncodedRows(self._schema, self._rows, sections=self.sections)

    @classmethod
    def joined(cls, many: Sequence[EncodedRows]) -> EncodedRows:
        """Concatenates these, as columns if all have them."""
        first = many[0]
        if len(many) == 1:
            return first
        if not all(one.is_decoded for one in many):
            records = joined([one.records for one in many])
            return cls(first._schema, len(records), records=records)
        sections = {
            section: {key: joined([one.sections[section][key] for one in many]) for key in table}
            for section, table in first.sections.items()
        }
        return cls(first._schema, sum(map(len, many)), sections=sections)


def _mapped(sections: Sections, change: Callable[[ArrowArray], ArrowArray]) -> Sections:
    return {
        section: {key: change(array) for key, array in table.items()} for section, table in sections.items()
    }


class Sink(Protocol):
    """The receiver of encoded rows."""

    def add(self, rows: EncodedRows, numbers: Words, hashed: Words | None, splits: Ints | None) -> None:
        """Adds rows, with their numbers, the hashes of their keys, uint64 `[n, 2]`, and the indices of their
        splits among the encoder's `splits` (None: all are in the first)."""


class Encoder:
    """Encodes rows in batches. Valid ones go to the sink, invalid ones to the rejects, or are an error.

    Args:
        rejects: receives the lines of `rejects.jsonl`, which count the rows from 0.
        name: the name of the dataset in messages.
        check: receives the number of invalid rows so far, and the first reasons, after each; it may raise.

    Attributes:
        splits: the names of the splits; if rows name theirs, those found so far.
        rows: the number of encoded rows.
        bytes: the size of their records.
        classes: counts the classes of the encoded rows.
    """

    def __init__(
        self,
        schema: Schema,
        options: Write,
        sink: Sink,
        rejects: Callable[[str], None],
        name: str,
        check: Callable[[int, list[str]], None] | None = None,
    ) -> None:
        self.schema, self.options = schema, options
        self.splits: list[str] = list(options.weights or ())
        self.rows = self.bytes = 0
        self.classes = ClassCounter(schema)
        self._rows_at_once = _FIRST_ROWS
        self._place: Place = "row {}".format
        self._rejects = None if options.quarantine is None else Rejects(rejects, check)
        self._sink, self._name = sink, name
        self._changeable = {name for name, feature in schema.names.items() if not _is_immutable(feature)}
        self._pending: list[Any] = []
        self._part = 0
        self._before = 0  # rows of the parts before
        np.empty(_KEPT_BLOCK, np.uint8)

    def begin(self, part: int, place: Place) -> None:
        """Begins another part of the rows, in which messages name them by `place`, counted from 0."""
        self.flush()
        self._before = self.seen
        self._part, self._place = part, place

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return 0 if self._rejects is None else self._rejects.count

    @property
    def reasons(self) -> tuple[str, ...]:
        """The locations of the first rejected rows, each with its first problem."""
        return () if self._rejects is None else tuple(self._rejects.reasons)

    @property
    def seen(self) -> int:
        """The number of rows encoded or rejected."""
        return self.rows + self.rejected

    @property
    def taken(self) -> int:
        """The number of rows given, including those that wait for their batch."""
        return self.seen + len(self._pending)

    @property
    def _here(self) -> int:
        """The number of rows of this part encoded or rejected."""
        return self.seen - self._before

    def add_row(self, row: Any) -> None:
        """Adds a row, a mapping. It is validated when its batch is encoded."""
        if self._rejects is None and not isinstance(row, Mapping):
            raise self._placed(not_a_mapping(row, len(self._pending)))
        self._pending.append(_owned_row(row, self._changeable) if isinstance(row, Mapping) else row)
        if len(self._pending) >= self._rows_at_once:
            self.flush()

    def flush(self) -> None:
        """Encodes the rows that wait for their batch."""
        pending, self._pending = self._pending, []
        for batch in row_batches(pending, self.schema, self.options.columns):
            self.add(batch)

    def add(self, batch: Columns | RecordError, advance: Advance | None = None) -> None:
        """Adds a batch, or the error in place of an invalid row.

        Raises RecordError for the first invalid row, unless rows are rejected; and what `check` raises.
        """
        if isinstance(batch, RecordError):
            self._reject(batch)
            batch = Columns({}, 0)
        start = 0
        while start < batch.rows:
            before = self.bytes
            stop = min(start + self._rows_at_once, batch.rows)
            done = self._encode_valid(batch.part(start, stop))
            start += done
            if advance is not None:
                advance(done, self.bytes - before)

    def _encode_valid(self, batch: Columns) -> int:
        """Encodes rows up to the first that is invalid, which is rejected; how many that makes."""
        try:
            self._encode(batch)
        except RecordError as error:
            if error.row is None:
                raise
            if self._rejects is None:
                raise self._placed(error) from None
            valid = error.row
            # what is before it is valid in this respect; a row of it may not be in another
            self.add(batch.part(0, valid))
            self._reject(RecordError(error.problems, 0))
            # where one row is invalid others are near: as many at once as went well, then more again
            self._rows_at_once = max(_FEWEST_ROWS, valid)
            return valid + 1
        return batch.rows

    def _reject(self, error: RecordError) -> None:
        """Sets the next row aside."""
        if self._rejects is None:
            raise self._placed(RecordError(error.problems, 0)) from None
        problems = [str(problem.at("")) for problem in error.problems]
        with disk_errors(self._name):
            self._rejects.add(self.seen, self._place(self._here), problems)

    def _placed(self, error: RecordError) -> RecordError:
        """An error of a batch names the row within it; outside it is named among all."""
        row = error.row or 0
        return RecordError(error.at(self._place(self._here + row)).problems, self.seen + row)

    def _encode(self, batch: Columns) -> None:
        names, columns = self.schema.names, self.options.columns
        values = {name: one for name, one in batch.values.items() if name in names or name not in columns}
        rows = EncodedRows.encode(self.schema, values, batch.rows)
        keys = self._key_hashes(batch.values, rows)
        splits = self._splits(batch.values, keys, batch.rows)
        hashed = self._identities(keys, rows)
        first = (self._part << PART_BITS) + self._here
        with disk_errors(self._name):
            self._sink.add(rows, np.arange(first, first + batch.rows, dtype=np.uint64), hashed, splits)
        self.classes.add(rows.sections, splits)
        self.rows += batch.rows
        self.bytes += rows.bytes
        most = min(_MOST_ROWS, _BYTES_AT_ONCE * batch.rows // (rows.bytes + 1))
        self._rows_at_once = max(1, min(most, 2 * self._rows_at_once))

    def _key_hashes(self, columns: Mapping[str, Any], rows: EncodedRows) -> Words | None:
        """The hash of the key of each row, or of its content; None if nothing depends on it."""
        options = self.options
        if options.keys:
            return hashes(key_bytes(columns, options.keys))
        if options.shuffle or options.unique or options.splits_by_content:
            return hashes(views_of(rows.records, HEADER_BYTES, FOOTER_BYTES))
        return None

    def _identities(self, keys: Words | None, rows: EncodedRows) -> Words | None:
        """The hash by which each row is ordered: that of its key, and where several rows may share a key,
        of its content, too."""
        options = self.options
        if keys is None or not options.keys or options.unique or not options.shuffle:
            return keys
        records = views_of(rows.records, HEADER_BYTES, FOOTER_BYTES)
        return hashes(map(b"".join, zip(map(bytes, keys.astype(">u8")), records, strict=True)))

    def _splits(self, columns: Mapping[str, Any], hashed: Words | None, rows: int) -> Ints | None:
        """The index of each row's split; None if there is but one."""
        if isinstance(self.options.splits, ByColumn):
            return self._named_splits(columns, self.options.splits.column)
        if len(self.splits) == 1:
            return None
        if self.options.group_by is not None:
            hashed = hashes(key_bytes(columns, (self.options.group_by,)))
        assert hashed is not None
        assert self.options.weights is not None
        return split_of(hashed, self.options.weights)

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


# A row's split is a function of the hash of its key, never of its position: adding rows moves no old row
# to another split, and the order of the source does not matter.


def hashes(keys: Iterable[Any]) -> Words:
    """128-bit hashes of keys (bytes), uint64 `[n, 2]`."""
    digests = b"".join([hashlib.blake2b(key, digest_size=16).digest() for key in keys])
    return np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)


def split_of(hashed: Words, splits: Mapping[str, float]) -> Ints:
    """The index of each row's split, int64 `[n]`."""
    total = sum(splits.values())
    shares = np.cumsum([weight / total for weight in splits.values()])[:-1]
    bounds = np.array([min(int(share * _WORD), _WORD - 1) for share in shares], np.uint64)
    return np.searchsorted(bounds, hashed[:, 0], side="right")


def order_of(hashed: Words, seed: int) -> Words:
    """The sort keys of rows with these hashes for a seed, uint64 `[n]`; equal hashes are adjacent."""
    digest = hashlib.blake2b(str(seed).encode(), digest_size=8).digest()
    return splitmix64(hashed[:, 1] ^ np.uint64(int.from_bytes(digest, "big")))


def key_bytes(columns: Mapping[str, Any], names: tuple[str, ...]) -> list[bytes]:
    """The key of each row, from the columns that make it up; 7 and "7" are one key.

    Raises SpecError if there is no such column, RecordError if a row has no value in it, or one
    that is neither text nor a whole number.
    """
    parts = [_key_column(columns, name) for name in names]
    if len(parts) == 1:
        return parts[0]
    # each part with its length before it, so that ("ab", "c") is not ("a", "bc")
    return [b"".join(len(part).to_bytes(4, "big") + part for part in row) for row in zip(*parts, strict=True)]


def _key_column(columns: Mapping[str, Any], name: str) -> list[bytes]:
    values = columns.get(name)
    if values is None:
        hint = nearest(name, columns)
        raise SpecError(Problem(path=("key",), expected="a column of the rows", got=f"`{name}`", hint=hint))
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim == 1:
        values = numbers_array(values)
    if is_arrow(values):
        if hasattr(values, "dictionary"):  # of which an entry may be null
            values = values.dictionary_decode()
        if not values.null_count and arrow().types.is_integer(values.type):
            values = values.cast(arrow().large_string())
        if not values.null_count and is_text(values):
            return bytes_in(to_binary(values))
        values = values.to_pylist()
    values = values.tolist() if isinstance(values, np.ndarray) else values
    return [_key_part(row, value, name) for row, value in enumerate(values)]


def _key_part(row: int, value: Any, name: str) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    short = isinstance(value, (int, np.integer)) and int(value).bit_length() < 4096
    if short and not isinstance(value, bool):
        return str(int(value)).encode()
    problem = Problem(path=(name,), expected="a key: text or a whole number", got=describe(value))
    raise RecordError(problem.at(f"row {row}"), row)


def _owned_row(row: Mapping[str, Any], changeable: set[str]) -> dict[str, Any]:
    """A copy: the caller may fill the same dict, list or array again for the next row."""
    owned = dict(row)
    for name in changeable & owned.keys():
        owned[name] = _owned(owned[name])
    return owned


def _owned(value: Any) -> Any:
    try:
        return _copied(value)
    except Exception:  # a PIL image of a truncated file, or a list of itself: encoding it reports the error
        return value


def _copied(value: Any) -> Any:
    if value is None or isinstance(value, (str, bytes, os.PathLike)):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.copy()
    if type(value) is list:
        numbers = bool(value) and isinstance(value[0], (int, float, np.generic))
        return value.copy() if numbers else [_copied(one) for one in value]
    if type(value) is tuple:
        return tuple(map(_copied, value))
    if type(value) is dict:
        return {name: _copied(one) for name, one in value.items()}
    if isinstance(value, memoryview):
        return bytes(value) if value.format == "B" and value.ndim == 1 else np.array(value)
    return images.copied(value) if images.is_image(value) else copy.deepcopy(value)


def _is_immutable(feature: Feature) -> bool:
    """Whether a row gives one number or text, which cannot be changed after it was given."""
    kind = feature.value_type
    return kind.shape == () and (kind.is_number or kind.item in ("text", "class"))
