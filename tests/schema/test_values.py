"""Values that do not fit, each with its whole message; and those that do. Lists of them: `schema.lists`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest

import recordspec as rs
from recordspec import RecordError, Schema


def schema(options: str) -> Schema:
    return Schema.loads(f"schema: s\nfeatures:\n  f: {options}\n")


def message(options: str, value: object) -> str:
    with pytest.raises(RecordError) as caught:
        schema(options).encode({"f": value})
    return str(caught.value)


INT = "int64"
FLOAT = "float32"
STRING = "string"
U8 = "{kind: tensor, dtype: uint8}"


@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        (U8, 300, "expected uint8 (0 to 255), got 300"),
        (U8, -1, "expected uint8 (0 to 255), got -1"),
        ("{kind: tensor, dtype: uint16}", -1, "expected uint16 (0 to 65535), got -1"),
        ("{kind: tensor, dtype: int8, shape: [2]}", [1, 128], "expected int8 (-128 to 127), got 128"),
        (
            INT,
            2**63,
            "expected int64 (-9223372036854775808 to 9223372036854775807), got 9223372036854775808",
        ),
        (INT, 10**30, f"expected int64 (-9223372036854775808 to 9223372036854775807), got {10**30}"),
        (INT, "a", "expected int64, got str 'a'"),
        (INT, 1.5, "expected int64, got float 1.5 (`float32` holds fractions)"),
        (INT, 1.0, "expected int64, got float 1.0 (write 1)"),
        (INT, np.float32(2), "expected int64, got float 2.0 (write 2)"),
        (INT, [1], "expected int64, got shape [1]"),
        (INT, np.array([1, 2]), "expected int64, got shape [2]"),
        (INT, Decimal("1.5"), "expected int64, got Decimal Decimal('1.5')"),
        (INT, {"a": 1}, "expected int64, got dict {'a': 1}"),
        (FLOAT, 1e40, "expected float32, which holds it without overflow, got 1e+40"),
        (FLOAT, 2**24 + 1, "expected float32, which holds whole numbers exactly, got 16777217"),
        (FLOAT, "1.5", "expected float32, got str '1.5'"),
        (FLOAT, 1j, "expected float32, got complex 1j"),
        (STRING, 7, "expected string, got int 7"),
        (STRING, ["a"], "expected string, got list ['a']"),
        (STRING, "a\ud800", "expected string that UTF-8 can encode, got the lone surrogate '\\ud800' at character 1"),
        ("{dtype: int64, shape: [3]}", [1, 2], "expected int64 of shape [3], got shape [2]"),
        ("{dtype: int64, shape: [2, 2]}", [[1, 2], [3]], "expected int64 of shape [2, 2], got shape [2]"),
        ("{dtype: float32, shape: [2]}", "ab", "expected float32 of shape [2], got str 'ab'"),
        ("{dtype: string, shape: [2]}", ["a"], "expected string of shape [2], got shape [1]"),
        ("{dtype: string, shape: [2]}", ["a", 1], "expected string, got int 1"),
        ("{kind: var_len, dtype: string}", "abc", "expected a list of string, got str 'abc'"),
        ("{kind: var_len, dtype: int64}", [1, 2.5], "expected int64, got float 2.5 at item 1 (`float32` holds fractions)"),
        ("{kind: var_len, dtype: int64}", 3, "expected a list of int64, got int 3"),
        ("{kind: var_len, dtype: int64, max_length: 2}", [1, 2, 3], "expected at most 2 items (max_length), got 3"),
        ("{kind: fixed_len_sequence, dtype: float32, shape: [2]}", [[1, 2], [3]], "expected float32 of shape [2], got shape [1] at item 1"),
        ("{kind: ragged, dtype: int64, shape: [null, null]}", [[1], 2], "expected a list of int64, got int 2 at item 1"),
        ("{kind: ragged, dtype: int64, shape: [null, null]}", [[1], ["a"]], "expected int64, got str 'a' at item 0 at item 1"),
        ("{kind: sparse, dtype: float32, size: 5}", ([7], [1.0]), "expected indices within [5], got [7]"),
        ("{kind: sparse, dtype: float32, size: 5}", ([1, 1], [1.0, 2.0]), "expected every index once, got one of them twice"),
        ("{kind: sparse, dtype: float32, size: 5}", ([1], [1.0, 2.0]), "expected as many indices as values, got 1 indices and 2 values"),
        ("{kind: sparse, dtype: float32, size: [3, 3]}", ([[0, 1], [2]], [1.0, 2.0]), "expected int64 of shape [2], got shape [1]"),
        ("{kind: sparse, dtype: float32, size: 5}", (3, [1.0]), "expected a list of indices and a list of values, got int 3"),
        ("{kind: label, names: [cat, dog]}", np.timedelta64(1, "s"), "expected one of `cat`, `dog`, or an index, got timedelta64 datetime.timedelta(seconds=1)"),
        (
            "{dtype: int64, date: seconds}",
            datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))),
            "expected a date, a time, or their text as 2026-01-31 or 2026-01-31T12:00:00Z, got datetime "
            "datetime.datetime(9999, 12, 31, 23, 0, tzinfo=datetime.ti...",
        ),
        ("{kind: sparse, dtype: float32, size: 5}", 3, "expected a pair (indices, values), or a mapping of these, got int 3"),
        ("{kind: label, names: [cat, dog]}", "dgo", "expected one of `cat`, `dog`, or an index, got `dgo` (did you mean `dog`?)"),
        ("{kind: label, names: [cat, dog]}", 2, "expected an index from 0 to 1, got 2"),
        ("{kind: label, names: [cat, dog]}", True, "expected one of `cat`, `dog`, or an index, got bool True"),
        ("{kind: text, max_bytes: 3}", "éé", "expected at most 3 bytes of UTF-8, got 4 bytes"),
        ("text", b"ab\xff", "expected UTF-8 text, got the byte 0xff at position 2"),
        ("{kind: image, shape: [2, 2, 1]}", np.zeros((2, 3, 1), np.uint8), "expected an image uint8 [2, 2, 1], got shape [2, 3, 1]"),
        ("{kind: image, shape: [2, 2, 1]}", np.zeros((2, 2, 1)), "expected an image uint8 [2, 2, 1], got float64 of shape [2, 2, 1]"),
        ("image", b"<html>", "expected an image, got an HTML page"),
        ("image", b"", "expected an image, got no bytes at all"),
        ("image", "no/such.png", "expected an image file at no/such.png, got no such file or directory"),
        ("image", "/dev/zero", "expected a regular file at /dev/zero, got a device (copy its contents to a file first)"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(options, value, expected):
    assert message(options, value) == f"row 0: features.f: {expected}"


PAIR = "{dtype: int64, shape: [2]}"
NOT_BOOL = "or store it as `kind: tensor` with `dtype: bool`"


@pytest.mark.parametrize(
    ("options", "values", "row", "got"),
    [
        (INT, [True], 0, "int64, got bool True"),
        (INT, [0, False], 1, "int64, got bool False"),
        (INT, [5, np.True_], 1, "int64, got bool True"),
        (INT, np.array([True, False]), 0, "int64, got bool True"),
        (INT, np.array([3, True], object), 1, "int64, got bool True"),
        (FLOAT, [1.5, True], 1, "float32, got bool True"),
        (FLOAT, np.array([False]), 0, "float32, got bool False"),
        (U8, [7, True], 1, "uint8, got bool True"),
        ("{kind: tensor, dtype: complex64}", [1j, True], 1, "complex64, got bool True"),
        (PAIR, [[1, 2], [3, True]], 1, "int64, got bool True"),
        (PAIR, [(0, 2), [False, 3]], 1, "int64, got bool False"),
        (PAIR, [np.array([1, 2]), np.array([True, False])], 1, "int64, got bool True"),
        (PAIR, [[1, 2], np.array([True, False])], 1, "int64, got bool True"),
        (PAIR, np.array([[True, False]]), 0, "int64, got bool True"),
        ("{dtype: float32, shape: [1, 2]}", [[[0.5, True]]], 0, "float32, got bool True"),
        ("{kind: var_len, dtype: int64}", [[1], [2, True]], 1, "int64, got bool True at item 1"),
        ("{kind: fixed_len_sequence, dtype: float32}", [[True]], 0, "float32, got bool True at item 0"),
        ("{kind: ragged, dtype: int64, shape: [null, null]}", [[[1], [True]]], 0, "int64, got bool True at item 0 at item 1"),
        ("{kind: sparse, dtype: int64, size: 3}", [([1], [True])], 0, "int64, got bool True at item 0"),
        ("{kind: sparse, dtype: int64, size: 3}", [([True], [7])], 0, "int64, got bool True"),
        ("{kind: box, format: xyxy}", [[[0, 0, 5, True]]], 0, "float32, got bool True at item 0"),
    ],
)  # fmt: skip
def test_a_bool_is_no_number(options, values, row, got):
    with pytest.raises(RecordError) as caught:
        schema(options).encode_batch({"f": values}, len(values))
    number = int("True" in got)
    assert str(caught.value) == f"row {row}: features.f: expected {got} (write {number}, {NOT_BOOL})"


@pytest.mark.parametrize("options", [INT, FLOAT, STRING, "text", U8, "{kind: var_len, dtype: int64}"])
def test_a_missing_value_is_refused(options):
    kind = {INT: "int64", FLOAT: "float32", STRING: "string", "text": "text", U8: "uint8"}
    expected = kind.get(options, "a list of int64")
    for row in ({"f": None}, {}):
        with pytest.raises(RecordError) as caught:
            schema(options).encode(row)
        assert str(caught.value).startswith(f"row 0: features.f: expected {expected}, got nothing")


def test_the_first_bad_row_is_named_with_all_that_is_wrong_in_it():
    both = Schema.loads("schema: s\nfeatures: {a: int64, b: string, c: int64}")
    columns = {"a": [1, 2, "x"], "b": ["a", 3, "c"], "c": [1, 1.5, 2]}
    with pytest.raises(RecordError) as caught:
        both.encode_batch(columns, 3)
    assert caught.value.row == 1
    assert str(caught.value).splitlines() == [
        "row 1: features.b: expected string, got int 3",
        "row 1: features.c: expected int64, got float 1.5 (`float32` holds fractions)",
    ]


def test_an_unknown_name_is_refused():
    with pytest.raises(RecordError) as caught:
        Schema.loads("schema: s\nfeatures: {Age: {dtype: int64, default: 0}}").encode({"Agee": 3})
    assert str(caught.value) == "row 0: expected names of `s`, got `Agee` (did you mean `Age`?)"


DEFAULTED = "{dtype: int64, default: -1}"


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan")])
def test_what_is_missing_takes_the_default(missing):
    records = schema(DEFAULTED).encode_batch({"f": [7, missing, 9]}, 3)
    assert records[1] == b"\n\x00"  # an Example without the key
    assert schema(DEFAULTED).decode(list(records))["f"].numpy().tolist() == [7, -1, 9]


def test_nan_in_a_column_of_floats_is_a_value():
    floats = schema("{dtype: float32, default: 1.0}")
    decoded = floats.decode(floats.encode_batch({"f": [2.0, float("nan"), None]}, 3))
    np.testing.assert_array_equal(decoded["f"].numpy(), [2.0, np.nan, 1.0])


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (INT, np.array([1, 2], np.uint8)),
        (INT, np.array([1, 2], ">i4")),
        (INT, [np.int8(1), 2]),
        (FLOAT, np.array([1, 2])),
        (FLOAT, [1.0, 2]),
        (FLOAT, [np.float16(1), np.int64(2)]),
        ("{kind: tensor, dtype: bool}", [1, False]),
    ],
)
def test_other_types_are_taken_where_nothing_is_lost(options, values):
    given = schema(options)
    again = [given.encode({"f": value}) for value in np.asarray(values).tolist()]
    assert given.encode_batch({"f": values}, 2) == again


def test_strings_are_taken_as_text_bytes_and_arrays():
    strings = schema(STRING)
    texts = ["a", "éß", "", "中🙂"]
    expected = [strings.encode({"f": text.encode()}) for text in texts]
    for values in (texts, np.array(texts), np.array(texts, object), [text.encode() for text in texts]):
        assert strings.encode_batch({"f": values}, 4) == expected
    ascii_bytes = np.array([b"ab", b"", b"abc"])
    assert strings.encode_batch({"f": ascii_bytes}, 3) == [
        strings.encode({"f": value}) for value in ("ab", "", "abc")
    ]


def test_every_float_of_a_list_that_float32_cannot_hold_is_seen():
    large = [2.0**25, 2**24 + 1, 1.5]
    with pytest.raises(RecordError) as caught:
        schema(FLOAT).encode_batch({"f": large}, 3)
    assert str(caught.value) == (
        "row 1: features.f: expected float32, which holds whole numbers exactly, got 16777217"
    )


def test_a_sparse_row_takes_text_beside_bytes():
    values = schema("{kind: sparse, dtype: string, size: 9}")
    given = values.encode({"f": ([0, 1], ["x", b"\xda"])})
    assert given == values.encode({"f": ([0, 1], [b"x", b"\xda"])})


def test_a_label_without_a_hash_is_refused():
    options = "{kind: label, names: [cat, dog]}"
    assert message(options, np.timedelta64(1)).endswith(
        "expected one of `cat`, `dog`, or an index, got timedelta64 1"
    )


def test_an_index_twice_is_refused_wherever_it_stands():
    schema = rs.Schema.loads("schema: s\nfeatures: {f: {kind: sparse, dtype: float32, size: 5}}")
    with pytest.raises(RecordError, match="expected every index once, got one of them twice"):
        schema.encode({"f": ([1, 2, 1], [1.0, 2.0, 3.0])})
