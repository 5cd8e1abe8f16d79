"""One row encoded alone: the bytes, and the errors, of the row encoded in a batch."""

from __future__ import annotations

import pickle
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recordspec import KINDS, RecordError, Schema
from recordspec.schema.encoder import columns_of
from recordspec.schema.features.text import Text
from recordspec.wire import example as wire_example

SCHEMA = Schema.loads("""
schema: s
features:
  number: int64
  ratio: float32
  word: string
  three: {dtype: int64, shape: [3]}
  floats: {kind: var_len, dtype: float32}
  words: {kind: var_len, dtype: string, max_length: 3}
  gap: {kind: fixed_len, dtype: int64, default: 7, key: a_key}
  text: {kind: text, max_bytes: 6}
  label: {kind: label, names: [a, b], oov: index}
  tensor: {kind: tensor, dtype: uint8, shape: [2]}
""")
STEPS = Schema.loads("""
schema: s
record: sequence_example
context: {number: int64, word: string}
sequence: {steps: {kind: fixed_len_sequence, dtype: int64}}
""")
NUMBERS = st.one_of(
    st.integers(-(1 << 64), 1 << 64),
    st.floats(),
    st.booleans(),
    st.none(),
    st.integers(-5, 300).map(np.int64),
    st.floats(width=32).map(np.float32),
)
WORDS = st.one_of(
    st.text(max_size=9), st.binary(max_size=9), st.just("\ud800"), st.text(max_size=3).map(np.str_)
)
VALUES = st.one_of(NUMBERS, WORDS, st.lists(NUMBERS, max_size=4), st.lists(WORDS, max_size=4))
GOOD: dict[str, Any] = {
    "number": -1,
    "ratio": 0.1,
    "word": "ü",
    "three": [1, 2, 300],
    "floats": [1, 2.5],
    "words": ["x", "y"],
    "text": "aé",
    "label": "b",
    "tensor": [1, 2],
}


def outcome(encode) -> Any:
    try:
        return encode()
    except RecordError as error:
        return str(error)


def check(schema: Schema, row: Any) -> None:
    alone = outcome(lambda: schema.encode(row))
    assert alone == outcome(lambda: schema.encode_batch(columns_of(schema, [row]), 1)[0])


@given(st.sampled_from(sorted(SCHEMA.names)), VALUES, st.lists(VALUES, max_size=2))
@example("floats", [float("nan"), 1.0], [])
@example("ratio", 3.4028235677973366e38, [])  # rounds to infinity
@example("ratio", (1 << 24) + 1, [])
@example("words", ["a", "b", "c", "d"], [])
@example("word", np.bytes_(b"a\0"), [])
@example("number", np.timedelta64(1, "s"), [])
def test_any_value_gives_what_it_gives_in_a_batch(name, value, others):
    row = GOOD | {name: value}
    check(SCHEMA, row)
    for other, changed in zip(SCHEMA.names, others, strict=False):
        check(SCHEMA, row | {other: changed})


@pytest.mark.parametrize("name", SCHEMA.names)
def test_a_row_that_lacks_a_name(name):
    check(SCHEMA, {other: value for other, value in GOOD.items() if other != name})


def test_a_row_with_another_name():
    check(SCHEMA, GOOD | {"nmber": 1})
    with pytest.raises(RecordError, match="expected names of `s`, got `nmber`"):
        SCHEMA.encode(GOOD | {"nmber": 1})


def test_a_mapping_that_is_no_dict():
    row = defaultdict(int, GOOD)
    assert SCHEMA.encode(row) == SCHEMA.encode(GOOD | {"gap": 0})


@given(NUMBERS, WORDS, st.one_of(VALUES, st.lists(st.integers(-3, 3), max_size=3)))
def test_a_row_of_steps(number, word, steps):
    check(STEPS, {"number": number, "word": word, "steps": steps})
    check(STEPS, {"number": 1, "word": "w", "steps": steps})


def test_keys_stand_in_the_order_of_their_bytes():
    names = ["b", "é", "a", "\U0001f600", "\uff5e"]
    schema = Schema.loads("schema: s\nfeatures: {" + ", ".join(f'"{name}": int64' for name in names) + "}")
    check(schema, dict.fromkeys(names, 1))


def test_a_schema_that_has_encoded_travels_and_goes_on():
    record = SCHEMA.encode(GOOD)
    assert pickle.loads(pickle.dumps(SCHEMA)).encode(GOOD) == record


def test_a_kind_that_encodes_otherwise_is_asked():
    @dataclass(frozen=True, kw_only=True)
    class Lower(Text):
        kind: ClassVar[str] = "lower"

        def encode(self, values):
            return super().encode([value.lower() for value in values])

    schema = Schema.loads("schema: s\nfeatures: {a: lower}", kinds=KINDS | {"lower": Lower})
    assert schema.encode({"a": "ABC"}) == schema.encode({"a": "abc"})
    check(schema, {"a": "ABC"})


def test_a_record_of_many_large_values_is_refused(monkeypatch):
    monkeypatch.setattr(wire_example, "LARGEST_RECORD", 1000)
    row = GOOD | {"word": "x" * 900, "words": ["y" * 150]}
    with pytest.raises(RecordError, match="expected a record of at most"):
        SCHEMA.encode(row)


def test_a_tuple_is_a_column_of_long_strings():
    schema, column = Schema.loads("schema: s\nfeatures: {f: string}\n"), (b"a" * 5000, b"b" * 9000)
    assert schema.encode_batch({"f": column}, 2) == schema.encode_batch({"f": list(column)}, 2)
