"""Proposes the dialect of a CSV file from its first rows: delimiter, header, quotes, comments and spaces."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from recordspec._arrow import arrow
from recordspec.inferring.column_profile import ColumnProfile
from recordspec.inferring.notations import WORDS
from recordspec.locations import Location
from recordspec.schema.inferred import ProposedOption
from recordspec.writing.sources.csv_dialect import (
    EXCEL_DELIMITER,
    WHITESPACE,
    Dialect,
    first_text,
    lines_before,
    read_head,
    read_tail,
)

# Other delimiters in files with the suffix of CSV.
_OTHER_DELIMITERS = ";\t|"
_COMMENTS = "#%"
# Rows that are read for a proposal, and rows that must agree.
_FIRST_ROWS, _LEAST_ROWS = 100, 3
# Rows without which the last one is not taken for a footer.
_LEAST_COMPARED = 10
# The largest number of lines before the header.
_MOST_SKIPPED = 50


def propose_dialect(path: Location, delimiter: str, encoding: str = "utf-8") -> tuple[ProposedOption, ...]:
    """The options of a source that read a file, by its first rows; `delimiter` is that of its suffix.

    Raises StoreError, RecordError.
    """
    text = first_text(path, encoding)
    options = [*_before_header(text, delimiter)]
    dialect = _with_options(Dialect(delimiter=delimiter), options)
    chosen = _delimiter(path, dialect, encoding)
    if "delimiter" not in {option.name for option in options} and chosen is not None:
        options.append(chosen)
    dialect = _with_options(dialect, options)
    if not dialect.skip_lines and (skipped := _skipped(text, dialect)) is not None:
        options.append(skipped)
        dialect = _with_options(dialect, options)
    head = read_head(path, dialect, encoding, _FIRST_ROWS)
    if (trim := _trim(head.names, head.first, dialect)) is not None:
        options.append(trim)
        dialect = _with_options(dialect, options)
        head = read_head(path, dialect, encoding, _FIRST_ROWS)
    if (evidence := _is_row(head.given, head.first)) is not None:
        reason = f"{evidence}, so the first row is no header: `header: [...]` names the columns"
        options.append(ProposedOption(name="header", value=False, reason=reason))
    if dialect.delimiter == ",":
        return tuple(options)
    # the delimiter comes first, also that of the suffix
    given = [option for option in options if option.name == "delimiter"]
    first = given or [ProposedOption(name="delimiter", value=dialect.delimiter)]
    return (*first, *(option for option in options if option.name != "delimiter"))


def unquoted(reason: str) -> ProposedOption:
    """The option for a file whose cells are not quoted."""
    return ProposedOption(name="quote", value=None, reason=reason)


def _with_options(dialect: Dialect, options: Iterable[ProposedOption]) -> Dialect:
    return replace(dialect, **{option.name: option.value for option in options})


def _before_header(text: str, delimiter: str) -> Iterator[ProposedOption]:
    """The options for a line of Excel, or for comments, before the header."""
    lines = text.splitlines()
    first = lines[0] if lines else ""
    if EXCEL_DELIMITER.fullmatch(first):
        reason = f"`{first}` on the first line, from which Excel takes the delimiter"
        yield ProposedOption(name="delimiter", value=first.strip('"')[-1], reason=reason)
        yield ProposedOption(name="skip_lines", value=1, reason=reason)
        return
    mark = first[:1]
    if not mark or mark not in _COMMENTS:
        return
    rest = [line for line in lines if not line.startswith(mark)]
    count = len(lines) - len(rest)
    row = next(filter(None, rest), "")
    marks = [one for one in (delimiter, *_OTHER_DELIMITERS) if one in row]
    is_header = count == 1 and any(first.count(one) == row.count(one) for one in marks)
    if row and not is_header:
        where = "a line begins" if count == 1 else f"{count:,} of the first lines begin"
        yield ProposedOption(name="comment", value=mark, reason=f"{where} with it, such as `{first[:60]}`")


def _delimiter(path: Location, dialect: Dialect, encoding: str) -> ProposedOption | None:
    """Another delimiter if the first row contains that and no comma, or if all rows have spaces."""
    if dialect.delimiter != ",":
        return None
    head = read_head(path, dialect, encoding, _FIRST_ROWS)
    if len(head.names) != 1:
        return None
    other = next((mark for mark in _OTHER_DELIMITERS if mark in head.names[0]), None)
    if other is not None:
        return ProposedOption(name="delimiter", value=other)
    spaced = replace(dialect, delimiter=WHITESPACE, quote=None)
    head = read_head(path, spaced, encoding, _FIRST_ROWS)
    counts = {len(cells) for cells in head.first if cells}
    cells = [cell for row in head.first for cell in row]
    numbers = sum(map(is_number, cells))
    if len(head.first) < _LEAST_ROWS or counts != {len(head.names)} or len(head.names) < 2:
        return None
    if 2 * numbers < len(cells):
        return None
    reason = f"no delimiter, and {len(head.names):,} words on each of the first lines, most of them numbers"
    return ProposedOption(name="delimiter", value=WHITESPACE, reason=reason)


def _skipped(text: str, dialect: Dialect) -> ProposedOption | None:
    """The lines before the header, if these rows have few cells, and all rows after them equally many."""
    comment, dialect = dialect.comment, replace(dialect, comment=None)
    rows = list(islice(dialect.rows(io.StringIO(text, newline="")), _FIRST_ROWS + _MOST_SKIPPED))
    ends = [end for end, _ in rows]
    filled = [sum(map(bool, cells)) for _, cells in rows]
    counts = [len(cells) for _, cells in rows]
    if not counts:
        return None
    size = Counter(filter(None, counts)).most_common(1)
    if not size or size[0][0] < 2:
        return None
    number = size[0][0]
    place = len(rows)
    while place and counts[place - 1] in (0, number) and filled[place - 1] != 1:
        place -= 1
    while place < len(rows) and not counts[place]:
        place += 1
    is_short = all(some < max(2, number - 1) for some in filled[:place])
    if not 0 < place <= _MOST_SKIPPED or len(rows) - place < _LEAST_ROWS or not is_short:
        return None
    if place == 1 and number == 2 and filled[0]:
        return None  # perhaps a header without a name for the first column
    lines = ends[place - 1]
    if comment is not None and all(one.startswith(comment) for one in text.splitlines()[:lines] if one):
        return None
    first = text.splitlines()[0][:60]
    reason = f"before the first row with {number:,} cells, as all rows after it have: `{first}`"
    return ProposedOption(name="skip_lines", value=lines, reason=reason)


def _trim(names: Sequence[str], rows: Sequence[Sequence[str]], dialect: Dialect) -> ProposedOption | None:
    """The option to drop spaces, if a name has some around it, or all cells of a column."""
    if dialect.trim or dialect.delimiter == WHITESPACE:
        return None
    spaced = [name for name in names if name != name.strip(" \t")]
    if spaced:
        reason = f"names of columns have spaces around them, {listed(map(repr, spaced))}"
        return ProposedOption(name="trim", value=True, reason=reason)
    for name, cells in zip(names, zip(*rows, strict=False), strict=False):
        some = [cell for cell in cells if cell]
        if len(some) >= _LEAST_ROWS and all(cell[0] == " " for cell in some):
            reason = f"the cells of {name} begin with a space, such as {some[0]!r}"
            return ProposedOption(name="trim", value=True, reason=reason)
    return None


def _is_row(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str | None:
    """The evidence that the first row is no header: it fits its columns as a row does, and has a fraction, a
    number twice, or a cell of the rows; None without any.
    """
    columns = list(zip(*rows, strict=False))
    if len(rows) < _LEAST_ROWS or len(columns) < len(names):
        return None
    are_numbers = [all(map(is_number, filter(None, cells))) and any(cells) for cells in columns]
    if not any(are_numbers) or any(
        is_number_column and not is_number(name)
        for name, is_number_column in zip(names, are_numbers, strict=False)
    ):
        return None
    texts = [name for name, cells in zip(names, columns, strict=True) if name in cells]
    words = [name for name in texts if not is_number(name)]
    numbers = [name for name in names if is_number(name)]
    fractions = [name for name in numbers if not name.strip(" +-").isdigit()]
    again = [name for name, count in Counter(numbers).items() if count > 1]
    if words:
        return f"`{words[0]}` is on the first line and in rows"
    if fractions:
        return f"the first line has the number {fractions[0]}"
    if again:
        return f"the first line has the number {again[0]} twice"
    return None


def doubts(names: Sequence[str], options: Sequence[ProposedOption], several_lines: int) -> Iterator[str]:
    """Notes on names that may be a row, and on quotes that may join rows."""
    numbers = [name for name in names if is_number(name)]
    if numbers and "header" not in {option.name for option in options}:
        yield (
            f"source: names of columns are numbers, {listed(numbers)}: if the file has no header, its first "
            "row is lost (`header: false` of the source reads it)"
        )
    if several_lines:
        yield (
            f"source: cells of several lines: {several_lines:,}, which begin with a quote (if the file does "
            "not quote its cells, each has several rows, and `quote: null` of the source reads them)"
        )


@dataclass(frozen=True)
class Footer:
    """A last row that may be no row, but a footer.

    Attributes:
        columns: the columns of another type than its cells.
        note: the evidence, and what can be done.
    """

    columns: tuple[str, ...]
    note: str


def footer(
    path: Location, dialect: Dialect, encoding: str, plain: Callable[[str, Any], Any]
) -> Footer | None:
    """The last row of a file, if one of its cells differs from the type that all other cells of the column
    have in the first and the last rows; else None, as for an object in a store, and for a compressed file.

    Args:
        plain: converts the cells of a column, an Arrow array, to the notation that a build reads.
    """
    head = read_head(path, dialect, encoding, _FIRST_ROWS)
    tail = read_tail(path, dialect, encoding, head.start)
    if tail is None:
        return None
    *others, last = tail.rows
    if len(head.first) < _FIRST_ROWS:
        others, last = list(head.first[:-1]), head.first[-1] if head.first else ()
    else:  # the last of them may be the last of all
        others = [*head.first[:-1], *others]
    if len(others) < _LEAST_COMPARED or any(len(row) != len(head.names) for row in (*others, last)):
        return None

    def read_as(name: str, cells: Sequence[str]) -> str:
        profile = ColumnProfile.of_cells(name)
        texts = arrow().array([cell or None for cell in cells], arrow().large_string())
        profile.add(plain(name, texts), len(cells))
        return profile.read_as

    types: dict[str, str] = {}
    for name, cell, column in zip(head.names, last, zip(*others, strict=True), strict=True):
        form = _form(cell)
        if cell in column and not is_number(cell) and cell:
            return None  # a footer has no names of the rows
        if not cell or cell in WORDS or any(_form(other) == form for other in column):
            continue
        if (kind := read_as(name, column)) and read_as(name, (*column, cell)) != kind:
            types[name] = kind
    if not types:
        return None
    name, kind = next(iter(types.items()))
    before = lines_before(path, tail.start) if isinstance(path, Path) else None
    where = "the last line" if before is None else f"line {before + tail.lines:,}, the last one,"
    return Footer(
        tuple(types),
        f"source: {where} of {path.name} may be a footer, `{dialect.mark.join(last)[:60]}`: {name} has "
        f"{kind} on all other lines that were compared (remove the line; or, if the schema has {kind} "
        f"for {name}, `invalid: quarantine` of `write` leaves the row out)",
    )


def _form(cell: str) -> str:
    """A cell with one digit in place of several."""
    return re.sub("[0-9]+", "0", cell)


def commented_header(path: Location, dialect: Dialect, encoding: str, names: Sequence[str]) -> Iterator[str]:
    """A note on the last comment before the first row, if it has a cell for each column, and the names that
    were taken from the first row are numbers.
    """
    mark = dialect.comment
    if mark is None or dialect.header is not True or not any(map(is_number, names)):
        return
    lines = first_text(path, encoding).splitlines()[dialect.skip_lines :]
    last = ""
    for line in lines:
        if line and not line.startswith(mark):
            break
        last = line or last
    cells = last.lstrip(mark).split() if dialect.delimiter == WHITESPACE else last[1:].split(dialect.mark)
    if len(cells) == len(names) > 1:
        named = ", ".join(cell.strip() for cell in cells)
        yield (
            f"source: the comment `{last[:60]}` has a cell for each column, and may be the header (`header: "
            f"[{named}]` of the source names the columns)"
        )


def cells_of_several_lines(columns: Any, delimiter: str) -> tuple[int, int]:
    """The number of cells with line breaks, and of those that also contain the delimiter."""
    compute, types = arrow().compute, arrow().types
    texts = [
        each for each in columns.values() if types.is_string(each.type) or types.is_large_string(each.type)
    ]
    several = [text.filter(compute.match_substring(text, "\n")) for text in texts]
    both = [compute.sum(compute.match_substring(text, delimiter)).as_py() or 0 for text in several]
    return sum(map(len, several)), sum(both)


def is_number(text: str) -> bool:
    """Whether a cell is a finite number, also with a decimal comma."""
    try:
        return math.isfinite(float(text.strip().replace(",", ".")))
    except ValueError:
        return False


def listed(names: Iterable[str]) -> str:
    """The first names, and the number of remaining ones."""
    first, *others = names
    return f"{first} (and {len(others):,} more)" if others else first
