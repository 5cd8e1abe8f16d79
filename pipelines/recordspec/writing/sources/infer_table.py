"""A schema for rows of tables, in files or in memory, inferred from the types of columns and their values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import Location
from recordspec.schema.arrow_values import is_list
from recordspec.schema.dates import DateUnit, finest, to_dates, unit_of_dates
from recordspec.schema.infer import (
    LEAST_ROWS,
    LONGEST_NAME,
    MAX_CLASSES,
    Evidence,
    Inferred,
    ProposedOption,
    free_text,
    infer_features,
    no_inputs,
    notes_of_free_text,
)
from recordspec.schema.schema import Schema
from recordspec.schema.values import EXACT_INTS, holds
from recordspec.wire.arrays import is_arrow, to_numpy
from recordspec.writing.sources import text
from recordspec.writing.sources.arrays import Arrays
from recordspec.writing.sources.arrow import TableRows
from recordspec.writing.sources.base import not_once
from recordspec.writing.sources.class_names import ColumnClasses
from recordspec.writing.sources.csv import Csv, read_header
from recordspec.writing.sources.hugging_face import HuggingFaceExamples, HuggingFaceRows, is_hugging_face
from recordspec.writing.sources.infer_notation import CellForms, have_words, propose
from recordspec.writing.sources.jsonl import read_rows
from recordspec.writing.sources.objects import names_in, plain_columns
from recordspec.writing.sources.parquet import class_names_of, opened
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.rows import DictRows, not_a_mapping
from recordspec.writing.sources.text_files import UTF8, uncompressed_name

# The suffixes of CSV files, with their delimiters, and of JSON lines.
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")
# Other delimiters of files that are called CSV.
_OTHER_DELIMITERS = ";\t|"
# The first bytes of UTF-16; and the encoding of most other text that is not UTF-8.
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LIKELY = "windows-1252"
# Its characters that are text, but not seen in a message.
_UNSEEN = {"\u00a0": "a space that does not break a line", "\u00ad": "a soft hyphen"}
_BATCH_ROWS = 1 << 16
_FIRST_TEXTS = 1024
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_INT64 = range(-(1 << 63), 1 << 63)
# The form in which pandas writes integers of a column with missing values.
_WHOLE = r"^[-+]?[0-9]{1,18}(\.0+)?$"
# Digits that are no number: with leading zeros, or with a plus where no other has a minus, as in `+49171`.
_LEADING_ZERO, _PLUS, _MINUS = "^[-+]?0[0-9]", "^[+]", "^-"
_MOST_MARKS = 3
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
# What people read as numbers or dates in cells of a CSV file, and a build does not; with how it reads them.
_NOTATIONS = {
    "numbers": (
        "^[-+]?([$€£][ \u00a0]?)?"
        "(\\d{1,3}([,']\\d{3})+(\\.\\d+)?|[1-9]\\d{0,2}([. \u00a0\u202f]\\d{3})+(,\\d+)?|\\d+([.,]\\d+)?)"
        "[ \u00a0\u202f]?[%$€£]?-?$",
        "1234.5",
    ),
    "dates": (
        r"^(\d{1,2}[./-]\d{1,2}[./-]\d{4}|(0?[1-9]|[12]\d|3[01])[./](0?[1-9]|[12]\d|3[01])[./]\d{2}"
        r"|\d{4}[./]\d{1,2}[./]\d{1,2})"
        r"([ T]\d{1,2}:\d{2}(:\d{2})?( ?[AaPp][Mm])?)?$",
        "2026-01-31",
    ),
}
# An index of a class, as its name is printed.
_INDEX = re.compile("0|[1-9][0-9]{0,3}")


def infer_table(paths: Sequence[Location], name: str, sample: int | None = None) -> Inferred:
    """A schema for the first `sample` rows of each of these CSV, JSONL or Parquet files, or for all.

    Raises RecordError for a file that cannot be read, or has no values; SpecError for two columns of one
    name, and for files of different columns; MissingExtra without pyarrow.
    """
    suffix = table_suffix(paths[0])
    if suffix in DELIMITERS:
        return _infer_csv(paths, name, sample)
    table = _Table(where=str(paths[0]), by_length=suffix in LINES)
    for path in paths:
        if suffix == ".parquet":
            table.add_class_names(class_names_of(path))
    _add_files(table, paths, _batches, sample)
    return table.inferred(name)


def _infer_csv(paths: Sequence[Location], name: str, sample: int | None) -> Inferred:
    """A schema for CSV files, in UTF-8 or in another encoding that is likely."""
    if paths[0].read_start(2) in _UTF16:
        reason = "by the first bytes of the file"
        encoding = ProposedOption(name="encoding", value="utf-16", reason=reason)
        return _infer_encoded(paths, name, sample, encoding)
    try:
        return _infer_encoded(paths, name, sample)
    except RecordError as error:
        proposed = _likely_encoding(error.problems[0])
        if proposed is None:
            raise
        try:
            return _infer_encoded(paths, name, sample, proposed)
        except RecordError:
            raise error from None


def _likely_encoding(problem: Problem) -> ProposedOption | None:
    """The encoding of text that is not UTF-8; None for another problem, and for bytes that are no text."""
    byte = re.fullmatch("the byte 0x(..)", problem.got)
    if problem.expected != UTF8 or byte is None:
        return None
    character = bytes.fromhex(byte[1]).decode(_LIKELY, "replace")
    character = _UNSEEN.get(character, character)
    if not character.isprintable() or character == "\ufffd":
        return None
    path, _, line = problem.where.rpartition(":")
    where = f"line {line} of {path.rpartition('/')[2]}"
    reason = (
        f"the byte 0x{byte[1]} on {where} is no UTF-8; in this encoding it is {character}: check the texts"
    )
    return ProposedOption(name="encoding", value=_LIKELY, reason=reason)


def _infer_encoded(
    paths: Sequence[Location], name: str, sample: int | None, encoding: ProposedOption | None = None
) -> Inferred:
    """A schema for CSV files in this encoding, or in UTF-8."""
    options = [] if encoding is None else [encoding]
    decoding = {option.name: option.value for option in options}
    delimiter = delimiter_of(paths[0], **decoding)
    if delimiter != DELIMITERS[".csv"]:
        options.insert(0, ProposedOption(name="delimiter", value=delimiter))

    def read(path: Location) -> ColumnBatches:
        return _csv_batches(path, delimiter, **decoding)

    table = _Table(where=str(paths[0]), in_text=True)
    _add_files(table, paths, read, sample)
    forms = {column: profile.forms for column, profile in table.columns.items()}
    if have_words(forms):
        _add_files(_TextWords(forms), paths, read, sample)
    proposed = propose(forms)
    if proposed.options:

        def read_plain(path: Location) -> ColumnBatches:
            for columns, rows in read(path):
                yield {column: proposed.plain(column, values) for column, values in columns.items()}, rows

        table = _Table(where=str(paths[0]), in_text=True)
        _add_files(table, paths, read_plain, sample)
    for column in proposed.explained:
        table.columns[column].notations.clear()
    inferred = table.inferred(name)
    options += proposed.options
    notes = [f"source: {_yaml(option)}: {option.reason}" for option in options if option.reason]
    unnamed = read_header(paths[0], delimiter, **decoding).count("")
    more = [f'"": {unnamed:,} columns without a name, so they are left out'] if unnamed > 1 else []
    notes += [*proposed.notes, *inferred.notes, *more]
    return replace(inferred, notes=tuple(notes), options=tuple(options))


def _yaml(option: ProposedOption) -> str:
    return f"`{option.name}: {json.dumps(option.value, ensure_ascii=False)}`"


class _TextWords:
    """Adds the words for missing values in columns of text, which count only where others have them."""

    def __init__(self, forms: Mapping[str, CellForms]) -> None:
        self._texts = {name: one for name, one in forms.items() if one.are_texts}
        for one in self._texts.values():
            one.words.clear()

    def add(self, columns: Mapping[str, Any], rows: int) -> None:
        """Adds the first `rows` rows of a batch."""
        for name, one in self._texts.items():
            if name in columns:
                one.add_words(columns[name][:rows])


def _add_files(
    table: _Table | _TextWords,
    paths: Sequence[Location],
    read: Callable[[Location], ColumnBatches],
    sample: int | None,
) -> None:
    """Adds the first `sample` rows of each file, or all."""
    first: Mapping[str, Any] = {}
    for path in paths:
        rows = 0
        for columns, count in read(path):
            if table_suffix(path) not in LINES:
                first = first or columns
                _check_columns(columns, first, str(path), paths[0].name)
            taken = count if sample is None else min(count, sample - rows)
            table.add(columns, taken)
            rows += taken
            if rows == sample:
                break


def infer_rows(data: Any, name: str, sample: int | None = None) -> Inferred:
    """A schema for the first `sample` rows in memory, or for all: what `source_of` takes.

    Raises SpecError for other values, RecordError if there are no values.
    """
    table = _Table(where="rows", by_length=True)
    splits = data.values() if is_hugging_face(data) and isinstance(data, Mapping) else (data,)
    for rows in splits:
        source = source_of(rows)  # it refuses others
        table.keeps_objects = isinstance(source, HuggingFaceRows | HuggingFaceExamples | Arrays)
        if isinstance(source, HuggingFaceRows | HuggingFaceExamples | TableRows):
            table.add_class_names(source.class_names)
        if isinstance(source, HuggingFaceExamples):
            table.is_unknown = source.is_unknown
        left = sample
        for columns, count in _batches_in_memory(source, sample):
            taken = count if left is None else min(count, left)
            table.add({str(column): values for column, values in columns.items()}, taken)
            left = None if left is None else left - taken
            if left == 0:
                break
    return table.inferred(name)


# The values of columns, by name, and the number of rows. Text instead of values says what they are that Arrow
# does not take.
ColumnBatches = Iterator[tuple[Mapping[str, Any], int]]


def _batches_in_memory(source: Any, sample: int | None) -> ColumnBatches:
    if isinstance(source, HuggingFaceRows):
        files = {*source.columns_of("Image"), *source.columns_of("Audio")}
        for table in source.tables():
            yield (
                {name: _array(table.column(name)) for name in table.column_names if name not in files},
                len(table),
            )
    elif isinstance(source, Arrays):
        yield {name: _array(values) for name, values in source.columns.items()}, source.rows
    elif isinstance(source, DictRows):
        yield from _row_batches(islice(source, sample))
    else:
        for batch in source.batches():
            yield dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows


def _row_batches(rows: Iterable[Any]) -> ColumnBatches:
    """Batches rows that come one by one; a name that a row lacks is missing."""
    number, rows = 0, iter(rows)
    while some := list(islice(rows, _BATCH_ROWS)):
        names: dict[str, None] = {}
        for row in some:
            if not isinstance(row, Mapping):
                raise not_a_mapping(row, number)
            names |= dict.fromkeys(row)
            number += 1
        yield {str(name): _array([row.get(name) for row in some]) for name in names}, len(some)


def table_suffix(path: Location) -> str:
    """The suffix of the name of a file, which may be compressed: `.csv` of `rows.csv.gz`."""
    return PurePath(uncompressed_name(path.name)).suffix


def delimiter_of(path: Location, encoding: str = "utf-8") -> str:
    """The delimiter of a file, by its suffix; another one where the header has that, and no comma."""
    delimiter = DELIMITERS[table_suffix(path)]
    header = read_header(path, delimiter, encoding)
    if delimiter != "," or len(header) != 1:
        return delimiter
    return next((other for other in _OTHER_DELIMITERS if other in header[0]), delimiter)


def _batches(path: Location) -> ColumnBatches:
    """The rows of a file of JSON lines, or of Parquet."""
    if table_suffix(path) in LINES:
        yield from _row_batches(read_rows(path))
        return
    for batch in _parquet_batches(path):
        yield dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows


def _csv_batches(path: Location, delimiter: str, encoding: str = "utf-8") -> ColumnBatches:
    """The rows of a CSV file, in columns of text."""
    for batch in Csv(path=str(path), delimiter=delimiter, encoding=encoding).blocks():
        yield dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows


def _parquet_batches(path: Location) -> Iterator[Any]:
    """Record batches of all columns."""
    with opened(path) as file:
        names = names_in(file.schema_arrow)
        if problems := list(not_once({name: name for name in names}, names)):
            raise SpecError([problem.at(str(path)) for problem in problems])
        yield from file.iter_batches(_BATCH_ROWS)


def _check_columns(columns: Mapping[str, Any], first: Mapping[str, Any], path: str, name: str) -> None:
    """Raises SpecError if a file has other columns than the first, or another type of one."""
    problems = []
    for column in {**first, **columns}:
        ours, theirs = (str(one[column].type) if column in one else "none" for one in (columns, first))
        if ours != theirs:
            if "none" in (ours, theirs):  # the offsets of its text are no matter then
                ours, theirs = ours.removeprefix("large_"), theirs.removeprefix("large_")
            problems.append(Problem(where=path, path=(column,), expected=f"{theirs}, as in {name}", got=ours))
    if problems:
        raise SpecError(problems)


@dataclass(frozen=True)
class InexactArray:
    """Floats that Arrow made of floats and integers.

    Attributes:
        array: an Arrow array.
        integer: the first integer that float32 does not hold.
    """

    array: Any
    integer: int


def _array(values: Any) -> Any:
    """An Arrow array of values of a column; text that says what they are, if Arrow has no type for them."""
    pyarrow = arrow()
    if is_arrow(values):
        return values.combine_chunks() if isinstance(values, pyarrow.ChunkedArray) else values
    series = values
    if isinstance(values, (list, tuple)) and any(map(_is_nested, values[:1])):
        values = _stacked(values)
    if isinstance(values, np.ndarray) and values.ndim > 1 and values.dtype.kind in "iuf" and values.size:
        made = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(values))
        return _with_integers(made, series)
    sizes = values.shape[1:] if isinstance(values, np.ndarray) else ()
    try:
        if any(isinstance(value, set | frozenset) for value in values):
            raise TypeError  # Arrow takes them for lists, no feature does
        if sizes:
            return _nested_array(values.tolist(), sizes)
        return _with_integers(_with_large_integers(values), series)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        return _description(values)


def _nested_array(values: Any, sizes: tuple[int, ...]) -> Any:
    """An Arrow array of nested lists, all of these sizes."""
    array = arrow().array(values)
    kind = _item_type(array.type)
    for size in reversed(sizes):
        kind = arrow().list_(kind, size)
    return array.cast(kind)


def _description(values: Iterable[Any]) -> str:
    """What values are that Arrow has no type for."""
    some = [value for value in values if value is not None]
    kinds = dict.fromkeys(type(value).__name__ for value in some)
    what = " and ".join(list(kinds)[:3])
    if [*kinds] == ["list"]:
        return f"lists of {_description(item for value in some for item in value)}"
    if [*kinds] == ["int"]:
        return "int beyond int64 and uint64 (in quotes it is text)"
    if [*kinds] == ["str"]:
        return "str with a lone surrogate, which UTF-8 cannot encode"
    return what


def _taken(array: Any, indices: Any) -> Any:
    if isinstance(array, InexactArray):
        return replace(array, array=array.array.take(indices))
    return array.take(indices)


def _with_large_integers(values: Any) -> Any:
    """An Arrow array; of uint64, or of lists of it, if int64 does not hold all integers."""
    pyarrow = arrow()
    try:
        return pyarrow.array(values)
    except OverflowError:
        some = [value for value in values if value is not None]
        if all(map(_is_integer, some)):
            return pyarrow.array(values, pyarrow.uint64())
        if all(isinstance(value, list | tuple) and all(map(_is_integer, value)) for value in some):
            return pyarrow.array(values, pyarrow.list_(pyarrow.uint64()))
        raise


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer)


def _with_integers(array: Any, values: Any) -> Any:
    """The array of these values, and an integer among them that it may have rounded, if any."""
    floats = arrow().types.is_floating(_item_type(array.type))
    integer = _rounded_integer(values) if floats and isinstance(values, list | tuple) else None
    return array if integer is None else InexactArray(array, integer)


def _item_type(kind: Any) -> Any:
    """The type of single values, and of items of lists and arrays."""
    while is_list(kind) or is_tensor(kind):
        kind = kind.value_type
    return kind


def _rounded_integer(values: Iterable[Any]) -> int | None:
    """The first integer, also in lists, that float32 does not hold."""
    for value in values:
        if isinstance(value, list | tuple):
            rounded = _rounded_integer(value)
            if rounded is not None:
                return rounded
        elif isinstance(value, int | np.integer) and not holds(int(value), "float32"):
            return int(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            rounded = _rounded_integer(value.reshape(-1).tolist())
            if rounded is not None:
                return rounded
    return None


def _is_nested(value: Any) -> bool:
    """Whether a value of a row has two dimensions or more."""
    if isinstance(value, np.ndarray):
        return value.ndim > 1
    lists = (list, tuple, np.ndarray)
    return isinstance(value, lists) and isinstance(next(iter(value), None), lists)


def _stacked(values: Any) -> Any:
    """Stacks arrays of one shape; other values do not change."""
    try:
        array = np.array(values)
    except ValueError:  # of different shapes
        return values
    if array.dtype.kind == "f" and all(map(_is_integer, np.array(values, object).flat)):
        return np.array(values, np.uint64)
    return values if array.dtype == object or not array.size else array


@dataclass(kw_only=True)
class _Table:
    """Profiles of the columns of rows that are added in batches.

    Attributes:
        where: the location of the rows in messages.
        in_text: whether they are cells of a CSV file.
        by_length: whether lists of one length have a shape.
        class_names: the names of the classes, by column, whose indices the rows have.
        keeps_objects: whether the source of the rows does not divide objects into their members.
        is_unknown: whether integers of a column are not to be taken for indices of classes.
    """

    where: str
    in_text: bool = False
    by_length: bool = False
    keeps_objects: bool = False
    rows: int = 0
    columns: dict[str, ColumnProfile] = field(default_factory=dict)
    class_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    is_unknown: Callable[[str], bool] = lambda name: False

    def add_class_names(self, classes: ColumnClasses) -> None:
        """Adds the class names of columns of the rows that follow; a schema has those of all rows."""
        for name, names in classes.items():
            self.class_names[name] = tuple(dict.fromkeys((*self.class_names.get(name, ()), *names)))

    def add(self, columns: Mapping[str, Any], rows: int) -> None:
        """Adds the first `rows` rows of a batch."""
        plain: dict[str, Any] = {}
        for name, values in columns.items():
            is_divided = is_arrow(values) and not self.keeps_objects
            own = plain_columns(name, values) if is_divided else {name: values}
            if problems := [
                Problem(where=self.where, path=(column,), expected=f"one column `{column}`", got="several")
                for column in own.keys() & plain
            ]:
                raise SpecError(problems)
            plain |= own
        for name, values in plain.items():
            if name not in self.columns:
                profile = ColumnProfile(name, None, self.in_text, self.by_length)
                profile.rows = profile.nulls = self.rows
                profile.may_be_class = not self.is_unknown(name)
                self.columns[name] = profile
            profile = self.columns[name]
            profile.class_names = self.class_names.get(name, ())
            if isinstance(values, InexactArray):
                profile.unheld.setdefault("float32", values.integer)
                values = values.array
            profile.add(values if isinstance(values, str) else values[:rows], rows)
        self.rows += rows
        for profile in self.columns.values():  # of a name that these rows lack
            profile.nulls += self.rows - profile.rows
            profile.rows = self.rows

    def inferred(self, name: str) -> Inferred:
        inferred, notes = infer_features(profile.evidence() for profile in self.columns.values())
        features = tuple(feature for _, feature in inferred if feature is not None)
        left_out = tuple(evidence.name for evidence, feature in inferred if feature is None)
        if not features:
            problem = Problem(where=self.where, expected="a column with values", got="none")
            raise RecordError(replace(problem, hint="; ".join(notes[:3])))
        schema = Schema(name=name, features=features)
        return Inferred(
            schema=schema,
            notes=tuple(notes),
            rows=self.rows,
            left_out=left_out,
            no_inputs=no_inputs(inferred),
            free_text=free_text(inferred),
            first_texts={
                feature.name: self.columns[feature.name].first_texts
                for feature in features
                if feature.kind == "text"
            },
        )


@dataclass
class ColumnProfile:
    """The common properties of the values of a column.

    Attributes:
        type: the Arrow type, of all values that are not null; string for any column of a CSV file.
        in_text: whether the values are cells of a CSV file.
        by_length: whether lists of one length have a shape.
        odd: a description of the values, if they have no common type, or none that Arrow has.
        lengths: the different lengths of lists, at most two.
        nulls: the number of rows without a value.
        empty: the number of quoted empty cells, which are text, but not numbers.
        class_names: the names of the classes whose indices the integers are, if known.
        may_be_class: whether integers may be taken for indices of classes.
        values: the distinct texts or integers; None if there are more than `MAX_CLASSES`.
        rounded: the first whole number that float32 does not hold, perhaps an identifier.
        unheld: the first integer, as it was given, that float32 does not hold, and float64, by dtype.
        pointed: the first whole number with a point that is too large for an integer feature, as float32, and
            the first that float64 does not hold.
        large: whether float32 does not hold a number at all, or int64 an integer.
        as_text: the dtype that does not hold all numbers of a CSV file, if none holds them.
        finite: whether no single number is NaN or infinite.
        gaps: whether a list has a missing item.
        was: a note of a type of Arrow whose values are kept in another.
        not_utf8: whether a text of Arrow is not UTF-8.
        date: the coarsest unit of all values, if they are dates and times, or their text.
        zeros: whether an integer of a CSV file has leading zeros.
        signs: the signs that integers of a CSV file have.
        whole: whether all numbers of a CSV file are integers of up to 18 digits, perhaps with `.0`.
        repeats: whether two rows of a batch have the same text.
        words: whether a text has several words, or is long.
        gap_marks: the texts among the numbers of a CSV file, such as `NA`, judging by its first rows.
        first_texts: the first texts, at most 1,024.
        forms: in which notations the cells of a CSV file are.
        notations: which of `_NOTATIONS` all cells of a CSV file have, and the first that no build reads so.
    """

    name: str
    type: Any
    in_text: bool
    by_length: bool = False
    rows: int = 0
    nulls: int = 0
    empty: int = 0
    class_names: tuple[str, ...] = ()
    may_be_class: bool = True
    values: set[Any] | None = field(default_factory=set)
    rounded: float | None = None
    unheld: dict[str, int] = field(default_factory=dict)
    pointed: dict[str, int] = field(default_factory=dict)
    large: bool = False
    as_text: str = ""
    finite: bool = True
    gaps: bool = False
    was: str = ""
    not_utf8: bool = False
    first_texts: tuple[str, ...] = ()
    odd: str = ""
    lengths: set[int] = field(default_factory=set)
    date: DateUnit | None = None
    zeros: bool = False
    signs: set[str] = field(default_factory=set)
    whole: bool = True
    repeats: bool = False
    words: bool = False
    gap_marks: tuple[str, ...] = ()
    forms: CellForms = field(default_factory=CellForms)
    notations: dict[str, str] = field(default_factory=lambda: dict.fromkeys(_NOTATIONS, ""))
    _dtypes: tuple[str, ...] = ("int64", "float64", "bool")
    _may_be_dates: bool = True

    def add(self, column: Any, rows: int) -> None:
        """Adds the next rows: an Arrow array, or what the values are that Arrow does not take."""
        import pyarrow.types as types

        self.rows += rows
        if isinstance(column, str):
            self.odd = self.odd or column
            return
        column = self._normal(column)
        # cells of text are read with large offsets, which is no type of theirs
        self._add_type(arrow().string() if self.in_text else column.type)
        if self.class_names and types.is_integer(column.type):
            column = arrow().compute.if_else(arrow().compute.less(column, 0), None, column)
        self.nulls += column.null_count
        some = column.drop_null()
        self._add_some(some.dictionary_decode() if types.is_dictionary(column.type) else some)

    def _normal(self, column: Any) -> Any:
        """A column in a type that a feature holds, with a note of what it was."""
        if "list_view" in str(column.type).partition("<")[0]:
            column = column.cast(arrow().list_(column.type.value_type))
        types, kind = arrow().types, _item_type(column.type)
        if isinstance(kind, arrow().BaseExtensionType) and not is_tensor(column.type):  # JSON, UUID
            column = column.cast(_with_items(column.type, kind.storage_type))
            kind = _item_type(column.type)
        if _is_text(kind) and not self.in_text:
            self._check_utf8(column)
            column = column.dictionary_decode() if types.is_dictionary(column.type) else column
            return column.cast(_with_items(column.type, arrow().large_binary())) if self.not_utf8 else column
        if types.is_decimal(kind):
            self.was = f"{kind}, kept as numbers: `kind: text` keeps all digits"
            number = arrow().float64()
        elif types.is_time(kind) or types.is_duration(kind):
            since = "of a duration" if types.is_duration(kind) else "since midnight"
            self.was = f"{_UNITS[kind.unit]} {since}"
            self.may_be_class, number = False, arrow().int64()
        elif types.is_fixed_size_binary(kind):
            hint = "`kind: tensor` with `encoding: raw`, if these are numbers"
            self.was, number = f"{kind.byte_width:,} bytes each: {hint}", arrow().large_binary()
        elif "view" in str(kind):
            number = arrow().large_string() if types.is_string_view(kind) else arrow().large_binary()
        else:
            return column
        if types.is_time(kind) and kind.bit_width == 32:
            column = column.cast(_with_items(column.type, arrow().int32()))
        return column.cast(_with_items(column.type, number))

    def _check_utf8(self, column: Any) -> None:
        """Takes all texts for bytes once one is not UTF-8, which Arrow does not check when it reads them."""
        try:
            column.validate(full=True)
        except arrow().ArrowInvalid:
            self.not_utf8, self.values, self._may_be_dates = True, None, False
            self.was = "text that is not UTF-8, kept as bytes"
            if self.type is not None and _is_text(_item_type(self.type)):
                self.type = _with_items(self.type, arrow().large_binary())

    def _add_some(self, some: Any) -> None:
        """Adds values none of which is missing."""
        import pyarrow.types as types

        if types.is_string(some.type) or types.is_large_string(some.type):
            some = some.cast(arrow().large_string())
            self._add_values(some)
            self._add_texts(some)
            self._add_words(some)
        elif types.is_date(some.type) or types.is_timestamp(some.type):
            self._add_dates(to_dates(some))
        elif types.is_integer(some.type):
            self._add_values(some)
            self._add_items(some)
        elif types.is_floating(some.type):
            self._add_items(some)
        elif is_list(some.type):
            self._add_lists(some)
        elif is_tensor(some.type):
            self._add_items(some.storage.flatten())

    def _add_lists(self, some: Any) -> None:
        import pyarrow.types as types

        items = some.flatten()
        while is_list(items.type):
            self.gaps |= items.null_count > 0
            items = items.flatten()
        self.gaps |= items.null_count > 0
        if _is_text(items.type) and self.shallow:
            self._add_values(items.dictionary_decode() if types.is_dictionary(items.type) else items)
        if self.class_names and types.is_integer(items.type):
            self.gaps |= bool(arrow().compute.any(arrow().compute.less(items, 0), min_count=0).as_py())
        self._add_items(items.drop_null())
        if self.by_length and len(self.lengths) < 2 and not is_list(some.type.value_type):
            self.lengths |= set(some.value_lengths().unique().to_pylist()[:2])

    def _add_items(self, items: Any) -> None:
        """Adds numbers, single ones or those of lists; other items need no look."""
        import pyarrow.types as types

        if types.is_floating(items.type):
            self._add_numbers(to_numpy(items).astype(np.float64))
        elif types.is_integer(items.type):
            integers = to_numpy(items)
            self.large |= types.is_uint64(items.type) and bool((integers > _INT64[-1]).any())
            self._add_integers(integers)

    def _add_integers(self, integers: Any) -> None:
        """Adds integers as they were given: beside floats, a float type must hold them exactly."""
        self.unheld = _with_unheld(self.unheld, integers)

    def _add_type(self, kind: Any) -> None:
        import pyarrow.types as types

        if self.type is None or types.is_null(self.type):
            self.type = kind
        elif not kind.equals(self.type) and not types.is_null(kind):
            common = _common_type(self.type, kind)
            self.odd = self.odd or ("" if common else f"{self.type} and {kind}")
            self.type = common or self.type

    def _add_texts(self, some: Any) -> None:
        if not self.first_texts:
            self.first_texts = tuple(filter(None, some[:_FIRST_TEXTS].to_pylist()))
        if self.in_text:
            self._add_cells(some)
        if self._may_be_dates:
            texts = some.to_pylist()
            self._add_dates([text for text in texts if text] if self.in_text else texts)

    def _add_words(self, some: Any) -> None:
        import pyarrow.compute as compute

        self.repeats = self.repeats or len(some.unique()) < len(some)
        if not self.words:
            long = compute.greater(compute.binary_length(some), LONGEST_NAME)
            if compute.any(long, min_count=0).as_py():
                long = compute.greater(compute.utf8_length(some), LONGEST_NAME)
            self.words = bool(compute.any(long, min_count=0).as_py()) or text.have(some, " \t\n\f\r")

    def _add_dates(self, values: Any) -> None:
        unit = unit_of_dates(values)
        self._may_be_dates = unit is not None
        if unit is not None and len(values):
            self.date = finest(self.date or unit, unit)

    def _add_values(self, some: Any) -> None:
        if self.values is not None:
            distinct = some.unique()
            if len(distinct) <= MAX_CLASSES:
                self.values |= set(distinct.to_pylist())
            if len(distinct) > MAX_CLASSES or len(self.values) > MAX_CLASSES:
                self.values = None

    def _add_cells(self, some: Any) -> None:
        import pyarrow.compute as compute

        filled = some.filter(compute.greater(compute.binary_length(some), 0))
        self.empty += len(some) - len(filled)
        were_numbers = "float64" in self._dtypes
        if len(filled) == self.rows - self.nulls - self.empty:
            self.gap_marks = _gap_marks(filled)
        self._dtypes = tuple(dtype for dtype in self._dtypes if text.are(filled, dtype))
        if were_numbers and "float64" not in self._dtypes:
            self.large, self.as_text = False, ""
        if "int64" in self._dtypes and not self.zeros:

            def some(pattern: str) -> bool:
                matches = compute.match_substring_regex(filled, pattern)
                return bool(compute.any(matches, min_count=0).as_py())

            self.zeros = some(_LEADING_ZERO)
            self.signs |= {sign for sign in (_PLUS, _MINUS) if some(sign)}
        if "float64" in self._dtypes and self.whole:
            matches = compute.match_substring_regex(filled, _WHOLE)
            self.whole = bool(compute.all(matches, min_count=0).as_py())
            pointed = text.beyond_point(filled)
            first = {"float32": pointed[0]} if pointed else {}
            self.pointed = _with_unheld(first | self.pointed, np.array(pointed, np.int64))
        if "float64" in self._dtypes:
            self._add_cell_numbers(filled)
        if len(filled):
            self.forms.add(filled, are_plain="float64" in self._dtypes)
            self._add_notations(filled)

    def _add_cell_numbers(self, filled: Any) -> None:
        """Adds cells all of which are numbers, or so far all integers."""
        short, long = text.integers(filled)
        self._add_integers(short)
        self._add_integers(np.array(long, object))
        if "int64" in self._dtypes:
            if not all(value in _INT64 for value in long):
                self._dtypes, self.as_text = (), "int64"
            return
        numbers = text.cast(filled, "float64")
        if numbers is None:
            numbers = np.array(filled.to_pylist(), np.float64)
        if text.overflows(filled, numbers):
            self._dtypes, self.as_text = (), "float64"
        else:
            self._add_numbers(numbers)

    def _add_notations(self, filled: Any) -> None:
        import pyarrow.compute as compute

        if "float64" in self._dtypes:  # all cells are numbers, which take no second look
            self.notations.pop("dates", None)
            return
        if not self.notations:
            return
        plain = text.form(filled, "float64")
        for name, example in [*self.notations.items()]:
            fits = compute.match_substring_regex(filled, _NOTATIONS[name][0])
            if not compute.all(compute.or_(fits, plain) if name == "numbers" else fits).as_py():
                del self.notations[name]
            elif not example:
                odd = filled.filter(compute.invert(plain))
                self.notations[name] = odd[0].as_py() if len(odd) else ""

    def _add_numbers(self, numbers: npt.NDArray[np.float64]) -> None:
        finite = numbers[np.isfinite(numbers)]
        self.finite &= finite.size == numbers.size
        self.large |= bool((abs(finite) > _MAX_FLOAT32).any())
        whole = finite[(np.trunc(finite) == finite) & (abs(finite) <= _MAX_FLOAT32)]
        lost = whole[whole.astype(np.float32) != whole]  # float32 has all up to 2^24
        if self.rounded is None and len(lost):
            self.rounded = float(lost[0])

    def evidence(self) -> Evidence:
        """The evidence of all rows that were added."""
        dtype, shape = ("string", ()) if self.gaps or self.type is None else _dtype_and_shape(self.type)
        date = self.date if self._may_be_dates else None
        dtype = dtype if date is None else "int64"
        if len(self.lengths) == 1 and shape == (None,):
            shape = tuple(self.lengths)
        if self.in_text and self._dtypes and self.rows > self.nulls + self.empty:
            dtype = {"float64": "float32"}.get(self._dtypes[0], self._dtypes[0])
        notes: tuple[str, ...] = ()
        if self.in_text and dtype == "int64" and (self.zeros or self.signs == {_PLUS}) and date is None:
            dtype, notes = "string", ("digits with leading zeros or a plus, which an integer loses: text",)
        elif self.in_text and dtype == "float32" and self._is_whole:
            dtype, notes = "int64", ("integers, some with `.0`, which float32 would round: kept as int64",)
        if dtype == "float32" and "float64" in self._unheld:
            dtype = "string" if self.in_text else None
        missing = self.nulls + (self.empty if self.in_text and dtype != "string" else 0)
        if self.is_empty:
            missing = self.rows
        type_name = self._type_name
        notes += (self.was,) * bool(self.was)
        if self.in_text and dtype == "string" and self.gap_marks:
            marks = ", ".join(f"`{mark}`" for mark in self.gap_marks)
            notes = (
                *notes,
                f"numbers, but for {marks}: if that means missing, `missing` of the source says so",
            )
        if self.in_text and dtype == "string" and not self.zeros:
            notes += tuple(
                f"{name} such as `{cell}` are inferred as text: a build reads only the notation `{read}`"
                for name, (_, read) in _NOTATIONS.items()
                if (cell := self.notations.get(name))
            )
        free_text: tuple[str, ...] = ()
        # amounts with a space are no words
        if dtype == "string" and self.words and not any(self.notations.values()):
            distinct = None if self.values is None else len(self.values)
            free_text = notes_of_free_text(self.rows, self.rows - missing, distinct)
        return Evidence(
            name=self.name,
            rows=self.rows,
            missing=missing,
            type_name=type_name,
            dtype=None if self.gaps or self.odd or missing == self.rows else self._wide(dtype),
            shape=shape,
            is_text=self.type is not None and _is_text(self.type),
            date=date,
            may_be_string=self.in_text,
            values=self._distinct(dtype),
            class_names=self.class_names if dtype in ("int64", "uint64") else (),
            too_large_for=self._too_large_for(dtype),
            rounded=self.rounded,
            finite=self.finite or dtype != "float32",
            identifies=dtype == "string" and self._identifies,
            free_text=bool(free_text),
            notes=notes + free_text,
        )

    @property
    def _type_name(self) -> str:
        """What messages call the values, with the way to a feature, if there is one."""
        types = arrow().types
        if not self.name:
            way = "`columns: {index: ''}` of a file's source"
            return f"a column without a name (rename it, or read it with {way})"
        if self.odd or self.type is None:
            return self.odd
        item, way = _item_type(self.type), ""
        kind = "tensor" if types.is_boolean(item) else "var_len" if self.shallow else "ragged"
        if self.gaps:
            fill = "NaN, or a value of your own" if types.is_floating(item) else "a value of your own"
            way = f" with items that are missing ({fill} in their place makes it `kind: {kind}`)"
        elif is_list(self.type) and (types.is_date(item) or types.is_timestamp(item)):
            way = f" (cast to int64, `kind: {kind}` holds it)"
        return f"{self.type}{way}"

    @property
    def is_empty(self) -> bool:
        """Whether no value has an item or a member, so that its type is unknown."""
        if self.odd or self.type is None:
            return False
        item = _item_type(self.type)
        return arrow().types.is_null(item) or (arrow().types.is_struct(item) and not item.num_fields)

    @property
    def shallow(self) -> bool:
        """Whether values are lists, not lists of lists."""
        return self.type is not None and is_list(self.type) and not is_list(self.type.value_type)

    @property
    def _identifies(self) -> bool:
        """Whether each row has a word of its own, if it has texts."""
        is_text = self.type is not None and _is_text(self.type)
        return is_text and self.rows >= LEAST_ROWS and not self.nulls and not (self.repeats or self.words)

    def _wide(self, dtype: str | None) -> str | None:
        """The dtype that holds all numbers; those of a CSV file that none holds are text already."""
        wide = {"float32": "float64", "int64": "uint64"}
        return wide.get(dtype, dtype) if dtype is not None and self._too_large_for(dtype) else dtype

    def _too_large_for(self, dtype: str | None) -> str:
        """The dtype that does not hold all numbers, where it would be the first choice; or ""."""
        if dtype == "float32":
            return "float32" if self.large or self._unheld else ""
        if dtype in ("string", None):
            return self.as_text or ("float64" if "float64" in self._unheld and self._is_float else "")
        return "int64" if self.large else ""

    @property
    def _is_whole(self) -> bool:
        """Whether numbers of a CSV file, some with `.0`, are integers that float32 would round."""
        return self.whole and self.rounded is not None and not self.pointed

    @property
    def _unheld(self) -> Mapping[str, int]:
        """`unheld`; of whole numbers, some of which float32 rounds, also those with a point."""
        is_rounded = self.whole and self.rounded is not None
        return {**self.pointed, **self.unheld} if is_rounded else self.unheld

    @property
    def _is_float(self) -> bool:
        """Whether some numbers are floats."""
        return "float64" in self._dtypes if self.in_text else arrow().types.is_floating(_item_type(self.type))

    def _distinct(self, dtype: str | None) -> frozenset[Any] | None:
        if dtype == "int64" and not self.may_be_class:
            return None
        if self.values is None or not (self.in_text and dtype == "int64"):
            return None if self.values is None else frozenset(self.values)
        if not all(map(_INDEX.fullmatch, self.values)):
            return None
        return frozenset(map(int, self.values))


def _with_unheld(examples: dict[str, int], integers: Any) -> dict[str, int]:
    """By dtype, the first integer that float32 does not hold, and float64: of `examples`, else of these."""
    examples = dict(examples)
    for dtype in ("float32", "float64"):
        if dtype not in examples:
            most = EXACT_INTS[dtype]
            far = integers[(integers > most) | (integers < -most)]
            first = next((value for value in map(int, far) if not holds(value, dtype)), None)
            examples |= {} if first is None else {dtype: first}
    return examples


def _dtype_and_shape(kind: Any) -> tuple[str | None, tuple[int | None, ...]]:
    """The first choice of a dtype for an Arrow type, None if no feature holds it; and a value's shape."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _dtype_and_shape(kind.value_type)
    if is_list(kind):
        dtype, shape = _dtype_and_shape(kind.value_type)
        size = kind.list_size if types.is_fixed_size_list(kind) and None not in shape else None
        return dtype, (size, *shape)
    if is_tensor(kind):
        item = np.dtype(kind.value_type.to_pandas_dtype()).name
        return "float32" if item == "float64" else item, tuple(kind.shape)
    if types.is_boolean(kind):
        return "bool", ()
    if types.is_integer(kind):
        return "int64", ()
    if types.is_floating(kind):
        return "float32", ()
    return "string" if _is_text(kind) or types.is_binary(kind) or types.is_large_binary(kind) else None, ()


def _with_items(kind: Any, item: Any) -> Any:
    """The type of lists in each other with other items, or these alone."""
    if arrow().types.is_fixed_size_list(kind):
        return arrow().list_(_with_items(kind.value_type, item), kind.list_size)
    return arrow().list_(_with_items(kind.value_type, item)) if is_list(kind) else item


def is_tensor(kind: Any) -> bool:
    """Whether a value is an array of two dimensions or more, as `_array` makes them."""
    return isinstance(kind, arrow().FixedShapeTensorType)


def _common_type(first: Any, other: Any) -> Any:
    """The type of numbers, or of lists of numbers, of two types; None if there is none."""
    import pyarrow.types as types

    if is_list(first) and is_list(other):
        items = first.value_type, other.value_type
        common = next((item for item in items if not types.is_null(item)), items[0])
        if not any(map(types.is_null, items)) and not items[0].equals(items[1]):
            common = _common_type(*items)
        return None if common is None else arrow().list_(common)
    numbers = [types.is_integer(kind) or types.is_floating(kind) for kind in (first, other)]
    whole = types.is_integer(first) and types.is_integer(other)
    return None if whole or not all(numbers) else arrow().float64()


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _gap_marks(some: Any) -> tuple[str, ...]:
    """The cells without a digit, if at least half are numbers, and the others at most three such texts."""
    import pyarrow.compute as compute

    others = some.filter(compute.invert(text.form(some, "float64")))
    marks = sorted(map(str, others.unique().to_pylist())) if 0 < 2 * len(others) <= len(some) else []
    are_marks = len(marks) <= _MOST_MARKS and not any(map(str.isdigit, "".join(marks)))
    return tuple(marks) if are_marks else ()
