"""The batches that a config's pipeline gives a model: any one of them, by its epoch and its step."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec._tf import tf
from recordspec.arrays.iterate import rows_of_step
from recordspec.arrays.mixed_rows import MixedRows
from recordspec.arrays.random_access import Rows
from recordspec.errors import Problem, RecordError, RecordspecError, SpecError, show_shape
from recordspec.order.global_order import whole_numbers
from recordspec.order.packing import RowsInPacks
from recordspec.pipeline import Pipeline
from recordspec.schema import decoder
from recordspec.schema.explain import is_padded, padding_text
from recordspec.schema.features.geometry import Pictures
from recordspec.tables.cells import cell_of, cell_of_labels, cell_of_numbers
from recordspec.tables.column_types import is_image_shape
from recordspec.training.fit import Fit
from recordspec.training.fit_batch import FinishArrays
from recordspec.training.packs import Packing
from recordspec.viewer.cells_json import drawn, drawn_pack, item_at
from recordspec.viewer.media_previews import Media, medium, picture
from recordspec.wire.arrays import Ints

# Rows of a batch that are shown.
MOST_ROWS = 256
# Batches that are kept, and their bytes, so that each image of one does not read it again.
_KEPT, _KEPT_BYTES = 4, 256 << 20
# To begin at an epoch takes TensorFlow 10 ms for each before it.
_MOST_EPOCHS = 1 << 12
# The least side of an array that is drawn as an image, though no feature says that it is one.
_LEAST_SIDE = 8
_PIXELS = ("uint8", "uint16", "float16", "float32", "float64")
_ROLES = ("input", "target", "weight")


class ModelBatches:
    """The batches that a config's pipeline gives a model.

    May be used from several threads; one batch at a time is read.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._last: OrderedDict[tuple[str, int, int], _ModelBatch] = OrderedDict()
        self._lock = threading.Lock()

    def described(self) -> dict[str, Any]:
        """The splits, the size of a batch and whether it has packs, and the order: `global`, `buffer` or
        `files`.

        Needs no TensorFlow. Raises StoreError if the dataset is not built.
        """
        read = self._pipeline.config.read
        order = "files" if read.shuffle is None else "global" if read.is_global else "buffer"
        return {
            "splits": list(self._pipeline._split_names),
            "batch": None if read.batch is None else read.batch.size,
            "packed": read.pack is not None,
            "order": order,
        }

    def steps(self, split: str) -> int | None:
        """The batches of an epoch; None if the values of rows decide how many there are.

        Raises StoreError if there is no such split.
        """
        try:
            return self._pipeline.steps(split, repeat=1)
        except SpecError:
            return None

    def batch(self, split: str, epoch: int, step: int) -> dict[str, Any]:
        """The batch that a step of training sees, as cells, and which stored rows it has.

        Raises what `Pipeline.dataset` raises, and SpecError for a step that there is not; RecordError for a
        record that does not decode.
        """
        batch = self._batch(split, epoch, step)
        return {
            "split": split,
            "epoch": epoch,
            "step": step,
            "steps": batch.steps,
            "of": batch.size,
            "columns": [column.described() for column in batch.columns],
            "rows": [
                {**place, "cells": [column.cell(row) for column in batch.columns]}
                for row, place in enumerate(batch.places)
            ],
            "note": batch.note,
        }

    def medium(
        self,
        split: str,
        epoch: int,
        step: int,
        column: int,
        row: int,
        *,
        place: Sequence[int] = (),
        large: bool = False,
    ) -> Media:
        """An image of a batch, or an image or a sound that is still encoded there.

        Args:
            column, row: their numbers in what `batch` returns.
            place: of an item of lists: the number of an item of each.
            large: whether an image is to be seen alone.

        Raises IndexError if there is none, RecordError for a value that is none, and what `batch` raises.
        """
        batch = self._batch(split, epoch, step)
        for number, count in ((column, len(batch.columns)), (row, len(batch.places))):
            if not 0 <= number < count:
                raise IndexError(number)
        return batch.columns[column].medium(row, list(place), large=large)

    def _batch(self, split: str, epoch: int, step: int) -> _ModelBatch:
        """A batch, one of the last or read again."""
        key, last = (split, epoch, step), self._last
        with self._lock:
            if key not in last:
                last[key] = _read_batch(self._pipeline, split, epoch, step, self.steps(split))
            last.move_to_end(key)
            while len(last) > 1 and (len(last) > _KEPT or sum(map(_bytes_of, last.values())) > _KEPT_BYTES):
                last.popitem(last=False)
            return last[key]


@dataclass(frozen=True, kw_only=True)
class _BatchColumn:
    """A tensor of a batch.

    Attributes:
        name: that of the feature; of a product of weights their names.
        role: what it is to the model.
        values: `[n, ...]`, dense, ragged or sparse.
        names: the names of the classes that its values are; empty for other values.
        is_picture: whether the feature is an image.
        padding: what rows are filled up with to the size of others, as text; None if they are not.
        segments: for each pack, the first place and the number of values of each of its rows; None for
            values that are not packed.
    """

    name: str
    role: str
    values: Any
    names: tuple[str, ...] = ()
    is_picture: bool = False
    padding: str | None = None
    segments: list[list[tuple[int, int]]] | None = None

    def described(self) -> dict[str, Any]:
        shape = show_shape(self.values.shape.as_list()[1:]).replace("[]", "")
        kind = type(self.values).__name__.removesuffix("Tensor").lower()
        words = (kind if kind in ("ragged", "sparse") else "", self.values.dtype.name, shape)
        described = {"name": self.name, "role": self.role, "type": " ".join(filter(None, words))}
        return described if self.padding is None else {**described, "padding": self.padding}

    def cell(self, row: int) -> Any:
        """A row as the page draws it."""
        value = self._row(row)
        if self.segments is not None and isinstance(value, np.ndarray):
            return drawn_pack(value, self.segments[row], self.names)
        if self.names and not isinstance(value, dict):
            indices = value.tolist() if isinstance(value, np.ndarray) else value
            return drawn(cell_of_labels(indices, self.names), whole=True)  # boxes may have one each
        is_numeric = isinstance(value, np.ndarray) and value.dtype.kind in "iuf"
        if not is_numeric or (value.ndim < 2 and value.size < 2):
            return drawn(cell_of(self._arrow(value)))
        return drawn(cell_of_numbers(value, is_picture=self._is_image(value)))

    def medium(self, row: int, place: list[int], *, large: bool) -> Media:
        """The image, or the file of one or of a sound, in a row."""
        value = self._row(row)
        if isinstance(value, np.ndarray) and self._is_image(value):
            return picture(value, large=large)
        return medium(item_at(self._arrow(value), place), large=large)

    def _is_image(self, value: Any) -> bool:
        is_like = value.dtype.name in _PIXELS and min(value.shape[:2], default=0) >= _LEAST_SIDE
        return is_image_shape([*value.shape]) and (self.is_picture or is_like)

    def _row(self, row: int) -> Any:
        """A row: an array; lists if its own rows differ in length; a dict of the parts of a sparse one."""
        if isinstance(self.values, tf.sparse.SparseTensor):
            own = self.values.indices.numpy()[:, 0] == row
            indices = self.values.indices.numpy()[own, 1:]
            return {
                "indices": indices[:, 0] if indices.shape[1] == 1 else indices,
                "values": self.values.values.numpy()[own],
            }
        value = self.values[row]
        if not isinstance(value, tf.RaggedTensor):
            is_text = value.dtype == tf.string  # of NumPy they would end before zeros
            return np.asarray(value.numpy(), object if is_text else None)
        filled = value.to_tensor()
        return filled.numpy() if tf.size(filled) == tf.size(value.flat_values) else value.to_list()

    def _arrow(self, value: Any) -> Any:
        """A row as a `pyarrow.Scalar`."""
        if isinstance(value, dict):
            fields = {name: _array(part, part.dtype, part.ndim) for name, part in value.items()}
            return arrow().StructArray.from_arrays(list(fields.values()), list(fields))[0]
        depth = value.ndim if isinstance(value, np.ndarray) else self.values.shape.rank - 1
        return _array(value, np.dtype(self.values.dtype.as_numpy_dtype), depth)[0]


@dataclass(frozen=True, kw_only=True)
class _ModelBatch:
    """The first rows of a batch.

    Attributes:
        columns: its tensors.
        places: which stored row each row is, and where; None if that is not known.
        size: the number of all its rows.
        steps: the batches of an epoch, if that is known.
        note: what the page says about it; None for nothing.
    """

    columns: list[_BatchColumn]
    places: list[dict[str, Any]]
    size: int
    steps: int | None
    note: str | None


def _array(value: Any, dtype: np.dtype[Any], depth: int) -> Any:
    """An array of Arrow with one value: lists of this depth of numbers, truth values or bytes."""
    types = arrow()
    kind = types.large_binary() if dtype.kind in "OSU" else types.from_numpy_dtype(dtype)
    for _ in range(depth):
        kind = types.large_list(kind)
    return types.array([value.tolist() if isinstance(value, np.ndarray) else value], kind)


def _read_batch(pipeline: Pipeline, split: str, epoch: int, step: int, steps: int | None) -> _ModelBatch:
    """Reads a batch: of the rows before it only what a shuffle needs."""
    _check(epoch, step, steps)
    with suppress(RuntimeError):  # where TensorFlow has begun, it has taken what memory it wants
        tf.config.set_visible_devices([], "GPU")
    shuffle = pipeline.config.read.shuffle
    # With a cache, files are read in one order in all epochs. That of a folder would be written.
    cache = "none" if shuffle is None or pipeline.config.read.cache == "none" else "memory"
    options = {"start": (epoch, step), "repeat": 1, "prefetch": None, "cache": cache}
    fit, notes = pipeline.config.fit, []
    try:
        element = _element(pipeline, split, options)
    except RecordError as error:
        (problem, *_) = error.problems
        if fit is None or fit.targets is None or not problem.got.startswith("fit.targets: "):
            raise
        element = _element(pipeline, split, {**options, "targets": False})
        fit, notes = fit.without_targets, ["rows lack the target: the batch has the inputs alone"]
    if element is None:
        raise SpecError(Problem(path=("step",), expected="a batch of the epoch", got=str(step)))
    whole = list(_columns(pipeline, element, fit))
    size = int(_rows_of(whole[0].values))
    columns = [replace(column, values=_first(column.values)) for column in whole]
    if pipeline.config.read.pack is None:
        places, unknown = _places(pipeline, split, epoch, step, min(size, MOST_ROWS))
    else:
        targets = {} if fit is pipeline.config.fit else {"targets": False}
        packs = _PackedBatch.of(pipeline, split, epoch, step, targets)
        columns = [replace(column, segments=packs.segments(column.name)) for column in columns]
        places, unknown = packs.places, None
    note = "; ".join([*notes, *filter(None, [unknown])]) or None
    return _ModelBatch(columns=columns, places=places, size=size, steps=steps, note=note)


@dataclass(frozen=True, kw_only=True)
class _PackedBatch:
    """The rows of the packs of a batch.

    Attributes:
        packing: what made the packs.
        found: the rows of each pack.
        rows: which stored row each of them is, and where.
    """

    packing: Packing
    found: RowsInPacks
    rows: list[dict[str, Any]]

    @classmethod
    def of(
        cls, pipeline: Pipeline, split: str, epoch: int, step: int, options: Mapping[str, Any]
    ) -> _PackedBatch:
        passes = pipeline._passes(split, 0, 1, options)
        found, rows = passes.reader.packs_of_step(epoch, step), passes.reader.rows
        assert isinstance(passes.finish, FinishArrays)
        packing = passes.finish.packing
        assert packing is not None
        return cls(packing=packing, found=found, rows=_placed(rows, found.rows))

    @property
    def places(self) -> list[dict[str, Any]]:
        """The rows of each of the first packs. The packs of Hugging Face are one sequence."""
        counts = self.found.counts.tolist()
        if self.packing.pack.names == "hf":
            counts = [sum(counts)]
        left = iter(self.rows)
        return [
            {"row": None, "file": None, "record": None, "packed": list(islice(left, count))}
            for count in counts[:MOST_ROWS]
        ]

    def segments(self, column: str) -> list[list[tuple[int, int]]] | None:
        """For each pack, the first place and the number of values of each of its rows; None for a tensor
        whose values are not packed.
        """
        number = self.packing.number_of(column)
        if number is None:
            return None
        places, sizes = self.found.places(number, self.packing.pack.align), self.found.sizes[number]
        pairs = iter(zip(places.tolist(), sizes.tolist(), strict=True))
        return [list(islice(pairs, count)) for count in self.found.counts.tolist()]


def _element(pipeline: Pipeline, split: str, options: Mapping[str, Any]) -> Any:
    """The first batch of a dataset; None if there is none."""
    with pipeline.locating(split):
        return next(iter(pipeline.dataset(split, **options).take(1)), None)


def _check(epoch: int, step: int, steps: int | None) -> None:
    """Raises SpecError for a step that there is not, as `Pipeline.which` does, and for a very late epoch."""
    epoch, step = whole_numbers(epoch=(epoch, 0), step=(step, 0))
    if epoch >= _MOST_EPOCHS:
        raise SpecError(Problem(path=("epoch",), expected=f"a number below {_MOST_EPOCHS}", got=str(epoch)))
    if steps is not None and step >= steps:
        expected = f"a number below {steps}, the batches of an epoch"
        raise SpecError(Problem(path=("step",), expected=expected, got=str(step)))


def _columns(pipeline: Pipeline, element: Any, fit: Fit | None) -> Iterator[_BatchColumn]:
    """The tensors of what a model is given, with the names of their features."""
    schema = pipeline.schema
    specs, is_batch = decoder.batch_spec(schema), pipeline.config.read.batch is not None
    encoded = {} if fit is None else fit.encode
    parts = ("",) if fit is None else fit.parts
    pack = pipeline.config.read.pack
    if pack is not None and isinstance(element, Mapping):  # of trainers that take one dict
        parts = ("",)
    elif pack is not None and len(parts) == 2:  # packs with targets have weights
        parts = (*parts, "weights")
    for name, role, tensor in _tensors(element, parts):
        # of Hugging Face, the places at which sequences begin, and the length of the longest, have no batch
        is_alone = pack is not None and pack.names == "hf" and tensor.shape.rank < 2
        values = _shown(_as_batch(tensor) if is_alone or not is_batch else tensor)
        feature = None if name in encoded else schema.names.get(name)
        if feature is None:
            yield _BatchColumn(name=name, role=role, values=values)
            continue
        was_padded = isinstance(values, tf.Tensor) and is_batch and is_padded(feature, specs[name])
        yield _BatchColumn(
            name=name,
            role=role,
            values=values,
            names=feature.traits.class_names if values.dtype.is_integer else (),
            is_picture=isinstance(feature, Pictures),
            padding=padding_text(schema.padding.get(name), values.dtype.name) if was_padded else None,
        )


def _tensors(element: Any, parts: Sequence[Any]) -> Iterator[tuple[str, str, Any]]:
    """The tensors of what a model is given, each with its name and role.

    Args:
        parts: the names of inputs, targets and weights, as `Fit.parts` has them.
    """
    for part, names, role in zip(element if len(parts) > 1 else [element], parts, _ROLES, strict=False):
        if isinstance(part, Mapping):
            yield from ((name, role, tensor) for name, tensor in part.items())
        else:
            yield " * ".join(_flat(names)), role, part


def _flat(names: Any) -> Iterator[str]:
    """The names of features: of one, of several, or by target."""
    if isinstance(names, str):
        yield names
        return
    for some in names.values() if isinstance(names, Mapping) else names:
        yield from _flat(some)


def _as_batch(tensor: Any) -> Any:
    """A single row as a batch of one."""
    return (tf.sparse if isinstance(tensor, tf.sparse.SparseTensor) else tf).expand_dims(tensor, 0)


def _shown(tensor: Any) -> Any:
    """A tensor of a type that Arrow has: complex numbers are texts."""
    if tensor.dtype.is_complex:
        return tf.strings.as_string(tensor)
    return tf.cast(tensor, tf.float32) if tensor.dtype == tf.bfloat16 else tensor


def _rows_of(tensor: Any) -> Any:
    if isinstance(tensor, tf.RaggedTensor):
        return tensor.nrows()
    return tensor.dense_shape[0] if isinstance(tensor, tf.sparse.SparseTensor) else tensor.shape[0]


def _first(tensor: Any) -> Any:
    """The first rows of a tensor, as many as are shown."""
    if isinstance(tensor, tf.sparse.SparseTensor):
        size = tf.concat([[MOST_ROWS], tensor.dense_shape[1:]], 0)
        return tf.sparse.slice(tensor, tf.zeros_like(size), size)
    return tensor if _rows_of(tensor) <= MOST_ROWS else tensor[:MOST_ROWS]


def _bytes_of(batch: _ModelBatch) -> int:
    """The memory of the tensors of a batch, about: of a string at least 16 bytes."""
    tensors = [
        part for column in batch.columns for part in tf.nest.flatten(column.values, expand_composites=True)
    ]
    return sum(int(tf.size(tensor)) * (tensor.dtype.size or 16) for tensor in tensors)


def _places(
    pipeline: Pipeline, split: str, epoch: int, step: int, count: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Which stored row each of the first rows of a batch is; or none, and why that is not known."""
    try:
        rows, numbers = rows_of_step(pipeline.config.read, partial(pipeline.open, split), epoch, step)
    except RecordspecError as error:  # of options with which it is not known, or files that have no numbers
        note = f"the stored rows of this batch are unknown: {error.problems[0]}"
        if step and pipeline.config.read.shuffle is not None:
            note += "; to show this step, the rows before it in the epoch were read"
        return [{"row": None, "file": None, "record": None}] * count, note
    return _placed(rows, numbers[:count]), None


def _placed(rows: Rows, numbers: Ints) -> list[dict[str, Any]]:
    """Which stored row each row is, and where, and its dataset in a mixture."""
    placed = [
        {"row": number, "file": str(path), "record": record}
        | ({} if rows._block_sizes is None else {"row_of_block": within})
        for number, (path, record, within) in zip(numbers.tolist(), rows.places(numbers), strict=True)
    ]
    if isinstance(rows, MixedRows):
        for place, dataset in zip(placed, rows.datasets_of(numbers).tolist(), strict=True):
            place["dataset"] = rows.plan.names[dataset]
    return placed
