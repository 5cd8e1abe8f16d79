"""Encodes inputs and targets of a model in NumPy and Arrow, as Keras' layers do in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import RecordError
from recordspec.schema.ragged_array import RaggedArray
from recordspec.schema.values import Array
from recordspec.training.encoding import NO_CLASS, Encode, FitEncoder, float_for, unknown_class
from recordspec.training.encoding_statistics import Standardize, split_words
from recordspec.wire.arrays import Ints, Mask, offsets, present_in

# The smallest deviation by which Keras divides. Keras does not add it to the variance.
_LEAST_DEVIATION = np.float32(1e-7)


def encoded_target(value: Any, encoder: FitEncoder, length: int | None) -> Array:
    """Encodes a batch of a target, as `encoded` encodes a batch of an input.

    Lists of indices are padded with -1. Raises RecordError for a value that is not a class.
    """
    pad, codes = NO_CLASS if encoder.encode.as_ == "index" else None, None
    if not encoder.is_label and not encoder.has_unknown:
        codes = class_codes(value, encoder)
    return encoded(value, encoder, length, pad=pad, codes=codes)


def class_codes(value: Any, encoder: FitEncoder) -> Ints:
    """The classes of all values of a target, int64 `[m]`. Raises RecordError for a value that is no class."""
    flat = _flat(value).reshape(-1)
    codes = _codes(flat, encoder)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        first = flat[unknown[0]]
        shown = first.decode(errors="replace") if isinstance(first, bytes) else str(first)
        problem = unknown_class(encoder.feature.name, encoder.class_names)
        raise RecordError(replace(problem, got=f"`{shown}`"))
    return codes


def target_words(texts: Array, encoder: FitEncoder, *, shifted: bool) -> RaggedArray:
    """The indices of the words of a target and of its end token, or of its start token and its words.

    Both have as many steps: step `i` of the target is the token after step `i` of the shifted one.

    Args:
        texts: bytes `[n]`.
        shifted: whether the sequence begins with the start token, for the input of a decoder.
    """
    split, lengths = _words_of(texts, encoder.encode.standardize)
    has_end, start = int(encoder.encode.end), encoder.start
    steps = lengths + has_end
    # the words of a row, the step after them, and for the shifted sequence the step before them
    tokens = np.full(int((lengths + 1).sum()), start if shifted else start + 1, np.int64)
    firsts = np.cumsum(lengths + 1) - (lengths + 1)
    places = np.arange(len(split)) + np.repeat(np.arange(len(lengths)), lengths)
    tokens[places + shifted] = _codes(split, encoder)
    kept = np.arange(len(tokens)) - np.repeat(firsts, lengths + 1)
    longest = encoder.encode.length
    most = steps if longest is None else np.minimum(steps, longest)
    return RaggedArray(tokens[kept < np.repeat(most, lengths + 1)], most)


def word_mask(texts: Array, encoder: FitEncoder, missing: Mask | None = None) -> Array:
    """The mask of a text that is encoded as words: bool `[n, length]`, from the number of words.

    Args:
        texts: bytes `[n]`.
        missing: bool `[n]`, true for missing texts, which have no words; None if there are none.
    """
    lengths, length = count_words(texts, encoder.encode.standardize), encoder.encode.length
    if missing is not None:
        lengths = np.where(missing, 0, lengths)
    if encoder.is_target:
        lengths = lengths + int(encoder.encode.end)
    width = int(lengths.max(initial=0)) if length is None else length
    mask: Array = np.arange(width) < lengths[:, None]
    return mask


def encoded(
    value: Any,
    encoder: FitEncoder,
    length: int | None = None,
    missing: Mask | None = None,
    pad: int | None = None,
    codes: Ints | None = None,
) -> Array:
    """Encodes a batch to a dense array.

    Args:
        value: an array `[n, ...]`, or a RaggedArray.
        length: the length to which the rows of a ragged batch are padded.
        missing: bool `[n]`, true for values of a dense batch to encode as unknown; None if there are none.
        pad: the padding of shorter rows; None for 0.
        codes: the indices of all values in the vocabulary, int64 `[m]`, if they are known.
    """
    as_ = encoder.encode.as_
    if as_ == "words":
        indices = words(value, encoder, missing)
        return indices.to_dense() if isinstance(indices, RaggedArray) else indices
    flat = _flat(value)
    if as_ == "normalize":
        made = _normalized(flat, encoder, missing)
    elif as_ == "discretize":
        bounds = np.asarray(encoder.state["bin_boundaries"], np.float32)
        made = np.searchsorted(bounds, flat.astype(np.float32), "right").astype(np.int32)
    else:
        codes = (_codes(flat.reshape(-1), encoder) if codes is None else codes).reshape(flat.shape)
        if missing is not None and not encoder.is_label:  # a missing label is -1, in no place of a vector
            codes = np.where(missing.reshape(-1, *[1] * (codes.ndim - 1)), int(encoder.has_padding), codes)
        if as_ in ("multi_hot", "count"):
            counts = _counts(codes, _row_lengths(value), encoder.depth)
            return np.minimum(counts, 1) if as_ == "multi_hot" else counts
        made = codes if as_ == "index" else _one_hot(codes, encoder.depth)
    return value.with_flat(made).to_dense(pad, length) if isinstance(value, RaggedArray) else made


def words(texts: Array, encoder: FitEncoder, missing: Mask | None = None) -> Any:
    """The indices of the words of texts: int64 `[n, length]`, or a RaggedArray without a `length`.

    Args:
        texts: bytes `[n]`.
        missing: bool `[n]`, true for missing texts, which have no words; None if there are none.
    """
    split, lengths = _words_of(texts, encoder.encode.standardize)
    if missing is not None:
        split = split.filter(arrow().array(~np.repeat(missing, lengths)))
        lengths = np.where(missing, 0, lengths)
    indices, length = RaggedArray(_codes(split, encoder), lengths), encoder.encode.length
    if length is None:
        return indices
    kept = np.arange(len(split)) - np.repeat(np.cumsum(lengths) - lengths, lengths) < length
    return indices.masked(kept).to_dense(0, length)


def measure(encode: Encode) -> Callable[[Array], Ints] | None:
    """The function that measures an encoded feature to bucket rows by length; None for the default."""
    if encode.as_ != "words":
        return None
    return partial(count_words, standardize=encode.standardize)


def count_words(texts: Array, standardize: Standardize) -> Ints:
    """The number of words of each text: int64 `[n]` for bytes `[n]`."""
    return _words_of(texts, standardize)[1]


def _words_of(texts: Array, standardize: Standardize) -> tuple[Any, Ints]:
    """The words of all texts, an Arrow array, and the number of words of each text."""
    pyarrow = arrow()
    lists = split_words(pyarrow.array(texts, pyarrow.large_binary()), standardize)
    split = pyarrow.compute.list_flatten(lists).view(pyarrow.large_binary())
    is_word = np.asarray(pyarrow.compute.binary_length(split)) > 0
    lengths = np.asarray(pyarrow.compute.list_value_length(lists)).astype(np.int64)
    return split.filter(pyarrow.array(is_word)), RaggedArray(is_word, lengths).masked(is_word).lengths


def _normalized(values: Array, encoder: FitEncoder, missing: Mask | None) -> Array:
    dtype = np.dtype(encoder.normalized_as)
    mean, variance = (np.asarray(encoder.state[name]).astype(dtype) for name in ("mean", "variance"))
    values = values.astype(float_for(values.dtype.name), copy=False)
    if missing is not None:
        each = missing.reshape(-1, *[1] * (values.ndim - 1))
        values = np.where(each, mean.astype(values.dtype), values)
    deviation = np.maximum(np.sqrt(variance), dtype.type(_LEAST_DEVIATION))
    made: Array = ((values.astype(dtype) - mean) / deviation).astype(np.float32)
    return made


def _codes(values: Any, encoder: FitEncoder) -> Ints:
    """The indices of values, int64 `[n]`; below 0 for unknown values if they have no index.

    Padding and unknown values come first, if they have an index. The vocabulary follows.
    """
    if encoder.is_label:
        codes: Ints = values.astype(np.int64)
        return codes
    if encoder.is_text:
        pyarrow, kind = arrow(), arrow().large_binary()
        if not isinstance(values, pyarrow.Array):
            values = pyarrow.array(values, kind)
        known = pyarrow.array([token.encode() for token in encoder.vocabulary], kind)
        places = pyarrow.compute.index_in(values, known)
        is_known, is_padding = present_in(places), np.asarray(pyarrow.compute.binary_length(values)) == 0
        places = np.asarray(places.drop_null())
    else:
        values, tokens = values.astype(np.int64), np.asarray(encoder.vocabulary, np.int64)
        order = np.argsort(tokens)
        places = order[np.minimum(np.searchsorted(tokens, values, sorter=order), len(tokens) - 1)]
        is_known, is_padding = tokens[places] == values, values == encoder.padding_token
        places = places[is_known]
    padding, unknown = int(encoder.has_padding), int(encoder.has_unknown)
    codes = np.full(len(values), padding if unknown else NO_CLASS)
    codes[is_known] = places + padding + unknown
    if padding:
        codes[is_padding] = 0
    return codes


def _one_hot(codes: Ints, depth: int) -> Array:
    """One-hot vectors, float32 `[..., depth]`; zeros for codes outside of `depth`."""
    is_code: Array = codes[..., None] == np.arange(depth)
    return is_code.astype(np.float32)


def _counts(codes: Ints, lengths: Ints, depth: int) -> Array:
    """How often each row has each code, float32 `[n, depth]`."""
    rows, codes = np.repeat(np.arange(len(lengths)), lengths), codes.reshape(-1)
    inside = (codes >= 0) & (codes < depth)
    counts = np.bincount(rows[inside] * depth + codes[inside], minlength=len(lengths) * depth)
    return counts.reshape(len(lengths), depth).astype(np.float32)


def _flat(value: Any) -> Array:
    """The values of all rows, `[m, ...]`."""
    flat: Array = value.flat if isinstance(value, RaggedArray) else value
    return flat


def _row_lengths(value: Any) -> Ints:
    """The number of values of each row, including nested lists, int64 `[n]`."""
    if not isinstance(value, RaggedArray):
        return np.full(len(value), np.prod(value.shape[1:], dtype=np.int64))
    return np.diff(offsets(_row_lengths(value.values))[offsets(value.lengths)])
