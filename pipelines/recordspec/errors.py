"""Problems are values: what was expected, what was found, and where.

Every error of the package is a `RecordspecError` that carries all the problems found, each printed
as ``where: path: expected X, got Y (hint)``. An error of the system is told in the system's own words:
``where: cannot write: no space left on device``; see `system_problem`.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

Path = tuple["str | int", ...]

_PLAIN_NAME = re.compile(r"[\w/-]+")
_LONGEST_VALUE = 60


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong, and its place: a file and line, a row, or a record.

    `expected` is empty where `got` is the whole message.
    """

    expected: str
    got: str
    where: str = ""
    path: Path = ()
    hint: str = ""

    def __str__(self) -> str:
        place = [part for part in (self.where, show_path(self.path)) if part]
        message = f"expected {self.expected}, got {self.got}" if self.expected else self.got
        hint = f" ({self.hint})" if self.hint else ""
        return show_text(": ".join([*place, f"{message}{hint}"]))

    def at(self, where: str) -> Problem:
        """The same problem, found at `where`."""
        return dataclasses.replace(self, where=where)

    def under(self, *path: str | int) -> Problem:
        """The same problem, with `path` put before its own."""
        return dataclasses.replace(self, path=(*path, *self.path))


class RecordspecError(Exception):
    """The base of all errors raised here. `problems` holds them one by one, in order of place."""

    exit_code: ClassVar[int] = 1
    # Autograph raises another error in place of one from below a user's function, unless it has this.
    ag_pass_through: ClassVar[bool] = True

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class SpecError(RecordspecError):
    """A schema, a config or an argument does not hold together."""

    exit_code = 2


class RecordError(RecordspecError):
    """A row or a record does not fit. `row` counts from 0 within what was given."""

    exit_code = 1

    def __init__(self, problems: Problem | Iterable[Problem], row: int | None = None) -> None:
        super().__init__(problems)
        self.row = row

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems, self.row)

    def at(self, where: str) -> RecordError:
        """The same error, with every problem placed at `where`."""
        return RecordError([problem.at(where) for problem in self.problems], self.row)


class WriteError(RecordspecError):
    """The rows came to an end too early: their source failed."""

    exit_code = 1


class StoreError(RecordspecError):
    """The disk, a permission, or a dataset that stands in the way."""

    exit_code = 3


class IncompleteError(StoreError):
    """Shards of a dataset are missing, or there are others beside them. The data is wrong, not the disk."""

    exit_code = 1


class MissingExtra(RecordspecError):
    """A package that this needs is not installed."""

    exit_code = 3


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a dataset was being written: nothing was published."""


def system_problem(action: str, error: BaseException, where: str = "", hint: str = "") -> Problem:
    """The problem `cannot ACTION: REASON`, where the reason is what the operating system says."""
    return Problem(where=where, expected="", got=f"cannot {action}: {system_reason(error)}", hint=hint)


def system_reason(error: BaseException) -> str:
    """What the operating system says of an error: `no space left on device`."""
    number = getattr(error, "errno", None)
    reason = os.strerror(number) if number else str(error)  # pyarrow's own text is a long one
    return f"{reason[:1].lower()}{reason[1:]}"


def missing_package(package: str, purpose: str, requirement: str, error: ImportError) -> MissingExtra:
    """The error for a package that is not installed, or does not load; `requirement` is what pip installs."""
    return MissingExtra(
        Problem(
            expected=f"{package} for {purpose}",
            got=str(error).splitlines()[0],
            hint=f"pip install '{requirement}'",
        )
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the known name closest to `name`, or nothing."""
    by_lower = {text.lower(): text for text in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean `{by_lower[close[0]]}`?" if close else ""


def one_of(names: Iterable[str]) -> str:
    """`one of a, b, c`, or the name alone."""
    names = list(names)
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def describe(value: Any) -> str:
    """A value in an error message: its type and a short form of it."""
    if value is None:
        return "nothing"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{getattr(value, 'dtype', type(value).__name__)} of shape {show_shape(shape)}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{type(value).__name__} {show_int(value)}"
    try:
        text = repr(value.item()) if isinstance(shape, tuple) else repr(value)
    except Exception:  # somebody's own class
        text = "that cannot be shown"
    if len(text) > _LONGEST_VALUE:
        text = f"{text[: _LONGEST_VALUE - 3]}..."
    return f"{type(value).__name__} {text}"


def show_int(value: int) -> str:
    """A whole number; Python refuses to print very long ones."""
    return str(value) if value.bit_length() < 256 else f"a number of {value.bit_length()} bits"


def show_shape(shape: Sequence[int | None]) -> str:
    """A shape as the language writes it: `[null, 4]`."""
    return f"[{', '.join('null' if size is None else str(size) for size in shape)}]"


def show_path(path: Path) -> str:
    """`features.image.shape[2]`; a name with other than word characters is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _PLAIN_NAME.fullmatch(part) else json.dumps(part, ensure_ascii=False)
            text += f".{name}" if text else name
    return text


def show_text(text: str) -> str:
    """Text on one line, with escapes for characters that are not seen: a terminal may take them for commands,
    and U+202E and its kind turn the direction of writing."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def escape_unseen(text: str, escape: Callable[[str], str]) -> str:
    """Text of a language that has escapes, which keep its meaning; its lines stay."""
    return "".join(char if char == "\n" or char.isprintable() else escape(char) for char in text)


def show_json(text: str) -> str:
    """JSON with escapes for characters that are not seen."""
    return escape_unseen(text, lambda char: json.dumps(char)[1:-1])
