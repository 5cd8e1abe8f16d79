"""The encoding of the inputs and targets of a model, and its statistics, learned from one split."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec.errors import Problem, SpecError, StoreError, one_of, one_of_classes, show_text
from recordspec.locations import Location, output_file, read_text
from recordspec.schema.decoder import batch_spec, types_of
from recordspec.schema.features import Feature
from recordspec.schema.options import to_builtins
from recordspec.schema.schema import Schema
from recordspec.store.manifest import Shard
from recordspec.training.encoding_statistics import (
    UNKNOWN_INTEGER,
    UNKNOWN_TEXT,
    Bins,
    Learner,
    MeanAndVariance,
    Standardize,
    Vocabulary,
    WordVocabulary,
)

# The encodings by the index of a text or an integer in a vocabulary.
LOOKUPS = ("index", "one_hot", "multi_hot", "count")
# The encodings of a target to classes, and to a sequence of them.
_OF_TARGETS = ("index", "one_hot", "multi_hot", "words")
# The tokens before the first and after the last word of a target. Their indices come after those of all
# words, so that no text has them.
START_TOKEN, END_TOKEN = "[START]", "[END]"
# The padding of a list of classes, equal to that of labels. It is not a class: Keras' `ignore_class`.
NO_CLASS = -1
_BINS = 10
# The largest file of statistics, which contains vocabularies.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Encode:
    """How an input or a target is encoded.

    Attributes:
        as_: `normalize` scales numbers to mean 0 and variance 1 (`keras.layers.Normalization`, separately
            along the last axis). `index` maps a text or integer to its index in a vocabulary
            (`StringLookup`, `IntegerLookup`), and `one_hot` to a vector with a 1 at that index; `multi_hot`
            and `count` map a list to one vector. `discretize` maps a number to the index of its bin
            (`Discretization`). `words` maps a text to the indices of its words (`TextVectorization`). The
            vocabulary of a label is its classes. For lists and words, index 0 is padding. A value that
            `with_missing` marks as missing is normalized to 0.0, the mean, and looked up as an unknown value;
            a missing text has no words, and `discretize` returns the bin of the default. A target takes
            `index`, `one_hot` and `multi_hot`: its classes are the sorted values in the split, and another
            value raises InvalidArgumentError; lists are padded with -1. A target of `words`, such as a
            translation, ends with an end token. The input `<name>_shifted` is the same sequence one step
            later: it begins with a start token, which is a class, too.
        max_tokens: the size of the vocabulary: the most frequent texts or integers, and before them one index
            for all other values; by default all values in the split. For `words`, padding has an index, too,
            and for a target of `words` the start and the end token.
        bins: the number of bins of `discretize`, with about equal counts; 10 by default.
        length: the number of words to which texts are cut or padded with 0; by default the number of words of
            the longest text of a batch.
        standardize: how a text is changed before it is split at spaces: by default, ASCII letters become
            lower case, and ASCII punctuation is removed.
        end: whether a target of `words` ends with an end token; false if each word is the class of a step.
    """

    SHORT_FORM: ClassVar[str] = "as_"

    as_: Literal["normalize", "index", "one_hot", "multi_hot", "count", "discretize", "words"]
    max_tokens: int | None = None
    bins: int | None = None
    length: int | None = None
    standardize: Standardize = "lower_and_strip_punctuation"
    end: bool = True

    def __post_init__(self) -> None:
        problems = []
        for option, value, least, ways in (
            ("max_tokens", self.max_tokens, 3 if self.as_ == "words" else 2, (*LOOKUPS, "words")),
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
        if not self.end and self.as_ != "words":
            problems.append(Problem(path=("end",), expected=f"none with `as: {self.as_}`", got="false"))
        if problems:
            raise SpecError(problems)

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The tokens of a target of words that are no words, in the order of their indices."""
        return (START_TOKEN, END_TOKEN) if self.end else (START_TOKEN,)

    @property
    def has_unknown(self) -> bool:
        """Whether unknown values have an encoding, which missing values get."""
        return self.as_ != "discretize"

    def problem(self, feature: Feature, *, in_steps: bool) -> Problem | None:
        """The problem of a feature that cannot be encoded this way; `in_steps` if each step has a value."""
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
        if fits and self.max_tokens is not None and feature.traits.class_names:
            got = str(self.max_tokens)
            return Problem(path=("max_tokens",), expected="none, since a label has its classes", got=got)
        if fits:
            return None
        got = f"`{feature.name}`, {feature.kind} of {value_type.item}"
        return Problem(expected=f"{expected} {'for' if self.as_ == 'words' else 'to'} {self.as_}", got=got)

    def problem_of_input(self, feature: Feature, *, in_steps: bool) -> Problem | None:
        """The problem of an input that cannot be encoded this way."""
        if not self.end:
            return Problem(path=("end",), expected="none for an input", got="false")
        return self.problem(feature, in_steps=in_steps)

    def problem_of_target(self, feature: Feature) -> Problem | None:
        """The problem of a target that cannot be encoded this way."""
        if self.as_ not in _OF_TARGETS:
            return Problem(expected=f"{one_of(_OF_TARGETS)}, for a target", got=f"`{self.as_}`")
        return self.problem(feature, in_steps=False)


@dataclass(frozen=True)
class FitEncoder:
    """The encoding of an input or a target, with the statistics of a split.

    An encoder is data: it can be pickled. Keras layers apply it to tensors (`Pipeline.layers`), or it is
    applied to NumPy arrays.

    Attributes:
        feature: the feature.
        encode: the option of the feature in `fit.encode`.
        state: the statistics: `mean` and `variance`, `bin_boundaries`, or a `vocabulary`; empty for a label.
        dtype: the name of the dtype of stored values.
        in_lists: whether rows have different numbers of values.
        is_target: whether the values are classes of a target.

    Example:
        >>> pipeline.encoders()
        {}
    """

    feature: Feature
    encode: Encode
    state: Mapping[str, Any]
    dtype: str
    in_lists: bool
    is_target: bool

    @property
    def is_label(self) -> bool:
        """Whether the vocabulary is the class names of the feature."""
        return bool(self.feature.traits.class_names)

    @property
    def is_text(self) -> bool:
        return self.feature.value_type.item == "text"

    @property
    def vocabulary(self) -> Sequence[Any]:
        """The texts or integers with an index of their own, in the order of their indices."""
        names: Sequence[Any] = self.feature.traits.class_names or self.state["vocabulary"]
        return names

    @property
    def has_unknown(self) -> bool:
        """Whether values that are not in the vocabulary have an index."""
        if self.encode.as_ == "words":
            return True
        return not self.is_label and not (self.is_target and self.encode.max_tokens is None)

    @property
    def has_padding(self) -> bool:
        """Whether the padding of lists has an index, the first."""
        return self.encode.as_ == "words" or (
            self.encode.as_ == "index" and self.in_lists and not self.is_target
        )

    @property
    def depth(self) -> int:
        """The length of a vector of `one_hot`, `multi_hot` or `count`."""
        return len(self.vocabulary) + int(self.has_unknown)

    @property
    def padding_token(self) -> str | int | None:
        """The value that means padding, as the mask token of a Keras layer; None without padding."""
        if not self.has_padding:
            return None
        # neither an integer of the vocabulary nor -1, which means unknown
        return "" if self.is_text else min([0, *self.vocabulary]) - 2

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes of a target by index."""
        unknown = (UNKNOWN_TEXT if self.is_text else UNKNOWN_INTEGER,) if self.has_unknown else ()
        if self.encode.as_ == "words":
            return ("", *unknown, *self.vocabulary, *self.encode.special_tokens)
        return tuple(map(str, (*unknown, *self.vocabulary)))

    @property
    def start(self) -> int:
        """The index of the start token of a target of words. That of the end token is the next one."""
        return len(self.vocabulary) + 2

    @property
    def normalized_as(self) -> str:
        """The dtype in which values are normalized."""
        variance = np.asarray(self.state["variance"])
        return "float64" if (variance > np.finfo(np.float32).max).any() else float_for(self.dtype)


def float_for(dtype: str) -> str:
    """The dtype in which numbers of a dtype are normalized.

    In float32, large integers, such as times, would be rounded before the mean is subtracted.
    """
    return "float64" if dtype in ("int32", "uint32", "int64", "uint64", "float64") else "float32"


def unknown_class(name: str, classes: Sequence[str]) -> Problem:
    """The problem of a value that is not one of the classes of a target; `{}` stands for the value."""
    expected = one_of_classes(classes)
    hint = "`max_tokens` gives all others one class"
    path = ("fit", "encode", name)
    return Problem(path=path, expected=f"{expected}, as in the training split", got="`{}`", hint=hint)


def _kind(batch: Any) -> str:
    """The name of the class of a TensorFlow type spec, or of its stand-in."""
    return type(batch).__name__


def _check_batch(feature: Feature, batch: Any) -> None:
    """Raises SpecError for a feature with padded or sparse batches; `batch` is the type of a batch."""
    padded = _kind(batch) == "TensorSpec" and None in list(batch.shape)[1:]
    if padded or _kind(batch) == "SparseTensorSpec":
        kind = "a padded" if padded else "a sparse"
        raise _problem(feature, "a feature without padding", f"{kind} batch", "`as: ragged`")


def _learner(encoder: FitEncoder) -> Learner:
    """The learner of the state of an encoder."""
    feature, encode, masked = encoder.feature, encoder.encode, encoder.has_padding
    if masked and encode.max_tokens == 2:
        raise _problem(feature, "`max_tokens` of at least 3, as padding and unknown values are two", "2")
    if encode.as_ == "normalize":
        return MeanAndVariance()
    if encode.as_ == "discretize":
        return Bins(encode.bins or _BINS)
    if encode.as_ == "words":
        others = 2 + (len(encode.special_tokens) if encoder.is_target else 0)
        if encode.max_tokens is not None and encode.max_tokens <= others:
            expected = f"`max_tokens` of at least {others + 1}, as {others} are no words"
            raise _problem(feature, expected, str(encode.max_tokens))
        most = None if encode.max_tokens is None else encode.max_tokens - others
        return WordVocabulary(encode.standardize, most)
    most = None if encode.max_tokens is None else encode.max_tokens - (2 if masked else 1)
    mask = "" if masked else None
    return Vocabulary(is_text=encoder.is_text, most=most, mask=mask, classes=encoder.is_target)


def _problem(feature: Feature, expected: str, got: str, hint: str = "") -> SpecError:
    path = ("fit", "encode", feature.name)
    return SpecError(Problem(path=path, expected=expected, got=got, hint=hint))


def fingerprint(
    schema: Schema, encodes: Mapping[str, Encode], targets: Set[str], shards: Iterable[Shard]
) -> str:
    """The fingerprint of the rows and options from which statistics are computed."""
    known: dict[str, Any] = {
        "schema": schema.fingerprint,
        "shards": [shard.identity for shard in shards],
        "encode": {
            # a default of a later release: statistics in a file stay valid
            name: {
                option: value
                for option, value in to_builtins(encode).items()
                if (option, value) != ("end", True)
            }
            for name, encode in encodes.items()
        },
        # the fingerprint of the schema excludes options of reading, such as `default` and `resize`
        "features": {name: to_builtins(schema.names[name].shortest) for name in encodes},
    }
    if left_out := [name for name in encodes if schema.names[name].traits.indicator is not None]:
        known["missing"] = left_out  # without this entry, statistics in a file include defaults
    if targets:
        known["targets"] = sorted(targets)
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def encoders(
    schema: Schema,
    encodes: Mapping[str, Encode],
    targets: Set[str],
    fingerprint: str,
    kept: Location,
    batches: Callable[[Iterable[str]], Iterable[Mapping[str, Any]]],
) -> dict[str, FitEncoder]:
    """The encoder of each encoded feature, by name, with the statistics of a split.

    Args:
        targets: the names of the encoded features that are targets.
        fingerprint: the fingerprint of the rows and options of the statistics.
        kept: the file of the statistics. It is read if it has this fingerprint and is valid, otherwise
            written.
        batches: a function that reads the named features of the split, as `Schema.decode_numpy` returns them.

    Raises the errors of reading, and SpecError for values from which nothing can be learned.
    """
    made = {}
    with types_of(schema):
        types = batch_spec(schema)
        for name, encode in encodes.items():
            feature, batch = schema.names[name], types[name]
            in_lists = _kind(batch) == "RaggedTensorSpec"
            if not feature.traits.class_names:
                _check_batch(feature, batch)
            made[name] = FitEncoder(feature, encode, {}, batch.dtype.name, in_lists, name in targets)
    learned = {name: encoder for name, encoder in made.items() if not encoder.is_label}
    states = _kept_states(
        kept, fingerprint, {name: (encoder, types[name]) for name, encoder in learned.items()}
    )
    if states is None:
        learning = {name: _learner(encoder) for name, encoder in learned.items()}
        for batch in batches(learning) if learning else ():
            for name, learner in learning.items():
                learner.add(batch[name], batch.get(schema.names[name].traits.indicator or ""))
        states = {name: _state(schema.names[name], learner) for name, learner in learning.items()}
        _keep(kept, fingerprint, states)
    return {name: replace(encoder, state=states.get(name, {})) for name, encoder in made.items()}


def _state(feature: Feature, learner: Learner) -> dict[str, Any]:
    try:
        return learner.state()
    except SpecError as error:
        raise SpecError(problem.under("fit", "encode", feature.name) for problem in error.problems) from None


def _kept_states(
    path: Location, fingerprint: str, learned: Mapping[str, tuple[FitEncoder, Any]]
) -> dict[str, Any] | None:
    """The states in a file; None if there is no file, or it is for other rows or, with a warning, invalid.

    Args:
        learned: the encoder of each feature with a state, and the type of a batch of the feature.
    """
    try:
        stored = json.loads(read_text(path, _MOST_BYTES))
        if stored["fingerprint"] != fingerprint:
            return None
        states: dict[str, Any] = stored["layers"]
        for name, (encoder, batch) in learned.items():
            if not _is_state(encoder, batch, states[name]):
                raise ValueError(f"`{name}` has none of `{encoder.encode.as_}`")
        return states
    except (StoreError, SpecError) as error:
        reason = "" if isinstance(error.__cause__, FileNotFoundError) else str(error)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"{path}: {'no ' if isinstance(error, KeyError) else ''}{error}"
    if reason:
        text = f"the statistics of `fit.encode` are computed again: {reason}"
        warnings.warn(show_text(text), stacklevel=5)
    return None


def _is_state(encoder: FitEncoder, batch: Any, state: Mapping[str, Any]) -> bool:
    """Whether a state is valid for an encoder and a type of batch.

    Raises ValueError, TypeError, KeyError or RecursionError for values of wrong types.
    """
    encode = encoder.encode
    if encode.as_ == "normalize":
        mean, variance = (np.asarray(state[name]) for name in ("mean", "variance"))
        last = list(batch.shape)[getattr(batch, "ragged_rank", 0) + 1 :][-1:]
        return (
            mean.shape == variance.shape
            and mean.ndim == len(last)
            and all(size in (None, *mean.shape) for size in last)
            and bool(np.isfinite([mean, variance]).all() and (variance >= 0).all())
        )
    if encode.as_ == "discretize":
        bounds = np.asarray(state["bin_boundaries"])
        return bounds.ndim == 1 and bool(np.isfinite(bounds).all() and (np.diff(bounds) >= 0).all())
    tokens = state["vocabulary"]
    kind = str if encoder.is_text else int
    return bool(tokens) and len({*tokens}) == len(tokens) and {*map(type, tokens)} == {kind}


def _keep(path: Location, fingerprint: str, states: Mapping[str, Any]) -> None:
    text = json.dumps({"fingerprint": fingerprint, "layers": states}, ensure_ascii=False)
    try:
        with output_file(path, force=True) as file:
            file.write_text(text, encoding="utf-8")
    except (StoreError, SpecError, OSError) as error:  # for example, the dataset is read-only
        warnings.warn(f"the statistics of `fit.encode` are not kept: {error}", stacklevel=5)
