"""The files of a dataset to read, their rows, and the records that each worker gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate, islice

from recordspec.errors import Problem, RecordError, State, StoreError
from recordspec.locations import Location, disk_status
from recordspec.order.read_options import Batch, Shuffle
from recordspec.remote import RemotePath
from recordspec.schema.options import parse_bytes
from recordspec.schema.schema import Schema
from recordspec.store.dataset import StoredDataset
from recordspec.store.manifest import Manifest, Shard
from recordspec.store.shards import File, check_size
from recordspec.wire import tfrecord
from recordspec.wire.blocks import StoredBlocks
from recordspec.wire.compression import Compression
from recordspec.wire.file_types import compression_of
from recordspec.wire.framing import FRAME_BYTES

# The number of records from which the size of a row is estimated.
_SAMPLED = 100
# The bytes decoded by one call: with fewer, the calls cost more; with more, the data leaves the caches.
_CHUNK_ROWS = 2048
_CHUNK_BYTES = 4 << 20
# Bytes of a record from which copying it costs more than passing it on alone: measured with `shuffle(10_000)`
# on 2 cores, for records of 4 KiB, 8 KiB and 32 KiB.
_LARGE = 8 << 10
# Whole files are divided among workers if the largest number of rows is at most this many times the smallest.
_EVEN = 1.02


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Consecutive records of a file.

    Attributes:
        compression: the compression of the file, by its first bytes.
        rows: the number of rows; None if they were not counted.
        first: the number of records of the file before them.
        count: the number of records; None for all that follow.
        cut: whether the file has records after them.
        shard: the manifest entry of the file; None without a manifest.
        copy_sha256: the hash of a copy without corrupt records; empty for the file itself.
    """

    path: Location
    compression: Compression
    rows: int | None
    shard: Shard | None = None
    copy_sha256: str = ""
    first: int = 0
    count: int | None = None
    cut: bool = False

    @property
    def remote(self) -> RemotePath | None:
        """The file as an object in a store; None for a file on this machine."""
        return self.path if isinstance(self.path, RemotePath) else None


@dataclass(frozen=True)
class WorkerShard:
    """A worker's part of the records: number `worker`, from 0, of `workers`.

    Attributes:
        replicas: the replicas of each worker, between which a worker's part of a global batch is divided.
    """

    workers: int = 1
    worker: int = 0
    replicas: int = 1


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The records to read, of one worker or of all.

    Attributes:
        pieces: parts of files, in order; they do not overlap.
        block: the largest number of rows per block; None if each record is one row.
        others: the rows of every worker, if there are several.
        worker: the number of the worker that reads, from 0.
        class_counts: by label, the rows of every class in the splits that are read, if they were counted.
        manifest_identity: `Manifest.identity`, or for several folders, a hash of their identities; None if a
            manifest is missing.
        manifests: the manifests of the folders that have one.
    """

    pieces: tuple[Piece, ...]
    block: int | None
    others: tuple[int, ...] = ()
    worker: int = 0
    class_counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    manifest_identity: str | None = None
    manifests: Mapping[Location, Manifest] = field(default_factory=dict)

    def dataset(self, schema: Schema) -> StoredDataset:
        """The files of the pieces, with the schema to read them with. No store is asked for them."""
        return StoredDataset(tuple(piece.path for piece in self.pieces), self.manifests, schema)

    @property
    def folder(self) -> Location:
        """The folder of the first file."""
        return self.pieces[0].path.parent

    @property
    def workers(self) -> int:
        """The number of workers that share the files."""
        return max(1, len(self.others))

    @cached_property
    def rows(self) -> int | None:
        """The rows of all pieces; None if they were not counted."""
        rows = [piece.rows for piece in self.pieces]
        return None if None in rows else sum(row for row in rows if row is not None)

    def batches(self, batch: Batch | None) -> int | None:
        """The number of batches of one pass, the same for every worker; None if rows were not counted."""
        if self.rows is None:
            return None
        if batch is None:
            return max(self.others, default=self.rows)
        if batch.drop_remainder:
            return min(self.others, default=self.rows) // batch.size
        return -(-max(self.others, default=self.rows) // batch.size)

    @cached_property
    def row_bytes(self) -> float:
        """The mean bytes of a serialized row: from the manifest for uncompressed shards, else from the
        first records of a file; 0 if there are none.
        """
        shards = [piece.shard for piece in self.pieces if piece.shard is not None]
        if len(shards) == len(self.pieces) and all(piece.compression == "none" for piece in self.pieces):
            size = sum(shard.bytes - FRAME_BYTES * shard.records for shard in shards)
            return float(size / max(1, sum(shard.rows for shard in shards)))
        for piece in self.pieces:
            rows = size = 0
            with suppress(RecordError):  # reading the file raises it
                for record in islice(tfrecord.scan(piece.path), _SAMPLED):
                    rows += 1 if self.block is None else int(StoredBlocks.of_record(record.data).rows[0])
                    size += len(record.data)
            if rows:
                return size / rows
        return 0.0

    @cached_property
    def large(self) -> bool:
        """Whether records are passed on one by one, since copying them into batches costs more."""
        return self.row_bytes * (self.block or 1) >= _LARGE

    @cached_property
    def chunk(self) -> int:
        """Rows decoded by one call if there is no shuffle."""
        return max(1, min(_CHUNK_ROWS, int(_CHUNK_BYTES / max(1.0, self.row_bytes))))

    def buffer(self, shuffle: Shuffle) -> int:
        """The size of the shuffle buffer in rows."""
        if isinstance(shuffle.buffer, int):
            return shuffle.buffer
        return max(1, int(parse_bytes(shuffle.buffer) / max(1.0, self.row_bytes)))

    @property
    def uneven(self) -> bool:
        """Whether workers must leave rows out, or read some twice, to have equal numbers of batches."""
        return len(set(self.others)) > 1


# Returns the whole of a file, or of a copy without its corrupt records.
Intact = Callable[[File, Schema], Piece]


def plan_files(
    dataset: StoredDataset, share: WorkerShard | None = None, intact: Intact | None = None
) -> Plan:
    """Plans the records of files with a schema, or a worker's part of them.

    Args:
        intact: returns a file, or a copy without its corrupt records; None reads each file as it is.

    Raises StoreError if the files contradict their manifest, were written with another spec, or have too few
    records for the number of workers; RecordError if a file is no TFRecord file, or no record is left.
    """
    files, manifest, schema = dataset.checked_files(), dataset.manifest, dataset.schema
    assert schema is not None
    if intact is None:
        declared = None if manifest is None else manifest.compression
        pieces = tuple(_piece(file, declared, is_believed=dataset.is_believed) for file in files)
    else:
        pieces = tuple(intact(file, schema) for file in files)
    names = [path.name for path in dataset.paths]
    counts = {} if manifest is None else manifest.class_counts(manifest._splits_of(names))
    block, identity = files[0].block, dataset.identity
    whole = Plan(
        pieces=pieces,
        block=block,
        class_counts=counts,
        manifest_identity=identity,
        manifests=dataset.by_folder,
    )
    if whole.rows == 0 and any(piece.path != file.path for piece, file in zip(pieces, files, strict=True)):
        expected = "records that can be read"
        raise RecordError(Problem(where=str(dataset.folder), expected=expected, got="none"))
    made = whole if share is None else _shared(whole, share)
    if intact is not None or dataset.is_believed:  # skipping corrupt records has already read every byte
        return made
    framed = {file.path for file in files if file.framed}
    for piece in made.pieces:
        if piece.path in framed:
            continue
        # for a compressed shard in a store, staging compares the hash instead
        if piece.compression == "none" or piece.shard is None:
            check_file(piece.path, piece.compression)
    return made


def check_file(path: Location, compression: Compression) -> None:
    """Raises RecordError for a record length that crashes TensorFlow, or for compressed data in the middle of
    which TensorFlow's reader silently ends.

    Does nothing for a file in a store: its copy is checked.
    """
    if (stat := disk_status(path)) is not None:
        _check_file(path, compression, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))


@lru_cache(1 << 16)
def _check_file(path: Location, compression: Compression, stamp: tuple[int, ...]) -> None:
    """Checks a file once for each `stamp`, which changes with the file."""
    if compression == "none":
        tfrecord.check_lengths(path)
    else:
        tfrecord.check_joined(path, compression)


def _piece(file: File, declared: Compression | None, *, is_believed: bool) -> Piece:
    """A whole file. Raises StoreError if its size differs from the manifest.

    Makes no request for a file in a store that its manifest names.
    """
    if file.shard is not None and file.size is not None:
        check_size(file.path, file.shard, file.size)
    if declared is None or not (is_believed or isinstance(file.path, RemotePath)):
        declared = file.compression or compression_of(file.path)
    rows = None if file.shard is None else file.shard.rows
    return Piece(path=file.path, compression=declared, rows=rows, shard=file.shard)


def _shared(whole: Plan, share: WorkerShard) -> Plan:
    """The part of a worker: whole files if they divide evenly, else a range of all records."""
    if whole.block is not None and whole.rows is None:
        hint = "without one, blocks of rows cannot be divided among workers"
        raise StoreError(State(where=str(whole.folder), got="has no manifest", hint=hint))
    counted = [_counted(piece, whole.block) for piece in whole.pieces]
    shares = _by_files(counted, share.workers) or _by_ranges(counted, share.workers, whole.block)
    rows = tuple(sum(piece.rows or 0 for piece in pieces) for pieces in shares)
    if not all(rows):
        kind = "records" if whole.block is None else f"blocks (of {whole.block} rows)"
        got = str(sum(piece.count or 0 for piece in counted))
        expected = f"{kind} for {share.workers} workers"
        raise StoreError(Problem(where=str(whole.folder), expected=expected, got=got))
    return replace(whole, pieces=tuple(shares[share.worker]), others=rows, worker=share.worker)


def _counted(piece: Piece, block: int | None) -> Piece:
    """The piece with the number of its records."""
    if piece.rows is None:
        records = tfrecord.count(piece.path)
        return replace(piece, rows=records, count=records)
    return replace(piece, count=piece.rows if block is None else -(-piece.rows // block))


def _by_files(pieces: list[Piece], workers: int) -> list[list[Piece]]:
    """The files of every worker; empty if the files do not divide evenly."""
    shares = [[replace(piece, count=None) for piece in pieces[worker::workers]] for worker in range(workers)]
    rows = [sum(piece.rows or 0 for piece in pieces) for pieces in shares]
    even = len(pieces) % workers == 0 and max(rows) <= _EVEN * min(rows)
    return shares if even else []


def _by_ranges(pieces: list[Piece], workers: int, block: int | None) -> list[list[Piece]]:
    """Every worker's range of the records of all files, in order."""
    ends = list(accumulate((piece.count or 0 for piece in pieces), initial=0))
    bounds = [ends[-1] * worker // workers for worker in range(workers + 1)]
    shares: list[list[Piece]] = [[] for _ in range(workers)]
    for piece, start in zip(pieces, ends, strict=False):
        for worker, mine in enumerate(shares):
            first = max(bounds[worker], start) - start
            stop = min(bounds[worker + 1] - start, piece.count or 0)
            if first < stop:
                size, cut = block or 1, stop < (piece.count or 0)
                rows = min(piece.rows or 0, stop * size) - first * size
                mine.append(replace(piece, first=first, count=stop - first, rows=rows, cut=cut))
    return shares
