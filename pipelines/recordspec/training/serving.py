"""Exports a trained model with the decoding and the encoding of its training.

Clients only need the names of features and classes.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recordspec._keras import keras
from recordspec._tf import tf
from recordspec.errors import (
    ExistsError,
    Problem,
    SpecError,
    exists,
    nearest,
    one_of,
    one_of_classes,
    system_errors,
)
from recordspec.schema import decoder
from recordspec.schema.dates import since_epoch_in_graph
from recordspec.schema.features import Feature
from recordspec.schema.features.label import MISSING, Label, indices_of
from recordspec.schema.features.option_checks import WithDefault
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor
from recordspec.training.fit import Fit
from recordspec.training.fit_batch import FitTensors
from recordspec.training.predictions import RAW, ModelOutputs, TargetClasses, outputs_of
from recordspec.wire.columns import Ragged, VarLen

# The signature that TensorFlow Serving calls if a request names none: it takes plain tensors.
TENSORS = "serving_default"
# The signature that takes serialized Examples or SequenceExamples, as they are stored.
EXAMPLES = "examples"
# The attribute of a loaded model with the function of plain tensors, which has defaults for missing tensors.
PREDICT = "predict"
# The arguments of TensorFlow's own function, which calls the function of a signature.
_RESERVED = ("self",)
# The suffix of the input with the lengths of the rows of a ragged feature.
_LENGTHS = "_row_lengths"
# The place of an unknown name in its message.
_PLACE = "{}"


def export_model(
    model: Any,
    folder: Path,
    schema: Schema,
    fit: Fit,
    layers: Mapping[str, Any],
    mapped: Callable[..., Any] | None,
    classes: TargetClasses | None,
    outputs: ModelOutputs | None,
) -> dict[str, str]:
    """Writes a SavedModel, and returns the names of its inputs. `Pipeline.export_model` documents both.

    Args:
        classes: the classes of the target; None if it has none.
        outputs: the kind of outputs of a classifier; None if the model tells it.
    """
    inputs = replace(fit, targets=None, weights=None)
    answer = _answering(model, fit, classes, outputs)

    def predict(features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        shown = features if mapped is None else mapped({**features})
        return answer(model(FitTensors(inputs, shown, features, schema, layers).picked()))

    def of_examples(examples: Tensor) -> dict[str, Tensor]:
        return predict(decoder.decode(schema, examples))

    client_inputs = _client_inputs(schema)

    def of_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        rows = tf.reduce_max([tf.shape(tensors[asked.name])[0] for asked in client_inputs])
        return predict(_merged(asked.decoded(tensors, rows) for asked in client_inputs))

    module = tf.Module()
    module.model, module.layers = model, list(layers.values())  # their variables and tables are saved
    specs = _merged(asked.specs for asked in client_inputs)
    function = _function(of_tensors, specs, _merged(asked.defaults for asked in client_inputs))
    records = {EXAMPLES: tf.TensorSpec([None], tf.string, EXAMPLES)}
    signatures = {
        TENSORS: function,
        EXAMPLES: _function(lambda tensors: of_examples(tensors[EXAMPLES]), records),
    }
    setattr(module, PREDICT, function)
    signatures[EXAMPLES].get_concrete_function()  # raises before anything is written
    if folder.exists():
        raise ExistsError(exists(folder, "give a folder that does not"))
    with system_errors("write", folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as name:
            made = Path(name) / "model"
            tf.saved_model.save(module, str(made), signatures)
            made.rename(folder)
    return {asked.output: asked.name for asked in client_inputs}


def _merged(dicts: Any) -> dict[str, Any]:
    return {name: value for named in dicts for name, value in named.items()}


def _answering(
    model: Any, fit: Fit, classes: TargetClasses | None, outputs: ModelOutputs | None
) -> Callable[[Any], dict[str, Tensor]]:
    """A function that names the outputs of the model. Raises SpecError if the kind of outputs is unknown."""
    if outputs == "raw" or (classes is None and outputs is None):
        alone = fit.targets if isinstance(fit.targets, str) else "".join((fit.targets or ())[:1])
        several = not isinstance(fit.targets, str) and len(fit.targets or ()) > 1
        name = RAW if outputs == "raw" or not alone or several else _safe(alone)
        return lambda numbers: numbers if tf.nest.is_nested(numbers) else {name: numbers}
    if classes is None:
        problem = Problem(path=("outputs",), expected="none for a target without classes", got=f"`{outputs}`")
        raise SpecError(problem)
    chosen, one_by_one = outputs_of(model) if outputs is None else (outputs, False)
    return lambda numbers: classes.answer(numbers, chosen, one_by_one=one_by_one)


def _function(
    body: Callable[[Mapping[str, Tensor]], dict[str, Tensor]],
    specs: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
) -> Any:
    """A function of tensors by name. Its signature has the defaults of tensors, too."""
    known = defaults or {}
    names = sorted(specs, key=lambda name: name in known)  # in Python, arguments with defaults come last

    def call(*tensors: Tensor) -> dict[str, Tensor]:
        return body(dict(zip(names, tensors, strict=True)))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(name, kind, default=known.get(name, inspect.Parameter.empty)) for name in names
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return tf.function(call, input_signature=[specs[name] for name in names], autograph=False)


def check_exportable(model: Any) -> None:
    """Raises SpecError for a model of another backend, and for a model that was not trained."""
    backend = keras.backend.backend()
    if backend != "tensorflow":
        expected = "one with the TensorFlow backend of Keras"
        hint = "save it, and export what `keras.saving.load_model` loads with KERAS_BACKEND=tensorflow"
        raise SpecError(Problem(path=("model",), expected=expected, got=backend, hint=hint))
    if not callable(model):
        raise SpecError(Problem(path=("model",), expected="a Keras model", got=type(model).__name__))
    if isinstance(model, tf.keras.Model) and not model.built:
        hint = "`model.fit` makes its weights"
        problem = Problem(path=("model",), expected="a trained model", got="one without weights", hint=hint)
        raise SpecError(problem)


def check_inputs(model: Any, fit: Fit) -> None:
    """Raises SpecError if a model has a named input that `fit` does not have."""
    try:
        wanted = model.input
    except (AttributeError, ValueError):  # a function, or a model that was not called yet
        return
    names = (fit.inputs,) if isinstance(fit.inputs, str) else fit.inputs
    if isinstance(wanted, Mapping) and len(names) > 1:
        for name in wanted:
            if name not in names:
                hint = nearest(name, names)
                got = f"`{name}`"
                raise SpecError(Problem(path=("model", "inputs"), expected=one_of(names), got=got, hint=hint))


@dataclass(frozen=True, kw_only=True)
class _ClientInput:
    """A decoded tensor in the form in which clients send it.

    Attributes:
        name: the name of the argument.
        output: the name of the decoded tensor.
        feature: the feature that decodes to it.
        spec: the type of a batch of the tensor.
        is_list: whether the tensor is a list that a record may lack; a missing list is empty.
    """

    name: str
    output: str
    feature: Feature
    spec: Any
    is_list: bool

    @property
    def _is_value(self) -> bool:
        return self.output == self.feature.name

    @property
    def _date(self) -> Any:
        return self.feature.value_type.date if self._is_value else None

    @property
    def _default(self) -> Any:
        """The value that replaces a missing value; None if a value is required."""
        if not self._is_value:
            return None
        if isinstance(self.feature, Label):
            return None if self.feature.traits.indicator is None else MISSING
        return self.feature.default if isinstance(self.feature, WithDefault) else None

    @property
    def _dtype(self) -> Any:
        is_name = isinstance(self.feature, Label) and self._is_value
        return tf.string if is_name or self._date is not None else self.spec.dtype

    @property
    def specs(self) -> dict[str, Any]:
        """The types of the tensors that a client sends, by name.

        A ragged feature is a dense tensor, padded to the longest row. If its ragged rank is 1, a second
        tensor has the length of each row.
        """
        signature = {self.name: tf.TensorSpec(self.spec.shape, self._dtype, self.name)}
        if self._has_lengths:
            signature[self.name + _LENGTHS] = tf.TensorSpec([None], tf.int64, self.name + _LENGTHS)
        return signature

    @property
    def _has_lengths(self) -> bool:
        return isinstance(self.spec, tf.RaggedTensorSpec) and self.spec.ragged_rank == 1

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of tensors that may be left out: tensors without rows."""
        left_out: dict[str, Any] = {}
        if self._default is not None or self.is_list:
            left_out[self.name] = _no_rows(self.spec.shape, self._dtype)
        if self._has_lengths:
            left_out[self.name + _LENGTHS] = _no_rows(tf.TensorShape([None]), tf.int64)
        return left_out

    def decoded(self, tensors: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
        """The decoded tensors of the feature, from the tensors of `specs`.

        Args:
            rows: the number of rows of the request, int32 `[]`.
        """
        value = tensors[self.name]
        if isinstance(self.spec, tf.SparseTensorSpec):
            return {self.output: tf.sparse.from_dense(value)}
        if isinstance(self.spec, tf.RaggedTensorSpec):
            lengths = tensors.get(self.name + _LENGTHS)
            if lengths is not None:
                width = tf.cast(tf.shape(value)[1], tf.int64)
                lengths = _completed(lengths, tf.shape(value)[0], width, f"{self.name}{_LENGTHS}")
            if self.is_list:
                lengths = _completed(lengths, rows, tf.zeros([], tf.int64), self.name)
                value = _completed(value, rows, tf.zeros([], value.dtype), self.name)
            value = tf.RaggedTensor.from_tensor(value, lengths, ragged_rank=self.spec.ragged_rank)
        if isinstance(self.feature, Label) and self._is_value:
            return {self.output: self._indices(value)} if self._default is None else self._labels(value, rows)
        if self._default is None:
            return {self.output: self._of_text(value)}
        return self._with_default(value, rows)

    def _with_default(self, value: Tensor, rows: Tensor) -> dict[str, Tensor]:
        """The value, with the default for missing values, and the indicator if the feature has one."""
        count = tf.shape(value)[0]
        filler = tf.constant("" if self._date is not None else self._default, self._dtype)
        value = _completed(value, rows, filler, self.name)
        missing = tf.range(rows) >= count
        if value.dtype.is_floating:
            absent = tf.math.is_nan(value)
            missing |= tf.reduce_all(absent, list(range(1, value.shape.rank)))
        if self._date is not None:
            missing |= value == ""
            value = self._of_text(tf.where(missing, "1970-01-01", value))
        each = tf.reshape(missing, [-1, *[1] * (value.shape.rank - 1)])
        value = tf.where(each, tf.constant(self._default, value.dtype), value)
        indicator = self.feature.traits.indicator
        return {self.output: value} if indicator is None else {self.output: value, indicator: missing}

    def _labels(self, names: Tensor, rows: Tensor) -> dict[str, Tensor]:
        """The indices of class names, and the indicator of missing labels.

        The empty text is missing unless it is a class.
        """
        known, count = self.feature.traits.known_names, tf.shape(names)[0]
        names = _completed(names, rows, tf.constant(""), self.name)
        missing = tf.range(rows) >= count
        if "" not in known:
            missing |= names == ""
        indices = self._indices(tf.where(missing, known[0], names))
        indices = tf.where(missing, tf.constant(MISSING, indices.dtype), indices)
        return {self.output: indices, f"{self.output}_missing": missing}

    def _of_text(self, value: Tensor) -> Tensor:
        """The decoded value: a date is text in a request."""
        return value if self._date is None else since_epoch_in_graph(value, self._date, (self.name,))

    def _indices(self, names: Tensor) -> Tensor:
        """The indices of class names.

        An unknown name raises InvalidArgumentError, unless unknown names have an index.
        """
        known = self.feature.traits.known_names
        problem = Problem(path=(self.name,), expected=one_of_classes(known), got=f"`{_PLACE}`")
        before, _, after = str(problem).rpartition(_PLACE)
        has_index = len(known) < len(self.feature.traits.class_names)
        return indices_of(names, known, None if has_index else (before, after))


def _no_rows(shape: Any, dtype: Any) -> Tensor:
    return tf.zeros([size or 0 for size in (0, *shape[1:].as_list())], dtype)


def _completed(value: Tensor, rows: Tensor, filler: Tensor, name: str) -> Tensor:
    """A tensor of `rows` rows: the value, or if it has no rows, the filler.

    The filler has no more dimensions than one row. Another number of rows raises InvalidArgumentError.
    """
    count = tf.shape(value)[0]
    message = f"{name}: expected as many rows as other inputs have"
    right = tf.debugging.Assert((count == rows) | (count == 0), [message, count, rows])
    with tf.control_dependencies([right]):
        left = rows - count
    more = tf.broadcast_to(filler, tf.concat([left[None], tf.shape(value)[1:]], 0))
    return tf.ensure_shape(tf.concat([value, more], 0), value.shape)


def _client_inputs(schema: Schema) -> list[_ClientInput]:
    """The inputs of a signature of plain tensors: the outputs of the schema.

    Indicators of missing values are left out, as clients do not send them.
    """
    types, made = decoder.batch_spec(schema), []
    for place, feature in schema._placed:
        lists = all(isinstance(column.layout, Ragged | VarLen) for column in feature.columns())
        for output in feature.outputs:
            if output == feature.traits.indicator:
                continue
            spec = types[output]
            is_list = lists and not place.in_steps and _is_ragged_list(spec)
            made.append(
                _ClientInput(name=_safe(output), output=output, feature=feature, spec=spec, is_list=is_list)
            )
    names = _input_names(made)
    return [replace(asked, name=names[asked.output]) for asked in made]


def _is_ragged_list(spec: Any) -> bool:
    return isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank == 1


def _input_names(inputs: list[_ClientInput]) -> dict[str, str]:
    """The names of the inputs of a signature, by decoded tensor.

    TensorFlow takes only names that are valid arguments in Python, begin with a letter, and differ in more
    than case. A name that is valid is kept. A name that is taken gets a number: `price_2`, `price_3`.
    """
    names: dict[str, str] = {}
    taken = set[str]()
    for asked in sorted(inputs, key=lambda asked: _safe(asked.output) != asked.output):
        numbered = asked
        for number in count(2):
            signature = {name.lower() for name in numbered.specs}
            if taken.isdisjoint(signature):
                break
            numbered = replace(asked, name=f"{asked.name}_{number}")
        names[asked.output] = numbered.name
        taken |= signature
    return names


def _safe(name: str) -> str:
    safe = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not safe[:1].isalpha():
        safe = f"feature_{safe.lstrip('_')}"
    return f"{safe}_" if keyword.iskeyword(safe) or safe in _RESERVED else safe
