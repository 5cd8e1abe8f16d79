"""Arrays against lists of Python: rows are cut, taken, joined and spread in every form."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec.wire import arrays
from recordspec.wire.arrays import (
    bytes_in,
    joined,
    lists_in,
    objects_in,
    offsets,
    part,
    present_in,
    spread,
    strings_array,
    take,
    to_arrow,
)
from selection import scaled

VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": st.floats(width=32, allow_nan=False),
    "bytes": st.binary(max_size=9),
}


@st.composite
def columns(draw, storage: str):
    """Lists of values, and the array of these."""
    size = draw(st.sampled_from([None, 0, 1, 1, 3]))
    limits = {"max_size": 3} if size is None else {"min_size": size, "max_size": size}
    rows = draw(st.lists(st.lists(VALUES[storage], **limits), max_size=5))
    flat = [value for row in rows for value in row]
    values = flat if storage == "bytes" else np.array(flat, storage)
    lengths = np.array([len(row) for row in rows], np.int64) if size is None else size
    return rows, to_arrow(values, lengths, len(rows))


@given(st.data())
@settings(max_examples=scaled(300))
def test_rows_are_those_of_lists_in_every_form(data):
    storage = data.draw(st.sampled_from(sorted(VALUES)))
    (one, first), (other, second) = (data.draw(columns(storage)) for _ in range(2))
    assert list(lists_in(first)) == one
    assert arrays.storage_of(first) == storage
    assert arrays.counts_of(first).tolist() == list(map(len, one))
    both, rows = joined([first, second]), [*one, *other]
    assert list(lists_in(both)) == rows
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(rows))] * 2)))
    cut, left = part(both, start, stop), rows[start:stop]
    assert list(lists_in(cut)) == left
    order = data.draw(st.lists(st.sampled_from(range(len(left))))) if left else []
    assert list(lists_in(take(cut, np.array(order, np.int64)))) == [left[row] for row in order]
    places = data.draw(st.permutations([True] * len(left) + [False] * 2))
    wide, expected = spread(cut, np.array(places)), iter(left)
    expected = [next(expected) if here else None for here in places]
    assert list(lists_in(wide)) == expected
    assert present_in(wide).tolist() == places
    assert list(lists_in(joined([wide, first]))) == [*expected, *one]


@given(st.data())
@settings(max_examples=scaled(100))
def test_steps_of_several_forms_are_joined(data):
    parts, expected = [], []
    for _ in range(2):
        steps, array = data.draw(columns("int64"))
        counts = data.draw(st.lists(st.integers(0, 2), max_size=4))
        counts.append(max(0, len(steps) - sum(counts)))
        ends = np.minimum(offsets(np.array(counts)), len(steps))
        parts.append(arrays.list_array(arrays.values_array(array), ends))
        expected += [steps[start:stop] for start, stop in pairwise(ends)]
    found = joined(parts)
    assert arrays.counts_of(found).tolist() == list(map(len, expected))
    assert list(lists_in(arrays.items_of(found))) == [step for steps in expected for step in steps]


@given(st.integers(1, 9), st.integers(0, 9), st.data())
def test_rows_of_a_matrix_are_strings(width, count, data):
    matrix = np.arange(count * width, dtype=np.uint8).reshape(count, width)
    values = [row.tobytes() for row in matrix]
    strings = arrays.rows_array(matrix)
    assert bytes_in(strings) == values
    assert bytes_in(part(strings, count // 2, count)) == values[count // 2 :]
    sizes = data.draw(st.lists(st.integers(0, width), min_size=count, max_size=count))
    cut = [value[:size] for value, size in zip(values, sizes, strict=True)]
    assert bytes_in(arrays.squeezed(matrix, np.array(sizes, np.int64))) == cut


def test_numbers_of_the_other_byte_order_stay_what_they_are():
    array = arrays.numbers_array(np.array([1, 2**40], ">i8"))
    assert array.to_pylist() == [1, 2**40]


STRINGS = st.lists(st.binary(max_size=5) | st.text(max_size=3).map(str.encode), max_size=8)


@given(STRINGS)
def test_text_is_what_python_decodes(strings):
    def decodes(one: bytes) -> bool:
        try:
            one.decode()
        except UnicodeDecodeError:
            return False
        return True

    assert arrays.are_text(arrays.strings_array(strings)) == all(map(decodes, strings))


@given(STRINGS, st.integers(0, 6), st.integers(0, 8))
def test_prefixes_are_the_first_bytes(strings, size, start):
    start = min(start, len(strings))
    some = part(arrays.strings_array(strings), start, len(strings))
    assert bytes_in(arrays.prefixes(some, size)) == [one[:size] for one in strings[start:]]


@pytest.mark.parametrize(
    "sizes",
    [[8] * 300, [*range(3)] * 200, range(300), range(40), [0] * 200, [5000] * 120, [0, 9000], []],
    ids=["one size", "few sizes", "all sizes", "few strings", "empty", "large", "empty and large", "none"],
)
def test_strings_of_any_sizes_are_bytes_of_python(sizes):
    strings = [bytes([number % 3, 0, 7] * size)[:size] for number, size in enumerate(sizes)]
    cut = strings_array([b"before", *strings, b"after"]).slice(1, len(strings))
    for array in (cut, strings):
        assert bytes_in(array) == objects_in(array).tolist() == strings
        assert set(map(type, objects_in(array))) <= {bytes}
