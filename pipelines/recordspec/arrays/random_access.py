"""`recordspec.open`: random access to the rows of files by number, as NumPy values, without TensorFlow."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from recordspec import html
from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, counted, describe, show_text
from recordspec.locations import AnyPath, Location
from recordspec.order.global_order import WINDOW_ROWS, BlockOrder, Permutation, permutation
from recordspec.order.lane_order import LaneOrder
from recordspec.order.read_options import Read, Staging
from recordspec.remote import RemotePath
from recordspec.schema import numpy_decoder
from recordspec.schema.feature_set import ALL_SECTIONS
from recordspec.schema.options import parse_bytes
from recordspec.schema.ragged_array import divided
from recordspec.schema.row_blocks import (
    Sections,
    TakenRows,
    records_with,
    rows_of_blocks,
    single_strings,
)
from recordspec.schema.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.dataset import StoredDataset, without_schema
from recordspec.store.expand import Files, Split
from recordspec.store.index import FileIndex, check_records, made_again, of_bytes
from recordspec.store.kept_pieces import KeptPieces
from recordspec.store.manifest import KEYS_FILE, manifest_in
from recordspec.store.mapped_files import MappedFiles, are_mappable
from recordspec.store.ranged_files import RangedFiles
from recordspec.store.shards import block_in, check_size, listed_files
from recordspec.wire import native
from recordspec.wire.arrays import ArrowArray, Ints, bytes_in, joined, offsets
from recordspec.wire.blocks import block_key
from recordspec.wire.columns import Section
from recordspec.wire.permutation import mixed
from recordspec.wire.record_batch import strings_in_place

# The largest number of stored bytes decoded together. malloc does not use the memory of more rows again: each
# page of it costs a fault. Without windows, each block is decoded whole for every chunk.
_CHUNK_BYTES, _TAKEN_BYTES, _WHOLE_BYTES = 2 << 20, 4 << 20, 32 << 20
# The largest decoded window of blocks that is kept. Two are, while rows of both are read.
_WINDOW_BYTES = 120 << 20


class Rows:
    """Random access to the rows of files by number, from 0 on, across all files in order.

    `rows[i]` is one row, a dict by feature; `rows[a:b]` and `rows[[i, j, k]]` are batches. The values equal
    those of `Schema.decode`, in NumPy: see `Schema.decode_numpy`. The index of a dataset, `index.bin`, has
    the offset of each record. For files without an index, it is computed from the record lengths when they
    are opened.

    Files are mapped into memory; of objects in a store and of compressed files, the pieces of 256 KiB that
    are wanted are read. May be used from several threads and pickled, and local files in forked processes.

    Raises:
        StoreError: there is no file, an object has no index, or a file was written with another schema.
        RecordError: a file is compressed without restart points, as other programs write it, or has an
            invalid record length.

    Attributes:
        schema: the schema; None for files without a schema, which only `records` can read.
        manifest: the manifest of the dataset; None for other files.

    Example:
        >>> rows = rs.open("data/points/train-*")
        >>> len(rows), sorted(rows[0])
        (15, ['inside', 'x'])
        >>> rows[[3, 1]]["x"].shape
        (2,)
    """

    # The number of lanes and the rows of a window, of an order in lanes.
    _lanes: tuple[int, int] | None = None

    def __init__(self, files: Files, schema: Schema | AnyPath | None = None, *, split: Split = None) -> None:
        self._read_dataset(StoredDataset.asked(files, schema, split, "rs.open"))

    @classmethod
    def _of(cls, dataset: StoredDataset) -> Rows:
        """The rows of a dataset whose files are known: no store is asked for them.

        Example:
            >>> from recordspec.store.dataset import StoredDataset
            >>> len(type(rs.open("data/points"))._of(StoredDataset.of("data/points")))
            20
        """
        made: Rows = object.__new__(cls)
        made._read_dataset(dataset)
        return made

    def _read_dataset(self, dataset: StoredDataset) -> None:
        listed = dataset.shards
        # one that does not list all files says nothing of the others
        self.manifest = dataset.manifest if dataset.is_listed else None
        self.schema = dataset.given if self.manifest is None else dataset.schema
        if dataset.mismatches:
            raise StoreError(dataset.mismatches)
        for path, shard in listed.items():
            if not isinstance(path, RemotePath):  # its size comes with its bytes
                check_size(path, shard, path.stat().st_size)
        indices = {path: dataset.index_of(path) or _index_of(path) for path in dataset.paths}
        for path, shard in dataset.shards.items():
            check_records(path, shard, indices[path])
        self._open(dataset.paths, list(indices.values()), *self._blocks_of(dataset))

    def _blocks_of(self, dataset: StoredDataset) -> tuple[int | None, list[int] | None]:
        """The largest number of rows of a record, and the rows of each file; None if each record is one."""
        paths, manifest = dataset.paths, self.manifest
        block = block_in(paths) if manifest is None else manifest.block
        if block is None:
            return None, None
        if manifest is None or self.schema is None:
            got, hint = "has blocks of rows, which only a manifest counts", "write it with recordspec"
            raise StoreError(State(where=str(paths[0]), got=got, hint=hint))
        return block, [file.rows_from(0) or 0 for file in listed_files(paths, manifest)]

    def _open(
        self,
        paths: Sequence[Location],
        indices: Sequence[FileIndex],
        block: int | None,
        counts: list[int] | None,
    ) -> None:
        self._paths, self._indices, self._block, self._counts = paths, indices, block, counts
        remote = [path for path in paths if isinstance(path, RemotePath)]
        if remote and len(remote) < len(paths):
            got, hint = "is in an object store, and others are not", "open them apart"
            raise StoreError(State(where=str(remote[0]), got=got, hint=hint))
        in_pieces = remote or any(index.restarts is not None for index in indices)
        in_pieces = in_pieces or not are_mappable(len(paths))
        self._files = RangedFiles(paths, indices) if in_pieces else MappedFiles(paths, indices)
        self._first = self._files.first if counts is None else offsets(np.array(counts, np.int64))
        self._firsts: list[int] = self._first.tolist()

    def __getstate__(self) -> dict[str, Any]:
        names = ("schema", "manifest", "_paths", "_block", "_counts", "_lanes")
        state = {name: getattr(self, name) for name in names}
        return state | {"indices": [bytes(index.data) for index in self._indices]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.schema, self.manifest, self._lanes = (state[name] for name in ("schema", "manifest", "_lanes"))
        indices = list(map(of_bytes, state["indices"]))
        self._open(state["_paths"], indices, state["_block"], state["_counts"])

    def __repr__(self) -> str:
        # Grain resumes only if the text of the source is the same
        files = counted(len(self._paths), "file")
        dataset = "" if self.manifest is None else f", dataset {self.manifest.identity[:12]}"
        return show_text(f"Rows({len(self):,} in {files} of {self._paths[0].parent}{dataset})")

    def _repr_html_(self) -> str:
        return html.in_notebook(self._html)

    def _html(self) -> Iterator[html.Markup]:
        from recordspec.tables.table import scan  # a notebook alone needs it

        yield html.heading(f"{counted(len(self), 'row')} of {self._paths[0].parent}")
        schema = self.schema if self.manifest is None else None
        columns = None if self.schema is None else list(self.schema.names)
        yield html.Markup(scan(list(self._paths), schema, columns=columns)._repr_html_())

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, rows: Any) -> dict[str, Any]:
        if hasattr(rows, "__index__") and not isinstance(rows, np.ndarray):
            batch = self._decoded(np.array([self._checked_one(rows)]))
            return {name: value[0] for name, value in batch.items()}
        if isinstance(rows, slice):
            return self._decoded(np.arange(*rows.indices(len(self)), dtype=np.int64))
        return self._decoded(self._checked(rows))

    def __getitems__(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """The rows with the given numbers, each like `rows[i]`. PyTorch's DataLoader calls this method for
        batches.

        Example:
            >>> rows = rs.open("data/points/train-*")
            >>> len(rows.__getitems__([0, 3]))
            2
        """
        return list(self._each(self._checked(rows)))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._each(np.arange(len(self)))

    def _each(self, numbers: Ints) -> Iterator[dict[str, Any]]:
        """Each row, not padded to the longest of the others."""
        chunk = self._decoded_chunk()
        for start in range(0, len(numbers), chunk):
            some = numbers[start : start + chunk]
            batch = self._decoded(some, padded=False)
            for row in range(len(some)):
                yield {name: value[row] for name, value in batch.items()}

    def only(self, names: Iterable[str]) -> Rows:
        """The rows with only the given features decoded.

        Example:
            >>> list(rs.open("data/points").only(["x"])[3])
            ['x']
        """
        made: Rows = object.__new__(type(self))
        vars(made).update(vars(self), schema=None if self.schema is None else self.schema.only(names))
        return made

    def records(self, rows: Sequence[int] | Ints) -> list[bytes]:
        """The serialized records of rows. For rows in blocks, the records that the layout `rows` would have.

        Args:
            rows: the row numbers.

        Raises IndexError for a number that is too large, RecordError for a corrupt record.

        Example:
            >>> rows = rs.open("data/points/train-*")
            >>> batch = rows.schema.decode_numpy(rows.records([3]))
            >>> batch["x"].tolist() == [rows[3]["x"]]
            True
        """
        if self._block is None and len(rows) == 1:
            return [self._files.record(self._checked_one(rows[0]))]
        numbers = self._checked(rows)
        if self._block is None:
            data, places = self._files.records(numbers)
            view, ends = data.data, places.tolist()
            return [bytes(view[start:stop]) for start, stop in pairwise(ends)]
        assert self.schema is not None
        sections = self._taken(self.schema, numbers).sections()
        return bytes_in(records_with(self.schema, sections, len(numbers)))

    def by_key(self, key: Any) -> dict[str, Any]:
        """The row with a key, like `rows[i]`.

        Args:
            key: the value of the key, or a tuple with a value for each of its columns, as they were written.

        Raises KeyError if no row has it, StoreError if the dataset has no unique keys, or has lost some.

        Example:
            >>> rs.write([{"x": 0.5, "inside": "yes"}], schema, "data/one", key="inside").rows("train")
            1
            >>> float(rs.open("data/one").by_key("yes")["x"])
            0.5
        """
        manifest, folder = self.manifest, self._paths[0].parent
        if manifest is None or manifest.keys_sha256 is None:
            hint = "`write: {key: ...}` writes the keys of its rows"
            raise StoreError(State(where=str(folder), got="has no unique keys", hint=hint))
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(manifest.key):
            expected = f"a value for each of {', '.join(manifest.key)}"
            raise SpecError(Problem(path=("key",), expected=expected, got=describe(key)))
        if manifest_in(folder) != manifest:
            got, hint = "was replaced, or added to, since it was opened", "open it again"
            raise StoreError(State(where=str(folder), got=got, hint=hint))
        columns = dict(zip(manifest.key, ([value] for value in keys), strict=True))
        wanted = key_hashes.hashes(key_hashes.key_bytes(columns, manifest.key))[0]
        path = key_hashes.whole(folder, manifest)
        if path is None:  # a row without a hash would be told as a row that does not exist
            got, hint = "does not have the key of each row", "`recordspec verify` tells what changed"
            raise StoreError(State(where=str(folder / manifest.name_of(KEYS_FILE)), got=got, hint=hint))
        hashed, places = key_hashes.in_range(path, wanted[0], wanted[0])
        starts = manifest._starts()
        for place in places[hashed[:, 1] == wanted[1]].tolist():
            for file, path in enumerate(self._paths):
                row = place - starts[path.name]
                if 0 <= row < self._first[file + 1] - self._first[file]:
                    return self[int(self._first[file]) + row]
        raise KeyError(key)

    def places(self, rows: Sequence[int] | Ints) -> list[tuple[Location, int, int]]:
        """The file of each row, the number of its record in that file, and its position in the block; 0
        without blocks.

        Example:
            >>> path, record, _ = rs.open("data/points/train-*").places([3])[0]
            >>> path.name, record
            ('train-00000-of-00001.tfrecord', 3)
        """
        numbers = self._checked(rows)
        files = np.searchsorted(self._first, numbers, "right") - 1
        records, within = np.divmod(numbers - self._first[files], self._block or 1)
        placed = zip(files.tolist(), records.tolist(), within.tolist(), strict=True)
        return [(self._paths[file], record, row) for file, record, row in placed]

    @property
    def _has_blocks(self) -> bool:
        """Whether rows are in blocks.

        Example:
            >>> rs.open("data/points")._has_blocks
            False
        """
        return self._block is not None

    @property
    def _block_sizes(self) -> Ints | None:
        """The rows of each block, int64 `[b]`; None if rows are not in blocks.

        Example:
            >>> rs.open("data/points")._block_sizes is None
            True
        """
        if self._block is None:
            return None
        rows, records = np.diff(self._first), np.diff(self._files.first)
        sizes = np.full(int(records.sum()), self._block)
        last = np.cumsum(records)[records > 0] - 1
        sizes[last] = (rows - (records - 1) * self._block)[records > 0]
        return sizes

    def _in_epoch(self, epoch: int, seed: int | None) -> Permutation:
        """The order of an epoch; without a seed, that of the files.

        Example:
            >>> import numpy as np
            >>> rs.open("data/points")._in_epoch(0, None).rows_at(np.arange(3)).tolist()
            [0, 1, 2]
        """
        if self._lanes is None or seed is None:
            return permutation(len(self), seed, epoch, self._block_sizes)
        return LaneOrder(np.diff(self._first), *self._lanes, mixed(seed, epoch))

    def _ordered(self, read: Read) -> Rows:
        """The rows in the order of epochs that the options choose, and pieces of objects where they stay.

        Example:
            >>> from recordspec.order.read_options import Read, Shuffle
            >>> rows = rs.open("data/points")._ordered(Read(shuffle=Shuffle(lanes=4, window=2)))
            >>> sorted(rows._in_epoch(0, 1).rows_at(np.arange(20)).tolist()) == [*range(20)]
            True
        """
        shuffle = read.shuffle
        remote = isinstance(self._paths[0], RemotePath)
        if isinstance(self._files, RangedFiles) and remote and isinstance(read.staging, Staging):
            self._files.kept = KeptPieces.of(read.staging.folder, read.staging.size)
        if shuffle is None:
            return self
        if shuffle.lanes is None:
            if not self._is_mapped:
                is_compressed = any(index.restarts is not None for index in self._indices)
                many = f"{len(self._paths):,} files, more than a process may map"
                what = "files in an object store" if remote else "compressed files" if is_compressed else many
                expected = f"`lanes` for {what}"
                hint = "`shuffle: {lanes: 240, seed: 1}`"
                raise SpecError(Problem(path=("shuffle",), expected=expected, got="`global`", hint=hint))
            return self
        window = shuffle.window
        if isinstance(window, str):
            window = max(1, int(parse_bytes(window) / max(1, self._row_bytes)))
        made: Rows = object.__new__(type(self))
        vars(made).update(vars(self), _lanes=(shuffle.lanes, window))
        return made

    @property
    def _is_mapped(self) -> bool:
        """Whether the files are mapped into memory, and not read in pieces.

        Example:
            >>> rs.open("data/points")._is_mapped
            True
        """
        return self._files.stays

    def _expect(self, numbers: Ints, order: Permutation | None = None) -> None:
        """Begins to read pieces with rows that will be wanted next.

        Args:
            order: the order in which rows are read: after some of a lane, its next ones are wanted.

        Example:
            >>> rs.open("data/points")._expect(np.array([3, 1]))
        """
        if self._is_mapped:
            return
        stops = order.stops_of(numbers) if isinstance(order, LaneOrder) else None
        if self._block is not None:
            numbers, chosen = np.unique(self._in_blocks(numbers)[0], return_index=True)
            stops = None if stops is None else self._in_blocks(stops[chosen] - 1)[0] + 1
        self._files.expect(numbers, stops)

    @property
    def _epoch_rows(self) -> int:
        """The number of rows of an epoch.

        Example:
            >>> rs.open("data/points")._epoch_rows
            20
        """
        return len(self)

    @property
    def _order_options(self) -> dict[str, Any]:
        """What determines the order of an epoch beside the options of reading, as JSON values.

        Example:
            >>> rs.open("data/points")._order_options
            {}
        """
        return {}

    def _chunk(self, windows: KeptBlocks | None = None) -> int:
        """The number of rows to read together. For blocks without windows, the rows of a window, so that each
        block is decoded once in any order; fewer if rows have many bytes.

        Example:
            >>> rs.open("data/points")._chunk()
            16384
        """
        if self._block is None:
            return self._rows_in(_CHUNK_BYTES)
        return self._rows_in(_WHOLE_BYTES if windows is None else _TAKEN_BYTES)

    @property
    def _row_bytes(self) -> float:
        """The mean bytes of a stored row.

        Example:
            >>> 10 < rs.open("data/points")._row_bytes < 1000
            True
        """
        return self._files.bytes / max(1, len(self))

    def _rows_in(self, size: int) -> int:
        """The number of rows of so many stored bytes, at most those of a window.

        Example:
            >>> rs.open("data/points")._rows_in(1)
            1
        """
        return max(1, min(WINDOW_ROWS, int(size / max(1, self._row_bytes))))

    def _decoded_chunk(self, windows: KeptBlocks | None = None) -> int:
        """The number of rows to decode together; 1 if decoding them together would take more memory, or give
        other values.

        Example:
            >>> rs.open("data/points")._decoded_chunk()
            16384
        """
        return self._chunk(windows) if self.schema is not None and self.schema._keeps_unpadded else 1

    def batches(self, rows: Any, sizes: Sequence[int] | Ints) -> Iterator[dict[str, Any]]:
        """The rows with the given numbers, in batches of the given sizes, decoded together if possible.

        Raises the errors of `rows[...]`, and SpecError if the sizes do not add up to the number of rows.

        Example:
            >>> rows = rs.open("data/points/train-*")
            >>> [len(batch["x"]) for batch in rows.batches([5, 3, 8], [2, 1])]
            [2, 1]
        """
        numbers, sizes = self._checked(rows), np.asarray(sizes, np.int64)
        if (sizes < 0).any() or sizes.sum() != len(numbers):
            expected, got = f"sizes of {counted(len(numbers), 'row')} in all", str(sizes.tolist())
            raise SpecError(Problem(path=("sizes",), expected=expected, got=got))
        return self._batches(numbers, sizes)

    def _batches(
        self, numbers: Ints, sizes: Ints, windows: KeptBlocks | None = None
    ) -> Iterator[dict[str, Any]]:
        """`batches` of numbers that exist.

        Args:
            windows: keeps the decoded blocks of an order; None to decode the blocks of these rows.

        Example:
            >>> import numpy as np
            >>> rows = rs.open("data/points")
            >>> [len(batch["x"]) for batch in rows._batches(np.array([5, 3, 8]), np.array([2, 1]))]
            [2, 1]
        """
        if self.schema is not None and not self.schema._keeps_unpadded:
            divided_rows = np.split(numbers, np.cumsum(sizes)[:-1])
            return iter([self._decoded(some, windows=windows) for some in divided_rows])
        values = self._decoded(numbers, padded=False, windows=windows)
        parts = {name: divided(value, sizes) for name, value in values.items()}
        pads = {} if self.schema is None else self.schema._padded_to_batch

        def batch(place: int) -> dict[str, Any]:
            made = {name: some[place] for name, some in parts.items()}
            return made | {name: made[name].to_dense(feature.pad) for name, feature in pads.items()}

        return map(batch, range(len(sizes)))  # each batch is padded when it is taken

    def _checked(self, rows: Any) -> Ints:
        """Row numbers, int64 `[n]`; negative numbers count from the end. Raises IndexError."""
        numbers = np.asarray(rows)
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers.ndim != 1):
            raise TypeError(f"expected numbers of rows, got {describe(rows)}")
        wrong = (numbers >= len(self)) | (numbers.astype(np.int64) < -len(self))
        if wrong.any():
            raise self._no_row(numbers[wrong][0])
        numbers = numbers.astype(np.int64)
        return np.where(numbers < 0, numbers + len(self), numbers)

    def _checked_one(self, row: Any) -> int:
        """`_checked` for a single number: NumPy takes twenty times as long."""
        if isinstance(row, bool):
            raise TypeError(f"expected numbers of rows, got {describe(row)}")
        number, count = operator.index(row), self._firsts[-1]
        if not -count <= number < count:
            raise self._no_row(number)
        return number if number >= 0 else number + count

    def _no_row(self, number: Any) -> IndexError:
        return IndexError(f"row {number}: there are {len(self):,}")

    def _decoded(
        self,
        numbers: Ints,
        *,
        padded: bool = True,
        windows: KeptBlocks | None = None,
    ) -> dict[str, Any]:
        if self.schema is None:
            raise without_schema(self._paths[0].parent, "rs.open")
        try:
            if self._block is not None:
                taken = self._taken(self.schema, numbers, windows)
                return numpy_decoder.decode_taken(self.schema, taken, padded=padded)
            data, places = self._files.records(numbers)
            starts, stops = places[:-1], places[1:]
            return numpy_decoder.decode(self.schema, data, starts, stops, padded=padded)
        except RecordError as error:
            if error.row is None:
                raise
            raise RecordError(error.at(self._place(int(numbers[error.row]))).problems) from None

    def _taken(self, schema: Schema, numbers: Ints, windows: KeptBlocks | None = None) -> TakenRows:
        """Rows of blocks. Without windows, each block is decoded once.

        Args:
            schema: the schema of the features to decode, which is also that of the windows.
        """
        blocks, within = self._in_blocks(numbers)
        if windows is not None:
            return windows.take(blocks, within)
        decoded = DecodedBlocks.of(self, schema, np.unique(blocks))
        return TakenRows(len(numbers), [(decoded.sections, decoded.rows_at(blocks, within), None)])

    def _in_blocks(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The block of each row, counted across all files, and the number of the row in the block."""
        files = np.searchsorted(self._first, numbers, "right") - 1
        records, within = np.divmod(numbers - self._first[files], self._block or 1)
        return records + self._files.first[files], within

    def _windows(self, schema: Schema | None, order: Permutation, position: int = 0) -> KeptBlocks | None:
        """Windows for reading the rows of blocks in an order; None without blocks, or if windows would take
        too much memory.

        Args:
            schema: the schema of the features to decode.
            position: the position at which reading begins.
        """
        if self._block is None or schema is None or position >= len(self):
            return None
        if self._lanes is not None:
            return self._recent_blocks(schema)
        blocks, _ = self._in_blocks(order.rows_at(np.array([position])))
        decoders = [DecodedBlocks.of]
        if native.library() is not None and self._files.stays and single_strings(schema):
            decoders.append(DecodedBlocks.in_place)
        for decode in decoders:
            windows = BlockWindows(self, schema, order, decode)
            try:
                sample = decode(self, schema, blocks)
            except RecordError:  # raised again when the block is read, unless its rows are other workers'
                return None
            # a block may be the smallest of all
            growth = sample.bytes / self._files.record_sizes[int(blocks[0])]
            if windows.stored_bytes * growth <= _WINDOW_BYTES:
                return windows
        return None

    def _recent_blocks(self, schema: Schema | None) -> RecentBlocks | None:
        """The last blocks of an order in lanes; None for another order, and without blocks.

        Example:
            >>> rs.open("data/points")._recent_blocks(None) is None
            True
        """
        if self._lanes is None or self._block is None or schema is None:
            return None
        return RecentBlocks(self, schema)

    def _place(self, number: int) -> str:
        """Names a row in messages."""
        if self._block is None:
            return self._files.place(number)
        file = int(np.searchsorted(self._first, number, "right")) - 1
        return f"{self._paths[file]}: row {number - int(self._first[file])}"


@dataclass(frozen=True)
class DecodedBlocks:
    """The rows of some blocks.

    Attributes:
        blocks: the numbers of the blocks across all files, in ascending order, int64 `[b]`.
        sections: the columns of all rows.
        counts: the number of rows of each block, int64 `[b]`.
        owner: the rows, which name a block in messages.
    """

    blocks: Ints
    sections: Sections
    counts: Ints
    owner: Rows

    @classmethod
    def of(cls, rows: Rows, schema: Schema, blocks: Ints) -> DecodedBlocks:
        """Decodes blocks together. Raises RecordError."""
        data, places = rows._files.records(blocks)
        starts, stops = places[:-1], places[1:]
        try:
            sections, counts = rows_of_blocks(schema, data, starts, stops)
        except RecordError as error:
            record = rows._files.place(int(blocks[error.row or 0]))
            raise RecordError(error.at(record).problems) from None
        return cls(blocks, sections, counts, rows)

    @classmethod
    def in_place(cls, rows: Rows, schema: Schema, blocks: Ints) -> DecodedBlocks:
        """Decodes blocks together, but for the strings of `single_strings`, which stay in the mapped files:
        the CRCs are checked now, and not when a string is copied. Raises RecordError."""
        strings = single_strings(schema)
        others = schema._stored_keys - {place.key for place, _ in strings}
        columns: dict[str, list[ArrowArray]] = {}
        counts = []
        for data, starts, stops in rows._files.in_place(blocks):
            sections, numbers = rows_of_blocks(schema, data, starts, stops, keys=others)
            counts.append(numbers)
            found = dict(sections["features"])
            for place, column in strings:
                array = strings_in_place(data, starts, stops, block_key(place), numbers)
                if array is None:  # `of` has the reason, if there is one
                    raise RecordError(Problem(expected="strings that can be read in place", got="others"))
                found[column.key] = array
            for key, array in found.items():
                columns.setdefault(key, []).append(array)
        made: dict[Section, dict[str, ArrowArray]] = {section: {} for section in ALL_SECTIONS}
        made["features"] |= {key: joined(arrays) for key, arrays in columns.items()}
        return cls(blocks, made, np.concatenate(counts), rows)

    def rows_at(self, blocks: Ints, within: Ints) -> Ints:
        """The numbers of rows of blocks among all rows. Raises RecordError for a row that its block lacks."""
        of_rows = np.searchsorted(self.blocks, blocks)
        short = np.flatnonzero(within >= self.counts[of_rows])
        if len(short):
            block = of_rows[short[0]]
            expected, got = f"{within[short[0]] + 1} rows, as the manifest says", str(self.counts[block])
            where = self.owner._files.place(int(self.blocks[block]))
            raise RecordError(Problem(where=where, expected=expected, got=got))
        places: Ints = offsets(self.counts)[of_rows] + within
        return places

    @property
    def bytes(self) -> int:
        """The memory of the columns."""
        return sum(array.nbytes for table in self.sections.values() for array in table.values())


class KeptBlocks(ABC):
    """Decoded blocks that are kept, as rows of a block are in many batches."""

    @abstractmethod
    def take(self, blocks: Ints, within: Ints) -> TakenRows:
        """Rows of blocks, by the number of the block and that of the row in it. Raises RecordError."""


class BlockWindows(KeptBlocks):
    """Decoded windows of blocks, in the order of an epoch: rows of a block are in many batches, and each
    window is decoded once. The last two windows are kept. May be used from several threads.

    Args:
        rows: all rows, in blocks.
        schema: the schema of the features to decode.
        order: the order of the epoch.
        decode: `DecodedBlocks.of`, or `in_place`.
    """

    _KEPT = 2

    def __init__(
        self,
        rows: Rows,
        schema: Schema,
        order: Permutation,
        decode: Callable[[Rows, Schema, Ints], DecodedBlocks],
    ) -> None:
        self._rows, self._schema, self._decode = rows, schema, decode
        if isinstance(order, BlockOrder):
            self._window_of = order.windows
        else:
            together = max(1, rows._rows_in(_TAKEN_BYTES) // (rows._block or 1))
            self._window_of = np.arange(len(rows._files)) // together
        self._lock, self._decoded = Lock(), dict[int, DecodedBlocks]()
        self._corrupt = set[int]()  # the windows that cannot be decoded as a whole

    @property
    def stored_bytes(self) -> int:
        """The stored bytes of the largest window."""
        return int(np.bincount(self._window_of, self._rows._files.record_sizes).max(initial=0))

    def take(self, blocks: Ints, within: Ints) -> TakenRows:
        windows, parts = self._window_of[blocks], []
        several = np.unique(windows)
        for window in several.tolist():
            places = np.flatnonzero(windows == window) if len(several) > 1 else None
            own = slice(None) if places is None else places
            decoded = self._window(window)
            if decoded is None:
                decoded = DecodedBlocks.of(self._rows, self._schema, np.unique(blocks[own]))
            parts.append((decoded.sections, decoded.rows_at(blocks[own], within[own]), places))
        return TakenRows(len(blocks), parts)

    def _window(self, window: int) -> DecodedBlocks | None:
        """A window; None if one of its blocks is corrupt, whose rows may not be wanted."""
        with self._lock:
            if window in self._corrupt:
                return None
            found = self._decoded.pop(window, None)
            if found is None:
                while len(self._decoded) >= self._KEPT:
                    del self._decoded[next(iter(self._decoded))]
                blocks = np.flatnonzero(self._window_of == window)
                try:
                    found = self._decode(self._rows, self._schema, blocks)
                except RecordError:
                    self._corrupt.add(window)
                    return None
            self._decoded[window] = found  # the last one used
        return found


class RecentBlocks(KeptBlocks):
    """The last blocks of an order in lanes, where rows of a block are in several chunks. May be used from
    several threads.

    Args:
        rows: all rows, in blocks.
        schema: the schema of the features to decode.
    """

    def __init__(self, rows: Rows, schema: Schema) -> None:
        self._rows, self._schema = rows, schema
        self._lock, self._decoded = Lock(), list[DecodedBlocks]()

    def take(self, blocks: Ints, within: Ints) -> TakenRows:
        with self._lock:
            wanted = np.unique(blocks)
            used, unused = list[DecodedBlocks](), list[DecodedBlocks]()
            for decoded in self._decoded:
                found = np.isin(wanted, decoded.blocks)
                (used if found.any() else unused).append(decoded)
                wanted = wanted[~found]
            if len(wanted) or not used:  # without rows, there are no values of each type
                used.append(DecodedBlocks.of(self._rows, self._schema, wanted))
            self._decoded = [*unused, *used]  # the last ones used at the end
            while len(self._decoded) > len(used) and sum(one.bytes for one in self._decoded) > _WINDOW_BYTES:
                self._decoded.pop(0)
        parts: list[tuple[Sections, Ints, Ints | None]] = []
        for decoded in used:
            places: Ints = np.flatnonzero(np.isin(blocks, decoded.blocks))
            parts.append((decoded.sections, decoded.rows_at(blocks[places], within[places]), places))
        return TakenRows(len(blocks), parts)


def open(files: Files, schema: Schema | AnyPath | None = None, *, split: Split = None) -> Rows:
    """Opens files for random access to their rows by number, without TensorFlow.

    Args:
        files: a path, a URL, a folder of shards, a pattern, or several of these; uncompressed.
        schema: the schema of the rows, or its path; by default the schema beside the files.
        split: the split whose rows are opened; by default all rows.

    Raises SpecError for an unknown split, StoreError, RecordError: see `Rows`.

    Example:
        >>> rows = rs.open("data/points")
        >>> len(rows)
        20
    """
    return Rows(files, schema, split=split)


def _index_of(path: Location) -> FileIndex:
    """The index of a file without one. Raises StoreError for an object, which would be read as a whole."""
    if isinstance(path, RemotePath):
        got, hint = "has no index", "`recordspec index` writes one beside a local copy"
        raise StoreError(State(where=str(path), got=got, hint=hint))
    return made_again(path)
