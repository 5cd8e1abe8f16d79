"""Proposes options for a CSV source from the cells of all columns, if the cells allow only one reading."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.schema.inferred import ProposedOption
from recordspec.wire.arrays import buffer_of, byte_table, sizes_of, to_numpy, truth_array
from recordspec.writing.sources.notation import DateFormat, Notation

# Common texts for a missing value. The user decides whether they mean that.
WORDS = (
    "NA",
    "N/A",
    "n/a",
    "n.a.",
    "N.A.",
    "#N/A",
    "NULL",
    "null",
    "None",
    "-",
    "--",
    "?",
    "k.A.",
    "k. A.",
    "#NV",
)
_SEPARATORS = ("", ",", ".", "'", " ")
_PLAIN = Notation(percent=True)
_NUMBERS = (_PLAIN,) + tuple(
    Notation(decimal=decimal, thousands=thousands, percent=True)
    for decimal, thousands in product(".,", _SEPARATORS)
    if decimal != thousands and (decimal, thousands) != (".", "")
)
# A date with points begins with the day; other dates begin with the day or the month.
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DATES = tuple(f"{day}{time}" for day, time in product(_DAYS, _TIMES))
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}.*)?$"
# Cells that are checked first: most formats are ruled out here.
_FIRST = 100
_POINT = byte_table(".")
# The bytes of numbers, and of dates. Most columns of text contain other bytes, which is found without a
# regex.
_OF_NUMBERS = byte_table("+-.,0123456789'\u2019 \u00a0\u202f%EeNAnaIFifTYty")
_OF_DATES = byte_table("./-0123456789: TAaPpMm")


@dataclass
class CellForms:
    """The possible notations of a column's cells so far.

    Attributes:
        cells: the number of cells that are not empty.
        words: the number of cells for each of `WORDS`; in columns of text, only if `add_words` was called
            for all cells.
        numbers: the notations that read all other cells as numbers.
        dates: the formats in which all other cells are dates.
        is_iso: whether all other cells are ISO 8601 dates.
        marks: the number of cells with `,`, `.` and so on, if the cells may be numbers.
        examples: the first cell with each mark; and a date, as "date".
    """

    cells: int = 0
    words: Counter[str] = field(default_factory=Counter)
    numbers: tuple[Notation, ...] = _NUMBERS
    dates: tuple[str, ...] = _DATES
    is_iso: bool = True
    marks: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, filled: Any, *, are_plain: bool) -> None:
        """Adds cells that are not empty; `are_plain` if all cells so far are numbers like `1234.5`."""
        from pyarrow import compute

        self.cells += len(filled)
        if are_plain:
            self.dates, self.is_iso = (), False
            if any(notation.decimal == "," for notation in self.numbers) and _POINT[buffer_of(filled)].any():
                self._add_numbers(filled)
            return
        if self.are_texts:
            return
        filled = filled.filter(compute.invert(self.add_words(filled)))
        if len(filled):
            self._add_numbers(filled)
            self._add_dates(filled)

    def add_words(self, filled: Any) -> Any:
        """Adds the words among cells. Returns a mask of the words."""
        from pyarrow import compute

        is_word = compute.is_in(filled, value_set=arrow().array(WORDS, filled.type))
        self.words.update(filled.filter(is_word).to_pylist())
        return is_word

    def _add_dates(self, filled: Any) -> None:
        from pyarrow import compute

        self.is_iso = self.is_iso and bool(compute.all(compute.match_substring_regex(filled, _ISO)).as_py())
        self.dates = tuple(
            form
            for form in self.dates
            if _OF_DATES[buffer_of(filled[:_FIRST])].all()
            and compute.all(DateFormat(form).are_dates(filled[:_FIRST])).as_py()
            and DateFormat(form).parsed(filled)[1] is None
        )
        if self.dates:
            self.examples.setdefault("date", filled[0].as_py())

    def _add_numbers(self, filled: Any) -> None:
        from pyarrow import compute

        self.numbers = tuple(
            notation
            for notation in self.numbers
            if _OF_NUMBERS[buffer_of(filled[:_FIRST])].all()
            and all(compute.all(notation.are_numbers(some)).as_py() for some in (filled[:_FIRST], filled))
        )
        for mark in (*_SEPARATORS[1:], "%") if self.numbers else ():
            pattern = "[ \u00a0\u202f][0-9]" if mark == " " else "['\u2019]" if mark == "'" else f"[{mark}]"
            places = np.flatnonzero(to_numpy(compute.match_substring_regex(filled, pattern)))
            if len(places):
                self.marks[mark] += len(places)
                self.examples.setdefault(mark, filled[int(places[0])].as_py())

    @property
    def are_texts(self) -> bool:
        """Whether some cells are neither numbers nor dates; if so, later cells are not checked."""
        return not (self.numbers or self.dates or self.is_iso)

    @property
    def others(self) -> int:
        """The number of cells that are not in `WORDS`."""
        return self.cells - self.words.total()

    @property
    def are_numbers(self) -> bool:
        """Whether some notation reads all cells as numbers, except words."""
        return bool(self.others and self.numbers)


@dataclass(frozen=True, kw_only=True)
class ProposedNotation:
    """The proposed options for the columns of a file.

    Attributes:
        options: the options of the source.
        numbers: the notation of numbers.
        columns: the columns of numbers that the notation reads.
        dates: the date format by column, unless it is ISO 8601.
        missing: the words for missing values, by column, for columns with such words.
        notes: notes on columns that an option would read if the choice were known.
        explained: the columns of these notes.
    """

    options: tuple[ProposedOption, ...]
    numbers: Notation
    columns: frozenset[str]
    dates: Mapping[str, str]
    missing: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    explained: frozenset[str]

    def plain(self, name: str, column: Any) -> Any:
        """A column of text, converted to the form that a build without options would read."""
        pyarrow = arrow()
        notation = replace(self.numbers, missing=self.missing.get(name, ()))
        is_gap = notation.are_missing(column)
        if name in self.columns or name in self.dates:
            is_gap |= sizes_of(column) == 0  # quoted empty cells
        values = column.filter(truth_array(~is_gap))
        if name in self.columns:
            values, _ = notation.plain_numbers(values)
        elif name in self.dates:
            dates, _ = DateFormat(self.dates[name]).parsed(values)
            values = pyarrow.array(np.datetime_as_string(dates).tolist(), values.type)
        return values.take(pyarrow.array(np.cumsum(~is_gap) - 1, mask=is_gap))


def have_words(forms: Mapping[str, CellForms]) -> bool:
    """Whether any column of numbers or dates contains words for missing values."""
    return any(form.words for form in forms.values() if form.others and not form.are_texts)


def propose(forms: Mapping[str, CellForms]) -> ProposedNotation:
    """Proposes options for the columns of a file."""
    numeric = {name: form for name, form in forms.items() if form.are_numbers}
    numbers, notes, explained = _numbers(numeric)
    columns = {name: form for name, form in numeric.items() if numbers in form.numbers}
    options = [*_number_options(numbers, columns)]
    dates, more = _dates({name: form for name, form in forms.items() if name not in columns})
    notes += more
    explained |= {name for name, form in forms.items() if len(form.dates) > 1} - dates.keys() - columns.keys()
    iso = {name for name, form in forms.items() if form.is_iso and form.others}
    missing = {name: (*forms[name].words,) for name in forms if name in {*columns, *dates, *iso}}
    missing = {name: words for name, words in missing.items() if words}
    words = tuple(dict.fromkeys(word for some in missing.values() for word in some))
    elsewhere = [
        name for name, form in forms.items() if name not in missing and not set(words).isdisjoint(form.words)
    ]
    if words:
        name, some = next(iter(missing.items()))
        reason = f"{_quoted(some)} in {_share(sum(forms[name].words.values()), forms[name].cells)} of {name}"
        reason += (
            f"{_more(len(missing) - 1)}; all other cells are {'numbers' if name in columns else 'dates'}"
        )
        if elsewhere:
            reason += f"; not in {elsewhere[0]}, which is text"
        value: Any = {name: [*some] for name, some in missing.items()} if elsewhere else [*words]
        options.append(ProposedOption(name="missing", value=value, reason=reason))
    if dates:
        name = next(iter(dates))
        example, others = forms[name].examples["date"], forms[name].others
        reason = f"{example} in {_share(others, forms[name].cells)} of {name}{_more(len(dates) - 1)}"
        value = dates[name] if len(set(dates.values())) == 1 and not iso else dates
        options.append(ProposedOption(name="dates", value=value, reason=reason))
    return ProposedNotation(
        options=tuple(options),
        numbers=numbers,
        columns=frozenset(columns) if options else frozenset(),
        dates=dates,
        missing=missing if elsewhere else dict.fromkeys(forms, words),
        notes=tuple(notes),
        explained=frozenset(explained),
    )


def _numbers(numeric: Mapping[str, CellForms]) -> tuple[Notation, list[str], set[str]]:
    """The notation that reads the numbers of all columns, if there is exactly one; else `_PLAIN`. Also
    returns notes, and the columns that they explain.
    """
    common = [
        notation for notation in _NUMBERS if all(notation in forms.numbers for forms in numeric.values())
    ]
    marks: Counter[str] = sum((forms.marks for forms in numeric.values()), Counter())
    needed = dict.fromkeys(_needed(notation, marks) for notation in common)
    if len(needed) == 1:
        return next(iter(needed)), [], set()
    odd = [name for name, forms in numeric.items() if _PLAIN not in forms.numbers]
    if not needed:
        first, other = _contradicting(numeric)
        examples = ", ".join(f"`{_example(numeric[name])}`" for name in (first, other))
        note = f"{first} and {other}: numbers in different notations, {examples}: no option reads both"
        return _PLAIN, [note], set(odd)
    notes = []
    for name, forms in numeric.items():
        mark = next((mark_ for mark_ in (",", ".") if forms.marks[mark_]), "")
        if mark == "," and name in odd:
            notes.append(
                f"{name}: numbers such as `{forms.examples[mark]}` are inferred as text: "
                '`decimal: ","` or `thousands: ","` of the source says which they are'
            )
        elif mark == "." and name not in odd and any(notation.decimal == "," for notation in forms.numbers):
            example = forms.examples[mark]
            notes.append(
                f"{name}: `{example}` is read with a decimal point: if the point divides thousands, "
                '`decimal: ","` and `thousands: "."` of the source say so'
            )
    return _PLAIN, notes, set(odd)


def _needed(notation: Notation, marks: Mapping[str, int]) -> Notation:
    """The notation without separators that no cell has."""
    thousands = notation.thousands if marks.get(notation.thousands) else ""
    comma = notation.decimal == "," and (marks.get(",") or thousands == ".")
    return replace(notation, decimal="," if comma else ".", thousands=thousands)


def _contradicting(numeric: Mapping[str, CellForms]) -> tuple[str, str]:
    """Two columns that no notation reads together."""
    odd = sorted(numeric, key=lambda name: len(numeric[name].numbers))
    pairs = combinations(odd, 2)
    disjoint = (pair for pair in pairs if set(numeric[pair[0]].numbers).isdisjoint(numeric[pair[1]].numbers))
    first, other = sorted(next(disjoint, odd[:2]), key=[*numeric].index)
    return first, other


def _example(forms: CellForms) -> str:
    return next((forms.examples[mark] for mark in (*_SEPARATORS[1:], "%") if mark in forms.examples), "1")


def _number_options(notation: Notation, numeric: Mapping[str, CellForms]) -> Iterator[ProposedOption]:
    decimal, thousands = notation.decimal, notation.thousands
    if decimal != ".":
        mark = "," if any(forms.marks[","] for forms in numeric.values()) else thousands
        yield _number_option("decimal", decimal, mark, numeric)
    if thousands:
        yield _number_option("thousands", thousands, thousands, numeric)
    if any(forms.marks["%"] for forms in numeric.values()):
        yield _number_option("percent", True, "%", numeric)


def _number_option(name: str, value: Any, mark: str, numeric: Mapping[str, CellForms]) -> ProposedOption:
    having = [column for column, forms in numeric.items() if forms.marks[mark]]
    forms = numeric[having[0]]
    reason = f"{forms.examples[mark]} in {_share(forms.marks[mark], forms.cells)} of {having[0]}"
    return ProposedOption(name=name, value=value, reason=reason + _more(len(having) - 1))


def _dates(forms: Mapping[str, CellForms]) -> tuple[dict[str, str], list[str]]:
    """The date format of each column with exactly one; and notes on columns with several possible formats."""
    dated = {name: form for name, form in forms.items() if form.others and form.dates}
    certain = {name: form.dates[0] for name, form in dated.items() if len(form.dates) == 1}
    dates, notes = {}, []
    for name, cells in dated.items():
        as_others = [form for form in cells.dates if form in certain.values()]
        if name in certain or len(as_others) == 1:
            dates[name] = certain.get(name) or as_others[0]
            continue
        choice = " or ".join(f'`dates: "{form}"`' for form in cells.dates)
        notes.append(
            f"{name}: dates such as `{cells.examples['date']}` are inferred as text: {choice} of the source "
            "says which they are"
        )
    return dates, notes


def _share(count: int, cells: int) -> str:
    return f"{count:,} of {cells:,} cells"


def _more(columns: int) -> str:
    return f", and in {columns:,} more column{'s' * (columns > 1)}" if columns else ""


def _quoted(words: tuple[str, ...]) -> str:
    return ", ".join(json.dumps(word, ensure_ascii=False) for word in words)
