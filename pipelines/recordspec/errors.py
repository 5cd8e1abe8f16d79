"""Problems are values: what was expected, what was found, and where.

Every error of the package is a `RecordspecError` that carries all the problems found, each printed
as ``where: path: expected X, got Y (hint)``. System errors keep the operating system's message:
``where: cannot write: no space left on device``; see `system_problem`.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

Path = tuple["str | int", ...]

_PLAIN_NAME = re.compile(r"[\w/-]+")
_LONGEST_VALUE = 60
_MOST_CLASSES = 10  # that are listed in a message
# The longest text that is quoted, such as a path, and the longest list of expected, found or hinted values.
_LONGEST_QUOTE = 200
_LONGEST_TEXT = 2000
# Hints that propose a text: that of `nearest`, to quote a scalar, to write a number in another notation.
_CORRECTION = re.compile(r'did you mean `([^`]+)`\?|quote it: (".*")|write (-?[0-9.][0-9.eE+-]*)')
# The hint of a key that has another name now.
RENAMED = "renamed"
# Folders whose lines are not the user's: the package, Python, and installed packages.
_PACKAGE, _PYTHON = (os.path.join(os.path.dirname(file), "") for file in (__file__, traceback.__file__))
_INSTALLED = {"site-packages", "dist-packages"}
_LONG_QUOTE = re.compile(f'(?<=`)[^`]{{{_LONGEST_QUOTE},}}(?=`)|(?<=")[^"]{{{_LONGEST_QUOTE},}}(?=")')


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An error and its location: a file and line, a row, or a record.

    If `got` is the whole message, `expected` is empty. Long texts are cut, since they may quote a whole file.

    Example:
        >>> print(rs.Problem(where="rows.csv:3", path=("x",), expected="float32", got="text"))
        rows.csv:3: x: expected float32, got text
    """

    expected: str
    got: str
    where: str = ""
    path: Path = ()
    hint: str = ""

    def __post_init__(self) -> None:
        for name in ("expected", "got", "hint"):
            text = getattr(self, name)
            if len(text) > _LONGEST_QUOTE:
                text = _LONG_QUOTE.sub(lambda quote: shorten(quote[0], _LONGEST_QUOTE), text)
                object.__setattr__(self, name, shorten(text, _LONGEST_TEXT))

    def __str__(self) -> str:
        place = [part for part in (self.where, show_path(self.path)) if part]
        message = f"expected {self.expected}, got {self.got}" if self.expected else self.got
        hint = f" ({self.hint})" if self.hint else ""
        return show_text(": ".join([*place, f"{message}{hint}"]))

    def at(self, where: str) -> Problem:
        """Returns the problem with the location `where`.

        Example:
            >>> print(rs.Problem(expected="float32", got="text").at("rows.csv:3"))
            rows.csv:3: expected float32, got text
        """
        return dataclasses.replace(self, where=where)

    def under(self, *path: str | int) -> Problem:
        """Returns the problem with `path` prepended to its own.

        Example:
            >>> print(rs.Problem(expected="float32", got="text").under("features", "x"))
            features.x: expected float32, got text
        """
        return dataclasses.replace(self, path=(*path, *self.path))


@dataclass(frozen=True, kw_only=True)
class State(Problem):
    """A state that prevents an action. The message is a sentence: `where` is its subject and `got` the rest;
    `hint` is the way out, or the reason.
    """

    expected: str = ""

    def __str__(self) -> str:
        return show_text(f"`{self.where}` {self.got}{': ' if self.hint else ''}{self.hint}")


def exists(where: object, hint: str = "force=True, or --force, replaces it") -> State:
    """The problem that something exists already where a new file or folder is to be written."""
    return State(where=str(where), got="exists", hint=hint)


class RecordspecError(Exception):
    """The base class of all errors of the package. `problems` holds all problems, in order of location.

    Example:
        >>> try:
        ...     rs.Schema.loads("{schema: s, features: {a: int65}}")
        ... except rs.RecordspecError as error:
        ...     print(error.problems[0].path, error.problems[0].hint)
        ('features', 'a') did you mean `int64`?
    """

    exit_code: ClassVar[int] = 1
    # Without this attribute, Autograph replaces an error raised below a user's function by another error.
    ag_pass_through: ClassVar[bool] = True

    def __init__(self, problems: Problem | Iterable[Problem] | str) -> None:
        if isinstance(problems, str):
            # PyTorch re-raises a worker's error this way, with the traceback before the message
            lines = problems.rpartition(f"{type(self).__name__}: ")[2].strip().splitlines()
            problems = [Problem(expected="", got=line) for line in lines]
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows for the error: its problems, the line that called the package, and the
        line of the user's function that failed. `%tb`, for which the error is no longer being handled, shows
        the traceback.
        """
        if sys.exc_info()[1] is not self:
            return "".join(traceback.format_exception(self)).splitlines()
        notes = getattr(self, "__notes__", ())
        return [f"{type(self).__name__}: {self}", *map(str, notes), *_lines_of_user(self)]


def _lines_of_user(error: BaseException) -> Iterator[str]:
    """Yields the user's last line before the package: `  line 4: rs.write(rows(), ...)`. If the package
    called a function of the user, such as a generator of rows, also yields the last line of the function:
    `  line 2 in rows: yield x`.
    """
    told = traceback.TracebackException.from_exception(error)
    before = [*filter(_is_user, itertools.takewhile(lambda frame: not _is_package(frame), told.stack))]
    frames = [*filter(_is_user, told.stack)]
    while told.__cause__ is not None:
        told = told.__cause__
        frames += filter(_is_user, told.stack)
    yield from (_line(frame) for frame in before[-1:])
    yield from (_line(frame, f" in {frame.name}") for frame in frames[-1:] if frame not in before)


def _is_package(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_PACKAGE)


def _is_user(frame: traceback.FrameSummary) -> bool:
    """Whether a frame has a line, and is neither of the package nor of Python or an installed package."""
    if _is_package(frame) or frame.filename.startswith((_PYTHON, "<frozen ")):
        return False
    return bool(frame.line) and _INSTALLED.isdisjoint(frame.filename.split(os.sep))


def _line(frame: traceback.FrameSummary, function: str = "") -> str:
    in_cell = not os.path.exists(frame.filename)
    where = f"line {frame.lineno}" if in_cell else f"{frame.filename}:{frame.lineno}"
    return f"  {where}{function}: {shorten(frame.line or '', _LONGEST_QUOTE)}"


class SpecError(RecordspecError):
    """A schema, a config or an argument is invalid.

    Example:
        >>> try:
        ...     rs.Schema.loads("{schema: s, features: {a: {kind: lable, names: [b]}}}")
        ... except rs.SpecError as error:
        ...     print(error.problems[0].path, error.problems[0].hint)
        ('features', 'a', 'kind') did you mean `label`?
    """

    exit_code = 2


class RecordError(RecordspecError):
    """A row or a record is invalid. `row` counts from 0 within the input.

    Example:
        >>> try:
        ...     rs.write([{"x": "wide", "inside": "yes"}], schema, "data/wrong")
        ... except rs.RecordError as error:
        ...     print(error)
        row 0: features.x: expected float32, got str 'wide'
    """

    exit_code = 1

    def __init__(self, problems: Problem | Iterable[Problem], row: int | None = None) -> None:
        super().__init__(problems)
        self.row = row

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems, self.row)

    def at(self, where: str) -> RecordError:
        """Returns the error with the location `where` in every problem."""
        return RecordError([problem.at(where) for problem in self.problems], self.row)


class WriteError(RecordspecError):
    """The source of the rows failed.

    Example:
        >>> def broken():
        ...     yield {"x": 0.5, "inside": "yes"}
        ...     raise KeyError("y")
        >>> try:
        ...     rs.write(broken(), schema, "data/broken")
        ... except rs.WriteError as error:
        ...     print(error)
        data/broken: expected all the rows, got KeyError: 'y', after 1 row (nothing was published)
    """

    exit_code = 1


class StoreError(RecordspecError):
    """A file or folder cannot be read or written: the disk, a permission, or a state such as a missing
    dataset.

    Example:
        >>> try:
        ...     rs.Manifest.load("data/none")
        ... except rs.StoreError as error:
        ...     print(error.problems[0].got)
        does not exist
    """

    exit_code = 3


class ExistsError(StoreError):
    """A file or dataset exists already where a new one is to be written.

    Example:
        >>> try:
        ...     rs.write(rows, schema, "data/points")
        ... except rs.ExistsError as error:
        ...     print(error)
        `data/points` exists: force=True, or --force, replaces it
    """

    exit_code = 4


class IncompleteError(StoreError):
    """Shards of a dataset are missing, or foreign shards are beside them. The data is wrong, not the disk."""

    exit_code = 1


class MissingExtra(RecordspecError):
    """An optional package is not installed.

    Example:
        >>> issubclass(rs.MissingExtra, rs.RecordspecError)
        True
    """

    exit_code = 3


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a dataset was being written: nothing was published.

    Example:
        >>> issubclass(rs.Interrupted, KeyboardInterrupt)
        True
    """


def system_problem(action: str, error: BaseException, where: str = "", hint: str = "") -> Problem:
    """Returns the problem `cannot ACTION: REASON`, with the operating system's reason."""
    return Problem(where=where, expected="", got=f"cannot {action}: {system_reason(error)}", hint=hint)


def system_reason(error: BaseException) -> str:
    """The operating system's reason for an error: `no space left on device`."""
    number = getattr(error, "errno", None)
    reason = os.strerror(number) if number else str(error)  # pyarrow's own text is long
    return f"{reason[:1].lower()}{reason[1:]}"


@contextmanager
def system_errors(action: str, where: object, hint: str = "") -> Iterator[None]:
    """Raises an OSError as a StoreError: `where: cannot ACTION: REASON`. An object's error names its URL."""
    try:
        yield
    except OSError as error:
        name = str(error.filename)
        if "://" in name and name != str(where):  # an object: a path has no double slash
            raise StoreError(system_problem("read", error, name)) from error
        raise StoreError(system_problem(action, error, str(where), hint)) from error


def missing_package(package: str, purpose: str, requirement: str, error: ImportError) -> MissingExtra:
    """The error for a package that is not installed or fails to load; `requirement` is pip's argument."""
    return MissingExtra(
        Problem(
            expected=f"{package} for {purpose}",
            got=str(error).splitlines()[0],
            hint=f"pip install '{requirement}'; {see('installing')}",
        )
    )


def counted(count: int, noun: str) -> str:
    """`1 file`, `2,000 files`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def see(page: str) -> str:
    """Names a page of the documentation: see `recordspec docs stores`."""
    return f"see `recordspec docs {page}`"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the known name closest to `name`, or several equally close ones, or nothing."""
    close = close_names(name, known)
    return did_you_mean(*close) if close else ""


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """The known name closest to `name`: none if all are far from it, several if they are equally close, such
    as names that differ in case alone."""
    by_lower: dict[str, list[str]] = {}
    for text in dict.fromkeys(known):
        by_lower.setdefault(text.lower(), []).append(text)
    close = difflib.get_close_matches(name.lower(), by_lower, n=2, cutoff=0.6)
    if len(close) > 1:
        ratios = [difflib.SequenceMatcher(None, one, name.lower()).ratio() for one in close]
        close = close[: 1 + (ratios[0] == ratios[1])]
    return [text for one in close for text in by_lower[one]]


def did_you_mean(*names: str) -> str:
    """The hint that proposes a name, or one of several."""
    return f"did you mean {' or '.join(f'`{name}`' for name in names)}?"


def correction(problem: Problem) -> str | None:
    """The text that a hint proposes in place of the wrong one; None if it proposes none, or two."""
    if problem.hint == RENAMED:
        return problem.expected.strip("`")
    found = _CORRECTION.fullmatch(problem.hint)
    return None if found is None else next(text for text in found.groups() if text is not None)


def one_of(names: Iterable[str]) -> str:
    """`one of a, b, c`, or the name alone."""
    names = list(names)
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def one_of_classes(names: Sequence[str]) -> str:
    """``one of `cat`, `dog` ``, or the number of many classes."""
    few = len(names) <= _MOST_CLASSES
    return one_of(f"`{name}`" for name in names) if few else f"one of {len(names):,} classes"


def describe(value: Any) -> str:
    """Formats a value for an error message: its type and a short form of it."""
    if value is None:
        return "nothing"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{getattr(value, 'dtype', type(value).__name__)} of shape {show_shape(shape)}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{type(value).__name__} {show_int(value)}"
    try:
        text = repr(value.item()) if isinstance(shape, tuple) else repr(value)
    except Exception:  # the class of a user
        text = "that cannot be shown"
    text = shorten(text, _LONGEST_VALUE)
    return f"{type(value).__name__.removesuffix('_')} {text}"  # str_ of NumPy is a str


def shorten(text: str, most: int) -> str:
    """The text, or its first characters and `...`."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def show_int(value: int) -> str:
    """Formats an integer; Python refuses to print integers with thousands of digits."""
    return str(value) if value.bit_length() < 256 else f"a number of {value.bit_length()} bits"


def show_shape(shape: Sequence[int | None]) -> str:
    """Formats a shape as YAML: `[null, 4]`."""
    return f"[{', '.join('null' if size is None else str(size) for size in shape)}]"


def show_path(path: Path) -> str:
    """Formats a path, `features.image.shape[2]`; quotes names with other than word characters."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            part = shorten(part, _LONGEST_QUOTE)
            name = part if _PLAIN_NAME.fullmatch(part) else json.dumps(part, ensure_ascii=False)
            text += f".{name}" if text else name
    return text


def show_text(text: str) -> str:
    """Text on one line, with escapes for unprintable characters: a terminal may interpret them as
    commands, and characters such as U+202E reverse the direction of text."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def escape_unseen(text: str, escape: Callable[[str], str]) -> str:
    """Escapes the unprintable characters of a text, except line breaks."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char == "\n" or char.isprintable() else escape(char) for char in text)


def show_json(text: str) -> str:
    """JSON with escapes for unprintable characters."""
    return escape_unseen(text, lambda char: json.dumps(char)[1:-1])
