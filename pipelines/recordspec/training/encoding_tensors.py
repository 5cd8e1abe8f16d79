"""Encodes inputs and targets of a model in TensorFlow, by Keras' preprocessing layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.schema.tensors import Tensor, dense, none_is
from recordspec.training.encoding import LOOKUPS, NO_CLASS, Encode, FitEncoder, float_for, unknown_class
from recordspec.training.encoding_statistics import PUNCTUATION, UNKNOWN_INTEGER, UNKNOWN_TEXT, Standardize


def layers(encoders: Mapping[str, FitEncoder]) -> dict[str, Any]:
    """The Keras layer of each encoded feature, by name."""
    return {name: _layer(encoder) for name, encoder in encoders.items()}


def _layer(encoder: FitEncoder) -> Any:
    """The Keras layer of a feature, with what was learned.

    Their dtypes are stated: in those of a global policy of mixed precision, numbers overflow.
    """
    keras, encode, state = tf.keras.layers, encoder.encode, encoder.state
    if encode.as_ == "normalize":
        moments = {name: np.asarray(value) for name, value in state.items()}  # of lists it makes float32
        size = moments["mean"].shape
        axis, dtype = -1 if size else None, encoder.normalized_as
        layer = keras.Normalization(axis=axis, dtype=dtype, **moments)
        layer.build((None, *size))  # until then it has no mean
        return layer
    if encode.as_ == "discretize":
        return keras.Discretization(dtype="float32", **state)
    if encode.as_ == "words":
        return keras.TextVectorization(
            max_tokens=encode.max_tokens,
            standardize=None if encode.standardize == "none" else encode.standardize,
            output_sequence_length=encode.length,
            ragged=encode.length is None,
            vocabulary=np.array(state["vocabulary"], object),
        )
    mode = "int" if encode.as_ == "index" else "one_hot"
    if encoder.is_label:
        return keras.CategoryEncoding(num_tokens=len(encoder.vocabulary), output_mode=mode)
    # of a list, Keras tracks every token, which takes longer than learning them
    vocabulary = np.array(encoder.vocabulary, object if encoder.is_text else np.int64)
    options = {"output_mode": mode, "max_tokens": encode.max_tokens, "vocabulary": vocabulary}
    if encoder.is_target:
        # neither -1 nor a class may mean unknown
        unknown = UNKNOWN_TEXT if encoder.is_text else UNKNOWN_INTEGER
        count = int(encoder.has_unknown)
        options |= {"num_oov_indices": count, "oov_token": unknown if count else None}
    mask = encoder.padding_token
    return (keras.StringLookup if encoder.is_text else keras.IntegerLookup)(mask_token=mask, **options)


def class_names(layer: Any) -> tuple[str, ...]:
    """The classes of a target by index, of its layer; also while a graph is traced."""
    with tf.init_scope():
        return tuple(map(str, layer.get_vocabulary()))


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
    pad = NO_CLASS if encode.as_ == "index" else None
    if not hasattr(layer, "lookup_table") or layer.num_oov_indices:  # a label, whose index is its class
        return apply(value, encode, layer, length, pad=pad)
    flat = tf.reshape(value.flat_values if isinstance(value, tf.RaggedTensor) else value, [-1])
    keys = flat if flat.dtype == tf.string else tf.cast(flat, tf.int64)  # the type of the table's integers
    unknown = layer.lookup_table.lookup(keys) < 0
    problem = unknown_class(name, class_names(layer))
    with tf.control_dependencies([none_is(unknown, flat, str(problem))]):
        value = tf.nest.map_structure(tf.identity, value, expand_composites=True)
    return apply(value, encode, layer, length, pad=pad)


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
        flat = tf.cast(flat, float_for(flat.dtype.name))
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
    if encode.as_ in LOOKUPS:  # Keras' own treats a last dimension of 1 in another way
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


def count_words(texts: Tensor, standardize: Standardize) -> Tensor:
    """The number of words of each text, string `[n]`, as `keras.layers.TextVectorization` splits them: int64
    `[n]`, in a graph or eagerly."""
    if "strip" in standardize:
        texts = tf.strings.regex_replace(texts, PUNCTUATION, "")
    return tf.strings.split(texts).row_lengths()
