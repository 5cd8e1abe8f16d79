"""`recordspec.scan`: TFRecords as a table that can be scanned many times."""

from __future__ import annotations

import os
import pickle
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, Literal, get_args

import numpy as np
import pyarrow.dataset

from recordspec import html
from recordspec._arrow import arrow
from recordspec.errors import (
    Problem,
    RecordError,
    RecordspecError,
    SpecError,
    counted,
    nearest,
    one_of,
    show_text,
)
from recordspec.executors import Executor, threaded_map, working_in
from recordspec.locations import AnyPath, Location
from recordspec.progress import Progress
from recordspec.schema.schema import Schema, check_data_first
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, Split, path_list
from recordspec.store.manifest import Manifest
from recordspec.store.scan import (
    FileRange,
    RowBatch,
    Scanner,
    UnreadableRecord,
    check_readable,
)
from recordspec.store.scan import (
    scan as scan_file,
)
from recordspec.tables.scan_columns import (
    KEY,
    MOST_ROWS,
    ColumnReader,
    columns_of,
    places_of_rows,
    ranges_of,
    schema_of,
    without_dictionaries,
)

Values = Literal["stored", "decoded"]
Corrupt = Literal["error", "skip"]
# Arrow's text for an expression that names a column by its number.
_BY_NUMBER = re.compile(r"FieldPath\(")


class RecordTable(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """TFRecords as a table: a `pyarrow.dataset.Dataset`, which DuckDB, Polars, pandas and others read.

    `scan` creates it.

    Args:
        arguments: of `scan`, by name.
        condition: on the rows, a `pyarrow.dataset.Expression`.
        dataset: the files, if they were found already.

    Attributes:
        skipped: the number of skipped records by file, with `corrupt="skip"`, when the table was last read to
            its end.
        failure: the error that ended a scan, since other libraries pass on only its text.
        progress: receives the number of rows read, and their bytes.

    Example:
        >>> table = rs.scan("data/points/train-*")
        >>> table.schema.names
        ['x', 'inside']
        >>> table.to_table(columns=["x"]).num_rows
        15
    """

    def __init__(
        self, arguments: Mapping[str, Any], condition: Any = None, dataset: StoredDataset | None = None
    ) -> None:
        # the base class is not initialized, since there is no C++ dataset
        self._arguments, self._condition = dict(arguments), condition
        self._corrupt = self._arguments["corrupt"]
        self._scanner = Scanner(
            dataset
            or StoredDataset.asked(arguments["files"], arguments["schema"], arguments["split"], "rs.scan")
        )
        self._scanner.dataset.require_schema()
        is_decoded, binary = arguments["values"] == "decoded", frozenset(arguments["binary"])
        self._columns = columns_of(self._scanner, is_decoded=is_decoded, binary=binary)
        if not self._columns and self._corrupt == "error":
            _check_first(self._scanner)
        self._places = places_of_rows(self._scanner, self._columns)
        if arguments["columns"] is not None:
            known = self._columns | {
                name: column for name, column in self._places.items() if name not in self._columns
            }
            _check_names(arguments["columns"], known)
            self._columns = {name: known[name] for name in arguments["columns"]}
        self.skipped: dict[str, int] = {}
        self.failure: RecordspecError | None = None
        self.progress = Progress(show=False)

    @property
    def schema(self) -> Any:
        """The names and types of the columns, a `pyarrow.Schema`."""
        return schema_of(self._columns.values())

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, Any] | None = None,
        filter: Any = None,
        batch_size: int = MOST_ROWS,
        **options: Any,
    ) -> RecordScanner:
        """A scan of the given columns, for the rows that match. Only the keys that it needs are decoded.

        Args:
            columns: names, or expressions by name; all columns by default.
            filter: a `pyarrow.dataset.Expression`.
            batch_size: the largest number of rows in a record batch.
            options: further options of `pyarrow.dataset.Dataset.scanner`, which have no effect.
        """
        conditions = [one for one in (self._condition, filter) if one is not None]
        condition = reduce(and_, conditions) if conditions else None
        if columns is not None and not isinstance(columns, Mapping):
            columns = list(columns)
            _check_names(columns, self._columns)
        needed = set(self._columns) if columns is None else set[str]()
        if isinstance(columns, Mapping):
            for expression in columns.values():
                needed |= self._names_in(expression)
        elif columns is not None:
            needed.update(columns)
        if condition is not None:
            needed |= self._names_in(condition)
        if not needed and self._columns:  # a record batch without columns has no number of rows
            needed = {self._cheapest()}
        chosen = [column for name, column in self._columns.items() if name in needed]
        schema = self._scanner.dataset.schema
        return RecordScanner(self, ColumnReader(chosen, schema, columns, condition, batch_size))

    def _names_in(self, expression: Any) -> set[str]:
        """The columns that an expression reads.

        Arrow does not expose them. A column is needed if the expression cannot be bound without it; bisection
        finds these columns. An expression that names a column by its number needs all columns, so that they
        keep their positions.
        """
        schema = self.schema
        if _BY_NUMBER.search(str(expression)):
            return set(self._columns)

        def binds_without(names: Iterable[str]) -> bool:
            left_out = set(names)
            left = arrow().schema([field for field in schema if field.name not in left_out])
            try:
                pyarrow.dataset.Scanner.from_batches(iter(()), schema=left, columns={"_": expression})
            except (arrow().ArrowInvalid, arrow().ArrowNotImplementedError, KeyError):
                return False
            return True

        if not binds_without(()):  # raises Arrow's error
            pyarrow.dataset.Scanner.from_batches(iter(()), schema=schema, columns={"_": expression})
        needed: set[str] = set()
        groups = [list(self._columns)]
        while groups:
            names = groups.pop()
            if not names or binds_without(names):
                continue
            if len(names) == 1:
                needed.update(names)
                continue
            middle = len(names) // 2
            groups += [names[:middle], names[middle:]]
        return needed

    def _cheapest(self) -> str:
        """A column with few bytes."""
        numbers = [name for name, column in self._columns.items() if arrow().types.is_primitive(column.type)]
        return (numbers or list(self._columns))[0]

    def to_reader(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """A `pyarrow.RecordBatchReader`, which can be read only once."""
        return self.scanner(columns, filter, **options).to_reader()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Iterator[Any]:
        """The record batches, one by one."""
        return self.scanner(columns, filter, **options).to_batches()

    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """All rows in memory, a `pyarrow.Table`."""
        return self.scanner(columns, filter, **options).to_table()

    def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """The first rows, a `pyarrow.Table`. Hardly any rows after them are read."""
        return self.scanner(columns, filter, **options).head(num_rows)

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """The rows with the given numbers, a `pyarrow.Table`; reads all rows."""
        return self.scanner(columns, filter, **options).take(indices)

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """The number of rows. Without a condition, files are counted by their index or by their record
        lengths.
        """
        if filter is None and self._condition is None and self._corrupt == "error":
            return sum(map(self._scanner.count, self._scanner.dataset.paths))
        return self.scanner([], filter, **options).count_rows()

    def filter(self, expression: Any) -> RecordTable:
        """The table restricted to the rows that match."""
        self._names_in(expression)  # raises if it is invalid
        both = expression if self._condition is None else self._condition & expression
        return self._with(_condition=both)

    def with_places(self, names: Iterable[str]) -> RecordTable:
        """The table with further columns among `names` for the location of rows, if it can have them; see
        `scan`.
        """
        columns = dict(self._columns)
        for name in names:
            if name in self._places and name not in columns:
                columns[name] = self._places[name]
        return self._with(_columns=columns, _arguments=self._arguments | {"columns": tuple(columns)})

    def placed(self, columns: Iterable[str], places: Iterable[str]) -> RecordTable:
        """The table with only the given columns, followed by the given location columns. A location
        column is renamed if a column has its name.
        """
        chosen = {name: self._columns[name] for name in columns}
        for place in places:
            name = place
            while name in chosen:
                name += "_"
            chosen[name] = replace(self._places[place], name=name)
        return self._with(_columns=chosen)

    def with_binary(self, columns: Iterable[str]) -> RecordTable:
        """The table, in which the given text columns are bytes."""
        binary = (*self._arguments["binary"], *columns)
        return type(self)(self._arguments | {"binary": binary}, self._condition, self._scanner.dataset)

    def without_dictionaries(self) -> RecordTable:
        """The table, in which labels are text."""
        return self._with(_columns=without_dictionaries(self._columns))

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that are the key of the dataset, if it has one."""
        return tuple(feature.name for feature in self._places[KEY].features) if KEY in self._places else ()

    @property
    def files(self) -> list[str]:
        """The paths of its files."""
        return list(map(str, self._scanner.dataset.paths))

    @property
    def manifest(self) -> Manifest | None:
        """The manifest of the dataset; None of other files."""
        return self._scanner.dataset.manifest

    def _with(self, **attributes: Any) -> RecordTable:
        made = type(self).__new__(type(self))  # `copy` would read the first records again
        made.__dict__ |= self.__dict__ | {"skipped": {}, "failure": None} | attributes
        return made

    def sort_by(self, sorting: Any, **options: Any) -> Any:
        """The rows, sorted in memory, an `InMemoryDataset`."""
        return self._in_memory().sort_by(sorting, **options)

    def join(self, right_dataset: Any, *arguments: Any, **options: Any) -> Any:
        """A join with another dataset, in memory, an `InMemoryDataset`."""
        return self._in_memory().join(_in_memory(right_dataset), *arguments, **options)

    def join_asof(self, right_dataset: Any, *arguments: Any, **options: Any) -> Any:
        """A join with the row of another dataset that is nearest in time, in memory."""
        return self._in_memory().join_asof(_in_memory(right_dataset), *arguments, **options)

    def _in_memory(self) -> Any:
        return pyarrow.dataset.dataset(self.to_table())

    @property
    def partition_expression(self) -> Any:
        """The condition that all rows are known to satisfy."""
        return pyarrow.dataset.scalar(True)

    def get_fragments(self, filter: Any = None) -> Any:
        """Raises SpecError: Arrow cannot read the files of a table."""
        raise _unsupported("get_fragments")

    def replace_schema(self, schema: Any) -> Any:
        """Raises SpecError: the types follow from the features."""
        raise _unsupported("replace_schema")

    def _get_fragments(self, *arguments: Any, **options: Any) -> Any:
        raise _unsupported("get_fragments")

    def _scan_options(self, *arguments: Any, **options: Any) -> Any:
        raise _unsupported("_scan_options")

    def _scanner_options(self, *arguments: Any, **options: Any) -> Any:
        raise _unsupported("_scanner_options")

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = dict(self._arguments)
        if arguments["schema"] is not None:  # it may be a path that another machine does not have
            arguments["schema"] = self._scanner.dataset.schema
        return _with_columns, (type(self), arguments, self._condition, self._columns)

    def __repr__(self) -> str:
        columns = f"columns: {html.first_names(list(self._columns))}"
        files = counted(len(self._scanner.dataset.paths), "file")
        return show_text(f"{type(self).__name__}({files}, {columns})")

    def _repr_html_(self) -> str:
        return html.in_notebook(self._html)

    def _html(self) -> Iterator[html.Markup]:
        from recordspec.tables import table_html  # a notebook alone needs it

        names = list(self._columns)[: table_html.MOST_COLUMNS]
        rows = table_html.FirstRows(
            reader=self.scanner(names)._reader,
            scanner=self._scanner,
            is_filtered=self._condition is not None,
            skips=self._corrupt == "skip",
        )
        return table_html.parts(self._columns, rows)

    def ranges(self, executor: Executor | None = None) -> Iterator[FileRange]:
        """As for `scan_columns.ranges_of`."""
        return ranges_of(self._scanner.files, self._columns.values(), executor)

    def batches(self, reader: ColumnReader) -> Generator[Any, None, None]:
        """The rows as record batches, in order."""
        rows = _Rows(reader, self._corrupt)
        try:
            yield from rows.batches(self._scanner.files, self.progress)
        except RecordspecError as error:
            self.failure = error
            raise
        # at the end, since there may be several readings at once
        self.skipped = {str(path): rows.skipped[str(path)] for path in self._scanner.dataset.paths}


class _Rows:
    """Reads the rows of files as record batches.

    It can be pickled, and knows no dataset: a task of a cluster that opened a dataset of 99,999 files would
    read its manifest for 6 s.

    Args:
        reader: creates the record batches.
        corrupt: as for `scan`.

    Attributes:
        skipped: the number of skipped records by file.
    """

    def __init__(self, reader: ColumnReader, corrupt: Corrupt) -> None:
        self._reader, self._corrupt = reader, corrupt
        self.skipped = Counter[str]()

    def batches(
        self, files: Iterable[FileRange], progress: Progress | None = None
    ) -> Generator[Any, None, None]:
        """The rows of files, or of ranges of files, in order. They are decoded by as many threads as there
        are processors.
        """

        def items() -> Iterator[tuple[FileRange, RowBatch | UnreadableRecord]]:
            for file in files:
                for item in scan_file(self._reader.narrowed(file)):
                    yield file, item.kept() if isinstance(item, RowBatch) else item

        def made(file: FileRange, item: RowBatch | UnreadableRecord) -> Any:
            return file, item, self._reader.made(item) if isinstance(item, RowBatch) else None

        for file, item, arrays in threaded_map("recordspec-scan", made, items()):
            if isinstance(item, RowBatch):
                if progress is not None:
                    progress.advance(len(item), item.bytes)
                yield from self._made(item, *arrays)
            else:
                self._skip(file.path, item.error)

    def _made(self, batch: RowBatch, made: list[Any], error: RecordError | None) -> Iterator[Any]:
        """Yields the record batches of rows, skipping corrupt ones."""
        yield from made
        first, count = 0, len(batch)
        while error is not None or first + count < len(batch):
            if error is None:
                first, count = first + count, 2 * count
            else:  # corrupt rows are often adjacent: decoding all the rest after each would take hours
                self._skip(batch.path, error)
                first, count = first + (error.row or 0) + 1, 1
            made, error = self._reader.made(batch.take(np.arange(first, min(first + count, len(batch)))))
            yield from made

    def _skip(self, path: Location, error: RecordError) -> None:
        if self._corrupt == "error":
            raise error
        self.skipped[str(path)] += 1


def _in_memory(dataset: Any) -> Any:
    return dataset._in_memory() if isinstance(dataset, RecordTable) else dataset


def _unsupported(name: str) -> SpecError:
    got = f"`{name}` of a table of TFRecords"
    hint = "`to_table`, `to_batches` and `scanner` read it"
    return SpecError(Problem(expected="a member that such a table has", got=got, hint=hint))


class RecordScanner:
    """One scan of a table, like a `pyarrow.dataset.Scanner` of a dataset. `RecordTable.scanner` creates it.

    Arrow's own scanner is not used: its threads read ahead in Python, and after an unfinished scan, such as
    of the first rows, they would end the process with an error at exit.
    """

    def __init__(self, table: RecordTable, reader: ColumnReader) -> None:
        self._table, self._reader = table, reader

    @property
    def dataset_schema(self) -> Any:
        """The schema of the table."""
        return self._table.schema

    @property
    def projected_schema(self) -> Any:
        """The schema of the resulting rows, a `pyarrow.Schema`."""
        return self._reader.projected_schema

    def to_batches(self) -> Generator[Any, None, None]:
        """The record batches, one by one."""
        return self._table.batches(self._reader)

    def to_reader(self) -> Any:
        """A `pyarrow.RecordBatchReader`."""
        return arrow().RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> Any:
        """All rows, a `pyarrow.Table`."""
        table = arrow().Table.from_batches(self.to_batches(), self.projected_schema)
        return table.unify_dictionaries()  # files may have indices of no class, which Arrow does not group

    def head(self, num_rows: int) -> Any:
        """The first rows, a `pyarrow.Table`."""
        some, left = [], num_rows
        with closing(self.to_batches()) as batches:
            for batch in batches if left > 0 else ():
                some.append(batch.slice(0, left))
                left -= len(some[-1])
                if left <= 0:
                    break
        return arrow().Table.from_batches(some, self.projected_schema)

    def take(self, indices: Any) -> Any:
        """The rows with the given numbers, a `pyarrow.Table`."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.to_batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)


def _with_columns(
    kind: type[RecordTable], arguments: Mapping[str, Any], condition: Any, columns: Any
) -> RecordTable:
    """The table that was pickled, with its own columns."""
    return kind(arguments, condition)._with(_columns=columns)


def plain_table(files: Files, schema: Schema | AnyPath | None, where: Any, **options: Any) -> RecordTable:
    """The table of `scan`, without dictionaries, restricted to the rows that satisfy `where`, a
    `pyarrow.dataset.Expression` or None. Raises the errors of `scan`.
    """
    table = scan(files, schema, **options).without_dictionaries()
    return table if where is None else table.filter(where)


@dataclass(frozen=True)
class TableElsewhere:
    """A table of which processes of a cluster read ranges. Relative paths are those of this process.

    Attributes:
        pickled: what reads its rows. It is unpickled where `folder` is the working folder, which may have
            the modules of custom kinds.
        folder: the working folder of this process.
    """

    pickled: bytes
    folder: str

    @classmethod
    def of(cls, table: RecordTable) -> TableElsewhere:
        return cls(pickle.dumps(_Rows(table.scanner()._reader, table._corrupt)), os.getcwd())

    def batches(self, parts: Iterable[FileRange]) -> Iterator[Any]:
        """The rows of ranges of files as record batches. While the caller handles one, the working folder is
        its own.
        """
        with working_in(self.folder):
            rows: _Rows = pickle.loads(self.pickled)
        with closing(rows.batches(parts)) as batches:
            while True:
                with working_in(self.folder):
                    batch = next(batches, None)
                if batch is None:
                    return
                yield batch


def scan(
    files: Files,
    schema: Schema | AnyPath | None = None,
    *,
    split: Split = None,
    columns: Sequence[str] | None = None,
    values: Values = "stored",
    corrupt: Corrupt = "error",
    binary: Sequence[str] = (),
) -> RecordTable:
    """TFRecords as a table, which every tool that supports Arrow can scan, many times, in bounded memory.

    With a schema, the columns are its features; `schema.table_columns` lists their types. Without a schema,
    the columns are the keys of the first records, with the types found there.

    Args:
        files: a path, a folder of shards, a pattern, or several of these. They may be compressed, and in an
            object store.
        schema: the schema of the records, or its path; by default the schema beside the files.
        split: the split to scan; by default all rows.
        columns: the columns, in their order; all by default. Further columns are `file`, `record` (the number
            in the file), `split`, `content` (a 64-bit hash of the bytes) and `key` (the features that are the
            key of the dataset), unless a feature has that name.
        values: `stored`, with images and audio as bytes; or `decoded`, with images as pixels and audio as
            samples, as `Schema.decode` returns them.
        corrupt: `skip` leaves out records that cannot be read or contradict the schema, and counts them in
            `skipped`; `error` raises RecordError.
        binary: columns of bytes that are not text, even if the bytes of the first records are valid UTF-8.

    Raises:
        SpecError: an argument is invalid, or there is no such column.
        StoreError: there are no files, or blocks without a schema.
        RecordError: the first records are corrupt.

    Example:
        >>> table = rs.scan("data/points/train-*", columns=["inside"])
        >>> table.to_table().group_by("inside").aggregate([("inside", "count")]).num_rows
        2
    """
    check_data_first(files, "files", "rs.scan(files, schema)")
    for option, value, allowed in (("values", values, Values), ("corrupt", corrupt, Corrupt)):
        if value not in get_args(allowed):
            expected = one_of(get_args(allowed))
            raise SpecError(Problem(path=(option,), expected=expected, got=f"`{value}`"))
    return RecordTable(
        {
            "files": path_list(files),
            "schema": schema,
            "split": split,
            "columns": None if columns is None else tuple(columns),
            "values": values,
            "corrupt": corrupt,
            "binary": tuple(binary),
        }
    )


def table_of(dataset: StoredDataset, schema: Schema | None) -> RecordTable:
    """The table of a dataset, as `scan` returns it, of files that are found already."""
    arguments = {"files": path_list(dataset.paths), "schema": schema, "split": None, "columns": None}
    return RecordTable(arguments | {"values": "stored", "corrupt": "error", "binary": ()}, None, dataset)


def _check_names(names: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            expected, hint = (
                one_of(known) if known else "no column, as the records have none",
                nearest(name, known),
            )
            raise SpecError(Problem(path=("columns",), expected=expected, got=f"`{name}`", hint=hint))


def _check_first(scanner: Scanner) -> None:
    """Raises RecordError if records have no columns because they cannot be read."""
    for file in scanner.files:
        for item in scan_file(file):
            if isinstance(item, UnreadableRecord):
                raise item.error
            check_readable(item.decode(), item)
            break
