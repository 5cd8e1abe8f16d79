"""The options of writing a dataset: of `recordspec.write` and of the `write:` section of a config."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np

from recordspec.errors import Problem, SpecError, describe
from recordspec.schema.options import parse_bytes, parse_share, to_builtins
from recordspec.wire.compression import Compression

# Excludes hidden files, and leaves room for the rest of a shard's name.
_SPLIT_NAME = re.compile(r"[\w+]([\w.+-]{0,98}[\w.+])?")
# `invalid: quarantine` is for a few rows: many invalid rows indicate a mistake in the schema or the source.
_AUTO_SHARE, _FEWEST_INVALID = "5%", 10
_WHOLE = (int, np.integer)
SPLIT_NAME = "a split's name of letters, digits, _, . and -"


def is_split_name(name: str) -> bool:
    """Whether a name can be the name of a split, and so part of a file name."""
    return _SPLIT_NAME.fullmatch(name) is not None


@dataclass(frozen=True, kw_only=True)
class ShardSize:
    """Shards of about this many bytes before compression, such as `128MiB`.

    Attributes:
        size: in B, KiB, MiB or GiB.
    """

    size: str

    def __post_init__(self) -> None:
        parse_bytes(self.size, "size")

    @property
    def bytes(self) -> int:
        return parse_bytes(self.size)


@dataclass(frozen=True, kw_only=True)
class Key:
    """The columns that identify a row.

    Attributes:
        names: features, or columns of the source; by default, the row's whole content.
        unique: whether two rows with the same key are an error. Otherwise they are in the same split, at
            different places in the shuffled order.
    """

    names: str | tuple[str, ...] | None = None
    unique: bool = True


@dataclass(frozen=True, kw_only=True)
class ByColumn:
    """The feature, or the column of the source, that names the split of each row.

    Attributes:
        column: the name of the feature, or of the column.
    """

    column: str


@dataclass(frozen=True, kw_only=True)
class Folds:
    """Splits of equal weight, `fold0`, `fold1`, ..., for cross-validation.

    Attributes:
        folds: the number of splits, 2 to 1000.
    """

    folds: int

    def __post_init__(self) -> None:
        if not 2 <= self.folds <= 1000:
            raise SpecError(Problem(path=("folds",), expected="2 to 1000", got=str(self.folds)))


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Records of many rows each. They are read faster and need less space.

    Attributes:
        blocks: the number of rows per record.
    """

    blocks: int

    def __post_init__(self) -> None:
        if not 1 <= self.blocks <= 1 << 20:
            got = str(self.blocks)
            raise SpecError(Problem(path=("blocks",), expected="1 to 1048576 rows", got=got))


@dataclass(frozen=True, kw_only=True)
class Order:
    """A global shuffle: the order of rows is a function of the seed and of their keys. `shuffle: true` has
    the seed 0.

    Attributes:
        seed: the seed of the order.
    """

    SHORT_FORM: ClassVar[str] = "seed"
    TRUE: ClassVar[Mapping[str, Any]] = {"seed": 0}

    seed: int


@dataclass(frozen=True, kw_only=True)
class Quarantine:
    """Invalid rows are skipped, and listed in `rejects.jsonl` with their place and the reason.

    Attributes:
        max_invalid: the largest number of invalid rows, or their largest share of all rows, such as `20%`;
            more are an error. `auto` allows 5% of the rows, but at least 10 rows; null allows any number.
    """

    max_invalid: int | str | None = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.max_invalid, int) and self.max_invalid < 0:
            got = str(self.max_invalid)
            raise SpecError(Problem(path=("max_invalid",), expected="a number of rows", got=got))
        if isinstance(self.max_invalid, str) and self.max_invalid != "auto":
            parse_share(self.max_invalid, "max_invalid")

    @property
    def is_share(self) -> bool:
        """Whether the limit depends on the number of all rows."""
        return isinstance(self.max_invalid, str)

    def limit(self, rows: int | None) -> int | None:
        """The largest number of invalid rows among `rows`; None if any number is allowed, or if the limit is
        a share and `rows` is None."""
        if not isinstance(self.max_invalid, str):
            return self.max_invalid
        if rows is None:
            return None
        if self.max_invalid == "auto":
            return max(_FEWEST_INVALID, math.floor(rows * parse_share(_AUTO_SHARE)))
        return math.floor(rows * parse_share(self.max_invalid))

    def __str__(self) -> str:
        """The limit as messages show it: `max_invalid: 5%`."""
        auto = f", {_AUTO_SHARE} but at least {_FEWEST_INVALID}" if self.max_invalid == "auto" else ""
        return f"max_invalid: {self.max_invalid}{auto}"


@dataclass(frozen=True, kw_only=True)
class Write:
    """The options of dividing rows into splits and shards.

    Attributes:
        key: the features, or the columns of the source, that identify a row. Only the key determines splits
            and the shuffle. Two rows with the same key are an error, unless `{names: ride, unique: false}`
            allows them. The default key is the row's whole content and, for copies of a row, the number of
            the copy: copies are split and shuffled like any other rows. `{unique: false}` keeps copies in one
            split; `{unique: true}` makes them an error.
        splits: the splits and their weights: the split of a row is then a function of its key; or a number of
            folds; or the column that names the split.
        group_by: the feature or column that groups rows. All rows with the same value are in the same split,
            which is a function of the value.
        shards: per split: `auto` (64 to 128 MiB each), a number, or a size.
        compression: none, gzip or zlib, of whole files.
        layout: `rows`, one row per record; or `{blocks: 256}`, 256 rows per record.
        shuffle: whether rows are shuffled, or the seed of the shuffle; null keeps the order of the source.
        invalid: the treatment of invalid rows. `error`: the build fails. `quarantine`: invalid rows are left
            out and listed in `rejects.jsonl`, if they are at most 5% of the rows, or 10 rows.
            `{max_invalid: 20%}` or `{max_invalid: 100}` sets another limit.
    """

    key: str | tuple[str, ...] | Key | None = None
    splits: ByColumn | Folds | dict[str, float] = field(default_factory=lambda: {"train": 1.0})
    group_by: str | None = None
    shards: Literal["auto"] | int | ShardSize = "auto"
    compression: Compression = "none"
    layout: Literal["rows"] | Blocks = "rows"
    shuffle: Order | None = None
    invalid: Literal["error", "quarantine"] | Quarantine = "error"

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    def _check(self) -> Iterator[Problem]:
        if isinstance(self.shards, int) and not 1 <= self.shards <= 99_999:
            yield Problem(path=("shards",), expected="1 to 99999", got=str(self.shards))
        if self.group_by is not None and isinstance(self.splits, ByColumn):
            hint = f"the column `{self.splits.column}` says it already"
            yield Problem(path=("group_by",), expected="no group", got=f"`{self.group_by}`", hint=hint)
        if not self.splits:
            yield Problem(path=("splits",), expected="at least one split", got="none")
        for name, weight in (self.weights or {}).items():
            if not is_split_name(name):
                yield Problem(path=("splits", name), expected=SPLIT_NAME, got=f"`{name}`")
            if not weight > 0 or weight == float("inf"):
                yield Problem(path=("splits", name), expected="a weight above 0", got=str(weight))
        if self.keys and len(set(self.keys)) < len(self.keys):
            yield Problem(path=("key",), expected="every name once", got=", ".join(self.keys))

    @property
    def quarantine(self) -> Quarantine | None:
        """The options of skipping invalid rows; None if an invalid row is an error."""
        if self.invalid == "error":
            return None
        return Quarantine() if self.invalid == "quarantine" else self.invalid

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key; empty if the key is the row's content."""
        names = self.key.names if isinstance(self.key, Key) else self.key
        if names is None:
            return ()
        return (names,) if isinstance(names, str) else names

    @property
    def unique(self) -> bool:
        """Whether two rows with the same key are an error."""
        return self.key.unique if isinstance(self.key, Key) else self.key is not None

    @property
    def splits_by_content(self) -> bool:
        """Whether the split of a row is a function of its whole content."""
        return not self.keys and self.group_by is None and len(self.weights or ()) > 1

    @property
    def spreads_copies(self) -> bool:
        """Whether the copies of a row have splits of their own."""
        return self.splits_by_content and self.key is None

    @property
    def numbers_copies(self) -> bool:
        """Whether the number of a copy determines its split, or its place in the order."""
        return self.spreads_copies or (self.shuffle is not None and not self.unique)

    @property
    def weights(self) -> dict[str, float] | None:
        """The weights of the splits, by name; None if a column names the splits."""
        if isinstance(self.splits, Folds):
            return {f"fold{index}": 1.0 for index in range(self.splits.folds)}
        return None if isinstance(self.splits, ByColumn) else self.splits

    @property
    def division(self) -> dict[str, Any]:
        """The options that determine the split of a row, besides its key, as plain values."""
        group = {} if self.group_by is None else {"group_by": self.group_by}
        copies = {"copies": "spread" if self.spreads_copies else "together"} if self.splits_by_content else {}
        return {"splits": to_builtins(self.splits), **group, **copies}

    @property
    def block(self) -> int | None:
        """The number of rows in a record; None if each record is one row."""
        return self.layout.blocks if isinstance(self.layout, Blocks) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the key, the group and the split, features or not; each row must have them."""
        split = (self.splits.column,) if isinstance(self.splits, ByColumn) else ()
        group = () if self.group_by is None else (self.group_by,)
        return tuple(dict.fromkeys((*self.keys, *group, *split)))


class ReshardOptions(TypedDict, total=False):
    """The fields of `Write` as keyword arguments, except the fields that depend on the values of rows."""

    shards: Literal["auto"] | int | Mapping[str, str] | ShardSize
    compression: Compression
    layout: Literal["rows"] | Mapping[str, int] | Blocks
    shuffle: bool | int | Mapping[str, int] | Order | None


class WriteOptions(ReshardOptions, total=False):
    """All fields of `Write` as keyword arguments, except `splits`, which is the argument `split`."""

    key: str | Sequence[str] | Mapping[str, Any] | Key | None
    group_by: str | None
    invalid: Literal["error", "quarantine"] | Mapping[str, int | str | None] | Quarantine


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The arguments of `write` for executing a build. Only `limit` changes the rows of the dataset."""

    jobs: int = 1
    memory: str | None = None
    limit: int | None = None
    allow_empty: bool = False
    force: bool = False
    append: bool = False
    resume: bool = False
    progress: bool | None = None

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    @property
    def processes(self) -> int:
        """The number of processes; 1 if `limit` is set, because batches are then taken in sequence."""
        return 1 if self.limit is not None else self.jobs

    def _check(self) -> Iterator[Problem]:
        if not isinstance(self.jobs, _WHOLE) or not 1 <= self.jobs <= 1024:
            yield Problem(path=("jobs",), expected="1 to 1024", got=_shown(self.jobs))
        if self.limit is not None and (not isinstance(self.limit, _WHOLE) or self.limit < 1):
            yield Problem(path=("limit",), expected="a number of rows", got=_shown(self.limit))
        if self.limit is not None and self.resume:
            yield Problem(path=("resume",), expected="a build of all rows", got=f"limit {self.limit}")
        if self.force and self.append:
            yield Problem(path=("append",), expected="either `append` or `force`", got="both")


class PublishOptions(TypedDict, total=False):
    """The fields of `Execution` as keyword arguments, except the fields that a cluster determines itself."""

    allow_empty: bool
    force: bool
    append: bool
    progress: bool | None


class BuildOptions(PublishOptions, total=False):
    """All fields of `Execution` as keyword arguments."""

    jobs: int
    memory: str | None
    limit: int | None
    resume: bool


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, _WHOLE) else describe(value)
