"""What `model.fit` takes: decoded features as (inputs, targets, sample weights)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError, nearest, one_of

Names = str | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Which features are the model's inputs, targets and sample weights.

    Attributes:
        inputs: one name gives the tensor, several a dict by name.
        targets: the same.
        weights: one name.
        ragged: `dense` pads ragged features to the longest row of a batch, and fills sparse ones, with 0 or
            the empty string; `keep` leaves both as they are.
        pad: the lengths that ragged features are padded to, so that shapes are static. A longer row is an
            error: InvalidArgumentError, when its batch is made.
    """

    inputs: Names
    targets: Names | None = None
    weights: str | None = None
    ragged: Literal["dense", "keep"] = "dense"
    pad: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = [
            Problem(path=("pad", name), expected="a length of at least 1", got=str(length))
            for name, length in self.pad.items()
            if length < 1
        ]
        if problems:
            raise SpecError(problems)

    @property
    def names(self) -> tuple[str, ...]:
        """All that a model takes."""
        return (*_names(self.inputs), *_names(self.targets), *_names(self.weights))

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
        for name in self.pad:
            if name not in self.names:
                hint = nearest(name, self.names)
                got = f"`{name}`"
                yield Problem(path=("fit", "pad", name), expected=one_of(self.names), got=got, hint=hint)

    def pick(self, features: Mapping[str, Any]) -> Any:
        """The tuple for `model.fit`. Raises SpecError where what is to be padded is not ragged."""
        parts = (self.inputs, self.targets, self.weights)
        picked = [self._picked(features, names) for names in parts if names is not None]
        return tuple(picked) if len(picked) > 1 else picked[0]

    def _picked(self, features: Mapping[str, Any], names: Names) -> Any:
        wanted = {name: self._formed(name, features[name]) for name in _names(names)}
        return wanted if len(wanted) > 1 else next(iter(wanted.values()))

    def _formed(self, name: str, value: Any) -> Any:
        if name in self.pad:
            return _padded(name, value, self.pad[name])
        return value if self.ragged == "keep" else _dense(value)


def _names(names: Names | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names or ()


def _padded(name: str, value: Any, length: int) -> Any:
    """A ragged batch as a dense one `[n, length, ...]`; it would cut a longer row, so that is looked for."""
    path = ("fit", "pad", name)
    if not isinstance(value, tf.RaggedTensor):
        got = f"{value.dtype.name} {value.shape}"
        raise SpecError(Problem(path=path, expected="a batch of a ragged feature", got=got))
    longest = tf.reduce_max(tf.concat([value.row_lengths(), [0]], 0))
    problem = Problem(path=path, expected=f"at most {length} values in a row", got="{}")
    message = tf.strings.format(str(problem), longest)
    with tf.control_dependencies([tf.debugging.Assert(longest <= length, [message])]):
        return value.to_tensor(shape=[None, length, *value.shape[2:]])


def _dense(value: Any) -> Any:
    """Keras takes ragged and sparse inputs only with some backends and layers."""
    if isinstance(value, tf.RaggedTensor):
        return value.to_tensor()
    if isinstance(value, tf.sparse.SparseTensor):
        return tf.sparse.to_dense(value)
    return value
