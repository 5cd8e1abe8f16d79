"""What of a schema makes it another one: spelling, and the fingerprint."""

from __future__ import annotations

import pytest

from recordspec import Schema
from recordspec.schema.feature_set import differences
from recordspec.statistics.diff import changes


def test_a_fingerprint_depends_on_what_is_stored_alone():
    text = (
        "schema: x\nfeatures: {a: {dtype: int64, default: 1}, b: {kind: var_len, dtype: string}, "
        "c: {kind: label, names: [d, e]}}"
    )
    base = Schema.loads(text)
    read_otherwise = Schema.loads(
        "schema: y\nversion: 2\ndescription: d\nfeatures:\n"
        "  b: {kind: var_len, dtype: string, as: dense, pad: x, description: d}\n"
        "  a: {dtype: int64, default: 3}\n"
        "  c: {kind: label, names: [d, e], pad: 0}\n"
    )
    assert base.fingerprint == read_otherwise.fingerprint
    for old, new in (("int64, default: 1", "float32, default: 1"), (", default: 1", "")):
        assert base.fingerprint != Schema.loads(text.replace(old, new)).fingerprint


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("{dtype: int64}", "{dtype: int64, key: x}"),
        ("{kind: tensor, dtype: int8}", "{kind: tensor, dtype: int8, encoding: list}"),
        ("{kind: tensor, dtype: uint64}", "{kind: tensor, dtype: uint64, encoding: raw}"),
        (
            "{kind: ragged, dtype: int64, shape: [null, null]}",
            "{kind: ragged, dtype: int64, shape: [null, null], row_lengths: [x/row_lengths]}",
        ),
        (
            "{kind: sparse, dtype: int64, size: 5}",
            "{kind: sparse, dtype: int64, size: [5], index_keys: [x/indices]}",
        ),
    ],
)
def test_one_thing_in_two_spellings_is_the_same(short, long):
    one, other = (Schema.loads(f"schema: s\nfeatures: {{x: {said}}}") for said in (short, long))
    assert one != other
    assert one.fingerprint == other.fingerprint
    assert [*differences(one, other), *differences(other, one), *changes(one, other)] == []
