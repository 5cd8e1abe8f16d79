"""`recordspec.open`: random access to the rows of files by number, as NumPy values, without TensorFlow."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, counted, describe, show_text
from recordspec.locations import AnyPath, Location
from recordspec.order.global_order import WINDOW_ROWS
from recordspec.remote import RemotePath
from recordspec.schema import numpy_decoder
from recordspec.schema.ragged_array import divided
from recordspec.schema.row_blocks import Sections, blocks_of, records_with, rows_of_blocks
from recordspec.schema.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.dataset import StoredDataset, without_schema
from recordspec.store.expand import Files, Split
from recordspec.store.index import FileIndex, check_records, check_uncompressed, made_again, of_bytes
from recordspec.store.manifest import KEYS_FILE, manifest_in
from recordspec.store.mapped_files import MappedFiles
from recordspec.store.shards import block_in, check_size, listed_shards
from recordspec.wire.arrays import Ints, bytes_in, offsets, part, take

# The largest number of stored bytes decoded together.
_CHUNK_BYTES = 32 << 20


class Rows:
    """Random access to the rows of files by number, from 0 on, across all files in order.

    `rows[i]` is one row, a dict by feature; `rows[a:b]` and `rows[[i, j, k]]` are batches. The values equal
    those of `Schema.decode`, in NumPy: see `Schema.decode_numpy`. The index of a dataset, `index.bin`, has
    the offset of each record. For files without an index, it is computed from the record lengths when they
    are opened.

    Files are mapped into memory. May be used from several threads, in forked processes, and pickled.

    Raises:
        StoreError: there is no file, or a file is in an object store, or was written with another schema.
        RecordError: a file is compressed, or has an invalid record length.

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

    def __init__(self, files: Files, schema: Schema | AnyPath | None = None, *, split: Split = None) -> None:
        dataset = StoredDataset.asked(files, schema, split, "rs.open")
        for path in dataset.paths:
            _check_local(path)
            check_uncompressed(path)
        # one that does not list all files says nothing of the others
        self.manifest = dataset.manifest if dataset.is_listed else None
        self.schema = dataset.given if self.manifest is None else dataset.schema
        if dataset.mismatches:
            raise StoreError(dataset.mismatches)
        for path, shard in dataset.shards.items():
            check_size(path, shard, path.stat().st_size)
        indices = {path: dataset.index_of(path) or made_again(path) for path in dataset.paths}
        for path, shard in dataset.shards.items():
            check_records(path, shard, indices[path])
        self._open(dataset.paths, list(indices.values()))

    def _open(self, paths: Sequence[Location], indices: Sequence[FileIndex]) -> None:
        self._paths, self._indices = paths, indices
        self._files = MappedFiles([Path(str(path)) for path in paths], indices)
        self._block = block_in(tuple(paths)) if self.manifest is None else self.manifest.block
        if self._block is None:
            self._first = self._files.first
            self._firsts: list[int] = self._first.tolist()
            return
        if self.manifest is None or self.schema is None:
            got, hint = "has blocks of rows, which only a manifest counts", "write it with recordspec"
            raise StoreError(State(where=str(paths[0]), got=got, hint=hint))
        self._first = offsets(np.array([shard.rows for shard in listed_shards(tuple(paths), self.manifest)]))
        self._firsts = self._first.tolist()

    def __getstate__(self) -> dict[str, Any]:
        indices = [bytes(index.data) for index in self._indices]
        return {"schema": self.schema, "manifest": self.manifest, "paths": self._paths, "indices": indices}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.schema, self.manifest = state["schema"], state["manifest"]
        self._open(state["paths"], list(map(of_bytes, state["indices"])))

    def __repr__(self) -> str:
        # Grain resumes only if the text of the source is the same
        files = counted(len(self._paths), "file")
        dataset = "" if self.manifest is None else f", dataset {self.manifest.identity[:12]}"
        return show_text(f"Rows({len(self):,} in {files} of {self._paths[0].parent}{dataset})")

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, rows: Any) -> dict[str, Any]:
        if isinstance(rows, SupportsIndex) and not isinstance(rows, np.ndarray):
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
        chunk = self.decoded_chunk
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
        made = object.__new__(Rows)
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
        return bytes_in(records_with(self.schema, self._sections(self.schema, numbers), len(numbers)))

    def stored(self, schema: Schema, rows: Ints) -> list[bytes]:
        """The records of rows as the layout stores them. Rows in blocks are returned as a single block.

        Args:
            schema: the schema of the features wanted from rows in blocks.
            rows: the row numbers, int64 `[n]`.

        Example:
            >>> import numpy as np
            >>> len(rs.open("data/points").stored(schema, np.array([3, 1])))
            2
        """
        if self._block is None:
            return self.records(rows)
        return bytes_in(blocks_of(schema, self._sections(schema, rows), len(rows), 1))

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
        starts = manifest.starts()
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
    def block_sizes(self) -> Ints | None:
        """The rows of each block, int64 `[b]`; None if rows are not in blocks.

        Example:
            >>> rs.open("data/points").block_sizes is None
            True
        """
        if self._block is None:
            return None
        rows, records = np.diff(self._first), np.diff(self._files.first)
        sizes = np.full(int(records.sum()), self._block)
        last = np.cumsum(records)[records > 0] - 1
        sizes[last] = (rows - (records - 1) * self._block)[records > 0]
        return sizes

    @property
    def chunk(self) -> int:
        """The number of rows to read together: a window of blocks, so that each block is decoded once in any
        order; fewer if rows have many bytes.

        Example:
            >>> rs.open("data/points").chunk
            16384
        """
        return max(1, min(WINDOW_ROWS, _CHUNK_BYTES * len(self) // max(1, self._files.bytes)))

    @property
    def decoded_chunk(self) -> int:
        """The number of rows to decode together; 1 if decoding them together would take more memory, or give
        other values.

        Example:
            >>> rs.open("data/points").decoded_chunk
            16384
        """
        return self.chunk if self.schema is not None and self.schema.keeps_unpadded else 1

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
        if self.schema is not None and not self.schema.keeps_unpadded:
            return iter([self._decoded(some) for some in np.split(numbers, np.cumsum(sizes)[:-1])])
        values = self._decoded(numbers, padded=False)
        parts = {name: divided(value, sizes) for name, value in values.items()}
        pads = {} if self.schema is None else self.schema.padded_to_batch

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

    def _decoded(self, numbers: Ints, *, padded: bool = True) -> dict[str, Any]:
        if self.schema is None:
            raise without_schema(self._paths[0].parent, "rs.open")
        try:
            if self._block is not None:
                sections = self._sections(self.schema, numbers)
                return numpy_decoder.decode_sections(self.schema, sections, len(numbers), padded=padded)
            data, places = self._files.records(numbers)
            return numpy_decoder.decode(self.schema, data, places[:-1], places[1:], padded=padded)
        except RecordError as error:
            if error.row is None:
                raise
            raise RecordError(error.at(self._place(int(numbers[error.row]))).problems) from None

    def _sections(self, schema: Schema, numbers: Ints) -> Sections:
        """The columns of rows in blocks; each block is decoded once."""
        assert self._block is not None
        files = np.searchsorted(self._first, numbers, "right") - 1
        records, within = np.divmod(numbers - self._first[files], self._block)
        blocks, of_rows = np.unique(records + self._files.first[files], return_inverse=True)
        of_rows = of_rows.reshape(-1)  # NumPy 2.0.0 returned another shape
        data, places = self._files.records(blocks)
        try:
            sections, counts = rows_of_blocks(schema, data, places[:-1], places[1:])
        except RecordError as error:
            record = self._files.place(int(blocks[error.row or 0]))
            raise RecordError(error.at(record).problems) from None
        short = np.flatnonzero(within >= counts[of_rows])
        if len(short):
            block = of_rows[short[0]]
            expected, got = f"{within[short[0]] + 1} rows, as the manifest says", str(counts[block])
            where = self._files.place(int(blocks[block]))
            raise RecordError(Problem(where=where, expected=expected, got=got))
        rows = offsets(counts)[of_rows] + within
        in_order = len(rows) and bool((np.diff(rows) == 1).all())  # slices are not copied
        return {
            section: {
                key: part(array, int(rows[0]), int(rows[-1]) + 1) if in_order else take(array, rows)
                for key, array in table.items()
            }
            for section, table in sections.items()
        }

    def _place(self, number: int) -> str:
        """Names a row in messages."""
        if self._block is None:
            return self._files.place(number)
        file = int(np.searchsorted(self._first, number, "right")) - 1
        return f"{self._paths[file]}: row {number - int(self._first[file])}"


def open(files: Files, schema: Schema | AnyPath | None = None, *, split: Split = None) -> Rows:
    """Opens files for random access to their rows by number, without TensorFlow.

    Args:
        files: a path, a folder of shards, a pattern, or several of these; uncompressed, on this machine.
        schema: the schema of the rows, or its path; by default the schema beside the files.
        split: the split whose rows are opened; by default all rows.

    Raises SpecError for an unknown split, StoreError, RecordError: see `Rows`.

    Example:
        >>> rows = rs.open("data/points")
        >>> len(rows)
        20
    """
    return Rows(files, schema, split=split)


def _check_local(path: Location) -> None:
    if isinstance(path, RemotePath):
        hint = "copy it to this machine, or read it with `rs.read`"
        raise StoreError(
            State(where=str(path), got="is in an object store, without random access", hint=hint)
        )
