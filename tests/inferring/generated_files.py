"""Random files: infers a config, builds it, and compares each value with the generated one.

    python tests/inferring/generated_files.py [--jsonl 2000] [--csv 2000] [--parquet 1000] [--first 0]

prints how many files were built with equal values, and how many were refused, by the reason. The expected values follow
from the generated rows alone.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import decimal
import json
import math
import random
import re
import string
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyarrow import types as arrow_types

import recordspec as rs
from recordspec.inferring import tables

Make = Callable[[], Any]

WORDS = [
    "red",
    "green",
    "blue",
    "",
    "null",
    "NA",
    "Oslo",
    "é",
    "1",
    "true",
    "two words",
    "a,b",
    'say "hi"',
    "x\ny",
]
EDGES = [2**24 + 1, 2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64]
RANGES = [(0, 1), (0, 5), (-100, 100), (0, 2**24), (2**24, 2**25), (2**53, 2**54)]
NAMES = ["id", "m", "n", "geo.pos", "label", "a b", "m_missing", "items", "t"]
ROWS = [1, 5, 40, 40, 60]
MIDNIGHT, DAY = datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1)
# The value of a name that a row does not have.
ABSENT = object()


class DifferentError(Exception):
    """A built value differs from the generated one, or was lost without a note."""


# ---- values ----


def whole_numbers(rng: random.Random) -> Make:
    low, high = rng.choice(RANGES)
    most_edges = rng.choice([0] * 5 + [0.2])
    return lambda: rng.choice(EDGES) if rng.random() < most_edges else rng.randint(low, high)


def fractions(rng: random.Random) -> Make:
    rare = rng.choice([[], [], [1e300, -1e39, 1e-310], [math.nan, math.inf, -math.inf, -0.0]])
    if rng.random() < 0.2:
        return lambda: float(rng.randint(-(2**26), 2**26))

    def make() -> float:
        return (
            rng.choice(rare)
            if rare and rng.random() < 0.2
            else round(rng.uniform(-1e3, 1e3), rng.randint(1, 8))
        )

    return make


def texts(rng: random.Random) -> Make:
    few = rng.sample(["red", "green", "blue", "Oslo", "é"], 3)
    moment = partial(some_moment, rng)
    return rng.choice(
        [
            lambda: rng.choice(few),
            lambda: rng.choice(few),
            lambda: rng.choice(WORDS),
            lambda: f"w{rng.getrandbits(60)}",
            lambda: moment().date().isoformat(),
            lambda: moment().isoformat(sep=rng.choice(" T")),
            lambda: f"{rng.randint(0, 10**6):06d}",
        ]
    )


def some_moment(rng: random.Random, steps: int = 10**8) -> datetime.datetime:
    return MIDNIGHT + datetime.timedelta(seconds=rng.randint(-steps, steps))


# ---- JSON Lines ----


def objects(rng: random.Random, depth: int) -> Make:
    names = rng.sample(["a", "b", "c", "label", "x.y", "a b", "b.c"], rng.choice([0, 1, 1, 2, 2, 3]))
    names += [""] * (rng.random() < 0.03)
    members = {name: json_values(rng, depth - 1) for name in names}
    return lambda: present({name: member() for name, member in members.items()})


def present(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not ABSENT}


def lists(rng: random.Random, depth: int) -> Make:
    item, size = json_values(rng, depth - 1, gaps=0.1), rng.choice([None, None, None, 1, 2, 3])
    longest, empty = rng.choice([1, 4]), rng.choice([0, 0, 0.9])

    def make() -> list[Any]:
        count = rng.randint(0, longest) if size is None else size
        made = [] if rng.random() < empty else [item() for _ in range(count)]
        return [None if value is ABSENT else value for value in made]

    return make


def json_values(rng: random.Random, depth: int, gaps: float = 0.4) -> Make:
    """Makes the values of a column: of one kind, or rarely of two, perhaps the second one in late rows alone."""
    kinds: list[tuple[float, Callable[[], Make]]] = [
        (3, lambda: whole_numbers(rng)),
        (2, lambda: fractions(rng)),
        (3, lambda: texts(rng)),
        (1, lambda: lambda: rng.random() < 0.5),
        (0.3, lambda: lambda: None),
        (3 * (depth > 0), lambda: objects(rng, depth)),
        (3 * (depth > 0), lambda: lists(rng, depth)),
        (0.2 * (depth > 0), lambda: lambda: {"b64": rng.choice(["", "/w==", "aGk="])}),
    ]
    count = 2 if rng.random() < 0.12 else 1
    first, *others = [kind() for kind in rng.choices([k for _, k in kinds], [w for w, _ in kinds], k=count)]
    start, calls = rng.choice([0, 15]), 0
    missing = rng.choice([0.02, 0.3, 0.9]) if rng.random() < gaps else 0.0
    gap = rng.choice([ABSENT, None])

    def make() -> Any:
        nonlocal calls
        calls += 1
        if rng.random() < missing:
            return gap
        return rng.choice([first, *others])() if calls > start else first()

    return make


def json_file(rng: random.Random, path: Path) -> list[dict[str, Any]]:
    columns = {
        name: json_values(rng, rng.choice([0, 1, 2, 3])) for name in rng.sample(NAMES, rng.randint(1, 5))
    }
    rows = [present({name: make() for name, make in columns.items()}) for _ in range(rng.choice(ROWS))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


# ---- Parquet ----


def arrow_type(rng: random.Random, depth: int) -> pa.DataType:
    kind = rng.choice(["scalar", "scalar", "list", "struct", "map"]) if depth else "scalar"
    if kind == "list":
        item = arrow_type(rng, depth - 1)
        return rng.choice([pa.list_(item), pa.list_(item), pa.large_list(item), pa.list_(item, 2)])
    if kind == "struct":
        names = rng.sample(["a", "b", "c.d", "label"], rng.randint(1, 3))
        return pa.struct([(name, arrow_type(rng, depth - 1)) for name in names])
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(rng, depth - 1))
    unit = rng.choice(["s", "ms", "us", "ns"])
    numbers = [
        pa.int8(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint32(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
    ]
    others = [
        pa.float64(),
        pa.bool_(),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.binary(3),
        pa.decimal128(9, 2),
    ]
    times = [
        pa.date32(),
        pa.date64(),
        pa.timestamp(unit),
        pa.timestamp(unit, "UTC"),
        pa.time32("ms"),
        pa.time64("us"),
    ]
    rare = [pa.duration(unit), pa.null(), pa.dictionary(pa.int32(), pa.string())]
    return rng.choice([*numbers, *others, *others, *times, *rare])


def arrow_value(rng: random.Random, kind: pa.DataType, gaps: float) -> Any:
    if arrow_types.is_null(kind) or rng.random() < gaps:
        return None
    if arrow_types.is_struct(kind):
        return {field.name: arrow_value(rng, field.type, gaps) for field in kind}
    if arrow_types.is_map(kind):
        return [(f"k{number}", arrow_value(rng, kind.item_type, gaps)) for number in range(rng.randint(0, 2))]
    if hasattr(kind, "value_type") and not arrow_types.is_dictionary(kind):
        size = kind.list_size if arrow_types.is_fixed_size_list(kind) else rng.randint(0, 3)
        return [arrow_value(rng, kind.value_type, gaps / 8) for _ in range(size)]
    return next(make(rng, kind) for is_kind, make in ARROW_VALUES if is_kind(kind))


def arrow_integer(rng: random.Random, kind: pa.DataType) -> int:
    info = np.iinfo(kind.to_pandas_dtype())
    return rng.choice([0, 1, 2, 3, rng.randint(info.min, info.max)])


def arrow_moment(rng: random.Random, kind: pa.DataType) -> datetime.datetime:
    made = some_moment(rng) + datetime.timedelta(milliseconds=0 if kind.unit == "s" else rng.randint(0, 999))
    return made.replace(tzinfo=datetime.timezone.utc if kind.tz else None)


ARROW_VALUES: list[tuple[Callable[[Any], bool], Callable[[random.Random, Any], Any]]] = [
    (arrow_types.is_boolean, lambda rng, kind: rng.random() < 0.5),
    (arrow_types.is_integer, arrow_integer),
    (arrow_types.is_float16, lambda rng, kind: np.float16(rng.randint(-50, 50) / 4)),
    (
        arrow_types.is_floating,
        lambda rng, kind: rng.choice([rng.uniform(-1e3, 1e3)] * 20 + [math.nan, 1e30, 2.0**25]),
    ),
    (arrow_types.is_date, lambda rng, kind: some_moment(rng).date()),
    (arrow_types.is_timestamp, arrow_moment),
    (arrow_types.is_time, lambda rng, kind: (MIDNIGHT + 86_399_999 * rng.random() * MILLISECOND).time()),
    (arrow_types.is_duration, lambda rng, kind: datetime.timedelta(seconds=rng.randint(-1000, 10**6))),
    (arrow_types.is_decimal, lambda rng, kind: decimal.Decimal(rng.randint(-(10**6), 10**6)).scaleb(-2)),
    (arrow_types.is_fixed_size_binary, lambda rng, kind: rng.randbytes(3)),
    (arrow_types.is_binary, lambda rng, kind: rng.randbytes(rng.randint(0, 4))),
    (lambda kind: True, lambda rng, kind: rng.choice(["red", "green", "blue", "2020-01-01"] * 5 + WORDS)),
]
MILLISECOND = datetime.timedelta(milliseconds=1)


def parquet_table(rng: random.Random) -> pa.Table:
    names, count = rng.sample(NAMES, rng.randint(1, 5)), rng.choice(ROWS)
    arrays = []
    for _ in names:
        kind, gaps = arrow_type(rng, rng.choice([0, 1, 2])), rng.choice([0, 0, 0.05, 0.5])
        arrays.append(pa.array([arrow_value(rng, kind, gaps) for _ in range(count)], kind))
    return pa.table(arrays, names)


def parquet_file(rng: random.Random, path: Path) -> list[dict[str, Any]]:
    table = parquet_table(rng)
    parquet.write_table(table, path, row_group_size=rng.choice([7, 1000]))
    return [
        {field.name: stored(row[field.name], field.type) for field in table.schema}
        for row in table.to_pylist()
    ]


def stored(value: Any, kind: pa.DataType) -> Any:
    """A value of Arrow in Python: maps are lists of objects; times and durations are the number of their unit."""
    if value is None:
        return None
    if arrow_types.is_map(kind):
        return [{"key": key, "value": stored(item, kind.item_type)} for key, item in value]
    if arrow_types.is_struct(kind):
        return {field.name: stored(value[field.name], field.type) for field in kind}
    if isinstance(value, list):
        return [stored(item, kind.value_type) for item in value]
    if isinstance(value, datetime.time):
        value = datetime.datetime.combine(DAY, value) - datetime.datetime.combine(DAY, datetime.time())
    if isinstance(value, datetime.timedelta):
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return value // datetime.timedelta(microseconds=1) * per_second // 10**6
    return float(value) if isinstance(value, decimal.Decimal) else value


# ---- CSV ----

Cell = tuple[str, Any]  # a cell with its value: a number, a date, a text, or None


def csv_cells(rng: random.Random) -> Callable[[], Cell]:
    few, whole, fraction, text = rng.sample(WORDS[:3], 2), whole_numbers(rng), fractions(rng), texts(rng)

    def amount() -> float:
        value = fraction()
        return 0.25 if not math.isfinite(value) or abs(value) > 1e6 or value == 0 else round(value, 2)

    def cell(value: Any, form: str = "{}") -> Cell:
        return form.format(value), value

    def exponent() -> Cell:
        written = f"{fraction():.3e}"
        return written, float(written)

    def percent() -> Cell:
        value = amount()
        return f"{value} %", value / 100

    def comma() -> Cell:
        value = amount()
        return str(value).replace(".", ","), value

    numbers: list[Callable[[], Cell]] = [
        lambda: cell(whole()),
        lambda: cell(whole()),
        lambda: cell(abs(whole()), "{:05d}"),
        lambda: cell(whole(), " {}"),
        lambda: cell(fraction()),
        lambda: cell(amount(), "{:,.2f}"),
        *(exponent, comma, percent),
        lambda: cell(rng.random() < 0.5),
        lambda: cell(some_moment(rng).date()),
        lambda: cell(some_moment(rng).date(), "{:%d.%m.%Y}"),
        lambda: cell(some_moment(rng)),
    ]
    words: list[Callable[[], Cell]] = [
        lambda: cell(rng.choice(few)),
        lambda: cell(f"w{rng.getrandbits(40)}"),
        lambda: cell(rng.choice(WORDS)),
        lambda: cell(rng.choice([str(whole()), text()])),
        lambda: ("", None),
    ]
    make = rng.choice(numbers + words)
    empty, marked = rng.choice([0, 0, 0.1, 0.9]), rng.choice([0, 0, 0, 0.1]) * (make in numbers)
    mark = rng.choice(["NA", "-", "?", "n/a"])
    return lambda: ("", None) if rng.random() < empty else (mark, None) if rng.random() < marked else make()


def csv_file(rng: random.Random, path: Path) -> list[dict[str, Cell]]:
    names = rng.sample([*NAMES, "x,y"], rng.randint(1, 6))
    names = ["a"] if names == ["a b"] else names  # a file of one column with a space may have two
    columns = {name: csv_cells(rng) for name in names}
    rows = [{name: make() for name, make in columns.items()} for _ in range(rng.choice(ROWS))]
    # in a header of one name, or with a comma in a name, no other delimiter can be seen
    is_clear = len(names) > 1 and "x,y" not in names
    delimiter, end = rng.choice([",", ",", ";", "\t"]) if is_clear else ",", rng.choice(["\n", "\r\n"])
    lines = [[quoted(name, delimiter) for name in names]]
    lines += [
        ["" if one == ("", None) else quoted(one[0], delimiter) for one in row.values()] for row in rows
    ]
    text = "".join(delimiter.join(line) + end for line in lines)
    path.write_bytes(text.encode(rng.choice(["utf-8", "utf-8", "utf-8-sig", "windows-1252", "utf-16"])))
    return rows


def quoted(cell: str, delimiter: str) -> str:
    is_plain = cell and not set(cell) & {delimiter, '"', "\n"}
    return cell if is_plain else '"' + cell.replace('"', '""') + '"'


def of_cell(row: dict[str, Cell], name: str, feature: rs.features.Feature, inferred: Any) -> Any:
    """What a feature has of a cell: the text, if it is a feature of text or of classes; None for missing words."""
    cell, value = row[name]
    if any(option.name == "trim" for option in inferred.options):
        cell = cell.strip(" ")
    missing = next((option.value for option in inferred.options if option.name == "missing"), ())
    if cell in (missing.get(name, ()) if isinstance(missing, dict) else missing):
        return None
    kind = feature.value_type
    is_float = kind.item == "class" and feature.columns()[0].storage == "float32"
    if kind.item in ("text", "class") and not is_float:
        return cell if cell or value is not None else None
    if not isinstance(value, str) or kind.date is not None:
        return value
    if not cell:  # among texts that all happen to be bools or numbers
        return None
    if is_float:
        return float(cell)
    return cell == "true" if kind.item == "bool" else int(cell) if "int" in kind.item else float(cell)


# ---- comparison ----


def member(value: Any, name: str | None) -> Any:
    """The value under a dotted name; for a list of objects, a list."""
    if name is None or value is None:
        return value
    if isinstance(value, list):
        return [member(item, name) for item in value]
    if not isinstance(value, dict):
        raise DifferentError(f"a feature of the members of {value!r}, which has none")
    for key, item in value.items():
        if name == key or name.startswith(f"{key}."):
            found = member(item, None if name == key else name[len(key) + 1 :])
            if found is not None:
                return found
    return None


def leaves(value: Any, name: str = "") -> Iterator[str]:
    """Yields the dotted names of all values that are not missing."""
    if isinstance(value, dict) and [*value] != ["b64"]:
        for key, item in value.items():
            yield from leaves(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, name)
    elif value is not None:
        yield name


def same(expected: Any, got: Any, feature: rs.features.Feature) -> bool:
    """Whether a feature of a built dataset, as Arrow has it, has the generated value."""
    kind = feature.value_type
    if expected is None:
        return got is None or got == []
    if isinstance(expected, list):
        pairs = zip(expected, got or [], strict=False)
        return len(expected) == len(got or []) and all(
            a is not None and same(a, b, feature) for a, b in pairs
        )
    if isinstance(expected, dict):
        expected = base64.b64decode(expected["b64"])
    if kind.date is not None:
        return moment_of(expected) == moment_of(got)
    if kind.item == "class" and isinstance(expected, float) and expected.is_integer():
        expected = int(expected)  # the name of a class that is stored as a float
    if kind.item in ("class", "text"):
        return as_bytes(expected) == as_bytes(got)
    if isinstance(expected, bool) or kind.item == "bool":
        return kind.item == "bool" and expected is got
    return not isinstance(expected, (str, bytes)) and same_number(expected, got, kind.item)


def moment_of(value: Any) -> datetime.datetime | None:
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return None if value is None else value.replace(tzinfo=None)


def as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def same_number(expected: Any, got: Any, dtype: str) -> bool:
    """Whether a number is the expected one, of which only a fraction is rounded."""
    if got is None or (isinstance(expected, int) and not isinstance(got, float)):
        return expected == got
    with np.errstate(over="ignore"):
        held = float(np.dtype(dtype).type(expected))
    if isinstance(expected, int) and held != expected:
        return False
    return held == got or (math.isnan(held) and math.isnan(got))


def check_values(rows: list[Any], inferred: Any, data: Path, value_of: Callable[..., Any]) -> None:
    built = rs.scan(data).to_table().to_pylist()
    if len(built) != len(rows):
        raise DifferentError(f"{len(built)} rows of {len(rows)}")
    for name, feature in inferred.schema.names.items():
        for number, (row, made) in enumerate(zip(rows, built, strict=True)):
            expected = value_of(row, name, feature, inferred)
            if not same(expected, made[name], feature):
                raise DifferentError(
                    f"row {number}: {name}: {expected!r}, built as {made[name]!r} of {feature}"
                )


def check_names(names: set[str], inferred: Any) -> None:
    """Raises DifferentError if a column with values is neither a feature nor left out with a note."""
    for name in names - inferred.schema.names.keys():
        if not any(name == one or name.startswith(f"{one}.") for one in inferred.left_out):
            raise DifferentError(f"{name} is lost")
        parents = {name[:at] for at, character in enumerate(name) if character == "."} | {name}
        if not any(note.startswith(f"{one or chr(34) * 2}: ") for one in parents for note in inferred.notes):
            raise DifferentError(f"no note on {name}: {inferred.notes}")


def check_batches(inferred: Any, at_once: Any) -> None:
    """Raises DifferentError if the schema depends on the number of rows that `infer` reads at a time."""
    for name in inferred.schema.names.keys() | at_once.schema.names.keys():
        one, other = inferred.schema.names.get(name), at_once.schema.names.get(name)
        if one != other:
            raise DifferentError(f"in batches {one}, at once {other}: {inferred.notes}, {at_once.notes}")


# ---- files ----

KINDS: dict[str, tuple[Callable[[random.Random, Path], list[Any]], Callable[..., Any]]] = {
    "jsonl": (json_file, lambda row, name, *_: member(row, name)),
    "csv": (csv_file, of_cell),
    "parquet": (parquet_file, lambda row, name, *_: member(row, name)),
}


def outcome(kind: str, seed: int, folder: Path) -> str:
    """Makes a file, infers, builds, and compares. Returns what came of it, such as the refusal of `infer`."""
    rng, path = random.Random(f"{kind} {seed}"), folder / f"rows.{kind}"
    make, value_of = KINDS[kind]
    try:
        rows, batch = make(rng, path), rng.choice([None, 3, 16])
    except pa.ArrowNotImplementedError as error:  # pyarrow 16 writes no lists of nulls
        return f"not written by pyarrow: {general(str(error))}"
    try:
        at_once = inferred = rs.infer(path, "made")
        if batch is not None:
            inferred = in_batches(path, batch)
    except rs.RecordspecError as error:
        return f"refused: {general(str(error).partition(': ')[2])}"
    check_batches(inferred, at_once)
    changed = inferred.with_options(write={"splits": None, "shuffle": None})
    changed.save(folder / "c.yaml", schema=folder / "s.yaml", data=folder / "data", force=True)
    rs.Pipeline.load(folder / "c.yaml").build(force=True)
    if kind == "csv":
        names = {name for row in rows for name, (_, value) in row.items() if value not in (None, "")}
    else:
        names = {name for row in rows for name in leaves(row)}
    check_names(names, inferred)
    check_values(rows, inferred, folder / "data", value_of)
    has_left_out = names - inferred.schema.names.keys()
    return "built; columns that no feature holds are left out, each with a note" if has_left_out else "built"


def in_batches(path: Path, rows: int) -> Any:
    """What is inferred if few rows are read at a time."""
    usual, tables._BATCH_ROWS = tables._BATCH_ROWS, rows
    try:
        return rs.infer(path, "made")
    finally:
        tables._BATCH_ROWS = usual


def general(message: str) -> str:
    """A message without the names, values and numbers of a file."""
    message = re.sub(r"\(.*", "", message.splitlines()[0])
    return re.sub(rf"`[^`]*`|[{string.digits}][\d,]*", "_", message).strip()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for kind, most in (("jsonl", 2000), ("csv", 2000), ("parquet", 1000)):
        parser.add_argument(f"--{kind}", type=int, default=most, help="the number of files")
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    options, wrong = parser.parse_args(), 0
    for kind in KINDS:
        counts: Counter[str] = Counter()
        for seed in range(options.first, options.first + getattr(options, kind)):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    counts[outcome(kind, seed, Path(folder))] += 1
                except Exception as error:  # each file is counted, and each failure printed
                    counts["WRONG"] += 1
                    wrong += 1
                    expected = isinstance(error, (rs.RecordspecError, DifferentError))
                    said = "".join(traceback.format_exception(error)[-3:] if not expected else [str(error)])
                    print(kind, seed, said.replace(folder, ""), flush=True)
        print(kind, *(f"{count:,} {what}" for what, count in counts.most_common()), sep="\n  ", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
