"""Converts the features of a batch to inputs, targets and weights, as tensors or as NumPy arrays."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, RecordError, SpecError, nearest, one_of
from recordspec.order.packing import PackedRows
from recordspec.order.read_options import Pack
from recordspec.schema.lists import cells
from recordspec.schema.ragged_array import RaggedArray, SparseArray
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor, dense, mask_of, ragged, without_autograph
from recordspec.schema.user_functions import check_arguments, naming_features
from recordspec.schema.values import DTYPES, Array, BadValue
from recordspec.training import encoding_arrays
from recordspec.training import encoding_tensors as tensors
from recordspec.training.fit import LENGTH, SHIFTED, Fit, Names, check_parts, names_of, owner_of
from recordspec.training.packs import Packing, unpadded


@dataclass(frozen=True)
class FitBatch(abc.ABC):
    """The features of one batch, or of one row, as `fit` passes them to a model.

    Attributes:
        fit: the selection.
        features: the decoded features, after a user's `map`.
        decoded: the decoded features before `map`. If `map` does not change a value, its missing items are
            known.
        schema: the schema.
        encoders: the encoders or layers of inputs and targets, by name.
    """

    fit: Fit
    features: Any
    decoded: Mapping[str, Any]
    schema: Schema
    encoders: Mapping[str, Any]

    def picked(self) -> Any:
        """The tuple for `model.fit`.

        Raises SpecError if a feature of `pad_to` is not ragged, and for a mask of a feature without padding.
        """
        if not isinstance(self.features, Mapping):
            got = type(self.features).__name__
            raise SpecError(Problem(path=("map",), expected="a dict of features from `map`", got=got))
        fit = self.fit
        picked = [self._values("inputs", fit.inputs)]
        if fit.targets is not None:
            picked.append(self._values("targets", fit.targets))
        weights, targets = fit.weights, names_of(fit.targets)
        if isinstance(weights, Mapping):
            by_target = {
                target: self._weights(names_of(weights[target]), (target,))
                if target in weights
                else self._ones(self.features[target])
                for target in targets
            }
            picked.append(by_target if len(by_target) > 1 else next(iter(by_target.values())))
        elif weights is not None:
            picked.append(self._weights(names_of(weights), targets))
        return tuple(picked) if len(picked) > 1 else picked[0]

    def _values(self, part: str, names: Names) -> Any:
        wanted = {name: self._value(part, name) for name in names_of(names)}
        return wanted if len(wanted) > 1 else next(iter(wanted.values()))

    def _value(self, part: str, name: str) -> Any:
        if name not in self.features and owner_of(name, self.features) in self.features:
            owner = owner_of(name, self.features)
            if part == "targets":  # the next values of an input: `packs` moves them
                return self._value("inputs", owner)
            return self._shifted(owner) if name.endswith(SHIFTED) else self._mask(part, owner)
        if name not in self.features:
            derived = name in self.fit.derived
            hint = "`map` must add it" if derived else nearest(name, self.features)
            hint = hint or "`map` and `features` must leave it"
            problem = Problem(path=("fit", part), expected=one_of(self.features), got=f"`{name}`", hint=hint)
            raise SpecError(problem)
        value = self._short_enough(name)
        if part == "inputs" and name in self.encoders:
            return self._encoded(value, name, self._missing(name))
        if part == "targets":
            value = self._present(value, name)
        if part == "targets" and name in self.fit.encoded_targets:
            if self.fit.encode[name].as_ == "words":
                return self._padded_words(self._target_words(value, name, shifted=False), name)
            return self._encoded_target(value, name)
        if self._is_kept(name):
            return value
        return self._dense(value, self._pad(part, name), self.fit.pad_to.get(name))

    def _missing(self, name: str) -> Any:
        """The indicator of values to encode as unknown: missing values, unless `map` has replaced them."""
        indicator = self.schema.names[name].traits.indicator
        replaced = self.features[name] is not self.decoded.get(name)
        if indicator is None or replaced or not self.fit.encode[name].has_unknown:
            return None
        if indicator not in self.decoded:
            expected = f"`{indicator}` beside `{name}`, which `fit` encodes"
            raise SpecError(Problem(path=("read", "features"), expected=expected, got="none"))
        return self.decoded[indicator]

    def _present(self, value: Any, name: str) -> Any:
        """The values of a target, after a check that no label is missing: its index -1 is no class.

        Neither a target that `map` has replaced nor one with weights, which may leave rows out, is checked.
        A default of another kind is a value like any other.
        """
        feature = self.schema.names.get(name)
        indicator = feature.traits.indicator if feature is not None and feature.traits.class_names else None
        replaced = self.features[name] is not self.decoded.get(name)
        if indicator is None or indicator not in self.decoded or replaced or self.fit.weights:
            return value
        hint = "`targets=False` leaves the targets out; `filter`, or weights, the rows"
        expected = f"a class of `{name}` in every row"
        problem = Problem(path=("fit", "targets"), expected=expected, got="a row without one", hint=hint)
        return self._without_missing(value, self.decoded[indicator], problem)

    def _shifted(self, name: str) -> Any:
        """A target of words one step later, which begins with the start token."""
        return self._padded_words(self._target_words(self.features[name], name, shifted=True), name)

    def _padded_words(self, indices: Any, name: str) -> Any:
        """Indices of words, with 0 as padding unless features are kept ragged."""
        return indices if self.fit.ragged == "keep" else self._dense(indices, 0, self.fit.encode[name].length)

    def _mask(self, part: str, name: str) -> Any:
        """The mask of a padded feature: true for values that are not padding."""
        encode = self.fit.encode.get(name)
        if encode is not None and encode.as_ == "words":
            if self.fit.ragged == "keep":
                got = f"the words of `{name}`, which are kept ragged"
                raise SpecError(Problem(path=("fit", part), expected="a padded feature to mask", got=got))
            is_input = name in names_of(self.fit.inputs)
            return self._word_mask(self.features[name], name, self._missing(name) if is_input else None)
        value, kept = self._short_enough(name), self._is_kept(name)
        feature, counts = self.schema.names.get(name), f"{name}{LENGTH}"
        lengths = self.features.get(counts) if feature is not None and counts in feature.outputs else None
        if kept or (lengths is None and not self._is_composite(value)):
            got = f"`{name}`, {'which is kept ragged' if kept else self._type(value)}"
            raise SpecError(Problem(path=("fit", part), expected="a padded feature to mask", got=got))
        return self._mask_of(value, lengths, self.fit.pad_to.get(name))

    def _weights(self, names: tuple[str, ...], targets: tuple[str, ...]) -> Any:
        """The product of weights; weights of fewer dimensions are broadcast along the remaining ones."""
        weights = [self._value("weights", name) for name in names]
        if len(weights) == 1 and self._dtype(weights[0]) != "bool":
            return weights[0]
        if any(map(self._is_composite, weights)):
            expected, got = "dense weights to multiply", "ragged ones (ragged: keep)"
            raise SpecError(Problem(path=("fit", "weights"), expected=expected, got=got))
        rank = max(map(self._rank, weights))
        for target in targets:
            encode = self.fit.encode.get(target)
            most = self._rank(self.features[target]) + (encode is not None and encode.as_ == "words")
            if rank > most:  # Keras may multiply each weight with all values of another dimension
                expected, got = f"weights of no more dimensions than `{target}` has ({most})", str(rank)
                raise SpecError(Problem(path=("fit", "weights"), expected=expected, got=got))
        return self._product(weights, rank)

    def _is_kept(self, name: str) -> bool:
        """Whether a feature stays ragged or sparse."""
        kept = self.fit.ragged == "keep" and name not in self.fit.pad_to
        return kept and self._is_composite(self.features[name])

    def _short_enough(self, name: str) -> Any:
        """The value of a feature, after a check that no row is longer than `pad_to`."""
        value, length = self.features[name], self.fit.pad_to.get(name)
        if length is None:
            return value
        path = ("fit", "pad_to", name)
        if not self._is_composite(value) or self._is_sparse(value):
            expected, got = "a batch of a ragged feature", self._type(value)
            raise SpecError(Problem(path=path, expected=expected, got=got))
        problem = Problem(path=path, expected=f"at most {length} values in a row", got="{}")
        return self._checked(value, length, problem)

    def _pad(self, part: str, name: str) -> Any:
        """The padding of a feature. Raises SpecError if `map` left a dtype that does not hold it."""
        pad, dtype = self.schema.padding.get(name), self._dtype(self.features[name])
        if pad is None or not self._is_composite(self.features[name]) or dtype not in (*DTYPES, "string"):
            return None
        try:
            cells([pad], dtype, ())
        except BadValue:
            expected, got = f"a dtype for the padding {pad!r} of `{name}`", f"{dtype} from `map`"
            hint = "pad it there, or give it another `pad`"
            raise SpecError(Problem(path=("fit", part), expected=expected, got=got, hint=hint)) from None
        return pad

    @abc.abstractmethod
    def _is_composite(self, value: Any) -> bool:
        """Whether a value is ragged or sparse."""

    @abc.abstractmethod
    def _is_sparse(self, value: Any) -> bool: ...

    @abc.abstractmethod
    def _dtype(self, value: Any) -> str:
        """The name of a dtype."""

    @abc.abstractmethod
    def _rank(self, value: Any) -> int: ...

    @abc.abstractmethod
    def _type(self, value: Any) -> str:
        """The dtype and the shape, for a message."""

    @abc.abstractmethod
    def _dense(self, value: Any, pad: Any, length: int | None) -> Any: ...

    @abc.abstractmethod
    def _mask_of(self, value: Any, lengths: Any, length: int | None) -> Any: ...

    @abc.abstractmethod
    def _checked(self, value: Any, length: int, problem: Problem) -> Any:
        """A ragged value, after a check of its rows; `{}` in the problem stands for the longest length."""

    @abc.abstractmethod
    def _without_missing(self, value: Any, missing: Any, problem: Problem) -> Any:
        """A value, after a check that none is missing."""

    @abc.abstractmethod
    def _product(self, weights: list[Any], rank: int) -> Any: ...

    @abc.abstractmethod
    def _ones(self, target: Any) -> Any:
        """A weight of 1 for each row of a target, float32 `[n]`."""

    @abc.abstractmethod
    def _encoded(self, value: Any, name: str, missing: Any) -> Any: ...

    @abc.abstractmethod
    def _encoded_target(self, value: Any, name: str) -> Any: ...

    @abc.abstractmethod
    def _target_words(self, texts: Any, name: str, *, shifted: bool) -> Any:
        """The indices of the words of a target, ragged, or of one row."""

    @abc.abstractmethod
    def _word_mask(self, texts: Any, name: str, missing: Any) -> Any:
        """The mask of texts that are encoded as words."""


@dataclass(frozen=True)
class FitTensors(FitBatch):
    """Features as tensors, in a graph or eagerly. Keras layers encode them.

    Attributes:
        batched: whether the features are of a batch, not of one row.
    """

    batched: bool = True

    def _is_composite(self, value: Any) -> bool:
        return isinstance(value, tf.RaggedTensor | tf.sparse.SparseTensor)

    def _is_sparse(self, value: Any) -> bool:
        return isinstance(value, tf.sparse.SparseTensor)

    def _dtype(self, value: Any) -> str:
        name: str = value.dtype.name
        return name

    def _rank(self, value: Any) -> int:
        rank: int = value.shape.rank
        return rank

    def _type(self, value: Any) -> str:
        return f"{value.dtype.name} {value.shape}"

    def _dense(self, value: Any, pad: Any, length: int | None) -> Tensor:
        return dense(value, pad, length)

    def _mask_of(self, value: Any, lengths: Any, length: int | None) -> Tensor:
        return mask_of(value, lengths, length)

    def _checked(self, value: Any, length: int, problem: Problem) -> Tensor:
        longest = tf.reduce_max(tf.concat([value.row_lengths(), [0]], 0))
        message = tf.strings.format(str(problem), longest)
        with tf.control_dependencies([tf.debugging.Assert(longest <= length, [message])]):
            return value.with_flat_values(tf.identity(value.flat_values))

    def _without_missing(self, value: Any, missing: Any, problem: Problem) -> Tensor:
        check = tf.debugging.Assert(tf.logical_not(tf.reduce_any(missing)), [str(problem)])
        with tf.control_dependencies([check]):
            return tf.nest.map_structure(tf.identity, value, expand_composites=True)

    def _product(self, weights: list[Any], rank: int) -> Tensor:
        product = tf.ones([], tf.float32)
        for weight in weights:
            shape = tf.concat([tf.shape(weight), tf.ones([rank - weight.shape.rank], tf.int32)], 0)
            product *= tf.reshape(tf.cast(weight, tf.float32), shape)
        return product

    def _ones(self, target: Any) -> Tensor:
        rows = target.nrows() if isinstance(target, tf.RaggedTensor) else tf.shape(target)[0]
        return tf.ones([rows], tf.float32)

    def _encoded(self, value: Any, name: str, missing: Any) -> Tensor:
        encode, layer = self.fit.encode[name], self.encoders[name]
        if encode.as_ == "words" and self.fit.ragged == "keep" and self.batched:
            return tensors.words(value, layer, missing)
        apply = tensors.apply if self.batched else tensors.apply_to_row
        return apply(value, encode, layer, self.fit.pad_to.get(name), missing)

    def _encoded_target(self, value: Any, name: str) -> Tensor:
        encode, layer, length = self.fit.encode[name], self.encoders[name], self.fit.pad_to.get(name)
        return tensors.apply_to_target(value, name, encode, layer, length, batched=self.batched)

    def _target_words(self, texts: Any, name: str, *, shifted: bool) -> Tensor:
        encode, layer = self.fit.encode[name], self.encoders[name]
        if self.batched:
            return tensors.target_words(texts, encode, layer, shifted=shifted)
        words = tensors.target_words(tf.expand_dims(texts, 0), encode, layer, shifted=shifted)
        return words[0] if self.fit.ragged == "keep" else dense(words, 0, encode.length)[0]

    def _word_mask(self, texts: Any, name: str, missing: Any) -> Tensor:
        encode, is_target = self.fit.encode[name], name not in names_of(self.fit.inputs)
        if self.batched:
            return tensors.word_mask(texts, encode, missing, is_target=is_target)
        missing = None if missing is None else tf.expand_dims(missing, 0)
        return tensors.word_mask(tf.expand_dims(texts, 0), encode, missing, is_target=is_target)[0]


@dataclass(frozen=True)
class FitArrays(FitBatch):
    """Features as NumPy arrays, encoded by a `FitEncoder`.

    If rows differ in length, a feature is a RaggedArray or a SparseArray.
    """

    def _value(self, part: str, name: str) -> Any:
        value = self.features.get(owner_of(name, self.features))
        if value is not None and not isinstance(value, np.ndarray | RaggedArray | SparseArray):
            expected, got = "arrays of NumPy from `map`", f"{type(value).__name__} for `{name}`"
            raise SpecError(Problem(path=("map",), expected=expected, got=got))
        made = super()._value(part, name)
        # a copy: a function that changes an input in place, to add noise, does not change the target
        return deepcopy(made) if part == "targets" and name in names_of(self.fit.inputs) else made

    def _is_composite(self, value: Any) -> bool:
        return isinstance(value, RaggedArray | SparseArray)

    def _is_sparse(self, value: Any) -> bool:
        return isinstance(value, SparseArray)

    def _dtype(self, value: Any) -> str:
        return "string" if _items(value).dtype == object else _items(value).dtype.name

    def _rank(self, value: Any) -> int:
        if isinstance(value, SparseArray):
            return len(value.shape)
        return 1 + self._rank(value.values) if isinstance(value, RaggedArray) else value.ndim

    def _type(self, value: Any) -> str:
        shape = value.shape if isinstance(value, np.ndarray | SparseArray) else (len(value), None)
        return f"{self._dtype(value)} {shape}"

    def _dense(self, value: Any, pad: Any, length: int | None) -> Array:
        if isinstance(value, RaggedArray):
            return value.to_dense(pad, length)
        return value.to_dense(pad) if isinstance(value, SparseArray) else value

    def _mask_of(self, value: Any, lengths: Any, length: int | None) -> Array:
        if isinstance(value, SparseArray):
            return SparseArray(value.indices, np.ones(len(value.values), bool), value.shape).to_dense(False)
        if not isinstance(value, RaggedArray):
            mask: Array = np.arange(value.shape[1]) < lengths[:, None]
            return mask
        present = np.ones(len(value.flat), bool)
        if lengths is not None:
            present = np.arange(value.flat.shape[1]) < lengths.flat[:, None]
        return value.with_flat(present).to_dense(False, length)

    def _checked(self, value: Any, length: int, problem: Problem) -> RaggedArray:
        longest = int(value.lengths.max(initial=0))
        if longest > length:
            raise RecordError(Problem(path=problem.path, expected=problem.expected, got=str(longest)))
        checked: RaggedArray = value
        return checked

    def _without_missing(self, value: Any, missing: Any, problem: Problem) -> Any:
        if np.any(missing):
            raise RecordError(problem)
        return value

    def _product(self, weights: list[Any], rank: int) -> Array:
        product = np.ones((), np.float32)
        for weight in weights:
            shape = (*weight.shape, *[1] * (rank - weight.ndim))
            product = product * weight.astype(np.float32).reshape(shape)
        return product

    def _ones(self, target: Any) -> Array:
        return np.ones(len(target), np.float32)

    def _encoded(self, value: Any, name: str, missing: Any) -> Any:
        encoder = self.encoders[name]
        if encoder.encode.as_ == "words" and self.fit.ragged == "keep":
            return encoding_arrays.words(value, encoder, missing)
        return encoding_arrays.encoded(value, encoder, self.fit.pad_to.get(name), missing)

    def _encoded_target(self, value: Any, name: str) -> Array:
        return encoding_arrays.encoded_target(value, self.encoders[name], self.fit.pad_to.get(name))

    def _target_words(self, texts: Any, name: str, *, shifted: bool) -> RaggedArray:
        return encoding_arrays.target_words(texts, self.encoders[name], shifted=shifted)

    def _word_mask(self, texts: Any, name: str, missing: Any) -> Array:
        return encoding_arrays.word_mask(texts, self.encoders[name], missing)


def _items(value: Any) -> Array:
    """The array of all items."""
    items: Array = value.flat if isinstance(value, RaggedArray) else value
    return items.values if isinstance(items, SparseArray) else items


@dataclass(frozen=True)
class FinishArrays:
    """Converts decoded features to the inputs, targets and weights of a model.

    An instance can be pickled if its functions can.

    Attributes:
        fit: the selection; None for all features.
        schema, encoders: as for `FitBatch`.
        mapped, map_fit: a user's functions before and after the selection, or None.
        padded: the features that are padded, with their lengths, and are not padded before packs are made.
        packing: makes packs of the selection; None if rows are not packed.
    """

    fit: Fit | None
    schema: Schema
    encoders: Mapping[str, Any]
    mapped: Callable[..., Any] | None
    map_fit: Callable[..., Any] | None
    padded: tuple[str, ...] = ()
    packing: Packing | None = None

    def __call__(self, features: dict[str, Any], packed: PackedRows | None = None) -> Any:
        picked = self.picked(features)
        if self.packing is not None and packed is not None:
            picked = self.packing(picked, packed)
        if self.fit is None:
            return picked
        if self.map_fit is None:
            return picked
        function = naming_features("map_fit", self.map_fit)
        return check_parts(function(*picked)) if isinstance(picked, tuple) else function(picked)

    def picked(self, features: dict[str, Any]) -> Any:
        """The selection of `fit`, without `map_fit`."""
        made = features = unpadded(features, self.padded) if self.padded else features
        if self.mapped is not None:
            made = naming_features("map", self.mapped)({**features})
        return (
            made
            if self.fit is None
            else FitArrays(self.fit, made, features, self.schema, self.encoders).picked()
        )


def finish_tensors(
    fit: Fit | None,
    schema: Schema,
    layers: Mapping[str, Any],
    mapped: Callable[..., Any] | None,
    map_fit: Callable[..., Any] | None,
    *,
    batched: bool,
    padded: tuple[str, ...] = (),
    packing: Packing | None = None,
) -> Callable[..., Any] | None:
    """A function for `tf.data.Dataset.map` that does to tensors what `FinishArrays` does to arrays.

    With `packing`, the function's arguments are the elements of a `PackedOrder`. Returns None if decoded
    features are left unchanged.
    """
    if packing is not None:
        finish = finish_tensors(fit, schema, layers, mapped, None, batched=True, padded=padded)
        return _finish_packs(packing, finish, fit, map_fit)
    if mapped is not None:
        mapped = naming_features("map", mapped)
    begin = without_autograph(lambda features: unpadded(features, padded))
    if fit is None and mapped is not None and padded:
        return lambda features: mapped(begin(features))
    if fit is None:
        return begin if padded else mapped
    if map_fit is not None:
        map_fit = naming_features("map_fit", map_fit)
    change = mapped or without_autograph(lambda features: features)
    pick = without_autograph(
        lambda features, decoded: FitTensors(fit, features, decoded, schema, layers, batched).picked()
    )

    # converted by autograph, with `map` and `map_fit`, as a user expects of functions for tf.data
    def picked(features: Any) -> Any:
        features = begin(features)
        return pick(change({**features}), features)

    if map_fit is None:
        return picked
    if len(fit.parts) == 1:
        return lambda features: map_fit(picked(features))
    return lambda features: check_parts(map_fit(*picked(features)))


def _finish_packs(
    packing: Packing, finish: Callable[..., Any] | None, fit: Fit | None, map_fit: Callable[..., Any] | None
) -> Callable[..., Any]:
    """The function that makes packs of what `finish` returns, and passes them to `map_fit`."""
    pick = finish or without_autograph(lambda features: features)
    pack = without_autograph(partial(packed_tensors, packing))
    if map_fit is None or fit is None:
        return lambda table, counts, features: pack(pick(features), table, counts)
    map_fit = naming_features("map_fit", map_fit)
    if fit.targets is None:
        return lambda table, counts, features: map_fit(pack(pick(features), table, counts))
    return lambda table, counts, features: check_parts(map_fit(*pack(pick(features), table, counts)))


def packed_tensors(packing: Packing, picked: Any, table: Tensor, counts: Tensor) -> Any:
    """The packs of a batch of tensors. The values and their order are those of `Packing`, which runs in
    Python.

    Args:
        picked: what `fit` selects of the rows of the packs.
        table, counts: the rows of the packs, as `packed_order.arrays_of` returns them.
    """
    leaves = [ragged(leaf) if _is_list(leaf) else leaf for leaf in tf.nest.flatten(picked)]
    parts = [_components(leaf) for leaf in leaves]
    flat = [one for part in parts for one in part]

    def packed(rows: PackedRows, values: list[Any]) -> Any:
        given = iter(values)
        some = [_of_components([next(given) for _ in part]) for part in parts]
        return packing(tf.nest.pack_sequence_as(picked, some), rows)

    # a batch of empty packs tells the types
    count = counts.shape[0]
    nothing = PackedRows.of_arrays(np.zeros((table.shape[0], 0), np.int64), np.zeros(count, np.int64))
    empty = [np.zeros([0, *(size or 1 for size in one.shape[1:])], one.dtype.as_numpy_dtype) for one in flat]
    typical = packed(nothing, empty)
    specs = [
        _spec(one, is_whole=all(None not in part[0].shape[1:] for part in parts))
        for one in tf.nest.flatten(typical)
    ]
    made = tf.numpy_function(
        lambda table, counts, *values: tf.nest.flatten(
            packed(PackedRows.of_arrays(table, counts), list(values))
        ),
        [table, counts, *flat],
        [spec.dtype for spec in specs],
        stateful=False,
    )
    shaped = [tf.ensure_shape(one, spec.shape) for one, spec in zip(made, specs, strict=True)]
    return tf.nest.pack_sequence_as(typical, shaped)


def arrays_of(picked: Any) -> Any:
    """What `fit` selects, as arrays of NumPy."""

    def array(value: Any) -> Any:
        return _of_components(
            [part.numpy() for part in _components(ragged(value) if _is_list(value) else value)]
        )

    return tf.nest.map_structure(array, picked)


def _is_list(value: Any) -> bool:
    return isinstance(value, tf.sparse.SparseTensor) and value.shape.rank == 2


def _components(value: Any) -> list[Tensor]:
    """The tensors of a value: its flat values, and of a ragged one, the lengths, innermost first."""
    if isinstance(value, tf.RaggedTensor):
        return [*_components(value.values), value.row_lengths()]
    return [value]


def _of_components(arrays: list[Array]) -> Any:
    """The value of NumPy of `_components`."""
    value: Any = arrays[0]
    lengths = arrays[1:]
    for some in lengths:
        value = RaggedArray(value, some)
    return value


def _spec(array: Array, *, is_whole: bool) -> Any:
    """The type of the tensors like an array of packs; if not `is_whole`, the sizes of values differ."""
    shape: list[int | None] = list(array.shape)
    if len(shape) == 1:  # the ends of sequences
        shape = [None]
    elif not is_whole:
        shape[2:] = [None] * (len(shape) - 2)
    return tf.TensorSpec(shape, tf.string if array.dtype == object else tf.as_dtype(array.dtype))


def check_functions(
    fit: Fit | None,
    mapped: Callable[..., Any] | None,
    map_fit: Callable[..., Any] | None,
    pack: Pack | None = None,
) -> None:
    """Raises SpecError for functions that do not accept their arguments. Packs with targets have weights."""
    if mapped is not None:
        check_arguments("map", mapped, 1, "(features), a dict")
    if map_fit is not None and fit is None:
        hint = "`map` takes all features"
        raise SpecError(Problem(path=("map_fit",), expected="a config with `fit`", got="none", hint=hint))
    if map_fit is not None and fit is not None:
        count = 3 if pack is not None and fit.targets is not None else len(fit.parts)
        parts = ("inputs", "targets", "weights")[:count]
        check_arguments("map_fit", map_fit, len(parts), f"({', '.join(parts)})")


def shown(value: Any, names: Any, padding: Mapping[str, Any]) -> Any:
    """Converts tensors to NumPy arrays, ragged tensors to lists, and sparse tensors to dense arrays.

    Args:
        names: the features of the tensors: one name for a tensor, a tuple of names for a tuple.
        padding: the values that fill sparse features.
    """
    if isinstance(value, dict):
        return {name: shown(one, name, padding) for name, one in value.items()}
    if isinstance(value, tuple) and isinstance(names, tuple) and len(names) == len(value):
        return tuple(shown(one, name, padding) for one, name in zip(value, names, strict=True))
    if tf.nest.is_nested(value):
        return tf.nest.map_structure(lambda part: shown(part, None, padding), value)
    if isinstance(value, tf.sparse.SparseTensor):
        pad = padding.get(names) if isinstance(names, str) else None
        return dense(value, pad).numpy()
    return value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy()
