"""How a dataset is read: the options of `recordspec.read` and of a config's `read:`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from recordspec.errors import Problem, SpecError


def _at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise SpecError(Problem(path=(option,), expected=f"at least {least}", got=str(value)))


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Records in a batch; the last may be smaller unless it is dropped."""

    SHORT_FORM: ClassVar[str] = "size"

    size: int
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        _at_least("size", self.size, 1)


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """A shuffle of files and, within a buffer, of records; another in every epoch.

    Attributes:
        buffer: in records.
        seed: what the order follows from.
    """

    seed: int
    buffer: int = 10_000

    def __post_init__(self) -> None:
        _at_least("buffer", self.buffer, 1)


@dataclass(frozen=True, kw_only=True)
class Interleave:
    """How files are mixed: `block` records from each of `cycle` files in turn.

    Attributes:
        cycle: files open at a time.
        block: records from one before the next.
        parallel: how many are read at once, by threads: worth it for remote files. A local disk is
            faster without, because each hand-over between threads costs more than the reading.
    """

    cycle: int = 16
    block: int = 16
    parallel: Literal["auto"] | int | None = None

    def __post_init__(self) -> None:
        _at_least("cycle", self.cycle, 1)
        _at_least("block", self.block, 1)
        if isinstance(self.parallel, int):
            _at_least("parallel", self.parallel, 1)


@dataclass(frozen=True, kw_only=True)
class Read:
    """How shards become batches. What is absent is not done.

    Attributes:
        batch: records in a batch; without it single records.
        shuffle: without it, records come in the order of the files.
        interleave: of files; by default only when shuffling.
        cache: `memory`, of the serialized records.
        repeat: how many times; `forever` has no end.
        prefetch: batches made ahead.
        deterministic: whether the order is the same at any parallelism.
    """

    batch: Batch | None = None
    shuffle: Shuffle | None = None
    interleave: Interleave | None = None
    cache: Literal["none", "memory"] = "none"
    repeat: Literal["forever"] | int = 1
    prefetch: Literal["auto"] | int | None = "auto"
    deterministic: bool = True

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    def _check(self) -> Iterator[Problem]:
        if isinstance(self.repeat, int) and self.repeat < 1:
            yield Problem(path=("repeat",), expected="at least 1, or forever", got=str(self.repeat))
        if isinstance(self.prefetch, int) and self.prefetch < 0:
            yield Problem(path=("prefetch",), expected="at least 0, or auto", got=str(self.prefetch))

    def batches(self, rows: int) -> int | None:
        """How many batches `rows` rows are; None without end."""
        if self.repeat == "forever":
            return None
        rows *= self.repeat
        if self.batch is None:
            return rows
        size = self.batch.size
        return rows // size if self.batch.drop_remainder else -(-rows // size)
