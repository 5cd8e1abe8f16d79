"""A block: one Example that holds many rows, a stored batch.

Each key has the values of all rows, concatenated. If their number varies, `<key>/lengths` has the number for
every row, and `<key>/steps` the number of steps in a SequenceExample. The keys of a SequenceExample's
sections begin with `context/` and `sequence/`, so that a block is always an Example.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec.errors import Path, Problem, RecordError, nearest
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    Sizes,
    counts_of,
    fixed_count,
    flat_of,
    is_list,
    items_of,
    list_array,
    offsets,
    part,
    present_in,
    storage_of,
    strings_array,
    to_arrow,
    values_array,
)
from recordspec.wire.columns import (
    TF_DTYPES,
    Call,
    Column,
    Component,
    Name,
    Place,
    Ragged,
    Section,
    Sparse,
    Storage,
    ragged_call,
    row_lengths_call,
    uniform_call,
)
from recordspec.wire.example import Table, sizes_of_groups
from recordspec.wire.record_batch import decode

# The key for the number of rows of a block.
ROWS = "/rows"
# A limit for numbers of values and lists: a record is a protobuf message, hence smaller than 2 GiB.
_MOST = 1 << 31


def block_key(place: Place) -> str:
    """The key of a column's values in a block."""
    return place.key if place.section == "features" else f"{place.section}/{place.key}"


def lengths_key(key: str) -> str:
    return f"{key}/lengths"


def steps_key(key: str) -> str:
    return f"{key}/steps"


def columns_of_blocks(
    section: Section, arrays: Mapping[str, ArrowArray], columns: Iterable[Column], sizes: Sizes, count: int
) -> Iterator[tuple[str, ArrowArray]]:
    """The columns of many rows as columns of `count` records, each a block of `sizes` rows, by key."""
    columns = tuple(columns)
    counted = _counted(columns, section)
    for column in columns:
        array, in_block = arrays[column.key], sizes
        place = Place(section, column.key)
        key = block_key(place)
        if place.in_steps:
            steps = counts_of(array)
            yield steps_key(key), to_arrow(steps, sizes, count)
            array, in_block = items_of(array), sizes_of_groups(steps, sizes)
        if column.key in counted:
            yield lengths_key(key), to_arrow(counts_of(array) // _cell_size(column), in_block, count)
        width = fixed_count(array)
        lengths = sizes_of_groups(counts_of(array) if width is None else width, in_block)
        yield key, to_arrow(array if width == 1 and not is_list(array) else flat_of(array), lengths, count)


def _counted(columns: Iterable[Column], section: Section) -> set[str]:
    """The keys whose values are counted per row (in `sequence`, per step)."""
    counted: set[str] = set()
    for column in columns:
        layout = column.layout
        if isinstance(layout, Ragged):
            counted.add((layout.row_lengths or (column.key,))[0])
        elif not isinstance(layout, Component) and not column.is_whole(section):
            counted.add(column.key)
    return counted


def _cell_size(column: Column) -> int:
    """The number of values per cell: a default replaces either all values of a row or none."""
    return max(1, math.prod(column.cell))


def parse_calls(columns: Iterable[Column], section: Section) -> dict[str, Call]:
    """The tf.io objects that parse a block's keys; each column has its own key, as in records.

    The values of fixed columns are concatenated per block, `[(m)]`. All other values are ragged,
    `[(rows), (k), *shape]`.
    """
    calls: dict[str, Call] = {}
    for column in columns:
        place, layout = Place(section, column.key), column.layout
        key, size = block_key(place), values_in_row(column, place)
        if isinstance(layout, Component) or size == 0:  # a column without any values need not be parsed
            continue
        partitions = _partitions(column, place) if size is None else []
        calls[key] = ragged_call(key, Name(TF_DTYPES[column.storage]), partitions)
        if isinstance(layout, Sparse):
            for index in (block_key(Place(section, index)) for index in layout.index_keys):
                calls[index] = ragged_call(index, Name("int64"), [row_lengths_call(lengths_key(key))])
    return calls


def values_in_row(column: Column, place: Place) -> int | None:
    """The number of values per row if rows are parsed concatenated; None if they are parsed row by row."""
    return math.prod(column.cell) if not place.in_steps and column.is_whole(place.section) else None


def _partitions(column: Column, place: Place) -> list[Call]:
    key, layout = block_key(place), column.layout
    uniform = [uniform_call(size) for size in column.cell]
    if isinstance(layout, Ragged):
        parts = [block_key(Place(place.section, part)) for part in layout.row_lengths]
        outer = lengths_key((parts or [key])[0])
        inner = [*map(row_lengths_call, (outer, *parts)), *uniform]
    else:
        is_whole = column.is_whole(place.section)
        inner = uniform if is_whole else [row_lengths_call(lengths_key(key)), *uniform]
    return [row_lengths_call(steps_key(key)), *inner] if place.in_steps else inner


@dataclass(frozen=True, kw_only=True)
class StoredBlocks:
    """Blocks as stored: the values of all blocks, by key.

    Attributes:
        values: by key, as `decode` returns them; each row is a block.
        rows: the number of rows of each block, int64 `[n]`.
    """

    values: Mapping[str, tuple[ArrowArray, ...]]
    rows: Ints

    @classmethod
    def of(
        cls, buffer: Bytes, starts: Ints, stops: Ints, keys: Collection[str] | None = None
    ) -> StoredBlocks:
        """Decodes the blocks in a buffer, only the given keys. Raises RecordError, with its number, for a
        record that is no block.
        """
        decoded = decode(buffer, starts, stops, keys=keys)
        for block, problems in decoded.problems:
            raise RecordError(problems, block)
        stated = np.full(decoded.rows, -1)
        for array in decoded.features.get(ROWS, ()):
            if storage_of(array) == "int64":
                counts = counts_of(array)
                stated[counts == 1] = flat_of(array)[offsets(counts)[:-1][counts == 1]]
        # each row takes at least a byte
        wrong = np.flatnonzero((stated < 0) | (stated > stops - starts))
        if len(wrong):
            raise RecordError(_no_block(decoded.features.get(ROWS, ()), int(wrong[0])), int(wrong[0]))
        return cls(values=decoded.features, rows=stated)

    @classmethod
    def of_record(cls, record: bytes | memoryview) -> StoredBlocks:
        """Decodes the block of a record. Raises RecordError if the record is not a block."""
        data = np.frombuffer(record, np.uint8)
        return cls.of(data, np.zeros(1, np.int64), np.array([len(data)]))

    def flat(self, key: str, storage: Storage, path: Path, expected: str = "") -> tuple[Any, Ints]:
        """The values of a key, concatenated, and their number in each block.

        Raises RecordError for a block with values of another type.
        """
        counts, dense = np.zeros(len(self.rows), np.int64), None
        for array in self.values.get(key, ()):
            numbers = counts_of(array)
            if storage_of(array) == storage:
                counts, dense = numbers, flat_of(array)
            elif numbers.any():
                place = int(np.argmax(numbers > 0))
                got = f"{numbers[place]} {TF_DTYPES[storage_of(array)]}"
                problem = Problem(path=path, expected=expected or TF_DTYPES[storage], got=got)
                raise RecordError(problem, place)
        if dense is None:
            dense = strings_array([]) if storage == "bytes" else np.zeros(0, storage)
        return dense, counts

    def lengths(self, key: str, column: str, section: Section, wanted: Ints, expected: str) -> Ints:
        """The lengths under a key of a column. Checks that they are valid, small enough to be added, and
        `wanted` in number in each block; `expected` describes that number in messages.
        """
        path = (section, key)
        lengths, counts = self.flat(block_key(Place(section, key)), "int64", path, "lengths, int64")
        bad = np.flatnonzero((lengths < 0) | (lengths >= _MOST))
        if len(bad):
            problem = Problem(
                path=path, expected=f"lengths from 0 to {_MOST - 1:,}", got=str(lengths[bad[0]])
            )
            raise RecordError(problem, int(np.searchsorted(np.cumsum(counts), bad[0], "right")))
        for block in np.flatnonzero(wanted != counts)[:1].tolist():
            number, got = expected.format(wanted[block]), str(counts[block])
            raise RecordError(Problem(path=(section, column), expected=number, got=got), block)
        return np.asarray(lengths)

    def check_keys(self, columns: Mapping[Section, Iterable[Column]]) -> None:
        """Raises RecordError for a block with values under a key that no column has."""
        check_known(self.values, keys_with(columns), "keys of the schema in a block")


def keys_with(columns: Mapping[Section, Iterable[Column]]) -> set[str]:
    """The keys of blocks with the given columns."""
    keys = [block_key(Place(section, one.key)) for section, some in columns.items() for one in some]
    return {ROWS, *keys, *map(lengths_key, keys), *map(steps_key, keys)}


def check_known(by_key: Mapping[str, tuple[ArrowArray, ...]], known: Collection[str], expected: str) -> None:
    """Raises RecordError for the first row with an unknown key, since its values would be lost."""
    first: tuple[int, str] | None = None
    for key in by_key.keys() - known:  # one key at a time: there may be as many as rows
        row = min(int(np.argmax(present_in(array))) for array in by_key[key])
        first = min(first or (row, key), (row, key))
    if first is not None:
        row, key = first
        raise RecordError(Problem(expected=expected, got=f"`{key}`", hint=nearest(key, known)), row)


def _no_block(arrays: tuple[ArrowArray, ...], block: int) -> Problem:
    """The problem of a record that does not state its number of rows."""
    for array in arrays:
        here = part(array, block, block + 1)
        number, kind = int(counts_of(here)[0]), storage_of(array)
        if not number:
            continue
        got = f"{number} {TF_DTYPES[kind]}"
        if kind == "int64" and number == 1:
            got = f"{flat_of(here)[0]:,}"
        return Problem(path=(ROWS,), expected="the number of a block's rows", got=got)
    return Problem(path=(ROWS,), expected="a block of rows", got="a record without")


def stored(columns: Iterable[Column], section: Section, blocks: StoredBlocks) -> Table:
    """The columns of the rows of all blocks: the inverse of `columns_of_blocks`.

    Raises RecordError, with the number of the block, for values of another type, or if their number differs
    from that of the block's rows.
    """
    columns = tuple(columns)
    cells_of = dict.fromkeys((column.key for column in columns), blocks.rows)
    steps: dict[str, Ints] = {}
    for key in cells_of:
        if Place(section, key).in_steps:
            expected = "numbers of steps of {} rows"
            steps[key] = blocks.lengths(steps_key(key), key, section, blocks.rows, expected)
            cells_of[key] = np.asarray(sizes_of_groups(steps[key], blocks.rows))
    each_of = _lengths_by_key(columns, section, blocks, cells_of)
    arrays: dict[str, ArrowArray] = {}
    wrong: list[tuple[int, Problem]] = []
    for column in columns:
        key, each = column.key, each_of[column.key]
        values, numbers = blocks.flat(block_key(Place(section, key)), column.storage, (section, key))
        cells = cells_of[key]
        wanted = each * cells if isinstance(each, int) else np.asarray(sizes_of_groups(each, cells))
        for block in np.flatnonzero(wanted != numbers).tolist():
            in_rows = f"{TF_DTYPES[column.storage]} in a block of {blocks.rows[block]} rows"
            expected = f"{wanted[block]} {in_rows}"
            wrong.append((block, Problem(path=(section, key), expected=expected, got=str(numbers[block]))))
        if wrong:
            continue
        if column.has_default:
            lengths = np.broadcast_to(each, int(cells.sum()))
            made = list_array(values_array(values), offsets(lengths), lengths > 0)
        else:
            made = to_arrow(values, each, int(cells.sum()))
        arrays[key] = list_array(made, offsets(steps[key])) if key in steps else made
    if wrong:
        first = min(block for block, _ in wrong)
        raise RecordError([problem for block, problem in wrong if block == first], first)
    return arrays


def _lengths_by_key(
    columns: tuple[Column, ...], section: Section, blocks: StoredBlocks, cells_of: Mapping[str, Ints]
) -> dict[str, int | Ints]:
    """The number of values of each row, or step, under each key."""
    sizes_of: dict[str, int | Ints] = {}
    for column in columns:
        key, layout, cells = column.key, column.layout, cells_of[column.key]
        if isinstance(layout, Component):
            continue
        if column.is_whole(section):
            sizes_of[key] = math.prod(column.cell)
        elif isinstance(layout, Ragged):
            sizes_of |= _lengths_of_ragged(column, layout, section, blocks, cells)
            if layout.aligned_with is not None and not np.array_equal(
                sizes_of[layout.aligned_with], sizes_of[key]
            ):
                differ = np.flatnonzero(sizes_of[layout.aligned_with] != sizes_of[key])
                expected = f"lists as long as those under `{layout.aligned_with}`"
                problem = Problem(path=(section, key), expected=expected, got="others")
                raise RecordError(problem, int(np.searchsorted(np.cumsum(cells), differ[0], "right")))
        else:
            lengths = blocks.lengths(lengths_key(key), key, section, cells, "lengths of {} rows")
            sizes_of[key] = lengths * _cell_size(column)
            sizes_of |= dict.fromkeys(getattr(layout, "index_keys", ()), sizes_of[key])
    return sizes_of


def _lengths_of_ragged(
    column: Column, layout: Ragged, section: Section, blocks: StoredBlocks, cells: Ints
) -> dict[str, Ints]:
    """The number of values of each row under a key of ragged lists, and under the keys of its row lengths."""
    key, lengths_of = column.key, {}
    said = lengths_key((layout.row_lengths or (key,))[0])
    counts = blocks.lengths(said, key, section, cells, "lengths of {} rows")
    for inner_key in layout.row_lengths:
        lengths_of[inner_key] = counts
        numbers = np.asarray(sizes_of_groups(counts, cells))
        inner = blocks.lengths(
            inner_key, key, section, numbers, f"{{}} lengths in `{inner_key}`, as `{said}` says"
        )
        counts, said = np.diff(offsets(inner)[offsets(counts)]), inner_key
    return {**lengths_of, key: counts * math.prod(column.cell)}
