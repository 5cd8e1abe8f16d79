"""Notations of CSV cells that differ from the default: `1.234,5`, `12 %`, `31.01.2026`, and words for
missing values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem
from recordspec.schema.values import Array
from recordspec.wire.arrays import Mask, buffer_of, byte_table, present_in, to_numpy

Decimal = Literal[".", ","]
Thousands = Literal[",", ".", "'", " "]
# Negative numbers that are not written as -5: in parentheses, with U+2212, with a minus at the end.
Negative = Literal["(5)", "\u22125", "5-"]
MINUS = "\u2212"

# Spaces in numbers, including two non-breaking ones, of which the second is narrow.
_SPACES = "[ \u00a0\u202f]"
_SEPARATORS: Mapping[str, str] = {",": ",", ".": r"\.", "'": "['\u2019]", " ": _SPACES}
_PERCENT = f"{_SPACES}?%"
_SPECIAL = "(?i:[-+]?inf|-?infinity|nan)"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ZONE = "Z|(?P<sign>[-+])(?P<zone_hour>[0-9]{2}):?(?P<zone_minute>[0-9]{2})"
# The directives of strptime that are independent of the locale. Each has the part of a date that it sets, its
# pattern, and its pattern if no other character separates it from another number.
_DIRECTIVES: Mapping[str, tuple[str, str, str]] = {
    "%Y": ("year", "[0-9]{4}", "[0-9]{4}"),
    "%y": ("short", "[0-9]{2}", "[0-9]{2}"),
    "%m": ("month", "[0-9]{1,2}", "[0-9]{2}"),
    "%b": ("name", "(?i:" + "|".join(_MONTHS) + ")", "(?i:" + "|".join(_MONTHS) + ")"),
    "%d": ("day", "[0-9]{1,2}", "[0-9]{2}"),
    "%H": ("hour", "[0-9]{1,2}", "[0-9]{2}"),
    "%I": ("hour12", "[0-9]{1,2}", "[0-9]{2}"),
    "%p": ("half", "(?i:am|pm)", "(?i:am|pm)"),
    "%M": ("minute", "[0-9]{1,2}", "[0-9]{2}"),
    "%S": ("second", "[0-9]{1,2}", "[0-9]{2}"),
    "%f": ("fraction", "[0-9]{1,6}", "[0-9]{6}"),
    "%z": ("zone", _ZONE, _ZONE),
}
# As in POSIX and Python, 69 is 1969, and 68 is 2068.
_FIRST_SHORT = 69
_DIRECTIVE = re.compile("%.?", re.DOTALL)
# The parts that a date must have, and the parts that follow from others.
_DATE = (("%Y", "%y"), ("%m", "%b"), ("%d",))
_TIME = (
    ("%H", ("%M",)),
    ("%M", ("%H", "%I")),
    ("%S", ("%M",)),
    ("%f", ("%S",)),
    ("%I", ("%p",)),
    ("%p", ("%I",)),
    ("%z", ("%M",)),
)

# In `lists` of a source: the cells are lists in JSON, instead of items with a text between them.
JSON_LISTS = "json"


@dataclass(frozen=True, kw_only=True)
class Notation:
    """The notation of a column's cells.

    Attributes:
        decimal: the character before the decimals of a number.
        thousands: the character between groups of three digits; "" for none.
        percent: whether `12.5 %` is the number 0.125.
        currency: the sign of a currency before or after numbers; "" for none.
        negative: how negative numbers may be written besides `-5`; "" for no other way.
        missing: the texts that stand for a missing value.
        dates: the format of dates; "" for ISO 8601.
        items: the text between the items of a list, or JSON_LISTS; "" for cells with one value.
    """

    decimal: str = "."
    thousands: str = ""
    percent: bool = False
    currency: str = ""
    negative: str = ""
    missing: tuple[str, ...] = ()
    dates: str = ""
    items: str = ""

    def are_missing(self, column: Any) -> Mask:
        """A mask of the cells that stand for a missing value, bool `[n]`; null cells are included."""
        pyarrow = arrow()
        words = pyarrow.array([*self.missing, None], column.type)
        return to_numpy(pyarrow.compute.is_in(column, value_set=words))

    @property
    def has_numbers(self) -> bool:
        """Whether numbers are written differently than `1234.5`."""
        notation = (self.decimal, self.thousands, self.percent, self.currency, self.negative)
        return notation != (".", "", False, "", "")

    def are_numbers(self, column: Any) -> Any:
        """A mask of the cells that are numbers in this notation."""
        return arrow().compute.match_substring_regex(column, f"^(?:{self._pattern})$")

    def plain_numbers(self, column: Any) -> tuple[Any, int | None]:
        """Converts cells, none of them null, to the form `1234.5`. Also returns the index of the first cell
        that is no number, if known.

        `12.5%` becomes `12.5e-2`, which is rounded once, like any other decimal.
        """
        from pyarrow import compute

        wrong = None
        if self._odd[buffer_of(column)].any():  # else skips checking each cell, which costs 100 ns
            wrong = next(iter(np.flatnonzero(~to_numpy(self.are_numbers(column))).tolist()), None)
            if self.currency:
                column = compute.replace_substring(column, self.currency, "")
                column = compute.replace_substring_regex(column, _SPACES, "")
            if self.negative == "(5)":
                column = compute.replace_substring_regex(column, r"^\((.*)\)$", r"-\1")
            elif self.negative == "5-":
                column = compute.replace_substring_regex(column, r"^(.*[0-9.,])-", r"-\1")
            elif self.negative:
                column = compute.replace_substring(column, MINUS, "-")
            if self.thousands in ("'", " "):
                column = compute.replace_substring_regex(column, _SEPARATORS[self.thousands], "")
            elif self.thousands:
                column = compute.replace_substring(column, self.thousands, "")
            if self.percent:
                column = compute.replace_substring_regex(column, f"{_PERCENT}$", "e-2")
        if self.decimal != ".":
            column = compute.replace_substring(column, self.decimal, ".")
        return column, wrong

    @property
    def number_example(self) -> str:
        """A number in this notation: `1.234,5`, `1234.5 %`."""
        return f"{self.currency}1{self.thousands}234{self.decimal}5{' %' * self.percent}"

    @cached_property
    def _pattern(self) -> str:
        mark = re.escape(self.decimal)
        whole = f"(?:[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+)"
        percent = f"(?:{_PERCENT})?" if self.percent else ""
        number = f"(?:{whole}(?:[eE][-+]?[0-9]+|{percent}))"
        if self.thousands:
            separator = _SEPARATORS[self.thousands]
            # `0.512` is not a group: if the point separated thousands, it would be 512
            groups = f"[1-9][0-9]{{0,2}}(?:{separator}[0-9]{{3}})+"
            if self.thousands == ",":  # `12,34,567`, as in India
                groups += f"|[1-9][0-9]?(?:{separator}[0-9]{{2}})+{separator}[0-9]{{3}}"
            number = f"(?:{number}|(?:{groups})(?:{mark}[0-9]*)?{percent})"
        sign = f"[-+{MINUS}]?" if self.negative[:1] == MINUS else "[-+]?"
        before = after = ""
        if self.currency:
            currency = re.escape(self.currency)
            before, after = f"(?:{currency}{_SPACES}?)?", f"(?:{_SPACES}?{currency})?"
            sign = f"(?:{sign}{before}|{before}{sign})"
        forms = [f"{sign}{number}{after}"]
        if self.negative == "(5)":
            forms.append(f"\\({before}{number}{after}\\)")
        elif self.negative == "5-":
            forms.append(f"{before}{number}-{after}")
        return "|".join([*forms, _SPECIAL])

    @cached_property
    def _odd(self) -> Mask:
        """The bytes of characters other than the decimal comma that make a cell differ from a plain
        number.
        """
        separators = {"'": "'\u2019", " ": " \u00a0\u202f"}.get(self.thousands, self.thousands)
        negative = {"": "", "(5)": "(", "5-": "-"}.get(self.negative, MINUS)
        return byte_table(
            separators + "." * (self.decimal != ".") + "%" * self.percent + self.currency + negative
        )


@dataclass(frozen=True)
class DateFormat:
    """The format of dates and times, with the directives of strptime: `%d.%m.%Y`.

    A number may have one digit instead of two, unless it is adjacent to another number: `1.2.2026`,
    `20260201`.
    """

    text: str

    def problems(self) -> Iterator[Problem]:
        """Yields the problems of the format."""
        directives = _DIRECTIVE.findall(self.text.replace("%%", ""))
        for directive in directives:
            if directive not in _DIRECTIVES:
                expected = f"{', '.join(_DIRECTIVES)} or other characters"
                yield Problem(expected=expected, got=f"`{directive}`")
        for choices in _DATE:
            count = sum(map(directives.count, choices))
            if count != 1:
                got = "several" if count else "none"
                yield Problem(expected=f"one {' or '.join(choices)}", got=f"{got} in `{self.text}`")
        for directive, needed in _TIME:
            if directive in directives and not any(one in directives for one in needed):
                expected = f"{' or '.join(needed)} beside {directive}"
                yield Problem(expected=expected, got=f"none in `{self.text}`")
        for directive in dict.fromkeys(directives):
            if directives.count(directive) > 1 and directive not in ("%Y", "%y", "%m", "%b", "%d"):
                yield Problem(expected=f"one {directive}", got=f"several in `{self.text}`")
        if {"%H", "%I"} <= set(directives):
            yield Problem(expected="%H, or %I and %p", got=f"both in `{self.text}`")

    @property
    def expected(self) -> str:
        """A description of the format, with an example."""
        parts = {
            "%Y": "2026",
            "%y": "26",
            "%m": "01",
            "%b": "Jan",
            "%d": "31",
            "%H": "14",
            "%I": "02",
            "%p": "PM",
        }
        parts |= {"%M": "05", "%S": "09", "%f": "250000", "%z": "+0100", "%%": "%"}
        example = _DIRECTIVE.sub(lambda match: parts[match[0]], self.text)
        return f"a date as {self.text}, such as {example}"

    def are_dates(self, column: Any) -> Any:
        """A mask of the cells that have this format; 31.02.2026 has it, too."""
        return arrow().compute.match_substring_regex(column, f"^(?:{self._pattern})$")

    def parsed(self, column: Any) -> tuple[Array, int | None]:
        """Converts cells, none of them null, to datetime64 `[n]` in UTC. Also returns the index of the
        first cell that is no date in this format; None if all are.
        """
        from pyarrow import compute

        groups = compute.extract_regex(column, f"^(?:{self._pattern})$")
        is_wrong = ~present_in(groups)
        fields = {field.name: compute.fill_null(groups.field(field.name), "") for field in groups.type}

        def number(name: str, least: int, most: int) -> Array:
            texts = fields[name]
            if is_wrong.any() or name.startswith("zone"):
                texts = compute.if_else(compute.equal(texts, ""), str(least), texts)
            numbers = to_numpy(compute.cast(texts, "int64"))
            is_wrong[(numbers < least) | (numbers > most)] = True
            within: Array = np.clip(numbers, least, most)
            return within

        if "year" in fields:
            year = number("year", 1, 9999)
        else:
            short = number("short", 0, 99)
            year = short + np.where(short < _FIRST_SHORT, 2000, 1900)
        if "month" in fields:
            month = number("month", 1, 12)
        else:
            names = arrow().array([name.lower() for name in _MONTHS], column.type)
            places = compute.index_in(compute.utf8_lower(fields["name"]), value_set=names)
            month = to_numpy(compute.fill_null(places, 0)).astype(np.int64) + 1
        months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
        dates: Array = months.astype("datetime64[D]") + (number("day", 1, 31) - 1)
        is_wrong |= dates.astype("datetime64[M]") != months  # for example the 31st of February
        if "hour" in fields or "hour12" in fields:
            seconds = self._seconds(fields, number)
            dates = dates.astype("datetime64[s]") + seconds
        if "fraction" in fields:
            digits = compute.utf8_rpad(fields["fraction"], 6, "0")
            dates = dates.astype("datetime64[us]") + to_numpy(compute.cast(digits, "int64"))
        wrong = np.flatnonzero(is_wrong)
        return dates, int(wrong[0]) if len(wrong) else None

    def _seconds(self, fields: Mapping[str, Any], number: Callable[[str, int, int], Array]) -> Array:
        """The time of day in UTC, in seconds."""
        from pyarrow import compute

        if "hour" in fields:
            hours = number("hour", 0, 23)
        else:
            is_pm = to_numpy(compute.equal(compute.utf8_lower(fields["half"]), "pm"))
            hours = number("hour12", 1, 12) % 12 + 12 * is_pm
        seconds: Array = 3600 * hours + 60 * number("minute", 0, 59)
        if "second" in fields:
            seconds = seconds + number("second", 0, 59)
        if "zone" in fields:
            sign = np.where(to_numpy(compute.equal(fields["sign"], "-")), -1, 1)
            seconds = seconds - sign * (3600 * number("zone_hour", 0, 23) + 60 * number("zone_minute", 0, 59))
        return seconds

    @cached_property
    def _pattern(self) -> str:
        pieces, place, text = [], 0, self.text
        for match in _DIRECTIVE.finditer(text):
            pieces.append(re.escape(text[place : match.start()]))
            place = match.end()
            if match[0] == "%%":
                pieces.append("%")
                continue
            name, form, adjacent = _DIRECTIVES[match[0]]
            beside = match.start() > 0 and _ends_with_digit(text[: match.start()])
            beside |= _starts_with_digit(text[match.end() :])
            pieces.append(f"(?P<{name}>{adjacent if beside else form})")
        return "".join(pieces) + re.escape(text[place:])


_NUMBER_DIRECTIVES = tuple(one for one, (_, form, _) in _DIRECTIVES.items() if form.startswith("[0-9]"))


def _ends_with_digit(text: str) -> bool:
    """Whether a part of a format ends with a digit."""
    return text[-1:].isdigit() or (text[-2:] in _NUMBER_DIRECTIVES and not text.endswith("%%"))


def _starts_with_digit(text: str) -> bool:
    """Whether a part of a format begins with a digit."""
    return text[:1].isdigit() or text[:2] in _NUMBER_DIRECTIVES
