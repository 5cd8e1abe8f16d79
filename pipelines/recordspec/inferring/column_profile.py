"""Profiles of a column's values, from which its feature is inferred."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.errors import counted
from recordspec.inferring.notations import CellForms
from recordspec.inferring.rules import (
    LEAST_ROWS,
    LONGEST_NAME,
    MANY_TEXTS,
    MAX_CLASSES,
    Evidence,
    notes_of_free_text,
)
from recordspec.schema.arrow_values import is_file, is_list, without_views
from recordspec.schema.dates import DateUnit, finest, to_dates, unit_of_dates
from recordspec.schema.features.option_checks import STORAGE
from recordspec.schema.values import EXACT_INTS, holds
from recordspec.wire.arrays import to_numpy, truth_array
from recordspec.writing.sources import text_cells as text
from recordspec.writing.sources.class_names import ArrayType

_FIRST_TEXTS = 1024
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_INT64 = range(-(1 << 63), 1 << 63)
# The form in which pandas writes the integers of a column with missing values.
_WHOLE = r"^[-+]?[0-9]{1,18}(\.0+)?$"
# Digits that are no number: with leading zeros, or with a plus in a column without any minus, as in `+49171`.
_LEADING_ZERO, _PLUS, _MINUS = "^[-+]?0[0-9]", "^[+]", "^-"
_MOST_MARKS = 3
# The share of cells that may be any texts in a column of numbers.
_MOST_OTHERS = 0.05
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
_CURRENCY = r"(?:[$€£₹¥]|USD|EUR|GBP|INR|Rs\.?)"
# The most texts that are checked for lists, and the least share of them that have the text between items.
_FIRST_LISTS, _LEAST_LISTS = 200, 0.25
# The least numbers in a list with commas or spaces, which numbers also have.
_LEAST_NUMBERS = 3
# Forms in CSV cells that people read as numbers or dates, but a build does not, each with the form that it
# reads.
_NOTATIONS = {
    "numbers": (
        f"^[-+\u2212(]?({_CURRENCY}[ \u00a0]?)?[-+\u2212]?"
        "(\\d{1,3}([,']\\d{3})+(\\.\\d+)?|[1-9]\\d{0,2}([. \u00a0\u202f]\\d{3})+(,\\d+)?|\\d+([.,]\\d+)?"
        "|[1-9]\\d?(,\\d{2})+,\\d{3}(\\.\\d+)?)"
        f"([ \u00a0\u202f]?(%|{_CURRENCY}))?[-)]?$",
        "1234.5",
    ),
    "dates": (
        r"^(\d{1,2}[./-]\d{1,2}[./-]\d{4}|(0?[1-9]|[12]\d|3[01])[./](0?[1-9]|[12]\d|3[01])[./]\d{2}"
        r"|\d{4}[./]\d{1,2}[./]\d{1,2})"
        r"([ T]\d{1,2}:\d{2}(:\d{2})?( ?[AaPp][Mm])?)?$",
        "2026-01-31",
    ),
}
# A list in JSON, without objects.
_JSON_LIST = re.compile(r"\s*\[[^{}]*\]\s*")
# Integers for which no dtype exists.
BEYOND_INTEGERS = "int beyond int64 and uint64 (in quotes it is text)"
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
# The index of a class, printed as its name; and written as a float.
_INDEX = re.compile("0|[1-9][0-9]{0,3}")
_FLOAT_INDEX = re.compile(r"(0|[1-9][0-9]{0,3})(\.0+)?")


@dataclass
class NumberProfile:
    """The range and precision of a column's numbers, which decide their dtype.

    Attributes:
        rounded: the first whole number that float32 cannot represent, perhaps an identifier.
        unheld: by dtype, the first integer, as given, that float32 or float64 cannot represent.
        low, high: the range of the finite single numbers; infinity and minus infinity if there are none.
        large: whether a number exceeds the range of float32, or an integer that of int64.
        negative: whether an integer is negative.
        finite: whether no single number is NaN or infinite.
    """

    rounded: float | None = None
    unheld: dict[str, int] = field(default_factory=dict)
    large: bool = False
    negative: bool = False
    finite: bool = True
    low: float = math.inf
    high: float = -math.inf

    def add(self, numbers: npt.NDArray[np.floating[Any]]) -> None:
        """Adds floats."""
        are_finite = np.isfinite(numbers)
        if not are_finite.all():
            self.finite, numbers = False, numbers[are_finite]
        self.low = min(self.low, float(numbers.min(initial=math.inf)))
        self.high = max(self.high, float(numbers.max(initial=-math.inf)))
        if numbers.dtype != np.float32:
            self._add_beyond_float32(numbers)

    def merge(self, other: NumberProfile) -> None:
        """Adds the profile of the numbers that follow."""
        self.rounded = other.rounded if self.rounded is None else self.rounded
        self.unheld = {**other.unheld, **self.unheld}
        self.large |= other.large
        self.negative |= other.negative
        self.finite &= other.finite
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def _add_beyond_float32(self, finite: npt.NDArray[np.floating[Any]]) -> None:
        self.large |= bool((abs(finite) > _MAX_FLOAT32).any())
        if self.rounded is not None:
            return
        whole = finite[(np.trunc(finite) == finite) & (abs(finite) <= _MAX_FLOAT32)]
        lost = whole[whole.astype(np.float32) != whole]  # float32 represents all integers up to 2^24
        if len(lost):
            self.rounded = float(lost[0])

    def add_integers(self, integers: Any) -> None:
        """Adds integers as given: if there are floats as well, the float type must represent the integers
        exactly.
        """
        self.unheld = _with_unheld(self.unheld, integers)


@dataclass
class CellProfile:
    """The dtypes and notations as which the text cells of a CSV column can be read.

    Attributes:
        numbers: the profile of the numbers, if the cells are numbers.
        empty: the number of quoted empty cells, which are text, but not numbers.
        pointed: by dtype, the first whole number with a decimal point that is too large for an integer
            feature and that float32 or float64 cannot represent.
        as_text: the dtype that cannot represent all numbers, if none can.
        zeros: whether an integer has leading zeros.
        signs: the signs of the integers.
        whole: whether all numbers are integers of up to 18 digits, perhaps with `.0`.
        gap_marks: the texts among numbers, such as `NA`, and the number of cells with each, judged by the
            first rows.
        gap_line: the line of the first of these cells, if known.
        forms: the possible notations of the cells.
        notations: the forms of `_NOTATIONS` that all cells have, with the first cell that no build reads.
        dtypes: the dtypes as which all cells can be read.
    """

    numbers: NumberProfile
    empty: int = 0
    pointed: dict[str, int] = field(default_factory=dict)
    as_text: str = ""
    zeros: bool = False
    signs: set[str] = field(default_factory=set)
    whole: bool = True
    gap_marks: Mapping[str, int] = field(default_factory=dict)
    gap_line: int | None = None
    forms: CellForms = field(default_factory=CellForms)
    notations: dict[str, str] = field(default_factory=lambda: dict.fromkeys(_NOTATIONS, ""))
    dtypes: tuple[str, ...] = ("int64", "float64", "bool")

    def add(self, some: Any, rows: int) -> None:
        """Adds cells; `rows` is the number of rows with a cell so far, including the new ones."""
        import pyarrow.compute as compute

        filled = some.filter(truth_array(to_numpy(compute.binary_length(some)) > 0))
        self.empty += len(some) - len(filled)
        were_numbers = "float64" in self.dtypes
        if len(filled) == rows - self.empty:
            self.gap_marks = _gap_marks(filled)
        self.dtypes = tuple(dtype for dtype in self.dtypes if text.are(filled, dtype))
        if were_numbers and "float64" not in self.dtypes:
            self.numbers.large, self.as_text = False, ""
        if "int64" in self.dtypes and not self.zeros:

            def any_is(pattern: str) -> bool:
                matches = compute.match_substring_regex(filled, pattern)
                return bool(compute.any(matches, min_count=0).as_py())

            self.zeros = any_is(_LEADING_ZERO)
            self.signs |= {sign for sign in (_PLUS, _MINUS) if any_is(sign)}
        if "float64" in self.dtypes and self.whole:
            matches = compute.match_substring_regex(filled, _WHOLE)
            self.whole = bool(compute.all(matches, min_count=0).as_py())
            pointed = text.beyond_point(filled)
            first = {"float32": pointed[0]} if pointed else {}
            self.pointed = _with_unheld(first | self.pointed, np.array(pointed, np.int64))
        if "float64" in self.dtypes:
            self._add_numbers(filled)
        if len(filled):
            self.forms.add(filled, are_plain="float64" in self.dtypes)
            self._add_notations(filled)

    def _add_numbers(self, filled: Any) -> None:
        """Adds cells that are all numbers; while all cells are integers, only the integers."""
        short, long = text.integers(filled)
        self.numbers.add_integers(short)
        self.numbers.add_integers(np.array(long, object))
        if "int64" in self.dtypes:
            if not all(value in _INT64 for value in long):
                self.dtypes, self.as_text = (), "int64"
            return
        numbers = text.cast(filled, "float64")
        if numbers is None:
            numbers = np.array(filled.to_pylist(), np.float64)
        if text.overflows(filled, numbers):
            self.dtypes, self.as_text = (), "float64"
        else:
            self.numbers.add(numbers)

    def _add_notations(self, filled: Any) -> None:
        import pyarrow.compute as compute

        if "float64" in self.dtypes:  # all cells are numbers and need no further check
            self.notations.pop("dates", None)
            return
        if not self.notations:
            return
        plain = text.form(filled, "float64")
        for name, example in [*self.notations.items()]:
            fits = compute.match_substring_regex(filled, _NOTATIONS[name][0])
            if not compute.all(compute.or_(fits, plain) if name == "numbers" else fits).as_py():
                del self.notations[name]
            elif not example:
                odd = filled.filter(compute.invert(plain))
                self.notations[name] = odd[0].as_py() if len(odd) else ""

    def dtype(self, dtype: str | None, *, is_date: bool) -> tuple[str | None, tuple[str, ...]]:
        """The dtype of the cells, of which `dtype` is the first choice, and a note on any change."""
        if dtype == "int64" and (self.zeros or self.signs == {_PLUS}) and not is_date:
            return "string", ("digits with leading zeros or a plus, which an integer loses: text",)
        if dtype == "float32" and self.is_whole:
            return "int64", ("integers, some with `.0`, which float32 would round: kept as int64",)
        return dtype, ()

    @property
    def is_rounded(self) -> bool:
        """Whether the numbers, some with `.0`, are whole and float32 would round one of them."""
        return self.whole and self.numbers.rounded is not None

    @property
    def is_whole(self) -> bool:
        """Whether the numbers are integers that float32 would round, and int64 represents."""
        return self.is_rounded and not self.pointed

    @property
    def notes_of_text(self) -> tuple[str, ...]:
        """Notes on cells that are text, but almost numbers or dates."""
        notes: tuple[str, ...] = ()
        if self.gap_marks:
            first = ", ".join(f"`{mark}`" for mark in [*self.gap_marks][:_MOST_MARKS])
            more = len(self.gap_marks) - _MOST_MARKS
            marks = f"{first} and {more:,} more" if more > 0 else first
            cells = counted(sum(self.gap_marks.values()), "cell")
            first_at = "" if self.gap_line is None else f", first on line {self.gap_line:,}"
            way = "if that means missing, `missing` of the source says so"
            notes = (f"numbers, but for {marks} ({cells} of the first rows{first_at}): {way}",)
        if not self.zeros:
            notes += tuple(
                f"{name} such as `{cell}` are inferred as text: {_way(cell, name, read)}"
                for name, (_, read) in _NOTATIONS.items()
                if (cell := self.notations.get(name))
            )
        return notes


def _way(cell: str, name: str, read: str) -> str:
    """The options of the source that read a cell, if they are known; else the notation that a build reads."""
    options = []
    if name == "dates":
        short = re.match(r"(\d{1,2})([./-])(\d{1,2})[./-]\d{2}(?!\d)", cell)
        if short is not None:
            form = "%m{0}%d{0}%y" if int(short[3]) > 12 else "%d{0}%m{0}%y"
            options.append(f'`dates: "{form.format(short[2])}"`, with the years 1969 to 2068,')
    elif (currency := re.search(_CURRENCY, cell)) is not None:
        options.append(f'`currency: "{currency[0]}"`')
    if name == "numbers":
        marks = {"(": "(5)", "\u2212": "\u22125"}
        negative = next(
            (form for mark, form in marks.items() if mark in cell), "5-" if cell[-1] == "-" else ""
        )
        options += [f'`negative: "{negative}"`'] if negative else []
    if not options:
        return f"a build reads only the notation `{read}`"
    groups = " (beside `thousands` and `decimal`)" * bool(
        name == "numbers" and re.search("[0-9][.,' ][0-9]", cell)
    )
    return f"{' and '.join(options)} of the source read{'s' * (len(options) == 1)} them{groups}"


def _feature_of_json(cells: Sequence[str]) -> str:
    """A feature of lists that are written in JSON; "" if none has the items of all."""
    try:
        items = [item for cell in cells for item in json.loads(cell)]
    except ValueError:
        return ""
    kinds = {type(item) for item in items if item is not None}
    if not kinds or (kinds != {str} and not kinds <= {int, float}):
        return ""
    dtype, fill = {str: ("string", "''"), int: ("int64", "-1")}.get(
        next(iter(kinds)) if len(kinds) == 1 else float, ("float32", ".nan")
    )
    missing = f", missing_item: {fill}" if None in items else ""
    return f"{{kind: var_len, dtype: {dtype}{missing}}}"


def _note_of_lists(name: str, texts: Sequence[str]) -> Iterator[str]:
    """A note on the first texts of a column that may be lists of numbers, or of words that repeat."""
    some = texts[:_FIRST_LISTS]
    if some and all(_JSON_LIST.fullmatch(cell) for cell in some):
        feature = _feature_of_json(some)
        yield f"texts such as `{some[0][:40]}` are lists, kept as text: " + (
            f"`lists: {{{name}: json}}` of the source, and `{feature}` as the feature, read them"
            if feature
            else f'the source reads lists without brackets, `lists: {{{name}: ","}}`, and in JSON, '
            f"`lists: {{{name}: json}}`"
        )
        return
    for mark in ("|", ";", ",", " "):
        lists = [cell.strip(" ").split(mark) for cell in some]
        items = [item.strip(" ") for cell in lists for item in cell]
        several = sum(len(cell) > 1 for cell in lists)
        if several < max(2, _LEAST_LISTS * len(some)):
            continue
        if mark in ", " and min(map(len, lists)) < _LEAST_NUMBERS:
            continue
        are_numbers = all(map(_NUMBER.fullmatch, items)) and several == len(some)
        are_words = (
            mark in "|;" and 2 * len(set(items)) <= len(items) and not any(" " in item for item in items)
        )
        if are_numbers or are_words:
            whole = all(map(str.isdigit, items))
            dtype = "string" if not are_numbers else "int64" if whole else "float32"
            yield (
                f"texts such as `{next(cell for cell in some if mark in cell)[:40]}` may be lists: "
                f'`lists: {{{name}: "{mark}"}}` of the source, and `{{kind: var_len, dtype: {dtype}}}` as '
                "the feature, read them"
            )
            return


@dataclass
class ValueProfile:
    """A profile of single values, of a column or of a key of records.

    Attributes:
        values: the distinct texts or integers; None if there are more than `MAX_CLASSES`.
        whole: the distinct single floats, if all are whole numbers from 0 to below `MAX_CLASSES`; else None.
        numbers: the profile of the numbers.
        first_texts: the first texts, at most 1,024.
        repeat: whether two rows of a batch have the same text.
        words: whether a text has several words, or is long; if not, texts may be names or identifiers.
    """

    values: set[Any] | None = field(default_factory=set)
    whole: set[int] | None = field(default_factory=set)
    numbers: NumberProfile = field(default_factory=NumberProfile)
    first_texts: tuple[str, ...] = ()
    repeat: bool = False
    words: bool = False

    def add_values(self, some: Any) -> None:
        """Adds the distinct values of an Arrow array of integers or texts."""
        if self.values is not None:
            distinct = some.unique()
            if len(distinct) <= MAX_CLASSES:
                self.values |= set(distinct.to_pylist())
            if len(distinct) > MAX_CLASSES or len(self.values) > MAX_CLASSES:
                self.values = None

    def add_floats(self, some: npt.NDArray[np.floating[Any]]) -> None:
        """Adds the distinct values of single floats, if all of them may be classes."""
        if self.whole is None or not len(some):
            return
        if not bool(((some >= 0) & (some < MAX_CLASSES)).all()):  # also NaN
            self.whole = None
            return
        indices = some.astype(np.int64)
        is_whole = bool((indices == some).all())
        self.whole = self.whole | set(np.flatnonzero(np.bincount(indices)).tolist()) if is_whole else None

    def add_texts(self, some: Any) -> None:
        """Adds an Arrow array of texts, none of them missing."""
        import pyarrow.compute as compute

        if not self.first_texts:
            self.first_texts = tuple(filter(None, some[:_FIRST_TEXTS].to_pylist()))
        self.repeat = self.repeat or len(some.unique()) < len(some)
        if not self.words:
            # in NumPy: a number next to an Arrow array becomes a scalar, which imports pandas, in 0.2 s
            longest = to_numpy(compute.binary_length(some)).max(initial=0)
            if longest > LONGEST_NAME:
                longest = to_numpy(compute.utf8_length(some)).max(initial=0)
            self.words = bool(longest > LONGEST_NAME) or text.have(some, " \t\n\f\r")

    def merge(self, other: ValueProfile) -> None:
        """Adds the profile of the values that follow."""
        known = None if self.values is None or other.values is None else self.values | other.values
        self.values = known if known is not None and len(known) <= MAX_CLASSES else None
        self.whole = None if self.whole is None or other.whole is None else self.whole | other.whole
        self.numbers.merge(other.numbers)
        self.first_texts = self.first_texts or other.first_texts
        self.repeat |= other.repeat
        self.words |= other.words

    def are_words(self, rows: int, missing: int) -> bool:
        """Whether the values are texts, and each row has a different word; `missing` is the number of
        rows without a text.
        """
        return not (self.repeat or self.words or missing) and rows >= LEAST_ROWS

    def notes_of_words(self, rows: int, missing: int) -> tuple[str, ...]:
        """Notes on texts of several words, if they are mostly different; otherwise empty."""
        distinct = None if self.values is None else len(self.values)
        return notes_of_free_text(rows, rows - missing, distinct) if self.words else ()

    def notes_of_codes(self, rows: int, missing: int) -> tuple[str, ...]:
        """A note on texts of one word, if they are too many to be classes; otherwise empty."""
        many = self.values is None and not self.words and not self.are_words(rows, missing)
        return (MANY_TEXTS,) if many else ()


@dataclass(kw_only=True)
class ColumnProfile(ValueProfile):
    """The common properties of a column's values.

    Attributes:
        type: the Arrow type of all values that are not null; string for any CSV column.
        by_length: whether lists of equal length have a fixed shape.
        cells: the profile of CSV cells; None for other values.
        rows, nulls: the number of rows, and of rows without a value.
        class_names: the class names for integers that are indices, if known.
        array: the dtype and the shape of arrays, if the source declares them.
        order: the classes of ordered categories, in their order.
        may_be_class: whether integers may be indices of classes.
        odd: a description of the values, if they have no common type, or no Arrow type.
        was: a note on an Arrow type whose values are stored with another type.
        not_utf8: whether an Arrow text is invalid UTF-8.
        lengths: the different lengths of lists, at most two.
        missing_items: the number of numbers, texts or bools in lists that are missing.
        gaps: whether another item of a list is missing: a list in a list, or the index of a class.
        objects: the names of the objects in which the column is a member.
        date: the coarsest unit for all values, if they are dates and times, or texts of dates.
    """

    name: str
    by_length: bool = False
    cells: CellProfile | None = None
    type: Any = None
    rows: int = 0
    nulls: int = 0
    class_names: tuple[str, ...] = ()
    array: ArrayType | None = None
    order: tuple[str, ...] = ()
    may_be_class: bool = True
    odd: str = ""
    was: str = ""
    not_utf8: bool = False
    lengths: set[int] = field(default_factory=set)
    missing_items: int = 0
    gaps: bool = False
    objects: set[str] = field(default_factory=set)
    date: DateUnit | None = None
    _may_be_dates: bool = True

    @classmethod
    def of_cells(cls, name: str) -> ColumnProfile:
        """The profile of a CSV column."""
        profile = cls(name=name)
        profile.cells = CellProfile(profile.numbers)
        return profile

    def add(self, column: Any, rows: int) -> None:
        """Adds the next rows: an Arrow array, or a description of values that have no Arrow type."""
        import pyarrow.types as types

        self.rows += rows
        if isinstance(column, str):
            self.odd = self.odd or column
            return
        if types.is_dictionary(column.type) and column.type.ordered and _is_text(column.type):
            # of all batches, since a batch may have fewer classes
            self.order = tuple(dict.fromkeys((*self.order, *column.dictionary.to_pylist())))
        column = self._normal(column)
        # text cells are read with large offsets, which is not a property of the column
        self._add_type(arrow().string() if self.cells is not None else column.type)
        if self.class_names and types.is_integer(column.type):
            column = arrow().compute.if_else(arrow().compute.less(column, 0), None, column)
        self.nulls += column.null_count
        some = column.drop_null()
        self._add_some(some.dictionary_decode() if types.is_dictionary(column.type) else some)

    def merge(self, other: ValueProfile) -> None:
        """Adds the profile of the rows that follow. Neither profile may be of CSV cells."""
        assert isinstance(other, ColumnProfile)
        super().merge(other)
        self.rows, self.nulls = self.rows + other.rows, self.nulls + other.nulls
        self.order = tuple(dict.fromkeys((*self.order, *other.order)))
        self.odd, self.was = self.odd or other.odd, other.was or self.was
        if other.not_utf8 and not self.not_utf8:
            self._become_bytes()
        if other.type is not None:
            self._add_type(other.type)
        self.lengths |= other.lengths
        self.missing_items += other.missing_items
        self.gaps |= other.gaps
        self.objects |= other.objects
        self.may_be_class &= other.may_be_class
        self._may_be_dates &= other._may_be_dates
        if other.date is not None:
            self.date = finest(self.date or other.date, other.date)

    def _normal(self, column: Any) -> Any:
        """Converts a column to a type that a feature can store, and notes the original type."""
        if "list_view" in str(column.type).partition("<")[0]:
            column = column.cast(arrow().list_(column.type.value_type))
        types, kind = arrow().types, item_type(column.type)
        if isinstance(kind, arrow().BaseExtensionType) and not is_tensor(column.type):  # JSON, UUID
            column = column.cast(_with_items(column.type, kind.storage_type))
            kind = item_type(column.type)
        if _is_text(kind) and self.cells is None:
            self._check_utf8(column)
            column = column.dictionary_decode() if types.is_dictionary(column.type) else column
            return column.cast(_with_items(column.type, arrow().large_binary())) if self.not_utf8 else column
        if types.is_decimal(kind):
            self.was = f"{kind}, kept as numbers: `kind: text` keeps all digits"
            number = arrow().float64()
        elif types.is_time(kind) or types.is_duration(kind):
            since = "of a duration" if types.is_duration(kind) else "since midnight"
            self.was = f"{_UNITS[kind.unit]} {since}"
            self.may_be_class, number = False, arrow().int64()
        elif types.is_fixed_size_binary(kind):
            hint = "`kind: tensor` with `encoding: raw`, if these are numbers"
            self.was, number = f"{kind.byte_width:,} bytes each: {hint}", arrow().large_binary()
        elif "view" in str(kind):
            plain = arrow().large_string() if types.is_string_view(kind) else arrow().large_binary()
            return without_views(column, _with_items(column.type, plain))
        else:
            return column
        if types.is_time(kind) and kind.bit_width == 32:
            column = column.cast(_with_items(column.type, arrow().int32()))
        return column.cast(_with_items(column.type, number))

    def _check_utf8(self, column: Any) -> None:
        """Treats all texts as bytes once one is invalid UTF-8, which Arrow does not check when it reads
        them.
        """
        try:
            column.validate(full=True)
        except arrow().ArrowInvalid:
            self._become_bytes()

    def _become_bytes(self) -> None:
        """Treats all texts as bytes."""
        self.not_utf8, self.values, self._may_be_dates = True, None, False
        self.was = "text that is not UTF-8, kept as bytes"
        if self.type is not None and _is_text(item_type(self.type)):
            self.type = _with_items(self.type, arrow().large_binary())

    def _add_some(self, some: Any) -> None:
        """Adds values, none of them missing."""
        import pyarrow.types as types

        if types.is_string(some.type) or types.is_large_string(some.type):
            some = some.cast(arrow().large_string())
            self.add_values(some)
            self.add_texts(some)
        elif types.is_date(some.type) or types.is_timestamp(some.type):
            self._add_dates(to_dates(some))
        elif types.is_integer(some.type):
            self.add_values(some)
            self._add_items(some)
        elif types.is_floating(some.type):
            self._add_items(some)
            self.add_floats(to_numpy(some))
        elif is_list(some.type):
            self._add_lists(some)
        elif is_tensor(some.type):
            self._add_items(some.storage.flatten())

    def _add_lists(self, some: Any) -> None:
        import pyarrow.types as types

        items = some.flatten()
        while is_list(items.type):
            self.gaps |= items.null_count > 0
            items = items.flatten()
        items = items.storage.flatten() if is_tensor(items.type) else items
        self.missing_items += items.null_count
        if _is_text(items.type) and self.shallow:
            self.add_values(items.dictionary_decode() if types.is_dictionary(items.type) else items)
        if self.class_names and types.is_integer(items.type):
            self.gaps |= bool(arrow().compute.any(arrow().compute.less(items, 0), min_count=0).as_py())
        self._add_items(items.drop_null())
        if self.by_length and len(self.lengths) < 2 and not is_list(some.type.value_type):
            self.lengths |= set(some.value_lengths().unique().to_pylist()[:2])

    def _add_items(self, items: Any) -> None:
        """Adds numbers, single or from lists; items of other types are skipped."""
        import pyarrow.types as types

        if types.is_floating(items.type):
            self.numbers.add(to_numpy(items).astype(np.float64))
        elif types.is_integer(items.type):
            integers = to_numpy(items)
            self.numbers.large |= types.is_uint64(items.type) and bool((integers > _INT64[-1]).any())
            self.numbers.negative |= types.is_signed_integer(items.type) and bool((integers < 0).any())
            self.numbers.add_integers(integers)

    def _add_type(self, kind: Any) -> None:
        import pyarrow.types as types

        if self.type is None or types.is_null(self.type):
            self.type = kind
        elif not kind.equals(self.type) and not types.is_null(kind):
            common = _common_type(self.type, kind)
            self.odd = self.odd or ("" if common else f"{self.type} and {kind}")
            self.type = common or self.type

    def add_texts(self, some: Any) -> None:
        super().add_texts(some)
        if self.cells is not None:
            self.cells.add(some, self.rows - self.nulls)
        if self._may_be_dates:
            texts = some.to_pylist()
            self._add_dates(texts if self.cells is None else [text for text in texts if text])

    def _add_dates(self, values: Any) -> None:
        unit = unit_of_dates(values)
        self._may_be_dates = unit is not None
        if unit is not None and len(values):
            self.date = finest(self.date or unit, unit)

    @property
    def read_as(self) -> str:
        """What all CSV cells are, in any notation: numbers, dates or bools; "" for text, or without cells."""
        cells = self.cells
        if cells is None or self.rows == self.nulls + cells.empty:
            return ""
        if "dates" in cells.notations or (self._may_be_dates and self.date is not None):
            return "dates"
        if "float64" in cells.dtypes or "numbers" in cells.notations:
            return "numbers"
        return "bools" if "bool" in cells.dtypes else ""

    def evidence(self) -> Evidence:
        """The evidence from all added rows."""
        cells = self.cells
        dtype, shape = (
            ("string", ()) if self._lacks_items or self.type is None else _dtype_and_shape(self.type)
        )
        if self.array is not None and dtype not in ("string", None):
            dtype, shape = self.array
            dtype = "float32" if dtype == "float64" else dtype
        date = self.date if self._may_be_dates else None
        dtype = dtype if date is None else "int64"
        if len(self.lengths) == 1 and shape == (None,):
            shape = tuple(self.lengths)
        notes: tuple[str, ...] = ()
        if cells is not None:
            if cells.dtypes and self.rows > self.nulls + cells.empty:
                dtype = {"float64": "float32"}.get(cells.dtypes[0], cells.dtypes[0])
            dtype, notes = cells.dtype(dtype, is_date=date is not None)
        if dtype == "float32" and "float64" in self._unheld:
            dtype = None if cells is None else "string"
        missing = self.nulls + (cells.empty if cells is not None and dtype != "string" else 0)
        if self.is_empty:
            missing = self.rows
        if cells is None and dtype == "int64" and self.numbers.large and self.numbers.negative:
            self.odd = self.odd or BEYOND_INTEGERS
        notes += (self.was,) * bool(self.was)
        if dtype == "string":
            notes += self._notes_of_cells
        free_text: tuple[str, ...] = ()
        codes: tuple[str, ...] = ()
        # amounts with a space are not words
        if dtype == "string" and not (cells and any(cells.notations.values())):
            free_text = self.notes_of_words(self.rows, missing)
            is_text = self.type is not None and _is_text(self.type)
            codes = self.notes_of_codes(self.rows, missing) if is_text else ()
        return Evidence(
            name=self.name,
            objects=frozenset(self.objects),
            rows=self.rows,
            missing=missing,
            type_name=self._type_name,
            dtype=None if self._lacks_items or self.odd or missing == self.rows else self._wide(dtype),
            shape=shape,
            is_text=self.type is not None and _is_text(self.type),
            date=date,
            may_be_string=cells is not None,
            values=self._distinct(dtype),
            class_names=self.class_names if dtype in ("int64", "uint64") else (),
            order=self.order,
            too_large_for="" if self.odd else self._too_large_for(dtype),
            rounded=self.numbers.rounded,
            finite=self.numbers.finite or dtype != "float32",
            lists=self.rows - self.nulls if self.is_empty and is_list(self.type) else 0,
            identifies=dtype == "string" and self._identifies,
            free_text=bool(free_text),
            notes=notes + free_text + codes,
        )

    @property
    def _notes_of_cells(self) -> tuple[str, ...]:
        """Notes on cells that are inferred as text."""
        if self.cells is None:
            return ()
        has_notation = any(self.cells.notations.values())
        lists = () if has_notation else tuple(_note_of_lists(self.name, self.first_texts))
        return (*self.cells.notes_of_text, *lists)

    @property
    def _type_name(self) -> str:
        """The name of the values in messages, with a hint how to make a feature of them, if possible."""
        types = arrow().types
        if not self.name:
            way = "`columns: {index: ''}` of a file's source"
            return f"a column without a name (rename it, or read it with {way})"
        if self.odd or self.type is None:
            return self.odd
        item, way = item_type(self.type), ""
        kind = "tensor" if types.is_boolean(item) else "var_len" if self.shallow else "ragged"
        if self.gaps:
            way = f" with items that are missing (a value of your own in their place makes it `kind: {kind}`)"
        elif is_list(self.type) and (types.is_date(item) or types.is_timestamp(item)):
            # Arrow casts no days to int64
            number = "int32" if types.is_date32(item) else "int64"
            option = ", with `missing_item` in place of missing items," if self.missing_items else ""
            way = f" (cast to {number}, `kind: {kind}` of int64{option} holds it)"
        elif self.missing_items:
            way = self._way_with_gaps
        elif is_file(item):
            way = " (`kind: image` or `kind: audio` takes it)"
        return f"{self.type}{way}"

    @property
    def _lacks_items(self) -> bool:
        return self.gaps or self.missing_items > 0

    @property
    def _way_with_gaps(self) -> str:
        """The number of missing items, with a feature that stores a value in their place, if there is one."""
        verb, place = ("is", "its place") if self.missing_items == 1 else ("are", "their place")
        missing = f" with {counted(self.missing_items, 'item')} that {verb} missing"
        dtype, shape = _dtype_and_shape(self.type)
        dtype = self._wide(dtype)
        if dtype is None:
            return missing
        fill = {"string": "''", "bool": "false"}.get(dtype, "0" if self.numbers.negative else "-1")
        fill = ".nan" if "float" in dtype else "0" if dtype == "uint64" else fill
        nulls = f"[{', '.join(['null'] * len(shape))}]"
        if dtype in STORAGE:
            kind = f"var_len, dtype: {dtype}" if self.shallow else f"ragged, dtype: {dtype}, shape: {nulls}"
        elif not self.shallow:
            return missing
        elif self.nulls:
            return f"{missing} (a value in {place}, and empty lists for missing ones, make it `kind: tensor`)"
        else:
            kind = f"tensor, dtype: {dtype}, shape: {nulls}"
        empty = "missing: empty, " if self.nulls else ""
        feature = f"{{kind: {kind}, {empty}missing_item: {fill}}}"
        return f"{missing} (`{feature}` stores {'NaN' if fill == '.nan' else fill} in {place})"

    @property
    def is_empty(self) -> bool:
        """Whether no value has an item or a member, so that the type is unknown."""
        if self.odd or self.type is None:
            return False
        item = item_type(self.type)
        return arrow().types.is_null(item) or (arrow().types.is_struct(item) and not item.num_fields)

    @property
    def shallow(self) -> bool:
        """Whether values are lists, but not lists of lists."""
        return self.type is not None and is_list(self.type) and not is_list(self.type.value_type)

    @property
    def _identifies(self) -> bool:
        """Whether the column is text, and each row has a different word."""
        is_text = self.type is not None and _is_text(self.type)
        return is_text and self.are_words(self.rows, self.nulls)

    def _wide(self, dtype: str | None) -> str | None:
        """The dtype that represents all numbers; CSV numbers without such a dtype have become text
        already.
        """
        wide = {"float32": "float64", "int64": "uint64"}
        return wide.get(dtype, dtype) if dtype is not None and self._too_large_for(dtype) else dtype

    def _too_large_for(self, dtype: str | None) -> str:
        """The dtype that is the first choice, but cannot represent all numbers; "" if there is none."""
        if dtype == "float32":
            return "float32" if self.numbers.large or self._unheld else ""
        if dtype in ("string", None):
            as_text = "" if self.cells is None else self.cells.as_text
            return as_text or ("float64" if "float64" in self._unheld and self._is_float else "")
        return "int64" if self.numbers.large else ""

    @property
    def _unheld(self) -> Mapping[str, int]:
        """`numbers.unheld`; for whole numbers of which float32 rounds some, also those with a decimal
        point.
        """
        unheld, cells = self.numbers.unheld, self.cells
        return {**cells.pointed, **unheld} if cells is not None and cells.is_rounded else unheld

    @property
    def _is_float(self) -> bool:
        """Whether some numbers are floats."""
        if self.cells is not None:
            return "float64" in self.cells.dtypes
        return bool(arrow().types.is_floating(item_type(self.type)))

    def _distinct(self, dtype: str | None) -> frozenset[Any] | None:
        if dtype == "int64" and not self.may_be_class:
            return None
        if dtype == "float32" and self.cells is None:
            return frozenset(self.whole) if self.whole else None
        if dtype == "float32":
            wholes = [_FLOAT_INDEX.fullmatch(text) for text in self.values or () if text]
            return frozenset(int(whole[1]) for whole in wholes if whole) if all(wholes) else None
        if self.values is None or self.cells is None or dtype != "int64":
            return None if self.values is None else frozenset(self.values)
        if not all(map(_INDEX.fullmatch, self.values)):
            return None
        return frozenset(map(int, self.values))


def item_type(kind: Any) -> Any:
    """The type of single values, or of the innermost items of lists and arrays."""
    while is_list(kind) or is_tensor(kind):
        kind = kind.value_type
    return kind


def _with_unheld(examples: dict[str, int], integers: Any) -> dict[str, int]:
    """By dtype, the first integer that float32 or float64 cannot represent: from `examples`, else from
    `integers`.
    """
    examples = dict(examples)
    for dtype in ("float32", "float64"):
        if dtype not in examples:
            most = EXACT_INTS[dtype]
            far = integers[(integers > most) | (integers < -most)]
            first = next((value for value in map(int, far) if not holds(value, dtype)), None)
            examples |= {} if first is None else {dtype: first}
    return examples


def _dtype_and_shape(kind: Any) -> tuple[str | None, tuple[int | None, ...]]:
    """The first choice of a dtype for an Arrow type, None if no feature can store it; and the shape of a
    value.
    """
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _dtype_and_shape(kind.value_type)
    if is_list(kind):
        dtype, shape = _dtype_and_shape(kind.value_type)
        size = kind.list_size if types.is_fixed_size_list(kind) and None not in shape else None
        return dtype, (size, *shape)
    if is_tensor(kind):
        item = np.dtype(kind.value_type.to_pandas_dtype()).name
        return "float32" if item == "float64" else item, tuple(kind.shape)
    if types.is_boolean(kind):
        return "bool", ()
    if types.is_integer(kind):
        return "int64", ()
    if types.is_floating(kind):
        return "float32", ()
    return "string" if _is_text(kind) or types.is_binary(kind) or types.is_large_binary(kind) else None, ()


def _with_items(kind: Any, item: Any) -> Any:
    """The type of nested lists with another item type; the item type itself if there are no lists."""
    if arrow().types.is_fixed_size_list(kind):
        return arrow().list_(_with_items(kind.value_type, item), kind.list_size)
    return arrow().list_(_with_items(kind.value_type, item)) if is_list(kind) else item


def is_tensor(kind: Any) -> bool:
    """Whether values are arrays of two or more dimensions, as created by `_array`."""
    return isinstance(kind, arrow().FixedShapeTensorType)


def _common_type(first: Any, other: Any) -> Any:
    """The common type of two types of numbers, or of lists or arrays of numbers; None if there is none."""
    import pyarrow.types as types

    first, other = map(_nested_type, (first, other))
    if is_list(first) and is_list(other):
        items = first.value_type, other.value_type
        common = next((item for item in items if not types.is_null(item)), items[0])
        if not any(map(types.is_null, items)) and not items[0].equals(items[1]):
            common = _common_type(*items)
        return None if common is None else arrow().list_(common)
    kinds = first, other
    if all(map(types.is_integer, kinds)):
        return arrow().uint64() if any(map(types.is_uint64, kinds)) else arrow().int64()
    if all(types.is_binary(kind) or types.is_large_binary(kind) or _is_text(kind) for kind in kinds):
        return arrow().large_string() if all(map(_is_text, kinds)) else arrow().large_binary()
    numbers = [types.is_integer(kind) or types.is_floating(kind) for kind in kinds]
    return arrow().float64() if all(numbers) else None


def _nested_type(kind: Any) -> Any:
    """The type of lists of any size for a type of arrays or lists; other types are returned unchanged."""
    if is_list(kind):
        return arrow().list_(_nested_type(kind.value_type))
    if not is_tensor(kind):
        return kind
    nested = kind.value_type
    for _ in kind.shape:
        nested = arrow().list_(nested)
    return nested


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _gap_marks(some: Any) -> Mapping[str, int]:
    """The texts without a digit among numbers, each with the number of its cells: if at least half of the
    cells are numbers, and all others are at most three such texts; or any texts, if they are few.
    """
    import pyarrow.compute as compute

    others = some.filter(compute.invert(text.form(some, "float64")))
    if not 0 < 2 * len(others) <= len(some):
        return {}
    marks = Counter(map(str, others.to_pylist()))
    are_marks = len(marks) <= _MOST_MARKS and not any(map(str.isdigit, "".join(marks)))
    are_few = len(others) <= _MOST_OTHERS * len(some) and not any(_has_notation(one) for one in marks)
    return dict(sorted(marks.items())) if are_marks or are_few else {}


def _has_notation(cell: str) -> bool:
    """Whether a cell is a number in a notation, which has notes of its own."""
    return re.search(_NOTATIONS["numbers"][0], cell) is not None
