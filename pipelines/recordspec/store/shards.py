"""The shards of a dataset: their names, the files that a pattern matches, and their manifest entries."""

from __future__ import annotations

import fnmatch
import glob
import logging
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from recordspec.errors import IncompleteError, Problem, RecordError, StoreError, show_text
from recordspec.locations import Location, check_regular, location
from recordspec.remote import RemotePath, is_url
from recordspec.store.manifest import (
    INDEX_SUFFIXES,
    SCHEMA_FILE,
    Manifest,
    Shard,
    manifest_in,
    manifest_of,
    shard_differences,
)
from recordspec.wire.compression import CODECS, Compression

log = logging.getLogger("recordspec")

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

Files = str | os.PathLike[str] | RemotePath | Iterable[str | os.PathLike[str] | RemotePath]

_COMPRESSED = "|".join(re.escape(codec.suffix) for codec in CODECS.values())
_NUMBERS = r"(?P<split>.+)-(?P<index>\d{5,})-of-(?P<count>\d{5,})"
_NAME = re.compile(rf"{_NUMBERS}\.tfrecord({_COMPRESSED})")
# Names of others, too: `train-00000-of-01024`, `mnist-train.tfrecord-00000-of-00001`.
_NUMBERED = re.compile(rf"{_NUMBERS}(?P<suffix>(?P<type>(\.[a-z]+)??)({_COMPRESSED}))")
# A `?` in a URL would begin a query.
_PATTERN = re.compile(r"[*\[]")
# Missing shards that are looked for: a name may announce any number.
_MOST_MISSING = 100_000
# TensorFlow's guide to input performance asks for files of 100 MB and more; a power of two divides
# among most numbers of workers.
SMALLEST_AUTO = 64 << 20


@dataclass(frozen=True, kw_only=True)
class ShardName:
    """The parts of a shard's file name."""

    split: str
    index: int
    count: int

    def file(self, compression: Compression) -> str:
        """`train-00000-of-00008.tfrecord`, with `.gz` or `.zlib` where compressed."""
        stem = f"{self.split}-{self.index:05d}-of-{self.count:05d}"
        return f"{stem}.tfrecord{CODECS[compression].suffix}"


def parse_name(file: str) -> ShardName | None:
    """Parses a file name; None if it is not a shard's."""
    match = _NAME.fullmatch(file)
    if match is None:
        return None
    return ShardName(split=match["split"], index=int(match["index"]), count=int(match["count"]))


def numbered(file: str) -> str | None:
    """The part of a shard's name before its number, also for other writers' names; None without a number."""
    match = _NUMBERED.fullmatch(file)
    return None if match is None else match["split"]


def auto_count(size: int, rows: int) -> int:
    """The number of shards for `auto`: a power of two, so that each has 64 to 128 MiB, and at most the
    number of rows."""
    wanted = 1 << max(0, (size // SMALLEST_AUTO).bit_length() - 1)
    return max(1, min(wanted, rows))


def expand(files: Files, *, as_found: bool = False) -> tuple[Location, ...]:
    """Expands paths, patterns and folders to files, in the order of their names.

    A folder resolves to its shards. A file that is found twice is returned once, and the index of a file that
    is found (`data/train-*` matches both) is omitted. Files that are listed one by one are not checked
    for completeness. In an object store, a folder and a pattern resolve to the files in the manifest.

    Raises:
        StoreError: a path or pattern matches no file.
        SpecError: a path is an unsupported URL.
        IncompleteError: a folder, or what a pattern matches, lacks shards that the manifest or the names of
            the others announce, or has shards that do not belong to them; not with `as_found`.
    """
    return expand_dataset(files, as_found=as_found)[0]


def expand_dataset(
    files: Files, *, as_found: bool = False
) -> tuple[tuple[Location, ...], dict[Location, Manifest]]:
    """The same, and the manifests that were read for it, by folder."""
    given = path_list(files)
    if not given:
        raise StoreError(Problem(expected="at least one file", got="none"))
    found: list[Location] = []
    manifests: dict[Location, Manifest] = {}
    for one in given:
        paths, names = _matches(one, manifests)
        if not as_found and (problems := _completeness(paths, names, manifests)):
            raise IncompleteError(problems)
        found += paths
    for path in found:
        check_regular(path)
    indices = {f"{path}{suffix}" for path in found for suffix in INDEX_SUFFIXES.values()}
    once: dict[str, Location] = {}
    for path in (path for path in found if str(path) not in indices):
        once.setdefault(str(path.resolve()), path)  # it may go by several names
    return tuple(once.values()), manifests


def path_list(files: Files) -> tuple[str, ...]:
    """Paths, patterns, folders and URLs as a tuple. Raises SpecError for a URL of no store."""
    several = [files] if isinstance(files, (str, os.PathLike, RemotePath)) else files
    given = tuple(str(one) if isinstance(one, RemotePath) else os.fspath(one) for one in several)
    for one in given:
        location(one)
    return given


def find_incomplete(files: Files) -> tuple[Problem, ...]:
    """The problems for which `expand` raises IncompleteError.

    Skips folders whose manifest cannot be read.
    """
    problems: list[Problem] = []
    for one in path_list(files):
        with suppress(StoreError):
            manifests: dict[Location, Manifest] = {}
            problems += _completeness(*_matches(one, manifests), manifests)
    return tuple(dict.fromkeys(problems))


def _matches(pattern: str, manifests: dict[Location, Manifest]) -> tuple[list[Location], str | None]:
    """The files of a path, a pattern or a folder, and the pattern of names that should match no other shards;
    None for the path of a file. Raises StoreError if there are none.

    Adds the manifests that it reads.
    """
    if is_url(pattern):
        return _remote_matches(RemotePath.parse(pattern), manifests)
    path = Path(pattern)
    if path.is_dir():
        found, names = [*filter(is_shard, path.iterdir())], "*"
        expected, beside = "shards in the folder", path / "*"
    elif path.exists():
        return [path], None
    else:
        found, names = [Path(one) for one in glob.glob(pattern)], path.name
        expected, beside = "a file", path
    if not found:
        raise StoreError(Problem(where=pattern, expected=expected, got="none", hint=_siblings(beside)))
    return sorted(found), names


def _remote_matches(
    place: RemotePath, manifests: dict[Location, Manifest]
) -> tuple[list[Location], str | None]:
    """The same for a URL. A folder and a pattern resolve to files in their manifest, without a LIST."""
    if _PATTERN.search(place.name):
        folder = place.parent
        manifest = manifest_in(folder)
        paths = folder.iterdir() if manifest is None else _named(folder, manifest, manifests)
        found = sorted(path for path in paths if fnmatch.fnmatchcase(path.name, place.name))
        if found:
            return [*found], place.name if manifest is None else None
        if not place.exists() and not place.is_dir():  # a name may have a `[`
            hint = "the last part of a URL alone may be a pattern" if _PATTERN.search(folder.key) else ""
            raise StoreError(Problem(where=str(place), expected="a file", got="none", hint=hint))
    manifest = None if parse_name(place.name) else manifest_in(place)
    if manifest is not None:
        return [*sorted(_named(place, manifest, manifests))], None
    if place.is_http or place.exists():
        return [place], None
    if shards := sorted(filter(is_shard, place.iterdir())):
        return [*shards], "*"
    raise StoreError(Problem(where=str(place), expected="a file, or a folder of shards", got="none"))


def _named(
    folder: RemotePath, manifest: Manifest, manifests: dict[Location, Manifest]
) -> Iterator[RemotePath]:
    """The shards that a manifest names; adds it to `manifests`."""
    manifests[folder] = manifest
    yield from (folder / shard.file for shard in manifest.all_shards)


def is_shard(path: Location) -> bool:
    """Whether a file is named as a shard."""
    return parse_name(path.name) is not None


def _completeness(
    found: list[Location], pattern: str | None, manifests: dict[Location, Manifest]
) -> list[Problem]:
    """The problems of files that are not exactly the shards that a pattern of names should match.

    Raises StoreError for a manifest that cannot be read.
    """
    if pattern is None:
        return []
    by_folder: dict[Location, list[_Numbered]] = defaultdict(list)
    for path in found:
        name = _NUMBERED.fullmatch(path.name)
        if name is not None and path.suffix not in INDEX_SUFFIXES.values():
            by_folder[path.parent].append(_Numbered(path=path, name=name))
    problems: list[Problem] = []
    for folder, shards in by_folder.items():
        if manifest := manifest_in(folder):
            manifests[folder] = manifest
            named, there = manifest.files, {shard.path.name for shard in shards}
            wanted = {name for name in named if fnmatch.fnmatchcase(name, pattern)}
            problems += shard_differences(folder, wanted - there, there - named)
        else:
            problems += _incomplete(shards, pattern)
    return problems


class _Numbered:
    """A file whose name has its number and the number of shards.

    Attributes:
        type: the suffix without that of a compression.
    """

    def __init__(self, path: Location, name: re.Match[str]) -> None:
        self.path = path
        self.split, self.type, self.suffix = name["split"], name["type"], name["suffix"]
        self.index, self.count = int(name["index"]), int(name["count"])

    def sibling(self, number: str) -> Location:
        """The shard of another number, or of `*`."""
        return self.path.with_name(f"{self.split}-{number}-of-{self.count:05d}{self.suffix}")


def _incomplete(shards: Iterable[_Numbered], pattern: str) -> Iterator[Problem]:
    """The problems of shards without a manifest, by their names: missing ones that `pattern` would match, and
    splits whose shards announce different numbers of shards.
    """
    splits: dict[tuple[Location, str, str], dict[int, dict[int, _Numbered]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for shard in shards:
        if shard.index >= shard.count:
            yield Problem(
                where=str(shard.path), expected=f"a number below {shard.count}", got=str(shard.index)
            )
            continue
        first = splits[shard.path.parent, shard.split, shard.type][shard.count].setdefault(shard.index, shard)
        if first is not shard:
            expected = f"one shard of this number, {first.path.name}"
            yield Problem(where=str(shard.path), expected=expected, got="two")
    for _, counts in sorted(splits.items()):
        # the number of which most are there is the split's; of equals, the larger
        count = max(counts, key=lambda count: (len(counts[count]) / count, count))
        for other, found in sorted(counts.items()):
            yield from _missing_shards(found, pattern) if other == count else [_other_count(found, count)]


def _missing_shards(found: dict[int, _Numbered], pattern: str) -> Iterator[Problem]:
    """The problem of a split with missing shards."""
    one = next(iter(found.values()))
    absent = list(islice((index for index in range(one.count) if index not in found), _MOST_MISSING))
    lacking = [index for index in absent if fnmatch.fnmatchcase(one.sibling(f"{index:05d}").name, pattern)]
    if lacking:
        at_least = "at least " * (len(absent) == _MOST_MISSING)
        got = f"{len(found)}; {at_least}{len(lacking):,} of {one.count} missing: {_ranges(lacking)}"
        hint = "files that are listed one by one are taken as they are"
        where = str(one.sibling("*"))
        yield Problem(where=where, expected=f"{one.count} shards", got=got, hint=hint)


def _other_count(found: dict[int, _Numbered], count: int) -> Problem:
    """The problem of shards that announce another number of shards than their split has."""
    one = next(iter(found.values()))
    several = len(found) > 1
    return Problem(
        where=str(one.sibling("*") if several else one.path),
        expected=f"shards of {count}, as {one.split}-*-of-{count:05d}",
        got=f"{len(found)} of {one.count}: {_ranges(found)}" if several else f"one of {one.count}",
        hint=f"to read only some, give a pattern such as '{one.split}-*-of-{count:05d}*'",
    )


def _ranges(numbers: Iterable[int]) -> str:
    """Formats shard numbers: `00002, 00004 to 00007`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join(" to ".join(f"{number:05d}" for number in run) for run in runs)


def _siblings(path: Location) -> str:
    """A hint that lists the files of a folder in which none was found."""
    folder = path.parent
    if not folder.is_dir():
        missing = "no folder matches" if glob.has_magic(str(folder)) else "there is no folder"
        return f"{missing} {folder}"
    names = sorted(child.name for child in folder.iterdir() if not child.name.startswith("."))
    more = ", ..." * (len(names) > 3)
    return f"{folder} has {', '.join(names[:3])}{more}" if names else f"{folder} is empty"


@dataclass(frozen=True, kw_only=True)
class File:
    """A file to read.

    Attributes:
        shard: its entry in the manifest; None without one.
        block: the most rows of a record; None if each record is one row.
    """

    path: Location
    shard: Shard | None = None
    block: int | None = None

    @property
    def records_needed(self) -> int | None:
        """The number of records for the rows in the manifest; None without one."""
        return None if self.shard is None else -(-self.shard.rows // (self.block or 1))

    def rows_of(self, number: int) -> int:
        """The number of rows of a record."""
        size = self.block or 1
        return size if self.shard is None else min(size, max(0, self.shard.rows - number * size))

    def rows_from(self, number: int) -> int | None:
        """The number of rows of a record and of all that follow; None without a manifest."""
        return None if self.shard is None else max(0, self.shard.rows - number * (self.block or 1))


def stored_schema(folder: Location, manifest: Manifest | None) -> Schema | None:
    """Loads the schema that a dataset was written with, if it is in its folder and has no custom kinds.

    Unknown kinds are logged.
    """
    if manifest is None or not (path := folder / manifest.name_of(SCHEMA_FILE)).exists():
        return None
    from recordspec.spec.schema import Schema, custom_kinds  # 0.2 s, and most files have none beside them

    if kinds := custom_kinds(path):
        log.warning("%s: custom kinds: %s; records are read by their keys", path, show_text(", ".join(kinds)))
        return None
    return Schema.load(path)


def shard_files(
    paths: tuple[Location, ...], schema: Schema, manifest: Manifest | None = None
) -> tuple[File, ...]:
    """The files with their entries in the manifest. Pass `manifest` if it was read already.

    Raises StoreError if a file is missing, the manifest does not name one, or the files were written with
    another schema.
    """
    files, differences = compare_schema(paths, schema, manifest)
    if differences:
        raise StoreError(differences)
    return files


def compare_schema(
    paths: tuple[Location, ...], schema: Schema, manifest: Manifest | None = None
) -> tuple[tuple[File, ...], tuple[Problem, ...]]:
    """The same, for files whose schema may differ: returns the differences instead of raising.

    Raises StoreError if a file is missing, or the manifest does not name one.
    """
    manifest = manifest_of(paths) if manifest is None else manifest
    if manifest is None:
        block = block_in(paths)
        return tuple(File(path=path, block=block) for path in paths), ()
    problems: tuple[Problem, ...] = ()
    try:
        check_schema(manifest, schema, paths[0].parent)
    except StoreError as error:
        problems = error.problems
    files = [
        File(path=path, shard=shard, block=manifest.block)
        for path, shard in zip(paths, listed_shards(paths, manifest), strict=True)
    ]
    return tuple(files), problems


def listed_shards(paths: tuple[Location, ...], manifest: Manifest) -> list[Shard]:
    """The entries of files in their manifest. Raises StoreError if a file is missing, or has none."""
    shards = {shard.file: shard for shard in manifest.all_shards}
    for path in paths:
        if path.name not in shards:
            expected = "a shard that the manifest beside it lists"
            raise StoreError(Problem(where=str(path), expected=expected, got="another file"))
        # a missing object is an error where it is read
        if isinstance(path, Path) and not path.exists():
            hint = "the manifest lists it; build the dataset again"
            raise StoreError(Problem(where=str(path), expected="a shard", got="no file", hint=hint))
    return [shards[path.name] for path in paths]


def check_schema(manifest: Manifest, schema: Schema, data: Location) -> None:
    """Raises StoreError, with every difference, if the dataset cannot be read with this schema."""
    if manifest.fingerprint in (None, schema.fingerprint):
        return
    from recordspec.spec.feature_set import differences
    from recordspec.spec.features import KINDS
    from recordspec.spec.schema import Schema

    kinds = KINDS | {feature.kind: type(feature) for _, feature in schema.placed}
    written = Schema.load(data / manifest.name_of(SCHEMA_FILE), kinds)
    hint = "build it again, or read it with its own schema.yaml"
    problems = [
        Problem(where=str(data), path=one.path, expected=one.expected, got=one.got, hint=hint)
        for one in differences(written, schema)
    ]
    if problems:
        raise StoreError(problems)


def check_size(path: Location, shard: Shard) -> None:
    size = path.stat().st_size
    if size != shard.bytes:
        expected = f"{shard.bytes:,} bytes, as the manifest says"
        hint = "build the dataset again"
        raise StoreError(Problem(where=str(path), expected=expected, got=f"{size:,}", hint=hint))


def block_in(paths: tuple[Location, ...]) -> int | None:
    """The most rows of a record in files without a manifest, by the first record of each: the last record of
    a file may have fewer. None if each record is one row.

    Raises StoreError if some files hold blocks of rows, and others do not.
    """
    sizes = {path: size for path in paths if (size := first_block(path)) is not None}
    blocks = [path for path, size in sizes.items() if size]
    others = [path for path, size in sizes.items() if not size]
    if blocks and others:
        expected = f"blocks of many rows, as {blocks[0]} has"
        raise StoreError(Problem(where=str(others[0]), expected=expected, got="records of one row"))
    return max(sizes.values()) if blocks else None


def first_block(path: Location) -> int | None:
    """The rows of the first intact record if it is a block; 0 if it is not, None without a record."""
    # they take 0.2 s, and most files have a manifest
    from recordspec.wire.blocks import ROWS
    from recordspec.wire.proto import parse_example
    from recordspec.wire.tfrecord import Chunk, salvage

    chunk = next((found for found in salvage(path) if isinstance(found, Chunk)), None)
    if chunk is None:
        return None
    try:
        rows = parse_example(chunk.data(0)).get(ROWS)
    except RecordError:  # another message
        return 0
    return max(1, int(rows[0])) if rows and len(rows) == 1 and isinstance(rows[0], int) else 0
