"""Packs of what `fit` selects: values of several rows in one sequence, with the segment and the place of each
value.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, RecordError, SpecError, StoreError, one_of, show_text
from recordspec.locations import Location, open_file, output_file
from recordspec.order.packing import PackOrder, PacksInLanes, Pieces, RowsInPacks
from recordspec.order.read_options import Pack
from recordspec.schema.feature_set import map_features
from recordspec.schema.features import Feature
from recordspec.schema.features.fixed_len_sequence import FixedLenSequence
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.ragged_array import RaggedArray, SparseArray
from recordspec.schema.schema import Schema
from recordspec.schema.values import Array
from recordspec.training.fit import LENGTH, NEXT, Fit, names_of
from recordspec.wire.arrays import Ints, offsets

# The most counts that the file of lengths holds.
_MOST_ENTRIES = 8
# What Keras, PyTorch and torchtitan call the label of a place that has no weight.
_IGNORED = -100
# The suffixes of the segments and of the places of a packed feature.
_SUFFIXES = {"grain": ("_segment_ids", "_positions"), "maxtext": ("_segmentation", "_position")}


@dataclass(frozen=True)
class Packing:
    """Makes packs of the parts of a batch that `fit` selects.

    Attributes:
        pack: the options.
        fit: the selection; None for all features.
        names: the packed features, in the order of the plan.
        alike: for each packed feature, the first one whose rows have the same lengths.
        padding: the values of places without a value, by feature; by default 0, or the empty string.
        varying: the features whose rows differ in size, which cannot be one value for each row.
    """

    pack: Pack
    fit: Fit | None
    names: tuple[str, ...]
    alike: tuple[int, ...]
    padding: Mapping[str, Any] = field(default_factory=dict)
    varying: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pack: Pack, fit: Fit | None, lengths: Mapping[str, Ints], schema: Schema) -> Packing:
        """The packs of features with the given lengths of rows. Raises SpecError for another one in
        `pack.length`.
        """
        names = tuple(lengths)
        if isinstance(pack.length, Mapping):
            for name in {**pack.length, **lengths}:
                if name not in lengths:
                    expected, got = one_of(names), f"`{name}`"
                    raise SpecError(
                        Problem(path=("read", "pack", "length", name), expected=expected, got=got)
                    )
                if name not in pack.length:
                    expected = f"the length of `{name}` in a pack"
                    raise SpecError(Problem(path=("read", "pack", "length"), expected=expected, got="none"))
        alike = [
            next(
                other
                for other, before in enumerate(names)
                if before == name
                or (
                    pack.length_of(before) == pack.length_of(name)
                    and np.array_equal(lengths[before], lengths[name])
                )
            )
            for name in names
        ]
        encoded = {} if fit is None else fit.encode
        padding = {name: pad for name, pad in schema.padding.items() if name not in encoded}
        varying = {
            feature.name
            for feature in schema.names.values()
            if feature.name not in encoded and None in feature.value_type.shape
        }
        return cls(pack, fit, names, tuple(alike), padding, frozenset(varying))

    def order(self, lengths: Mapping[str, Ints], seed: int | None, blocks: Ints | None) -> PackOrder:
        """The packs of all rows; arguments as for `PackOrder`. Raises SpecError for rows that are longer than
        a pack.
        """
        return PackOrder(self._stacked(lengths), self.names, self.pack, seed, blocks)

    def in_lanes(
        self, lengths: Mapping[str, Ints], seed: int, files: Ints, *, lanes: int, window: int
    ) -> PacksInLanes:
        """The packs of all rows in lanes; arguments and errors as for `PacksInLanes`."""
        return PacksInLanes(
            self._stacked(lengths),
            self.names,
            self.pack,
            seed=seed,
            files=files,
            lanes=lanes,
            window=window,
        )

    def pieces(self, lengths: Mapping[str, Ints]) -> Pieces:
        """The pieces of all rows. Raises SpecError for rows that are longer than a pack."""
        return Pieces(self._stacked(lengths), self.names, self.pack)

    def _stacked(self, lengths: Mapping[str, Ints]) -> Ints:
        return np.stack([lengths[name] for name in self.names])

    def __call__(self, picked: Any, rows: RowsInPacks) -> Any:
        """The parts of a batch of packs.

        Args:
            picked: what `fit` selects of the rows of the packs, with ragged features as they are.
            rows: the rows of each pack, in the order of `picked`.

        Raises SpecError for values that cannot be packed, RecordError for a row whose length was another one
        when the packs were planned.
        """
        inputs, targets, weights = named_parts(self.fit, picked)
        made = _Packs(self, rows)
        if self.pack.names in _SUFFIXES:
            return self._of_keras(made, inputs, targets, weights)
        return self._of_language_model(made, inputs, targets)

    def _of_keras(self, made: _Packs, inputs: dict[str, Any], targets: dict[str, Any], weights: Any) -> Any:
        """A dict of inputs, and with targets, a tuple of inputs, targets and weights."""
        segment, position = _SUFFIXES[self.pack.names]
        found = dict[str, Any]()
        told = set[int]()
        for name, value in [*inputs.items(), *((name, None) for name in targets)]:
            if value is not None:
                found[name] = made.values(name, value)
            number = self.number(name)
            # the segments of a target whose lengths are those of an input are those of the input
            if number is not None and (value is not None or self.alike[number] not in told):
                owner = self.names[number]
                found[owner + segment], found[owner + position] = (
                    made.segments(number),
                    made.positions(number),
                )
                told.add(self.alike[number])
        if not targets:
            return found
        parts = {name: made.values(name, value) for name, value in targets.items()}
        by_target = {
            name: made.weights(name, weights.get(name) if isinstance(weights, Mapping) else weights)
            for name in targets
        }
        if self.pack.names == "maxtext":
            return found | parts | self._weights_as_segments(made, by_target)
        if len(parts) == 1:
            return found, *parts.values(), *by_target.values()
        return found, parts, by_target

    def _weights_as_segments(self, made: _Packs, weights: dict[str, Array]) -> dict[str, Array]:
        """Segments of targets that are 0 where a target has no weight: MaxText has no other weights."""
        segment, position = _SUFFIXES["maxtext"]
        found = dict[str, Array]()
        for name, weight in weights.items():
            number = self.number(name)
            if number is not None:
                found[name + segment] = made.segments(number) * (weight > 0).astype(np.int32)
                found[name + position] = made.positions(number)
        return found

    def _of_language_model(self, made: _Packs, inputs: dict[str, Any], targets: dict[str, Any]) -> Any:
        """The batch of a model of one sequence, as Hugging Face, T5X or torchtitan name its parts."""
        (name, value), *others = inputs.items()
        number = self.number(name)
        if number is None or others or set(targets) - {f"{name}{NEXT}"}:
            expected = f"one packed input and its next values as target for `names: {self.pack.names}`"
            got = ", ".join([*inputs, *targets])
            raise SpecError(Problem(path=("read", "pack", "names"), expected=expected, got=got))
        tokens, following = made.values(name, value), f"{name}{NEXT}"
        labels, weights = made.values(following, value), made.weights(following, None)
        if self.pack.names == "t5x":
            return {
                "decoder_input_tokens": tokens,
                "decoder_target_tokens": labels,
                "decoder_segment_ids": made.segments(number),
                "decoder_positions": made.positions(number),
                "decoder_loss_weights": weights,
            }
        if self.pack.names == "torchtitan":
            labels = np.where(weights > 0, labels, _IGNORED)
            return {"input": tokens, "positions": made.positions(number)}, labels
        return made.flattened(tokens, number)

    def number(self, name: str) -> int | None:
        """The number of a packed feature among `names`; None if it is not packed."""
        owner = owner_of_next(name)
        return self.names.index(owner) if owner in self.names else None

    def number_of(self, part: str) -> int | None:
        """The number of the packed feature whose values have the places of those of a part of a batch, by the
        name of the part, such as `tokens_positions`; None if there is none.
        """
        if self.pack.names not in _SUFFIXES:  # one packed feature; the packs of Hugging Face are end to end
            return None if self.pack.names == "hf" else 0
        targets = () if self.fit is None or self.fit.targets is None else names_of(self.fit.targets)
        if part == "weights" and self.number(part) is None and len(targets) == 1:
            (part,) = targets
        for suffix in _SUFFIXES[self.pack.names]:
            part = part.removesuffix(suffix)
        return self.number(part)


def packable(schema: Schema) -> tuple[Schema, tuple[str, ...]]:
    """The schema with lists that are not padded, and the features that are padded, but have their lengths."""
    padded = list[str]()

    def changed(feature: Feature) -> Feature:
        if isinstance(feature, VariableLen):
            return replace(feature, as_="ragged", with_length=False)
        if isinstance(feature, FixedLenSequence):
            padded.append(feature.name)
            return replace(feature, with_length=True)
        return feature

    return map_features(schema, changed), tuple(padded)


def unpadded(features: Mapping[str, Any], padded: Iterable[str]) -> dict[str, Any]:
    """The features with lists as long as their rows in place of the padded ones with lengths."""
    made = {**features}
    for name in padded:
        lengths = made.pop(f"{name}{LENGTH}", None)
        if lengths is not None and name in made:
            value = made[name]
            if isinstance(value, np.ndarray):
                made[name] = RaggedArray(value[np.arange(value.shape[1]) < lengths[:, None]], lengths)
            else:
                made[name] = tf.RaggedTensor.from_tensor(value, lengths=lengths)
    return made


def named_parts(fit: Fit | None, picked: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Inputs and targets by name, with sparse lists as ragged ones, and the weights as `fit` has them."""
    if fit is None:
        return {name: as_ragged(value) for name, value in picked.items()}, {}, None
    parts = list(picked) if isinstance(picked, tuple) else [picked]
    named = [dict[str, Any](), dict[str, Any]()]
    for place, (names, part) in enumerate(zip((fit.inputs, fit.targets), parts, strict=False)):
        found = names_of(names)
        values = part if isinstance(part, Mapping) and len(found) > 1 else {found[0]: part}
        named[place] = {name: as_ragged(values[name]) for name in found}
    return named[0], named[1], parts[2] if len(parts) > 2 else None


def counted_lengths(fit: Fit | None, picked: Iterable[Any]) -> dict[str, Ints]:
    """The number of values of each packed feature in each row, int32 `[n]`, in the order of the rows.

    Args:
        picked: batches of what `fit` selects of all rows.

    Raises SpecError if rows of no feature differ in length.
    """
    found = dict[str, list[Ints]]()
    for batch in picked:
        inputs, targets, _ = named_parts(fit, batch)
        for name, value in (inputs | targets).items():
            if isinstance(value, RaggedArray) and owner_of_next(name) == name:
                found.setdefault(name, []).append(value.lengths.astype(np.int32))
    if not found:
        expected, got = "a feature whose rows differ in length to pack", "none"
        hint = "kinds such as `ragged`, or words of `fit.encode`"
        raise SpecError(Problem(path=("read", "pack"), expected=expected, got=got, hint=hint))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def kept_lengths(path: Location, fingerprint: str, count: Callable[[], dict[str, Ints]]) -> dict[str, Ints]:
    """The lengths in a file beside the dataset; if it has none with this fingerprint, `count` counts and
    keeps them.

    The file has the lengths of the last few counts: of several splits, or selections.
    """
    entries = _stored(path)
    if fingerprint not in entries:
        lengths = count()
        _store(path, {**dict(list(entries.items())[1 - _MOST_ENTRIES :]), fingerprint: lengths})
        return lengths
    return entries[fingerprint]


def _stored(path: Location) -> dict[str, dict[str, Ints]]:
    """All lengths in a file, by fingerprint and feature; none if there is no file, or with a warning, if it
    is damaged.
    """
    try:
        with open_file(path) as file, np.load(io.BytesIO(file.read()), allow_pickle=False) as arrays:
            entries = json.loads(bytes(arrays["entries"]))
            return {
                one: {name: arrays[str(place)].astype(np.int32) for name, place in names.items()}
                for one, names in entries.items()
            }
    except FileNotFoundError:
        return {}
    except (
        StoreError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        zipfile.BadZipFile,
    ) as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        warnings.warn(
            show_text(f"the lengths for `read.pack` are counted again: {path}: {error}"), stacklevel=6
        )
        return {}


def _store(path: Location, entries: Mapping[str, Mapping[str, Ints]]) -> None:
    arrays, places = dict[str, Array](), dict[str, dict[str, int]]()
    for fingerprint, lengths in entries.items():
        for name, values in lengths.items():
            places.setdefault(fingerprint, {})[name] = len(arrays)
            arrays[str(len(arrays))] = values
    try:
        with output_file(path, force=True) as fresh, fresh.open("wb") as file:
            arrays["entries"] = np.frombuffer(json.dumps(places).encode(), np.uint8)
            np.savez(file, **arrays)  # type: ignore[arg-type]  # no array is named `allow_pickle`
    except (StoreError, SpecError, OSError) as error:  # for example, the dataset is read-only
        warnings.warn(f"the lengths for `read.pack` are not kept: {error}", stacklevel=6)


def owner_of_next(name: str) -> str:
    """The feature whose next values are a target, by the name of the target; else the name itself."""
    return name.removesuffix(NEXT)


def as_ragged(value: Any) -> Any:
    """A sparse array of lists as a ragged one; another value as it is."""
    if not isinstance(value, SparseArray) or len(value.shape) != 2:
        return value
    return RaggedArray(value.values, np.bincount(value.indices[:, 0], minlength=len(value)))


class _Packs:
    """The packs of a batch.

    Args:
        packing: the selection.
        rows: the rows of each pack.
    """

    def __init__(self, packing: Packing, rows: RowsInPacks) -> None:
        self._packing, self._pack, self._rows = packing, packing.pack, rows
        self._places = dict[int, Ints]()

    def values(self, name: str, value: Any) -> Array:
        """The values of a feature in packs `[p, length, ...]`, or one for each row of a pack, `[p, most,
        ...]`.
        """
        number = self._packing.number(name)
        if number is None:
            return self._of_rows(name, value)
        if not isinstance(value, RaggedArray) or isinstance(value.values, RaggedArray):
            expected = "lists of values, or of arrays of one size, to pack"
            raise SpecError(Problem(path=("read", "pack"), expected=expected, got=f"`{name}`"))
        rows, flat, ahead = self._rows, value.values, name != self._packing.names[number]
        lengths = rows.lengths[number]
        if (value.lengths != lengths).any():
            row = int((value.lengths != lengths).argmax())
            expected = f"{lengths[row]} values of `{name}`, as counted for the packs"
            hint = "`map` must return as many values each time"
            problem = Problem(
                path=("read", "pack"), expected=expected, got=str(value.lengths[row]), hint=hint
            )
            raise RecordError(problem.at(f"row {rows.rows[row]}"))
        size = self._pack.length_of(self._packing.names[number])
        made = np.full((len(rows.counts) * size, *flat.shape[1:]), self._pad(name, flat), flat.dtype)
        sizes, places = rows.sizes[number], self._place(number)
        within = self._within(number) + ahead
        here = within < np.repeat(lengths, sizes)
        sources = np.repeat(offsets(lengths)[:-1], sizes) + within
        made[places[here]] = flat[sources[here]]
        if self._pack.separator is not None:
            self._check_separator(name, flat)
            made[places[within == np.repeat(lengths, sizes)]] = self._pack.separator
        return made.reshape(-1, size, *flat.shape[1:])

    def _check_separator(self, name: str, flat: Array) -> None:
        if flat.dtype.kind not in "iu" or flat.ndim > 1:
            expected, got = "none for features that are not whole numbers", f"`{name}`, {flat.dtype.name}"
            raise SpecError(Problem(path=("read", "pack", "separator"), expected=expected, got=got))

    def _of_rows(self, name: str, value: Any) -> Array:
        most = self._pack.most
        if not isinstance(value, np.ndarray) or name in self._packing.varying:
            expected = "a feature with a length, or with values of one size"
            raise SpecError(Problem(path=("read", "pack"), expected=expected, got=f"`{name}`"))
        if most is None:
            expected, got = f"the largest number of rows in a pack, for `{name}`, which is not packed", "none"
            raise SpecError(
                Problem(path=("read", "pack", "most"), expected=expected, got=got, hint="`most: 64`")
            )
        rows = self._rows
        made = np.full((len(rows.counts) * most, *value.shape[1:]), self._pad(name, value), value.dtype)
        made[rows.packs * most + rows.segments - 1] = value
        return made.reshape(-1, most, *value.shape[1:])

    def _pad(self, name: str, values: Array) -> Any:
        pad = self._packing.padding.get(name)
        if pad is None:
            return b"" if values.dtype == object else 0
        return pad.encode() if isinstance(pad, str) else pad

    def segments(self, number: int) -> Array:
        """The segment of each place, from 1, int32 `[p, length]`; 0 for a place without a value."""
        return self._spread(number, np.repeat(self._rows.segments, self._rows.sizes[number]), np.int32)

    def positions(self, number: int) -> Array:
        """The place of each value in its segment, from 0, int32 `[p, length]`."""
        rows = self._rows
        return self._spread(
            number, self._within(number) - np.repeat(rows.starts, rows.sizes[number]), np.int32
        )

    def weights(self, name: str, given: Any) -> Array:
        """The weight of each value of a target, float32, with the shape of the target's first two dimensions.

        Args:
            given: the weights that `fit` selects, of each value or of each row; None for none.
        """
        number, rows = self._packing.number(name), self._rows
        given = as_ragged(given)
        if number is None:
            weights = np.ones(len(rows.rows), np.float32) if given is None else given.astype(np.float32)
            made = np.zeros(len(rows.counts) * (self._pack.most or 0), np.float32)
            made[rows.packs * (self._pack.most or 0) + rows.segments - 1] = weights
            return made.reshape(len(rows.counts), -1)
        sizes, lengths = rows.sizes[number], rows.lengths[number]
        ahead, separators = name != self._packing.names[number], self._pack.separator is not None
        # the values that a whole row has with a weight: all but the last, which has no next one
        whole = lengths + separators
        if self._pack.longer == "truncate":
            whole = np.minimum(whole, self._pack.length_of(self._packing.names[number]))
        counted = whole - 1 if ahead else np.minimum(whole, lengths)
        within = self._within(number)
        weights = (within < np.repeat(counted, sizes)).astype(np.float32)
        if self._pack.weights == "document":
            weights /= np.repeat(np.maximum(counted, 1), sizes).astype(np.float32)
        if isinstance(given, RaggedArray):
            if (given.lengths != lengths).any():
                expected, got = f"as many weights as values of `{name}` in each row", "another number"
                raise SpecError(Problem(path=("fit", "weights"), expected=expected, got=got))
            places = np.repeat(offsets(lengths)[:-1], sizes) + np.minimum(
                within, np.repeat(np.maximum(lengths - 1, 0), sizes)
            )
            weights *= np.append(given.values, 0)[places].astype(np.float32)
        elif given is not None:
            weights *= np.repeat(given.astype(np.float32).reshape(len(rows.rows)), sizes)
        return self._spread(number, weights, np.float32)

    def flattened(self, tokens: Array, number: int) -> dict[str, Any]:
        """A batch of Hugging Face: the packs end to end, `[1, n]`, with the places at which sequences begin.

        Its models shift the labels: the first value of each sequence has the label -100, and so has padding,
            which is a sequence of its own.
        """
        segments, positions = self.segments(number), self.positions(number)
        labels = np.where((segments > 0) & (positions > 0), tokens, _IGNORED)
        first = np.ones(segments.shape, bool)
        first[:, 1:] = segments[:, 1:] != segments[:, :-1]
        ends = np.append(np.flatnonzero(first), segments.size).astype(np.int32)
        longest = int(np.diff(ends).max(initial=0))
        return {
            "input_ids": tokens.reshape(1, -1),
            "position_ids": positions.reshape(1, -1),
            "labels": labels.reshape(1, -1),
            "cu_seq_lens_q": ends,
            "cu_seq_lens_k": ends,
            "max_length_q": np.int64(longest),
            "max_length_k": np.int64(longest),
        }

    def _spread(self, number: int, values: Array, dtype: Any) -> Array:
        size = self._pack.length_of(self._packing.names[number])
        made = np.zeros(len(self._rows.counts) * size, dtype)
        made[self._place(number)] = values
        return made.reshape(-1, size)

    def _place(self, number: int) -> Ints:
        """The place of each value among those of all packs, int64 `[m]`."""
        if number not in self._places:
            rows, size = self._rows, self._pack.length_of(self._packing.names[number])
            sizes = rows.sizes[number]
            begins = rows.packs * size + rows.places(number, self._pack.align)
            self._places[number] = np.repeat(begins - offsets(sizes)[:-1], sizes) + np.arange(sizes.sum())
        return self._places[number]

    def _within(self, number: int) -> Ints:
        """The place of each value in its row, int64 `[m]`."""
        rows = self._rows
        sizes = rows.sizes[number]
        return np.arange(sizes.sum()) + np.repeat(rows.starts - offsets(sizes)[:-1], sizes)
