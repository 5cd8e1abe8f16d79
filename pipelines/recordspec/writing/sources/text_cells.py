"""Converts text cells, in Arrow arrays, to the values of a feature."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import Location
from recordspec.schema.dates import since_epoch
from recordspec.schema.encoder import with_missing
from recordspec.schema.features import Feature
from recordspec.schema.features.feature import ValueType
from recordspec.schema.lists import by_row
from recordspec.schema.values import EXACT_INTS, BadValue, is_integer, numpy_dtype
from recordspec.wire.arrays import (
    Mask,
    buffer_of,
    byte_table,
    data_of,
    is_arrow,
    list_array,
    offsets,
    present_in,
    to_numpy,
    truth_array,
)
from recordspec.writing.sources.arrow import inside
from recordspec.writing.sources.base import EXACT, takes_files
from recordspec.writing.sources.notation import JSON_LISTS, DateFormat, Notation

# Texts that are certainly int64, and texts that are numbers at all: no hexadecimals, no underscores.
_WHOLE = re.compile(r"-?[0-9]{1,18}")
# The number of digits from which a number exceeds float64.
_LONG_WHOLE = re.compile(r"[-+]?[0-9]{1,400}")
_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
# A whole number with a decimal point, with at most as many digits as `integers` takes for certainly int64.
_POINTED = re.compile(r"[-+]?[0-9]{1,18}\.0+")
_DIGITS = re.compile("[0-9]+")
# The largest number of digits of a class index.
_LONGEST_INDEX = 18
_SPECIAL = ("nan", "inf", "-inf", "+inf", "infinity", "-infinity")


# The characters of integers and decimals that Arrow casts, and of all cells with these forms.
_CAST = {"int64": byte_table("-0123456789"), "float64": byte_table("+-.0123456789Ee")}
_FORMS = {
    "int64": byte_table("+-0123456789"),
    "float64": byte_table("+-.0123456789EeNAnaIFifTYty"),
    "bool": byte_table("TRUEtrueFALSfals"),
}


def from_text(
    column: Any,
    feature: Feature,
    folder: Location,
    notation: Notation | None = None,
    form: str | None = None,
) -> Any:
    """Converts a column of text (`large_string` of Arrow) to values of a feature; null is missing.

    Paths of images and audio are relative to `folder`, and may not leave it. `notation` is the notation of
    the cells, and `form` the form of paths; None for the default.

    Raises BadValue for the first invalid cell, SpecError for a feature that one cell cannot hold.
    """
    levels = len(feature.value_type.shape)
    is_json = notation is not None and notation.items == JSON_LISTS and levels > 0
    is_list = is_json or (notation is not None and notation.items and levels == 1)
    present = _present(column, feature)
    if is_list and feature.value_type.shape == (None,):
        column, present = column.fill_null(""), np.ones(len(column), np.bool_)
    if notation is not None and notation.missing:
        present &= ~notation.are_missing(column)
    column = column if present.all() else column.filter(truth_array(present))
    try:
        if is_json:
            values = _json_lists(column, feature)
        elif notation is None:
            values = _values(column, feature.value_type, feature, folder, form)
        else:
            values = (_lists if is_list else _written_values)(
                column, feature.value_type, feature, folder, notation, form
            )
    except BadValue as bad:
        raise bad.moved(int(np.flatnonzero(present)[bad.index])) from None
    return with_missing(values, present)


def are(column: Any, dtype: str) -> bool:
    """Whether all cells, none of them empty, have the form of int64, float64 or bool values."""
    from pyarrow import compute

    if not _FORMS[dtype][buffer_of(column)].all():
        return False
    return (dtype != "bool" and cast(column, dtype) is not None) or bool(
        compute.all(form(column, dtype), min_count=0).as_py()
    )


def form(column: Any, dtype: str) -> Any:
    """A mask of the cells that have the form of int64, float64 or bool values."""
    from pyarrow import compute

    forms = {"int64": _LONG_WHOLE.pattern, "bool": "(?i:true|false)"}
    pattern = forms.get(dtype, f"{_DECIMAL.pattern}|(?i:{'|'.join(map(re.escape, _SPECIAL))})")
    return compute.match_substring_regex(column, f"^({pattern})$")


def _present(column: Any, feature: Feature) -> Any:
    """A mask of the cells with a value: an empty quoted cell is a text, but no number, label or path."""
    from pyarrow import compute

    present = present_in(column)
    if feature.value_type.item == "text":
        return present
    return present & (to_numpy(compute.binary_length(column)) > 0)


def _json_lists(column: Any, feature: Feature) -> list[Any]:
    """The lists that are written in JSON; a cell of spaces is an empty list."""
    from recordspec.writing.sources.jsonl import json_value  # another source, which few configs need

    values = []
    for index, cell in enumerate(column.to_pylist()):
        try:
            value = json_value(cell.encode()) if cell.strip(" ") else []
        except RecordError:
            value = None
        if not isinstance(value, list):
            raise BadValue(index, "a list in JSON", f"`{cell}`")
        # a number in a cell is the name of a class, and one in JSON its index
        if feature.value_type.item == "class" and not all(isinstance(item, str) for item in value):
            raise BadValue(index, "a list of names in JSON", f"`{cell}`", "names are in double quotes")
        values.append(value)
    return values


def _lists(
    column: Any, kind: ValueType, feature: Feature, folder: Location, notation: Notation, form: str | None
) -> Any:
    """Converts lists of items; a cell of spaces is an empty list."""
    from pyarrow import compute

    cells = compute.utf8_trim(column, " ")
    counts = np.where(
        to_numpy(compute.binary_length(cells)) > 0,
        to_numpy(compute.count_substring(cells, notation.items)).astype(np.int64) + 1,
        0,
    )
    filled = cells.filter(truth_array(counts > 0))
    items = compute.utf8_trim(compute.split_pattern(filled, notation.items).flatten(), " ")
    with by_row(counts):
        values = _written_values(items, replace(kind, shape=()), feature, folder, notation, form)
    places = offsets(counts)
    if isinstance(values, list):
        return [values[start:stop] for start, stop in pairwise(places.tolist())]
    if not is_arrow(values):
        values = arrow().array(values)
    elif arrow().types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return list_array(values, places)


def _values(column: Any, kind: ValueType, feature: Feature, folder: Location, form: str | None) -> Any:
    if kind.date is not None or kind.item == "any":  # a custom kind converts texts itself
        return list(column.to_pylist())
    if takes_files(feature) and (kind.shape == () or kind.item != "media"):
        return inside(column.to_pylist(), folder, form)
    if kind.shape == () and kind.item == "class":
        return _classes(column, feature)
    if kind.shape == () and kind.is_number:
        return _bools(column) if kind.item == "bool" else _numbers(column, kind.item)
    if kind.shape == () and kind.item == "text":
        return column
    raise SpecError(
        Problem(
            path=(feature.name,),
            expected="a feature that one cell of text can give: a number, a string, a label, a path",
            got=feature.kind,
            hint="`lists` of the source names the text between items" * (len(kind.shape) == 1),
        )
    )


def _written_values(
    column: Any,
    kind: ValueType,
    feature: Feature,
    folder: Location,
    notation: Notation,
    form: str | None,
) -> Any:
    """Converts cells that are written in a notation."""
    if kind.date is not None and notation.dates:
        date_format = DateFormat(notation.dates)
        dates, wrong = date_format.parsed(column)
        with _as_written(column):
            values = since_epoch(dates[:wrong], kind.date)
            if wrong is not None:
                raise BadValue(wrong, date_format.expected, "")
        return values
    is_number = kind.date is None and kind.shape == () and kind.is_number and kind.item != "bool"
    if not (is_number and notation.has_numbers):
        return _values(column, kind, feature, folder, form)
    plain, wrong = notation.plain_numbers(column)
    with _as_written(column, {kind.item: f"numbers are written as `{notation.number_example}`"}):
        values = _numbers(plain[:wrong], kind.item)
        if wrong is not None:
            raise BadValue(wrong, kind.item, "")
    return values


@contextmanager
def _as_written(column: Any, hints: Mapping[str, str] | None = None) -> Iterator[None]:
    """Quotes an invalid cell as it is written in a column; `hints` has a hint for an expected value."""
    try:
        yield
    except BadValue as bad:
        problem = bad.problem
        hint = problem.hint or (hints or {}).get(problem.expected, "")
        raise BadValue(bad.index, problem.expected, f"`{column[bad.index]}`", hint) from None


def integers(column: Any) -> tuple[Any, list[int]]:
    """The integers among text cells, by their form: those with up to 18 digits, int64, and longer ones."""
    from pyarrow import compute

    column = column.filter(truth_array(_consist_of(column, _FORMS["int64"])))
    short = compute.match_substring_regex(column, f"^[+]?{_WHOLE.pattern}$")
    long = compute.and_not(compute.match_substring_regex(column, f"^{_LONG_WHOLE.pattern}$"), short)
    plain = compute.replace_substring_regex(column.filter(short), r"^[+]", "")  # a cast takes no plus sign
    return to_numpy(compute.cast(plain, "int64")), [int(text) for text in column.filter(long).to_pylist()]


def beyond_point(column: Any) -> list[int]:
    """The whole numbers among text cells that an integer feature refuses because they have a decimal
    point.
    """
    from pyarrow import compute

    texts = column.filter(compute.match_substring_regex(column, f"^{_POINTED.pattern}$")).to_pylist()
    numbers = (int(text.partition(".")[0]) for text in texts)
    return [number for number in numbers if abs(number) >= EXACT]


def overflows(column: Any, numbers: Any) -> bool:
    """Whether a cell is infinite as float64, but not written as infinity."""
    texts = column.filter(truth_array(np.isinf(numbers))).to_pylist()
    return any(text.lower() not in _SPECIAL for text in texts)


def _numbers(column: Any, dtype: str) -> Any:
    values = cast(column, "int64" if is_integer(dtype) else "float64")
    if values is not None and (
        is_integer(dtype) or (bool(np.isfinite(values).all()) and not _rounds(column, values, dtype))
    ):
        return values
    return [_number(row, text, dtype) for row, text in enumerate(column.to_pylist())]


def cast(column: Any, dtype: str) -> Any:
    """Casts text cells to int64 or float64 if all consist of the characters of numbers; else None. For such
    texts, Arrow and `_number` read equal numbers.
    """
    from pyarrow import compute

    if not _CAST[dtype][buffer_of(column)].all():
        return None
    try:
        return to_numpy(compute.cast(column, dtype))
    except arrow().ArrowInvalid:
        return None


def have(column: Any, characters: str) -> bool:
    """Whether any cell has one of the given ASCII characters."""
    return bool(byte_table(characters)[buffer_of(column)].any())


def _consist_of(column: Any, characters: Mask) -> Mask:
    """A mask of the cells that consist of the given characters, bool `[n]`."""
    data, places = data_of(column)
    others = offsets((~characters[data]).view(np.uint8))[places]
    return np.asarray(np.diff(others) == 0)


def _rounds(column: Any, values: Any, dtype: str) -> bool:
    """Whether the dtype may not represent an integer in the cells exactly."""
    far = np.abs(values) >= EXACT_INTS[dtype]
    if not far.any():
        return False
    short, long = integers(column.filter(truth_array(far)))
    with np.errstate(over="ignore"):
        cast = short.astype(numpy_dtype(dtype)).real.astype(np.float64)
    return bool(long) or bool((np.abs(short) >= EXACT).any()) or bool((cast != short).any())


def _number(row: int, text: str, dtype: str) -> int | float:
    """Converts one cell. `180.0` is a whole number: columns of integers with gaps are written this way."""
    if _LONG_WHOLE.fullmatch(text) and (is_integer(dtype) or int(text)):  # -0 keeps its sign as a float
        return int(text)
    if not _DECIMAL.fullmatch(text) and text.lower() not in _SPECIAL:
        raise BadValue(row, dtype, f"`{text}`")
    value = float(text)
    if not is_integer(dtype):
        if np.isinf(value) and text.lower() not in _SPECIAL:
            raise BadValue(row, f"{dtype}, which holds it without overflow", f"`{text}`")
        return value
    if np.isnan(value):
        return value  # missing, as in other sources
    if not value.is_integer():
        raise BadValue(row, dtype, f"`{text}`", "`float32` holds fractions")
    if abs(value) >= EXACT:
        raise BadValue(row, dtype, f"`{text}`", "so large a number is exact only without a point")
    return int(value)


def _classes(column: Any, feature: Feature) -> Any:
    """Converts names of classes. A cell of digits is an index if no name consists of digits. With `encoding:
    float`, a cell such as `1.0` is an index, too.
    """
    has_names_of_digits = any(map(_DIGITS.fullmatch, feature.traits.known_names))
    takes_floats = feature.columns()[0].storage == "float32" and have(column, ".")
    if has_names_of_digits and not takes_floats:
        return column

    def entry(text: str) -> Any:
        if takes_floats and _POINTED.fullmatch(text):
            return float(text)
        is_index = not has_names_of_digits and _DIGITS.fullmatch(text) and len(text) <= _LONGEST_INDEX
        return int(text) if is_index else text

    by_entry = column.dictionary_encode()
    entries = list(map(entry, by_entry.dictionary.to_pylist()))
    if all(isinstance(one, str) for one in entries):
        return by_entry
    return [entries[place] for place in to_numpy(by_entry.indices).tolist()]


def _bools(column: Any) -> list[bool]:
    known = {"true": True, "false": False, "1": True, "0": False}
    cells = []
    for row, text in enumerate(column.to_pylist()):
        if text.lower() not in known:
            raise BadValue(row, "true or false", f"`{text}`")
        cells.append(known[text.lower()])
    return cells
