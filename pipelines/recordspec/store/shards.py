"""The shards of a dataset: their names, the files that a pattern matches, and their manifest entries."""

from __future__ import annotations

import fnmatch
import glob
import logging
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from recordspec.errors import (
    IncompleteError,
    Problem,
    RecordError,
    State,
    StoreError,
    show_text,
    system_errors,
)
from recordspec.executors import ThreadPool
from recordspec.locations import LocalPath, Location, location, text_of
from recordspec.remote import RemotePath
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
from recordspec.wire.file_types import begins_with_record

log = logging.getLogger("recordspec")

if TYPE_CHECKING:
    from recordspec.schema.schema import Schema

Files = str | os.PathLike[str] | RemotePath | Iterable[str | os.PathLike[str] | RemotePath]

_COMPRESSED = "|".join(re.escape(codec.suffix) for codec in CODECS.values())
_NUMBERS = r"(?P<split>.+)-(?P<index>\d{5,})-of-(?P<count>\d{5,})"
_NAME = re.compile(rf"{_NUMBERS}\.tfrecord({_COMPRESSED})")
# `train-v2-00000-of-00008.tfrecord` is of the build that replaced a dataset; rows may have been added to it.
_VERSION = re.compile(r"-v(\d{1,9})(-add\d+)?$")
_ADDED = re.compile(r"(-v\d{1,9})?(-add\d+)?$")
# Names of others, too: `train-00000-of-01024`, `mnist-train.tfrecord-00000-of-00001`.
_NUMBERED = re.compile(rf"{_NUMBERS}(?P<suffix>(?P<type>(\.[a-z]+)??)({_COMPRESSED}))")
# The names of TFRecords in a folder, by this package and others: a suffix that says so, perhaps with a number
# after it (TFDS's `mnist-train.tfrecord-00000-of-00001`), a number of a number (`train-00000-of-01024`,
# Beam's `data-00000-of-00001`), or a part of a job (Spark's and Hadoop's `part-r-00000`).
_TFRECORD = re.compile(
    rf"""(
        .*\.(tfrecords?|tfrecs?|tfr|records?)([-_.]?\d+([-_]of[-_]\d+)?)?
        | [^.]+-\d{{5,}}-of-\d{{5,}}
        | part-([rm]-)?\d{{5}}(-[^.]+)?
    )({_COMPRESSED}|\.deflate)?""",
    re.IGNORECASE | re.VERBOSE,
)
# Hidden files, `_SUCCESS` and other marks of jobs, Hadoop's checksums.
_IGNORED = re.compile(r"[._].*|.*\.crc")
_SPLIT = re.compile(r"(train|training|val|valid|validation|dev|eval|evaluation|test|testing)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")
# How far TFRecords are searched below a folder without any, and in how many folders, for the message.
_DEEPEST, _MOST_FOLDERS = 3, 100
_REQUESTS = 16  # of a store at once
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


def version_of(files: Iterable[str]) -> int:
    """The number N of `-vN` in the names of a dataset's shards, the largest; 1 if there is none."""
    names = filter(None, map(parse_name, files))
    found = (_VERSION.search(name.split) for name in names)
    return max((int(match[1]) for match in found if match is not None), default=1)


def add_suffix(file: str, suffix: str) -> str:
    """`train-v2-00000-of-00008.tfrecord` of `train-00000-of-00008.tfrecord` and `-v2`. Names of other writers
    stay as they are."""
    name = parse_name(file)
    return file if name is None else f"{name.split}{suffix}{file[len(name.split) :]}"


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

    A folder resolves to its TFRecords: the files in its manifest; without a manifest, those with a name of
    TFRecords (`is_tfrecord_name`); without these, those whose first bytes are a record, and any that are
    named alike but for their numbers. A folder without any, whose folders are all named as splits (`train`,
    `test`), resolves to theirs. Hidden files, names that begin with `_`, and `.crc` files are ignored.

    A file that is found twice is returned once, and the index of a file that is found (`data/train-*` matches
    both) is omitted. Files that are listed one by one are not checked for completeness. In an object store, a
    pattern resolves to files in the manifest, too.

    Raises:
        StoreError: a path or pattern matches no file.
        SpecError: a path is an unsupported URL.
        IncompleteError: a folder, or what a pattern matches, lacks shards that the manifest or the names of
            the others announce, or has shards that do not belong to them, or a folder has TFRecords with
            names of TFRecords and others; not with `as_found`, which returns all of them.
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
        with system_errors("read", one):  # a name that is too long, or a folder without permission
            paths, problems = _matches(one, manifests, as_found=as_found)
        if problems and not as_found:
            raise IncompleteError(problems)
        found += paths
    for path in () if as_found else found:
        path.check_regular()
    _note_empty(found, manifests)
    indices = {f"{path}{suffix}" for path in found for suffix in INDEX_SUFFIXES.values()}
    once: dict[str, Location] = {}
    for path in (path for path in found if str(path) not in indices):
        once.setdefault(str(path.resolve()), path)  # it may go by several names
    return tuple(once.values()), manifests


def _note_empty(paths: Iterable[Location], manifests: dict[Location, Manifest]) -> None:
    """Logs files of 0 bytes, which are read as files of no records, unless a manifest says that they are."""
    empty = []
    for path in paths:
        if _is_empty(path):
            with suppress(StoreError):
                manifest = manifests.get(path.parent) or manifest_in(path.parent)
                shards = () if manifest is None else manifest.all_shards
                if not any(shard.file == path.name and not shard.bytes for shard in shards):
                    empty.append(path)
    if empty:
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        text = f"{empty[0]}{more}: no records, as there are 0 bytes (an interrupted copy leaves such a file)"
        log.warning("%s", show_text(text))


def _is_empty(path: Location) -> bool:
    try:
        status = path.peek()
    except OSError:
        return False
    return status is not None and status.st_size == 0 and stat.S_ISREG(status.st_mode)


def path_list(files: Files) -> tuple[str, ...]:
    """Paths, patterns, folders and URLs as a tuple. Raises SpecError for a URL of no store."""
    several = [files] if isinstance(files, (str, os.PathLike, RemotePath)) else files
    return tuple(map(text_of, several))


def find_incomplete(files: Files) -> tuple[Problem, ...]:
    """The problems for which `expand` raises IncompleteError.

    Skips folders whose manifest cannot be read.
    """
    problems: list[Problem] = []
    for one in path_list(files):
        with suppress(StoreError):
            problems += _matches(one, {})[1]
    return tuple(dict.fromkeys(problems))


def _matches(
    pattern: str, manifests: dict[Location, Manifest], *, as_found: bool = False
) -> tuple[list[Location], list[Problem]]:
    """The files of a path, a pattern or a folder, and the problems for which `expand` raises IncompleteError.

    Adds the manifests that it reads. Raises StoreError if there are no files, and for an invalid manifest
    unless `as_found`.
    """
    place = location(pattern)
    if isinstance(place, RemotePath):
        return _remote_matches(place, manifests, as_found)
    if place.is_dir():
        return _folder_matches(place, _manifest_in(place, as_found), manifests, as_found)
    if place.exists():
        return [place], []
    found: list[Location] = sorted(map(LocalPath, glob.glob(pattern)))
    if not found:
        raise StoreError(_no_file(pattern, _siblings(place)))
    return found, [] if as_found else _completeness(found, place.name, manifests)


def _remote_matches(
    place: RemotePath, manifests: dict[Location, Manifest], as_found: bool
) -> tuple[list[Location], list[Problem]]:
    """The same for a URL. A folder and a pattern resolve to files in their manifest, without a LIST."""
    if _PATTERN.search(place.name):
        folder = place.parent
        manifest = manifest_in(folder)
        paths = folder.iterdir() if manifest is None else _named(folder, manifest, manifests)
        found: list[Location] = sorted(path for path in paths if fnmatch.fnmatchcase(path.name, place.name))
        if found:
            complete = as_found or manifest is not None
            return found, [] if complete else _completeness(found, place.name, manifests)
        if not place.exists() and not place.is_dir():  # a name may have a `[`
            hint = "the last part of a URL alone may be a pattern" if _PATTERN.search(folder.key) else ""
            raise StoreError(_no_file(str(place), hint))
    manifest = None if parse_name(place.name) else _manifest_in(place, as_found)
    if manifest is not None:  # the folder keeps the shards of replaced datasets, too
        return [*sorted(_named(place, manifest, manifests))], []
    if place.is_http or place.exists():
        return [place], []
    return _folder_matches(place, None, manifests, as_found)


def _manifest_in(folder: Location, as_found: bool) -> Manifest | None:
    """The manifest of a folder; None for an invalid one if its files are taken as found."""
    try:
        return manifest_in(folder)
    except StoreError:
        if not as_found:
            raise
        return None


def _folder_matches(
    folder: Location, manifest: Manifest | None, manifests: dict[Location, Manifest], as_found: bool
) -> tuple[list[Location], list[Problem]]:
    """The same for a folder; see `expand`."""
    files = folder.files()
    if manifest is not None:
        manifests[folder] = manifest
        shards = {path for path in (folder / name for name in manifest.files) if path.exists()}
        found = sorted(shards.union(path for path in files if is_tfrecord_name(path.name)))
        if not found:
            raise _no_tfrecords(folder, files, [])
        there = {path.name for path in found}
        return found, [*shard_differences(folder, manifest.files - there, there - manifest.files)]
    named, others = _tfrecords(files)
    if named:
        problems = [_other_name(path, named, others, files) for path in others]
        problems += _incomplete(_numbered_among(named), "*")
        return sorted([*named, *others]) if as_found else named, problems
    if others:
        return others, [*_incomplete(_numbered_among(others), "*")]
    folders = folder.folders()
    if not folders or not all(is_split_name(one.name) for one in folders):
        raise _no_tfrecords(folder, files, folders)
    matches = [_matches(str(one), manifests, as_found=as_found) for one in folders]
    return [path for paths, _ in matches for path in paths], [one for _, some in matches for one in some]


def has_tfrecords(folder: Location) -> bool:
    """Whether files in a folder are TFRecords, by their names or by their first bytes."""
    return any(_tfrecords(folder.files()))


def _tfrecords(files: Iterable[Location]) -> tuple[list[Location], list[Location]]:
    """The TFRecords among the files of a folder: those with a name of TFRecords, and others.

    Without any such name, the others include files that are named as those with records but for their
    numbers, so that a shard whose first bytes are corrupt is not lost.
    """
    visible = [path for path in files if not _IGNORED.fullmatch(path.name)]
    named = [path for path in visible if is_tfrecord_name(path.name)]
    others = _begin_with_records([path for path in visible if not is_tfrecord_name(path.name)])
    if not named:
        alike = {_without_numbers(path.name) for path in others}
        others = [path for path in visible if _without_numbers(path.name) in alike]
    return named, others


def _begin_with_records(files: Sequence[Location]) -> list[Location]:
    """Those of the files in a folder whose first bytes are a record. Raises StoreError."""
    pool = ThreadPool("recordspec-types", _REQUESTS)  # a request each, of those in a store
    try:
        begins = [pool.submit(_begins_with_record, path) for path in files]
        return [path for path, future in zip(files, begins, strict=True) if future.result()]
    finally:
        pool.close()


def _begins_with_record(path: Location) -> bool:
    status = path.peek()
    return (status is None or stat.S_ISREG(status.st_mode)) and begins_with_record(path)


def is_tfrecord_name(name: str) -> bool:
    """Whether a file is named as TFRecords are, by this package or by others: with a suffix `.tfrecord`,
    `.tfrecords`, `.tfrec`, `.tfr` or `.record`, as `mnist-train.tfrecord-00000-of-00001`,
    `data-00000-of-00001`, or `part-r-00000`; also compressed."""
    return _TFRECORD.fullmatch(name) is not None and _IGNORED.fullmatch(name) is None


def is_split_name(name: str) -> bool:
    """Whether a word is a common name of a split: `train`, `validation`, `test`, ..."""
    return _SPLIT.fullmatch(name) is not None


def split_word(path: Location) -> str:
    """The common name of a split in the name of a file, or else of its folder; "" if there is none."""
    words = (word for name in (path.name.partition(".")[0], path.parent.name) for word in _WORD.findall(name))
    return next((word.lower() for word in words if is_split_name(word)), "")


def splits_by_name(paths: Sequence[Location], default: str) -> dict[Location, str]:
    """The split of each file: that of a shard's name, without `-v2` and `-add1`; of other names the
    `split_word`, if every file has one and they are not all the same; else `default`."""
    words = {path: split_word(path) for path in paths}
    several = "" not in words.values() and len(set(words.values())) > 1
    shards = {path: parse_name(path.name) for path in paths}
    return {
        path: _ADDED.sub("", shard.split) if shard is not None else words[path] if several else default
        for path, shard in shards.items()
    }


def _without_numbers(name: str) -> str:
    return re.sub(r"\d+", "0", name)


def _other_name(
    path: Location, named: Sequence[Location], others: Sequence[Location], files: Sequence[Location]
) -> Problem:
    """The problem of a TFRecord file beside others whose names alone are those of TFRecords."""
    alone = _pattern(named, files) or "the others one by one"
    together = _pattern([*named, *others], files) or "the files one by one"
    got = f"a TFRecord file by its first bytes, but not by its name, unlike {named[0].name}"
    hint = f"give {alone} to read those alone, or {together} to read all"
    return Problem(where=str(path), expected="", got=got, hint=hint)


def _pattern(wanted: Sequence[Location], files: Iterable[Location], folder: Location | None = None) -> str:
    """A quoted pattern that matches the wanted files and no others of `files`; empty if there is none.

    Args:
        folder: that of the files; by default that of the first.
    """
    folder = wanted[0].parent if folder is None else folder
    names = sorted({path.name for path in wanted})
    start = _common_start(names).rstrip("0123456789")
    end = _common_start([name[::-1] for name in names])[::-1].lstrip("0123456789")
    all_names = {path.name for path in files}
    candidates = [f"*{end}", f"{start}*", f"{start}*{end}"] if len(names) > 1 else names
    for pattern in candidates:
        magic = glob.has_magic(pattern.replace("*", "", 1))
        if not magic and set(fnmatch.filter(all_names, pattern)) == {*names}:
            return f"'{folder / pattern}'"
    return ""


def _common_start(names: Iterable[str]) -> str:
    letters = takewhile(lambda letters: len({*letters}) == 1, zip(*names, strict=False))
    return "".join(letter for letter, *_ in letters)


def _no_tfrecords(folder: Location, files: Sequence[Location], folders: Sequence[Location]) -> StoreError:
    """The error for a folder without TFRecords. The hint has the pattern of those below it, if any."""
    hint, below, level = "", folder, folders
    for _ in range(_DEEPEST):
        below = below / "*"
        inside = [path for one in level[:_MOST_FOLDERS] for path in one.files()]
        if found := [path for path in inside if is_tfrecord_name(path.name)]:
            parents = ", ".join(dict.fromkeys(str(path.parent) for path in found))
            # the last part of a URL alone may be a pattern
            pattern = "" if isinstance(folder, RemotePath) else _pattern(found, inside, below)
            hint = f"give {pattern or parents} to read those below it"
            break
        level = [path for one in level[:_MOST_FOLDERS] for path in one.folders()]
    names = [path.name for path in (*files, *folders) if not path.name.startswith(".")]
    if not names and not folder.exists():  # a store has no empty folders
        return StoreError(_no_file(str(folder), hint))
    hint = hint or _siblings(folder / "*")
    return StoreError(State(where=str(folder), got="has no TFRecords", hint=hint))


def _no_file(pattern: str, hint: str) -> State:
    got = "matches no file" if glob.has_magic(pattern) else "does not exist"
    return State(where=pattern, got=got, hint=hint)


def _named(
    folder: RemotePath, manifest: Manifest, manifests: dict[Location, Manifest]
) -> Iterator[RemotePath]:
    """The shards that a manifest names; adds it to `manifests`."""
    manifests[folder] = manifest
    yield from (folder / shard.file for shard in manifest.all_shards)


def is_shard(path: Location) -> bool:
    """Whether a file is named as a shard."""
    return parse_name(path.name) is not None


def _completeness(found: list[Location], pattern: str, manifests: dict[Location, Manifest]) -> list[Problem]:
    """The problems of files that are not exactly the shards that a pattern of names should match.

    Raises StoreError for a manifest that cannot be read.
    """
    by_folder: dict[Location, list[_Numbered]] = defaultdict(list)
    for shard in _numbered_among(found):
        by_folder[shard.path.parent].append(shard)
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


def _numbered_among(files: Iterable[Location]) -> Iterator[_Numbered]:
    """The files whose names have a number of a number, but for indices."""
    for path in files:
        name = _NUMBERED.fullmatch(path.name)
        if name is not None and path.suffix not in INDEX_SUFFIXES.values():
            yield _Numbered(path=path, name=name)


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
    from recordspec.schema.schema import Schema, custom_kinds  # 0.2 s, and most files have none beside them

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
        if (problem := replaced(path)) is not None:
            raise StoreError(problem)
        if path.name not in shards:
            raise StoreError(State(where=str(path), got="is no shard that the manifest beside it lists"))
        if _is_gone(path):
            got, hint = "does not exist, and the manifest lists it", "build the dataset again"
            raise StoreError(State(where=str(path), got=got, hint=hint))
    return [shards[path.name] for path in paths]


def _is_gone(path: Location) -> bool:
    """Whether there is no such file; a missing object is an error where it is read."""
    try:
        path.peek()
    except FileNotFoundError:
        return True
    return False


def replaced(path: Location) -> Problem | None:
    """The problem of a shard that is gone because its dataset has been replaced; None otherwise."""
    if not _is_gone(path):
        return None
    manifest = manifest_in(path.parent)
    if manifest is None or path.name in manifest.files:
        return None
    got, hint = "was replaced since it was opened", "open it again, and start the pass again"
    return State(where=str(path.parent), got=got, hint=hint)


def check_schema(manifest: Manifest, schema: Schema, data: Location) -> None:
    """Raises StoreError, with every difference, if the dataset cannot be read with this schema."""
    if manifest.fingerprint in (None, schema.fingerprint):
        return
    from recordspec.schema.feature_set import differences
    from recordspec.schema.features import KINDS
    from recordspec.schema.schema import Schema

    kinds = KINDS | {feature.kind: type(feature) for _, feature in schema.placed}
    written = Schema.load(data / manifest.name_of(SCHEMA_FILE), kinds)
    hint = "build it again, or read it with its own schema.yaml"
    problems = [
        Problem(where=str(data), path=one.path, expected=one.expected, got=one.got, hint=hint)
        for one in differences(written, schema)
    ]
    if problems:
        raise StoreError(problems)


def check_size(path: Location, shard: Shard, size: int) -> None:
    """Raises StoreError for a file that has not the size in the manifest."""
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
