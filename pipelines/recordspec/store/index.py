"""The offsets of the records of shards: `index.bin` of a dataset, and `FILE.index` beside another file.

The index of a file is a header, groups of records, and residuals. A group holds the first offset and the
smallest frame size of GROUP records. A residual is the offset of a record less `first + number * smallest`,
stored in 0, 1, 2, 4 or 8 bytes; the width is the same for CHUNK records. Hence any offset is computed from
one group and one residual, and records of equal size take no residuals. All integers are little-endian.

The index of a compressed file has the offsets in the uncompressed bytes. After the residuals, it has the
number of these bytes, and the offset in the file of each PIECE of them. The index of a dataset is the
concatenation of its shards' indices, in the order of the splits and shards.
"""

from __future__ import annotations

import hashlib
import logging
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from recordspec.errors import Problem, RecordError, State, StoreError, system_errors
from recordspec.locations import Location, atomic_file, open_file, read_bytes
from recordspec.remote import RemotePath
from recordspec.store.manifest import INDEX, INDEX_FILE, Manifest, Shard
from recordspec.store.mapped_files import mapped_file
from recordspec.wire.arrays import Bytes, Ints
from recordspec.wire.compression import CODECS, PIECE, Compression
from recordspec.wire.file_types import compression_of
from recordspec.wire.framing import FRAME_BYTES, HEADER_BYTES, length_in
from recordspec.wire.tfrecord import RecordRange, record_ends, scan_chunks

log = logging.getLogger("recordspec")

# Records per group, and records whose residuals have the same width. Smaller groups have smaller residuals,
# but a group takes 21 bytes. Records of 1.3 KB that vary by a third take 2.2 bytes each.
GROUP, CHUNK = 128, 4096
# The largest index that is read: at two bytes a record, enough for two billion records.
_MOST_BYTES = 4 << 30

# magic with the version; the file's size, its SHA-256 or zeros, and its modification time or 0; the number of
# records, and of bytes of residuals
_HEADER = struct.Struct("<8sQ32sqQQ")
_FOOTER = struct.Struct("<I")  # CRC32C of all preceding bytes
_MAGIC, _COMPRESSED = b"rsindex\x01", b"rsindex\x02"
_SIZE = struct.Struct("<Q")  # the uncompressed bytes, in the index of a compressed file
_GROUP = np.dtype([("first", "<u8"), ("place", "<u8"), ("smallest", "<u4"), ("width", "u1")])
_ONE_GROUP = struct.Struct("<QQIB")
_WIDTHS = (0, 1, 2, 4, 8)
_IS_WIDTH = np.isin(np.arange(256), _WIDTHS)
# What a file without restart points is not.
_ALONE = "a file of which records can be read alone"
_RESHARD = "`recordspec reshard` compresses it with restart points"
_LARGEST = 0xFFFFFFFF  # the largest value of `smallest`: a frame of another writer may be larger

OffsetGroups = npt.NDArray[np.void]


@dataclass(frozen=True, kw_only=True)
class FileIndex:
    """The offsets of the records of a file.

    Attributes:
        bytes: the size of the file.
        sha256: the hash of the file, or `Shard.identity`; empty if unknown.
        mtime_ns: the modification time of the file; 0 if the hash identifies it.
        records: the number of records.
        size: the size of the file, uncompressed.
        restarts: where each piece of a compressed file begins, and where the last one ends, int64 `[p + 1]`;
            None for another file.
        data: the index as it is stored.
    """

    bytes: int
    sha256: str
    mtime_ns: int
    records: int
    size: int
    restarts: Ints | None
    data: memoryview

    def offsets(self, numbers: Ints) -> Ints:
        """The offset of each record, in uncompressed bytes, int64 `[n]`; for the number after the last
        record, the end of the last record. Takes constant time and memory for each.
        """
        offsets = np.full(len(numbers), self.size, np.int64)
        inside = np.flatnonzero(numbers < self.records)
        groups, within = self.groups[numbers[inside] // GROUP], numbers[inside] % GROUP
        values = groups["first"].astype(np.int64) + within * groups["smallest"].astype(np.int64)
        residuals = self.residuals
        for width in _WIDTHS[1:]:
            wide = np.flatnonzero(groups["width"] == width)
            places = groups["place"][wide].astype(np.int64) + within[wide] * width
            parts = residuals[places[:, None] + np.arange(width)]
            values[wide] += parts.view(f"<u{width}")[:, 0].astype(np.int64)
        offsets[inside] = values
        return offsets

    def frame(self, number: int) -> tuple[int, int]:
        """The offsets of a record and of the next one, as in `offsets`: NumPy takes ten times as long for a
        single record.
        """
        group, within = divmod(number, GROUP)
        place = _HEADER.size + group * _GROUP.itemsize
        first, at, smallest, width = _ONE_GROUP.unpack_from(self.data, place)
        at += _HEADER.size + -(-self.records // GROUP) * _GROUP.itemsize + within * width
        start = first + within * smallest + int.from_bytes(self.data[at : at + width], "little")
        if number + 1 == self.records:
            return start, self.size
        if within + 1 == GROUP:
            return start, self.frame(number + 1)[0]
        at += width
        return start, first + (within + 1) * smallest + int.from_bytes(self.data[at : at + width], "little")

    @property
    def groups(self) -> OffsetGroups:
        """The groups of records, `[g]`."""
        return np.frombuffer(self.data, _GROUP, -(-self.records // GROUP), _HEADER.size)

    @property
    def residuals(self) -> Bytes:
        """The residuals, uint8 `[r]`."""
        start, stop = _HEADER.size + self.groups.nbytes, len(self.data) - _FOOTER.size
        if self.restarts is not None:
            stop -= _SIZE.size + 8 * (len(self.restarts) - 1)
        return np.frombuffer(self.data, np.uint8)[start:stop]

    @property
    def is_sound(self) -> bool:
        """Whether every residual is present, so that no memory outside of the index is read, and pieces have
        an end after their beginning.
        """
        if self.restarts is not None and (np.diff(self.restarts, prepend=0) < 0).any():
            return False
        groups = self.groups
        counts = np.minimum(GROUP, self.records - GROUP * np.arange(len(groups)))
        stops = groups["place"] + (counts * groups["width"]).astype(np.uint64)
        within = (groups["place"] <= stops) & (stops <= len(self.residuals)) & _IS_WIDTH[groups["width"]]
        return bool(within.all())

    def is_of(self, shard: Shard) -> bool:
        """Whether this is the index of a shard."""
        return (self.bytes, self.sha256, self.records) == (shard.bytes, shard.identity, shard.records)


class IndexWriter:
    """Builds the index of a file from its frames, in order; in memory, with about two bytes for each."""

    def __init__(self) -> None:
        self.records = 0
        self._offset = 0
        self._waiting: list[Ints] = []  # offsets of records not yet in a chunk
        self._number_waiting = 0
        self._groups: list[bytes] = []
        self._residuals: list[bytes] = []
        self._place = 0

    def add(self, sizes: Ints) -> None:
        """Adds frames of the given sizes in bytes, int64 `[n]`."""
        ends = np.cumsum(sizes) + self._offset
        self._waiting.append(ends - sizes)
        self.records += len(sizes)
        self._number_waiting += len(sizes)
        self._offset = int(ends[-1]) if len(ends) else self._offset
        if self._number_waiting >= CHUNK:
            starts = np.concatenate(self._waiting)
            whole = len(starts) - len(starts) % CHUNK
            for first in range(0, whole, CHUNK):
                self._add_chunk(starts[first : first + CHUNK])
            self._waiting, self._number_waiting = [starts[whole:]], len(starts) - whole

    def _add_chunk(self, starts: Ints) -> None:
        """Adds a chunk of records. Only the last chunk of a file may be smaller than CHUNK."""
        count = -(-len(starts) // GROUP)
        padded = np.full(count * GROUP, self._offset, np.int64)
        padded[: len(starts)] = starts
        table = padded.reshape(count, GROUP)
        sizes = np.diff(table, axis=1)
        real = np.arange(1, count * GROUP + 1).reshape(count, GROUP)[:, :-1] < len(starts)
        smallest = np.where(real, sizes, np.iinfo(np.int64).max).min(axis=1)
        smallest[~real.any(axis=1)] = 0
        smallest = np.minimum(smallest, _LARGEST)
        residuals = (table - table[:, :1] - np.arange(GROUP) * smallest[:, None]).ravel()[: len(starts)]
        largest = int(residuals.max())
        width = next(width for width in _WIDTHS if largest < 1 << 8 * width)
        groups = np.empty(count, _GROUP)
        groups["first"], groups["smallest"], groups["width"] = table[:, 0], smallest, width
        groups["place"] = self._place + np.arange(count) * GROUP * width
        self._groups.append(groups.tobytes())
        if width:
            self._residuals.append(residuals.astype(f"<u{width}").tobytes())
            self._place += len(starts) * width

    def close(
        self, size: int, sha256: str = "", mtime_ns: int = 0, restarts: Sequence[int] | None = None
    ) -> bytes:
        """Returns the index of a file with this size, and this hash or modification time.

        Args:
            restarts: where each piece of a compressed file begins.
        """
        rest = np.concatenate([np.zeros(0, np.int64), *self._waiting])
        if len(rest):
            self._add_chunk(rest)
        self._waiting, self._number_waiting = [], 0
        hashed = bytes.fromhex(sha256) if sha256 else bytes(32)
        magic = _MAGIC if restarts is None else _COMPRESSED
        head = _HEADER.pack(magic, size, hashed, mtime_ns, self.records, self._place)
        data = b"".join([head, *self._groups, *self._residuals])
        if restarts is not None:
            data += _SIZE.pack(self._offset) + np.array(restarts, "<u8").tobytes()
        return data + _FOOTER.pack(crc32c(data))


def of_bytes(data: bytes) -> FileIndex:
    """Parses the index of one file, from a copy of `data`."""
    return next(parse(memoryview(data), "an index"))


def parse(data: memoryview, where: str) -> Iterator[FileIndex]:
    """Parses the indices of files, one after another. Raises StoreError if an index is truncated or was
    changed.
    """
    while data:
        index = _parsed(data, where)
        yield index
        data = data[len(index.data) :]


def _parsed(data: memoryview, where: str) -> FileIndex:
    if len(data) >= _HEADER.size + _FOOTER.size:
        magic, stored, hashed, mtime_ns, records, residuals = _HEADER.unpack_from(data)
        stop = _HEADER.size + -(-records // GROUP) * _GROUP.itemsize + residuals
        size, restarts = stored, None
        if magic == _COMPRESSED and len(data) >= stop + _SIZE.size:
            (size,) = _SIZE.unpack_from(data, stop)
            pieces = data[stop + _SIZE.size :][: 8 * -(-size // PIECE)]
            stop += _SIZE.size + len(pieces)
            if len(pieces) % 8 == 0:
                restarts = np.append(np.frombuffer(pieces, "<u8").astype(np.int64), stored)
        known = magic == _MAGIC or restarts is not None
        if known and data[stop : stop + _FOOTER.size] == _FOOTER.pack(crc32c(data[:stop])):
            sha256 = hashed.hex() if any(hashed) else ""
            index = FileIndex(
                bytes=stored,
                sha256=sha256,
                mtime_ns=mtime_ns,
                records=records,
                size=size,
                restarts=restarts,
                data=data[: stop + _FOOTER.size],
            )
            if index.is_sound:
                return index
    raise _unusable(where, "is not an index, or was changed after it was written")


def _unusable(where: str, got: str) -> StoreError:
    return StoreError(State(where=where, got=got, hint="`recordspec index` makes it again"))


def _bytes_of(path: Location) -> memoryview:
    """The bytes of a file; a local file is mapped. Raises StoreError."""
    with system_errors("read", path):
        if isinstance(path, Path) and stat.S_ISREG((status := path.stat()).st_mode) and status.st_size:
            return mapped_file(path).data
    return memoryview(read_bytes(path, _MOST_BYTES))


def of_file(path: Location, sha256: str = "") -> tuple[bytes, int]:
    """Builds the index of a file from the lengths of its records. Returns it and the number of records. A
    compressed file is decompressed twice.

    The index stores the file's hash if that is known, else its modification time. Raises RecordError at the
    first invalid length, and for a compressed file without restart points.
    """
    writer, status, start, restarts = IndexWriter(), path.stat(), 0, None
    if (compression := compression_of(path)) != "none":
        restarts = _restarts_of(path, compression)
        for chunk in scan_chunks(path):
            writer.add(chunk.sizes)
    else:
        for _, ends in record_ends(path):
            writer.add(np.diff(ends, prepend=start))
            start = int(ends[-1])
    mtime_ns = 0 if sha256 else status.st_mtime_ns
    return writer.close(status.st_size, sha256, mtime_ns, restarts), writer.records


def _restarts_of(path: Location, compression: Compression) -> list[int]:
    restarts = CODECS[compression].restarts(_bytes_of(path))
    if restarts is None:
        got = f"{compression} without restart points"
        raise RecordError(Problem(where=str(path), expected=_ALONE, got=got, hint=_RESHARD))
    return restarts


def made_again(path: Location) -> FileIndex:
    """Builds the index of a file without one. Raises RecordError at the first invalid length."""
    return of_bytes(of_file(path)[0])


def check_records(path: Location, shard: Shard, index: FileIndex) -> None:
    """Raises StoreError if the file has a different number of records than the manifest says."""
    if index.records != shard.records:
        expected = f"{shard.records:,} records, as the manifest says"
        raise StoreError(Problem(where=str(path), expected=expected, got=f"{index.records:,}"))


def of_shard(folder: Location, shard: Shard) -> bytes:
    """Builds the index of a shard. Raises RecordError at the first invalid length, StoreError if the shard is
    not the one that the manifest names.
    """
    data, _ = of_file(folder / shard.file, shard.identity)
    check_records(folder / shard.file, shard, of_bytes(data))
    return data


def of_dataset(folder: Location, manifest: Manifest) -> Mapping[str, FileIndex]:
    """The index of each shard, by file; empty for a dataset without an index.

    Raises StoreError if the index file was changed, or belongs to other shards.
    """
    if manifest.index_sha256 is None:
        return {}
    path = folder / manifest.name_of(INDEX_FILE)
    data, shards = _bytes_of(path), manifest.all_shards
    if hashlib.sha256(data).hexdigest() != manifest.index_sha256:
        raise _unusable(str(path), "was changed after it was written")
    indices = list(parse(data, str(path)))
    if len(indices) != len(shards) or not all(map(FileIndex.is_of, indices, shards)):
        raise _unusable(str(path), "is the index of other shards")
    return {shard.file: index for shard, index in zip(shards, indices, strict=True)}


class Indices:
    """The indices of files, each read once. An unusable index is logged.

    Args:
        manifests: the manifests of datasets, by folder.
    """

    def __init__(self, manifests: Mapping[Location, Manifest]) -> None:
        self._manifests = manifests
        self._datasets: dict[Location, Mapping[str, FileIndex]] = {}

    def of(self, path: Location) -> FileIndex | None:
        """The index of a file; None if it has none, or has changed since it was indexed."""
        folder = path.parent
        if folder in self._manifests and folder not in self._datasets:
            try:
                self._datasets[folder] = of_dataset(folder, self._manifests[folder])
            except StoreError as error:
                log.warning("%s", error)
                self._datasets[folder] = {}
        index = self._datasets.get(folder, {}).get(path.name) or _beside(path)
        if index is None:
            return None
        if isinstance(path, RemotePath) and folder in self._manifests:  # a request for each file
            return index
        status = path.stat()
        # an object in a store does not change, but its time differs from that of the indexed file
        known = not index.mtime_ns or isinstance(path, RemotePath) or status.st_mtime_ns == index.mtime_ns
        return index if known and status.st_size == index.bytes else None


def _beside(path: Location) -> FileIndex | None:
    with suppress(StoreError, ValueError):
        path = path.with_name(f"{path.name}{INDEX}")
        (index,) = parse(_bytes_of(path), str(path))
        return index
    return None


def find_records(path: Location, wanted: Iterable[int], index: FileIndex | None) -> Iterator[RecordRange]:
    """Yields the byte ranges of records of an uncompressed file, by ascending numbers. Ends at the first
    number that is too large.

    If there is no index, or no such record begins at its offset, the lengths of all records before are read.
    Raises RecordError if a record cannot be reached.
    """
    walk, first, places = (
        record_ends(path),
        0,
        np.zeros(1, np.int64),
    )  # offsets of records from `first` on
    for number in wanted:
        if index is not None:
            start, stop = index.offsets(np.array([number, number + 1])).tolist()
            if _is_frame(path, number, start, stop):
                yield RecordRange(number, start, stop)
                continue
        while number - first >= len(places) - 1:
            last = places[-1:]
            first, ends = next(walk, (0, last[:0]))
            if not len(ends):
                return
            places = np.concatenate([last, ends])
        if index is not None and number < index.records:
            hint = "`recordspec index` makes it again"
            log.warning("%s: its index is not used, as it is of another file (%s)", path, hint)
            index = None
        at = number - first
        yield RecordRange(number, int(places[at]), int(places[at + 1]))


def _is_frame(path: Location, number: int, start: int, stop: int) -> bool:
    """Whether a frame with the length `stop - start` begins at `start`, judged by its header."""
    if start < 0:
        return False
    with open_file(path) as file:
        file.seek(start)
        header = file.read(HEADER_BYTES)
    return length_in(header) == stop - start - FRAME_BYTES


def indexed(manifest: Manifest, folder: Path, part: Callable[[Shard], bytes | memoryview]) -> Manifest:
    """Writes the index of a dataset durably into a folder, and returns the manifest with its hash.

    Args:
        part: returns the index of a shard.
    """
    digest = hashlib.sha256()
    with atomic_file(folder / manifest.name_of(INDEX_FILE)) as fresh, fresh.open("wb") as file:
        for data in map(part, manifest.all_shards):
            file.write(data)
            digest.update(data)
    return replace(manifest, index_sha256=digest.hexdigest())
