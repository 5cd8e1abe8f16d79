"""What the columns of a file hold, as all of its records tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.looking.choice import Choice, keys_of, mixed, typed_values
from recordspec.inspect.looking.naming import Key, texts
from recordspec.inspect.looking.source import Part
from recordspec.inspect.looking.values import StepValues, Values
from recordspec.wire.decoded import Decoded
from recordspec.wire.proto import Kind
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
        steps = isinstance(held, StepValues)
        kind = held.values.kind if isinstance(held, StepValues) else held.kind
        return self == Form() or (steps == self.steps and ("none" in (kind, self.kind) or kind == self.kind))

    def joined(self, other: Form) -> Form:
        """What holds both, which are of the same key."""
        return Form(
            kind=other.kind if self.kind == "none" else self.kind,
            single=self.single and other.single,
            steps=self.steps or other.steps,
            text=self.text and other.text,
        )


Forms = Mapping[str, Form]


def form_of(held: Values | StepValues) -> Form:
    values = held.values if isinstance(held, StepValues) else held
    return Form(
        kind=values.kind,
        single=bool((values.lengths[values.present] == 1).all()),
        steps=isinstance(held, StepValues),
        text=not isinstance(values.flat, Strings) or are_text(values.flat),
    )


def columns_of(part: Part, decoded: Decoded, choice: Choice, known: Forms) -> Columns:
    """The values of a part by column. Raises RecordError where a list is of another kind than before it."""
    found: Columns = {}
    for key, name in _names(decoded, choice).items():
        held = found[name] = _labelled(typed_values(decoded, key, part), choice.naming.classes.get(key))
        if name in known and not known[name].fits(held):
            row = int(np.argmax(held.present))
            problem = mixed(str(known[name]), str(form_of(held)), key[1])
            raise RecordError(problem.at(part.place(row)), row)
    return found


def _labelled(held: Values | StepValues, classes: tuple[str, ...] | None) -> Values | StepValues:
    """The same, with names in the place of the indices of labels."""
    if isinstance(held, StepValues):
        values = _labelled(held.values, classes)
        return replace(held, values=values) if isinstance(values, Values) else held
    if classes is None or held.kind != "int64" or isinstance(held.flat, (Strings, type(None))):
        return held
    return replace(held, kind="bytes", flat=texts(held.flat, classes))


def _names(decoded: Decoded, choice: Choice) -> dict[Key, str]:
    """What the keys that are wanted are called; a feature list of the name of a feature is told from it."""
    keys = keys_of(decoded)
    in_context = {choice.naming.name(key) for key in keys if not key[0]}
    names = {}
    for key in keys:
        name = choice.naming.name(key)
        if not choice.columns or name in choice.columns:
            names[key] = f"sequence/{name}" if key[0] and name in in_context else name
    return names


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
