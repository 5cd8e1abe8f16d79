"""YAML as nodes: what is text and what is a number, what is refused, and what loads again as it was dumped."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_problems import problems

from recordspec import Schema
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.label import Label


def test_names_are_text_whatever_yaml_takes_them_for():
    names = ["on", "1", "no", "null", "1.5", "2020-01-01", "a b", "a/b", "é", "~", 'say "x"', "a: b", ""]
    text = "schema: x\nfeatures:\n" + "".join(f"  {name!r}: int64\n" for name in names[:-1])
    schema = Schema.loads(text)
    assert list(schema.names) == names[:-1]
    assert Schema.loads(schema.dump()) == schema
    plain = Schema.loads("schema: x\nfeatures: {on: int64, 1: float32, 1.50: string}")
    assert list(plain.names) == ["on", "1", "1.50"]


DECIMAL = "expected a decimal number, or text in quotes"
ZERO = "a leading zero can mean octal: write"


@pytest.mark.parametrize(
    ("text", "number", "hint"),
    [
        ("0", 0, ""),
        ("-0", 0, ""),
        ("+3", None, "write 3"),
        ("1_0", None, "write 10"),
        ("1_000", None, "write 1000"),
        ("012", None, f"{ZERO} 12"),
        ("-012", None, f"{ZERO} -12"),
        ("+012", None, f"{ZERO} 12"),
        ("08", None, f"{ZERO} 8"),
        ("00", None, f"{ZERO} 0"),
        ("0_1", None, f"{ZERO} 1"),
        ("0o12", None, "numbers are decimal: write 10"),
        ("0x1F", None, "numbers are decimal: write 31"),
        ("-0b11", None, "numbers are decimal: write -3"),
        ("1__0", None, "write 10"),
        ("1_", None, ""),
        ("1:30", None, ""),
        ("1e3", None, ""),
        ("1.0", None, ""),
        (".inf", None, ""),
    ],
)
def test_whole_numbers_are_plain_decimals(text, number, hint):
    spec = f"schema: x\nfeatures:\n  a: {{kind: var_len, dtype: int64, max_length: {text}}}\n"
    if number is not None and number > 0:
        assert Schema.loads(spec).names["a"].max_length == number
    elif number is None:
        (line,) = problems(spec)
        assert line.startswith("x.yaml:3:48: features.a.max_length: expected a whole number or null, got ")
        assert line.endswith(f"`{text}`{hint and f' ({hint})'}")


@pytest.mark.parametrize(
    ("text", "number", "hint"),
    [
        ("1_000.5", None, "write 1000.5"),
        ("+1.5", None, "write 1.5"),
        (".5", 0.5, ""),
        ("-.5", -0.5, ""),
        ("1.", 1.0, ""),
        ("1e3", 1000.0, ""),
        ("0.5", 0.5, ""),
        ("-0", 0, ""),
        (".inf", float("inf"), ""),
        ("012", None, f"{ZERO} 12"),
        ("00.5", None, f"{ZERO} 0.5"),
        ("01e2", None, f"{ZERO} 1e2"),
        ("0x1F", None, "numbers are decimal: write 31"),
        ("0o12", None, "numbers are decimal: write 10"),
        ("1:30", None, 'quote it: "1:30"'),
        ("1__0", None, "write 10"),
        ("1_0_", None, 'quote it: "1_0_"'),
        ("1e400", None, "float64 does not hold it"),
    ],
)
def test_defaults_are_plain_decimals(text, number, hint):
    spec = f"schema: x\nfeatures:\n  a: {{dtype: float32, default: {text}}}\n"
    if number is not None:
        assert Schema.loads(spec).names["a"].default == number
        return
    assert problems(spec) == [f"x.yaml:3:32: features.a.default: {DECIMAL}, got `{text}` ({hint})"]


def test_a_size_with_a_leading_zero_is_refused():
    assert problems("schema: x\nfeatures:\n  a: {dtype: int64, shape: [012]}\n") == [
        "x.yaml:3:29: features.a.shape[0]: expected a whole number or null, got int `012` "
        "(a leading zero can mean octal: write 12)"
    ]


@pytest.mark.parametrize(
    "default",
    [
        "09",
        "1e5",
        "nan",
        "yes",
        "~",
        "0x1f",
        "0o7",
        "1e400",
        "1_",
        "1_000",
        "+1",
        "1_0e5",
        "12:30",
        "",
        " a",
        "\n",
    ],
)
def test_text_that_looks_like_something_else_stays_text(default):
    feature = FixedLen(name=default or "x", dtype="string", default=default, description=default)
    schema = Schema(name="s", features=(feature, Label(name="l", names=(default, "b"))))
    assert Schema.loads(schema.dump()) == schema


@contextmanager
def at_most_calls(most: int) -> Iterator[None]:
    """Raises AssertionError where more functions are called within its block."""
    calls, before = itertools.count(1), sys.getprofile()

    def count(*_: object) -> None:
        assert next(calls) < 2 * most, f"more than {most:,} calls"  # of each call there is a return

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}' if i else '*a'] * 9)}]\n" for i in range(9)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "schema: !!python/object/apply:os.system ['touch executed']",
            "x.yaml:1:9: expected data without tags, got the tag "
            "`tag:yaml.org,2002:python/object/apply:os.system`",
        ),
        ("a: !!str b", "x.yaml:1:4: expected data without tags, got the tag `tag:yaml.org,2002:str`"),
        (BOMB, "x.yaml:6:14: expected at most 200,000 nodes, got more"),
        ("- " * 500, "x.yaml:1:129: expected at most 64 levels of nesting, got more"),
        ("x" * (5 << 20), "x.yaml: expected at most 4,194,304 characters, got 5,242,880"),
        ("a: *b", "x.yaml:1:4: expected an anchor defined before, got `*b`"),
        ("a: &a [*a]", "x.yaml:1:8: expected an anchor defined before, got `*a`"),
        ("? [a]\n: b", "x.yaml:1:3: expected text as a key, got a list"),
        ("a: 1\n---\nb: 2", "x.yaml:2:1: expected one document, got a second one"),
    ],
)
def test_hostile_yaml_is_refused_at_once(text, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with at_most_calls(100_000):  # of functions; the bomb costs 2,000 of them, and a billion if it goes off
        found = problems(text)
    assert found == [expected]
    assert list(tmp_path.iterdir()) == []


def test_absurd_nesting_is_refused_wherever_the_parser_notices_it():
    """libyaml 0.2.6 reads ahead after `[`, to its own limit of 1,000 levels; 0.2.5 has none."""
    (found,) = problems("[" * 100_000)
    where, _, message = found.partition(": ")
    assert where in {"x.yaml:1:65", "x.yaml:1:1001"}
    assert message == "expected at most 64 levels of nesting, got more"


def test_an_alias_stands_for_what_it_names():
    schema = Schema.loads("schema: x\nfeatures:\n  a: &scalar {dtype: int64, default: 1}\n  b: *scalar\n")
    assert schema.names["b"].default == 1


@given(st.text(min_size=1) | st.text("a \t\n\r\x85\u2028\u2029\ufeff\xa0", min_size=1))
def test_a_name_of_any_letters_loads_again(name):
    schema = Schema(name=name, features=(FixedLen(name=name, dtype="string", default=name),))
    assert Schema.loads(schema.dump()) == schema
