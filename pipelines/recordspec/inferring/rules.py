"""Rules that infer a feature from evidence on its values, in records and in tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recordspec.errors import SpecError
from recordspec.schema.dates import DateUnit
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.fixed_len_sequence import FixedLenSequence
from recordspec.schema.features.label import Label
from recordspec.schema.features.option_checks import STORAGE, static
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.inferred import Inferred
from recordspec.schema.schema import Schema

# The largest number of distinct values that may be classes.
MAX_CLASSES = 1000
# If the name does not suggest a label, values are classes only if they are few, and frequent on average.
_MAX_UNNAMED_CLASSES = 20
_ROWS_PER_CLASS = 10
_CLASS_NAMES = re.compile(
    r"(^|[/_.-])(labels?|class(es|_id)?|targets?|categor(y|ies)|land_?cover|y)($|[/_.-])", re.IGNORECASE
)
# With fewer rows, values may differ by chance; a text with more characters is not a name.
LEAST_ROWS = 20
LONGEST_NAME = 64
_FREE_TEXT = (
    "texts of several words, mostly different: `fit.encode` takes them as `words`",
    "a missing text has no words, whose mean is NaN: `default: none` is a word",
)
# A proposed `one_hot` has at most as many columns as there are classes.
MANY_TEXTS = (
    f"more than {MAX_CLASSES:,} distinct texts: `one_hot` has a column for each of the most frequent; "
    "`index` in `fit.encode`, with an Embedding layer, takes all"
)
# Reasons why a feature should not be an input of a model.
IDENTIFIES = "it identifies rows"
_DEFAULTS: dict[str, Any] = {"int64": 0, "float32": 0.0, "string": ""}


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence on the values of one key or column.

    Attributes:
        name: the name of the feature.
        key: the stored key, if it differs from the name.
        objects: the names of the objects in which the values are members.
        rows: the number of rows (of a feature list: steps) that can have a value.
        missing: the number of such rows without a value.
        type_name: the name of the values in messages.
        dtype: the smallest dtype that represents all values: bool, int64, uint64, float32, float64 or string;
            None if there are no values, or if no feature can store them.
        shape: the shape of each value; None for a size that varies.
        stored: whether the values are stored in records, so that the feature must read them unchanged. The
            values of a table may be stored in another form: text as the index of a class, a missing value as
            a default.
        is_text: whether all strings are UTF-8.
        may_be_string: whether numbers may be stored as strings, as in a CSV file.
        date: the coarsest unit of dates and times.
        values: the distinct values, if they are at most `MAX_CLASSES` integers or texts.
        class_names: the names of the classes, if the values are indices and the names are known.
        order: the classes of ordered categories, in their order.
        media: the common format of all strings, such as `PNG image`.
        media_options: the kind and the options that decode the media; None if there are none.
        sequence: whether this is a feature list of a SequenceExample.
        absent: the number of records that lack the feature list.
        too_large_for: the first choice of a dtype, if it cannot represent all numbers.
        lists: the number of lists, if all of them are empty.
        rounded: an integer that float32 cannot represent, if any.
        finite: whether no number is NaN or infinite.
        identifies: whether the values are texts, and each row has a different word.
        free_text: whether the values are texts of several words, mostly different.
        notes: further notes.
    """

    name: str
    key: str | None = None
    objects: frozenset[str] = frozenset()
    rows: int
    missing: int = 0
    type_name: str = ""
    dtype: str | None = None
    shape: tuple[int | None, ...] = ()
    stored: bool = False
    is_text: bool = False
    may_be_string: bool = False
    date: DateUnit | None = None
    values: frozenset[Any] | None = None
    class_names: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    media: str = ""
    media_options: Mapping[str, Any] | None = None
    sequence: bool = False
    absent: int = 0
    too_large_for: str = ""
    lists: int = 0
    rounded: float | None = None
    finite: bool = True
    identifies: bool = False
    free_text: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether there are no values, or only empty ones."""
        return self.dtype is None and self.missing == self.rows

    @property
    def share_missing(self) -> str:
        return f"missing in {self.missing:,} of {self.rows:,}"

    @property
    def unit(self) -> str:
        return "steps" if self.sequence else "rows"


def infer_features(tallied: Iterable[Evidence]) -> tuple[list[tuple[Evidence, Feature | None]], list[str]]:
    """The feature that stores the values of each evidence, if any, and notes on omitted, lost or guessed
    values.
    """
    tallied = _with_members(list(tallied))
    names = {evidence.name for evidence in tallied}
    features, notes = [], []
    for evidence in tallied:
        feature, more = _feature_and_notes(evidence, names)
        features.append((evidence, feature))
        notes += more
    return features, notes


def _with_members(tallied: list[Evidence]) -> list[Evidence]:
    """Combines the evidence of columns that have objects only in some batches with that of their members.

    Without other values, the column is dropped: Arrow infers the type null for it, beside the columns of the
    members in other batches. If the column has (empty) lists, the lists of its members vary in size, since an
    empty list has no items. With other values, or with lists beside objects, no feature stores the column,
    and its members are dropped.
    """
    objects = frozenset[str]().union(*(one.objects for one in tallied))
    parents = {one.name: one for one in tallied if one.name in objects}
    of_objects = {name for one in tallied if one.dtype is not None and not one.shape for name in one.objects}
    mixed = {
        name for name, one in parents.items() if not one.is_nothing or (one.lists and name in of_objects)
    }
    combined = []
    for one in tallied:
        if one.name in parents.keys() - mixed or one.objects & mixed:
            continue
        if one.name in mixed:
            one = replace(one, dtype=None, type_name=f"{one.type_name} and objects")
        if lists := sum(parents[name].lists for name in one.objects & parents.keys()):
            one = replace(one, missing=one.missing - lists, shape=one.shape and (None, *one.shape[1:]))
        combined.append(one)
    return combined


def inferred_schema(
    schema: Schema, features: Sequence[tuple[Evidence, Feature | None]], notes: Iterable[str], rows: int
) -> Inferred:
    """A schema of the features returned by `infer_features`, with the conclusions from their evidence."""
    return Inferred(
        schema=schema,
        notes=tuple(notes),
        rows=rows,
        left_out=tuple(evidence.name for evidence, feature in features if feature is None),
        no_inputs=_no_inputs(features),
        free_text=_free_text(features),
    )


def _no_inputs(features: Iterable[tuple[Evidence, Feature | None]]) -> dict[str, str]:
    """The features that should not be inputs of a model, with the reason."""
    reasons = {}
    for evidence, feature in features:
        if feature is not None and evidence.identifies and not feature.value_type.is_number:
            reasons[feature.name] = IDENTIFIES
        elif feature is not None and _lacks_finite(evidence, feature):
            reasons[feature.name] = "no model learns from NaN or infinity"
    return reasons


def notes_of_free_text(rows: int, values: int, distinct: int | None) -> tuple[str, ...]:
    """Notes on texts of which some have several words, if the texts are mostly different.

    `distinct` is the number of distinct texts among `values`, None for more than `MAX_CLASSES`. The rest of
    the rows have no text.
    """
    many = distinct is None or distinct > MAX_CLASSES or 2 * distinct > values
    return _FREE_TEXT[: 1 + (values < rows)] if many and rows >= LEAST_ROWS else ()


def _free_text(features: Iterable[tuple[Evidence, Feature | None]]) -> tuple[str, ...]:
    """The features with texts of several words, mostly different."""
    return tuple(
        feature.name
        for evidence, feature in features
        if feature is not None and evidence.free_text and feature.value_type.item == "text"
    )


def _lacks_finite(evidence: Evidence, feature: Feature) -> bool:
    """Whether a feature has NaN or infinity among its numbers."""
    return not evidence.finite and feature.value_type.is_number


def _feature_and_notes(evidence: Evidence, names: Set[str]) -> tuple[Feature | None, list[str]]:
    guesses: list[str] = []
    feature = _feature(evidence, guesses)
    if feature is not None and feature.value_type.item != "text":
        # An empty text is recognized as missing, a number is not.
        feature = feature.indicating(f"{feature.name}_missing" not in names)
    if feature is not None and evidence.absent:
        feature = replace(feature, missing="empty")
    if feature is None:
        notes = [_reason(evidence)]
    else:
        notes = [*evidence.notes, *guesses, *_losses(evidence, feature)]
        if evidence.missing:
            default = " and reads as its default" if feature.traits.optional else ""
            default = " and reads as empty" if feature.missing == "empty" else default
            default += f", with {feature.traits.indicator} true" if feature.traits.indicator else ""
            notes = [f"{evidence.share_missing} {evidence.unit}{default}", *notes]
    name = evidence.name or '""'
    return feature, [f"{name}: {note}" for note in notes]


def _reason(evidence: Evidence) -> str:
    """The reason why a key or a column is omitted."""
    rows = f"{evidence.rows:,} {evidence.unit}"
    if evidence.is_nothing:
        return f"always empty, in {rows}: its type is unknown, so it is left out"
    reason = evidence.type_name
    if not evidence.name:
        return f"{reason}, so it is left out"
    if evidence.too_large_for:
        reason += f", too large for {evidence.too_large_for}"
    elif evidence.missing and evidence.dtype is not None:
        reason += f" that is missing in {evidence.missing:,} of {rows}"
        if evidence.dtype == "bool" and evidence.shape == (None,):
            reason += " (an empty list in its place makes it `kind: tensor`)"
    return f"{reason}, which no feature holds, so it is left out"


def _losses(evidence: Evidence, feature: Feature) -> list[str]:
    """Notes on values that the feature rounds or loses, and on a dtype other than the first choice."""
    notes = []
    dtype = feature.value_type.item if feature.value_type.is_number else "string"
    if dtype == "float32" and evidence.rounded is not None:
        keeps = ": `{kind: tensor, dtype: float64}` keeps them"
        if evidence.missing:
            keeps = ": `{dtype: string, default: ''}` keeps them" if evidence.may_be_string else ""
        notes.append(f"float32 rounds {evidence.rounded:.0f}, and others{keeps}")
    if _lacks_finite(evidence, feature):
        notes.append("some numbers are NaN or infinite: a model cannot learn from them")
    if evidence.too_large_for:
        notes.append(f"numbers that {evidence.too_large_for} does not hold: kept as {dtype}")
    return notes


def _feature(evidence: Evidence, guesses: list[str]) -> Feature | None:
    if not evidence.name or evidence.dtype is None:
        return None
    named: dict[str, Any] = {
        "name": evidence.name,
        "key": None if evidence.key == evidence.name else evidence.key,
        "description": evidence.share_missing if evidence.missing else "",
    }
    if evidence.class_names and not (evidence.missing and evidence.shape != (None,)):
        # labels of a fixed shape have no default, so that the names are stored as text
        return Label(names=evidence.class_names, shape=evidence.shape, **_lists(evidence, named))
    if evidence.class_names:
        return _fixed(evidence, "string", named)
    if None in evidence.shape:
        return _listed(evidence, _lists(evidence, named), guesses)
    if evidence.shape:
        return _fixed(evidence, evidence.dtype, named)
    return _scalar(evidence, named, guesses)


def _lists(evidence: Evidence, named: dict[str, Any]) -> dict[str, Any]:
    """The options of a list feature: for a table's row without a list, it stores an empty list."""
    return named | ({"missing": "empty"} if evidence.missing and not evidence.stored else {})


def _listed(evidence: Evidence, named: dict[str, Any], guesses: list[str]) -> Feature | None:
    """The feature that stores lists of different lengths."""
    dtype, shape = str(evidence.dtype), evidence.shape
    levels = next((at for at, size in enumerate(shape) if size is not None), len(shape))
    if None in shape[levels:] or (dtype not in STORAGE and (evidence.missing or levels > 1)):
        return None
    if dtype not in STORAGE:
        return AnyTensor(dtype=dtype, shape=shape, encoding="raw", **named)
    if len(shape) > 1:
        return RaggedLists(dtype=dtype, shape=shape, **named)
    names = () if dtype == "int64" else _class_names(evidence, dtype, guesses)
    if names:
        return Label(names=names, shape=shape, **named)
    return VariableLen(dtype=dtype, **named)


def _scalar(evidence: Evidence, named: dict[str, Any], guesses: list[str]) -> Feature | None:
    dtype = evidence.dtype or "string"
    if evidence.date is not None:
        said = [f"{evidence.date} since 1970-01-01", named["description"]]
        named["description"] = ", ".join(filter(None, said))
        return FixedLen(dtype=dtype, date=evidence.date, default=0 if evidence.missing else None, **named)
    if dtype not in STORAGE and evidence.missing and evidence.may_be_string:
        return _fixed(evidence, "string", named)
    if dtype == "float32" and (names := _float_classes(evidence, guesses)):
        return Label(names=names, encoding="float", **named)
    names = () if evidence.missing else _class_names(evidence, dtype, guesses)
    if names:
        return Label(names=names, **named)
    if dtype not in STORAGE:
        default: Any = None if not evidence.missing else False if dtype == "bool" else 0
        return AnyTensor(dtype=dtype, default=default, **named)
    if evidence.media:
        return _medium(evidence, named, guesses)
    if dtype == "string" and evidence.is_text and not evidence.missing:
        return Text(**named)
    return _fixed(evidence, dtype, named)


def _fixed(evidence: Evidence, dtype: str, named: dict[str, Any]) -> Feature:
    if dtype not in STORAGE:
        encoding: Any = "raw" if evidence.shape else None  # a single `decode_raw` reads a batch
        zeros = np.zeros(static(evidence.shape), dtype).tolist() if evidence.missing else None
        return AnyTensor(dtype=dtype, shape=evidence.shape, encoding=encoding, default=zeros, **named)
    if not evidence.sequence:
        default = np.full(static(evidence.shape), _DEFAULTS[dtype]).tolist() if evidence.missing else None
        return FixedLen(dtype=dtype, shape=evidence.shape, default=default, **named)
    return FixedLenSequence(dtype=dtype, shape=evidence.shape, **named)


def _medium(evidence: Evidence, named: dict[str, Any], guesses: list[str]) -> Feature:
    if evidence.media_options is not None:
        kind, options = evidence.media_options["kind"], dict(evidence.media_options)
        del options["kind"]
        try:
            return KINDS[kind](**options, **named)
        except SpecError:
            pass
    guesses.append(
        f"{evidence.media}s of mixed formats, or of one that TensorFlow does not decode: kept as bytes"
    )
    return _fixed(evidence, "string", named)


def _class_names(evidence: Evidence, dtype: str, guesses: list[str]) -> tuple[str, ...]:
    """The names of classes, if the values are classes; for integers, their digits."""
    if dtype == "int64":
        return _integer_classes(evidence, guesses)
    if evidence.order and dtype == "string" and "" not in evidence.order:
        return evidence.order
    values = evidence.values or frozenset()
    most = MAX_CLASSES if _CLASS_NAMES.search(evidence.name) else _MAX_UNNAMED_CLASSES
    if dtype != "string" or evidence.stored or "" in values or not 2 <= len(values) <= most:
        return ()
    return tuple(sorted(values)) if _ROWS_PER_CLASS * len(values) <= evidence.rows else ()


def _integer_classes(evidence: Evidence, guesses: list[str]) -> tuple[str, ...]:
    """The classes for integers from 0 on, only if the name suggests a label: they may be counts."""
    values = evidence.values
    if not values or min(values) != 0 or not 1 <= (high := max(values)) < MAX_CLASSES:
        return ()
    if len(values) <= (high + 1) / 2:
        return ()
    if _CLASS_NAMES.search(evidence.name):
        guesses.append(f"classes 0 to {high}: replace these numbers with the names of the classes")
        return tuple(map(str, range(high + 1)))
    if high < _MAX_UNNAMED_CLASSES and _ROWS_PER_CLASS * len(values) <= evidence.rows:
        guesses.append(f"integers from 0 to {high}: if they are classes, `kind: label` takes their names")
    return ()


def _float_classes(evidence: Evidence, guesses: list[str]) -> tuple[str, ...]:
    """The classes for floats that are all whole and few, such as the land cover of Earth Engine; only if they
    begin at 0, the name suggests a label, and no value is missing.
    """
    values = evidence.values
    if not values or not 1 <= (high := max(values)) < MAX_CLASSES or len(values) <= (high + 1) / 2:
        return ()
    if _ROWS_PER_CLASS * len(values) > evidence.rows:
        return ()
    found = f"floats, all whole, from {min(values)} to {high}, {len(values)} different"
    least = min(values)
    if _CLASS_NAMES.search(evidence.name) and not evidence.missing and not least:
        guesses.append(f"{found}: classes, by the name; replace these numbers with the names of the classes")
        return tuple(map(str, range(high + 1)))
    if high < _MAX_UNNAMED_CLASSES or _CLASS_NAMES.search(evidence.name):
        missing = " and `missing: true`" if evidence.missing else ""
        first = ", the first of which is that of 0" if least else ""
        way = f"`kind: label` with `encoding: float`{missing} takes their names{first}"
        guesses.append(f"{found}: if they are classes, {way}")
    return ()
