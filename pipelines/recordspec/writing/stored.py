"""The records of existing files, and what their dataset says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recordspec.errors import Problem, RecordError, StoreError
from recordspec.spec.blocks import records_of_block, sections_of_records
from recordspec.spec.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.manifest import KEYS_FILE, REJECTS_FILE, Manifest
from recordspec.store.shards import block_in, parse_name
from recordspec.wire import file_types, framing, tfrecord
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES
from recordspec.wire.strings import Strings
from recordspec.wire.tfrecord import Record, RecordRange
from recordspec.writing import shuffle
from recordspec.writing.sources import base

# Records taken over at once.
_BYTES_AT_ONCE = 4 << 20


class Stored:
    """The records of files.

    Attributes:
        paths: of the files.
        manifest: what the dataset says that they belong to, if any.
        rows: in them, None where nobody knows.
    """

    def __init__(self, paths: tuple[Path, ...], manifest: Manifest | None) -> None:
        self.manifest = manifest
        self.paths = paths
        self.rows: int | None = None
        if manifest is None:
            self._splits = [_split_of(path) for path in paths]
            return
        known = _known(paths, manifest)
        self._splits = [split for split, _ in known]
        self.rows = sum(rows for _, rows in known)

    @property
    def splits(self) -> tuple[str, ...]:
        """Their splits, in the order of the dataset."""
        known = () if self.manifest is None else self.manifest.splits
        return tuple(sorted(dict.fromkeys(self._splits), key=[*known, *self._splits].index))

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.paths[0].parent

    @property
    def compression(self) -> str:
        """That of the first file."""
        return file_types.compression_of(self.paths[0])

    @cached_property
    def block(self) -> int | None:
        """Rows of a record at most, as the manifest says or else the first record; None where each has one.

        Raises StoreError where some files hold blocks and others do not.
        """
        return block_in(self.paths) if self.manifest is None else self.manifest.block

    @property
    def in_blocks(self) -> bool:
        """Whether a record holds many rows."""
        return self.block is not None

    @property
    def keys(self) -> Path | None:
        """The file with the hashes of the keys of the dataset's rows, where there is one, and it is whole."""
        path = self.folder / KEYS_FILE
        if self.manifest is None or self.manifest.keys_sha256 is None:
            return None
        rows = sum(map(self.manifest.rows, self.manifest.splits))
        return path if path.exists() and key_hashes.rows(path) == rows else None

    def parts(self, check: Schema | None = None) -> Iterator[StoredPart]:
        """Stretches of the files, in order. With a schema, each record must fit as a row of a block."""
        starts = {} if self.manifest is None else self.manifest.starts()
        for path, split in zip(self.paths, self._splits, strict=True):
            whole = self.in_blocks or file_types.compression_of(path) != "none"
            stretches = [None] if whole else tfrecord.record_ranges(path, base.PART_BYTES)
            for stretch in stretches:
                first = starts.get(path.name, 0)
                yield StoredPart(path, stretch, split, self.keys, first, self.in_blocks, check)


def _known(paths: tuple[Path, ...], manifest: Manifest) -> list[tuple[str, int]]:
    """The split of each file, and its rows. Raises StoreError where they are not those of the manifest."""
    known = {shard.file: (split, shard) for split, shards in manifest.splits.items() for shard in shards}
    problems = [
        Problem(where=str(path), expected="shards that the manifest names", got="another one")
        for path in paths
        if path.name not in known
    ]
    # one that is cut between two records looks whole
    problems += [
        Problem(where=str(path), expected=f"{size:,} bytes, as the manifest says", got=f"{found:,}")
        for path in paths
        if path.name in known and (size := known[path.name][1].bytes) != (found := path.stat().st_size)
    ]
    rejects = paths[0].parent / REJECTS_FILE
    if manifest.rejected and not rejects.exists():
        expected = f"{manifest.rejected:,} rejected rows, as the manifest says"
        problems.append(Problem(where=str(rejects), expected=expected, got="no file"))
    if problems:
        raise StoreError(problems)
    return [(split, shard.rows) for split, shard in (known[path.name] for path in paths)]


def _split_of(path: Path) -> str:
    name = parse_name(path.name)
    return "train" if name is None else name.split


@dataclass(frozen=True)
class StoredPart:
    """Records of one file that follow each other.

    Attributes:
        path: of the file.
        stretch: which records; None means all.
        split: theirs.
        keys: the file with the hashes of the keys of all rows, if any.
        first: where those of this file's rows begin in it.
        in_blocks: whether a record holds many rows.
        check: the schema that each record must fit, so that it can be a row of a block; None checks none.
    """

    path: Path
    stretch: RecordRange | None
    split: str
    keys: Path | None
    first: int
    in_blocks: bool
    check: Schema | None = None

    def records(self, schema: Schema | None) -> Iterator[Strings]:
        """Framed records of one row each, some at a time. Raises RecordError."""
        records = tfrecord.scan(self.path, self.stretch)
        if not self.in_blocks:
            for some in tfrecord.batched(records, _BYTES_AT_ONCE):
                self._check(some)
                yield _framed(some)
            return
        assert schema is not None
        for record in records:
            try:
                rows = records_of_block(schema, record.data, head=HEADER_BYTES, tail=FOOTER_BYTES, whole=True)
            except RecordError as error:
                raise RecordError(error.at(self._where(record)).problems) from None
            framing.seal(rows)
            yield rows

    def _check(self, records: list[Record]) -> None:
        """Raises RecordError for the first that cannot be a row of a block, while its place is known."""
        if self.check is None:
            return
        try:
            given = Strings.of([record.data for record in records])
            sections_of_records(self.check, given.buffer, given.offsets[:-1], given.offsets[1:])
        except RecordError as error:
            raise RecordError(error.at(self._where(records[error.row or 0])).problems) from None

    def _where(self, record: Record) -> str:
        return f"{self.path}: {framing.place(record.number, record.offset)}"

    def hashes(self, records: Strings, row: int) -> shuffle.Hashes:
        """Of the keys of records, of which the first is row `row` of the part."""
        if self.keys is None:
            return shuffle.hashes(records.inner(HEADER_BYTES, FOOTER_BYTES))
        before = 0 if self.stretch is None else self.stretch.number
        return key_hashes.read(self.keys, self.first + before + row, len(records))

    def place(self, row: int) -> str:
        number = row if self.stretch is None else self.stretch.number + row
        return f"{self.path}: row {number}"


def _framed(records: list[Record]) -> Strings:
    return framing.frames([record.data for record in records])
