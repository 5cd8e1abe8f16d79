"""Shards: their names, how many there are, and the files that a pattern means."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from recordspec.errors import Problem, StoreError
from recordspec.store.manifest import INDEX_SUFFIXES, check_folder
from recordspec.wire.compression import Compression, check_regular

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_NAME = re.compile(r"(?P<split>.+)-(?P<index>\d{5,})-of-(?P<count>\d{5,})\.tfrecord(\.gz|\.zlib)?")
_SUFFIX = {"none": "", "gzip": ".gz", "zlib": ".zlib"}
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
        return f"{stem}.tfrecord{_SUFFIX[compression]}"


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
    (`data/train-*` matches both) is not. Raises StoreError where one means nothing, and unless the shards are
    taken as they are found, where a folder has others than its manifest.
    """
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not given:
        raise StoreError(Problem(expected="at least one file", got="none"))
    found = [path for one in given for path in _expand_one(os.fspath(one), as_found)]
    for path in found:
        check_regular(path)
    indices = {f"{path}{suffix}" for path in found for suffix in INDEX_SUFFIXES.values()}
    once: dict[str, Path] = {}
    for path in (path for path in found if str(path) not in indices):
        once.setdefault(os.path.realpath(path), path)  # it may go by several names
    return tuple(once.values())


def local(path: str | os.PathLike[str]) -> Path:
    """A path on this machine. Raises StoreError for a URL, which would become a folder of that name."""
    text = os.fspath(path)
    if "://" in text:
        hint = "copy it here first"
        raise StoreError(Problem(where=text, expected="a local path", got="a URL", hint=hint))
    return Path(text)


def _expand_one(pattern: str, as_found: bool) -> list[Path]:
    path = local(pattern)
    if path.is_dir():
        shards = sorted(child for child in path.iterdir() if parse_name(child.name))
        if not shards:
            expected, hint = "shards in the folder", _siblings(path / "*")
            raise StoreError(Problem(where=pattern, expected=expected, got="none", hint=hint))
        if not as_found:
            check_folder(path, shards)
        return shards
    if path.exists():
        return [path]
    found = sorted(map(Path, glob.glob(pattern)))
    if not found:
        raise StoreError(Problem(where=pattern, expected="a file", got="none", hint=_siblings(path)))
    return found


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
