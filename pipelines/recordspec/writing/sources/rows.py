"""Rows given one by one, as mappings from names to values: an iterable, or a tf.data.Dataset."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

from recordspec.errors import Problem, RecordError, SpecError, describe
from recordspec.schema.encoder import columns_of
from recordspec.schema.media import images
from recordspec.schema.schema import Schema
from recordspec.writing.sources.base import Batches, converted, is_left_out
from recordspec.writing.sources.objects import DottedNames, members_in, unnested

_Rows = TypeVar("_Rows", bound="DictRows")

# The amount sent to another process at a time: with much less, sending costs more than encoding.
_PACKED_BYTES = 8 << 20


class DictRows:
    """Rows given one by one. They are read once; a build in this process reads them lazily."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = _length(rows)
        self.notes: list[str] = []
        self._given = rows
        self._left_out: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._given)

    def without(self: _Rows, names: Collection[str]) -> _Rows:
        """The rows without the values of the given names."""
        made = copy(self)
        made._left_out = self._left_out.union(names)
        return made

    def read(self, schema: Schema) -> Iterator[Any]:
        """The rows in the form that a schema takes."""
        rows, members = iter(self), members_in(schema.names, self._left_out)
        if members:
            rows = (_unnested(number, row, members, self._left_out) for number, row in enumerate(rows))
        if not self._left_out:
            return rows
        leaves_out = cache(partial(is_left_out, left_out=self._left_out, known=schema.names))
        return (_without(row, leaves_out) for row in rows)

    def identity(self) -> Any:
        return None

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[PackedRows]:
        """All rows, in parts for other processes. Raises RecordError for a row that cannot be pickled."""
        waiting: list[bytes] = []
        first = size = 0
        for number, row in enumerate(self.read(schema)):
            waiting.append(_pickled(row, number))
            size += len(waiting[-1])
            if size >= _PACKED_BYTES:
                yield PackedRows(first, tuple(waiting))
                waiting, first, size = [], number + 1, 0
        if waiting:
            yield PackedRows(first, tuple(waiting))

    def place(self, row: int) -> str:
        return f"row {row}"


def _without(row: Any, leaves_out: Callable[[str], bool]) -> Any:
    """A row without some names. A value that is no mapping, or has other names, is refused later."""
    if not isinstance(row, Mapping) or not any(leaves_out(name) for name in row if isinstance(name, str)):
        return row
    return {name: value for name, value in row.items() if not (isinstance(name, str) and leaves_out(name))}


def _unnested(number: int, row: Any, members: DottedNames, left_out: Collection[str]) -> Any:
    try:
        return unnested(row, members, left_out) if isinstance(row, Mapping) else row
    except RecordError as error:
        raise RecordError([problem.at(f"row {number}") for problem in error.problems], number) from None


def _length(rows: Iterable[Any]) -> int | None:
    try:
        return len(rows) if isinstance(rows, Sized) else None
    except Exception:  # a tf.data.Dataset of unknown length
        return None


@dataclass(frozen=True)
class PackedRows:
    """Rows on their way to another process, pickled by this process and read by one that it started."""

    first: int
    packed: tuple[bytes, ...]

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        return row_batches([pickle.loads(row) for row in self.packed], schema, extra)

    def place(self, row: int) -> str:
        return f"row {self.first + row}"


class _Pickler(pickle.Pickler):
    """Pickles PIL images with all their encoded attributes."""

    def reducer_override(self, value: Any) -> Any:
        return images.reduced(value) if images.is_image(value) else NotImplemented


def _pickled(row: Any, number: int) -> bytes:
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(row)
        return buffer.getvalue()
    except Exception as error:  # any error that the row's own classes raise
        expected = "a row that can be sent to another process"
        got = f"{type(error).__name__}: {error}"
        problem = Problem(expected=expected, got=got, hint="with jobs=1 it need not be")
        raise RecordError(problem.at(f"row {number}"), number) from None


def row_batches(rows: Sequence[Any], schema: Schema, extra: tuple[str, ...]) -> Batches:
    """Converts rows to columns. A row that is no mapping, or has an unknown name, is replaced by its
    error.
    """

    def columns(start: int, stop: int) -> dict[str, Any]:
        for number, row in enumerate(rows[start:stop]):
            if not isinstance(row, Mapping):
                raise not_a_mapping(row, number)
        return columns_of(schema, rows[start:stop], extra)

    return converted(len(rows), columns)


def not_a_mapping(row: Any, number: int) -> RecordError:
    """The error for a row without names."""
    problem = Problem(expected="a mapping from names to values", got=describe(row))
    return RecordError(problem.at(f"row {number}"), number)


def is_dataset(rows: Any) -> bool:
    """Whether a value is a tf.data.Dataset; does not import TensorFlow."""
    kinds = type(rows).__mro__
    return any(kind.__name__ == "DatasetV2" and kind.__module__.startswith("tensorflow.") for kind in kinds)


class DatasetRows:
    """The elements of a dataset as rows.

    Numbers become arrays, strings bytes, ragged values lists, and a sparse value a pair (indices, values).
    Raises SpecError for a dataset with other elements, and for an endless one.
    """

    def __init__(self, dataset: Any) -> None:
        _check(dataset)
        self._dataset = dataset

    def __len__(self) -> int:
        """The number of elements. Raises TypeError if it is unknown."""
        return len(self._dataset)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for element in self._dataset:
            yield {name: _value(tensor) for name, tensor in element.items()}


def _check(dataset: Any) -> None:
    spec = dataset.element_spec
    if not isinstance(spec, Mapping):
        hint = "map it to dicts: dataset.map(lambda image, label: {'image': image, 'label': label})"
        raise SpecError(Problem(path=("rows",), expected="a dataset of dicts", got=_named(spec), hint=hint))
    problems = [
        Problem(
            path=("rows", name),
            expected="a tensor",
            got=_named(column),
            hint="map it to a dict of tensors alone",
        )
        for name, column in spec.items()
        if isinstance(column, (Mapping, tuple, list)) or not hasattr(column, "dtype")
    ]
    if problems:
        raise SpecError(problems)
    if int(dataset.cardinality()) == -1:  # tf.data.INFINITE_CARDINALITY
        raise SpecError(
            Problem(path=("rows",), expected="a dataset with an end", got="one that repeats for ever")
        )


def _named(spec: Any) -> str:
    if isinstance(spec, Mapping):
        return "a dict"
    if isinstance(spec, (tuple, list)):
        return f"one of {type(spec).__name__}s of {len(spec)}"
    return describe(spec)


def _value(tensor: Any) -> Any:
    if hasattr(tensor, "to_list"):
        return tensor.to_list()
    if hasattr(tensor, "dense_shape"):
        indices = tensor.indices.numpy()
        return indices[:, 0] if indices.shape[1] == 1 else indices, tensor.values.numpy()
    return tensor.numpy()
