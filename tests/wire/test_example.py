"""Every record equals what tf.train.Example makes of its values, by `wire.native` and without; `wire.varints`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec._tf import tf
from recordspec.wire.arrays import bytes_in, list_array, offsets, spread, to_arrow, unjoined, values_array
from recordspec.wire.example import encode
from recordspec.wire.framing import framed
from recordspec.wire.proto import entries, parse_example
from recordspec.wire.varints import varint_bytes
from selection import scaled

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


def lists(storage: str, rows: list[list]):
    """The array of lists, in the narrowest form that has them."""
    flat = [value for row in rows for value in row]
    lengths = np.array([len(row) for row in rows], np.int64)
    values = flat if storage == "bytes" else np.array(flat, storage)
    same = len(rows) > 0 and bool((lengths == lengths[0]).all())
    return to_arrow(values, int(lengths[0]) if same else lengths, len(rows))


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


def column(storage: str, values: list):
    present = np.array([value is not None for value in values])
    kept = lists(storage, [value for value in values if value is not None])
    return kept if present.all() else spread(kept, present)


def steps_column(storage: str, values: list):
    steps = offsets(np.array([len(value) for value in values], np.int64))
    return list_array(values_array(lists(storage, [step for value in values for step in value])), steps)


def by_hand(columns: dict, row: int) -> tf.train.Features:
    present = {key: (kind, values[row]) for key, (kind, values) in columns.items() if values[row] is not None}
    return tf.train.Features(feature={key: feature(kind, value) for key, (kind, value) in present.items()})


@given(batches())
@settings(max_examples=scaled(300))
def test_an_example_is_that_of_a_hand(batch):
    rows, columns = batch
    records = bytes_in(encode({key: column(*given) for key, given in columns.items()}, None, rows))
    for row in range(rows):
        expected = tf.train.Example(features=by_hand(columns, row))
        assert tf.train.Example.FromString(records[row]) == expected
        if len(columns) < 2:  # protobuf promises no order of keys, but of one key there is one order
            assert records[row] == expected.SerializeToString()


@given(batches(), batches(lists=True))
@settings(max_examples=scaled(200))
def test_a_sequence_example_is_that_of_a_hand(context, sequence):
    rows = min(context[0], sequence[0])
    features = {key: (kind, values[:rows]) for key, (kind, values) in context[1].items()}
    lists = {key: (kind, values[:rows]) for key, (kind, values) in sequence[1].items()}
    encoded = encode(
        {key: column(*given) for key, given in features.items()},
        {key: steps_column(*given) for key, given in lists.items()},
        rows,
    )
    records = bytes_in(encoded)
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
    columns = {key: column("int64", [[1], [300]]) for key in ("b", "a", "é", "ab")}
    records, frames = (bytes_in(encode(columns, None, 2, framed=framed)) for framed in (False, True))
    assert frames == [framed(record) for record in records]
    assert list(parse_example(records[1])) == ["a", "ab", "b", "é"]


@given(st.sampled_from([7, 14, 28, 56, 63, 64]), st.integers(0, 300), st.integers(0, 2**32 - 1))
@settings(max_examples=scaled(60))
def test_numbers_of_all_widths_are_those_of_a_hand(bits, most, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, most, 20, endpoint=True)
    values = rng.integers(0, 2**bits - 1, lengths.sum(), np.uint64, endpoint=True)
    values >>= rng.integers(0, bits, len(values), np.uint64)
    rows = [part.tolist() for part in np.split(values.view(np.int64), np.cumsum(lengths)[:-1])]
    given = {"k": column("int64", rows)}
    expected = [tf.train.Example(features=by_hand({"k": ("int64", rows)}, row)) for row in range(len(rows))]
    assert bytes_in(encode(given, None, len(rows))) == [record.SerializeToString() for record in expected]


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


def test_long_strings_are_not_put_together_before_their_records():
    strings = unjoined([bytes(10_000), bytes(9_000)])
    assert isinstance(strings, list)
    records = bytes_in(encode({"k": strings}, None, 2))
    assert [parse_example(record)["k"] for record in records] == [[one] for one in strings]
