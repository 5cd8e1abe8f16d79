"""Many records at once, as protobuf reads each of them: also those that no writer makes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fields_by_hand import any_record
from recordspec.errors import RecordError
from recordspec.wire import native, proto
from recordspec.wire.arrays import bytes_in, counts_of, data_of, flat_of, is_list, storage_of
from recordspec.wire.proto import Listed
from recordspec.wire.record_batch import RecordBatch, decode, strings_in_place
from selection import scaled

pytestmark = pytest.mark.usefixtures("codec")

INTS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 300)
LISTS = st.one_of(
    st.just(("none", [])),
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=9), max_size=4)),
    st.tuples(st.just("float32"), st.lists(st.floats(width=32), max_size=4)),
    st.tuples(st.just("int64"), st.lists(INTS, max_size=5)),
)
KEYS = st.sampled_from(["a", "b", "label", "x" * 200, ""])
ENTRIES = st.lists(st.tuples(KEYS, LISTS), max_size=4)
STEPS = st.lists(st.tuples(KEYS, st.lists(LISTS, max_size=4)), max_size=3)


def message(context, steps) -> bytes:
    """A SequenceExample; its keys in any order, and more than once."""
    made = proto._classes()["SequenceExample"]()
    for key, value in context:
        fill(made.context.feature.add(key=key).value, value)
    for key, features in steps:
        entry = made.feature_lists.feature_list.add(key=key)
        entry.value.SetInParent()
        for value in features:
            fill(entry.value.feature.add(), value)
    return made.SerializeToString()


def fill(feature, value) -> None:
    kind, values = value
    feature.SetInParent()
    if kind != "none":
        name = {"bytes": "bytes_list", "float32": "float_list", "int64": "int64_list"}[kind]
        getattr(feature, name).SetInParent()
        getattr(feature, name).value.extend(values)


def decoded(records: list[bytes], *, sequence: bool = True, keys: Any = None) -> RecordBatch:
    data, places = data_of(records)
    return decode(data, places[:-1], places[1:], sequence=sequence, keys=keys)


def listed(found: tuple[Any, ...]) -> dict[int, Listed]:
    """The lists by row, as protobuf gives them; no row has two."""
    by_row = {}
    for array in found:
        for row, values in enumerate(array.to_pylist()):
            if values is not None:
                assert row not in by_row
                by_row[row] = Listed(storage_of(array), values if is_list(array) else [values])
    return by_row


def rows_of(found: RecordBatch) -> list[tuple[dict, dict]]:
    rows = [({}, {}) for _ in range(found.rows)]
    for key, arrays in found.features.items():
        assert {len(array) for array in arrays} == {found.rows}
        for row, value in listed(arrays).items():
            rows[row][0][key] = value
    for key, arrays in found.sequence.items():
        (present,) = {tuple(array.is_valid().to_pylist()) for array in arrays}
        (counts,) = {tuple(counts_of(array).tolist()) for array in arrays}
        assert len(counts) == found.rows
        values, steps = listed(tuple(array.flatten() for array in arrays)), iter(range(sum(counts)))
        assert sorted(values) == list(range(sum(counts)))
        for row, count in enumerate(counts):
            if present[row]:
                rows[row][1][key] = [values[next(steps)] for _ in range(count)]
    return rows


def check(records: list[bytes], *, sequence: bool = True) -> RecordBatch:
    """What is found is what protobuf finds, record by record."""
    found = decoded(records, sequence=sequence)
    repeated = []
    for number, (record, row) in enumerate(zip(records, rows_of(found), strict=True)):
        expected, problem = parsed(record, sequence)
        assert found.broken.get(number) == problem
        for entries, mine in zip(expected, row, strict=True):
            assert repr(mine) == repr(same_order(dict(entries), mine))
            keys = [key for key, _ in entries]
            repeated += [(number, key) for place, key in enumerate(keys) if key in keys[:place]]
    assert sorted(found.repeated) == sorted(repeated)
    some = decoded(records, sequence=sequence, keys=("a", "", "none has it"))
    assert repr(rows_of(some)) == repr(
        [tuple({key: one[key] for key in one if key in ("a", "")} for one in row) for row in rows_of(found)]
    )
    for name in ("broken", "conflicts", "unknown_fields", "repeated"):
        assert getattr(some, name) == getattr(found, name)
    return found


def parsed(record: bytes, sequence: bool):
    try:
        found = proto.entries(record, sequence=sequence)
        return (found.features, found.lists), None
    except RecordError as error:
        return ([], []), error.problems[0]


def same_order(expected: dict, like: dict) -> dict:
    """repr tells NaN from numbers, and the order of keys is not asked for."""
    assert expected.keys() == like.keys()
    return {key: as_floats(expected[key]) for key in like}


def as_floats(value):
    if isinstance(value, Listed):
        return Listed(value.kind, [plain(one, value.kind) for one in value.values])
    return [as_floats(step) for step in value]


def plain(one, kind):
    return float(np.float32(one)) if kind == "float32" else one


@pytest.mark.slow
@given(st.lists(st.tuples(ENTRIES, STEPS), max_size=8))
@settings(max_examples=scaled(300))
def test_what_protobuf_writes_is_read(rows):
    check([message(*row) for row in rows])


@pytest.mark.slow
@given(ENTRIES, STEPS, st.lists(st.tuples(st.integers(0, 1 << 16), st.binary(max_size=3)), min_size=1))
@settings(max_examples=scaled(500))
def test_bytes_that_were_changed_are_what_protobuf_says(context, steps, changes):
    good = message(context, steps)
    records = [good]
    for place, change in changes:
        place %= len(good) + 1
        records += [good[:place] + change + good[place + len(change) :], good[:place] + change + good[place:]]
    check(records)
    check(records, sequence=False)


@pytest.mark.slow
@given(st.lists(st.binary(max_size=30), max_size=5))
@settings(max_examples=scaled(500))
def test_any_bytes_are_what_protobuf_says(records):
    check(records)
    check(records, sequence=False)


def test_long_lists_among_short_ones():
    long = [("a", ("bytes", [b"x"] * 1000)), ("b", ("int64", list(range(5000))))]
    short = [("a", ("bytes", [b"yy"])), ("b", ("int64", [300]))]
    check([message(row, []) for row in (short, long, short)])
    check([message(short, [("a", [("int64", [1])] * 1000)]), message(short, [])])


def test_keys_in_other_orders_and_of_other_names():
    some = [("a", ("int64", [1])), ("b", ("float32", [0.5])), ("label", ("bytes", [b"z"]))]
    check([message(row, []) for row in (some, some[::-1], some[1:], [])])
    check([message([(f"key{number}", ("int64", [number]))], []) for number in range(100)])


@pytest.mark.parametrize(
    "record",
    [
        b"\x0a\x02\x0d\x00",  # a field of 4 bytes where an entry belongs
        b"\x0a\xff\xff\xff\xff\x0f",  # a length past the end
        b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",  # a varint of 11 bytes
        b"\x0a\x00\x0a\x00",  # features twice, which protobuf merges
        b"\x12\x00\x0a\x00",  # fields in the other order
        b"\x1a\x00",  # a field that no Example has
        b"\x0b" * 10_000,  # groups within groups
    ],
)
def test_odd_records_do_not_touch_their_neighbours(record):
    good = message([("a", ("int64", [1, 2, 3]))], [("b", [("float32", [0.5])])])
    found = check([good, record, good])
    assert [row for row in (0, 2) if row in found.broken] == []


def test_numbers_that_are_not_packed():
    unpacked = b"\x0a\x0d\x0a\x0b\x0a\x01a\x12\x06\x1a\x04\x08\x01\x08\x02"
    found = check([unpacked])
    assert listed(found.features["a"]) == {0: Listed("int64", [1, 2])}


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([("int64", [1]), ("int64", [2])], "int64"),
        ([("float32", [1]), ("float32", [2])], "float"),
        ([("bytes", [b"x"]), ("bytes", [b""])], "large_binary"),
        ([("int64", [1, 2]), ("int64", [3, 4])], "fixed_size_list<item: int64>[2]"),
        ([("int64", [1, 2]), ("int64", [3])], "large_list<item: int64>"),
        ([("int64", []), ("int64", [])], "large_list<item: int64>"),
        ([("none", []), ("none", [])], "large_list<item: null>"),
    ],
    ids=str,
)
def test_the_type_of_an_array_says_how_many_values_each_record_has(lists, expected):
    found = check([message([("a", one)], [("s", [one])]) for one in lists])
    (array,), (steps,) = found.features["a"], found.sequence["s"]
    assert str(array.type) == expected
    assert str(steps.type) == f"large_list<item: {expected}>"


def test_a_key_that_some_records_have_is_null_in_the_others():
    lists = [("int64", [1]), None, ("bytes", [b"x"]), ("int64", [])]
    found = check([message([] if one is None else [("a", one)], []) for one in lists], sequence=False)
    by_kind = {storage_of(array): array.to_pylist() for array in found.features["a"]}
    assert by_kind == {"int64": [[1], None, None, []], "bytes": [None, None, [b"x"], None]}


def test_steps_of_several_kinds_are_null_in_the_arrays_of_others():
    odd = message([], [("s", [("int64", [3])]), ("s", [("float32", [0.5]), ("int64", [4])])])
    steps = [[("int64", [1]), ("bytes", [])], [], None]
    records = [message([], [] if many is None else [("s", many)]) for many in steps]
    found = check([*records, odd])
    by_kind = {storage_of(array): array.to_pylist() for array in found.sequence["s"]}
    assert by_kind == {
        "bytes": [[None, []], [], None, [None, None]],
        "float32": [[None, None], [], None, [[0.5], None]],
        "int64": [[[1], None], [], None, [None, [4]]],
    }


def test_what_one_writer_makes_needs_no_protobuf(monkeypatch):
    if native.library() is None:
        pytest.skip("protobuf is the reference codec")
    rows = [
        message(
            [("a", ("int64", [row, -row] * (row % 3))), ("b", ("bytes", [b"x" * row])), ("c", ("none", []))],
            [("s", [("float32", [0.5] * row)] * (row % 2))],
        )
        for row in range(500)
    ]
    expected = repr(rows_of(check(rows)))
    monkeypatch.delattr(proto, "entries")
    assert repr(rows_of(decoded(rows))) == expected


def test_a_key_that_comes_twice_is_seen_where_an_earlier_record_had_it():
    one, two = Listed("int64", [1]), Listed("int64", [2])
    made = [[("b", one), ("a", one)], [("a", one), ("a", two)]]
    found = check([proto.serialize(features, None) for features in made], sequence=False)
    assert found.repeated == [(1, "a")]


def test_strings_in_place_are_those_that_are_decoded():
    found = 0
    for seed in range(1000):
        data = np.frombuffer(any_record(Random(seed), sequence=False), np.uint8)
        starts, stops = np.zeros(1, np.int64), np.array([len(data)])
        batch = decode(data, starts, stops)
        if any(batch.problems):
            continue
        for key, arrays in batch.features.items():
            lists = [array for array in arrays if storage_of(array) == "bytes"]
            count = counts_of(lists[0]) if lists else np.zeros(1, np.int64)
            strings = strings_in_place(data, starts, stops, key, count)
            assert strings_in_place(data, starts, stops, key, count + 1) is None
            if strings is not None and count[0]:
                assert bytes_in(strings.take(slice(None))) == bytes_in(flat_of(lists[0]))
                found += 1
    assert (found > 50) == (native.library() is not None)
