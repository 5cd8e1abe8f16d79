"""Parquet files, with their row groups as parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, StoreError, counted, system_problem
from recordspec.locations import Location, check_regular, open_file
from recordspec.schema import values
from recordspec.schema.schema import Schema
from recordspec.writing.sources.arrow import check_types, table_batches
from recordspec.writing.sources.base import (
    Batches,
    FileSource,
    FilesText,
    ignored,
    long_row_problem,
    size_ranges,
    wanted_columns,
)
from recordspec.writing.sources.class_names import ArrayType, ColumnClasses, array_types_in, class_names_in
from recordspec.writing.sources.objects import names_in, plain_types, top_level
from recordspec.writing.sources.partitions import (
    files_of,
    notes_of_partitions,
    typed_partitions,
    with_partition,
)

# The bytes of rows in memory at a time, apart from the contents of a page.
_BATCH_BYTES = 8 << 20
# A column with few distinct values is small in the file, and large when it is read.
_MOST_ROWS = 1 << 14
# The bytes of each column read at once, instead of a whole row group.
_BUFFER_BYTES = 1 << 18
# The bytes of a number in memory: in the file, a number with few distinct values takes a few bits.
_CELL_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Parquet(FileSource):
    """The rows of Parquet files with the same columns, file after file in the order of their names.

    The members of structs are columns with dotted names, `meta.votes`; the members of lists of structs are
    columns of lists.

    Raises StoreError or RecordError for a file that cannot be read.

    Attributes:
        files: a path, a folder of .parquet files, or a pattern, or a list of these. Names of folders such as
            `country=DE` are a column; a folder includes such folders.
        columns: the column of a feature, if their names differ; null for a feature that all rows lack, as
            those of a test set lack the target.
        media: the path of the file of a feature, with `{}` in place of the text in the column, from the
            folder of the table: `images/{}.jpg`; by default the text is the path.
    """

    SHORT_FORM: ClassVar[str] = "files"

    files: FilesText
    columns: Mapping[str, str | None] = field(default_factory=dict)
    media: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def paths(self) -> tuple[Location, ...]:
        return files_of(self.given, (".parquet",))

    @cached_property
    def _opened(self) -> list[tuple[Any, Any]]:
        """The metadata of each file, and its Arrow schema."""
        footers = []
        for path in self.paths:
            with opened(path) as file:
                footers.append((file.metadata, file.schema_arrow))
        return footers

    def _partitions(self, schema: Schema) -> list[dict[str, Any]]:
        """For each file, the columns in the names of its folders, as the features of a schema read them."""
        numbers = [name for name, one in schema.names.items() if one.value_type.is_number]
        return typed_partitions(self.paths, {self.columns.get(name) or name for name in numbers})

    @property
    def rows(self) -> int:
        return sum(int(metadata.num_rows) for metadata, _ in self._opened)

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        self._wanted(schema, extra)

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[ParquetPart]:
        wanted, partitions = self._wanted(schema, extra), self._partitions(schema)
        for path, (metadata, _), partition in zip(self.paths, self._opened, partitions, strict=True):
            groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
            row = 0
            for start, stop in size_ranges([_size(group) for group in groups]):
                yield ParquetPart(
                    path=path,
                    wanted=wanted,
                    media=self.media,
                    partition=partition,
                    groups=range(start, stop),
                    start=row,
                )
                row += sum(group.num_rows for group in groups[start:stop])

    def _wanted(self, schema: Schema, extra: tuple[str, ...]) -> dict[str, str]:
        """The column of each name. Checks that all files have these columns, with equal types."""
        opened_with = zip(self._opened, self._partitions(schema), strict=True)
        schemas = [_with_fields(one, partition) for (_, one), partition in opened_with]
        first, columns = self.paths[0], schemas[0]
        wanted = wanted_columns(
            schema, extra, self.columns, str(first), names_in(columns), self.media, may_lack=True
        )
        types, *more = (plain_types(one, wanted.values()) for one in schemas)
        own = ((path, one.schema.names) for path, (one, _) in zip(self.paths, self._opened, strict=True))
        self.notes[:] = [*ignored(wanted, [*types]), *notes_of_partitions(own)]
        check_types(schema, {name: types[column] for name, column in wanted.items()}, str(first))
        for path, others, kinds in zip(self.paths[1:], schemas[1:], more, strict=True):
            wanted_columns(schema, extra, self.columns, str(path), names_in(others))
            problems = [
                Problem(
                    where=str(path),
                    path=(name,),
                    expected=f"{types[column]}, as in {first.name}",
                    got=str(kinds[column]),
                )
                for name, column in wanted.items()
                if not kinds[column].equals(types[column])
            ]
            if problems:
                raise SpecError(problems)
        return wanted


def _with_fields(schema: Any, partition: Mapping[str, Any]) -> Any:
    """An Arrow schema with the columns in the names of folders, unless the file has them itself."""
    for name, value in partition.items():
        if name not in schema.names:
            schema = schema.append(arrow().field(name, value.type))
    return schema


def _size(group: Any) -> int:
    """The approximate bytes of a row group in memory, which can be many more than in the file."""
    return max(int(group.total_byte_size), int(group.num_rows) * int(group.num_columns) * _CELL_BYTES)


def _check_length(group: Any, columns: set[str], where: str) -> None:
    """Raises RecordError if the mean size of a column's cells exceeds the largest size of a row."""
    for index in range(group.num_columns):
        column = group.column(index)
        size = column.total_uncompressed_size // max(1, group.num_rows)
        if column.path_in_schema.partition(".")[0] in columns and size > values.LONGEST_ROW:
            problem = long_row_problem(size, f"cell of `{column.path_in_schema}`")
            raise RecordError(problem.at(where))


@dataclass(frozen=True, kw_only=True)
class ParquetPart:
    """Consecutive row groups of a Parquet file.

    Attributes:
        path: the path of the file.
        wanted: the column of each feature, and of each extra name.
        partition: the columns in the names of the folders, as Arrow scalars.
        groups: the numbers of the row groups.
        start: the number of their first row in the file.
    """

    path: Location
    wanted: Mapping[str, str]
    media: Mapping[str, str]
    partition: Mapping[str, Any]
    groups: range
    start: int

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        for block in self._blocks():
            most = block.num_rows if block.nbytes <= values.LONGEST_ROW else 1
            for start in range(0, block.num_rows, most or 1):
                rows = block.slice(start, most)
                if rows.nbytes > values.LONGEST_ROW:
                    yield RecordError(long_row_problem(rows.nbytes), 0)
                else:
                    yield from table_batches(rows, self.wanted, schema, self.path.parent, self.media)

    def place(self, row: int) -> str:
        return f"{self.path}: row {self.start + row}"

    def _blocks(self) -> Iterator[Any]:
        """Record batches of the rows. Raises RecordError if the file is corrupt; before reading, if the
        rows of a column are too long.
        """
        with opened(self.path) as file:
            names = file.schema_arrow.names
            columns = {top_level(name, names) for name in self.wanted.values()}
            partition = {name: value for name, value in self.partition.items() if name in columns - {*names}}
            columns -= partition.keys()
            for number in self.groups:
                _check_length(file.metadata.row_group(number), columns, f"{self.path}: row group {number}")
            rows = self._rows_at_once(file.metadata)
            options = {"columns": sorted(columns), "use_threads": False}
            for batch in record_batches(file, rows, self.groups, **options):
                yield with_partition(batch, partition)

    def _rows_at_once(self, metadata: Any) -> int:
        groups = [metadata.row_group(index) for index in self.groups]
        size = sum(map(_size, groups))
        rows = sum(int(group.num_rows) for group in groups)
        return max(1, min(_MOST_ROWS, _BATCH_BYTES * rows // max(1, size)))


def record_batches(file: Any, rows: int, groups: Iterable[int], **options: Any) -> Iterator[Any]:
    """The rows of row groups in record batches of at most `rows`; `options` are those of pyarrow."""
    # pyarrow reads dictionaries in structs and lists only from one row group at a time
    alone = any(str(field.type).find("dictionary<") > 0 for field in file.schema_arrow)
    for some in [[number] for number in groups] if alone else [[*groups]]:
        yield from file.iter_batches(rows, row_groups=some, **options)


def declared_in(path: Location) -> tuple[ColumnClasses, dict[str, ArrayType]]:
    """The class names and the types of arrays of a file's columns. Raises StoreError or RecordError,
    SpecError.
    """
    with opened(path) as file:
        return class_names_in(file.schema_arrow), array_types_in(file.schema_arrow)


def _check_rows(path: Location, metadata: Any) -> None:
    """Raises RecordError if the number of rows in the footer contradicts the row groups, from which Arrow
    reads.
    """
    rows = sum(metadata.row_group(index).num_rows for index in range(metadata.num_row_groups))
    if rows != metadata.num_rows:
        expected = f"{counted(rows, 'row')} in the footer, as in the row groups"
        hint = "pyarrow.parquet.read_table reads those of the row groups, and write_table makes a whole file"
        raise RecordError(
            Problem(where=str(path), expected=expected, got=f"{metadata.num_rows:,}", hint=hint)
        )


@contextmanager
def opened(path: Location) -> Iterator[Any]:
    """Opens a Parquet file. Raises StoreError if it does not exist, RecordError if it is invalid."""
    pyarrow = arrow()
    from pyarrow import parquet

    check_regular(path)
    expected, is_open = "a Parquet file that pyarrow reads", False
    options: dict[str, Any] = {
        "buffer_size": _BUFFER_BYTES,
        "pre_buffer": False,
        # The unit in which Spark reads them: nanoseconds end in 2262, and later times would wrap around.
        "coerce_int96_timestamp_unit": "us",
        "page_checksum_verification": True,
    }
    try:
        # pyarrow reads no URLs
        source = path if isinstance(path, Path) else open_file(path)
        with parquet.ParquetFile(source, **options) as file:
            expected, is_open = "a whole Parquet file", True
            _check_rows(path, file.metadata)
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and not is_open:
            raise StoreError(system_problem("read", error, str(path))) from None
        got, hint = str(error).splitlines()[0], ""
        if got.startswith("Expected all lists to be of size="):
            hint = "pyarrow reads no fixed-size lists of which some are missing: write them as lists"
        raise RecordError(Problem(where=str(path), expected=expected, got=got, hint=hint)) from None
