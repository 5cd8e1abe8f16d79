"""Datasets of Hugging Face, which are Arrow underneath. The package `datasets` is never imported here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recordspec._arrow import arrow
from recordspec.errors import Problem, SpecError
from recordspec.locations import location, read_bytes
from recordspec.spec.media import file_of
from recordspec.spec.schema import Schema
from recordspec.writing.sources import base
from recordspec.writing.sources.arrow import TablePart, check_table, from_arrow
from recordspec.writing.sources.base import even_ranges
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


def hugging_face_source(rows: Any) -> HuggingFaceRows | DictRows | SplitSources:
    """Returns the examples of a Dataset or IterableDataset, or of a dict of these by split, as rows.

    They are read with Arrow, unless only Python can read them: after `with_transform`, and if an iterable
    dataset has no features, as after `map`. Images and sounds are not decoded; their files are used.
    """
    if isinstance(rows, Mapping):
        return SplitSources(sources={split: hugging_face_source(one) for split, one in rows.items()})
    if _is_transformed(rows) or rows.features is None:
        return DictRows(_Examples(rows))
    return HuggingFaceRows(rows)


def _is_transformed(dataset: Any) -> bool:
    return getattr(dataset, "format", {}).get("type") == "custom"


class _Examples:
    """Examples as Python has them, of which the files of images and sounds are bytes or paths."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset if _is_transformed(dataset) else dataset.with_format(None)

    def __len__(self) -> int:
        """Raises TypeError if it is not known."""
        return len(self._dataset)

    def __iter__(self) -> Iterator[Any]:
        for example in self._dataset:
            yield {name: file_of(value) for name, value in example.items()}


class HuggingFaceRows:
    """The rows of a Dataset, in the order of its indices, or of an IterableDataset.

    Classes are converted by name if the schema has other names, or another order, than the ClassLabel.
    """

    def __init__(self, dataset: Any) -> None:
        self.notes: list[str] = []
        self.features: Mapping[str, Any] = dataset.features
        self._schema = dataset.features.arrow_schema
        self.rows: int | None = len(dataset) if hasattr(dataset, "__len__") else None
        columns = {} if self.rows is None else {"columns": dataset.format["columns"]}
        self._dataset = dataset.with_format("arrow", **columns)
        if columns:
            self._schema = arrow().schema([self._schema.field(name) for name in columns["columns"]])

    def identity(self) -> Any:
        return None

    def tables(self) -> Iterator[Any]:
        """The rows as Arrow tables of about `PART_BYTES`."""
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
        named = [name for name in self._schema.names if self._is_named(schema, name)]
        first = 0
        for table in self.tables():
            for start, stop in even_ranges(table.num_rows, table.nbytes // max(1, table.num_rows)):
                part = table.slice(start, stop - start)
                for name in named:
                    place = part.schema.get_field_index(name)
                    part = part.set_column(place, name, _class_names(part.column(name), self.features[name]))
                yield TablePart(first=first, table=part)
                first += part.num_rows

    def _is_named(self, schema: Schema, name: str) -> bool:
        """Whether the classes of a column are given by their names."""
        kind, feature = self.features[name], schema.names.get(name)
        if feature is None or feature.value_type.item not in ("class", "text"):
            return False
        if hasattr(kind, "names"):
            return tuple(kind.names) != feature.class_names
        names = tuple(getattr(getattr(kind, "feature", None), "names", feature.class_names))
        if names != feature.class_names:
            expected = f"the {len(names)} classes of the dataset, in its order"
            raise SpecError(Problem(path=(name, "names"), expected=expected, got="others"))
        return False


def _class_names(column: Any, label: Any) -> Any:
    """Converts indices to names; -1, which means no class, is missing."""
    pyarrow = arrow()
    indices = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    indices = pyarrow.compute.if_else(pyarrow.compute.less(indices, 0), None, indices)
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(label.names))


def _gathered(tables: Iterable[Any]) -> Iterator[Any]:
    some: list[Any] = []
    for table in tables:
        some.append(table)
        if sum(one.nbytes for one in some) > base.PART_BYTES:
            yield arrow().concat_tables(some)
            some = []
    if some:
        yield arrow().concat_tables(some)
