"""Makes blocks from columns or from records, and parses them in a graph to the columns of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.spec.feature_set import ALL_SECTIONS, FeatureSet, columns_in
from recordspec.spec.tensors import Tensor, with_default
from recordspec.spec.validate import aligned_steps, check_structure, step_counts
from recordspec.wire import blocks
from recordspec.wire.columns import (
    TF_DTYPES,
    Cells,
    Column,
    Fixed,
    KeySteps,
    KeyValues,
    Part,
    Section,
    Sequence,
    Sparse,
    VarLen,
    merged,
)
from recordspec.wire.example import Entry, encode, oversized
from recordspec.wire.framing import AT_MOST, LARGEST_RECORD
from recordspec.wire.record_batch import RecordBatch, decode
from recordspec.wire.strings import Bytes, Ints, Strings

Sections = dict[Section, list[Entry]]


def placed_columns(schema: FeatureSet, section: Section) -> tuple[Column, ...]:
    """The columns of a section, as `columns_in` returns them."""
    return tuple(column for feature in getattr(schema, section) for column in columns_in(section, feature))


def blocks_of(
    schema: FeatureSet, sections: Sections, size: int, count: int, *, framed: bool = False
) -> Strings:
    """Encodes the entries of `count * size` rows as `count` blocks of `size` rows, each an Example.

    All blocks are encoded together, each in its frame if `framed`: a call for every block of 256 rows would
    cost more than their values.

    Raises SpecError if two columns share a key, RecordError if a block is too large, with its number.
    """
    given = [blocks.rows_entry(size, count)]
    for section in schema.sections:
        columns = {column.key: column for column in placed_columns(schema, section)}
        placed = [replace(entry, column=columns[entry.column.key]) for entry in sections[section]]
        given += blocks.entries(section, placed, size, count)
    seen: set[str] = set()
    for key in (entry.column.key for entry in given):
        if key in seen:
            expected = "keys that stay apart in a block"
            raise SpecError(Problem(where=schema.name, expected=expected, got=f"`{key}` twice"))
        seen.add(key)
    found = oversized(given, count)
    if found is not None:
        number, least, _ = found
        hint = f"blocks of at most {max(1, size * LARGEST_RECORD // least):,} rows of this size fit"
        got = f"{least:,} bytes in {size:,} rows"
        raise RecordError(Problem(expected=AT_MOST, got=got, hint=hint), number)
    return encode(given, None, count, framed=framed)


def block_of_records(schema: FeatureSet, records: Iterable[Any]) -> bytes:
    """Converts records of one row each to one block. Their stored values are copied unchanged.

    Raises RecordError for a record that is not one of the schema, or contradicts itself.
    """
    given = Strings.of(list(records))
    sections = sections_of_records(schema, given.buffer, given.offsets[:-1], given.offsets[1:])
    return blocks_of(schema, sections, len(given), 1)[0]


def sections_of_records(schema: FeatureSet, buffer: Bytes, starts: Ints, stops: Ints) -> Sections:
    """The entries of records of one row each in a buffer, which are decoded together.

    Raises RecordError, which names the row, for one that violates the schema, since a block concatenates the
    values of all rows, and an extra value would be the next row's; or that has a key of no feature.
    """
    decoded = decode(buffer, starts, stops, sequence=schema.record == "sequence_example")
    check_structure(schema.placed, decoded)
    sections: Sections = {section: [] for section in ALL_SECTIONS}
    for section in schema.sections:
        columns = placed_columns(schema, section)
        found: Mapping[str, Any] = decoded.sequence if section == "sequence" else decoded.features
        known = {column.key for column in columns}
        unknown = {key: min(int(held.rows[0]) for held in found[key]) for key in found.keys() - known}
        if unknown:
            row = min(unknown.values())
            key = min(key for key, first in unknown.items() if first == row)
            raise RecordError(blocks.unknown_key(key, known, f"keys of the schema in {section}"), row)
        entry = _step_entry if section == "sequence" else _row_entry
        sections[section] = [entry(one, found.get(one.key, ()), decoded.rows) for one in columns]
    check_counts(schema, sections, decoded.rows)
    return sections


def check_counts(schema: FeatureSet, sections: Sections, rows: int) -> None:
    """Raises RecordError for the first row in which features do not have equally many values."""
    bad: list[tuple[int, Problem]] = []
    for equal in schema.equal_counts:
        entries = {entry.column.key: entry for entry in sections[equal.section]}
        (first, one), (second, other) = ((entries[key], size) for _, key, size in (equal.first, equal.second))
        owners, numbers = np.arange(rows), [first.cells.counts // one, second.cells.counts // other]
        if first.steps is not None and second.steps is not None:
            if equal.steps:
                numbers = [first.steps, second.steps]
            elif (first.steps != second.steps).any():
                continue  # that is a problem already
            else:
                owners = np.repeat(owners, first.steps)
        for place in np.flatnonzero(numbers[0] != numbers[1])[:1]:
            bad.append((int(owners[place]), equal.problem(*(int(number[place]) for number in numbers))))
    if bad:
        row = min(row for row, _ in bad)
        raise RecordError([problem for at, problem in bad if at == row], row)


def _row_entry(column: Column, found: tuple[KeyValues, ...], rows: int) -> Entry:
    """The entry of a key, from its values in lists of the column's type."""
    lists = tuple(held for held in found if held.kind != "none")
    if not lists:
        flat = Strings.of([]) if column.storage == "bytes" else np.zeros(0, column.storage)
        return Entry(column=column, cells=Cells(flat=flat, lengths=0, rows=rows))
    held = merged(lists)
    cells = held.cells
    if len(held.rows) < rows:
        present = np.zeros(rows, np.bool_)
        present[held.rows] = True
        cells = cells.spread(present)
    return Entry(column=column, cells=cells)


def _step_entry(column: Column, found: tuple[KeySteps, ...], rows: int) -> Entry:
    """The entry of a key of the sequence part."""
    counts = step_counts(found, rows)
    held = found[0].values if len(found) == 1 else aligned_steps(found, counts, np.ones(rows, np.bool_))
    return replace(_row_entry(column, held, int(counts.sum())), steps=counts)


def records_of_block(schema: FeatureSet, block: Any, *, framed: bool = False, whole: bool = False) -> Strings:
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
    schema: FeatureSet, buffer: Bytes, starts: Ints, stops: Ints, *, whole: bool = False
) -> tuple[Sections, Ints]:
    """The entries of the rows of blocks in a buffer, which are decoded together, and how many rows each has.

    Args:
        whole: whether a key of no feature is an error.

    Raises RecordError, with the number of the block, for one whose columns do not have as many values as its
    rows.
    """
    found = blocks.StoredBlocks.of(buffer, starts, stops)
    columns = {section: placed_columns(schema, section) for section in schema.sections}
    sections: Sections = {section: [] for section in ALL_SECTIONS}
    for section, some in columns.items():
        sections[section] = blocks.stored(some, section, found)
    if whole:
        found.check_keys(columns)
    return sections, found.rows


def records_with(schema: FeatureSet, sections: Sections, rows: int, *, framed: bool = False) -> Strings:
    """The records that have these entries. Raises RecordError, with the row, for one that is too large."""
    sequence = sections["sequence"] if schema.record == "sequence_example" else None
    return encode(sections["features"] + sections["context"], sequence, rows, framed=framed)


def decoded(sections: Sections, rows: int) -> RecordBatch:
    """The entries of records as `decode` returns them."""
    features: dict[str, tuple[KeyValues, ...]] = {}
    lists: dict[str, tuple[KeySteps, ...]] = {}
    for entry in (*sections["features"], *sections["context"]):
        here = np.arange(rows) if entry.present is None else np.flatnonzero(entry.present)
        lengths = entry.cells.counts[here]
        cells = Cells(flat=entry.cells.flat, lengths=lengths, rows=len(here))
        features[entry.column.key] = (KeyValues(entry.column.storage, here, cells),)
    for entry in sections["sequence"]:
        assert entry.steps is not None
        values = KeyValues(entry.column.storage, np.arange(entry.cells.rows), entry.cells)
        lists[entry.column.key] = (KeySteps(np.arange(rows), entry.steps, (values,)),)
    return RecordBatch(rows=rows, features=features, sequence=lists)


def parse(schema: FeatureSet, serialized: Tensor) -> dict[str, Tensor]:
    """Parses one block (string `[]`) or several (`[p]`) to concatenated columns, by block key.

    The first dimension of each column, dense or ragged, is the rows, and `blocks.ROWS` has a zero for every
    row: rows can be gathered and rebatched before `columns_of` converts them to the columns of a batch.
    """
    columns = {section: placed_columns(schema, section) for section in schema.sections}
    calls = {section: blocks.parse_calls(columns[section], section) for section in schema.sections}
    features = {key: call.make() for by_key in calls.values() for key, call in by_key.items()}
    parsed = tf.io.parse_example(tf.reshape(serialized, [-1]), features | _rows_feature())
    rows = parsed.pop(blocks.ROWS)
    with tf.control_dependencies([_whole(columns, parsed, rows)]):
        held = {key: tf.identity(value.values) for key, value in parsed.items()}
    for section, placed in columns.items():
        for column in placed:
            key = blocks.block_key(column.key, section)
            if key in held and blocks.values_in_row(column, section) is not None:
                held[key] = tf.reshape(held[key], [-1, *column.cell])
    return held | {blocks.ROWS: tf.zeros(tf.reduce_sum(rows), tf.int64)}


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
            value = parsed.get(blocks.block_key(column.key, section))
            if value is not None and not isinstance(column.layout, Part):
                size = blocks.values_in_row(column, section)
                missing.append(value.row_lengths() - (rows if size is None else rows * size))
    message = "expected as many values as the rows of a block have"
    return tf.debugging.assert_equal(missing, tf.zeros([], tf.int64), message) if missing else tf.no_op()


def columns_of(schema: FeatureSet, held: Mapping[str, Tensor]) -> dict[Section, dict[str, Tensor]]:
    """Converts what `parse` returns, or some rows of it, to the columns of a batch, by section and key."""
    found: dict[Section, dict[str, Tensor]] = {section: {} for section in schema.sections}
    for section, columns in found.items():
        for column in placed_columns(schema, section):
            if not isinstance(column.layout, Part):
                value = held.get(blocks.block_key(column.key, section))
                columns[column.key] = value if section == "sequence" else _batch(column, value, held)
    return found


def _batch(column: Column, value: Tensor, held: Mapping[str, Tensor]) -> Tensor:
    """Converts a column of blocks to that of a batch: dense, ragged or sparse, by its layout."""
    layout = column.layout
    if isinstance(layout, Fixed) and column.has_default:
        return value if layout.ragged else with_default(value, layout.default, layout.shape)[0]
    if isinstance(layout, Fixed) and value is None:  # a column without any values
        shape = tf.stack([tf.shape(held[blocks.ROWS])[0], *layout.shape])
        return tf.ensure_shape(tf.zeros(shape, TF_DTYPES[column.storage]), [None, *layout.shape])
    if isinstance(layout, VarLen):
        return value if layout.ragged else value.to_sparse()
    if isinstance(layout, Sequence):
        return value.to_tensor(None if layout.pad is None else tf.constant(layout.pad, value.dtype))
    if isinstance(layout, Sparse):
        places = [value.value_rowids(), *(held[key].values for key in layout.index_keys)]
        size = tf.concat([[value.nrows()], tf.constant(layout.size, tf.int64)], 0)
        return tf.SparseTensor(tf.stack(places, 1), value.values, size)
    return value
