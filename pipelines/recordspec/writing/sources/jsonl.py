"""JSON Lines files: one object per row, with features by name."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, describe
from recordspec.locations import Location, open_file
from recordspec.schema.arrow_values import combined, from_arrow
from recordspec.schema.encoder import missing_problem
from recordspec.schema.feature_set import unknown_name
from recordspec.schema.features import Feature
from recordspec.schema.schema import Schema
from recordspec.schema.values import BASE64, EXACT_INTS, is_integer, numpy_dtype
from recordspec.store.key_hashes import key_bytes
from recordspec.wire.arrays import is_list, is_number, is_text, to_numpy
from recordspec.writing.sources.arrow import media_in, paths_below
from recordspec.writing.sources.base import (
    Batches,
    Columns,
    FileSource,
    FilesText,
    RowPlaces,
    converted,
    is_left_out,
    long_row_problem,
    name_of,
    wanted_columns,
)
from recordspec.writing.sources.json_array import JsonArray
from recordspec.writing.sources.objects import DottedNames, Row, members_in, unnested
from recordspec.writing.sources.ranges import ByteRange, LongRow, WholeFile, line_ranges
from recordspec.writing.sources.text_files import BOM, TextStream

_BASE64_KEY = f'"{BASE64}"'.encode()
_WHITE = b" \t\r\n"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONGEST_FIRST = 1 << 20  # bytes that are read to check the names in the first object
# After so many pieces of a part that Arrow cannot read, Arrow is not tried again.
_TRIES = 2


@dataclass(frozen=True, kw_only=True)
class Jsonl(FileSource):
    """The objects of JSON Lines files. Absent names and null are missing values.

    The members of an object are columns with dotted names, `meta.votes`; the members of a list of objects are
    columns of lists. `NaN`, `Infinity` and `-Infinity` are numbers, and `{"b64": "..."}` are bytes in base64,
    as in the JSON of TensorFlow Serving.

    Attributes:
        files: a path or a pattern, or a list of these. A file may be compressed with gzip, Zstandard or
            bzip2.
        columns: the name of a feature in the file, if it differs.
        media: the path of the file of a feature, with `{}` in place of the text in the row, from the folder
            of the rows: `images/{}.jpg`; by default the text is the path.
        ignore: names in the file to ignore; for an object, all its members are ignored. Any other name
            without a feature is an error, since a misspelt name would lose values.
    """

    SHORT_FORM: ClassVar[str] = "files"
    RENAMED: ClassVar[Mapping[str, str]] = {"path": "files"}

    files: FilesText
    columns: Mapping[str, str] = field(default_factory=dict)
    media: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()

    def without(self, names: Collection[str]) -> Jsonl:
        """The rows without the values of the given names."""
        return replace(self, ignore=(*self.ignore, *names))

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        wanted_columns(schema, extra, self.columns, name_of(self), media=self.media)

    def check_first_row(self, schema: Schema, extra: tuple[str, ...]) -> None:
        wanted = wanted_columns(schema, extra, self.columns, name_of(self), media=self.media)
        for path in self.paths[:1]:
            self._part(path, wanted, self._span).check_first(schema)

    @property
    def _span(self) -> WholeFile | JsonArray:
        return WholeFile()

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[JsonPart | LongRow]:
        wanted = wanted_columns(schema, extra, self.columns, name_of(self), media=self.media)
        for path, spans in zip(self.paths, line_ranges(self.paths), strict=True):
            for span in spans:
                if isinstance(span, ByteRange) and span.too_long:
                    yield LongRow(path=path, line=span.line, problem=_long_line(span.stop - span.start))
                    continue
                yield self._part(path, wanted, span)

    def _part(
        self, path: Location, wanted: Mapping[str, str], span: ByteRange | WholeFile | JsonArray
    ) -> JsonPart:
        ignore = frozenset(self.ignore)
        return JsonPart(path=path, wanted=wanted, media=self.media, ignore=ignore, span=span)


@dataclass(frozen=True, kw_only=True)
class JsonList(Jsonl):
    """The objects of JSON files, each with one list of objects. The values are those of JSON Lines. A file is
    read piece by piece, by one process.

    Attributes:
        records: the name of the list, if a file is an object that has the list: `data` for
            `{"version": 1, "data": [...]}`.
    """

    RENAMED: ClassVar[Mapping[str, str]] = {}

    records: str = ""

    @property
    def _span(self) -> JsonArray:
        return JsonArray(self.records)

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[JsonPart]:
        wanted = wanted_columns(schema, extra, self.columns, name_of(self), media=self.media)
        for path in self.paths:
            yield self._part(path, wanted, self._span)


@dataclass(frozen=True, kw_only=True)
class JsonPart:
    """Consecutive lines of a file, or the objects of a list.

    Attributes:
        path: the path of the file.
        wanted: the name in the file for each feature and each extra name.
        media: the form of paths, by feature.
        ignore: further names that are allowed.
        span: the bytes of the lines, or the list.
    """

    path: Location
    wanted: Mapping[str, str]
    media: Mapping[str, str]
    ignore: frozenset[str]
    span: ByteRange | WholeFile | JsonArray

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        tries = _TRIES
        for piece in self.span.pieces(self.path):
            if piece.too_long:
                yield RecordError(_long_line(piece.too_long), 0)
                continue
            columns = self._by_arrow(schema, piece.data) if tries else None
            if columns is not None:
                yield columns
                continue
            tries = max(0, tries - 1)
            rows = [line for line in map(self.content, io.BytesIO(piece.data)) if line]
            if rows:
                yield from converted(len(rows), partial(self._columns, schema, rows))

    def check_first(self, schema: Schema) -> None:
        """Checks the names in the first object of the file. Raises RecordError; not for a line that is too
        long to be read in advance.
        """
        number, line = self._first_line()
        if not line:
            return
        where = self.where(number)
        try:
            row = self._row(0, line, {*self.wanted.values(), *self.ignore}, schema)
        except RecordError as error:
            raise error.at(where) from None
        problems = [
            problem.under(place.section, feature.name).at(where)
            for place, feature in schema._placed
            if not place.in_steps and row.get(self.wanted[feature.name]) is None
            if (problem := missing_problem(feature)) is not None
        ]
        for name in self.wanted.keys() - schema.names.keys():
            try:
                key_bytes({name: [row.get(self.wanted[name])]}, (name,))
            except RecordError as error:
                problems += error.at(where).problems
        if problems:
            raise RecordError(problems, 0)

    def _first_line(self) -> tuple[int, bytes]:
        """The number of the first line that is not empty, and the line, unless it is too long."""
        if isinstance(self.span, JsonArray):
            data = next((piece.data for piece in self.span.pieces(self.path)), b"")
            return 0, data.partition(b"\n")[0]
        with open_file(self.path) as file:
            lines = io.BytesIO(TextStream(file).read(_LONGEST_FIRST))
        number, line = next(
            ((n, text) for n, one in enumerate(lines, 1) if (text := one.rstrip(_WHITE))), (0, b"")
        )
        return number, b"" if lines.tell() == _LONGEST_FIRST else line

    def where(self, number: int | None) -> str:
        """The file, and the number of a line or of an item."""
        is_list = isinstance(self.span, JsonArray)
        return f"{self.path}: row {number}" if is_list else f"{self.path}:{number}"

    def _by_arrow(self, schema: Schema, piece: bytes) -> Columns | None:
        """Parses the lines of a piece with Arrow; None if the result might differ from Python's, line by
        line.
        """
        lines = piece.removeprefix(BOM) if self.span.start == 0 else piece
        types = None if self._members else self._types(schema, lines)
        if types is None or _BASE64_KEY in lines or (rows := _objects_in(lines)) is None:
            return None
        try:
            table = _read_json(lines, types, strict=not self.ignore)
        except (arrow().ArrowException, UnicodeDecodeError):
            return None
        known = {*self.wanted.values(), *self.ignore}
        if table.num_rows != rows or not known.issuperset(table.column_names):
            return None
        values = {}
        for name, key in self.wanted.items():
            column, feature = combined(table.column(key)), schema.names.get(name)
            if not _is_as_python(column, feature):
                return None
            values[name] = column.to_pylist() if feature is None else from_arrow(column, feature)
        return Columns(values, rows)

    def _types(self, schema: Schema, lines: bytes) -> dict[str, Any] | None:
        """The Arrow type for each name, from the features and the first line; None if Arrow has none for
        one of them.
        """
        try:
            first = parsed(io.BytesIO(lines).readline().rstrip(_WHITE))
        except RecordError:
            return None
        types: dict[str, Any] = {}
        for name, key in self.wanted.items():
            kind = _type_of(schema.names.get(name), first.get(key))
            if kind is None or types.setdefault(key, kind) != kind:
                return None
        return types

    def place(self, row: int) -> str:
        """The file and the line, or the number of the row in a list. Reads the part again to find the line,
        since empty lines are no rows.
        """
        return self.where(self._places.of(row))

    @cached_property
    def _places(self) -> RowPlaces[int]:
        return RowPlaces(self._line_numbers)

    def _line_numbers(self) -> Iterator[int]:
        for piece in self.span.pieces(self.path):
            lines = enumerate(io.BytesIO(piece.data), piece.line)
            yield from [piece.line] if piece.too_long else (n for n, line in lines if self.content(line))

    @cached_property
    def _members(self) -> DottedNames:
        return members_in(self.wanted.values(), self.ignore)

    def content(self, line: bytes) -> bytes:
        text = line.removeprefix(BOM) if self.span.start == 0 else line
        return text.rstrip(_WHITE)

    def _columns(self, schema: Schema, lines: list[bytes], start: int, stop: int) -> dict[str, Any]:
        known = {*self.wanted.values(), *self.ignore}
        rows = [self._row(row, line, known, schema) for row, line in enumerate(lines[start:stop])]
        columns = {name: [row.get(key) for row in rows] for name, key in self.wanted.items()}
        return columns | paths_below(columns, media_in(schema, columns), self.path.parent, self.media)

    def _row(self, number: int, line: bytes, known: set[str], schema: Schema) -> Row:
        try:
            row = unnested(parsed(line), self._members, self.ignore)
        except RecordError as error:
            raise RecordError(error.problems, number) from None
        unknown = [] if row.keys() <= known else [name for name in row if not self._is_known(name, known)]
        if unknown:
            name = unknown[0]
            remedy = "`ignore` of the source lists names to leave out"
            raise RecordError(unknown_name(schema, name, self.wanted.values(), row, remedy), number)
        return row

    def _is_known(self, name: str, known: set[str]) -> bool:
        return name in known or is_left_out(name, self.ignore, ())


def _type_of(feature: Feature | None, value: Any) -> Any:
    """The Arrow type for the values of a feature, or of a name without a feature; None if there is none.

    Args:
        value: the value in the first row, which decides whether a label is a text or an integer.
    """
    pyarrow = arrow()
    kind = None if feature is None else feature.value_type
    if kind is None or (kind.item == "class" and kind.shape == ()):
        return {str: pyarrow.large_string(), int: pyarrow.int64()}.get(type(value))
    if kind.date is not None or kind.shape not in ((), (None,)):
        return None
    if kind.item == "text":
        item = pyarrow.large_string()
    elif kind.is_number and kind.item != "bool" and numpy_dtype(kind.item).kind in "iuf":
        item = pyarrow.int64() if is_integer(kind.item) else pyarrow.float64()
    else:
        return None
    return item if kind.shape == () else pyarrow.list_(item)


def _read_json(lines: bytes, types: Mapping[str, Any], *, strict: bool) -> Any:
    """Reads objects as a table with the given types. Raises ArrowException, with `strict` also for other
    names; UnicodeDecodeError.
    """
    from pyarrow import json as arrow_json

    str(lines, "utf-8")  # Arrow does not check UTF-8
    return arrow_json.read_json(
        arrow().BufferReader(lines),
        arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        arrow_json.ParseOptions(
            explicit_schema=arrow().schema(list(types.items())),
            unexpected_field_behavior="error" if strict else "infer",
        ),
    )


def _objects_in(lines: bytes) -> int | None:
    """The number of lines, if each begins with `{` and ends with `}`; else None. If Arrow finds as many
    objects as lines, each line is one object.
    """
    data = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    ends = ends if lines.endswith(b"\n") else np.append(ends, len(data))
    starts = np.append(0, ends[:-1] + 1)
    if not len(ends) or int((ends - starts).min()) < len("{}"):
        return None
    last = ends - 1
    last -= data[last] == ord("\r")
    whole = bool((data[starts] == ord("{")).all() and (data[last] == ord("}")).all())
    return len(ends) if whole else None


def _is_as_python(column: Any, feature: Feature | None) -> bool:
    """Whether Arrow's values equal Python's. They may differ for an integer that a float rounds, `-0` (an
    integer in Python), NaN and infinities, and missing items of lists.
    """
    while is_list(column):
        column = column.flatten()
        if column.null_count and (feature is None or feature.value_type.missing_item is None):
            return False
    if feature is None or is_text(column) or not is_number(column) or "int" in str(column.type):
        return True
    numbers = to_numpy(column.drop_null())
    if not np.isfinite(numbers).all():
        return False
    far = np.abs(numbers) >= EXACT_INTS[feature.value_type.item]
    return not bool((far & (numbers % 1 == 0)).any() or (np.signbit(numbers) & (numbers == 0)).any())


def read_rows(path: Location, span: JsonArray | None = None) -> Iterator[Row]:
    """Yields the objects of the lines of a file, or of a list in it. Raises RecordError for a line or an item
    that is not an object.
    """
    for one in next(line_ranges([path])) if span is None else [span]:
        if isinstance(one, ByteRange) and one.too_long:
            raise RecordError(_long_line(one.stop - one.start).at(f"{path}:{one.line}"))
        part = JsonPart(path=path, wanted={}, media={}, ignore=frozenset(), span=one)
        for piece in one.pieces(path):
            if piece.too_long:
                raise RecordError(_long_line(piece.too_long).at(part.where(piece.line)))
            for number, line in enumerate(io.BytesIO(piece.data), piece.line):
                if content := part.content(line):
                    try:
                        yield parsed(content)
                    except RecordError as error:
                        raise error.at(part.where(number)) from None


def _long_line(size: int) -> Problem:
    return long_row_problem(size, "line")


def parsed(line: bytes) -> Row:
    """The object of one line. Raises RecordError with the reason and its column in the line."""
    value = json_value(line)
    if not isinstance(value, dict):
        raise _wrong("a JSON object", describe(value))
    return {name: _with_bytes(one) for name, one in value.items()} if _BASE64_KEY in line else value


def json_value(line: bytes) -> Any:
    """Parses JSON in which no object has a name twice. Raises RecordError like `parsed`."""
    try:
        value = _DECODER.decode(line.decode())
        if _SURROGATE.search(line):
            _check_names(value)
        return value
    except UnicodeDecodeError as error:
        got = f"the byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line"
        raise _wrong("UTF-8 text", got) from None
    except json.JSONDecodeError as error:
        hint = error.msg[:1].lower() + error.msg[1:]
        is_cut = error.pos == len(error.doc)
        got = f"{'the end of the line' if is_cut else 'other text'} at column {error.colno}"
        raise _wrong("JSON", got, "a line has a whole object" if is_cut else hint) from None
    except RecursionError:
        raise _wrong("JSON", "lists in lists without end") from None
    except ValueError:  # Python refuses to read numbers with thousands of digits
        raise _wrong("JSON", "a number of thousands of digits") from None


def _check_names(value: Any) -> None:
    """Raises RecordError for a name in an object that UTF-8 cannot encode."""
    for item in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        _check_names(item)
    for name in value if isinstance(value, dict) else ():
        try:
            name.encode()
        except UnicodeEncodeError:
            raise _wrong("names that UTF-8 can encode", f"`{name}`") from None


def _with_bytes(value: Any) -> Any:
    """Replaces `{"b64": "..."}` by bytes. Raises RecordError for invalid base64."""
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    if [*value] != [BASE64]:
        return {name: _with_bytes(one) for name, one in value.items()}
    try:
        return base64.b64decode(value[BASE64], validate=True)
    except (ValueError, TypeError):
        raise _wrong("base64", describe(value[BASE64])) from None


def _wrong(expected: str, got: str, hint: str = "") -> RecordError:
    return RecordError(Problem(expected=expected, got=got, hint=hint), 0)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        again = next(name for place, name in enumerate(names) if name in names[:place])
        raise _wrong("every name once", f"`{again}` again")
    return row


def _float(token: str) -> float:
    value = float(token)
    if math.isinf(value):
        raise _wrong("a number that float64 holds without overflow", token)
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float)
