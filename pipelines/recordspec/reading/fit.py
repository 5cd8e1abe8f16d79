"""What `model.fit` takes: decoded features as (inputs, targets, sample weights)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, nearest, one_of

Names = str | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Which features are the model's inputs, targets and sample weights.

    Attributes:
        inputs: one name gives the tensor, several a dict by name.
        targets: the same.
        weights: one name.
    """

    inputs: Names
    targets: Names | None = None
    weights: str | None = None

    def check(self, known: tuple[str, ...]) -> Iterator[Problem]:
        """Names that the schema does not decode to."""
        for part in ("inputs", "targets", "weights"):
            for name in _names(getattr(self, part)):
                if name not in known:
                    hint = nearest(name, known)
                    yield Problem(path=("fit", part), expected=one_of(known), got=f"`{name}`", hint=hint)
        repeated = [name for name in set(_names(self.inputs)) if _names(self.inputs).count(name) > 1]
        if repeated:
            got = f"`{repeated[0]}` again"
            yield Problem(path=("fit", "inputs"), expected="every name once", got=got)
        if not _names(self.inputs):
            yield Problem(path=("fit", "inputs"), expected="at least one feature", got="none")
        if self.weights is not None and self.targets is None:
            yield Problem(path=("fit", "weights"), expected="targets to weigh", got="none")

    def pick(self, features: Mapping[str, Any]) -> Any:
        """The tuple for `model.fit`; ragged and sparse tensors become dense."""
        picked = [_picked(features, self.inputs)]
        for names in (self.targets, self.weights):
            if names is not None:
                picked.append(_picked(features, names))
        return tuple(picked) if len(picked) > 1 else picked[0]


def _names(names: Names | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names or ()


def _picked(features: Mapping[str, Any], names: Names) -> Any:
    wanted = _names(names)
    if len(wanted) == 1:
        return _dense(features[wanted[0]])
    return {name: _dense(features[name]) for name in wanted}


def _dense(value: Any) -> Any:
    """Keras takes ragged and sparse inputs only with some backends and layers."""
    if isinstance(value, tf.RaggedTensor):
        return value.to_tensor()
    if isinstance(value, tf.sparse.SparseTensor):
        return tf.sparse.to_dense(value)
    return value
