"""A dataset at rest: files of records with their manifest, splits, schema, layout, compression and index."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from recordspec.errors import Problem, SpecError, State, StoreError, see, show_text
from recordspec.locations import AnyPath, Location
from recordspec.store import key_hashes
from recordspec.store.expand import (
    Files,
    Split,
    expand_dataset,
    expand_split,
    is_config,
    path_list,
    splits_of,
)
from recordspec.store.index import FileIndex, Indices
from recordspec.store.manifest import SCHEMA_FILE, Manifest, Shard, by_folder, manifest_in
from recordspec.store.shards import (
    File,
    begins_with_block,
    block_in,
    check_blocks,
    listed_files,
    schema_mismatches,
    stored_schema,
    unlisted_files,
)
from recordspec.wire.compression import Compression
from recordspec.wire.file_types import compression_of

if TYPE_CHECKING:
    from recordspec.schema.schema import Schema


log = logging.getLogger("recordspec")

# Files, records and bytes of a dataset with a manifest up to which file types and record lengths are checked
# before reading. On a core of 2.1 GHz, 1 GB of records took 0.3 s if all have one size, and 1.1 us per record
# if sizes vary; opening a file takes 0.1 ms.
_MOST_FILES, _MOST_RECORDS, _MOST_BYTES = 1_000, 2_000_000, 4 << 30


def without_schema(folder: Location, reader: str) -> StoreError:
    """The error of files in a folder whose rows a reader cannot decode."""
    is_there = (folder / SCHEMA_FILE).exists()
    got = "has a schema of custom kinds" if is_there else "has no schema"
    return StoreError(State(where=str(folder), got=got, hint=f"`{reader}(files, schema)` reads its rows"))


def _schema_of(paths: Sequence[str]) -> Schema | None:
    """The schema of a config; None for any other files, and for several paths. Raises SpecError."""
    if len(paths) != 1 or not is_config(paths[0]):
        return None
    from recordspec.schema.schema import as_schema  # 0.06 s, and most files are no config

    return as_schema(paths[0])


class StoredDataset:
    """Files of records, with their manifest, splits, schema, layout, compression and index.

    Any TFRecord files are a stored dataset. The manifest beside the files describes them. Without a manifest,
    the names of files tell their splits, and their first bytes tell their layout and compression. Every
    property is read lazily, and only once.

    Args:
        paths: the files, in order.
        manifests: the manifests of their folders that were read to find the files.
        schema: the schema of the rows; by default the schema beside the files.

    Attributes:
        paths, manifests: as given.
        given: the argument `schema`.
    """

    def __init__(
        self,
        paths: tuple[Location, ...],
        manifests: Mapping[Location, Manifest] | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.paths, self.manifests, self.given = paths, manifests or {}, schema
        self._begin_with_blocks: dict[Location, bool] = {}

    @classmethod
    def of(cls, files: Files, schema: Schema | None = None) -> StoredDataset:
        """The dataset of paths, folders, patterns or a config, which names its schema.

        Raises what `expand` and `Schema.load` raise.
        """
        paths = path_list(files)  # the iterable is read once
        return cls(*expand_dataset(paths), _schema_of(paths) if schema is None else schema)

    @classmethod
    def asked(cls, files: Files, schema: Schema | AnyPath | None, split: Split, reader: str) -> StoredDataset:
        """The dataset that the arguments of a public reader describe, such as of `recordspec.read`.

        Raises SpecError for a schema before the files, and what `expand_split` and `as_schema` raise.

        Args:
            reader: the name of the reader, for messages.
        """
        from recordspec.schema.schema import check_data_first, given_schema

        check_data_first(files, "files", f"{reader}(files, schema)")
        given = given_schema(schema)  # raises before a store is asked for files
        paths = path_list(files)  # the iterable is read once
        return cls(*expand_split(paths, split), _schema_of(paths) if given is None else given)

    @property
    def folder(self) -> Location:
        """The folder of the first file."""
        return self.paths[0].parent

    @cached_property
    def _in_folders(self) -> dict[Location, list[Location]]:
        """The files of each folder."""
        return by_folder(self.paths)

    @cached_property
    def by_folder(self) -> dict[Location, Manifest]:
        """The manifest of each folder that has one. Raises StoreError for an invalid manifest."""
        known = {folder: self.manifests.get(folder) or manifest_in(folder) for folder in self._in_folders}
        return {folder: manifest for folder, manifest in known.items() if manifest is not None}

    @cached_property
    def manifest(self) -> Manifest | None:
        """The manifest beside the files; None if there is none, and for files of several folders.

        Raises StoreError for an invalid manifest.
        """
        return self.by_folder.get(self.folder) if len(self._in_folders) == 1 else None

    @cached_property
    def is_listed(self) -> bool:
        """Whether the manifest lists every file."""
        return self.manifest is not None and self.manifest.files.issuperset(path.name for path in self.paths)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the files are exactly the files that the manifest lists."""
        return self.manifest is not None and self.manifest.files == {path.name for path in self.paths}

    @cached_property
    def shards(self) -> dict[Location, Shard]:
        """The entry of each file that the manifest of its folder lists."""
        entries: dict[Location, Shard] = {}
        for folder, paths in self._in_folders.items():
            if (manifest := self.by_folder.get(folder)) is not None:
                listed = manifest._by_file()
                entries |= {path: listed[path.name] for path in paths if path.name in listed}
        return entries

    @cached_property
    def files(self) -> tuple[File, ...]:
        """The files with their entries in the manifest.

        Raises StoreError if a file is missing, if the manifest of its folder does not list it, or if the
        layouts of files differ: some hold blocks of rows and some do not, or blocks have several sizes.
        """
        files: dict[Location, File] = {}
        for folder, paths in self._in_folders.items():
            if (manifest := self.by_folder.get(folder)) is None:
                files |= {file.path: file for file in unlisted_files(tuple(paths))}
                continue
            files |= {file.path: file for file in listed_files(tuple(paths), manifest)}
        check_blocks(files.values())
        return tuple(files[path] for path in self.paths)

    @cached_property
    def mismatches(self) -> tuple[Problem, ...]:
        """The differences because of which the given schema cannot read the files."""
        problems: list[Problem] = []
        if self.given is not None:
            for folder, manifest in self.by_folder.items():
                listed = manifest.files
                if any(path.name in listed for path in self._in_folders[folder]):  # it may list other files
                    problems += schema_mismatches(manifest, self.given, folder)
        return tuple(problems)

    @cached_property
    def known_mismatches(self) -> tuple[Problem, ...]:
        """`mismatches`; none, with a log entry, if the schema of the files is missing or has custom kinds."""
        if not self.by_folder:  # an invalid manifest is an error of its own
            return ()
        try:
            return self.mismatches
        except (SpecError, StoreError) as error:
            log.warning("%s", show_text(f"the given schema is not compared with that of the files: {error}"))
            return ()

    def checked_files(self) -> tuple[File, ...]:
        """The files with their entries. Raises StoreError for mismatches, and if `files` raises it."""
        files = self.files
        if self.mismatches:
            raise StoreError(self.mismatches)
        return files

    @cached_property
    def is_believed(self) -> bool:
        """Whether files are not opened before they are read if their sizes match the manifest: in a large
        dataset, checking file types and record lengths takes seconds before the first batch.
        """
        shards = [file.shard for file in self.files if file.shard is not None]
        records, size = sum(shard.records for shard in shards), sum(shard.bytes for shard in shards)
        is_large = len(shards) > _MOST_FILES or records > _MOST_RECORDS or size > _MOST_BYTES
        return is_large and len(shards) == len(self.files)

    @cached_property
    def identity(self) -> str | None:
        """The identity of the manifest; for several folders, the SHA-256 of their identities. None if a
        folder has no manifest."""
        if self.manifest is not None:
            return self.manifest.identity
        if len(self.by_folder) < len(self._in_folders):
            return None
        found = [self.by_folder[folder].identity for folder in self._in_folders]
        return hashlib.sha256("".join(found).encode()).hexdigest()

    @cached_property
    def schema(self) -> Schema | None:
        """The schema of the rows; None if it is unknown, or has custom kinds."""
        return stored_schema(self.folder, self.manifest) if self.given is None else self.given

    @cached_property
    def splits(self) -> dict[Location, str]:
        """The split of each file, from the manifest or from its name."""
        manifests = {} if self.manifest is None else {self.folder: self.manifest}
        return splits_of(self.paths, manifests)

    @cached_property
    def block(self) -> int | None:
        """The largest number of rows in a record; None if each record is one row.

        Raises StoreError if some files hold blocks of rows and some do not.
        """
        return block_in(self.paths) if self.manifest is None else self.manifest.block

    def has_blocks(self, path: Location) -> bool:
        """Whether the records of a file are blocks of rows."""
        if self.manifest is not None:
            return self.manifest.block is not None
        if path not in self._begin_with_blocks:
            self._begin_with_blocks[path] = begins_with_block(path)
        return self._begin_with_blocks[path]

    def schema_for(self, reader: str) -> Schema:
        """The schema of the rows. Raises StoreError if it is unknown, RecordError for files of another type.

        Args:
            reader: the name of the reader, for the message.
        """
        if self.schema is None:
            if self.paths and self.manifest is None:
                compression_of(self.paths[0])
            raise without_schema(self.folder, reader)
        return self.schema

    def require_schema(self) -> None:
        """Raises StoreError if records are blocks of rows, and the schema that unpacks them is unknown."""
        if any(map(self.has_blocks, self.paths)) and self.schema is None:
            name = SCHEMA_FILE if self.manifest is None else self.manifest.name_of(SCHEMA_FILE)
            path = self.folder / name
            hint = f"blocks are unpacked by it, give it with --schema; {see('explanation/blocks')}"
            got = "has custom kinds" if path.exists() else "does not exist"
            raise StoreError(State(where=str(path), got=got, hint=hint))

    def compression_of(self, path: Location) -> Compression:
        """The compression of a file."""
        return compression_of(path) if self.manifest is None else self.manifest.compression

    def index_of(self, path: Location) -> FileIndex | None:
        """The index of a file; None if it has no index, or has changed since it was indexed."""
        return self._indices.of(path)

    @cached_property
    def _indices(self) -> Indices:
        return Indices(self.by_folder)

    @property
    def keys(self) -> Location | None:
        """The file with the hashes of the keys of all rows in the manifest; None without unique keys, and if
        the file does not have exactly one hash a row."""
        return None if self.manifest is None else key_hashes.whole(self.folder, self.manifest)
