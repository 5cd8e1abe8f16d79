"""The base classes of sources. A source has rows in parts, so that processes can share them; a part
yields them in batches of columns.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, StoreError, nearest
from recordspec.locations import (
    AnyPath,
    Location,
    LocationText,
    absolute,
    below,
    check_regular,
    location,
    statuses,
)
from recordspec.schema import values
from recordspec.schema.arrow_values import combined
from recordspec.schema.encoder import part_of
from recordspec.schema.feature_set import unknown_name
from recordspec.schema.features import Feature
from recordspec.schema.options import to_builtins
from recordspec.schema.schema import Schema
from recordspec.schema.values import BadValue
from recordspec.store.expand import expand, missing_file
from recordspec.wire.arrays import is_arrow

# The size of a part of a file: large enough that opening the file costs nothing in comparison, small enough
# that a few jobs share a file evenly and that little is repeated after a crash.
PART_BYTES = 32 << 20
# Below it, float64 represents every whole number; above, an integer may have been rounded already.
EXACT = 2**53

# The largest number of rows converted at a time.
_MOST_ROWS = 8192
_MOST_LISTED = 10  # columns in a message
_FEWEST_ROWS = 16  # after an invalid row

# One file or several, as paths and patterns.
FilesText = LocationText | tuple[LocationText, ...]

# The place of a row's text in `media`.
PLACE_OF_TEXT = "{}"
_PATTERN = re.compile(r"[*?\[]")
_T = TypeVar("_T")
_Files = TypeVar("_Files", bound="FileSource")


@dataclass(frozen=True)
class Columns:
    """Rows as columns.

    Attributes:
        values: the values of all rows by name, for each feature of the schema and each extra name.
        rows: the number of rows.
    """

    values: Mapping[str, Any]
    rows: int

    def part(self, start: int, stop: int) -> Columns:
        """The columns of rows `start` to `stop`."""
        if (start, stop) == (0, self.rows):
            return self
        values = {name: part_of(one, start, stop) for name, one in self.values.items()}
        return Columns(values, stop - start)

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = {name: one for name, one in self.values.items() if is_arrow(one)}
        others = {name: one for name, one in self.values.items() if name not in arrays}
        table = arrow().Table.from_arrays([*arrays.values()], [*arrays]) if arrays else None
        return _restored, (others, None if table is None else to_ipc(table), self.rows)


def _restored(values: Mapping[str, Any], data: bytes | None, rows: int) -> Columns:
    table = None if data is None else from_ipc(data)
    arrays = {} if table is None else dict(zip(table.column_names, map(combined, table.columns), strict=True))
    return Columns({**values, **arrays}, rows)


def to_ipc(table: Any) -> bytes:
    """An Arrow table in its stream format: Arrow's own pickle of a slice contains the whole table."""
    pyarrow = arrow()
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def from_ipc(data: bytes) -> Any:
    """The table that `to_ipc` has serialized."""
    return arrow().ipc.open_stream(data).read_all()


# The items of a part: columns of rows, or the error of an invalid row.
Batches = Iterator["Columns | RecordError"]


@runtime_checkable
class SourcePart(Protocol):
    """Consecutive rows of a source. Can be pickled, and read in another process."""

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        """Yields the rows as columns of the schema's features and of the `extra` names. Yields a RecordError
        in place of a row that cannot be converted.

        Raises SpecError, or RecordError if the rest of the source cannot be read.
        """

    def place(self, row: int) -> str:
        """The location of row `row` for messages, counted from 0 within the part."""


@runtime_checkable
class Source(Protocol):
    """Rows in parts. A source has the same parts each time, however many processes read them."""

    @property
    def rows(self) -> int | None:
        """The number of rows; None if unknown."""

    @property
    def notes(self) -> list[str]:
        """Notes on skipped data, available once `parts` has begun."""

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[SourcePart]:
        """Yields the parts, in the order of the rows. First checks that the source has the requested columns.

        Raises SpecError, StoreError, RecordError.
        """

    def identity(self) -> Any:
        """Plain JSON values that change whenever the rows do; None if the rows can be read only once."""


@runtime_checkable
class NumberedSource(Protocol):
    """A source that knows the location of a row without its parts, which may be gone once they are read."""

    def place(self, row: int) -> str:
        """The location of row `row` for messages, counted from 0 within the source."""


@runtime_checkable
class NamedSource(Protocol):
    """A source that refuses a name without a feature, unless the name is left out."""

    def without(self: _T, names: Collection[str]) -> _T:
        """The rows without the values of the given names."""


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """The base class of sources of files. The fields are options; `SHORT_FORM` is the name of the path's
    option.
    """

    SHORT_FORM: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.given:
            raise SpecError(Problem(path=(self.SHORT_FORM,), expected="at least one file", got="none"))
        if problems := list(_form_problems(getattr(self, "media", {}))):
            raise SpecError(problems)

    def open(self: _Files, folder: AnyPath) -> _Files:
        """The source with relative paths resolved against `folder`."""
        paths = tuple(str(below(folder, one)) for one in self.given)
        return replace(self, **{self.SHORT_FORM: paths[0] if len(paths) == 1 else paths})

    @property
    def given(self) -> tuple[str, ...]:
        """The paths and patterns of the files, as given."""
        named: str | tuple[str, ...] = getattr(self, self.SHORT_FORM)
        return (named,) if isinstance(named, str) else named

    @cached_property
    def paths(self) -> tuple[Location, ...]:
        """The files; the files of a pattern are sorted by name. Raises StoreError if there are none."""
        if any(_PATTERN.search(one) for one in self.given):
            return expand(self.given)
        if missing := [problem for one in self.given if (problem := missing_file(one)) is not None]:
            raise StoreError(missing)
        return tuple(map(location, self.given))

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        """Checks all that is known before the rows are read: that there are files, and in their headers the
        columns of the features and of the `extra` names. `parts` raises the same errors.

        Raises SpecError, StoreError, RecordError.
        """
        raise NotImplementedError

    def check_first_row(self, schema: Schema, extra: tuple[str, ...]) -> None:
        """Checks the first row of a file without a header. With a quarantine, a build leaves an invalid row
        out.

        Raises RecordError, StoreError.
        """

    @property
    def rows(self) -> int | None:
        return None

    @cached_property
    def notes(self) -> list[str]:
        return []

    def identity(self) -> Any:
        return [identity_of(self.paths), to_builtins(self)]


def long_row_problem(size: int, what: str = "row", hint: str = "") -> Problem:
    """The problem of a row that is longer than `values.LONGEST_ROW`."""
    expected = f"a {what} of at most {values.LONGEST_ROW:,} bytes"
    return Problem(expected=expected, got=f"{size:,}", hint=hint)


def leave_out(source: Source, names: Collection[str]) -> Source:
    """The rows without the values of the given names; only a NamedSource reads names without a feature."""
    return source.without(names) if names and isinstance(source, NamedSource) else source


def is_left_out(name: str, left_out: Collection[str], known: Collection[str]) -> bool:
    """Whether a name without a feature is left out: it is one of `left_out`, or a member of an object in
    it.
    """
    if name in known:
        return False
    return name in left_out or any(name.startswith(f"{one}.") for one in left_out)


def converted(rows: int, convert: Callable[[int, int], Mapping[str, Any]]) -> Batches:
    """Converts rows in batches. Yields the error of an invalid row in its place.

    Args:
        rows: the number of rows.
        convert: returns the columns of a range of rows. Raises RecordError for an invalid row, counted from
            the start of the range.
    """
    start, step = 0, _MOST_ROWS
    while start < rows:
        stop = min(start + step, rows)
        try:
            columns = convert(start, stop)
        except RecordError as error:
            if error.row is None:
                raise
            if error.row:
                yield Columns(convert(start, start + error.row), error.row)
            yield error
            start += error.row + 1
            # invalid rows tend to be close together: go on with as many rows as went well, then with more
            step = max(_FEWEST_ROWS, error.row)
        else:
            yield Columns(columns, stop - start)
            start, step = stop, min(_MOST_ROWS, 2 * step)


def by_feature(names: Iterable[str], convert: Callable[[str], Any]) -> dict[str, Any]:
    """Applies `convert` to each feature; `convert` raises BadValue for the first invalid row.

    Raises RecordError for the first row that is invalid in any feature, with all problems of that row.
    """
    columns: dict[str, Any] = {}
    bad: list[tuple[int, Problem]] = []
    for name in names:
        try:
            columns[name] = convert(name)
        except BadValue as error:
            bad.append((error.index, error.problem.under("features", name)))
    if bad:
        first = min(row for row, _ in bad)
        raise RecordError([problem for row, problem in bad if row == first], first)
    return columns


def name_of(source: object) -> str:
    """The name of a source in messages: its first file, or "rows" if it has no files."""
    paths: Sequence[Location] = getattr(source, "paths", ())
    more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}" if paths else "rows"


def identity_of(paths: Iterable[Location]) -> list[list[Any]]:
    """The paths, sizes and times of files, which change if the files do. Raises StoreError."""
    paths = tuple(paths)
    stamps = []
    for path, status in zip(paths, statuses(paths), strict=True):
        check_regular(path)
        stamps.append([str(absolute(path)), status.st_size, status.st_mtime_ns])
    return stamps


def size_ranges(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Divides items of the given sizes in bytes into ranges of about `PART_BYTES`."""
    start = total = 0
    for index, size in enumerate(sizes):
        if total and total + size > PART_BYTES:
            yield start, index
            start, total = index, 0
        total += size
    if start < len(sizes):
        yield start, len(sizes)


def even_ranges(rows: int, size: int) -> Iterator[tuple[int, int]]:
    """`size_ranges` for a number of rows of equal size."""
    step = max(1, PART_BYTES // max(1, size))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


class RowPlaces(Generic[_T]):
    """Returns the item of `read` for a row; ascending rows take a single pass."""

    def __init__(self, read: Callable[[], Iterator[_T]]) -> None:
        self._read = read
        # the items not yet passed, and the row of the last one passed
        self._rest: Iterator[_T] = iter(())
        self._row = sys.maxsize

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._read,)

    def of(self, row: int) -> _T | None:
        """The item of a row; None if there is no such row."""
        if row <= self._row:
            self._rest, self._row = self._read(), -1
        item = next(islice(self._rest, row - self._row - 1, None), None)
        self._row = row
        return item


def wanted_columns(
    schema: Schema,
    extra: tuple[str, ...],
    columns: Mapping[str, str | None],
    where: str,
    header: Sequence[str] | None = None,
    media: Mapping[str, str] | None = None,
    *,
    may_lack: bool = False,
) -> dict[str, str]:
    """The column of each feature and each extra name: the name itself, unless `columns` has another, or None
    for a feature that all rows lack, which messages propose if `may_lack`.

    Raises SpecError for a name in `columns` that is neither, for a feature that rows may not lack, for a name
    in `media` that takes no files, and for a column that is not exactly once in the header, if there is one.
    """
    given = {name: columns.get(name, name) for name in (*schema.names, *extra)}
    wanted = {name: column for name, column in given.items() if column is not None}
    problems = [*media_problems(media or {}, schema), *_lacking_problems(given, schema)]
    problems += [
        Problem(
            path=("columns",),
            expected=f"features of `{schema.name}`",
            got=f"`{name}`",
            hint=nearest(name, given),
        )
        for name in columns
        if name not in given
    ]
    # a column that is missing may only follow from a misspelt name in `columns`
    if header is not None and not problems:
        absent = [*not_once(wanted, header)]
        problems += _with_way_out(absent, schema) if may_lack else absent
    if problems:
        raise SpecError([problem.at(where) for problem in problems])
    return wanted


def not_once(wanted: Mapping[str, str], header: Sequence[str]) -> Iterator[Problem]:
    """The problem of each name whose column is missing in a header, or occurs several times. The first one
    lists the columns that no name wants."""
    unused = [one for one in header if one not in wanted.values()]
    more = ", ..." * (len(unused) > _MOST_LISTED)
    listed = f"other columns: {', '.join(unused[:_MOST_LISTED])}{more}" if unused else ""
    for name, column in wanted.items():
        if header.count(column) != 1:
            got = "several" if column in header else "none"
            hint = nearest(column, unused)
            if not hint and got == "none":
                hint, listed = listed, ""
            yield Problem(path=(name,), expected=f"one column `{column}`", got=got, hint=hint)


def _lacking_problems(columns: Mapping[str, str | None], schema: Schema) -> Iterator[Problem]:
    """The problem of each name without a column whose value no row may lack."""
    for name in (name for name, column in columns.items() if column is None):
        feature = schema.names.get(name)
        if feature is None or not feature.traits.optional:
            got = "null" if feature is None else f"null, and a feature without {_may_lack(feature)}"
            yield Problem(path=("columns", name), expected="a column", got=got)


def _may_lack(feature: Feature) -> str:
    """The option of a feature with which rows may lack it."""
    return "`missing: true`" if feature.traits.class_names else "a `default`"


def _with_way_out(problems: list[Problem], schema: Schema) -> list[Problem]:
    """The problems of columns. If a single one is missing, as the target of a test set, with the way out."""
    feature = schema.names.get(str(problems[0].path[0])) if len(problems) == 1 else None
    if feature is None or problems[0].got != "none" or problems[0].hint.startswith("did you mean"):
        return problems
    needs = "" if feature.traits.optional else f"{_may_lack(feature)} of the feature, and "
    hint = f"if all rows lack it: {needs}`columns: {{{feature.name}: null}}`"
    return [replace(problems[0], hint="; ".join(filter(None, [problems[0].hint, hint])))]


def media_problems(media: Mapping[str, str], schema: Schema) -> Iterator[Problem]:
    """The problems of the option `media` of a source: names of features that take no files."""
    for name in media:
        feature = schema.names.get(name)
        if feature is None:
            hint = nearest(name, schema.names)
            expected = f"features of `{schema.name}`"
            yield Problem(path=("media",), expected=expected, got=f"`{name}`", hint=hint)
        elif not takes_files(feature):
            expected = "a feature that takes files, such as an image"
            yield Problem(path=("media", name), expected=expected, got=feature.kind)


def _form_problems(media: Mapping[str, str]) -> Iterator[Problem]:
    """The problems of the option `media` of a source: a path without one place for the text of a row."""
    for name, form in media.items():
        if form.count(PLACE_OF_TEXT) != 1:
            expected, hint = f"a path with one {PLACE_OF_TEXT}", f"such as `images/{PLACE_OF_TEXT}.jpg`"
            yield Problem(path=("media", name), expected=expected, got=f"`{form}`", hint=hint)


def takes_files(feature: Feature) -> bool:
    """Whether paths of files are values of a feature."""
    return feature.value_type.item == "media" or feature.traits.takes_files


def ignored(wanted: Mapping[str, str], header: Sequence[str]) -> list[str]:
    """A note on the columns that are not used."""
    others = [column or '""' for column in header if column not in wanted.values()]
    return [f"columns that no feature names: {', '.join(others)}"] if others else []


def check_once(names: Sequence[str]) -> None:
    """Raises SpecError for a column that occurs twice."""
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        expected = "every column once"
        raise SpecError(Problem(path=("rows",), expected=expected, got=f"`{repeated[0]}` again"))


def check_names(schema: Schema, extra: tuple[str, ...], names: Iterable[str]) -> None:
    """Raises SpecError for the first name that is neither a feature nor an extra name.

    In Python the user chooses the columns: a misspelt name would lose a column.
    """
    known = (*schema.names, *extra)
    several = tuple(names)
    for name in several:
        if name not in known:
            raise SpecError(unknown_name(schema, name, known, several))
