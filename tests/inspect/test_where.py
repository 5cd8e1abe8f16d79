"""Conditions on records: what they mean, and what is none."""

from __future__ import annotations

import operator
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordspec.errors import SpecError
from recordspec.inspect.where import ComparisonError, FieldValue, parse

ROW = {
    "age": [31],
    "city": [b"Paris"],
    "tags": [b"a", b"b"],
    "empty": [],
    "x": [0.5],
    "image/encoded": [b"\xff"],
    "fare": [struct.unpack("<f", struct.pack("<f", 0.1))[0]],
    "large": [17031839744.0],
    "number": [17031839744],
}


def lookup(name: str) -> FieldValue:
    values = ROW.get(name)
    return FieldValue(None if values is None else len(values), lambda: values or [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('age > 30 and city == "Paris"', True),
        ("age > 30 and not city == 'Paris'", False),
        ("age < 30 or x == .5", True),
        ("30 < age <= 31", True),
        ("-1 < x", True),
        ("age != 31", False),
        ('city in ("Paris", "Rome")', True),
        ('city not in ["Paris"]', False),
        ('"a" in tags', True),
        ('"c" not in tags', True),
        ('"c" in empty', False),
        ("age in age", True),
        ("len(tags) == 2 and len(empty) == 0 and len(age) == 1", True),
        ("missing(other)", True),
        ("missing(empty)", False),
        ("other > 1", False),
        ("other != 1", False),
        ("not other > 1", True),
        ("other in (1, 2)", False),
        ("1 not in other", False),
        ("len(other) == 0", False),
        (r'feature("image/encoded") == b"\xff"', True),
        ('not missing(feature("image/encoded"))', True),
        ("  age == 31  ", True),
        # numbers are compared exactly, but a float32 has not all fractions
        ("fare == 0.1 and fare <= 0.1 and fare >= .1 and fare in (1, 0.1) and 0.1 in fare", True),
        ("fare != 0.1 or fare < 0.1 or fare > 0.1 or fare not in (0.1,)", False),
        ("fare > -0.1 and fare != 0.1000001", True),
        ("large == number and number == large and large == 17031839744 == large == 1.7031839744e10", True),
        ("large == 17031839745 or large == 17031840000", False),
        ("number == 17031839744.5 or number in (17031839744.5,)", False),
        ("large < 1e39 and -1e39 < large and large < 1e999", True),
        ("large == 1e39", False),
    ],
)
def test_a_condition(text, expected):
    assert parse(text).holds(lookup) is expected


@pytest.mark.parametrize(
    ("count", "values", "expected"),
    [(1, [7], True), (2, [7], True), (1, [8], False), (1, [], None), (1, [7, 8], None)],
)
def test_the_steps_of_a_feature_list_are_not_its_values(count, values, expected):
    condition = parse("s == 7")
    found = FieldValue(count, lambda: values)
    if expected is None:
        with pytest.raises(ComparisonError):
            condition.holds(lambda name: found)
    else:
        assert condition.holds(lambda name: found) is expected


def test_the_names_in_a_condition():
    assert parse('b > 1 or "x" in a and missing(feature("c d")) or len(b) > 2').names == ("b", "a", "c d")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age", "where, column 1: expected a condition, such as `age > 30`, got `age`"),
        ("age > 3 and é.x == 1", 'where, column 13: expected a name, a number or a text, got `é.x` (feature("...") takes a name that is no word)'),
        ("image/encoded == 1", 'where, column 1: expected a name, a number or a text, got `image/encoded` (feature("...") takes a name that is no word)'),
        ("x == None", "where, column 6: expected a number or a text, got `None` (missing(name))"),
        ("x == True", "where, column 6: expected a number or a text, got `True` (1 or 0)"),
        ("x is 1", "where, column 1: expected ==, or missing(name), got `x is 1`"),
        ("x == 2j", "where, column 6: expected a number or a text, got `2j`"),
        ("leng(x) == 1", "where, column 1: expected len(name), missing(name) or feature(text), got `leng(x)` (did you mean `len`?)"),
        ("__import__('os').system('x') == 1", "where, column 1: expected len(name), missing(name) or feature(text), got `__import__('os').system('x')`"),
        ("len(x, y) == 1", "where, column 1: expected one name in brackets, got `len(x, y)`"),
        ("missing('x')", "where, column 9: expected the name of a feature, got `'x'`"),
        ("feature(x) == 1", 'where, column 9: expected a name in quotes, as in feature("image/encoded"), got `x`'),
        ("class == 1", "where, column 1: expected a condition, got `class == 1` (invalid syntax; feature(\"class\") takes a word of Python's)"),
        ("x in 'abc'", "where, column 6: expected a list, or the name of a feature, got `'abc'`"),
        ("x in (1, 'a')", "where, column 6: expected a list of numbers or one of texts, got `(1, 'a')`"),
        ("x in (y,)", "where, column 7: expected a number or a text, got `y`"),
        ("x + 1 > 2", 'where, column 1: expected a name, a number or a text, got `x + 1` (feature("...") takes a name that is no word)'),
        ("(x := 1) > 0", "where, column 2: expected a name, a number or a text, got `x := 1`"),
        ("(lambda: 1) == 1", "where, column 2: expected a name, a number or a text, got `lambda: 1`"),
        ("x ==\\\n1 and y", "where, line 2, column 7: expected a condition, such as `age > 30`, got `y`"),
        ("not " * 1000 + "x > 1", "where: expected a condition, got one that is nested too deeply"),
        ("x > 1" * 10_000, "where: expected at most 10,000 characters, got 50,000"),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_said_with_its_place(text, message):
    with pytest.raises(SpecError) as error:
        parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "text", ["", "age >", "(" * 5000, "x > " + "9" * 5000, "x == '\0'", "[" * 199 + "]" * 199]
)
def test_what_python_refuses_is_an_error_of_one_line(text):
    with pytest.raises(SpecError) as error:
        parse(text)
    assert str(error.value).startswith("where")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tags == 'a'", "where: expected one value to compare, got 2 values (`in` and len(name) take lists)"),
        ("empty < 3", "where: expected one value to compare, got an empty list (`in` and len(name) take lists)"),
        ("city > 3", "where: expected two numbers or two texts to compare, got 3 and 'Paris'"),
        ("age == 'thirty one years and a half'", "where: expected two numbers or two texts to compare, got 31 and 'thirty one years and'..."),
        ("age in tags", "where: expected two numbers or two texts to compare, got 31 and 'a'"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_an_error_not_an_answer(text, message):
    with pytest.raises(ComparisonError) as error:
        parse(text).holds(lookup)
    assert str(error.value.problem) == message


OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBERS, st.sampled_from(list(OPERATORS)), NUMBERS)
def test_numbers_compare_as_pythons_do(one, sign, other):
    assert parse(f"{one} {sign} {other}").holds(lookup) is OPERATORS[sign](one, other)


@given(st.text(), st.text())
def test_texts_compare_as_their_bytes_do(one, other):
    assert parse(f"{one!r} < {other!r}").holds(lookup) is (encoded(one) < encoded(other))


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
