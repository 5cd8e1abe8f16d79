"""Conditions on records: `age > 30 and city == "Paris"`.

They are parsed as Python, but never run as it: of its syntax tree a few kinds of node are known, and each is
made into a function here. All others are errors.
"""

from __future__ import annotations

import ast
import keyword
import operator
import re
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from recordspec.errors import Problem, SpecError, nearest, show_int

# What a record has under a name: how many values (None if it is missing), and what they are.
Lookup = Callable[[str], "FieldValue"]
Condition = Callable[[Lookup], bool]
# A number or bytes, several of them in a list, or None of what is missing.
Expression = Callable[[Lookup], Any]

_LONGEST = 10_000
# The largest depth of nested conditions, which are evaluated recursively for every record.
_DEEPEST = 50
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_WORDS = ("and", "or", "not", "in")
_FUNCTIONS = ("len", "missing", "feature")
_NAMED = 'feature("...") takes a name that is no word'


class ComparisonError(Exception):
    """A record has something else than what can be compared so."""

    def __init__(self, expected: str, got: str, hint: str = "") -> None:
        super().__init__(expected, got, hint)
        self.problem = Problem(path=("where",), expected=expected, got=got, hint=hint)


class _Fraction(float):
    """A number of a condition that has a point or an exponent. `single` is the float32 closest to it."""

    def __init__(self, value: float) -> None:
        try:
            (self.single,) = struct.unpack("<f", struct.pack("<f", value))
        except OverflowError:  # beyond them all
            self.single = value


@dataclass(frozen=True)
class FieldValue:
    """What a record has under a name: how many values, of a feature list how many steps, None of what is
    missing. The values of all steps are one list, which is made when it is asked for.
    """

    count: int | None
    values: Callable[[], list[Any]]

    @property
    def value(self) -> Any:
        """The value, where there is one; a list of several, or of none; None of what is missing."""
        if self.count is None:
            return None
        values = self.values()
        return values[0] if len(values) == 1 else values


@dataclass(frozen=True)
class Where:
    """A condition, and the names in it. Raises ComparisonError."""

    holds: Condition
    names: tuple[str, ...]


def parse(text: str) -> Where:
    """Parses a condition. Raises SpecError with the position of an error.

    It knows comparisons (`<`, `==`, `in`, chains of them), `and`, `or`, `not`, numbers, texts, names of
    features, `len(name)`, `missing(name)`, and `feature("name")` for what is no word. A comparison with a
    missing value is false. A text is compared as its UTF-8 bytes. Numbers are compared exactly, but that one
    with a point or an exponent, which meets a float32, is the float32 closest to it: 0.1 is no float32.
    """
    if len(text) > _LONGEST:
        raise SpecError(_problem("", f"at most {_LONGEST:,} characters", f"{len(text):,}"))
    parser = _Parser(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in texts, say
            tree = ast.parse(text.strip(), "where", "eval")
        return Where(parser.condition(tree.body), tuple(parser.names))
    except SyntaxError as error:
        place = f", column {error.offset}" if error.offset else ""
        kept = [word for word in re.findall(r"\w+", text) if keyword.iskeyword(word) and word not in _WORDS]
        hint = f'{error.msg}; feature("{kept[0]}") takes a word of Python\'s' if kept else error.msg
        raise SpecError(_problem(place, "a condition", f"`{text}`", hint)) from None
    except (RecursionError, MemoryError):
        raise SpecError(_problem("", "a condition", "one that is nested too deeply")) from None
    except ValueError as error:  # a zero byte
        raise SpecError(_problem("", "a condition", str(error))) from None


def _problem(place: str, expected: str, got: str, hint: str = "") -> Problem:
    return Problem(where=f"where{place}", expected=expected, got=got, hint=hint)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self.names: dict[str, None] = {}

    def condition(self, node: ast.expr, depth: int = 0) -> Condition:
        if depth > _DEEPEST:
            raise RecursionError
        if isinstance(node, ast.BoolOp):
            parts = [self.condition(value, depth + 1) for value in node.values]
            every = all if isinstance(node.op, ast.And) else any
            return lambda lookup: every(part(lookup) for part in parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand, depth + 1)
            return lambda lookup: not inner(lookup)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Call) and self._function(node) == "missing":
            name = self._argument(node)
            return lambda lookup: lookup(name).count is None
        raise self._refused(node, "a condition, such as `age > 30`")

    def _comparison(self, node: ast.Compare) -> Condition:
        links = list(self._links(node))
        return lambda lookup: all(link(lookup) for link in links)

    def _links(self, node: ast.Compare) -> Iterator[Condition]:
        left = node.left
        for operation, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operation, (ast.In, ast.NotIn)):
                yield self._membership(left, right, isinstance(operation, ast.In))
            elif type(operation) in _COMPARISONS:
                yield _compared(_COMPARISONS[type(operation)], self._value(left), self._value(right))
            else:
                raise self._refused(node, "==, or missing(name)")
            left = right

    def _membership(self, left: ast.expr, right: ast.expr, wanted: bool) -> Condition:
        value = self._value(left)
        if isinstance(right, (ast.Tuple, ast.List)):
            known = [self._literal(one) for one in right.elts]
            if len({isinstance(one, bytes) for one in known}) > 1:
                raise self._refused(right, "a list of numbers or one of texts")
            return _among(value, lambda lookup: known, wanted)
        name = self._name(right, "a list, or the name of a feature")
        return _among(value, lambda lookup: _values(lookup(name)), wanted)

    def _value(self, node: ast.expr) -> Expression:
        if isinstance(node, (ast.Constant, ast.UnaryOp)):
            literal = self._literal(node)
            return lambda lookup: literal
        if isinstance(node, ast.Call) and self._function(node) == "len":
            counted = self._argument(node)
            return lambda lookup: lookup(counted).count
        name = self._name(node, "a name, a number or a text")
        return lambda lookup: lookup(name).value

    def _literal(self, node: ast.expr) -> Any:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            number = self._literal(node.operand)
            if not isinstance(number, bytes):
                return _Fraction(-number) if isinstance(number, float) else -number
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return node.value.encode("utf-8", "surrogatepass")
            if isinstance(node.value, bytes) or type(node.value) is int:
                return node.value
            if isinstance(node.value, float):
                return _Fraction(node.value)
            hint = "missing(name)" if node.value is None else "1 or 0" if type(node.value) is bool else ""
            raise self._refused(node, "a number or a text", hint)
        raise self._refused(node, "a number or a text")

    def _name(self, node: ast.expr, expected: str) -> str:
        if isinstance(node, ast.Name):
            self.names[node.id] = None
            return node.id
        if isinstance(node, ast.Call) and self._function(node) == "feature":
            return self._argument(node)
        hint = _NAMED if isinstance(node, (ast.BinOp, ast.Attribute, ast.Subscript)) else ""
        raise self._refused(node, expected, hint)

    def _function(self, node: ast.Call) -> str:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _FUNCTIONS:
            expected = "len(name), missing(name) or feature(text)"
            raise self._refused(node, expected, nearest(name, _FUNCTIONS))
        return name

    def _argument(self, node: ast.Call) -> str:
        """The name that a function is asked about."""
        if len(node.args) != 1 or node.keywords:
            raise self._refused(node, "one name in brackets")
        argument = node.args[0]
        if self._function(node) != "feature":
            return self._name(argument, "the name of a feature")
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise self._refused(argument, 'a name in quotes, as in feature("image/encoded")')
        self.names[argument.value] = None
        return argument.value

    def _refused(self, node: ast.expr, expected: str, hint: str = "") -> SpecError:
        column = len(self._text.splitlines()[node.lineno - 1].encode()[: node.col_offset].decode()) + 1
        line = f", line {node.lineno}" if node.lineno > 1 else ""
        got = ast.get_source_segment(self._text, node) or ""
        return SpecError(_problem(f"{line}, column {column}", expected, f"`{got}`", hint))


def _compared(operation: Callable[[Any, Any], bool], left: Expression, right: Expression) -> Condition:
    def holds(lookup: Lookup) -> bool:
        first, other = left(lookup), right(lookup)
        if first is None or other is None:
            return False
        _check_single(first)
        _check_single(other)
        _check_alike(first, other)
        return operation(_beside(first, other), _beside(other, first))

    return holds


def _among(value: Expression, known: Callable[[Lookup], list[Any] | None], wanted: bool) -> Condition:
    def holds(lookup: Lookup) -> bool:
        sought, others = value(lookup), known(lookup)
        if sought is None or others is None:
            return False
        _check_single(sought)
        for other in others[:1]:
            _check_alike(sought, other)
            sought = _beside(sought, other)
        if type(sought) is float:
            others = [_beside(other, sought) for other in others]
        return (
            any(map(operator.eq, others, repeat(sought))) is wanted
        )  # `in` would find a NaN that is the same

    return holds


def _beside(first: Any, other: Any) -> Any:
    """A value for a comparison: the only floats of records are float32."""
    return first.single if isinstance(first, _Fraction) and type(other) is float else first


def _values(field: FieldValue) -> list[Any] | None:
    return None if field.count is None else field.values()


def _check_single(value: Any) -> None:
    if isinstance(value, list):
        got = f"{len(value):,} values" if value else "an empty list"
        raise ComparisonError("one value to compare", got, "`in` and len(name) take lists")


def _check_alike(first: Any, other: Any) -> None:
    if isinstance(first, bytes) != isinstance(other, bytes):
        number, text = (other, first) if isinstance(first, bytes) else (first, other)
        shown = show_int(number) if isinstance(number, int) else str(number)
        raise ComparisonError("two numbers or two texts to compare", f"{shown} and {_text(text)}")


def _text(data: bytes) -> str:
    short = data[:20]
    return f"{short.decode('utf-8', 'backslashreplace')!r}{'...' * (len(data) > len(short))}"
