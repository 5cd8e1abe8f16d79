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
    """The Keras layer of a feature, with the learned state.

    The dtype of a layer is explicit: numbers overflow in the dtype of a global mixed precision policy.
    """
    keras, encode, state = tf.keras.layers, encoder.encode, encoder.state
    if encode.as_ == "normalize":
        moments = {name: np.asarray(value) for name, value in state.items()}  # lists would become float32
        size = moments["mean"].shape
        axis, dtype = -1 if size else None, encoder.normalized_as
        layer = keras.Normalization(axis=axis, dtype=dtype, **moments)
        layer.build((None, *size))  # before, it has no mean
        return layer
    if encode.as_ == "discretize":
        return keras.Discretization(dtype="float32", **state)
    if encode.as_ == "words":
        return keras.TextVectorization(
            max_tokens=encode.max_tokens,
            standardize=None if encode.standardize == "none" else encode.standardize,
            output_sequence_length=None if encoder.is_target else encode.length,
            ragged=encoder.is_target or encode.length is None,
            vocabulary=np.array(state["vocabulary"], object),
        )
    mode = "int" if encode.as_ == "index" else "one_hot"
    if encoder.is_label:
        return keras.CategoryEncoding(num_tokens=len(encoder.vocabulary), output_mode=mode)
    # an array: Keras tracks every token of a list, which takes longer than learning the tokens
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
    """The classes of a target by index, from its layer; also while a graph is traced."""
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
    """Encodes a batch of a target, or with `batched=False` one row, as `apply` encodes an input.

    Lists of indices are padded with -1. A value that is not a class raises InvalidArgumentError.
    """
    if not batched:
        return apply_to_target(tf.expand_dims(value, 0), name, encode, layer, length, batched=True)[0]
    pad = NO_CLASS if encode.as_ == "index" else None
    if not hasattr(layer, "lookup_table") or layer.num_oov_indices:  # a label: its value is its index
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
        layer: the layer of the feature, from `layers`.
        length: the length to which the rows of a ragged batch are padded.
        missing: bool `[n]`, true for values of a dense batch to encode as unknown; None if there are none.
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
    if encode.as_ in LOOKUPS:  # flat, as Keras treats a last dimension of 1 in another way
        codes = _codes(tf.reshape(flat, [-1]), encode, layer, may_lack=missing is not None)
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


def _codes(values: Tensor, encode: Encode, layer: Any, *, may_lack: bool) -> Tensor:
    """The indices of values `[n]` in the vocabulary of a layer, or their vectors, float32 `[n, depth]`."""
    if encode.as_ == "index":
        return layer(values)
    if hasattr(layer, "lookup_table") or not may_lack:
        return tf.cast(layer(values), tf.float32)  # versions of Keras differ in the dtype
    is_class = tf.cast(values >= 0, tf.float32)[:, tf.newaxis]  # a missing label is -1
    return tf.cast(layer(tf.maximum(values, 0)), tf.float32) * is_class


def words(texts: Tensor, layer: Any, missing: Tensor | None = None) -> Tensor:
    """The indices of the words of texts: int64 `[n, length]`, or ragged `[n, (k)]`.

    Args:
        texts: string `[n]`.
        layer: the layer of the feature, from `layers`.
        missing: bool `[n]`, true for missing texts, which have no words; None if there are none.
    """
    if missing is not None:
        texts = tf.where(missing, "", texts)
    return layer(texts)


def target_words(texts: Tensor, encode: Encode, layer: Any, *, shifted: bool) -> Tensor:
    """The indices of the words of a target and of its end token, or of its start token and its words.

    Both have as many steps: step `i` of the target is the token after step `i` of the shifted one.

    Args:
        texts: string `[n]`.
        layer: the layer of the target, from `layers`.
        shifted: whether the sequence begins with the start token, for the input of a decoder.

    Returns int64, ragged `[n, (k)]`.
    """
    with tf.init_scope():  # the vocabulary is not part of a graph
        start = layer.vocabulary_size()
    each = tf.ones([tf.shape(texts)[0], 1], tf.int64)
    if shifted:
        made = tf.concat([tf.RaggedTensor.from_tensor(each * start), layer(texts)], 1)
        made = made if encode.end else made[:, :-1]
    else:
        made = layer(texts)
        made = tf.concat([made, tf.RaggedTensor.from_tensor(each * (start + 1))], 1) if encode.end else made
    return made if encode.length is None else made[:, : encode.length]


def word_mask(texts: Tensor, encode: Encode, missing: Tensor | None, *, is_target: bool) -> Tensor:
    """The mask of a text that is encoded as words: bool `[n, length]`, from the number of words.

    Args:
        texts: string `[n]`.
        missing: bool `[n]`, true for missing texts, which have no words; None if there are none.
        is_target: whether an end token may follow the words.
    """
    if missing is not None:
        texts = tf.where(missing, "", texts)
    lengths = count_words(texts, encode.standardize) + int(is_target and encode.end)
    return tf.sequence_mask(lengths, encode.length)


def measures(encodes: Mapping[str, Encode]) -> dict[str, Callable[[Tensor], Tensor]]:
    """By feature, the function that measures it to bucket rows by length: the number of words of a text.

    Only texts that are encoded as words have a function. Other features are measured as they decode.
    """

    def in_words(encode: Encode) -> Callable[[Tensor], Tensor]:
        return lambda texts: count_words(texts, encode.standardize)

    return {name: in_words(encode) for name, encode in encodes.items() if encode.as_ == "words"}


def count_words(texts: Tensor, standardize: Standardize) -> Tensor:
    """The number of words of each text, as `keras.layers.TextVectorization` splits it.

    Returns int64 `[n]` for string `[n]`, in a graph or eagerly.
    """
    if "strip" in standardize:
        texts = tf.strings.regex_replace(texts, PUNCTUATION, "")
    return tf.strings.split(texts).row_lengths()
