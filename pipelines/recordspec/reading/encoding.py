"""Encodes inputs and targets of a model by Keras' preprocessing layers, whose statistics are those of one
split."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError, StoreError, one_of, show_text
from recordspec.locations import Location, output_file, read_text
from recordspec.reading.statistics import (
    UNKNOWN_INTEGER,
    UNKNOWN_TEXT,
    Bins,
    Learner,
    MeanAndVariance,
    Standardize,
    Vocabulary,
    WordVocabulary,
    count_words,
)
from recordspec.schema.decoder import batch_spec
from recordspec.schema.features import Feature
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor, dense, none_is

_LOOKUPS = ("index", "one_hot", "multi_hot", "count")
# What makes classes of a target.
_OF_TARGETS = ("index", "one_hot", "multi_hot")
# The padding of a list of classes, as that of a label: no class, and Keras' `ignore_class`.
_NO_CLASS = -1
_MOST_CLASSES_SHOWN = 10
_BINS = 10
# The largest file of statistics: it contains vocabularies.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Encode:
    """How an input or a target is encoded.

    Attributes:
        as_: `normalize` scales numbers to mean 0 and variance 1 (`keras.layers.Normalization`, separately
            along the last axis); `index` maps a text or integer to its index in a vocabulary
            (`StringLookup`, `IntegerLookup`), `one_hot` to a vector with a 1 at that index, `multi_hot` and
            `count` a list to one vector; `discretize` maps a number to the index of its bin
            (`Discretization`); `words` maps a text to the indices of its words (`TextVectorization`). The
            vocabulary of a label is its classes. For lists and words, index 0 is padding. A value that
            `with_missing` marks as missing is normalized to 0.0, the mean, and looked up as an unknown one;
            such a text has no words, and `discretize` returns the bin of its default. A target takes `index`,
            `one_hot` and `multi_hot`: its classes are the sorted values in the split, and another one is an
            InvalidArgumentError; lists are padded with -1.
        max_tokens: the size of the vocabulary, with the most frequent texts or integers, and one index
            for all others, the first; by default all values in the split. Of `words`, padding has one, too.
        bins: the number of bins of `discretize`, with about equal counts; 10 by default.
        length: the number of words to which texts are cut or padded with 0; by default those of the longest
            text of a batch.
        standardize: how a text is changed before it is split at spaces: by default, letters of ASCII become
            lower case, and its punctuation is removed.
    """

    SHORT_FORM: ClassVar[str] = "as_"

    as_: Literal["normalize", "index", "one_hot", "multi_hot", "count", "discretize", "words"]
    max_tokens: int | None = None
    bins: int | None = None
    length: int | None = None
    standardize: Standardize = "lower_and_strip_punctuation"

    def __post_init__(self) -> None:
        problems = []
        for option, value, least, ways in (
            ("max_tokens", self.max_tokens, 3 if self.as_ == "words" else 2, (*_LOOKUPS, "words")),
            ("bins", self.bins, 2, ("discretize",)),
            ("length", self.length, 1, ("words",)),
        ):
            if value is not None and self.as_ not in ways:
                expected = f"none with `as: {self.as_}`"
                problems.append(Problem(path=(option,), expected=expected, got=str(value)))
            elif value is not None and value < least:
                expected = f"at least {least}"
                problems.append(Problem(path=(option,), expected=expected, got=str(value)))
        if self.standardize != Encode.standardize and self.as_ != "words":
            expected = f"none with `as: {self.as_}`"
            problems.append(Problem(path=("standardize",), expected=expected, got=self.standardize))
        if problems:
            raise SpecError(problems)

    @property
    def has_unknown(self) -> bool:
        """Whether there is an encoding for an unknown value, which missing ones get."""
        return self.as_ != "discretize"

    def problem(self, feature: Feature, *, in_steps: bool) -> Problem | None:
        """The problem of a feature, or one of each step, that cannot be encoded so."""
        value_type = feature.value_type
        is_number = value_type.is_number and value_type.item != "bool"
        if self.as_ == "normalize":
            expected, fits = "numbers", is_number or value_type.item == "media"
        elif self.as_ == "discretize":
            expected, fits = "numbers of one shape", is_number and None not in value_type.shape
            fits = fits and not in_steps
        elif self.as_ == "words":
            expected, fits = "one text", value_type.item == "text" and not value_type.shape and not in_steps
        else:
            expected, fits = (
                "text, integers or a label",
                value_type.item == "text" or "int" in value_type.item,
            )
            fits = fits or (value_type.item == "class" and self.as_ != "index")  # a label is its index
        if fits and self.max_tokens is not None and feature.class_names:
            got = str(self.max_tokens)
            return Problem(path=("max_tokens",), expected="none of a label, which has its classes", got=got)
        if fits:
            return None
        got = f"`{feature.name}`, {feature.kind} of {value_type.item}"
        return Problem(expected=f"{expected} {'for' if self.as_ == 'words' else 'to'} {self.as_}", got=got)

    def problem_of_target(self, feature: Feature) -> Problem | None:
        """The problem of a target that cannot be encoded so."""
        if self.as_ not in _OF_TARGETS:
            return Problem(expected=f"{one_of(_OF_TARGETS)}, for a target", got=f"`{self.as_}`")
        return self.problem(feature, in_steps=False)


def apply_to_row(
    value: Tensor, encode: Encode, layer: Any, length: int | None = None, missing: Tensor | None = None
) -> Tensor:
    """Like `apply`, for the value of one row."""
    of_one = None if missing is None else tf.expand_dims(missing, 0)
    return apply(tf.expand_dims(value, 0), encode, layer, length, of_one)[0]


def apply_to_target(
    value: Tensor, name: str, encode: Encode, layer: Any, length: int | None, *, batched: bool
) -> Tensor:
    """Encodes a batch of a target, or with `batched=False` one row, as `apply` does an input.

    Lists of indices are padded with -1. A value that is no class is an InvalidArgumentError.
    """
    if not batched:
        return apply_to_target(tf.expand_dims(value, 0), name, encode, layer, length, batched=True)[0]
    pad = _NO_CLASS if encode.as_ == "index" else None
    if not hasattr(layer, "lookup_table") or layer.num_oov_indices:  # a label, whose index is its class
        return apply(value, encode, layer, length, pad=pad)
    flat = tf.reshape(value.flat_values if isinstance(value, tf.RaggedTensor) else value, [-1])
    unknown = layer.lookup_table.lookup(flat) < 0
    shown = class_names(layer)
    expected = one_of(shown) if len(shown) <= _MOST_CLASSES_SHOWN else f"one of {len(shown):,} classes"
    hint = "`max_tokens` gives all others one class"
    path = ("fit", "encode", name)
    problem = Problem(path=path, expected=f"{expected}, as in the training split", got="`{}`", hint=hint)
    with tf.control_dependencies([none_is(unknown, flat, str(problem))]):
        value = tf.nest.map_structure(tf.identity, value, expand_composites=True)
    return apply(value, encode, layer, length, pad=pad)


def class_names(layer: Any) -> tuple[str, ...]:
    """The classes of a target by index, of its layer; also while a graph is traced."""
    with tf.init_scope():
        return tuple(map(str, layer.get_vocabulary()))


def apply(
    value: Tensor,
    encode: Encode,
    layer: Any,
    length: int | None = None,
    missing: Tensor | None = None,
    pad: int | None = None,
) -> Tensor:
    """Encodes a batch to a dense tensor.

    Args:
        value: dense `[n, ...]`, or ragged.
        layer: one of `layers`.
        length: the length to which the rows of a ragged batch are padded.
        missing: which values of a dense batch are unknown, bool `[n]`; None if none is.
        pad: the padding of shorter rows; None for 0.
    """
    if encode.as_ == "words":
        return dense(words(value, layer, missing), None)
    flat = value.flat_values if isinstance(value, tf.RaggedTensor) else value
    if encode.as_ == "normalize":
        flat = tf.cast(flat, _float(flat.dtype))
    if missing is not None:
        unknown = (
            layer.mean
            if encode.as_ == "normalize"
            else UNKNOWN_TEXT
            if flat.dtype == tf.string
            else UNKNOWN_INTEGER
        )
        each = tf.reshape(missing, [-1, *[1] * (flat.shape.rank - 1)])
        flat = tf.where(each, tf.cast(unknown, flat.dtype), flat)
    if encode.as_ in _LOOKUPS:  # Keras' own treats a last dimension of 1 in another way
        codes = layer(tf.reshape(flat, [-1]))
        if encode.as_ != "index":  # a vector; versions of Keras differ in its dtype
            codes = tf.cast(codes, tf.float32)
        made = tf.reshape(codes, tf.concat([tf.shape(flat), tf.shape(codes)[1:]], 0))
        made = tf.ensure_shape(made, [*flat.shape, *codes.shape[1:]])
    elif encode.as_ == "normalize":
        made = tf.cast(layer(flat), tf.float32)
    else:
        made = layer(tf.cast(flat, tf.float32))
    if isinstance(value, tf.RaggedTensor):
        made = value.with_flat_values(made)
    if encode.as_ in ("multi_hot", "count"):
        while made.shape.rank > 2:
            made = tf.reduce_sum(made, 1)
        return tf.minimum(made, 1.0) if encode.as_ == "multi_hot" else made
    return dense(made, pad, length)


def words(texts: Tensor, layer: Any, missing: Tensor | None = None) -> Tensor:
    """The indices of words of texts, string `[n]`: int64 `[n, length]`, or ragged `[n, (k)]`.

    Args:
        layer: one of `layers`.
        missing: which texts are missing, and have no words, bool `[n]`; None if none is.
    """
    if missing is not None:
        texts = tf.where(missing, "", texts)
    return layer(texts)


def measures(encodes: Mapping[str, Encode]) -> dict[str, Callable[[Tensor], Tensor]]:
    """The length by which rows are bucketed, of each feature that is measured in another way than as it
    decodes: a text in words, if it is encoded so."""

    def in_words(encode: Encode) -> Callable[[Tensor], Tensor]:
        return lambda texts: count_words(texts, encode.standardize)

    return {name: in_words(encode) for name, encode in encodes.items() if encode.as_ == "words"}


def _float(dtype: Any) -> Any:
    """In which numbers of a dtype are normalized: float32 would round times, for example, and then
    subtract the mean from them."""
    return tf.float32 if dtype == tf.float32 or dtype.size < 4 else tf.float64


def _learner(feature: Feature, encode: Encode, batch: Any, *, is_target: bool) -> Learner:
    """What learns the state of a feature's layer. Raises SpecError for a padded or a sparse `batch`, the type
    of one."""
    padded = isinstance(batch, tf.TensorSpec) and None in batch.shape[1:].as_list()
    if padded or isinstance(batch, tf.SparseTensorSpec):
        kind = "a padded" if padded else "a sparse"
        raise _problem(feature, "a feature without padding", f"{kind} batch", "`as: ragged`")
    masked = not is_target and _has_padding(encode, batch)
    if masked and encode.max_tokens == 2:
        raise _problem(feature, "`max_tokens` of at least 3, as padding and unknown values are two", "2")
    if encode.as_ == "normalize":
        return MeanAndVariance()
    if encode.as_ == "discretize":
        return Bins(encode.bins or _BINS)
    if encode.as_ == "words":
        return WordVocabulary(
            encode.standardize, None if encode.max_tokens is None else encode.max_tokens - 2
        )
    most = None if encode.max_tokens is None else encode.max_tokens - (2 if masked else 1)
    is_text = feature.value_type.item == "text"
    return Vocabulary(is_text=is_text, most=most, mask="" if masked else None, classes=is_target)


def _problem(feature: Feature, expected: str, got: str, hint: str = "") -> SpecError:
    path = ("fit", "encode", feature.name)
    return SpecError(Problem(path=path, expected=expected, got=got, hint=hint))


def _layer(feature: Feature, encode: Encode, batch: Any, state: Mapping[str, Any], *, is_target: bool) -> Any:
    """The Keras layer of a feature, of batches of this type, with what was learned.

    Their dtypes are stated: in those of a global policy of mixed precision, numbers overflow.
    """
    layers = tf.keras.layers
    if encode.as_ == "normalize":
        moments = {name: np.asarray(value) for name, value in state.items()}  # of lists it makes float32
        size = moments["mean"].shape
        axis, dtype = -1 if size else None, _float(batch.dtype).name
        if (moments["variance"] > np.finfo(np.float32).max).any():
            dtype = "float64"
        layer = layers.Normalization(axis=axis, dtype=dtype, **moments)
        layer.build((None, *size))  # until then it has no mean
        return layer
    if encode.as_ == "discretize":
        return layers.Discretization(dtype="float32", **state)
    if encode.as_ == "words":
        return layers.TextVectorization(
            max_tokens=encode.max_tokens,
            standardize=None if encode.standardize == "none" else encode.standardize,
            output_sequence_length=encode.length,
            ragged=encode.length is None,
            vocabulary=np.array(state["vocabulary"], object),
        )
    mode = "int" if encode.as_ == "index" else "one_hot"
    if feature.class_names:
        return layers.CategoryEncoding(num_tokens=len(feature.class_names), output_mode=mode)
    is_text = feature.value_type.item == "text"
    # of a list, Keras tracks every token, which takes longer than learning them
    vocabulary = np.array(state["vocabulary"], object if is_text else np.int64)
    options = {"output_mode": mode, "max_tokens": encode.max_tokens, "vocabulary": vocabulary}
    padded = not is_target and _has_padding(encode, batch)
    if is_target:
        # neither -1 nor a class may mean unknown
        unknown = None if encode.max_tokens is None else UNKNOWN_TEXT if is_text else UNKNOWN_INTEGER
        options |= {"num_oov_indices": 0 if unknown is None else 1, "oov_token": unknown}
    if is_text:
        return layers.StringLookup(mask_token="" if padded else None, **options)
    # neither an integer of the vocabulary nor -1, which means unknown
    mask = min([0, *state["vocabulary"]]) - 2 if padded else None
    return layers.IntegerLookup(mask_token=mask, **options)


def _has_padding(encode: Encode, batch: Any) -> bool:
    """Whether the padding of batches of this type has an index."""
    return encode.as_ == "index" and isinstance(batch, tf.RaggedTensorSpec)


def layers(
    schema: Schema,
    encodes: Mapping[str, Encode],
    targets: Set[str],
    fingerprint: str,
    kept: Location,
    batches: Callable[[Iterable[str]], Iterable[Mapping[str, Any]]],
) -> dict[str, Any]:
    """The Keras layer of each encoded feature, by name, with the statistics of a split.

    Args:
        targets: those of them that are targets.
        fingerprint: the fingerprint of the rows of the statistics.
        kept: the file of the statistics, which is read if it has this fingerprint and is valid, else written.
        batches: reads these features of the split, as `Schema.decode_numpy` returns them.

    Raises what reading raises, and SpecError for values from which a layer cannot learn.
    """
    types = batch_spec(schema)
    learned = {name: encode for name, encode in encodes.items() if not schema.names[name].class_names}
    states = _kept_states(kept, fingerprint, learned, types)
    if states is None:
        learning = {
            name: _learner(schema.names[name], encode, types[name], is_target=name in targets)
            for name, encode in learned.items()
        }
        for batch in batches(learning) if learning else ():
            for name, learner in learning.items():
                learner.add(batch[name], batch.get(schema.names[name].indicator or ""))
        states = {name: _state(schema.names[name], learner) for name, learner in learning.items()}
        _keep(kept, fingerprint, states)
    return {
        name: _layer(schema.names[name], encode, types[name], states.get(name, {}), is_target=name in targets)
        for name, encode in encodes.items()
    }


def _state(feature: Feature, learner: Learner) -> dict[str, Any]:
    try:
        return learner.state()
    except SpecError as error:
        raise SpecError(problem.under("fit", "encode", feature.name) for problem in error.problems) from None


def _kept_states(
    path: Location, fingerprint: str, encodes: Mapping[str, Encode], types: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The states in a file; None if there is no file, it is for other rows, or it is invalid, with a warning.

    Args:
        encodes: the encoding of each feature with a state.
        types: the type of a batch of each.
    """
    try:
        stored = json.loads(read_text(path, _MOST_BYTES))
        if stored["fingerprint"] != fingerprint:
            return None
        states: dict[str, Any] = stored["layers"]
        for name, encode in encodes.items():
            if not _is_state(encode, types[name], states[name]):
                raise ValueError(f"`{name}` has none of `{encode.as_}`")
        return states
    except (StoreError, SpecError) as error:
        reason = "" if isinstance(error.__cause__, FileNotFoundError) else str(error)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"{path}: {'no ' if isinstance(error, KeyError) else ''}{error}"
    if reason:
        text = f"the statistics of `fit.encode` are computed again: {reason}"
        warnings.warn(show_text(text), stacklevel=5)
    return None


def _is_state(encode: Encode, batch: Any, state: Mapping[str, Any]) -> bool:
    """Whether a layer of batches of this type can have the state. Raises what wrong types raise."""
    if encode.as_ == "normalize":
        mean, variance = (np.asarray(state[name]) for name in ("mean", "variance"))
        item = batch.shape[getattr(batch, "ragged_rank", 0) + 1 :]
        return (
            mean.shape == variance.shape
            and item[-1:].is_compatible_with(mean.shape)
            and bool(np.isfinite([mean, variance]).all() and (variance >= 0).all())
        )
    if encode.as_ == "discretize":
        bounds = np.asarray(state["bin_boundaries"])
        return bounds.ndim == 1 and bool(np.isfinite(bounds).all() and (np.diff(bounds) >= 0).all())
    tokens = state["vocabulary"]
    kind = str if batch.dtype == tf.string else int
    return bool(tokens) and len({*tokens}) == len(tokens) and {*map(type, tokens)} == {kind}


def _keep(path: Location, fingerprint: str, states: Mapping[str, Any]) -> None:
    text = json.dumps({"fingerprint": fingerprint, "layers": states}, ensure_ascii=False)
    try:
        with output_file(path, force=True) as file:
            file.write_text(text, encoding="utf-8")
    except (StoreError, SpecError, OSError) as error:  # such as a dataset that may only be read
        warnings.warn(f"the statistics of `fit.encode` are not kept: {error}", stacklevel=5)
