"""Infers a schema for tables, in files or in memory, from the types of columns and their values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.executors import cluster
from recordspec.inferring.column_profile import BEYOND_INTEGERS, CellProfile, ColumnProfile, item_type
from recordspec.inferring.dialects import (
    cells_of_several_lines,
    commented_header,
    doubts,
    footer,
    propose_dialect,
    unquoted,
)
from recordspec.inferring.notations import CellForms, ProposedNotation, have_words, propose
from recordspec.inferring.rules import infer_features, inferred_schema
from recordspec.locations import Location, read_start
from recordspec.progress import Progress
from recordspec.schema.inferred import Inferred, ProposedOption
from recordspec.schema.schema import Schema
from recordspec.schema.values import holds, is_missing, is_uuid
from recordspec.store.scan import run
from recordspec.wire.arrays import Ints, is_arrow, list_array, offsets
from recordspec.writing.sources.arrow import TableRows
from recordspec.writing.sources.base import not_once
from recordspec.writing.sources.class_names import ArrayType, ColumnClasses
from recordspec.writing.sources.csv import DELIMITERS, Csv, notes_of_names
from recordspec.writing.sources.csv_dialect import AFTER_QUOTE, PAIRS, read_head
from recordspec.writing.sources.hugging_face import HuggingFaceExamples, HuggingFaceRows, is_hugging_face
from recordspec.writing.sources.json_array import JsonArray, records_in
from recordspec.writing.sources.jsonl import read_rows
from recordspec.writing.sources.numpy_arrays import Arrays
from recordspec.writing.sources.objects import beginnings, divided, names_in, plain_columns
from recordspec.writing.sources.parquet import declared_in, opened, record_batches
from recordspec.writing.sources.partitions import typed_partitions, with_partition
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.rows import DictRows, not_a_mapping
from recordspec.writing.sources.text_files import UTF8, uncompressed_name

# The suffixes of JSON Lines files.
LINES = (".jsonl", ".ndjson")
# The first bytes of UTF-16; and the most likely encoding of other text that is invalid UTF-8.
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LIKELY = "windows-1252"
# Characters of that encoding that are text, but invisible in a message.
_UNSEEN = {"\u00a0": "a space that does not break a line", "\u00ad": "a soft hyphen"}
_BATCH_ROWS = 1 << 16
_LACKING = "a test set without its target is a split in the config: infer from the other files"


def infer_table(
    paths: Sequence[Location],
    name: str,
    source: Literal["csv", "jsonl", "json", "parquet"],
    sample: int | None = None,
    progress: Progress | None = None,
) -> Inferred:
    """Infers a schema from the first `sample` rows of each file, or from all rows. `source` is the format of
    the files.

    Raises RecordError for a file that cannot be read, or has no values; SpecError for two columns of one
    name, and for files with different columns; MissingExtra without pyarrow.
    """
    progress = progress or Progress(show=False)
    if source == "csv":
        return _infer_csv(paths, name, sample, progress)
    table = _Table(where=str(paths[0]), by_length=source in ("jsonl", "json"))
    if source == "json":
        names = records_in(paths[0]) or ()
        span = JsonArray(next(iter(names), ""))

        def read_list(path: Location) -> ColumnBatches:
            return _row_batches(read_rows(path, span))

        table.add_all(_first_rows(paths, read_list, sample, progress, same_columns=False))
        inferred = table.inferred(name)
        if not span.records:
            return inferred
        others = f", the first of {', '.join(names)}" if len(names) > 1 else ""
        reason = f"the list of objects in the object of {paths[0].name}{others}"
        option = ProposedOption(name="records", value=span.records, reason=reason)
        note = f"source: {_yaml(option)}: {reason}"
        return replace(inferred, options=(option,), notes=(note, *inferred.notes))
    if source == "jsonl":
        table.add_all(_first_rows(paths, _objects, sample, progress, same_columns=False))
        return table.inferred(name)
    for path in paths:
        classes, arrays = declared_in(path)
        table.add_class_names(classes)
        table.array_types |= arrays
    progress.begin("reading", None)
    here = progress if cluster() is None else None
    declared = table.where, table.class_names, table.array_types
    tasks = [
        (path, partition, declared, sample, here)
        for path, partition in zip(paths, typed_partitions(paths), strict=True)
    ]
    first: Mapping[str, Any] = {}
    for path, (some, fields) in zip(paths, run(_profile_parquet, tasks, paths, 1, "reading"), strict=True):
        if fields:
            first = first or fields
            _check_columns(fields, first, str(path), paths[0].name)
        table.merge(some)
        if here is None:
            progress.advance(some.rows)
    return table.inferred(name)


def _profile_parquet(
    path: Location,
    partition: Mapping[str, Any],
    declared: tuple[str, dict[str, tuple[str, ...]], dict[str, ArrayType]],
    sample: int | None,
    progress: Progress | None,
    attempt: str,
) -> tuple[_Table, dict[str, Any]]:
    """Profiles the first `sample` rows of a Parquet file, or all rows. Also returns the Arrow field of each
    column; none for a file without rows.
    """
    where, class_names, array_types = declared
    table, fields = _Table(where=where, class_names=class_names, array_types=array_types), dict[str, Any]()
    for columns, count in _parquet_batches(path, partition):
        fields = fields or {name: arrow().field(name, column.type) for name, column in columns.items()}
        taken = count if sample is None else min(count, sample - table.rows)
        table.add(columns, taken)
        if progress is not None:
            progress.advance(taken)
        if table.rows == sample:
            break
    return table, fields


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
    """Infers a schema for CSV files in the given encoding, or in UTF-8. If the quotes of a file contradict
    its rows, it is read without quotes, if that is possible.
    """
    more = () if encoding is None else (encoding,)
    suffix = DELIMITERS.get(table_suffix(paths[0]), ",")
    options = (*propose_dialect(paths[0], suffix, **{one.name: one.value for one in more}), *more)
    try:
        inferred, joined = _infer_dialect(paths, name, sample, progress, options)
    except RecordError as error:
        problem = error.problems[0]
        # text with commas is quoted
        if problem.expected not in (AFTER_QUOTE, PAIRS) or not any(
            one.name == "delimiter" for one in options
        ):
            raise
        where = (
            f"line {problem.where.rpartition(':')[2]} of {problem.where.rpartition('/')[2].partition(':')[0]}"
        )
        reason = f"on {where}, quotes are no pairs around cells: {problem.got}"
        without = _infer_unquoted(paths, name, sample, progress, options, reason)
        if without is None:
            raise
        return without
    if joined:
        reason = f"cells of several lines that contain the delimiter: {joined:,}"
        without = _infer_unquoted(paths, name, sample, progress, options, reason)
        return inferred if without is None else without
    return inferred


def _infer_unquoted(
    paths: Sequence[Location],
    name: str,
    sample: int | None,
    progress: Progress,
    options: tuple[ProposedOption, ...],
    reason: str,
) -> Inferred | None:
    """Infers a schema for CSV files whose cells are not quoted; None if such rows have different lengths."""
    try:
        return _infer_dialect(paths, name, sample, progress, (*options, unquoted(reason)))[0]
    except RecordError:
        return None


def _infer_dialect(
    paths: Sequence[Location],
    name: str,
    sample: int | None,
    progress: Progress,
    dialect: tuple[ProposedOption, ...],
) -> tuple[Inferred, int]:
    """Infers a schema for CSV files in a dialect. Also returns the number of cells of tab-separated files
    that contain line breaks and tabs, and so may be several rows.
    """
    options, given = [*dialect], {option.name: option.value for option in dialect}
    has_tabs = given.get("delimiter") == DELIMITERS[".tsv"]

    def read(path: Location) -> ColumnBatches:
        return _csv_batches(path, given)

    several_lines = joined = 0

    def read_first(path: Location) -> ColumnBatches:
        nonlocal several_lines, joined
        for columns, rows in read(path):
            if has_tabs:
                several, more = cells_of_several_lines(columns, DELIMITERS[".tsv"])
                several_lines, joined = several_lines + several, joined + more
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
    source = Csv(files=str(paths[0]), **given)
    footers = [*_notes_of_footers(paths, source, proposed, table.cells)]
    _find_gaps(Csv(files=str(paths[0]), **given), table.cells)
    inferred = table.inferred(name)
    options += proposed.options
    notes = [f"source: {_yaml(option)}: {option.reason}" for option in options if option.reason]
    head = read_head(paths[0], source.dialect, source.encoding)
    notes += [f"source: {note}" for note in notes_of_names(head)]
    unnamed = head.names.count("")
    more = [f'"": {unnamed:,} columns without a name, so they are left out'] if unnamed > 1 else []
    notes += commented_header(paths[0], source.dialect, source.encoding, head.given)
    notes += [*footers, *doubts(head.given, options, several_lines), *proposed.notes, *inferred.notes, *more]
    return replace(inferred, notes=tuple(notes), options=tuple(options)), joined


def _notes_of_footers(
    paths: Sequence[Location], source: Csv, proposed: ProposedNotation, profiles: Mapping[str, CellProfile]
) -> Iterator[str]:
    """Notes on footers of the first and the last file, in place of the notes on their cells."""
    for path in dict.fromkeys((paths[0], paths[-1])):
        found = footer(path, source.dialect, source.encoding, proposed.plain)
        if found is None:
            continue
        cells = [profiles[column] for column in found.columns if column in profiles]
        if all(sum(one.gap_marks.values()) <= 1 for one in cells):
            yield found.note
            for one in cells:
                one.gap_marks = {}


def _find_gaps(source: Csv, profiles: Mapping[str, CellProfile]) -> None:
    """Finds the lines of the first texts among numbers, in the first rows of a file."""
    left = {column: cells for column, cells in profiles.items() if cells.gap_marks}
    for line, row in islice(source.lines(), _BATCH_ROWS) if left else ():
        for column in [column for column in left if row.get(column) in left[column].gap_marks]:
            left.pop(column).gap_line = line
        if not left:
            return


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
    *,
    same_columns: bool = True,
) -> ColumnBatches:
    """The first `sample` rows of each file, or all rows: batches, with the number of their rows to take."""
    progress.begin("reading", None)
    first: Mapping[str, Any] = {}
    for path in paths:
        rows = 0
        for columns, count in read(path):
            if same_columns:
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
        if isinstance(source, HuggingFaceRows | HuggingFaceExamples | TableRows):
            table.add_class_names(source.class_names)
            table.array_types |= source.array_types
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


# The values of columns, by name, and the number of rows: Arrow arrays, or lists of Python values.
ColumnBatches = Iterator[tuple[Mapping[str, Any], int]]


def _batches_in_memory(source: Any, sample: int | None) -> ColumnBatches:
    if isinstance(source, HuggingFaceRows):
        files = {*source.columns_of("Image"), *source.columns_of("Audio")}
        for table in source.tables():
            yield (
                {name: table.column(name) for name in table.column_names if name not in files},
                len(table),
            )
    elif isinstance(source, Arrays):
        yield source.columns, source.rows
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
        yield {str(name): [row.get(name) for row in some] for name in names}, len(some)


def table_suffix(path: Location) -> str:
    """The suffix of a file's name without a compression: `.csv` for `rows.csv.gz`."""
    return PurePath(uncompressed_name(path.name)).suffix


def _objects(path: Location) -> ColumnBatches:
    """The rows of a JSON Lines file."""
    return _row_batches(read_rows(path))


def _csv_batches(path: Location, options: Mapping[str, Any]) -> ColumnBatches:
    """The rows of a CSV file, as columns of text."""
    for batch in Csv(files=str(path), **options).blocks():
        yield dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows


def _parquet_batches(path: Location, partition: Mapping[str, Any]) -> ColumnBatches:
    """The rows of a Parquet file, with the columns in the names of its folders."""
    with opened(path) as file:
        names = names_in(file.schema_arrow)
        if problems := list(not_once({name: name for name in names}, names)):
            raise SpecError([problem.at(str(path)) for problem in problems])
        more = {name: value for name, value in partition.items() if name not in file.schema_arrow.names}
        for rows in record_batches(file, _BATCH_ROWS, range(file.num_row_groups)):
            batch = with_partition(rows, more)
            yield dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows


def _check_columns(columns: Mapping[str, Any], first: Mapping[str, Any], path: str, name: str) -> None:
    """Raises SpecError if a file has other columns than the first file, or a column of another type."""
    problems = []
    for column in {**first, **columns}:
        ours, theirs = (str(one[column].type) if column in one else "none" for one in (columns, first))
        if ours != theirs:
            if "none" in (ours, theirs):  # large offsets of its text do not matter then
                ours, theirs = ours.removeprefix("large_"), theirs.removeprefix("large_")
            expected, hint = f"{theirs}, as in {name}", _LACKING if ours == "none" else ""
            problems.append(Problem(where=path, path=(column,), expected=expected, got=ours, hint=hint))
    if problems:
        raise SpecError(problems)


@dataclass(frozen=True)
class InexactArray:
    """Floats that were converted from floats and integers.

    Attributes:
        array: an Arrow array.
        unheld: by dtype, the first integer that float32 or float64 cannot represent.
    """

    array: Any
    unheld: Mapping[str, int]


def _columns(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    """The columns of a name, with the members of objects in place of the objects: Arrow arrays, or
    descriptions of values that have no Arrow type.
    """
    if isinstance(values, list):
        for column in divided(name, values):
            yield column.name, _in_lists(_array(column.values, stack=not column.lists), column.lists)
    else:
        array = _array(values)
        yield from plain_columns(name, array).items() if is_arrow(array) else ((name, array),)


def _in_lists(items: Any, lists: Sequence[Ints]) -> Any:
    """The items in lists of these sizes, the innermost last; `items` are as `_array` returns them."""
    if isinstance(items, str):
        return f"{'lists of ' * len(lists)}{items}"
    if isinstance(items, InexactArray):
        return replace(items, array=_in_lists(items.array, lists))
    for sizes in reversed(lists):
        items = list_array(items, offsets(np.maximum(sizes, 0)), sizes >= 0)
    return items


def _array(values: Any, *, stack: bool = True) -> Any:
    """An Arrow array of a column's values; a description of the values if Arrow has no type for them.

    With `stack`, lists of lists of one size are an array of tensors.
    """
    pyarrow = arrow()
    if is_arrow(values):
        return values.combine_chunks() if isinstance(values, pyarrow.ChunkedArray) else values
    series = values
    if stack and isinstance(values, (list, tuple)) and any(map(_is_nested, values[:1])):
        values = _stacked(values)
        if (varying := _arrays_of_different_lengths(values)) is not None:
            return varying
    sizes = values.shape[1:] if isinstance(values, np.ndarray) else ()
    if sizes and values.dtype.kind == "m":
        return f"arrays of {values.dtype}"
    try:
        if sizes and values.dtype.kind in "iuf" and values.size:
            made = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(values))
            return _with_integers(made, series)
        if any(issubclass(kind, set | frozenset) for kind in set(map(type, values))):
            raise TypeError  # Arrow would convert sets to lists, but no feature takes sets
        if sizes:
            return _nested_array(values.tolist(), sizes)
        return _with_integers(_with_large_integers(values), series)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        plain = _without_scalars(values) if isinstance(values, list) else None
        return _description(values) if plain is None else _array(plain, stack=stack)


def _without_scalars(values: list[Any]) -> Any:
    """The values with None for NaT and NA; an array if the others are dates or durations of NumPy, or UUIDs.
    None if the values have no such scalars.
    """
    plain = [None if is_missing(value) else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    if kinds == {np.datetime64}:
        return np.array([np.datetime64("NaT") if value is None else value for value in plain])
    if kinds == {np.timedelta64}:
        return [None if value is None else value.astype("timedelta64[us]").item() for value in plain]
    if kinds and all(map(is_uuid, kinds)):  # for which pyarrow 16 has no type
        return arrow().array([None if value is None else value.bytes for value in plain], arrow().binary(16))
    is_plain = all(one is other for one, other in zip(plain, values, strict=True))
    return None if is_plain else plain


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
        return BEYOND_INTEGERS
    if [*kinds] == ["ndarray"] and len({value.shape[1:] for value in some}) > 1:
        return "arrays that differ in more than their first size (padded to one shape, they are a tensor)"
    if [*kinds] == ["str"]:
        return "str with a lone surrogate, which UTF-8 cannot encode"
    return what


def _with_large_integers(values: Any) -> Any:
    """An Arrow array; of uint64 if int64 cannot represent all integers, and of float64 if some of the numbers
    are floats, also in lists.
    """
    pyarrow = arrow()
    try:
        array = pyarrow.array(values)
        if isinstance(values, list | tuple) and pyarrow.types.is_duration(item_type(array.type)):
            return array.cast(_list_type(values, pyarrow.duration("us")))  # a build counts those of rows so
        return array
    except (OverflowError, pyarrow.ArrowInvalid):
        kinds = {type(number) for number in _flat(values)}
        if all(map(_is_integer_type, kinds)):
            return pyarrow.array(values, _list_type(values, pyarrow.uint64()))
        if all(_is_integer_type(kind) or issubclass(kind, float | np.floating) for kind in kinds):
            return pyarrow.array(_floats(values))
        raise


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        elif value is not None:
            yield value


def _list_type(values: Any, kind: Any) -> Any:
    """The type of lists that are nested as the values are, with items of the given type."""
    some = [item for value in values if isinstance(value, list | tuple) for item in value]
    return (
        arrow().list_(_list_type(some, kind))
        if any(isinstance(one, list | tuple) for one in values)
        else kind
    )


def _floats(values: Any) -> list[Any]:
    return [
        _floats(value) if isinstance(value, list | tuple) else None if value is None else float(value)
        for value in values
    ]


def _is_integer_type(kind: type) -> bool:
    return issubclass(kind, int | np.integer) and kind is not bool


def _with_integers(array: Any, values: Any) -> Any:
    """The array of the values; an InexactArray if it may have rounded an integer."""
    floats = arrow().types.is_floating(item_type(array.type))
    unheld = _unheld_integers(values, {}) if floats and isinstance(values, list | tuple) else {}
    return InexactArray(array, unheld) if unheld else array


def _unheld_integers(values: Iterable[Any], found: dict[str, int]) -> dict[str, int]:
    """By dtype, the first integer, also in lists, that float32 or float64 cannot represent.

    Raises TypeError for a bool.
    """
    kinds = set(map(type, values)) - {float, type(None)}  # without a look at each float
    if bool in kinds:
        raise TypeError  # Arrow would convert it to a float, but no feature of numbers takes bools
    for value in values if kinds else ():
        if isinstance(value, list | tuple):
            _unheld_integers(value, found)
        elif isinstance(value, int | np.integer):
            for dtype in ("float32", "float64"):
                if dtype not in found and not holds(int(value), dtype):
                    found[dtype] = int(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            _unheld_integers(value.reshape(-1).tolist(), found)
    return found


def _is_nested(value: Any) -> bool:
    """Whether a value of a row has two dimensions or more."""
    if isinstance(value, np.ndarray):
        return value.ndim > 1
    lists = (list, tuple, np.ndarray)
    return isinstance(value, lists) and isinstance(next(iter(value), None), lists)


def _arrays_of_different_lengths(values: Any) -> Any:
    """An Arrow array of lists of tensors, for arrays `[k, ...]` of numbers that differ in `k`; None for other
    values.
    """
    arrays = [value for value in values if value is not None] if isinstance(values, list | tuple) else []
    if not arrays or not all(isinstance(one, np.ndarray) and one.ndim > 1 for one in arrays):
        return None
    forms = {(one.shape[1:], one.dtype) for one in arrays}
    stacked = np.concatenate(arrays) if len(forms) == 1 else np.empty(0)
    if stacked.dtype.kind not in "iuf" or not stacked.size:
        return None
    items = arrow().FixedShapeTensorArray.from_numpy_ndarray(stacked)
    lengths = np.array([0 if value is None else len(value) for value in values])
    return list_array(items, offsets(lengths), np.array([value is not None for value in values]))


def _stacked(values: Any) -> Any:
    """Stacks arrays of equal shape; other values are returned unchanged."""
    try:
        array = np.array(values)
    except ValueError:  # different shapes
        return values
    kinds = set() if isinstance(values[0], np.ndarray) else set(map(type, np.array(values, object).flat))
    if array.dtype == object or not array.size or (bool in kinds and array.dtype != bool):
        return values
    if array.dtype.kind in "SU" and not all(issubclass(kind, (str, bytes)) for kind in kinds):
        return values  # NumPy would write numbers as text
    if array.dtype.kind == "f" and kinds and all(map(_is_integer_type, kinds)):
        try:
            return np.array(values, np.uint64)
        except OverflowError:
            return values
    return array


def _none_is_unknown(name: str) -> bool:
    """The default of `is_unknown`. Tables are pickled, and a lambda cannot be."""
    return False


@dataclass(kw_only=True)
class _Table:
    """Profiles of the columns of rows that are added in batches.

    Attributes:
        where: the location of the rows in messages.
        in_text: whether the values are cells of a CSV file.
        by_length: whether lists of equal length have a fixed shape.
        class_names: the class names by column, if rows have indices of classes.
        array_types: the dtype and the shape of arrays by column, if the source declares them.
        is_unknown: whether integers of a column must not be taken for indices of classes.
    """

    where: str
    in_text: bool = False
    by_length: bool = False
    rows: int = 0
    columns: dict[str, ColumnProfile] = field(default_factory=dict)
    class_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    array_types: dict[str, ArrayType] = field(default_factory=dict)
    is_unknown: Callable[[str], bool] = _none_is_unknown

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
        for top, given in columns.items():
            values = given if isinstance(given, str) else given[:rows]
            for name, column in _columns(top, values):
                if self._profile(name, top).rows > self.rows:
                    got = "several"
                    raise SpecError(
                        Problem(where=self.where, path=(name,), expected=f"one column `{name}`", got=got)
                    )
                self._add_column(self.columns[name], column, rows)
        self.rows += rows
        for profile in self.columns.values():  # for names that these rows lack
            profile.nulls += self.rows - profile.rows
            profile.rows = self.rows

    def merge(self, other: _Table) -> None:
        """Adds the profiles of the rows that follow."""
        for name, profile in other.columns.items():
            if name in self.columns:
                self.columns[name].merge(profile)
            else:
                self.columns[name] = profile
                profile.rows, profile.nulls = profile.rows + self.rows, profile.nulls + self.rows
        self.rows += other.rows
        for profile in self.columns.values():  # for names that the other rows lack
            profile.nulls += self.rows - profile.rows
            profile.rows = self.rows

    def _profile(self, name: str, top: str) -> ColumnProfile:
        """The profile of a column, or of a member of the column `top`."""
        if name not in self.columns:
            profile = (
                ColumnProfile.of_cells(name)
                if self.in_text
                else ColumnProfile(name=name, by_length=self.by_length)
            )
            profile.rows = profile.nulls = self.rows
            profile.may_be_class = not self.is_unknown(top)
            self.columns[name] = profile
        if name != top:
            self.columns[name].objects |= {one for one in beginnings(name) if one.startswith(top)}
        return self.columns[name]

    def _add_column(self, profile: ColumnProfile, values: Any, rows: int) -> None:
        profile.class_names = self.class_names.get(profile.name, ())
        profile.array = self.array_types.get(profile.name)
        if isinstance(values, InexactArray):
            profile.numbers.unheld = {**values.unheld, **profile.numbers.unheld}
            values = values.array
        profile.add(values, rows)

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
