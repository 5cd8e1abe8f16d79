"""Makes blocks from columns or from records, and parses them in a graph to the columns of a batch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordspec._tf import tf
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.schema.column_groups import AS_MANY, column_groups
from recordspec.schema.feature_set import ALL_SECTIONS, FeatureSet
from recordspec.schema.ragged_array import dense, values_of
from recordspec.schema.tensors import Tensor, with_default
from recordspec.schema.validate import check_structure
from recordspec.wire import blocks
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    StringsInPlace,
    bytes_in,
    counts_of,
    data_of,
    empty_column,
    fixed_count,
    flat_of,
    items_of,
    joined,
    list_array,
    offsets,
    part,
    storage_of,
    strings_array,
    take,
    to_arrow,
)
from recordspec.wire.columns import (
    TF_DTYPES,
    Column,
    Component,
    Fixed,
    FixedKeys,
    Place,
    Ragged,
    Section,
    Sequence,
    Sparse,
    Storage,
    VarLen,
)
from recordspec.wire.example import Table, encode, oversized
from recordspec.wire.example import sizes as record_sizes
from recordspec.wire.framing import AT_MOST, LARGEST_RECORD
from recordspec.wire.record_batch import RecordBatch, decode, fixed_values

# A string in a Python object takes as long as encoding and parsing so many bytes.
_BYTES_OF_A_STRING = 40
# The columns of records, by section and key.
Sections = Mapping[Section, Table]


@dataclass(frozen=True)
class TakenRows:
    """Rows of decoded blocks.

    Attributes:
        count: the number of rows.
        parts: the columns of rows that were decoded together, the numbers of the rows taken from them, and
            their places among all rows taken; None for all places.
    """

    count: int
    parts: list[tuple[Sections, Ints, Ints | None]]

    def sections(self, without: Collection[str] = ()) -> Sections:
        """The columns of the rows, but for some keys."""
        tables: Sections = self.parts[0][0] if self.parts else {section: {} for section in ALL_SECTIONS}
        return {
            section: {key: self.column(section, key) for key in table if key not in without}
            for section, table in tables.items()
        }

    def column(self, section: Section, key: str) -> ArrowArray:
        """The rows of a column."""
        taken = zip(self.parts, self._ranges, strict=True)
        arrays = [
            take(sections[section][key], rows) if found is None else part(sections[section][key], *found)
            for (sections, rows, _), found in taken
        ]
        return joined(arrays) if self._order is None else take(joined(arrays), self._order)

    @cached_property
    def _ranges(self) -> list[tuple[int, int] | None]:
        """Of each part the first row and the row after the last, which are not copied; None for rows that are
        not consecutive."""
        return [
            (int(rows[0]), int(rows[-1]) + 1) if len(rows) and bool((np.diff(rows) == 1).all()) else None
            for _, rows, _ in self.parts
        ]

    @cached_property
    def _order(self) -> Ints | None:
        """The places of all rows among those of the parts; None if they are in order."""
        if len(self.parts) == 1:
            return None
        places = np.concatenate([places for _, _, places in self.parts])
        return None if (np.diff(places) > 0).all() else np.argsort(places)

    def numbers(self, section: Section, key: str, width: int) -> npt.NDArray[Any] | None:
        """The numbers of a column, `[n, width]`; None if it has other values."""
        made: npt.NDArray[Any] | None = None
        for sections, rows, places in self.parts:
            array = sections[section][key]
            if isinstance(array, StringsInPlace):
                return None
            if fixed_count(array) != width or not isinstance(flat := flat_of(array), np.ndarray):
                return None
            flat = flat.reshape(-1, width)
            if made is None:
                made = np.empty((self.count, width), flat.dtype)
            if places is None:
                np.take(flat, rows, 0, made, "clip")  # `raise` would copy to another array first
            else:
                made[places] = flat[rows]
        return made


def section_columns(schema: FeatureSet, section: Section) -> tuple[Column, ...]:
    """The columns of a section, in the order of the spec."""
    return tuple(column for place, column in schema._placed_columns if place.section == section)


def blocks_of(
    schema: FeatureSet, sections: Sections, size: int, count: int, *, framed: bool = False
) -> ArrowArray:
    """Encodes the columns of `count * size` rows as `count` blocks of `size` rows, each an Example.

    All blocks are encoded together, each in its frame if `framed`: a call for every block of 256 rows would
    cost more than their values.

    Raises SpecError if two columns share a key, RecordError if a block is too large, with its number.
    """
    arrays = {blocks.ROWS: to_arrow(np.full(count, size))}
    for section in schema._sections:
        columns = section_columns(schema, section)
        for key, array in blocks.columns_of_blocks(section, sections[section], columns, size, count):
            if key in arrays:
                expected = "keys that stay apart in a block"
                raise SpecError(Problem(where=schema.name, expected=expected, got=f"`{key}` twice"))
            arrays[key] = array
    oversize = oversized([arrays], count)
    if oversize is not None:
        number, least, _ = oversize
        hint = f"blocks of at most {max(1, size * LARGEST_RECORD // least):,} rows of this size fit"
        got = f"{least:,} bytes in {size:,} rows"
        raise RecordError(Problem(expected=AT_MOST, got=got, hint=hint), number)
    return encode(arrays, None, count, framed=framed)


def block_of_records(schema: FeatureSet, records: Iterable[Any]) -> bytes:
    """Converts records of one row each to one block. Their stored values are copied unchanged.

    Raises RecordError for a record that is not one of the schema, or contradicts itself.
    """
    array = strings_array(list(records))
    sections = sections_of_records(schema, array)
    (block,) = bytes_in(blocks_of(schema, sections, len(array), 1))
    return block


def sections_of_records(schema: FeatureSet, records: ArrowArray, head: int = 0, tail: int = 0) -> Sections:
    """The columns of records of one row each, which are decoded together.

    Args:
        records: `large_binary`.
        head, tail: bytes before and after each that do not belong to it.

    Raises RecordError, which names the row, for one that violates the schema, since a block concatenates the
    values of all rows, and an extra value would be the next row's; or that has a key of no feature.
    """
    buffer, places = data_of(records)
    sequence = schema.record == "sequence_example"
    decoded = decode(buffer, places[:-1] + head, places[1:] - tail, sequence=sequence)
    check_structure(schema._placed, decoded)
    for section in schema._sections:
        columns = section_columns(schema, section)
        known = {column.key for column in columns}
        blocks.check_known(decoded.keys_in(section), known, f"keys of the schema in {section}")
    sections = stored_sections(schema, decoded)
    check_counts(schema, sections, decoded.rows)
    return sections


def stored_sections(schema: FeatureSet, decoded: RecordBatch) -> Sections:
    """The columns of records that have the structure of the schema; a key of no feature is left out."""
    return stored_columns(schema._placed_columns, decoded)


def stored_columns(placed: Iterable[tuple[Place, Column]], decoded: RecordBatch) -> Sections:
    """These columns of records that have their structure."""
    sections: dict[Section, dict[str, ArrowArray]] = {section: {} for section in ALL_SECTIONS}
    for place, column in placed:
        arrays = decoded.keys_in(place.section).get(place.key, ())
        sections[place.section][place.key] = _stored(column, place, arrays, decoded.rows)
    return sections


def _stored(column: Column, place: Place, arrays: tuple[ArrowArray, ...], rows: int) -> ArrowArray:
    """The array of a key, among those of several kinds."""
    of_storage = [array for array in arrays if storage_of(array) == column.storage]
    if of_storage:
        return of_storage[0]
    empty = empty_column(column.storage, rows)
    if not place.in_steps:
        return empty
    steps = counts_of(arrays[0]) if arrays else np.zeros(rows, np.int64)
    return list_array(empty_column(column.storage, int(steps.sum())), offsets(steps))


def check_counts(schema: FeatureSet, sections: Sections, rows: int) -> None:
    """Raises RecordError for the first row in which features do not have equally many values."""
    bad: list[tuple[int, Problem]] = []
    for equal in schema._equal_counts:
        pair = [sections[place.section][place.key] for place in equal.places]
        owners, numbers = np.arange(rows), [counts_of(array) for array in pair]
        if equal.places[0].in_steps and not equal.steps:
            if (numbers[0] != numbers[1]).any():
                continue  # that is a problem already
            owners, numbers = np.repeat(owners, numbers[0]), [counts_of(items_of(array)) for array in pair]
        if not equal.steps:
            numbers = [numbers[0] // equal.first[2], numbers[1] // equal.second[2]]
        for place in np.flatnonzero(numbers[0] != numbers[1])[:1]:
            bad.append((int(owners[place]), equal.problem(*(int(number[place]) for number in numbers))))
    if bad:
        row = min(row for row, _ in bad)
        raise RecordError([problem for at, problem in bad if at == row], row)


def records_of_block(
    schema: FeatureSet, block: Any, *, framed: bool = False, whole: bool = False
) -> ArrowArray:
    """Converts the rows of a block to records.

    Args:
        framed: whether each record is in its frame.
        whole: whether a key of no feature is an error.

    Raises RecordError for a block whose columns do not have as many values as its rows.
    """
    data = np.frombuffer(block, np.uint8)
    places = np.array([0, len(data)])
    sections, rows = rows_of_blocks(schema, data, places[:-1], places[1:], whole=whole)
    return records_with(schema, sections, int(rows.sum()), framed=framed)


def rows_of_blocks(
    schema: FeatureSet,
    buffer: Bytes,
    starts: Ints,
    stops: Ints,
    *,
    whole: bool = False,
    keys: Collection[str] | None = None,
) -> tuple[Sections, Ints]:
    """The columns of the rows of blocks in a buffer, which are decoded together, and how many rows each has.

    Args:
        whole: whether a key of no feature is an error.
        keys: those of the columns that are decoded; None for all.

    Raises RecordError, with the number of the block, for one whose columns do not have as many values as its
    rows.
    """
    columns = {section: section_columns(schema, section) for section in schema._sections}
    if keys is not None:
        columns = {
            section: tuple(column for column in some if column.key in keys)
            for section, some in columns.items()
        }
    wanted = None if keys is None else blocks.keys_with(columns)
    stored = blocks.StoredBlocks.of(buffer, starts, stops, wanted)
    sections: dict[Section, Table] = {section: {} for section in ALL_SECTIONS}
    for section, some in columns.items():
        sections[section] = blocks.stored(some, section, stored)
    if whole:
        stored.check_keys(columns)
    return sections, stored.rows


def single_strings(schema: FeatureSet) -> list[tuple[Place, Column]]:
    """The columns of one string in each row of an Example."""
    if schema.record != "example":  # several sections may have one key
        return []
    return [
        (place, column)
        for place, column in schema._placed_columns
        if column.storage == "bytes" and blocks.values_in_row(column, place) == 1
    ]


def records_with(schema: FeatureSet, sections: Sections, rows: int, *, framed: bool = False) -> ArrowArray:
    """The records that have these columns. Raises RecordError, with the row, for one that is too large."""
    sequence = sections["sequence"] if schema.record == "sequence_example" else None
    return encode({**sections["features"], **sections["context"]}, sequence, rows, framed=framed)


def sizes_with(schema: FeatureSet, sections: Sections, rows: int) -> Ints:
    """The bytes of each of these records in its frame, int64 `[rows]`. Raises likewise; none is made."""
    sequence = sections["sequence"] if schema.record == "sequence_example" else None
    return record_sizes({**sections["features"], **sections["context"]}, sequence, rows)


def decoded(sections: Sections, rows: int) -> RecordBatch:
    """The columns of records as `decode` returns them."""
    features = {**sections["features"], **sections["context"]}
    return RecordBatch(
        rows=rows,
        features={key: (array,) for key, array in features.items()},
        sequence={key: (array,) for key, array in sections["sequence"].items()},
    )


def parse(schema: FeatureSet, serialized: Tensor) -> dict[str, Tensor]:
    """Parses one block (string `[]`) or several (`[p]`) to concatenated columns, by block key, and to the
    tensors of `column_groups`, by their names.

    The first dimension of each tensor, dense or ragged, is the rows, and `blocks.ROWS` has a zero for every
    row: rows can be gathered and rebatched before `columns_of` converts them to the columns of a batch.
    """
    serialized = tf.reshape(serialized, [-1])
    groups = column_groups(schema)
    grouped = {place for group in groups for place, _ in group.columns}
    columns: dict[Section, tuple[Column, ...]] = {
        section: tuple(
            one for one in section_columns(schema, section) if Place(section, one.key) not in grouped
        )
        for section in schema._sections
    }
    calls = {section: blocks.parse_calls(columns[section], section) for section in schema._sections}
    features = {key: call.make() for by_key in calls.values() for key, call in by_key.items()}
    parsed = tf.io.parse_example(serialized, features | _rows_feature())
    rows = parsed.pop(blocks.ROWS)
    with tf.control_dependencies([_whole(columns, parsed, rows)]):
        values_of = {key: tf.identity(value.values) for key, value in parsed.items()}
    for section, placed in columns.items():
        for column in placed:
            place = Place(section, column.key)
            key = blocks.block_key(place)
            if key in values_of and blocks.values_in_row(column, place) is not None:
                values_of[key] = tf.reshape(values_of[key], [-1, *column.cell])
    for group in groups:
        values_of |= group.of_blocks(serialized, rows)
    return values_of | {blocks.ROWS: tf.zeros(tf.reduce_sum(rows), tf.int64)}


class Handed(NamedTuple):
    """Arrays that become tensors of those of `parse`.

    Attributes:
        names: the names of the tensors, as `ColumnGroup.names`.
        columns: the columns of a group; or the only column.
        dtype: the name of the dtype in TensorFlow.
        shape: the shape of a row; None for any number of values, in a ragged tensor.
        optional: whether defaults are in the place of missing values.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[Place, Column], ...]
    dtype: str
    shape: tuple[int, ...] | None
    optional: bool = False

    def arrays(self, taken: TakenRows) -> list[Any]:
        """The values of rows, `[n, *shape]`, and of optional ones which are missing, if it is asked for; or
        the values of all rows end to end, and their numbers. Raises RecordError."""
        if self.shape is None:
            ((place, column),) = self.columns
            array = taken.column(place.section, column.key)
            return [values_of(array), counts_of(array)]
        if self.optional:
            taken_columns = ((taken.column(place.section, place.key), one) for place, one in self.columns)
            filled = [_filled(array, column) for array, column in taken_columns]
            parts = [[one[number] for one in filled] for number in range(len(self.names))]
        else:
            parts = [[self._dense(taken, place) for place, _ in self.columns]]
        return [self.stacked(many) for many in parts]

    def stacked(self, many: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The values of all columns, `[n, *shape]`, each given end to end."""
        return many[0].reshape(-1, *(self.shape or ())) if len(many) == 1 else np.stack(many, 1)

    def _dense(self, taken: TakenRows, place: Place) -> npt.NDArray[Any]:
        """The values of a column, end to end."""
        width = math.prod(self.shape or ()) // len(self.columns)
        numbers = taken.numbers(place.section, place.key, width)
        return values_of(taken.column(place.section, place.key)) if numbers is None else numbers.reshape(-1)

    def specs(self) -> list[Any]:
        """The types of the arrays as tensors."""
        if self.shape is None:
            return [tf.TensorSpec([None], self.dtype), tf.TensorSpec([None], tf.int64)]
        dtypes = [self.dtype, "bool"][: len(self.names)]
        return [tf.TensorSpec([None, *self.shape], dtype) for dtype in dtypes]


def _filled(array: ArrowArray, column: Column) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The values of a column with defaults for the missing ones, and which are missing."""
    counts, size = counts_of(array), max(1, math.prod(column.cell))
    wrong = np.flatnonzero((counts != 0) & (counts != size))
    if len(wrong):
        expected, got = f"{size} values, or none", str(counts[wrong[0]])
        raise RecordError(Problem(path=(column.key,), expected=expected, got=got), int(wrong[0]))
    return dense(array, column.cell, getattr(column.layout, "default", None))


def handed(schema: FeatureSet, row_bytes: float) -> tuple[Handed, ...] | None:
    """What `parse` makes of blocks, if arrays can become it: without lists of lists, values with indices and
    steps. Otherwise None; also if rows have so many strings for their stored bytes that it takes longer.
    """
    groups = column_groups(schema)
    strings = sum(column.storage == "bytes" for _, column in schema._placed_columns)
    if row_bytes < strings * _BYTES_OF_A_STRING:
        return None
    made = [
        Handed(group.names, group.columns, group.dtype, (len(group.columns),), group.optional)
        for group in groups
    ]
    grouped = {place for group in groups for place, _ in group.columns}
    for place, column in schema._placed_columns:
        layout, size = column.layout, blocks.values_in_row(column, place)
        if place in grouped or size == 0:
            continue
        is_list = isinstance(layout, Fixed | VarLen | Ragged) and not getattr(layout, "row_lengths", ())
        optional = column.has_default and not place.in_steps and not getattr(layout, "ragged", False)
        if size is None and not optional and (not is_list or place.in_steps or column.cell):
            return None
        shape = None if size is None and not optional else column.cell
        names, dtype = (blocks.block_key(place),), TF_DTYPES[column.storage]
        made.append(Handed(names, ((place, column),), dtype, shape, optional))
    return tuple(made)


def arrays_of(handed: Iterable[Handed], taken: TakenRows) -> list[Any]:
    """The number of rows, and their arrays."""
    arrays = [array for one in handed for array in one.arrays(taken)]
    return [np.int64(taken.count), *arrays]


def fixed_keys(handed: Iterable[Handed]) -> FixedKeys | None:
    """The keys of records of one row each, if arrays have all their values; None with optional values or
    lists."""
    keys: dict[str, tuple[Storage, int | None]] = {}
    for one in handed:
        if one.optional or one.shape is None:
            return None
        width = math.prod(one.shape) // len(one.columns)
        keys |= {place.key: (column.storage, width) for place, column in one.columns}
    return FixedKeys(keys)


def arrays_of_records(
    schema: FeatureSet,
    handed: Iterable[Handed],
    fixed: FixedKeys | None,
    records: tuple[Bytes, Ints],
) -> list[Any]:
    """`arrays_of` records of one row each, which are decoded together.

    Args:
        fixed: `fixed_keys(handed)`.
        records: the bytes of the records, one after another, and where each begins and the last one ends.

    Raises RecordError, with the row, for a record that violates the schema.
    """
    (buffer, places), sequence = records, schema.record == "sequence_example"
    starts, stops = places[:-1], places[1:]
    found = None if fixed is None else fixed_values(buffer, starts, stops, fixed, sequence=sequence)
    if found is not None:
        arrays = [one.stacked([found.values[place.key] for place, _ in one.columns]) for one in handed]
        return [np.int64(len(starts)), *arrays]
    decoded = decode(buffer, starts, stops, sequence=sequence, keys=schema._stored_keys)
    check_structure(schema._placed, decoded)
    sections = stored_sections(schema, decoded)
    check_counts(schema, sections, decoded.rows)
    return arrays_of(handed, TakenRows(decoded.rows, [(sections, np.arange(decoded.rows), None)]))


def array_specs(handed: Iterable[Handed]) -> list[Any]:
    """The types of `arrays_of` as tensors."""
    return [tf.TensorSpec([], tf.int64), *(spec for one in handed for spec in one.specs())]


def of_arrays(handed: Iterable[Handed], count: Tensor, *arrays: Tensor) -> dict[str, Tensor]:
    """What `parse` makes of the rows whose arrays these are."""
    values_of, left = {blocks.ROWS: tf.zeros(count, tf.int64)}, iter(arrays)
    for one in handed:
        for name in one.names:
            value = next(left)
            if one.shape is None:
                value = tf.RaggedTensor.from_row_lengths(value, next(left), validate=False)
            values_of[name] = value
    return values_of


def rows_of(serialized: Tensor) -> Tensor:
    """The number of rows of each block, int64 `[p]`. Nothing else is decoded."""
    return tf.io.parse_example(serialized, _rows_feature())[blocks.ROWS]


def _rows_feature() -> dict[str, Any]:
    return {blocks.ROWS: tf.io.FixedLenFeature([], tf.int64)}


def _whole(columns: Mapping[Section, tuple[Column, ...]], parsed: dict[str, Tensor], rows: Tensor) -> Tensor:
    """Asserts that the columns of each block have as many rows as it states: otherwise rows of the next block
    would be read."""
    missing = []
    for section, placed in columns.items():
        for column in placed:
            place = Place(section, column.key)
            value = parsed.get(blocks.block_key(place))
            if value is not None and not isinstance(column.layout, Component):
                size = blocks.values_in_row(column, place)
                missing.append(value.row_lengths() - (rows if size is None else rows * size))
    return tf.debugging.assert_equal(missing, tf.zeros([], tf.int64), AS_MANY) if missing else tf.no_op()


def split(schema: FeatureSet, values_of: Mapping[str, Any]) -> dict[str, Any]:
    """What `parse` returns, or some rows of it, with the columns of each group apart, by block key: dense
    ones, and WithMissing where a feature tells what is missing."""
    apart = dict(values_of)
    for group in column_groups(schema):
        if group.name in apart:
            apart |= {blocks.block_key(place): value for place, value in group.split(apart)}
            for name in group.names:
                del apart[name]
    return apart


def columns_of(schema: FeatureSet, values_of: Mapping[str, Any]) -> dict[Section, dict[str, Any]]:
    """Converts what `parse` or `split` returns, or some rows of it, to the columns of a batch, by section and
    key."""
    values_of = split(schema, values_of)
    by_section: dict[Section, dict[str, Any]] = {section: {} for section in schema._sections}
    for section, columns in by_section.items():
        for column in section_columns(schema, section):
            if not isinstance(column.layout, Component):
                place = Place(section, column.key)
                value = values_of.get(blocks.block_key(place))
                columns[place.key] = value if place.in_steps else _batch(column, value, values_of)
    return by_section


def _batch(column: Column, value: Any, values_of: Mapping[str, Any]) -> Any:
    """Converts a column of blocks to that of a batch: dense, ragged or sparse, by its layout."""
    layout = column.layout
    if isinstance(layout, Fixed) and column.has_default:
        is_done = layout.ragged or not isinstance(value, tf.RaggedTensor)
        return value if is_done else with_default(value, layout.default, layout.shape)[0]
    if isinstance(layout, Fixed) and value is None:  # a column without any values
        shape = tf.stack([tf.shape(values_of[blocks.ROWS])[0], *layout.shape])
        return tf.ensure_shape(tf.zeros(shape, TF_DTYPES[column.storage]), [None, *layout.shape])
    if isinstance(layout, VarLen):
        return value if layout.ragged else value.to_sparse()
    if isinstance(layout, Sequence):
        return value.to_tensor(None if layout.pad is None else tf.constant(layout.pad, value.dtype))
    if isinstance(layout, Sparse):
        places = [value.value_rowids(), *(values_of[key].values for key in layout.index_keys)]
        size = tf.concat([[value.nrows()], tf.constant(layout.size, tf.int64)], 0)
        return tf.SparseTensor(tf.stack(places, 1), value.values, size)
    return value
