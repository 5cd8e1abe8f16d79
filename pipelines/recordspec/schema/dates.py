"""Dates and times as whole numbers: days, seconds or parts of them since 1970-01-01, in UTC."""

from __future__ import annotations

import datetime
import re
from typing import Any, Literal

import numpy as np

from recordspec._arrow import arrow
from recordspec._tf import tf
from recordspec.errors import Path, Problem, describe
from recordspec.schema.tensors import Tensor, none_is
from recordspec.schema.values import Array, BadValue, numbers, unpacked
from recordspec.wire.arrays import is_arrow, to_numpy

DateUnit = Literal["days", "seconds", "milliseconds", "microseconds", "nanoseconds"]

# NumPy's names, from the coarsest to the finest unit.
_CODES: dict[DateUnit, str] = {
    "days": "D",
    "seconds": "s",
    "milliseconds": "ms",
    "microseconds": "us",
    "nanoseconds": "ns",
}
# A date of ISO 8601, or a date and a time, with or without an offset from UTC.
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[T ](\d\d:\d\d)(?:(:\d\d)(\.\d{1,9})?)?(?:Z|([+-](?:[01]\d|2[0-3]):?[0-5]\d))?)?",
    re.ASCII,
)
_EXPECTED_TEXT = "a date or a time as 2026-01-31 or 2026-01-31T12:00:00Z"
_EXPECTED = "a date, a time, or their text as 2026-01-31 or 2026-01-31T12:00:00Z"

# How many of each unit a second has.
_IN_A_SECOND: dict[DateUnit, int] = {
    "seconds": 1,
    "milliseconds": 10**3,
    "microseconds": 10**6,
    "nanoseconds": 10**9,
}
_DAY_SECONDS = 86_400
# The units of durations in seconds, the largest first.
_SPANS = (
    (_DAY_SECONDS, "days"),
    (3600, "h"),
    (60, "min"),
    (1, "s"),
    (1e-3, "ms"),
    (1e-6, "us"),
    (1e-9, "ns"),
)
# The first and the last second of the years from 1 to 9999.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
# The last whole second that nanoseconds represent, and with another sign the first.
_LAST_OF_NANOSECONDS = (2**63 - 1) // 10**9 - 1


def since_epoch(values: Any, unit: DateUnit) -> Array:
    """Dates and times as int64 `[n]`, the number of units since 1970-01-01 00:00 UTC, never rounded.

    Accepts an array datetime64, one of Arrow, or a list of dates, times (without an offset: in UTC), their
    ISO text, and such numbers. Raises BadValue for others, and for values that the unit cannot represent.
    """
    if is_arrow(values):
        is_date = arrow().types.is_temporal(values.type)
        values = to_dates(values) if is_date else unpacked(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return numbers(values, "int64")
    if not (isinstance(values, np.ndarray) and values.dtype.kind == "M"):
        dates = np.empty(len(values), np.int64)
        for index, value in enumerate(values):
            try:
                dates[index] = _number(value, unit)
            except BadValue as bad:
                raise bad.moved(index) from None
        return dates
    cast = values.astype(f"datetime64[{_CODES[unit]}]")
    wrong = np.flatnonzero(np.isnat(values) | (cast.astype(values.dtype) != values))
    if len(wrong):
        index = int(wrong[0])
        finer = next((one for one in _CODES if _holds(values[index], one)), "")
        hint = f"`date: {finer}` holds it" if finer else ""
        raise BadValue(index, f"whole {unit} since 1970-01-01", str(values[index]), hint)
    return cast.astype(np.int64)


def date_text(number: float, unit: DateUnit) -> str:
    """A number of units since 1970-01-01 00:00 UTC as text: `2026-01-31`, `2026-01-31 12:00:00.5`.

    Days are a date, and all other units a time. A fraction of a unit, as a mean has, is rounded. A number
    outside of the years 1 to 9999 stays a number with its unit: it was most likely stored in another unit.
    """
    whole, in_a_second = round(number), _IN_A_SECOND.get(unit, 1)
    if not is_date(whole, unit):
        return f"{whole:,} {unit}"
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=_seconds(whole, unit))
    if unit == "days":
        return moment.date().isoformat()
    digits = len(str(in_a_second)) - 1
    fraction = f"{whole % in_a_second:0{digits}}".rstrip("0") if digits else ""
    return f"{moment.isoformat(' ')}{f'.{fraction}' if fraction else ''}"


def is_date(number: float, unit: DateUnit) -> bool:
    """Whether a number of units since 1970-01-01 is a date or a time of the years 1 to 9999."""
    return _FIRST_SECOND <= _seconds(round(number), unit) <= _LAST_SECOND


def _seconds(whole: int, unit: DateUnit) -> int:
    return whole * _DAY_SECONDS if unit == "days" else whole // _IN_A_SECOND[unit]


def span_text(number: float, unit: DateUnit) -> str:
    """A duration, such as the deviation of times, in a unit of its size; that of dates in days."""
    if unit == "days":
        return f"{number:,.4g} days"
    seconds = number / _IN_A_SECOND[unit]
    size, name = next((pair for pair in _SPANS if seconds >= pair[0]), _SPANS[-1])
    return f"{seconds / size:,.4g} {name}"


def _holds(value: Any, unit: DateUnit) -> bool:
    return bool(value.astype(f"datetime64[{_CODES[unit]}]").astype(value.dtype) == value)


def to_dates(array: Any) -> Any:
    """Dates or times of Arrow, none of them null, as datetime64 `[n]`; those with a time zone in UTC."""
    pyarrow, kind = arrow(), array.type
    if not pyarrow.types.is_timestamp(kind):
        seconds = array.cast(pyarrow.timestamp("s"))  # date64 has milliseconds, all of whole days
        return to_numpy(seconds.view(pyarrow.int64())).view("datetime64[s]").astype("datetime64[D]")
    return to_numpy(array.view(pyarrow.int64())).view(f"datetime64[{kind.unit}]")


def _number(value: Any, unit: DateUnit) -> int:
    """One value; the index of a BadValue is 0."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
        return int(numbers([value], "int64")[0])
    return int(since_epoch(np.array([_datetime64(value)]), unit)[0])


def _datetime64(value: Any) -> np.datetime64:
    if isinstance(value, np.datetime64):
        return value
    if isinstance(value, str):
        return _parsed(value)
    if hasattr(value, "to_datetime64"):  # of pandas, which has nanoseconds
        return value.to_datetime64()  # type: ignore[no-any-return]
    if isinstance(value, datetime.datetime):
        offset = value.utcoffset() or datetime.timedelta()
        try:
            return np.datetime64(value.replace(tzinfo=None) - offset, "us")
        except OverflowError:  # its time in UTC is in a year that Python does not have
            raise BadValue(0, _EXPECTED, describe(value)) from None
    if isinstance(value, datetime.date):
        return np.datetime64(value, "D")
    raise BadValue(0, _EXPECTED, describe(value))


def _parsed(text: str) -> np.datetime64:
    match = _ISO.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        day, minute, second, fraction, offset = match.groups()
        if minute is None:
            return np.datetime64(datetime.date.fromisoformat(day), "D")
        time = datetime.datetime.fromisoformat(f"{day}T{minute}{second or ''}")
        if offset:
            hours, minutes = int(offset[:3]), int(offset[0] + offset[-2:])
            time -= datetime.timedelta(hours=hours, minutes=minutes)
    except (ValueError, OverflowError):
        raise BadValue(0, _EXPECTED, f"`{text}`") from None
    whole = np.datetime64(time, "s")
    digits = (fraction or "").strip(".").rstrip("0")
    if not digits:
        return whole
    unit: Any = "ms" if len(digits) <= 3 else "us" if len(digits) <= 6 else "ns"
    digits = digits.ljust({"ms": 3, "us": 6, "ns": 9}[unit], "0")
    moment: np.datetime64 = whole.astype(f"datetime64[{unit}]") + np.timedelta64(int(digits), unit)
    if moment.astype(whole.dtype) != whole:  # it wraps around
        raise BadValue(0, "nanoseconds only from 1677-09-22 to 2262-04-10", f"`{text}`")
    return moment


def iso_texts(numbers: Array, unit: DateUnit) -> tuple[list[str], Array]:
    """The ISO texts, in UTC, of dates or times, int64 `[n]`, and bool `[n]`: which ones `since_epoch` does
    not accept, as their year is not from 1 to 9999.
    """
    texts = np.datetime_as_string(numbers.astype(f"datetime64[{_CODES[unit]}]"))
    sizes = {"days": 10, "seconds": 19, "milliseconds": 23, "microseconds": 26, "nanoseconds": 29}
    return texts.tolist(), (np.char.str_len(texts) != sizes[unit]) | (texts < "0001")


def unit_of_dates(values: Any) -> DateUnit | None:
    """The coarsest unit of dates and times, an array datetime64 or texts; None if some are none."""
    if not isinstance(values, np.ndarray) and not all(map(_ISO.fullmatch, values)):
        return None
    for unit in _CODES:
        try:
            since_epoch(values, unit)
        except BadValue as bad:
            if bad.problem.expected == _EXPECTED:
                return None
        else:
            return unit
    return None


def finest(first: DateUnit, other: DateUnit) -> DateUnit:
    """The finer of two units."""
    return max(first, other, key=list(_CODES).index)


def since_epoch_in_graph(texts: Tensor, unit: DateUnit, path: Path) -> Tensor:
    """What `since_epoch` returns for ISO texts, int64 `[n]`, computed by TensorFlow, in a graph or eagerly.

    Args:
        texts: string `[n]`.
        path: the place in the message of a text that is refused, an InvalidArgumentError.
    """
    texts = tf.strings.strip(texts)
    right = tf.strings.regex_full_match(texts, _ISO.pattern)
    sound = tf.where(right, texts, "1970-01-01")
    date, time, second, fraction, offset = (
        tf.strings.regex_replace(sound, f"^{_ISO.pattern}$", rf"\{group}") for group in range(1, 6)
    )
    year, month, day = (_digits(date, *place) for place in ((0, 4), (5, 2), (8, 2)))
    time = tf.strings.join([time, tf.where(time == "", "00:00", "")])
    second = tf.strings.join([second, tf.where(second == "", ":00", "")])
    offset = tf.strings.join([offset, tf.where(offset == "", "+00:00", "")])
    hour, minute, second = _digits(time, 0, 2), _digits(time, 3, 2), _digits(second, 1, 2)
    nanoseconds = _digits(tf.strings.join([fraction, tf.where(fraction == "", ".", ""), "0" * 9]), 1, 9)
    away = 60 * _digits(offset, 1, 2) + _digits(offset, -2, 2)
    away = tf.where(tf.strings.substr(offset, 0, 1) == "-", -away, away)
    seconds = _day_number(year, month, day) * _DAY_SECONDS + 3600 * hour + 60 * (minute - away) + second
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    month_days = tf.gather(
        tf.constant([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], tf.int64),
        tf.clip_by_value(month - 1, 0, 11),
    ) + tf.cast(is_leap & (month == 2), tf.int64)
    right &= (year > 0) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= month_days)
    right &= (hour < 24) & (minute < 60) & (second < 60)
    right &= (seconds >= _FIRST_SECOND) & (seconds <= _LAST_SECOND)
    in_nanoseconds = tf.abs(seconds) <= _LAST_OF_NANOSECONDS
    right &= in_nanoseconds | (nanoseconds % 1000 == 0)
    if unit == "days":
        whole = (seconds % _DAY_SECONDS == 0) & (nanoseconds == 0)
        numbers = seconds // _DAY_SECONDS
    else:
        part = 10**9 // _IN_A_SECOND[unit]
        whole = nanoseconds % part == 0
        whole &= in_nanoseconds if unit == "nanoseconds" else True
        numbers = seconds * _IN_A_SECOND[unit] + nanoseconds // part
    problems = {
        str(Problem(path=path, expected=_EXPECTED_TEXT, got="`{}`")): ~right,
        str(Problem(path=path, expected=f"whole {unit} since 1970-01-01", got="`{}`")): right & ~whole,
    }
    with tf.control_dependencies([none_is(wrong, texts, message) for message, wrong in problems.items()]):
        return tf.identity(numbers)


def _digits(texts: Tensor, first: int, count: int) -> Tensor:
    """The number that `count` characters of each text are, from `first` on; int64 `[n]`."""
    return tf.strings.to_number(tf.strings.substr(texts, first, count), tf.int64)


def _day_number(year: Tensor, month: Tensor, day: Tensor) -> Tensor:
    """The number of days since 1970-01-01 of a date of the proleptic Gregorian calendar.

    Years begin in March, so that the leap day is the last one; 400 of them have 146,097 days.
    """
    year = year - tf.cast(month <= 2, tf.int64)
    since_march = (month + 9) % 12
    day_of_year = (153 * since_march + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + day_of_year - 719_468
