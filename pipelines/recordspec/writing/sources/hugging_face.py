"""Hugging Face datasets, which store Arrow. The package `datasets` is never imported here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import location, read_bytes
from recordspec.schema.arrow_values import from_arrow
from recordspec.schema.media import file_of
from recordspec.schema.schema import Schema
from recordspec.writing.sources import base
from recordspec.writing.sources.arrow import TablePart, check_table
from recordspec.writing.sources.base import even_ranges, is_left_out
from recordspec.writing.sources.class_names import (
    array_types_in,
    class_names_in,
    is_index,
    name_of,
    takes_names,
)
from recordspec.writing.sources.objects import plain_table, plain_types, top_level
from recordspec.writing.sources.rows import DictRows
from recordspec.writing.sources.splits import SplitSources

# Examples of an iterable dataset requested at a time; examples with images are large.
_EXAMPLES = 128
_LARGEST_FILE = 1 << 31
_NAMES = ("Dataset", "IterableDataset", "DatasetDict", "IterableDatasetDict")


def is_hugging_face(rows: Any) -> bool:
    """Whether a value is a dataset of the package `datasets`, or a dict of datasets by split."""
    kinds = type(rows).__mro__
    return any(kind.__name__ in _NAMES and kind.__module__.startswith("datasets.") for kind in kinds)


def hugging_face_source(rows: Any) -> HuggingFaceRows | HuggingFaceExamples | SplitSources:
    """Returns the examples of a Dataset or IterableDataset, or of a dict of datasets by split, as rows.

    They are read with Arrow, unless only Python can read them: after `with_transform`, and if an iterable
    dataset has no features, as after `map`. Images and audio are not decoded; their files are used.

    The members of structs are columns with dotted names, `translation.de`; the members of lists of structs
    are columns of lists. Indices of a ClassLabel, and lists of indices, are converted by their names; -1 is
    missing.
    """
    if isinstance(rows, Mapping):
        return SplitSources(sources={split: hugging_face_source(one) for split, one in rows.items()})
    if _is_transformed(rows) or rows.features is None:
        return HuggingFaceExamples(rows)
    return HuggingFaceRows(rows)


def _is_transformed(dataset: Any) -> bool:
    return getattr(dataset, "format", {}).get("type") == "custom"


class HuggingFaceExamples(DictRows):
    """Examples as Python values; files of images and audio are bytes or paths.

    Attributes:
        class_names: the class names of columns, as far as they are known.
    """

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset if _is_transformed(dataset) else dataset.with_format(None))
        features = dataset.features
        self._columns = frozenset(() if features is None else features)
        self.class_names = {} if features is None else class_names_in(features.arrow_schema)
        self.array_types = {} if features is None else array_types_in(features.arrow_schema)

    def __iter__(self) -> Iterator[Any]:
        for example in super().__iter__():
            yield {name: file_of(value) for name, value in example.items()}

    def is_unknown(self, column: str) -> bool:
        """Whether no feature describes a column, or its member, so that its integers may be class indices
        without names.
        """
        return top_level(column, self._columns) not in self._columns

    def read(self, schema: Schema) -> Iterator[Any]:
        """The rows, with class names in place of indices.

        Raises SpecError for the index of an unknown class.
        """
        known = {
            name: names for name, names in self.class_names.items() if takes_names(schema.names.get(name))
        }
        unknown = [
            name
            for name, feature in schema.names.items()
            if feature.value_type.item == "class" and self.is_unknown(name)
        ]
        for row in super().read(schema):
            for name in unknown:
                _check_names(name, row.get(name))
            yield row | {name: name_of(row[name], names) for name, names in known.items() if name in row}


def _check_names(column: str, value: Any) -> None:
    """Raises SpecError if a value is an index, or contains one in a list."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        for item in value:
            _check_names(column, item)
    elif is_index(value):
        expected = "class names, or features of the dataset that name the classes"
        hint = "give names, or `features=` to `map`"
        raise SpecError(Problem(path=(column,), expected=expected, got=f"the index {value}", hint=hint))


class HuggingFaceRows:
    """The rows of a Dataset, in the order of its indices, or of an IterableDataset."""

    def __init__(self, dataset: Any) -> None:
        self.notes: list[str] = []
        self.features: Mapping[str, Any] = dataset.features
        self._schema = dataset.features.arrow_schema
        self.class_names = class_names_in(self._schema)
        self.array_types = array_types_in(self._schema)
        self._left_out: frozenset[str] = frozenset()
        self.rows: int | None = len(dataset) if hasattr(dataset, "__len__") else None
        columns = {} if self.rows is None else {"columns": dataset.format["columns"]}
        self._dataset = dataset.with_format("arrow", **columns)
        if columns:
            fields = [self._schema.field(name) for name in columns["columns"]]
            self._schema = arrow().schema(fields, self._schema.metadata)

    def identity(self) -> Any:
        return None

    def without(self, names: Collection[str]) -> HuggingFaceRows:
        """The rows without the given columns."""
        made = copy(self)
        made._left_out = self._left_out.union(names)
        kept = [one for one in self._schema if one.name not in names]
        made._schema = arrow().schema(kept, self._schema.metadata)
        return made

    def tables(self) -> Iterator[Any]:
        """The rows as Arrow tables of about `PART_BYTES`, with the types and the metadata of the features.

        Raises RecordError for values of other types.
        """
        if self.rows is None:
            yield from _gathered(map(self._cast, _of_one_schema(self._pieces())))
            return
        data = self._dataset.data
        for start, stop in even_ranges(self.rows, data.nbytes // max(1, data.num_rows)):
            yield self._cast(self._dataset[start:stop])

    def _pieces(self) -> Iterator[Any]:
        """The rows of an iterable dataset as Arrow tables, whose types may differ.

        Python examples, as after `map` and `filter`, are requested one by one: Hugging Face infers the types
        of each example separately, and fails to concatenate an empty list or None with other values.
        """
        pieces = self._dataset.iter(batch_size=_EXAMPLES) if _is_arrow(self._dataset) else self._dataset
        try:
            yield from pieces
        except arrow().ArrowException as error:
            raise self._not_of_its_type(None, error) from None

    def _cast(self, table: Any) -> Any:
        table = _selected(table, self._schema.names)
        try:
            return table.cast(self._schema)
        except arrow().ArrowException as error:
            raise self._not_of_its_type(table, error) from None

    def _not_of_its_type(self, table: Any, error: Exception) -> RecordError:
        """The error for a table that cannot be cast, which names the column, or for a missing column."""
        for field in self._schema if table is not None else ():
            try:
                table.column(field.name).cast(field.type)
            except arrow().ArrowException as one:
                return _mistyped(field.name, f"{field.type}, the type of its feature", one)
        return _mistyped("rows", "values of the types of the dataset's features", error)

    def columns_of(self, kind: str) -> list[str]:
        """The names of the columns with a kind of Hugging Face feature: ClassLabel, Image, Audio."""
        return [name for name in self._schema.names if type(self.features[name]).__name__ == kind]

    def files(self, name: str, most: int) -> Iterator[tuple[str, bytes]]:
        """The first files of a column of images or audio, each with its row."""
        row = 0
        for table in self.tables():
            values = from_arrow(table.column(name).drop_null())
            for value in values:
                if row == most:
                    return
                if isinstance(value, bytes):
                    yield f"row {row}", value
                elif isinstance(value, str):
                    yield value, read_bytes(location(value), _LARGEST_FILE)
                row += 1

    def place(self, row: int) -> str:
        return f"row {row}"

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TablePart]:
        known = {*schema.names, *extra}
        types = plain_types(self._schema, known)
        names = [name for name in types if not is_left_out(name, self._left_out, known)]
        check_table(schema, extra, arrow().schema([(name, types[name]) for name in names]))
        first = 0
        for table in self.tables():
            table = plain_table(table, known).select(names)
            for start, stop in even_ranges(table.num_rows, table.nbytes // max(1, table.num_rows)):
                yield TablePart(first=first, table=table.slice(start, stop - start))
                first += stop - start


def _is_arrow(dataset: Any) -> bool:
    """Whether an iterable dataset yields Arrow tables that all have the types of its features."""
    examples: Any = getattr(dataset, "_ex_iterable", None)
    while type(examples).__name__ == "SelectColumnsIterable":
        examples = examples.ex_iterable
    return type(examples).__name__ == "ArrowExamplesIterable"


def _mistyped(name: str, expected: str, error: Exception) -> RecordError:
    return RecordError(Problem(path=(name,), expected=expected, got=str(error).splitlines()[0]))


def _selected(table: Any, names: Sequence[str]) -> Any:
    """The columns with the given names. Raises RecordError for a column that the table lacks."""
    for name in names:
        if name not in table.column_names:
            expected = "the column, which is one of the dataset's features"
            raise RecordError(Problem(path=(name,), expected=expected, got="none"))
    return table.select(names)


def _of_one_schema(tables: Iterable[Any]) -> Iterator[Any]:
    """Concatenates consecutive tables with few rows as long as their types are equal."""
    some: list[Any] = []
    rows = 0
    for table in tables:
        if some and (rows >= _EXAMPLES or not table.schema.equals(some[0].schema)):
            yield arrow().concat_tables(some)
            some, rows = [], 0
        some.append(table)
        rows += table.num_rows
    if some:
        yield arrow().concat_tables(some)


def _gathered(tables: Iterable[Any]) -> Iterator[Any]:
    """Concatenates tables of one schema to tables of about `PART_BYTES`."""
    some: list[Any] = []
    size = 0
    for table in tables:
        some.append(table)
        size += table.nbytes
        if size > base.PART_BYTES:
            yield arrow().concat_tables(some)
            some, size = [], 0
    if some:
        yield arrow().concat_tables(some)
