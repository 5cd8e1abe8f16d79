"""The records that `export` writes, and their columns, which later records widen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, RecordspecError, SpecError, StoreError, counted
from recordspec.locations import Location
from recordspec.progress import Progress
from recordspec.schema.table_columns import TableColumn
from recordspec.store.scan import FileRange, RowBatch, Scanner, first_rows
from recordspec.tables.column_types import ColumnType, first_row, keys_of, type_of, values_by_kind
from recordspec.tables.feature_names import SEQUENCE, FeatureKey
from recordspec.tables.query import Query
from recordspec.tables.scan_columns import (
    DecodedRows,
    FeatureColumn,
    KeyColumn,
    RowDecoder,
    placed_errors,
    ranges_of,
    record_batch,
    schema_of,
)

ExportColumns = dict[str, FeatureColumn | KeyColumn]

# each record may have keys of its own
_MOST_COLUMNS = 4096
# A missing row in a column takes 17 bytes as well.
_MOST_CELLS = 1 << 23


def _check(columns: ExportColumns, suffix: str) -> None:
    """Raises SpecError for columns that the format cannot represent, or that no source reads back."""
    problems = [
        Problem(path=(name,), expected=expected, got=got, hint=f"choose other columns, or {hint}")
        for name, column in columns.items()
        for expected, got, hint in _refused(column, suffix)
    ]
    if problems:
        raise SpecError(problems)


def _refused(column: FeatureColumn | KeyColumn, suffix: str) -> Iterator[tuple[str, str, str]]:
    """Yields for a column that the format cannot represent: the expected type, the type of the column,
    and an alternative.
    """
    if suffix == ".parquet":
        return
    (item,) = {one.feature.value_type.item for one in column.features} or {""}
    are_samples = item == "media" and column.features[0].feature.restored_type is not None
    way = "write parquet" if are_samples or item.startswith("complex") else "write jsonl or parquet"
    if item.startswith("complex"):
        yield f"numbers that {suffix[1:]} can hold", item, way
    elif suffix == ".jsonl" and are_samples:
        yield "numbers, text or encoded bytes for jsonl", "raw pixels or samples", way
    elif suffix == ".csv" and arrow().types.is_nested(column.type):
        yield "one value per record for csv", "a list", way
    elif suffix == ".csv" and arrow().types.is_large_binary(column.type):
        yield "text or numbers for csv", "bytes that are not all UTF-8", way


class ExportedRecords:
    """The records that match a query, a batch at a time, and their columns. Raises SpecError for unknown
    names.

    It can be pickled, and knows no dataset: tasks of a cluster read ranges of files.

    Attributes:
        suffix: the suffix of the format.
        columns: the columns of the records so far.
        are_written: whether the reader that was read last had all columns, with their final types.
        rows: the number of records so far.
    """

    def __init__(self, scanner: Scanner, query: Query, limit: int | None, suffix: str) -> None:
        self._limit, self.suffix = limit, suffix
        # what lies beside the files names features and classes as a given schema does
        query = replace(query, schema=query.schema or scanner.dataset.schema, stored=True)
        self._names, self._selected = query.names, query.columns
        keys = query.check(scanner, () if query.schema is None else query.schema.names)
        features = _feature_columns(query)
        self._parts = {
            (one.place.in_steps, key)
            for column in features.values()
            for one in column.features
            for key in one.keys
        }
        prefixed = {name for name in query.columns if name.startswith(SEQUENCE)}
        in_rows = {word for key in keys if not key[0] for word in self._words(key)}
        self._in_both = in_rows | {name.removeprefix(SEQUENCE) for name in prefixed}
        # without known values
        self._first: ExportColumns = {}
        for key in keys:
            if (name := self._name(key)) is not None and name not in features:
                self._first.setdefault(name, _column_of(name, key))
        self.columns = self._ordered({**self._chosen(), **features})
        _check(self.columns, suffix)
        self.are_written = True
        self._condition = query.condition(scanner)
        self._decoder = RowDecoder(scanner.dataset.schema, self.columns.values(), all_keys=not query.columns)
        self.rows = 0

    def _chosen(self) -> ExportColumns:
        """The columns of the keys in the query, even if the first records lack them."""
        chosen: ExportColumns = {}
        for name in self._selected:
            key = name.startswith(SEQUENCE), name.removeprefix(SEQUENCE)
            chosen[name] = self._first.get(name) or _column_of(name, key)
        return chosen

    def _words(self, key: FeatureKey) -> tuple[str, ...]:
        """The possible column names of a key, without a prefix; its main name first."""
        words = self._names.words(key)
        bare = words[: len(words) // 2] if key[0] else words
        return bare if self._selected else bare[:1]

    def _name(self, key: FeatureKey) -> str | None:
        """The column of a key; None if the query excludes it, or it belongs to the value of a feature."""
        if key in self._parts:
            return None
        names = [SEQUENCE + word if key[0] and word in self._in_both else word for word in self._words(key)]
        return next((name for name in names if name in (self._selected or names)), None)

    def _ordered(self, columns: ExportColumns) -> ExportColumns:
        """The columns in the order of the query; if it names none, by name, with feature lists last."""
        names = self._selected or sorted(columns, key=lambda name: (_has_steps(columns[name]), name))
        return {name: columns[name] for name in names}

    def ranges(self, files: Iterable[FileRange]) -> Iterator[FileRange]:
        """The files, in order; large files in ranges, if the condition allows it."""
        return ranges_of(files, () if self._condition is None else self._condition.columns)

    def take_first(self) -> None:
        """Without records, the first records of the files name the columns."""
        self.columns = self._ordered(self._first | self.columns)

    def merge(self, columns: ExportColumns, part: FileRange, error: RecordspecError | None) -> None:
        """Extends the columns to represent the records of a part, whose own columns are given. Raises
        RecordError if values of two kinds would be in one column.

        Args:
            error: an error of the part alone. The error of one machine is raised, of an earlier record if the
                columns of other parts contradict it.
        """
        joined = {name: _joined(self.columns.get(name, column), column) for name, column in columns.items()}
        if error is not None or None in joined.values():
            for _ in self.reader([part], Progress(show=False), is_part=True):
                pass  # raises the error of the first record that fits no column
            raise error or files_changed(part.path)
        self._set(self.columns | joined)

    def check_columns(self) -> None:
        """Raises SpecError for records without columns, in a format that cannot represent them."""
        if self.rows and not self.columns and self.suffix != ".jsonl":
            got, hint = f"{counted(self.rows, 'record')} without any", "jsonl holds them"
            raise SpecError(Problem(path=("out",), expected="features to export", got=got, hint=hint))

    def reader(
        self,
        files: Iterable[FileRange],
        progress: Progress,
        *,
        final: bool = False,
        is_part: bool = False,
    ) -> Any:
        """A `pyarrow.RecordBatchReader` of the records of files, with the columns of the first ones.

        A record that changes the columns, and all records after it, are read for their columns only.

        Args:
            final: whether the columns are final. If they change, the reader raises StoreError.
            is_part: whether there are other files. Then the columns stay as they are if these have no
                records.
        """
        rows, columns = self._rows(files, progress), self.columns
        first = [*islice(rows, 1)]
        if not first and not is_part:
            self.take_first()
        if not (final and first):
            columns = self.columns
            _check(columns, self.suffix)
        batches = self._batches(columns, chain(first, rows), final=final)
        return arrow().RecordBatchReader.from_batches(schema_of(columns.values()), batches)

    def _batches(self, columns: ExportColumns, some: Iterable[DecodedRows], *, final: bool) -> Iterator[Any]:
        for rows in some:
            if self.columns == columns:
                with placed_errors(rows.batch):
                    batch = record_batch(rows, columns.values())
                yield batch
            elif final:
                raise files_changed(rows.batch.path)
            else:
                _check(self.columns, self.suffix)
        self.are_written = self.columns == columns

    def _rows(self, files: Iterable[FileRange], progress: Progress) -> Iterator[DecodedRows]:
        """The records of files. Raises RecordError for a record that fits no column."""
        self.rows = 0
        batches = chain.from_iterable(first_rows(file, None) for file in files)
        for batch in batches if self._condition is None else self._condition.matching(batches):
            if not len(batch):
                continue
            if self._limit is not None and self.rows + len(batch) > self._limit:
                batch = batch.first(self._limit - self.rows)
            self.rows += len(batch)
            for rows in self._pieces(batch):
                yield rows
                progress.advance(len(rows.batch), rows.batch.bytes)
            if self.rows == self._limit:
                return

    def _pieces(self, batch: RowBatch) -> Iterator[DecodedRows]:
        """Yields a batch, divided into pieces with a bounded number of cells: every column has a cell for
        each row.
        """
        with placed_errors(batch):
            rows = self._decoder.decode(batch)
        count = max(len(self.columns), len(rows.records.features) + len(rows.records.sequence))
        if len(batch) == 1 or len(batch) * count <= _MOST_CELLS:
            with placed_errors(batch):
                self._widen(rows)
            yield rows
            return
        for half in np.array_split(np.arange(len(batch)), 2):
            yield from self._pieces(batch.take(half))

    def _widen(self, rows: DecodedRows) -> None:
        """Extends the columns to represent the given rows."""
        columns: ExportColumns = {
            name: column.widened(rows) if isinstance(column, FeatureColumn) else column
            for name, column in self.columns.items()
        }
        for key in keys_of(rows.records):
            if (name := self._name(key)) is None:
                continue
            column = columns.get(name)
            if not isinstance(column, KeyColumn) or column.key != key:
                if column is not None and not _has_values(rows, key):
                    continue
                if column is not None and not (isinstance(column, KeyColumn) and column.form.kind == "none"):
                    raise _in_one_column(column, rows, key)
                column = _column_of(name, key)
            columns[name] = column.widened(rows)
        self._set(columns)

    def _set(self, columns: ExportColumns) -> None:
        if len(columns) > _MOST_COLUMNS:
            expected = f"at most {_MOST_COLUMNS:,} features to export"
            raise SpecError(Problem(path=("columns",), expected=expected, got="more", hint="choose some"))
        self.columns = self._ordered(columns)


def _joined(one: FeatureColumn | KeyColumn, other: FeatureColumn | KeyColumn) -> Any:
    """The column that represents the records of two parts; None if the kinds of their values differ."""
    if isinstance(one, FeatureColumn) and isinstance(other, FeatureColumn):
        return one.joined(other)
    if isinstance(one, FeatureColumn) or isinstance(other, FeatureColumn):
        return None
    if one.key != other.key:  # a feature and a feature list: one of them has no values
        # a feature without any adds nothing to a column
        if one.form.kind == "none" and (other.form.kind != "none" or other.key[0]):
            return other
        return one if other.form.kind == "none" else None
    return replace(one, form=one.form.joined(other.form)) if one.form.fits(other.form.kind) else None


def _feature_columns(query: Query) -> ExportColumns:
    """The columns of the schema's features, by name; a feature list may have its prefix."""
    columns: ExportColumns = {}
    known = {} if query.schema is None else query.schema.names
    for place, feature in () if query.schema is None else query.schema._placed:
        name, prefixed = feature.name, SEQUENCE + feature.name
        if query.columns and name not in query.columns:
            if not place.in_steps or prefixed not in query.columns:
                continue
            name = prefixed
        for part in (column.key for column in feature.columns() if column.key not in known):
            if part in query.columns:
                expected, got = "a feature or its stored keys", f"`{feature.name}` and `{part}`"
                raise SpecError(Problem(path=("columns",), expected=expected, got=got))
        columns[name] = FeatureColumn(name=name, features=(TableColumn(place=place, feature=feature),))
    return columns


def _column_of(name: str, key: FeatureKey) -> KeyColumn:
    """The column of a key without known values."""
    return KeyColumn(name=name, key=key, form=ColumnType(steps=key[0]))


def _has_steps(column: FeatureColumn | KeyColumn) -> bool:
    return column.key[0] if isinstance(column, KeyColumn) else column.features[0].place.in_steps


def _has_values(rows: DecodedRows, key: FeatureKey) -> bool:
    """Whether any row has a value under a key."""
    return any(array.null_count < len(array) for array in values_by_kind(rows.records, key))


def _in_one_column(column: FeatureColumn | KeyColumn, rows: DecodedRows, key: FeatureKey) -> RecordError:
    """The error for a feature and a feature list that would be the same column."""
    array = values_by_kind(rows.records, key)[0]
    prefixed = f"`{SEQUENCE}{column.name}` among the columns selects the feature list"
    hint = "choose other columns" if column.name.startswith(SEQUENCE) else prefixed
    expected = f"{column.form if isinstance(column, KeyColumn) else column.type}, as in records before"
    got = str(type_of(array, steps=key[0]))
    problem = Problem(path=(column.name,), expected=expected, got=got, hint=hint)
    return RecordError(problem, first_row(array, steps=key[0]))


def files_changed(path: Location) -> StoreError:
    """The error of files whose records are others when they are read again."""
    expected, got = "files that do not change", "other records when they were read again"
    return StoreError(Problem(where=str(path), expected=expected, got=got))
