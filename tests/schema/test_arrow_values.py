"""Arrays of Arrow as the values of features: every type of array gives what a list of its values gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from recordspec import RecordError, Schema


@pytest.mark.parametrize(
    ("feature", "kind", "values"),
    [
        ("{kind: var_len, dtype: int64}", pa.list_(pa.int64()), [[1, 2], [], [3]]),
        ("{kind: var_len, dtype: int64}", pa.large_list(pa.int64()), [[1, 2], [], [3]]),
        ("{kind: var_len, dtype: int64}", pa.large_list(pa.int64()), [[1, None], [], [3]]),
        ("{dtype: float32, shape: [2]}", pa.list_(pa.float32(), 2), [[1, 2], [3, 4], [5, 6]]),
        (
            "{kind: ragged, dtype: string, shape: [null, null]}",
            pa.list_(pa.list_(pa.string())),
            [[["a"]], [], [[]]],
        ),
        ("string", pa.string_view(), ["a", "b", ""]),
        ("text", pa.dictionary(pa.int8(), pa.string()), ["a", None, "b"]),
        ("{dtype: int64, date: days}", pa.date32(), [1, 2, 3]),
    ],
)
def test_any_array_of_arrow_is_its_values(feature, kind, values):
    schema = Schema.loads(f"schema: s\nfeatures:\n  f: {feature}\n")

    def encoded(column: Any) -> Any:
        try:
            return schema.encode_batch({"f": column}, len(values)), schema.encode_block(
                {"f": column}, len(values)
            )
        except RecordError as error:
            return str(error)

    array = pa.array([*values[:1], *values], kind)[1:]
    assert encoded(array) == encoded(values)
    assert encoded(pa.chunked_array([array[:1], array[1:]])) == encoded(values)


def test_a_null_entry_of_a_dictionary_is_missing():
    array = pa.DictionaryArray.from_arrays([0, 1], pa.array(["a", None]))
    with pytest.raises(RecordError, match=r"row 1: features\.f: expected text, got nothing"):
        Schema.loads("schema: s\nfeatures: {f: text}\n").encode_batch({"f": array}, 2)
