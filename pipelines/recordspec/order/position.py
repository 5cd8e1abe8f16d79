"""A position in the reading of a dataset, and the options that determine the order of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

from recordspec.errors import Problem, SpecError

if TYPE_CHECKING:
    from recordspec.order.read_options import Read

# Increased when a release changes the order of rows for the same seed, buffer or bucket.
ORDER_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Position:
    """A position in the reading of a dataset: before batch `step` of pass `epoch`, both counted from 0.

    The rows that come next also depend on the number of workers, the batch, the dataset and the options that
    determine the order. A position contains these as well: `Pipeline.position` and `Backup` set them, and a
    dataset that begins here refuses other values. The beginning, epoch 0 and step 0, is valid for all values.

    Attributes:
        epoch: the number of the pass, from 0.
        step: the number of batches of the pass that a worker has read.
        workers: the number of workers that share the rows.
        batch: the number of rows per batch, of one replica; None if unknown.
        manifest: the SHA-256 of the dataset's manifest; None if unknown, or for files without a manifest.
        order: the options that determine which rows come next (the split, the seed, the buffer, the filter
            and more), by name, as JSON values; None if unknown.

    Example:
        >>> position = rs.Position(epoch=1, step=3)
        >>> position.epoch
        1
    """

    epoch: int = 0
    step: int = 0
    workers: int = 1
    batch: int | None = None
    manifest: str | None = None
    order: Mapping[str, Any] | None = field(default=None, hash=False)
    _opened: ClassVar[Any] = None

    def __post_init__(self) -> None:
        for name, least in {"epoch": 0, "step": 0, "workers": 1, "batch": 1}.items():
            value = getattr(self, name)
            unknown = name == "batch" and value is None
            if not unknown and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise SpecError(Problem(path=("start", name), expected=f"{least} or more", got=repr(value)))
        manifest: Any = self.manifest
        if not isinstance(manifest, str | None):
            expected = "the SHA-256 of a manifest"
            raise SpecError(Problem(path=("start", "manifest"), expected=expected, got=repr(manifest)))
        order: Any = self.order
        if not isinstance(order, Mapping | None):
            expected = "options by name"
            raise SpecError(Problem(path=("start", "order"), expected=expected, got=repr(order)))

    def _watched(self, opened: Callable[[Position, Opening], None]) -> Position:
        """A copy that calls `opened` when a dataset that begins here is made, with the complete position."""
        made = replace(self)
        object.__setattr__(made, "_opened", opened)
        return made

    def _begin(self, opening: Opening, **read: Any) -> None:
        """Begins to read a dataset here. `read` has the fields of the dataset's position except `epoch` and
        `step`.

        Raises SpecError if the workers, the batch or the rows differ from this position's.
        """
        complete = replace(self, **read)
        if (self.epoch, self.step) != (0, 0) and (problems := list(self._differences(complete))):
            raise SpecError(problems)
        if self._opened is not None:
            self._opened(complete, opening)

    def _differences(self, read: Position) -> Iterator[Problem]:
        """The problems if rows were read differently before this position than they are from here on."""
        if self.workers != read.workers:
            hint = "with another number of workers, some rows would be read twice and some never"
            expected = f"{read.workers}, the number of workers that read"
            got = str(self.workers)
            yield Problem(path=("start", "workers"), expected=expected, got=got, hint=hint)
        if self.batch not in (None, read.batch):
            hint = "with another batch size, a step begins at another row"
            expected = f"{read.batch}, the rows per batch that are read"
            got = str(self.batch)
            yield Problem(path=("start", "batch"), expected=expected, got=got, hint=hint)
        if self.manifest not in (None, read.manifest):
            hint = "the dataset was replaced, rows were added, or it is another dataset"
            expected = "no manifest" if read.manifest is None else f"{read.manifest[:12]}..."
            got = f"{(self.manifest or '')[:12]}..."
            yield Problem(path=("start", "manifest"), expected=expected, got=got, hint=hint)
        if self.order is None or read.order is None:
            return
        for name in dict.fromkeys((*read.order, *self.order)):
            expected, got = _shown(read.order.get(name)), _shown(self.order.get(name))
            is_unknown = name == "split" and "none" in (expected, got)  # the split of files
            if expected != got and not is_unknown:
                hint = "in another order, some rows would be read twice and some never"
                yield Problem(
                    path=("start", "order", name), expected=f"{expected}, as is read", got=got, hint=hint
                )

    @classmethod
    def of(cls, position: Position | tuple[int, int] | None) -> Position | None:
        """Returns a position unchanged. Converts a pair (epoch, step) to the position of a single worker.
        Raises SpecError.

        Example:
            >>> rs.Position.of((1, 3))
            Position(epoch=1, step=3, workers=1, batch=None, manifest=None, order=None)
        """
        if position is None or isinstance(position, Position):
            return position
        try:
            epoch, step = position
        except (TypeError, ValueError):
            expected = "a position, or a pair of epoch and step"
            raise SpecError(Problem(path=("start",), expected=expected, got=repr(position))) from None
        return cls(epoch=epoch, step=step)


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A dataset that begins at a position.

    Attributes:
        passes: the passes of an iteration; None for `repeat: forever`.
        steps: the steps of a pass; None if they depend on values of rows.
        restart: makes the dataset begin at the position again; None if every iteration does.
    """

    passes: int | None
    steps: int | None
    restart: Callable[[], None] | None = None


def order_of(
    read: Read, split: str | Sequence[str] | None, predicate: Callable[..., Any] | None
) -> dict[str, Any]:
    """The options that determine which rows come next, by name, as JSON values."""
    order: dict[str, Any] = {"version": ORDER_VERSION}
    if split is not None:
        order["split"] = split if isinstance(split, str) else list(split)
    if predicate is not None:
        order["filter"] = fingerprint_of(predicate)
    return order | read.order


def fingerprint_of(function: Any) -> str:
    """The name of a function, and a hash of its code and of the numbers and texts that it refers to."""
    if isinstance(function, partial):
        given = dict(enumerate(function.args)) | function.keywords
        return f"{fingerprint_of(function.func)} of {_plain(given)}"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(function, "__code__", None)
    if code is None:  # a callable object, or a function not written in Python
        return str(name)
    referred = {each: function.__globals__.get(each) for each in code.co_names}
    for each, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # an empty cell
            referred[each] = cell.cell_contents
    defaults = dict(enumerate(function.__defaults__ or ())) | (function.__kwdefaults__ or {})
    said = "\n".join([*_instructions(code), _plain(referred), _plain(defaults)])
    return f"{name} {hashlib.sha256(said.encode()).hexdigest()[:12]}"


def _plain(values: Mapping[Any, Any]) -> str:
    """The numbers and texts among values; the text of another object may contain its address."""
    return repr({name: one for name, one in values.items() if isinstance(one, bool | int | float | str)})


def _instructions(code: CodeType) -> Iterator[str]:
    """The instructions of a function and its constants, including those of nested functions."""
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:  # the order of a set differs between processes
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _shown(value: Any) -> str:
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def no_batch() -> Problem:
    """The problem of a pass without a batch, which would be repeated for ever."""
    expected = "a batch in every pass, which `forever` repeats"
    hint = "a filter or drop_remainder leaves none"
    return Problem(path=("read", "repeat"), expected=expected, got="none", hint=hint)


def check_step(step: int, steps: int | None) -> None:
    """Raises SpecError for a position after the last of the `steps` of an epoch; None if unknown."""
    if steps is not None and step > steps:
        expected = f"at most {steps}, the steps of an epoch"
        hint = "" if not steps else f"over all epochs, it is ({step // steps}, {step % steps})"
        raise SpecError(Problem(path=("start", "step"), expected=expected, got=str(step), hint=hint))
