"""Selects the inputs, targets and sample weights of `model.fit` from decoded features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recordspec.errors import Path, Problem, SpecError, nearest, one_of, see
from recordspec.order.read_options import Pack
from recordspec.schema.feature_set import map_features
from recordspec.schema.features import Feature
from recordspec.schema.schema import Schema
from recordspec.training.encoding import Encode, FitEncoder

Names = str | tuple[str, ...]

# The suffix of a mask of a padded feature: true for values that are not padding.
MASK = "_mask"
# The suffix of a target of words one step later, which begins with a start token: the input of a decoder.
SHIFTED = "_shifted"
# The suffix of a packed input one value earlier: the target of a language model.
NEXT = "_next"
# The suffix of the lengths of a feature that is padded in the batch: the numbers of values or steps of rows.
LENGTH = "_length"


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The features that are inputs, targets and sample weights of a model.

    Among inputs and weights, `<name>_mask` is a mask of the padded feature `<name>`: bool, true for
    values that are not padding, with one dimension per padded dimension. As weights, a mask is 1.0 and 0.0.
    Among inputs, `<name>_shifted` is the target `<name>` that `encode` encodes as words, one step later.
    Among targets, with `read.pack`, `<name>_next` is the next value of the input `<name>` in the same row.
    The last value of a row has no next one, and the weight 0.

    Attributes:
        inputs: one name selects a tensor; several names select a dict by name.
        targets: one name or several, as for `inputs`.
        weights: one name, or several to multiply. A mapping from targets to their weights yields a
            dict by target, with ones for missing targets.
        ragged: `dense` pads ragged features to the longest row of a batch, and fills sparse features, both
            with their `pad`; `keep` changes neither.
        pad_to: the lengths to which ragged features are padded, so that shapes are static. A longer row
            raises InvalidArgumentError when its batch is made.
        derived: the names that a function `map` adds to the features, for inputs, targets or weights.
        encode: how inputs and targets are encoded, by name: `normalize`, `index`, `one_hot`, `multi_hot`,
            `count`, `discretize` or `words`, or a mapping such as `{as: words, max_tokens: 20000}`. See
            `Pipeline.layers`. A name that is both an input and a target is encoded as an input.
    """

    inputs: Names
    targets: Names | None = None
    weights: Names | Mapping[str, Names] | None = None
    ragged: Literal["dense", "keep"] = "dense"
    pad_to: Mapping[str, int] = field(default_factory=dict)
    derived: tuple[str, ...] = ()
    encode: Mapping[str, Encode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = [
            Problem(path=("pad_to", name), expected="a length of at least 1", got=str(length))
            for name, length in self.pad_to.items()
            if length < 1
        ]
        if problems:
            raise SpecError(problems)

    @property
    def without_targets(self) -> Fit:
        """The selection of the inputs alone, for rows that lack targets."""
        owners = {one for name in names_of(self.inputs) for one in (name, owner_of(name, ()))}
        return replace(
            self,
            targets=None,
            weights=None,
            encode={name: encode for name, encode in self.encode.items() if name in owners},
            pad_to={name: length for name, length in self.pad_to.items() if name in owners},
        )

    @property
    def parts(self) -> tuple[Any, ...]:
        """The names of inputs, targets and weights, except for parts that are None; a single name is text."""
        parts = (names for names in (self.inputs, self.targets, self.weights) if names is not None)
        return tuple(names[0] if isinstance(names, tuple) and len(names) == 1 else names for names in parts)

    @property
    def encoded_targets(self) -> frozenset[str]:
        """The targets that `encode` encodes."""
        return frozenset(names_of(self.targets)) & self.encode.keys() - {*names_of(self.inputs)}

    def target_of_classes(self, schema: Schema) -> str | None:
        """The single target, if its values are classes: one for each row, or several as `multi_hot`.

        Words are classes of steps, not of the row. None if there is no such target.
        """
        names = names_of(self.targets)
        feature = schema.names.get(names[0]) if len(names) == 1 else None
        if feature is None or feature in schema.sequence:
            return None
        if feature.name not in self.encoded_targets and not feature.traits.class_names:
            return None
        encode = self.encode.get(feature.name) if feature.name in self.encoded_targets else None
        if encode is not None and encode.as_ == "words":
            return None
        several = encode is not None and encode.as_ == "multi_hot"
        return feature.name if several == bool(feature.value_type.shape) else None

    @property
    def _targets_of_words(self) -> list[str]:
        """The targets that are encoded as words."""
        return sorted(name for name in self.encoded_targets if self.encode[name].as_ == "words")

    @property
    def _weights_by_target(self) -> Mapping[str, Names]:
        """The weights of each target; empty if weights are not given by target."""
        return self.weights if isinstance(self.weights, Mapping) else {}

    @property
    def _weight_names(self) -> tuple[str, ...]:
        if isinstance(self.weights, Mapping):
            return tuple(name for names in self.weights.values() for name in names_of(names))
        return names_of(self.weights)

    def problems_with(self, schema: Schema) -> Iterator[Problem]:
        """Yields the problems with a schema, such as unknown names and impossible masks."""
        parts = {
            "inputs": names_of(self.inputs),
            "targets": names_of(self.targets),
            "weights": self._weight_names,
        }
        for part, names in parts.items():
            for name in names:
                yield from self._check_name(part, name, schema)
        yield from self._check_targets(schema)
        repeated = [name for name in set(parts["inputs"]) if parts["inputs"].count(name) > 1]
        if repeated:
            got = f"`{repeated[0]}` again"
            yield Problem(path=("fit", "inputs"), expected="every name once", got=got)
        if not parts["inputs"]:
            yield Problem(path=("fit", "inputs"), expected="at least one feature", got="none")
        known = self.known(schema)
        for place, name in enumerate(self.derived):
            if name in (*self.derived[:place], *schema.outputs):
                expected, got = "a name of its own", f"`{name}` again"
                yield Problem(path=("fit", "derived", place), expected=expected, got=got)
        yield from self._check_encode([name for name in parts["inputs"] if name in schema.names], schema)
        yield from self._check_weights(known)
        taken = dict.fromkeys(owner_of(name, known) for names in parts.values() for name in names)
        for name in self.pad_to:
            if name not in taken:
                hint = nearest(name, taken)
                got = f"`{name}`"
                yield Problem(path=("fit", "pad_to", name), expected=one_of(taken), got=got, hint=hint)

    def _check_targets(self, schema: Schema) -> Iterator[Problem]:
        for place, name in enumerate(names_of(self.targets)):
            feature = schema.names.get(name)
            encoded = name in self.encoded_targets
            if feature is not None and feature.value_type.item == "text" and not encoded:
                expected, got = "a label or numbers, which a model can learn", f"the text `{name}`"
                way = "multi_hot" if feature.value_type.shape else "index"
                hint = f"`encode: {{{name}: {way}}}` learns its classes; or `map` replaces it"
                path: Path = (
                    ("fit", "targets") if isinstance(self.targets, str) else ("fit", "targets", place)
                )
                yield Problem(path=path, expected=expected, got=got, hint=hint)

    def _check_encode(self, inputs: list[str], schema: Schema) -> Iterator[Problem]:
        steps = [feature.name for feature in schema.sequence]
        known = [*inputs, *(name for name in names_of(self.targets) if name in schema.names)]
        for name, encode in self.encode.items():
            problem = None
            if name in inputs:
                problem = encode.problem_of_input(schema.names[name], in_steps=name in steps)
            elif name in known:
                problem = encode.problem_of_target(schema.names[name])
            else:
                hint = "encode it in `map`" if name in self.derived else nearest(name, known)
                expected = one_of(dict.fromkeys(known)) if known else "an input or a target of `fit`"
                problem = Problem(expected=expected, got=f"`{name}`", hint=hint)
            if problem is not None:
                yield problem.under("fit", "encode", name)

    def features_of(self, schema: Schema) -> tuple[str, ...]:
        """The outputs of the schema to decode, if no function `map` needs more."""
        names = (*names_of(self.inputs), *names_of(self.targets), *self._weight_names)
        return schema.only(owner_of(name, schema.outputs) for name in names).outputs

    def known(self, schema: Schema) -> tuple[str, ...]:
        """The names that can be selected: derived names, and the outputs of the schema."""
        return (*self.derived, *schema.outputs)

    @property
    def next_of(self) -> list[str]:
        """The features whose next values are targets."""
        return [name.removesuffix(NEXT) for name in names_of(self.targets) if name.endswith(NEXT)]

    def _check_name(self, part: str, name: str, schema: Schema) -> Iterator[Problem]:
        known = self.known(schema)
        if part == "targets" and name not in known and name.endswith(NEXT):
            owner = name.removesuffix(NEXT)
            if owner not in names_of(self.inputs):
                hint = nearest(owner, names_of(self.inputs))
                expected = f"an input of `fit` and `{NEXT}`"
                yield Problem(path=("fit", part), expected=expected, got=f"`{name}`", hint=hint)
            return
        owner = name if part == "targets" else owner_of(name, known)
        words = [f"{one}{SHIFTED}" for one in self._targets_of_words] if part == "inputs" else []
        if name.endswith(SHIFTED) and owner in known and owner != name and name not in words:
            expected = f"`{owner}` as a target, encoded as words" if part == "inputs" else "an input"
            yield Problem(path=("fit", part), expected=f"{expected}, for `{name}`", got="none")
        elif owner not in known:
            masks = () if part == "targets" else tuple(f"{one}{MASK}" for one in known)
            hint = nearest(name, (*known, *masks, *words))
            yield Problem(path=("fit", part), expected=one_of(known), got=f"`{name}`", hint=hint)
        elif owner != name:
            feature = schema.names.get(owner)
            if feature is not None and not feature.traits.has_lengths:
                expected, hint = f"the lengths of `{owner}`, to mask it", "give it `with_length: true`"
                yield Problem(path=("fit", part), expected=expected, got="none", hint=hint)

    def _check_weights(self, known: tuple[str, ...]) -> Iterator[Problem]:
        path, targets = ("fit", "weights"), names_of(self.targets)
        if self.weights is None:
            return
        if self.targets is None:
            yield Problem(path=path, expected="targets to weigh", got="none")
            return
        for target in self._weights_by_target:
            if target not in targets:
                hint = nearest(target, targets)
                yield Problem(path=(*path, target), expected=one_of(targets), got=f"`{target}`", hint=hint)
        masks = [name for name in self._weight_names if name not in known]
        if not self._weight_names:
            yield Problem(path=path, expected="at least one feature", got="none")
        elif masks and len(targets) > 1 and not self._weights_by_target:
            got = f"`{masks[0]}` for {len(targets)} targets"
            yield Problem(path=path, expected="a mapping from targets to their weights", got=got)

    def request(self, schema: Schema, *, whole: bool) -> Schema:
        """The schema of a prediction request: the inputs, or all features but targets and weights if `whole`.

        Raises SpecError if an input is derived, and the request is not `whole`.
        """
        outputs = schema.outputs
        inputs = {owner_of(name, self.known(schema)) for name in names_of(self.inputs)}
        if whole:
            owners = {owner_of(name, outputs) for name in (*names_of(self.targets), *self._weight_names)}
            return schema.without(*(owners - inputs).intersection(outputs))
        derived = [name for name in inputs if name not in outputs]
        if derived:
            expected, got = f"the function that adds `{derived[0]}`", "none"
            raise SpecError(Problem(path=("map",), expected=expected, got=got))
        encoded = {
            schema.names[name].traits.indicator
            for name, how in self.encode.items()
            if how.has_unknown and name not in self.encoded_targets
        }
        return _without_indicators(schema.only(inputs), {*names_of(self.inputs), *encoded})

    def check_encoders(self, encoders: Mapping[str, Any]) -> None:
        """Raises SpecError if an encoded input or target has no encoder: it would not be encoded; or if a
        value is something else, such as a layer.
        """
        for name, encoder in encoders.items():
            if not isinstance(encoder, FitEncoder):
                expected, got = "a FitEncoder, as `encoders` returns it", f"a {type(encoder).__name__}"
                raise SpecError(Problem(path=("encoders", name), expected=expected, got=got))
        missing = [name for name in self.encode if name not in encoders]
        if missing:
            expected = "an encoder for each name of `fit.encode`"
            hint = f"`Pipeline.encoders` returns all; {see('encoding')}"
            got = f"none for {', '.join(f'`{name}`' for name in missing)}"
            raise SpecError(Problem(path=("encoders",), expected=expected, got=got, hint=hint))


def _without_indicators(schema: Schema, needed: Set[str | None]) -> Schema:
    """The schema with only the needed indicators of missing values."""

    def kept(feature: Feature) -> Feature:
        return feature if feature.traits.indicator in needed else feature.indicating(False)

    return map_features(schema, kept)


def check_packed(fit: Fit, pack: Pack | None) -> Iterator[Problem]:
    """Yields the problems of a selection with packs, or without."""
    if pack is None:
        for name in fit.next_of:
            expected = f"`read.pack`, for the target `{name}{NEXT}`"
            yield Problem(path=("read", "pack"), expected=expected, got="none")
        return
    for name in fit.pad_to:
        hint = "`read.pack.length` is the length of a pack"
        yield Problem(path=("fit", "pad_to", name), expected="none with packs", got="one", hint=hint)


def names_of(names: Names | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names or ()


def owner_of(name: str, known: Any) -> str:
    """The feature of a mask, a shifted target or next values, by its name; the name itself if a feature has
    it.
    """
    if name in known:
        return name
    return name.removesuffix(next((suffix for suffix in (SHIFTED, NEXT) if name.endswith(suffix)), MASK))


def check_parts(parts: Any) -> Any:
    """The result of `map_fit`. Raises SpecError if it has no targets.

    Without targets, Keras only reports that a loss failed.
    """
    if isinstance(parts, tuple) and len(parts) in (2, 3):
        return parts
    expected = "(inputs, targets) or (inputs, targets, weights), a tuple, from `map_fit`"
    got = f"one of {len(parts)}" if isinstance(parts, tuple) else type(parts).__name__
    raise SpecError(Problem(path=("map_fit",), expected=expected, got=got))
