"""Bytes against an independent hand: every record equals what tf.train.Example makes of the same values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec._tf import tf
from recordspec.wire.columns import Cells, Column, Fixed
from recordspec.wire.example import Entry, encode
from recordspec.wire.framing import framed
from recordspec.wire.proto import entries, parse_example
from recordspec.wire.strings import Strings, offsets
from recordspec.wire.varints import varint_bytes

pytestmark = pytest.mark.usefixtures("codec")

VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 300),
    "float32": st.floats(width=32, allow_nan=False),
    # long ones are copied, short ones padded: both ways are tried
    "bytes": st.binary(max_size=12) | st.binary(min_size=150, max_size=400),
}
KEYS = st.text(min_size=1, max_size=8)


def feature(storage: str, values: list) -> tf.train.Feature:
    if storage == "int64":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if storage == "float32":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def cells(storage: str, rows: list[list]) -> Cells:
    flat = [value for row in rows for value in row]
    lengths = np.array([len(row) for row in rows], np.int64)
    dtype = {"int64": np.int64, "float32": np.float32}
    held = Strings.of(flat) if storage == "bytes" else np.array(flat, dtype[storage])
    same = len(rows) > 0 and bool((lengths == lengths[0]).all())
    return Cells(flat=held, lengths=int(lengths[0]) if same else lengths, rows=len(rows))


@st.composite
def batches(draw, lists=False):
    """The number of rows, and columns: storage, and for each row a list of values, or None."""
    rows = draw(st.integers(1, 5))
    columns = {}
    for key in draw(st.lists(KEYS, unique=True, max_size=4)):
        storage = draw(st.sampled_from(sorted(VALUES)))
        size = draw(st.none() | st.integers(0, 3))
        limits = {"max_size": 4} if size is None else {"min_size": size, "max_size": size}
        cell = st.lists(VALUES[storage], **limits)
        if lists:
            cell = st.lists(cell, max_size=3)
        elif draw(st.booleans()):
            cell = st.none() | cell
        columns[key] = (storage, [draw(cell) for _ in range(rows)])
    return rows, columns


def entry(key: str, storage: str, values: list) -> Entry:
    present = np.array([value is not None for value in values])
    column = Column(key=key, storage=storage, layout=Fixed())
    held = cells(storage, [value for value in values if value is not None])
    if present.all():
        return Entry(column=column, cells=held)
    return Entry(column=column, cells=held.spread(present), present=present)


def steps_entry(key: str, storage: str, values: list) -> Entry:
    column = Column(key=key, storage=storage, layout=Fixed())
    steps = np.array([len(value) for value in values], np.int64)
    return Entry(
        column=column, cells=cells(storage, [step for value in values for step in value]), steps=steps
    )


def by_hand(columns: dict, row: int) -> tf.train.Features:
    present = {key: (kind, values[row]) for key, (kind, values) in columns.items() if values[row] is not None}
    return tf.train.Features(feature={key: feature(kind, value) for key, (kind, value) in present.items()})


@given(batches())
@settings(max_examples=300)
def test_an_example_is_that_of_a_hand(batch):
    rows, columns = batch
    records = encode([entry(key, *column) for key, column in columns.items()], None, rows)
    for row in range(rows):
        expected = tf.train.Example(features=by_hand(columns, row))
        assert tf.train.Example.FromString(records[row]) == expected
        if len(columns) < 2:  # protobuf promises no order of keys, but of one key there is one order
            assert records[row] == expected.SerializeToString()


@given(batches(), batches(lists=True))
@settings(max_examples=200)
def test_a_sequence_example_is_that_of_a_hand(context, sequence):
    rows = min(context[0], sequence[0])
    features = {key: (kind, values[:rows]) for key, (kind, values) in context[1].items()}
    lists = {key: (kind, values[:rows]) for key, (kind, values) in sequence[1].items()}
    records = encode(
        [entry(key, *column) for key, column in features.items()],
        [steps_entry(key, *column) for key, column in lists.items()],
        rows,
    )
    for row in range(rows):
        made = {
            key: tf.train.FeatureList(feature=[feature(kind, step) for step in values[row]])
            for key, (kind, values) in lists.items()
        }
        expected = tf.train.SequenceExample(
            context=by_hand(features, row), feature_lists=tf.train.FeatureLists(feature_list=made)
        )
        assert tf.train.SequenceExample.FromString(records[row]) == expected


def test_keys_are_sorted_and_records_framed():
    entries = [entry(key, "int64", [[1], [300]]) for key in ("b", "a", "é", "ab")]
    records, frames = encode(entries, None, 2), encode(entries, None, 2, framed=True)
    assert list(frames) == [framed(record) for record in records]
    assert list(parse_example(records[1])) == ["a", "ab", "b", "é"]


@given(st.sampled_from([7, 14, 28, 56, 63, 64]), st.integers(0, 300), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_numbers_of_all_widths_are_those_of_a_hand(bits, most, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, most, 20, endpoint=True)
    values = rng.integers(0, 2**bits - 1, lengths.sum(), np.uint64, endpoint=True)
    values >>= rng.integers(0, bits, len(values), np.uint64)
    rows = [part.tolist() for part in np.split(values.view(np.int64), np.cumsum(lengths)[:-1])]
    given = entry("k", "int64", rows)
    expected = [tf.train.Example(features=by_hand({"k": ("int64", rows)}, row)) for row in range(len(rows))]
    assert list(encode([given], None, len(rows))) == [record.SerializeToString() for record in expected]


@pytest.mark.parametrize(("value", "expected"), [(0, b"\x00"), (127, b"\x7f"), (300, b"\xac\x02")])
def test_a_varint_is_that_of_the_protobuf_manual(value, expected):
    assert varint_bytes(value) == expected


def test_our_parser_reads_what_tensorflow_writes():
    empty = tf.train.Feature()
    features = tf.train.Features(
        feature={
            "i": feature("int64", [1, -1]),
            "f": feature("float32", [0.5]),
            "b": feature("bytes", []),
            "n": empty,
        }
    )
    assert parse_example(tf.train.Example(features=features).SerializeToString()) == {
        "i": [1, -1],
        "f": [0.5],
        "b": [],
        "n": None,
    }
    lists = tf.train.FeatureLists(
        feature_list={"s": tf.train.FeatureList(feature=[feature("int64", [7]), empty])}
    )
    record = tf.train.SequenceExample(context=features, feature_lists=lists).SerializeToString()
    assert entries(record, sequence=True).lists == [("s", [("int64", [7]), ("none", [])])]


@given(st.lists(st.binary(max_size=9)), st.data())
def test_strings_hold_what_they_were_made_of(values, data):
    strings = Strings.of(values)
    assert list(strings) == values
    assert len(strings) == len(values)
    indices = data.draw(st.lists(st.sampled_from(range(len(values))))) if values else []
    taken = strings.take(np.array(indices, np.int64))
    assert list(taken) == [values[index] for index in indices]
    assert offsets(strings.sizes).tolist() == strings.offsets.tolist()
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(values))] * 2)))
    assert list(strings.part(start, stop)) == values[start:stop]
    assert list(Strings.joined([strings, taken])) == [*values, *taken]


@given(st.integers(1, 9), st.integers(0, 9), st.data())
def test_strings_of_one_size_hold_what_they_were_made_of(width, count, data):
    matrix = np.arange(count * width, dtype=np.uint8).reshape(count, width)
    strings = Strings.rows(matrix)
    values = [row.tobytes() for row in matrix]
    assert list(strings) == values
    indices = data.draw(st.lists(st.integers(0, count - 1))) if count else []
    assert list(strings.take(np.array(indices, np.int64))) == [values[index] for index in indices]
    assert strings.part(count // 2, count).each == width


def test_long_strings_are_not_put_together_before_their_records():
    strings = Strings.of([bytes(10_000), bytes(9_000)])
    column = Column(key="k", storage="bytes", layout=Fixed())
    records = encode([Entry(column=column, cells=Cells(flat=strings, lengths=1, rows=2))], None, 2)
    assert strings.is_lazy
    assert parse_example(records[1]) == {"k": [bytes(9_000)]}
