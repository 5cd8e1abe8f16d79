"""A block: one Example that holds many rows, a batch at rest.

Each key has the values of all rows, end to end. Where their number varies, `<key>/lengths` has it for every
row, and for a SequenceExample's steps, `<key>/steps`. The keys of a SequenceExample's sections
begin with `context/` and `sequence/`, so that a block is an Example in any case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError, nearest
from recordspec.wire.columns import (
    TF_DTYPES,
    Call,
    Cells,
    Column,
    Name,
    Part,
    Ragged,
    Section,
    Sparse,
    Storage,
    VarLen,
    ragged_call,
    row_lengths_call,
    uniform_call,
)
from recordspec.wire.example import Entry, sizes_of_groups
from recordspec.wire.strings import Ints, Sizes, Strings, offsets, one_size

# The values of a block by key.
Parsed = Mapping[str, Any]

# The key of the number of rows of a block.
ROWS = "/rows"
# A record is a protobuf message, which holds less than 2 GiB: no more values, nor lists.
_MOST = 1 << 31

_TYPES = {"int64": int, "float32": float, "bytes": bytes}


def block_key(key: str, section: Section) -> str:
    """The key of a column's values in a block."""
    return key if section == "features" else f"{section}/{key}"


def lengths_key(key: str) -> str:
    return f"{key}/lengths"


def _steps_key(key: str) -> str:
    return f"{key}/steps"


def entries(section: Section, given: list[Entry], sizes: Sizes, count: int) -> Iterator[Entry]:
    """The entries of many rows as those of `count` records, each a block of `sizes` rows."""
    counted = _counted([entry.column for entry in given], section)
    for entry in given:
        key, cells = block_key(entry.column.key, section), entry.cells
        in_block = sizes if entry.steps is None else sizes_of_groups(entry.steps, sizes)
        lengths = sizes_of_groups(one_size(cells.lengths), in_block)
        yield _entry(key, entry.column.storage, cells.flat, lengths, count)
        if entry.steps is not None:
            yield _entry(_steps_key(key), "int64", entry.steps, sizes, count)
        if entry.column.key in counted:
            counts = cells.counts // _cell_size(entry.column)
            yield _entry(lengths_key(key), "int64", counts, in_block, count)


def block_problems(columns: Iterable[Column], section: Section, parsed: Parsed) -> Iterator[Problem]:
    """The problems of a block whose values are of another type, or another number, than those of its rows."""
    columns = tuple(columns)
    for column in columns:
        values = parsed.get(block_key(column.key, section))
        if values and type(values[0]) is not _TYPES[column.storage]:
            got = f"{len(values)} {_dtype(values)}"
            yield Problem(path=(section, column.key), expected=TF_DTYPES[column.storage], got=got)
            return
    try:
        held = list(stored(columns, section, parsed))
    except RecordError as error:
        yield from error.problems
        return
    for entry in held:
        path, cells = (section, entry.column.key), entry.cells
        lengths = np.asarray(cells.lengths)
        wanted = int(lengths.sum() if lengths.ndim else lengths * cells.rows)
        if lengths.ndim and len(lengths) != cells.rows:
            yield Problem(path=path, expected=f"lengths of {cells.rows} rows", got=str(len(lengths)))
        elif len(cells.flat) != wanted:
            expected = f"{wanted} {TF_DTYPES[entry.column.storage]} in a block of {rows_in(parsed)} rows"
            yield Problem(path=path, expected=expected, got=str(len(cells.flat)))


def _dtype(values: list[Any]) -> str:
    return next(TF_DTYPES[storage] for storage, kind in _TYPES.items() if type(values[0]) is kind)


def check_block_keys(columns: Mapping[Section, Iterable[Column]], block: Parsed) -> None:
    """Raises RecordError if a block has something under a key that no column has."""
    keys = [block_key(column.key, section) for section, some in columns.items() for column in some]
    known = {ROWS, *keys, *map(lengths_key, keys), *map(_steps_key, keys)}
    if not block.keys() <= known:
        raise RecordError(unknown_key(min(block.keys() - known), known, "keys of the schema in a block"))


def unknown_key(key: str, known: Iterable[str], expected: str) -> Problem:
    """A key that no column has: its values would be lost."""
    return Problem(expected=expected, got=f"`{key}`", hint=nearest(key, known))


def rows_entry(sizes: Sizes, count: int) -> Entry:
    """The entry with the number of rows of each of `count` blocks."""
    return _entry(ROWS, "int64", np.broadcast_to(np.asarray(sizes, np.int64), (count,)).copy(), 1, count)


def _entry(key: str, storage: Storage, flat: Ints | Strings, lengths: Sizes, count: int) -> Entry:
    column = Column(key=key, storage=storage, layout=VarLen())
    return Entry(column=column, cells=Cells(flat=flat, lengths=lengths, rows=count))


def _counted(columns: Iterable[Column], section: Section) -> set[str]:
    """The keys whose values are counted row by row (of steps: step by step)."""
    counted: set[str] = set()
    for column in columns:
        layout = column.layout
        if isinstance(layout, Ragged):
            counted.add((layout.row_lengths or (column.key,))[0])
        elif not isinstance(layout, Part) and not column.is_whole(section):
            counted.add(column.key)
    return counted


def _cell_size(column: Column) -> int:
    """The number of values per cell: a default replaces all values of a row, or none."""
    return max(1, math.prod(column.cell))


def parse_calls(columns: Iterable[Column], section: Section) -> dict[str, Call]:
    """The tf.io objects that parse a block's keys; each column is under its own key, as in records.

    The values of fixed columns are concatenated per block, `[(m)]`; all others are ragged again,
    `[(rows), (k), *shape]`.
    """
    calls: dict[str, Call] = {}
    for column in columns:
        key, layout, size = block_key(column.key, section), column.layout, values_in_row(column, section)
        if isinstance(layout, Part) or size == 0:  # of no values at all there is nothing to parse
            continue
        partitions = _partitions(column, section) if size is None else []
        calls[key] = ragged_call(key, Name(TF_DTYPES[column.storage]), partitions)
        if isinstance(layout, Sparse):
            for index in (block_key(index, section) for index in layout.index_keys):
                calls[index] = ragged_call(index, Name("int64"), [row_lengths_call(lengths_key(key))])
    return calls


def values_in_row(column: Column, section: Section) -> int | None:
    """The number of values of a row that are parsed end to end; None if they are parsed row by row."""
    return math.prod(column.cell) if section != "sequence" and column.is_whole(section) else None


def _partitions(column: Column, section: Section) -> list[Call]:
    key, layout = block_key(column.key, section), column.layout
    uniform = [uniform_call(size) for size in column.cell]
    if isinstance(layout, Ragged):
        parts = [block_key(part, section) for part in layout.row_lengths]
        outer = lengths_key((parts or [key])[0])
        inner = [*map(row_lengths_call, (outer, *parts)), *uniform]
    else:
        inner = uniform if column.is_whole(section) else [row_lengths_call(lengths_key(key)), *uniform]
    return [row_lengths_call(_steps_key(key)), *inner] if section == "sequence" else inner


def rows_in(parsed: Parsed) -> int:
    """The number of rows of a block, by its values by key. Raises RecordError for a record that is no
    block."""
    rows = parsed.get(ROWS)
    if not rows:
        raise RecordError(Problem(path=(ROWS,), expected="a block of rows", got="a record without"))
    if len(rows) != 1 or type(rows[0]) is not int or rows[0] < 0:
        got = str(rows[0]) if _dtype(rows) == "int64" and len(rows) == 1 else f"{len(rows)} {_dtype(rows)}"
        raise RecordError(Problem(path=(ROWS,), expected="the number of a block's rows", got=got))
    return int(rows[0])


def stored(columns: Iterable[Column], section: Section, parsed: Parsed) -> Iterator[Entry]:
    """Decodes a block's values to the entries of its rows, the inverse of `entries`.

    Raises RecordError for lengths that are invalid or inconsistent.
    """
    columns = tuple(columns)
    rows = rows_in(parsed)
    lengths = _lengths_by_key(columns, section, parsed)
    for column in columns:
        key, steps = block_key(column.key, section), None
        if section == "sequence":
            steps = _ints(_steps_key(column.key), section, parsed)
            if len(steps) != rows:
                expected = f"numbers of steps of {rows} rows"
                raise RecordError(Problem(path=(section, column.key), expected=expected, got=str(len(steps))))
        flat = parsed.get(key) or []
        values = Strings.of(flat) if column.storage == "bytes" else np.array(flat, column.storage)
        count = rows if steps is None else int(steps.sum())
        each = lengths[column.key]
        present = np.asarray(each) > 0 if column.has_default else None
        cells = Cells(flat=values, lengths=each, rows=count)
        yield Entry(column=column, cells=cells, present=present, steps=steps)


def _lengths_by_key(columns: tuple[Column, ...], section: Section, parsed: Parsed) -> dict[str, int | Ints]:
    """The number of values of each row, or step, under each key."""
    found: dict[str, int | Ints] = {}
    for column in columns:
        key, layout, size = column.key, column.layout, math.prod(column.cell)
        if isinstance(layout, Part):
            continue
        if column.is_whole(section):
            found[key] = size
        elif isinstance(layout, Ragged):
            outer = (layout.row_lengths or (key,))[0]
            counts, said = _ints(lengths_key(outer), section, parsed), lengths_key(outer)
            for part in layout.row_lengths:
                found[part] = counts
                inner = _ints(part, section, parsed)
                if counts.sum() != len(inner):
                    expected = f"{counts.sum()} lengths in `{part}`, as `{said}` says"
                    raise RecordError(Problem(path=(section, key), expected=expected, got=str(len(inner))))
                counts, said = np.diff(offsets(inner)[offsets(counts)]), part
            found[key] = counts * size
            if layout.aligned_with is not None and not np.array_equal(found[layout.aligned_with], found[key]):
                expected = f"lists as long as those under `{layout.aligned_with}`"
                raise RecordError(Problem(path=(section, key), expected=expected, got="others"))
        else:
            found[key] = _ints(lengths_key(key), section, parsed) * _cell_size(column)
            found |= dict.fromkeys(getattr(layout, "index_keys", ()), found[key])
    return found


def _ints(key: str, section: Section, parsed: Parsed) -> Ints:
    """The lengths under a key, which are checked to be valid and small enough to be added."""
    values = parsed.get(block_key(key, section)) or []
    if values and type(values[0]) is not int:
        got = f"{len(values)} {_dtype(values)}"
        raise RecordError(Problem(path=(section, key), expected="lengths, int64", got=got))
    lengths = np.array(values, np.int64)
    bad = lengths[(lengths < 0) | (lengths >= _MOST)]
    if len(bad):
        expected = f"lengths from 0 to {_MOST - 1:,}"
        raise RecordError(Problem(path=(section, key), expected=expected, got=str(bad[0])))
    return lengths
