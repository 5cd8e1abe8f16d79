"""Shards: their names, how many there are, and the files that a pattern means."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from recordspec.errors import IncompleteError, Problem, StoreError
from recordspec.locations import check_regular, local
from recordspec.store.manifest import FILE, INDEX_SUFFIXES, Manifest, unlike
from recordspec.wire.compression import CODECS, Compression

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_COMPRESSED = "|".join(re.escape(codec.suffix) for codec in CODECS.values())
_NUMBERS = r"(?P<split>.+)-(?P<index>\d{5,})-of-(?P<count>\d{5,})"
_NAME = re.compile(rf"{_NUMBERS}\.tfrecord({_COMPRESSED})")
# Names of others, too: `train-00000-of-01024`, `mnist-train.tfrecord-00000-of-00001`.
_NUMBERED = re.compile(rf"{_NUMBERS}(?P<suffix>(?P<type>(\.[a-z]+)??)({_COMPRESSED}))")
# Missing shards that are looked for: a name may announce any number.
_MOST_MISSING = 100_000
# TensorFlow's guide to input performance asks for files of 100 MB and more; a power of two divides
# among most numbers of workers.
SMALLEST_AUTO = 64 << 20


@dataclass(frozen=True, kw_only=True)
class ShardName:
    """What a shard's file name says."""

    split: str
    index: int
    count: int

    def file(self, compression: Compression) -> str:
        """`train-00000-of-00008.tfrecord`, with `.gz` or `.zlib` where compressed."""
        stem = f"{self.split}-{self.index:05d}-of-{self.count:05d}"
        return f"{stem}.tfrecord{CODECS[compression].suffix}"


def parse_name(file: str) -> ShardName | None:
    """What the name says, or None where it is no shard's."""
    match = _NAME.fullmatch(file)
    if match is None:
        return None
    return ShardName(split=match["split"], index=int(match["index"]), count=int(match["count"]))


def auto_count(size: int, rows: int) -> int:
    """How many shards `auto` means: a power of two, each of 64 to 128 MiB, never more than rows."""
    wanted = 1 << max(0, (size // SMALLEST_AUTO).bit_length() - 1)
    return max(1, min(wanted, rows))


def expand(files: Files, *, as_found: bool = False) -> tuple[Path, ...]:
    """The files that a path, a pattern, a folder, or several of them mean, in order of name.

    A folder means its shards; a file that is meant twice is there once; the index of a file that is meant
    (`data/train-*` matches both) is not. Files that are listed one by one are taken as they are.

    Raises:
        StoreError: one means nothing.
        SpecError: one is a URL.
        IncompleteError: a folder, or what a pattern matches, lacks shards that the manifest or the names of
            the others announce, or has shards that do not belong to them; not with `as_found`.
    """
    given = listed(files)
    if not given:
        raise StoreError(Problem(expected="at least one file", got="none"))
    found = [path for one in given for path in _expand_one(one, as_found)]
    for path in found:
        check_regular(path)
    indices = {f"{path}{suffix}" for path in found for suffix in INDEX_SUFFIXES.values()}
    once: dict[str, Path] = {}
    for path in (path for path in found if str(path) not in indices):
        once.setdefault(os.path.realpath(path), path)  # it may go by several names
    return tuple(once.values())


def listed(files: Files) -> tuple[str, ...]:
    """A path, a pattern, a folder, or several, one by one. Raises SpecError for a URL."""
    several = [files] if isinstance(files, (str, os.PathLike)) else files
    given = tuple(os.fspath(one) for one in several)
    for one in given:
        local(one)
    return given


def missing(files: Files) -> tuple[Problem, ...]:
    """What `expand` refuses: shards that are missing in a folder, or of a pattern, or do not belong there.

    A manifest that cannot be read is passed over, and so are its shards.
    """
    problems: list[Problem] = []
    for one in listed(files):
        path = Path(one)
        with suppress(StoreError):
            if path.is_dir():
                problems += _others(_expand_one(str(path), as_found=True), "*")
            elif not path.exists():
                problems += _others(_expand_one(str(path), as_found=True), path.name)
    return tuple(dict.fromkeys(problems))


def _expand_one(pattern: str, as_found: bool) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        shards = sorted(child for child in path.iterdir() if parse_name(child.name))
        if not shards:
            expected, hint = "shards in the folder", _siblings(path / "*")
            raise StoreError(Problem(where=pattern, expected=expected, got="none", hint=hint))
        if not as_found:
            _check(shards, "*")
        return shards
    if path.exists():
        return [path]
    found = sorted(map(Path, glob.glob(pattern)))
    if not found:
        raise StoreError(Problem(where=pattern, expected="a file", got="none", hint=_siblings(path)))
    if not as_found:
        _check(found, path.name)
    return found


def _check(found: list[Path], pattern: str) -> None:
    problems = _others(found, pattern)
    if problems:
        raise IncompleteError(problems)


def _others(found: list[Path], pattern: str) -> list[Problem]:
    """What is wrong where these are not all the shards that a pattern of names should match, and no others.

    Raises StoreError for a manifest that cannot be read.
    """
    by_folder: dict[Path, list[tuple[Path, re.Match[str]]]] = defaultdict(list)
    for path in found:
        name = _NUMBERED.fullmatch(path.name)
        if name is not None and path.suffix not in INDEX_SUFFIXES.values():
            by_folder[path.parent].append((path, name))
    problems: list[Problem] = []
    for folder, shards in by_folder.items():
        if (folder / FILE).exists():
            problems += _other_than_manifest(folder, {path.name for path, _ in shards}, pattern)
        else:
            problems += _incomplete(shards, pattern)
    return problems


def _other_than_manifest(folder: Path, found: set[str], pattern: str) -> Iterator[Problem]:
    named = Manifest.load(folder).files
    wanted = {name for name in named if fnmatch.fnmatchcase(name, pattern)}
    return unlike(folder, wanted - found, found - named)


def _incomplete(shards: Iterable[tuple[Path, re.Match[str]]], pattern: str) -> Iterator[Problem]:
    """What is wrong with shards without a manifest, by their names, of which each tells how many there are:
    those that a pattern of names would match and that are not there, and splits with more than one number
    of shards.
    """
    splits: dict[tuple[Path, str, str], dict[int, dict[int, Path]]] = defaultdict(lambda: defaultdict(dict))
    for path, name in shards:
        index, count = int(name["index"]), int(name["count"])
        if index >= count:
            yield Problem(where=str(path), expected=f"a number below {count}", got=str(index))
            continue
        first = splits[path.parent, name["split"], name["type"]][count].setdefault(index, path)
        if first != path:
            yield Problem(where=str(path), expected=f"one shard of this number, {first.name}", got="two")
    for (folder, split, _), counts in sorted(splits.items()):
        # the number of which most are there is the split's; of equals, the larger
        count = max(counts, key=lambda count: (len(counts[count]) / count, count))
        for other in sorted(counts):
            found = counts[other]
            where = folder / f"{split}-*-of-{other:05d}{_suffix_of(found)}"
            if other != count:
                names = [path.name for path in found.values()]
                got = f"{len(found)} of {other}: {_ranges(found)}" if len(names) > 1 else f"one of {other}"
                hint = f"to read only some, give a pattern such as '{split}-*-of-{count:05d}*'"
                yield Problem(
                    where=str(where if len(names) > 1 else folder / names[0]),
                    expected=f"shards of {count}, as {split}-*-of-{count:05d}",
                    got=got,
                    hint=hint,
                )
                continue
            absent = list(islice((index for index in range(count) if index not in found), _MOST_MISSING))
            suffix = _suffix_of(found)
            lacking = [index for index in absent if _would_match(split, index, count, suffix, pattern)]
            if lacking:
                at_least = "at least " * (len(absent) == _MOST_MISSING)
                got = f"{len(found)}; {at_least}{len(lacking):,} of {count} missing: {_ranges(lacking)}"
                hint = "files that are listed one by one are taken as they are"
                yield Problem(where=str(where), expected=f"{count} shards", got=got, hint=hint)


def _suffix_of(shards: dict[int, Path]) -> str:
    """What shards are called behind their numbers."""
    name = _NUMBERED.fullmatch(next(iter(shards.values())).name)
    return "" if name is None else name["suffix"]


def _would_match(split: str, index: int, count: int, suffix: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(f"{split}-{index:05d}-of-{count:05d}{suffix}", pattern)


def _ranges(numbers: Iterable[int]) -> str:
    """Numbers of shards: `00002, 00004 to 00007`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join(" to ".join(f"{number:05d}" for number in run) for run in runs)


def _siblings(path: Path) -> str:
    """What stands where a file was looked for."""
    folder = path.parent
    if not folder.is_dir():
        missing = "no folder matches" if glob.has_magic(str(folder)) else "there is no folder"
        return f"{missing} {folder}"
    names = sorted(child.name for child in folder.iterdir() if not child.name.startswith("."))
    return (
        f"{folder} has {', '.join(names[:3])}{', ...' * (len(names) > 3)}"
        if names
        else (f"{folder} is empty")
    )
