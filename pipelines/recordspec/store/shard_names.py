"""The names of shards and of other TFRecord files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from recordspec.locations import Location
from recordspec.store.manifest import (
    INDEX_SUFFIXES,
)
from recordspec.wire.compression import CODECS, Compression

_COMPRESSED = "|".join(re.escape(codec.suffix) for codec in CODECS.values())
_NUMBERS = r"(?P<split>.+)-(?P<index>\d{5,})-of-(?P<count>\d{5,})"
_NAME = re.compile(rf"{_NUMBERS}\.tfrecord({_COMPRESSED})")
# `train-v2-00000-of-00008.tfrecord` belongs to the build that replaced a dataset; rows may have been added to
# it.
_VERSION = re.compile(r"-v(\d{1,9})(-add\d+)?$")
_ADDED = re.compile(r"(-v\d{1,9})?(-add\d+)?$")
# Also names of other writers: `train-00000-of-01024`, `mnist-train.tfrecord-00000-of-00001`.
_NUMBERED = re.compile(rf"{_NUMBERS}(?P<suffix>(?P<type>(\.[a-z]+)??)({_COMPRESSED}))")
# The TFRecord names of a folder, by this package and others: a TFRecord suffix, perhaps followed by a number
# (TFDS's `mnist-train.tfrecord-00000-of-00001`); a number of a number (`train-00000-of-01024`, Beam's
# `data-00000-of-00001`); or a part of a job (Spark's and Hadoop's `part-r-00000`).
_TFRECORD = re.compile(
    rf"""(
        .*\.(tfrecords?|tfrecs?|tfr|records?)([-_.]?\d+([-_]of[-_]\d+)?)?
        | [^.]+-\d{{5,}}-of-\d{{5,}}
        | part-([rm]-)?\d{{5}}(-[^.]+)?
    )({_COMPRESSED}|\.deflate)?""",
    re.IGNORECASE | re.VERBOSE,
)
# Hidden files and Hadoop's checksums. Marker files of jobs, such as `_SUCCESS`, have neither a TFRecord name
# nor the first bytes of one, but the TFRecords of some writers begin with `_`.
IGNORED = re.compile(r"\..*|.*\.crc")
# The common names of splits, with the place of each in a list of splits.
_TUNING = ("val", "valid", "validation", "dev", "eval", "evaluation")
_SPLITS = {"train": 0, "training": 0, **dict.fromkeys(_TUNING, 1), "test": 2, "testing": 2}
_SPLIT = re.compile("|".join(_SPLITS), re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, kw_only=True)
class ShardName:
    """The parts of a shard's file name."""

    split: str
    index: int
    count: int

    def file(self, compression: Compression) -> str:
        """The file name: `train-00000-of-00008.tfrecord`, with `.gz` or `.zlib` if compressed."""
        stem = f"{self.split}-{self.index:05d}-of-{self.count:05d}"
        return f"{stem}.tfrecord{CODECS[compression].suffix}"


def parse_name(file: str) -> ShardName | None:
    """Parses a file name; None if it is not the name of a shard."""
    match = _NAME.fullmatch(file)
    if match is None:
        return None
    return ShardName(split=match["split"], index=int(match["index"]), count=int(match["count"]))


def notes_on_case(splits: Iterable[str]) -> Iterator[str]:
    """Notes on splits whose names differ only in case, as values of a column may."""
    alike: dict[str, list[str]] = {}
    for split in splits:
        alike.setdefault(split.casefold(), []).append(f"`{split}`")
    for names in alike.values():
        if len(names) > 1:
            yield f"splits: {len(names)} whose names differ in case alone, {' and '.join(names)}"


def version_of(files: Iterable[str]) -> int:
    """The largest N of `-vN` in the names of a dataset's shards; 1 if there is none."""
    names = filter(None, map(parse_name, files))
    versions = (_VERSION.search(name.split) for name in names)
    return max((int(match[1]) for match in versions if match is not None), default=1)


def add_suffix(file: str, suffix: str) -> str:
    """Adds a suffix to a shard's name: `train-00000-of-00008.tfrecord` and `-v2` give
    `train-v2-00000-of-00008.tfrecord`. Names of other writers stay unchanged.
    """
    name = parse_name(file)
    return file if name is None else f"{name.split}{suffix}{file[len(name.split) :]}"


def version_suffixes() -> Iterator[str]:
    """Yields the suffixes of `add_suffix`, to be tried until no name is taken."""
    yield ""
    yield from (f"-v{number}" for number in count(2))


def numbered(file: str) -> str | None:
    """The part of a shard's name before its number, also for other writers; None without a number."""
    match = _NUMBERED.fullmatch(file)
    return None if match is None else match["split"]


def is_tfrecord_name(name: str) -> bool:
    """Whether a name is a TFRecord name of this package or another: with a suffix `.tfrecord`, `.tfrecords`,
    `.tfrec`, `.tfr` or `.record`, also before a number as in `mnist-train.tfrecord-00000-of-00001`; or like
    `data-00000-of-00001` or `part-r-00000`. Compressed files count as well.
    """
    return _TFRECORD.fullmatch(name) is not None and IGNORED.fullmatch(name) is None


def is_split_name(name: str) -> bool:
    """Whether a word is a common name of a split: `train`, `validation`, `test`, ..."""
    return _SPLIT.fullmatch(name) is not None


def training_first(splits: Iterable[str]) -> list[str]:
    """Splits in the order of their use: training, validation, test, then all others as they are given."""
    return sorted(splits, key=lambda split: _SPLITS.get(split.lower(), len(_SPLITS)))


def split_word(path: Location) -> str:
    """The common split name in the name of a file, or else of its folder; "" if there is none."""
    words = (word for name in (path.name.partition(".")[0], path.parent.name) for word in _WORD.findall(name))
    return next((word.lower() for word in words if is_split_name(word)), "")


def splits_by_name(paths: Sequence[Location], default: str) -> dict[Location, str]:
    """The split of each file, by its name.

    The name of a shard gives its split, without `-v2` and `-add1`. Other files have the split of `split_word`
    if every file has one and they are not all the same; else `default`.
    """
    words = {path: split_word(path) for path in paths}
    several = "" not in words.values() and len(set(words.values())) > 1
    shards = {path: parse_name(path.name) for path in paths}
    return {
        path: _ADDED.sub("", shard.split) if shard is not None else words[path] if several else default
        for path, shard in shards.items()
    }


def without_numbers(name: str) -> str:
    return re.sub(r"\d+", "0", name)


def is_shard(path: Location) -> bool:
    """Whether a file has the name of a shard."""
    return parse_name(path.name) is not None


class NumberedFile:
    """A file whose name has its number and the number of shards.

    Attributes:
        type: the suffix, without that of a compression.
    """

    def __init__(self, path: Location, name: re.Match[str]) -> None:
        self.path = path
        self.split, self.type, self.suffix = name["split"], name["type"], name["suffix"]
        self.index, self.count = int(name["index"]), int(name["count"])

    def sibling(self, number: str) -> Location:
        """The path of the shard with another number, or with `*`."""
        return self.path.with_name(f"{self.split}-{number}-of-{self.count:05d}{self.suffix}")


def numbered_among(files: Iterable[Location]) -> Iterator[NumberedFile]:
    """The files whose names contain a number of a number, except indices."""
    for path in files:
        name = _NUMBERED.fullmatch(path.name)
        if name is not None and path.suffix not in INDEX_SUFFIXES.values():
            yield NumberedFile(path=path, name=name)
