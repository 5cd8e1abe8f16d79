"""Datasets of Hugging Face, which are Arrow underneath. The package `datasets` is never imported here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, SpecError
from recordspec.locations import location, read_bytes
from recordspec.spec.media import file_of
from recordspec.spec.schema import Schema
from recordspec.writing.sources import base
from recordspec.writing.sources.arrow import TablePart, check_table, from_arrow
from recordspec.writing.sources.base import even_ranges
from recordspec.writing.sources.class_names import class_names_in, is_index, name_of, takes_names
from recordspec.writing.sources.rows import DictRows
from recordspec.writing.sources.splits import SplitSources

# Examples of an iterable dataset that are asked for at once; images among them are large.
_EXAMPLES = 128
_LARGEST_FILE = 1 << 31
_NAMES = ("Dataset", "IterableDataset", "DatasetDict", "IterableDatasetDict")


def is_hugging_face(rows: Any) -> bool:
    """Whether this is a dataset of the package `datasets`, or a dict of these by split."""
    kinds = type(rows).__mro__
    return any(kind.__name__ in _NAMES and kind.__module__.startswith("datasets.") for kind in kinds)


def hugging_face_source(rows: Any) -> HuggingFaceRows | HuggingFaceExamples | SplitSources:
    """Returns the examples of a Dataset or IterableDataset, or of a dict of these by split, as rows.

    They are read with Arrow, unless only Python can read them: after `with_transform`, and if an iterable
    dataset has no features, as after `map`. Images and sounds are not decoded; their files are used.

    Indices of a ClassLabel, and lists of these, are converted by their names; -1 is missing.
    """
    if isinstance(rows, Mapping):
        return SplitSources(sources={split: hugging_face_source(one) for split, one in rows.items()})
    if _is_transformed(rows) or rows.features is None:
        return HuggingFaceExamples(rows)
    return HuggingFaceRows(rows)


def _is_transformed(dataset: Any) -> bool:
    return getattr(dataset, "format", {}).get("type") == "custom"


class HuggingFaceExamples(DictRows):
    """Examples as Python has them, of which the files of images and sounds are bytes or paths.

    Attributes:
        class_names: the class names of columns, as far as they are known.
    """

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset if _is_transformed(dataset) else dataset.with_format(None))
        features = dataset.features
        self._columns = frozenset(() if features is None else features)
        self.class_names = {} if features is None else class_names_in(features.arrow_schema)

    def __iter__(self) -> Iterator[Any]:
        for example in super().__iter__():
            yield {name: file_of(value) for name, value in example.items()}

    def is_unknown(self, column: str) -> bool:
        """Whether no feature describes a column, so that integers may be indices of classes without names."""
        return column not in self._columns

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
    """Raises SpecError for an index, also in a list."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        for one in value:
            _check_names(column, one)
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
        self.rows: int | None = len(dataset) if hasattr(dataset, "__len__") else None
        columns = {} if self.rows is None else {"columns": dataset.format["columns"]}
        self._dataset = dataset.with_format("arrow", **columns)
        if columns:
            fields = [self._schema.field(name) for name in columns["columns"]]
            self._schema = arrow().schema(fields, self._schema.metadata)

    def identity(self) -> Any:
        return None

    def without(self, names: Collection[str]) -> HuggingFaceRows:
        """The same rows without these columns."""
        made = copy(self)
        kept = [one for one in self._schema if one.name not in names]
        made._schema = arrow().schema(kept, self._schema.metadata)
        return made

    def tables(self) -> Iterator[Any]:
        """The rows as Arrow tables of about `PART_BYTES`, with the types and the metadata of the features."""
        for table in self._tables():  # after `map`, the types are those of the values
            yield table.select(self._schema.names).cast(self._schema)

    def _tables(self) -> Iterator[Any]:
        if self.rows is None:
            yield from _gathered(self._dataset.iter(batch_size=_EXAMPLES))
            return
        data = self._dataset.data
        for start, stop in even_ranges(self.rows, data.nbytes // max(1, data.num_rows)):
            yield self._dataset[start:stop]

    def columns_of(self, kind: str) -> list[str]:
        """The names of the columns of a kind of feature of Hugging Face: ClassLabel, Image, Audio."""
        return [name for name in self._schema.names if type(self.features[name]).__name__ == kind]

    def files(self, name: str, most: int) -> Iterator[tuple[str, bytes]]:
        """The first files of a column of images or sounds, each with its row."""
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

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TablePart]:
        check_table(schema, extra, self._schema)
        first = 0
        for table in self.tables():
            for start, stop in even_ranges(table.num_rows, table.nbytes // max(1, table.num_rows)):
                yield TablePart(first=first, table=table.slice(start, stop - start))
                first += stop - start


def _gathered(tables: Iterable[Any]) -> Iterator[Any]:
    some: list[Any] = []
    for table in tables:
        some.append(table)
        if sum(one.nbytes for one in some) > base.PART_BYTES:
            yield arrow().concat_tables(some)
            some = []
    if some:
        yield arrow().concat_tables(some)
