"""The order of rows: a function of the seed and of the number of the pass, the epoch."""

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

    Which rows come next also depends on the number of workers, the batch, the dataset and the options that
    decide the order, so a position has these too: `Pipeline.position` and `Backup` fill them in, and a
    dataset that begins here refuses another value. The beginning, epoch 0 and step 0, fits any.

    Attributes:
        epoch: the number of the pass.
        step: the number of batches of that pass that a worker has read.
        workers: the number of workers that share the rows.
        batch: the number of rows per batch, of one replica; None if unknown.
        manifest: the SHA-256 of the dataset's manifest; None if unknown, or for files without a manifest.
        order: the split, the seed, the buffer, the filter and the other options that decide which rows come
            next, by name, as values of JSON; None if unknown.

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
        """The same position, which calls `opened` when a dataset is made that begins here, with the position
        and all its fields.
        """
        made = replace(self)
        object.__setattr__(made, "_opened", opened)
        return made

    def _begin(self, opening: Opening, **read: Any) -> None:
        """Begins to read a dataset here, of whose position `read` are the fields but `epoch` and `step`.

        Raises SpecError if other workers, batches or rows are read.
        """
        complete = replace(self, **read)
        if (self.epoch, self.step) != (0, 0) and (problems := list(self._differences(complete))):
            raise SpecError(problems)
        if self._opened is not None:
            self._opened(complete, opening)

    def _differences(self, read: Position) -> Iterator[Problem]:
        """The problems of a position at which rows are not read as those before it were."""
        if self.workers != read.workers:
            hint = "other workers would read some rows twice, and others never"
            expected = f"{read.workers}, the number of workers that read"
            got = str(self.workers)
            yield Problem(path=("start", "workers"), expected=expected, got=got, hint=hint)
        if self.batch not in (None, read.batch):
            hint = "a step of another size is another row"
            expected = f"{read.batch}, the rows per batch that are read"
            got = str(self.batch)
            yield Problem(path=("start", "batch"), expected=expected, got=got, hint=hint)
        if self.manifest not in (None, read.manifest):
            hint = "the dataset was replaced or added to since, or is another one"
            expected = "that of no dataset" if read.manifest is None else f"{read.manifest[:12]}..."
            got = f"{(self.manifest or '')[:12]}..."
            yield Problem(path=("start", "manifest"), expected=expected, got=got, hint=hint)
        if self.order is None or read.order is None:
            return
        for name in dict.fromkeys((*read.order, *self.order)):
            expected, got = _shown(read.order.get(name)), _shown(self.order.get(name))
            is_unknown = name == "split" and "none" in (expected, got)  # of files
            if expected != got and not is_unknown:
                hint = "in another order some rows would be read twice, and others never"
                yield Problem(
                    path=("start", "order", name), expected=f"{expected}, as is read", got=got, hint=hint
                )

    @classmethod
    def of(cls, position: Position | tuple[int, int] | None) -> Position | None:
        """A position, also from a pair, which is one of a single worker. Raises SpecError.

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
        passes: of an iteration; None for `repeat: forever`.
        steps: of a pass; None if values of rows decide.
        restart: makes the dataset begin there again; None if every iteration does.
    """

    passes: int | None
    steps: int | None
    restart: Callable[[], None] | None = None


def order_of(
    read: Read, split: str | Sequence[str] | None, predicate: Callable[..., Any] | None
) -> dict[str, Any]:
    """What decides which rows come next, by the name of the option, as values of JSON."""
    order: dict[str, Any] = {"version": ORDER_VERSION}
    if split is not None:
        order["split"] = split if isinstance(split, str) else list(split)
    if predicate is not None:
        order["filter"] = _fingerprint(predicate)
    return order | read.order


def _fingerprint(function: Any) -> str:
    """The name of a function, and a hash of its code and of the numbers and texts that it refers to."""
    if isinstance(function, partial):
        given = dict(enumerate(function.args)) | function.keywords
        return f"{_fingerprint(function.func)} of {_plain(given)}"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(function, "__code__", None)
    if code is None:  # an object that is called, or a function that is not Python
        return str(name)
    referred = {each: function.__globals__.get(each) for each in code.co_names}
    for each, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # an empty cell
            referred[each] = cell.cell_contents
    defaults = dict(enumerate(function.__defaults__ or ())) | (function.__kwdefaults__ or {})
    said = "\n".join([*_instructions(code), _plain(referred), _plain(defaults)])
    return f"{name} {hashlib.sha256(said.encode()).hexdigest()[:12]}"


def _plain(values: Mapping[Any, Any]) -> str:
    """The numbers and texts among values: the text of another object may have its address."""
    return repr({name: one for name, one in values.items() if isinstance(one, bool | int | float | str)})


def _instructions(code: CodeType) -> Iterator[str]:
    """The instructions of a function and its constants, with those of the functions in it."""
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:  # each process orders a set in its own way
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _shown(value: Any) -> str:
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def no_batch() -> Problem:
    """The problem of a pass without a batch, which would be repeated for ever."""
    expected = "a batch in every pass, which `forever` repeats"
    hint = "a filter or drop_remainder leaves none"
    return Problem(path=("read", "repeat"), expected=expected, got="none", hint=hint)


def check_step(step: int, steps: int | None) -> None:
    """Raises SpecError for a position after the last of the `steps` of an epoch; None if not known."""
    if steps is not None and step > steps:
        expected = f"at most {steps}, as one epoch has so many"
        hint = "" if not steps else f"over all epochs, it is ({step // steps}, {step % steps})"
        raise SpecError(Problem(path=("start", "step"), expected=expected, got=str(step), hint=hint))
