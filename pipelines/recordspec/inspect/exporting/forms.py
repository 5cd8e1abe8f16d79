"""What the columns of a file hold, as all of its records tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.looking.choice import Choice, keys_of
from recordspec.inspect.looking.naming import SEQUENCE, Key, texts
from recordspec.inspect.looking.source import Part
from recordspec.inspect.looking.values import MixedKindsError, StepValues, Values, steps_of, values_of
from recordspec.wire.columns import Kind
from recordspec.wire.record_batch import RecordBatch
from recordspec.wire.strings import Strings, are_text

# Records may each have a key of their own.
_MOST_COLUMNS = 4096

# The values of some rows, by the name of their column.
Columns = dict[str, Values | StepValues]


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a column holds.

    Attributes:
        kind: of values; `none` where no record has any.
        single: whether every record that has the key has one value (of a feature list: every step).
        steps: whether it is a feature list.
        text: of bytes: whether all of them are UTF-8.
    """

    kind: Kind = "none"
    single: bool = True
    steps: bool = False
    text: bool = True

    @property
    def is_list(self) -> bool:
        return self.steps or not self.single

    def __str__(self) -> str:
        return f"steps of {self.kind}" if self.steps else self.kind

    def fits(self, held: Values | StepValues) -> bool:
        """Whether the column holds these, too."""
        other = form_of(held)
        if self == Form() or not held.present.any():
            return True
        return other.steps == self.steps and ("none" in (other.kind, self.kind) or other.kind == self.kind)

    def joined(self, other: Form) -> Form:
        """What holds both, which are of the same key."""
        return Form(
            kind=other.kind if self.kind == "none" else self.kind,
            single=self.single and other.single,
            steps=self.steps or other.steps,
            text=self.text and other.text,
        )


Forms = Mapping[str, Form]


class Names:
    """What columns are called: a feature list of the name of a feature is told from it.

    Which are, is decided before the records are read, by the columns that are wanted and some of the keys.
    """

    def __init__(self, choice: Choice, keys: Iterable[Key]) -> None:
        self.choice = choice
        features = {choice.naming.name(key) for key in keys if not key[0]}
        said = {name for name in choice.columns if name.startswith(SEQUENCE)}
        self._told = features | {name.removeprefix(SEQUENCE) for name in said}
        self.first = tuple(name for name in map(self.column, keys) if name is not None)

    def column(self, key: Key) -> str | None:
        """The column of a key; None of one that is not wanted."""
        name = self.choice.naming.name(key)
        if key[0] and name in self._told:
            name = SEQUENCE + name
        return name if not self.choice.columns or name in self.choice.columns else None


def form_of(held: Values | StepValues) -> Form:
    values = held.values if isinstance(held, StepValues) else held
    return Form(
        kind=values.kind,
        single=bool((values.lengths[values.present] == 1).all()),
        steps=isinstance(held, StepValues),
        text=not isinstance(values.flat, Strings) or are_text(values.flat),
    )


def columns_of(part: Part, decoded: RecordBatch, names: Names, known: Forms) -> Columns:
    """The values of a part by column. Raises RecordError where a list is of another kind than before it."""
    found: Columns = {}
    for key in keys_of(decoded):
        name = names.column(key)
        if name is None:
            continue
        held = _labelled(_typed_values(decoded, key, part), names.choice.naming.classes.get(key))
        if name in known and not known[name].fits(held):
            raise _mixed(known[name], form_of(held), name, part, _first(held))
        if name in found and found[name].present.any() and held.present.any():
            one, other = sorted((found[name], held), key=_first)
            raise _mixed(form_of(one), form_of(other), name, part, _first(other))
        if name not in found or held.present.any():
            found[name] = held
    return found


def _first(held: Values | StepValues) -> int:
    return int(np.argmax(held.present))


def _typed_values(decoded: RecordBatch, key: Key, part: Part) -> Values | StepValues:
    """What the records of a part have under a key. Raises RecordError for lists of several kinds."""
    in_sequence, name = key
    try:
        if in_sequence:
            return steps_of(decoded.sequence.get(name, ()), decoded.rows)
        return values_of(decoded.features.get(name, ()), decoded.rows)
    except MixedKindsError as error:
        raise _mixed(error.before, error.found, name, part, error.row) from None


def _mixed(before: Kind | Form, found: Kind | Form, name: str, part: Part, row: int) -> RecordError:
    """What is wrong where a column has lists of two kinds."""
    hint = ""
    if isinstance(before, Form) and isinstance(found, Form) and before.steps != found.steps:
        told = f"`{SEQUENCE}{name}` among the columns tells the feature list from the feature"
        hint = "choose other columns" if name.startswith(SEQUENCE) else told
    problem = Problem(path=(name,), expected=f"{before}, as in records before", got=str(found), hint=hint)
    return RecordError(problem.at(part.place(row)), row)


def _labelled(held: Values | StepValues, classes: tuple[str, ...] | None) -> Values | StepValues:
    """The same, with names in the place of the indices of labels."""
    if isinstance(held, StepValues):
        values = _labelled(held.values, classes)
        return replace(held, values=values) if isinstance(values, Values) else held
    if classes is None or held.kind != "int64" or isinstance(held.flat, (Strings, type(None))):
        return held
    return replace(held, kind="bytes", flat=texts(held.flat, classes))


def with_columns(forms: Forms, columns: Columns) -> dict[str, Form]:
    """The forms that hold these columns, too."""
    found = dict(forms)
    for name, held in columns.items():
        form = form_of(held)
        found[name] = form.joined(found[name]) if name in found else form
    if len(found) > _MOST_COLUMNS:
        expected = f"at most {_MOST_COLUMNS:,} features to export"
        raise SpecError(Problem(path=("columns",), expected=expected, got="more", hint="choose some"))
    return found


def ordered(forms: Forms, columns: tuple[str, ...]) -> dict[str, Form]:
    """The columns as they are wanted; if nobody said so, by name, feature lists last."""
    names = columns or sorted(forms, key=lambda name: (forms[name].steps, name))
    return {name: forms[name] for name in names}


def missing(form: Form, rows: int) -> Values | StepValues:
    """A column of which some rows have nothing."""
    none, zeros = np.zeros(rows, bool), np.zeros(rows, np.int64)
    if not form.steps:
        return Values(kind="none", present=none, lengths=zeros, flat=None)
    values = Values(kind="none", present=none[:0], lengths=zeros[:0], flat=None)
    return StepValues(present=none, counts=zeros, values=values)
