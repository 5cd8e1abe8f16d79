"""Options are read from YAML and from Python by the same rules."""

from __future__ import annotations

import dataclasses
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordspec import KINDS, SpecError
from recordspec.config import From
from recordspec.order.read_options import Read
from recordspec.schema.options import (
    INVALID,
    MAPPINGS,
    YamlValue,
    choices,
    document,
    from_python,
    hints,
    literals,
    read_fields,
    short_form,
)
from recordspec.schema.yaml_text import dump
from recordspec.training.fit import Fit
from recordspec.writing.write_options import Write

CLASSES = (Read, Write, Fit, From, *KINDS.values())

# `<` and `:` are indicators of YAML; the texts are some that a reader could take for something else.
TEXTS = st.sampled_from(["a", "rows", "auto", "on", "null", "12", "1e3", "0x1f", "ü <:", "", "a\nb", ".nan"])
NUMBERS = st.sampled_from([0, 1, -1, 3, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**90])
FLOATS = st.sampled_from([0.0, 0.5, 1e300, -2.0, float("inf"), float("nan")])
SCALARS = st.one_of(TEXTS, NUMBERS, FLOATS, st.booleans(), st.none())
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=4,
)


def values(annotation) -> st.SearchStrategy:
    """Values of the annotation, and now and then others."""
    fitting = [fitting_values(choice) for choice in choices(annotation)]
    return st.one_of(*fitting, *fitting, *fitting, ANYTHING)


def fitting_values(choice) -> st.SearchStrategy:
    if literals(choice):
        return st.sampled_from(literals(choice))
    if typing.get_origin(choice) is tuple:
        return st.lists(values(typing.get_args(choice)[0]), max_size=3)
    if typing.get_origin(choice) in MAPPINGS:
        return st.dictionaries(TEXTS, values(typing.get_args(choice)[1]), max_size=2)
    if dataclasses.is_dataclass(choice):
        short = short_form(choice)
        whole = options(choice)
        return whole if short is None else st.one_of(whole, values(hints(choice)[short]))
    known = {str: TEXTS, int: NUMBERS, float: FLOATS, bool: st.booleans(), type(None): st.none()}
    return known.get(choice, ANYTHING)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"batch": 32, "drop_remainder": True}, "`batch: {size: ..., drop_remainder: ...}`"),
        ({"shuffle": {"seed": 1}, "buffer": 100}, "`shuffle: {buffer: ...}`"),
        ({"batch": 32, "of": 1}, ""),
    ],
)
def test_the_hint_for_an_option_one_level_too_high(given, hint):
    with pytest.raises(SpecError) as error:
        from_python(Read, given)
    assert [problem.hint for problem in error.value.problems] == [hint]


@st.composite
def options(draw, cls) -> dict[str, object]:
    """Options of a class: those that it requires as a rule, some others, now and then one that it has not."""
    annotations = hints(cls)
    names = draw(st.lists(st.sampled_from(sorted(annotations)), max_size=3, unique=True))
    if draw(st.integers(0, 9)):
        missing = dataclasses.MISSING
        names += [
            field.name
            for field in dataclasses.fields(cls)
            if field.default is missing and field.default_factory is missing and field.name not in names
        ]
    found = {name.rstrip("_"): draw(values(annotations[name])) for name in names}
    return found if draw(st.integers(0, 9)) else found | {"unknown": 1}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_yaml_and_python_accept_and_refuse_the_same(cls):
    @given(options(cls))
    def holds(given_options):
        node, log = document(dump(given_options) if given_options else "{}", "f.yaml")
        in_yaml = read_fields(cls, YamlValue(node), (), log)
        in_python, problems = read_python(cls, given_options)
        assert in_yaml == in_python
        assert places(log.problems) == places(problems)

    holds()


def read_python(cls, given_options):
    try:
        return from_python(cls, given_options), ()
    except SpecError as error:
        return INVALID, error.problems


def places(problems) -> set[tuple[object, str]]:
    """What is wrong where; how a value is described differs."""
    return {(problem.path, problem.expected) for problem in problems}
