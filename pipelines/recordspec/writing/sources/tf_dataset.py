"""A tf.data.Dataset whose elements are dicts of tensors, as `tfds.load` gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recordspec.errors import Problem, SpecError, describe


def is_dataset(rows: Any) -> bool:
    """Whether this is a tf.data.Dataset; TensorFlow is not loaded to find out."""
    kinds = type(rows).__mro__
    return any(kind.__name__ == "DatasetV2" and kind.__module__.startswith("tensorflow.") for kind in kinds)


class Elements:
    """The elements of a dataset as rows.

    Numbers are arrays and strings bytes, ragged values are lists, a sparse one is a pair (indices,
    values). Raises SpecError for a dataset of other elements, and for one without an end.
    """

    def __init__(self, dataset: Any) -> None:
        _check(dataset)
        self._dataset = dataset

    def __len__(self) -> int:
        """Raises TypeError where it is not known."""
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
            got=_named(one),
            hint="map it to a dict of tensors alone",
        )
        for name, one in spec.items()
        if isinstance(one, (Mapping, tuple, list)) or not hasattr(one, "dtype")
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
