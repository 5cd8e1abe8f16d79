"""How a dataset is written: the options of `recordspec.write` and of a config's `write:`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from recordspec.errors import Problem, SpecError
from recordspec.wire.tfrecord import Compression

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(B|KiB|MiB|GiB)")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SPLIT_NAME = re.compile(r"[\w.+]([\w.+-]*[\w.+])?")


@dataclass(frozen=True, kw_only=True)
class ShardSize:
    """Shards of about this many bytes before compression, such as `128MiB`."""

    size: str

    def __post_init__(self) -> None:
        if not _SIZE.fullmatch(self.size) or not self.bytes:
            expected = "a size such as 128MiB (B, KiB, MiB, GiB)"
            raise SpecError(Problem(path=("size",), expected=expected, got=f"`{self.size}`"))

    @property
    def bytes(self) -> int:
        number, unit = _SIZE.fullmatch(self.size).groups()  # type: ignore[union-attr]
        return int(float(number) * _UNITS[unit])


@dataclass(frozen=True, kw_only=True)
class Order:
    """A global shuffle: the order of rows is a function of the seed and of their keys."""

    SHORT_FORM: ClassVar[str] = "seed"

    seed: int


@dataclass(frozen=True, kw_only=True)
class Quarantine:
    """Rows that do not fit are set aside in `rejects.jsonl`, with the reason and their place.

    Attributes:
        max_invalid: one more of them is an error; null allows any number.
    """

    max_invalid: int | None = None

    def __post_init__(self) -> None:
        if self.max_invalid is not None and self.max_invalid < 0:
            got = str(self.max_invalid)
            raise SpecError(Problem(path=("max_invalid",), expected="a number of rows", got=got))


@dataclass(frozen=True, kw_only=True)
class Write:
    """How rows become shards.

    Attributes:
        key: what identifies a row: the name of a feature or of a column of the source, or several.
            By default the row's whole content. Splits and the shuffle depend on it alone. Two rows
            with one key are an error.
        splits: the splits and their weights; a row's split is a function of its key.
        shards: of each split: `auto` (64 to 128 MiB each), a number, or a size.
        compression: none, gzip or zlib, of whole files.
        shuffle: null keeps the order of the source.
        invalid: what becomes of a row that does not fit: `error`, nothing is published, or
            `quarantine`, it is set aside; see `Quarantine`.
    """

    key: str | tuple[str, ...] | None = None
    splits: dict[str, float] = field(default_factory=lambda: {"train": 1.0})
    shards: Literal["auto"] | int | ShardSize = "auto"
    compression: Compression = "none"
    shuffle: Order | None = None
    invalid: Literal["error", "quarantine"] | Quarantine = "error"

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    def _check(self) -> Iterator[Problem]:
        if isinstance(self.shards, int) and not 1 <= self.shards <= 99_999:
            yield Problem(path=("shards",), expected="1 to 99999", got=str(self.shards))
        if not self.splits:
            yield Problem(path=("splits",), expected="at least one split", got="none")
        for name, weight in self.splits.items():
            if not _SPLIT_NAME.fullmatch(name):
                expected = "a split's name of letters, digits, _, . and -"
                yield Problem(path=("splits", name), expected=expected, got=f"`{name}`")
            if not weight > 0 or weight == float("inf"):
                yield Problem(path=("splits", name), expected="a weight above 0", got=str(weight))
        if self.keys and len(set(self.keys)) < len(self.keys):
            yield Problem(path=("key",), expected="every name once", got=", ".join(self.keys))

    @property
    def quarantine(self) -> Quarantine | None:
        """How rows that do not fit are set aside; None where they are an error."""
        if self.invalid == "error":
            return None
        return Quarantine() if self.invalid == "quarantine" else self.invalid

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key; none where the key is the row's content."""
        if self.key is None:
            return ()
        return (self.key,) if isinstance(self.key, str) else self.key
