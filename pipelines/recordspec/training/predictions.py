"""What a served model answers: names and probabilities of classes, or the value of its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError
from recordspec.schema.tensors import Tensor

# What the numbers of a model of classes are; `raw` exports them as they are.
ModelOutputs = Literal["logits", "probabilities", "raw"]

# The name of the output of a model whose outputs have none.
RAW = "outputs"


@dataclass(frozen=True, kw_only=True)
class TargetClasses:
    """The classes of a target.

    Attributes:
        target: its name.
        names: of the classes, by index.
        several: whether a row may be of several, each with a probability of its own.
    """

    target: str
    names: tuple[str, ...]
    several: bool = False

    def answer(self, numbers: Tensor, outputs: ModelOutputs, *, one_by_one: bool) -> dict[str, Tensor]:
        """The names of all classes, string `[n, k]`, and their probabilities, float32 `[n, k]`; unless a row
        may be of several, also the most probable class, string `[n]`, and its probability, float32 `[n]`.

        Args:
            numbers: of a model, float `[n, k]`; of two classes also `[n, 1]` or `[n]`, of the second class.
            outputs: what they are.
            one_by_one: whether logits are those of each class alone.

        Raises SpecError for numbers of another shape.
        """
        count, shape = len(self.names), getattr(numbers, "shape", tf.TensorShape(None))
        rest = None if shape.rank is None else shape[1:].as_list()
        of_second = count == 2 and not self.several and rest in ([], [1])
        if not of_second and rest != [count]:
            expected = f"[n, {count}], a number for each class of `{self.target}`"
            hint = '`outputs="raw"` exports them as they are'
            got = str(shape) if hasattr(numbers, "shape") else type(numbers).__name__
            raise SpecError(Problem(path=("model", "outputs"), expected=expected, got=got, hint=hint))
        if outputs == "logits":
            alone = of_second or self.several or one_by_one
            numbers = tf.sigmoid(numbers) if alone else tf.nn.softmax(numbers)
        probabilities = tf.cast(numbers, tf.float32)
        if of_second:
            second = tf.reshape(probabilities, [-1, 1])
            probabilities = tf.concat([1 - second, second], 1)
        names = tf.constant(self.names)
        classes = tf.broadcast_to(names, tf.shape(probabilities))
        all_classes = {"classes": classes, "probabilities": probabilities}
        if self.several:
            return all_classes
        best = tf.argmax(probabilities, 1)
        return {
            "class": tf.gather(names, best),
            "probability": tf.gather(probabilities, best, batch_dims=1),
            **all_classes,
        }


def outputs_of(model: Any) -> tuple[ModelOutputs, bool]:
    """What the numbers of a Keras model of classes are, and whether logits are those of each class alone: as
    its last activation says, or the loss that it was compiled with.

    Raises SpecError if neither says it, or they say different things.
    """
    activated, loss = _activation(model), _loss(model)
    by_loss = _of_loss(loss)
    one_by_one = _name(loss).lower().startswith(("binary", "bce"))
    if activated == "probabilities" and by_loss != "logits":
        return "probabilities", one_by_one
    if activated != "probabilities" and by_loss == "logits":
        return "logits", one_by_one
    if activated is None and by_loss == "probabilities":
        return "probabilities", one_by_one
    got = "no activation and no loss that says it"
    if activated is not None and by_loss is not None:
        got = f"a last activation of {activated}, and a loss of {by_loss}"
    hint = '`outputs="raw"` exports the numbers as they are'
    expected = "`logits` or `probabilities`, for numbers of classes"
    raise SpecError(Problem(path=("outputs",), expected=expected, got=got, hint=hint))


def _activation(model: Any) -> ModelOutputs | None:
    """What the last activation of a Keras model makes; None if its last layer has none."""
    last = model
    while isinstance(last, tf.keras.Model):
        try:
            (output,) = last.outputs
            last = output._keras_history.operation  # which has no public name
        except (AttributeError, ValueError, TypeError):  # a subclassed model, or one of several outputs
            return None
    keras = tf.keras
    activation = getattr(last, "activation", None)
    named = _name(last if activation is None else activation)
    if named.lower() in ("softmax", "sigmoid"):
        return "probabilities"
    return None if activation is None or not isinstance(last, keras.layers.Layer) else "logits"


def _loss(model: Any) -> Any:
    """The loss of a compiled model; None if it has none, or several."""
    loss = getattr(model, "loss", None)
    if isinstance(loss, Mapping):
        loss = list(loss.values())
    if isinstance(loss, list | tuple):
        loss = loss[0] if len(loss) == 1 else None
    return loss


def _of_loss(loss: Any) -> ModelOutputs | None:
    """What numbers a loss takes; None if it does not say it."""
    from_logits = getattr(loss, "from_logits", None)
    if isinstance(from_logits, bool):
        return "logits" if from_logits else "probabilities"
    named = _name(loss).lower()
    return "probabilities" if named.endswith("crossentropy") or named == "bce" else None


def _name(value: Any) -> str:
    """The name of a function, a class of an object, or a name itself."""
    return value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)
