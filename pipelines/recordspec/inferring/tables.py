"""Infers a schema for tables, in files or in memory, from the types of columns and their values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePath
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inferring.column_profile import CellProfile, ColumnProfile, item_type
from recordspec.inferring.notations import CellForms, have_words, propose
from recordspec.inferring.rules import infer_features, inferred_schema
from recordspec.locations import Location, read_start
from recordspec.progress import Progress
from recordspec.schema.inferred import Inferred, ProposedOption
from recordspec.schema.schema import Schema
from recordspec.schema.values import holds
from recordspec.wire.arrays import is_arrow
from recordspec.writing.sources.arrow import TableRows
from recordspec.writing.sources.base import not_once
from recordspec.writing.sources.class_names import ColumnClasses
from recordspec.writing.sources.csv import Csv, read_header
from recordspec.writing.sources.hugging_face import HuggingFaceExamples, HuggingFaceRows, is_hugging_face
from recordspec.writing.sources.jsonl import read_rows
from recordspec.writing.sources.numpy_arrays import Arrays
from recordspec.writing.sources.objects import names_in, plain_columns
from recordspec.writing.sources.parquet import class_names_of, opened
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.rows import DictRows, not_a_mapping
from recordspec.writing.sources.text_files import UTF8, uncompressed_name

# The suffixes of CSV files, with their delimiters, and of JSON Lines files.
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")
# Other delimiters in files with the suffix of CSV.
_OTHER_DELIMITERS = ";\t|"
# The first bytes of UTF-16; and the most likely encoding of other text that is invalid UTF-8.
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LIKELY = "windows-1252"
# Characters of that encoding that are text, but invisible in a message.
_UNSEEN = {"\u00a0": "a space that does not break a line", "\u00ad": "a soft hyphen"}
_BATCH_ROWS = 1 << 16


def infer_table(
    paths: Sequence[Location], name: str, sample: int | None = None, progress: Progress | None = None
) -> Inferred:
    """Infers a schema from the first `sample` rows of each CSV, JSONL or Parquet file, or from all rows.

    Raises RecordError for a file that cannot be read, or has no values; SpecError for two columns of one
    name, and for files with different columns; MissingExtra without pyarrow.
    """
    suffix, progress = table_suffix(paths[0]), progress or Progress(show=False)
    if suffix in DELIMITERS:
        return _infer_csv(paths, name, sample, progress)
    table = _Table(where=str(paths[0]), by_length=suffix in LINES)
    for path in paths:
        if suffix == ".parquet":
            table.add_class_names(class_names_of(path))
    table.add_all(_first_rows(paths, _batches, sample, progress))
    return table.inferred(name)


def _infer_csv(paths: Sequence[Location], name: str, sample: int | None, progress: Progress) -> Inferred:
    """Infers a schema for CSV files, in UTF-8 or in the most likely other encoding."""
    if read_start(paths[0], 2) in _UTF16:
        reason = "by the first bytes of the file"
        encoding = ProposedOption(name="encoding", value="utf-16", reason=reason)
        return _infer_encoded(paths, name, sample, progress, encoding)
    try:
        return _infer_encoded(paths, name, sample, progress)
    except RecordError as error:
        proposed = _likely_encoding(error.problems[0])
        if proposed is None:
            raise
        try:
            return _infer_encoded(paths, name, sample, progress, proposed)
        except RecordError:
            raise error from None


def _likely_encoding(problem: Problem) -> ProposedOption | None:
    """The likely encoding of text that is invalid UTF-8; None for another problem, and for bytes that are
    no text.
    """
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
    paths: Sequence[Location],
    name: str,
    sample: int | None,
    progress: Progress,
    encoding: ProposedOption | None = None,
) -> Inferred:
    """Infers a schema for CSV files in the given encoding, or in UTF-8."""
    options = [] if encoding is None else [encoding]
    decoding = {option.name: option.value for option in options}
    delimiter = delimiter_of(paths[0], **decoding)
    if delimiter != DELIMITERS[".csv"]:
        options.insert(0, ProposedOption(name="delimiter", value=delimiter))

    def read(path: Location) -> ColumnBatches:
        return _csv_batches(path, delimiter, **decoding)

    several_lines = 0

    def read_first(path: Location) -> ColumnBatches:
        nonlocal several_lines
        for columns, rows in read(path):
            several_lines += _cells_of_several_lines(columns) if delimiter == DELIMITERS[".tsv"] else 0
            yield columns, rows

    table = _Table(where=str(paths[0]), in_text=True)
    table.add_all(_first_rows(paths, read_first, sample, progress))
    forms = {column: cells.forms for column, cells in table.cells.items()}
    if have_words(forms):
        _count_words(forms, _first_rows(paths, read, sample, progress))
    proposed = propose(forms)
    if proposed.options:

        def read_plain(path: Location) -> ColumnBatches:
            for columns, rows in read(path):
                yield {column: proposed.plain(column, values) for column, values in columns.items()}, rows

        table = _Table(where=str(paths[0]), in_text=True)
        table.add_all(_first_rows(paths, read_plain, sample, progress))
    for column in proposed.explained:
        table.cells[column].notations.clear()
    inferred = table.inferred(name)
    options += proposed.options
    notes = [f"source: {_yaml(option)}: {option.reason}" for option in options if option.reason]
    header = read_header(paths[0], delimiter, **decoding)
    unnamed = header.count("")
    more = [f'"": {unnamed:,} columns without a name, so they are left out'] if unnamed > 1 else []
    notes += [*_doubts(header, several_lines), *proposed.notes, *inferred.notes, *more]
    return replace(inferred, notes=tuple(notes), options=tuple(options))


def _doubts(header: Sequence[str], several_lines: int) -> Iterator[str]:
    """Notes on a header, or on quotes, that may have another meaning."""
    numbers = [name for name in header if _is_number(name)]
    if numbers:
        yield (
            f"source: names of columns are numbers, {_listed(numbers)}: if the file has no header, its first "
            "row is lost (put a line of names before it)"
        )
    spaced = [name for name in header if name != name.strip()]
    if spaced:
        yield (
            f"source: names of columns have spaces around them, {_listed(map(repr, spaced))}: spaces are "
            "kept, and a number beside a space is text (remove the spaces around the delimiter)"
        )
    if several_lines:
        yield (
            f"source: cells of several lines: {several_lines:,}, which begin with a quote (if the file does "
            "not quote its cells, each has several rows)"
        )


def _is_number(name: str) -> bool:
    try:
        return math.isfinite(float(name))
    except ValueError:
        return False


def _listed(names: Iterable[str]) -> str:
    """The first names, and the number of remaining ones."""
    first, *others = names
    return f"{first} (and {len(others):,} more)" if others else first


def _cells_of_several_lines(columns: Mapping[str, Any]) -> int:
    compute, types = arrow().compute, arrow().types
    texts = [
        each for each in columns.values() if types.is_string(each.type) or types.is_large_string(each.type)
    ]
    return sum(compute.sum(compute.match_substring(text, "\n")).as_py() or 0 for text in texts)


def _yaml(option: ProposedOption) -> str:
    return f"`{option.name}: {json.dumps(option.value, ensure_ascii=False)}`"


def _count_words(forms: Mapping[str, CellForms], batches: ColumnBatches) -> None:
    """Counts words for missing values in columns of text, which matter only if other columns have them."""
    texts = {name: form for name, form in forms.items() if form.are_texts}
    for form in texts.values():
        form.words.clear()
    for columns, rows in batches:
        for name in texts.keys() & columns.keys():
            texts[name].add_words(columns[name][:rows])


def _first_rows(
    paths: Sequence[Location],
    read: Callable[[Location], ColumnBatches],
    sample: int | None,
    progress: Progress,
) -> ColumnBatches:
    """The first `sample` rows of each file, or all rows: batches, with the number of their rows to take."""
    progress.begin("reading", None)
    first: Mapping[str, Any] = {}
    for path in paths:
        rows = 0
        for columns, count in read(path):
            if table_suffix(path) not in LINES:
                first = first or columns
                _check_columns(columns, first, str(path), paths[0].name)
            taken = count if sample is None else min(count, sample - rows)
            yield columns, taken
            rows += taken
            progress.advance(taken)
            if rows == sample:
                break


def infer_rows(data: Any, name: str, sample: int | None = None) -> Inferred:
    """Infers a schema from the first `sample` rows in memory, or from all; takes the rows that `source_of`
    takes.

    Raises SpecError for other values, RecordError if there are no values.
    """
    table = _Table(where="rows", by_length=True)
    splits = data.values() if is_hugging_face(data) and isinstance(data, Mapping) else (data,)
    for rows in splits:
        source = source_of(rows)  # refuses other values
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


# The values of columns, by name, and the number of rows. A text in place of values describes values without
# an Arrow type.
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
    """Batches rows given one by one. A name that a row lacks is missing."""
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
    """The suffix of a file's name without a compression: `.csv` for `rows.csv.gz`."""
    return PurePath(uncompressed_name(path.name)).suffix


def delimiter_of(path: Location, encoding: str = "utf-8") -> str:
    """The delimiter of a file, by its suffix; another delimiter if the header contains that and no comma."""
    delimiter = DELIMITERS[table_suffix(path)]
    header = read_header(path, delimiter, encoding)
    if delimiter != "," or len(header) != 1:
        return delimiter
    return next((other for other in _OTHER_DELIMITERS if other in header[0]), delimiter)


def _batches(path: Location) -> ColumnBatches:
    """The rows of a JSON Lines or Parquet file."""
    if table_suffix(path) in LINES:
        yield from _row_batches(read_rows(path))
        return
    for batch in _parquet_batches(path):
        yield dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows


def _csv_batches(path: Location, delimiter: str, encoding: str = "utf-8") -> ColumnBatches:
    """The rows of a CSV file, as columns of text."""
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
    """Raises SpecError if a file has other columns than the first file, or a column of another type."""
    problems = []
    for column in {**first, **columns}:
        ours, theirs = (str(one[column].type) if column in one else "none" for one in (columns, first))
        if ours != theirs:
            if "none" in (ours, theirs):  # large offsets of its text do not matter then
                ours, theirs = ours.removeprefix("large_"), theirs.removeprefix("large_")
            problems.append(Problem(where=path, path=(column,), expected=f"{theirs}, as in {name}", got=ours))
    if problems:
        raise SpecError(problems)


@dataclass(frozen=True)
class InexactArray:
    """Floats that Arrow has converted from floats and integers.

    Attributes:
        array: an Arrow array.
        integer: the first integer that float32 cannot represent.
    """

    array: Any
    integer: int


def _array(values: Any) -> Any:
    """An Arrow array of a column's values; a description of the values if Arrow has no type for them."""
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
            raise TypeError  # Arrow would convert sets to lists, but no feature takes sets
        if sizes:
            return _nested_array(values.tolist(), sizes)
        return _with_integers(_with_large_integers(values), series)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        return _description(values)


def _nested_array(values: Any, sizes: tuple[int, ...]) -> Any:
    """An Arrow array of nested lists with fixed sizes."""
    array = arrow().array(values)
    kind = item_type(array.type)
    for size in reversed(sizes):
        kind = arrow().list_(kind, size)
    return array.cast(kind)


def _description(values: Iterable[Any]) -> str:
    """A description of values that have no Arrow type."""
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


def _with_large_integers(values: Any) -> Any:
    """An Arrow array; of uint64, or of lists of uint64, if int64 cannot represent all integers."""
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
    """The array of the values; an InexactArray if it may have rounded an integer."""
    floats = arrow().types.is_floating(item_type(array.type))
    integer = _rounded_integer(values) if floats and isinstance(values, list | tuple) else None
    return array if integer is None else InexactArray(array, integer)


def _rounded_integer(values: Iterable[Any]) -> int | None:
    """The first integer, also in lists, that float32 cannot represent."""
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
    """Stacks arrays of equal shape; other values are returned unchanged."""
    try:
        array = np.array(values)
    except ValueError:  # different shapes
        return values
    if array.dtype.kind == "f" and all(map(_is_integer, np.array(values, object).flat)):
        return np.array(values, np.uint64)
    return values if array.dtype == object or not array.size else array


@dataclass(kw_only=True)
class _Table:
    """Profiles of the columns of rows that are added in batches.

    Attributes:
        where: the location of the rows in messages.
        in_text: whether the values are cells of a CSV file.
        by_length: whether lists of equal length have a fixed shape.
        class_names: the class names by column, if rows have indices of classes.
        keeps_objects: whether the source of the rows does not divide objects into their members.
        is_unknown: whether integers of a column must not be taken for indices of classes.
    """

    where: str
    in_text: bool = False
    by_length: bool = False
    keeps_objects: bool = False
    rows: int = 0
    columns: dict[str, ColumnProfile] = field(default_factory=dict)
    class_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    is_unknown: Callable[[str], bool] = lambda name: False

    @property
    def cells(self) -> dict[str, CellProfile]:
        """The profiles of CSV cells, by column."""
        return {name: column.cells for name, column in self.columns.items() if column.cells is not None}

    def add_class_names(self, classes: ColumnClasses) -> None:
        """Adds the class names for columns of the following rows; a schema has the names for all rows."""
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
                by_length = self.by_length
                profile = (
                    ColumnProfile.of_cells(name)
                    if self.in_text
                    else ColumnProfile(name=name, by_length=by_length)
                )
                profile.rows = profile.nulls = self.rows
                profile.may_be_class = not self.is_unknown(name)
                self.columns[name] = profile
            profile = self.columns[name]
            profile.class_names = self.class_names.get(name, ())
            if isinstance(values, InexactArray):
                profile.numbers.unheld.setdefault("float32", values.integer)
                values = values.array
            profile.add(values if isinstance(values, str) else values[:rows], rows)
        self.rows += rows
        for profile in self.columns.values():  # for names that these rows lack
            profile.nulls += self.rows - profile.rows
            profile.rows = self.rows

    def add_all(self, batches: ColumnBatches) -> None:
        """Adds batches, each with the number of its rows to add."""
        for columns, rows in batches:
            self.add(columns, rows)

    def inferred(self, name: str) -> Inferred:
        inferred, notes = infer_features(profile.evidence() for profile in self.columns.values())
        features = tuple(feature for _, feature in inferred if feature is not None)
        if not features:
            problem = Problem(where=self.where, expected="a column with values", got="none")
            raise RecordError(replace(problem, hint="; ".join(notes[:3])))
        schema = Schema(name=name, features=features)
        first_texts = {
            feature.name: self.columns[feature.name].first_texts
            for feature in features
            if feature.kind == "text"
        }
        return replace(inferred_schema(schema, inferred, notes, self.rows), first_texts=first_texts)
