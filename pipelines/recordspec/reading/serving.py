"""Exports a trained model with the decoding and the encoding of its training."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError, StoreError, exists, nearest, one_of, system_errors
from recordspec.reading.fit import Fit
from recordspec.schema import decoder
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor

# The signature that TensorFlow Serving calls where a request names none: it takes plain tensors.
TENSORS = "serving_default"
# The signature that takes serialized Examples or SequenceExamples.
EXAMPLES = "examples"
# Arguments of TensorFlow's own function, which calls that of a signature.
_RESERVED = ("self",)
# The suffix of the input with the lengths of the rows of a ragged feature.
_LENGTHS = "_row_lengths"


def export_model(
    model: Any,
    folder: Path,
    schema: Schema,
    fit: Fit,
    layers: Mapping[str, Any],
    mapped: Callable[..., Any] | None,
) -> dict[str, str]:
    """Writes a SavedModel, and returns the names of its inputs. `Pipeline.export_model` documents both."""
    inputs = replace(fit, targets=None, weights=None)

    def predict(features: Mapping[str, Tensor]) -> Any:
        shown = features if mapped is None else mapped({**features})
        return model(inputs.pick(shown, schema, layers, decoded=features))

    def of_examples(examples: Tensor) -> Any:
        return predict(decoder.decode(schema, examples))

    types = decoder.batch_spec(schema)
    names = _input_names(types)
    specs = {
        named: tensor
        for name, spec in types.items()
        for named, tensor in _dense_specs(names[name], spec).items()
    }

    def of_tensors(**tensors: Tensor) -> Any:
        return predict({name: _as_decoded(names[name], spec, tensors) for name, spec in types.items()})

    module = tf.Module()
    module.model, module.layers = model, list(layers.values())  # their variables and tables are saved
    signatures = {
        TENSORS: tf.function(of_tensors).get_concrete_function(**specs),
        EXAMPLES: tf.function(of_examples).get_concrete_function(tf.TensorSpec([None], tf.string, EXAMPLES)),
    }
    if folder.exists():
        raise StoreError(exists(folder, "give a folder that does not"))
    with system_errors("write", folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as name:
            made = Path(name) / "model"
            tf.saved_model.save(module, str(made), signatures)
            made.rename(folder)
    return names


def check_exportable(model: Any) -> None:
    """Raises SpecError for a model of another backend, and for one that was not trained."""
    if tf.keras.backend.backend() != "tensorflow":
        got = tf.keras.backend.backend()
        raise SpecError(
            Problem(path=("model",), expected="one with the TensorFlow backend of Keras", got=got)
        )
    if not callable(model):
        raise SpecError(Problem(path=("model",), expected="a Keras model", got=type(model).__name__))
    if isinstance(model, tf.keras.Model) and not model.built:
        hint = "`model.fit` makes its weights"
        problem = Problem(path=("model",), expected="a trained model", got="one without weights", hint=hint)
        raise SpecError(problem)


def check_inputs(model: Any, fit: Fit) -> None:
    """Raises SpecError for a model of named inputs, of which `fit` does not have one."""
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


def _input_names(types: Mapping[str, Any]) -> dict[str, str]:
    """The names of the inputs of a signature, by feature: TensorFlow takes only names that are arguments of
    Python and begin with a letter, and that differ in more than case.

    A feature keeps its name if that is one. Names that others have get a number: `price_2`, `price_3`.
    """
    names: dict[str, str] = {}
    taken = set[str]()
    for name in sorted(types, key=lambda feature: _safe(feature) != feature):
        safe = _safe(name)
        for number in count(2):
            inputs = {one.lower() for one in _dense_specs(safe, types[name])}
            if taken.isdisjoint(inputs):
                break
            safe = f"{_safe(name)}_{number}"
        names[name] = safe
        taken |= inputs
    return {name: names[name] for name in types}


def _safe(name: str) -> str:
    safe = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not safe[:1].isalpha():
        safe = f"feature_{safe.lstrip('_')}"
    return f"{safe}_" if keyword.iskeyword(safe) or safe in _RESERVED else safe


def _dense_specs(name: str, spec: Any) -> dict[str, Any]:
    """The tensors that a client gives for a decoded feature, whose input has this name, by their names.

    Of a ragged feature, a dense tensor padded to the longest row; if single items vary in number, also the
    length of each row.
    """
    signature = {name: tf.TensorSpec(spec.shape, spec.dtype, name)}
    if isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank == 1:
        signature[name + _LENGTHS] = tf.TensorSpec([None], tf.int64, name + _LENGTHS)
    return signature


def _as_decoded(name: str, spec: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The decoded form of a feature, from the tensors of `_dense_specs`."""
    value = tensors[name]
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.sparse.from_dense(value)
    if not isinstance(spec, tf.RaggedTensorSpec):
        return value
    lengths = tensors.get(name + _LENGTHS)
    return tf.RaggedTensor.from_tensor(value, lengths, ragged_rank=spec.ragged_rank)
