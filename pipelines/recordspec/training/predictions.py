"""The answers of a served model: names and probabilities of classes, or the value of its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError
from recordspec.schema.tensors import Tensor

# The kinds of outputs of a classifier; `raw` exports them unchanged.
ModelOutputs = Literal["logits", "probabilities", "raw"]

# The name of an output of a model without names.
RAW = "outputs"


@dataclass(frozen=True, kw_only=True)
class TargetClasses:
    """The classes of a target.

    Attributes:
        target: the name of the target.
        names: the names of the classes, by index.
        several: whether a row may have several classes, each with a probability of its own.
    """

    target: str
    names: tuple[str, ...]
    several: bool = False

    def answer(self, numbers: Tensor, outputs: ModelOutputs, *, one_by_one: bool) -> dict[str, Tensor]:
        """Returns the names of all classes, string `[n, k]`, and their probabilities, float32 `[n, k]`.

        Unless a row may have several classes, also returns the most probable class, string `[n]`, and its
        probability, float32 `[n]`.

        Args:
            numbers: the outputs of a model, float `[n, k]`; for two classes also `[n, 1]` or `[n]`, the
                output for the second class.
            outputs: the kind of the numbers.
            one_by_one: whether each logit is of its class alone, so that a sigmoid replaces the softmax.

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
    """The kind of outputs of a Keras classifier, and whether each logit is of its class alone.

    The last activation tells the kind, or the loss of `compile`. Raises SpecError if neither tells it, or if
    they disagree.
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
    got = "neither an activation nor a loss that tells the kind"
    if activated is not None and by_loss is not None:
        got = f"a last activation of {activated}, and a loss of {by_loss}"
    hint = '`outputs="raw"` exports the numbers as they are'
    expected = "`logits` or `probabilities`, for numbers of classes"
    raise SpecError(Problem(path=("outputs",), expected=expected, got=got, hint=hint))


def _activation(model: Any) -> ModelOutputs | None:
    """The kind of numbers that the last activation of a Keras model returns; None without an activation."""
    last = model
    while isinstance(last, tf.keras.Model):
        try:
            (output,) = last.outputs
            last = output._keras_history.operation  # it has no public name
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
    """The kind of numbers that a loss takes; None if the loss does not tell it."""
    from_logits = getattr(loss, "from_logits", None)
    if isinstance(from_logits, bool):
        return "logits" if from_logits else "probabilities"
    named = _name(loss).lower()
    return "probabilities" if named.endswith("crossentropy") or named == "bce" else None


def _name(value: Any) -> str:
    """The name of a function, or of the class of an object; a text is the name itself."""
    return value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)
