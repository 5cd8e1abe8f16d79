"""Rows that come one by one: those of TensorFlow datasets, and those that cannot be sent."""

from __future__ import annotations

import pytest
import tensorflow as tf
from in_parts import records, schema

import recordspec as rs
from recordspec.writing.sources.python_rows import source_of


def test_a_tensorflow_dataset_of_dicts_is_rows():
    one = schema(
        "n: int64\n  s: string\n  r: {kind: ragged, dtype: int64, shape: [null, null]}\n"
        "  p: {kind: sparse, dtype: float32, size: 4}\n  v: {kind: var_len, dtype: int64}"
    )
    dataset = tf.data.Dataset.range(3).map(
        lambda n: {
            "n": n,
            "s": tf.strings.as_string(n),
            "r": tf.ragged.constant([[1, 2], []], dtype=tf.int64),
            "p": tf.sparse.from_dense([0.0, 0.5, 0.0, 0.25]),
            "v": tf.range(n),
        }
    )
    source = source_of(dataset)
    assert source.rows == 3
    assert records(source, one) == [
        one.encode({"n": n, "s": str(n), "r": [[1, 2], []], "p": ([1, 3], [0.5, 0.25]), "v": list(range(n))})
        for n in range(3)
    ]


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (tf.data.Dataset.from_tensors((1, 2)), "rows: expected a dataset of dicts, got one of tuples of 2 (map it to dicts: dataset.map(lambda image, label: {'image': image, 'label': label}))"),
        (tf.data.Dataset.from_tensors({"a": {"b": 1}}), "rows.a: expected a tensor, got a dict (map it to a dict of tensors alone)"),
        (tf.data.Dataset.from_tensors({"a": 1}).repeat(), "rows: expected a dataset with an end, got one that repeats for ever"),
    ],
)  # fmt: skip
def test_a_tensorflow_dataset_of_others_is_refused(dataset, expected):
    with pytest.raises(rs.SpecError) as caught:
        source_of(dataset)
    assert str(caught.value) == expected


@pytest.mark.slow
def test_a_row_that_cannot_be_sent_is_named(tmp_path):
    given = [{"id": 1}, {"id": lambda: 2}]
    with pytest.raises(
        rs.RecordError, match=r"row 1: expected a row that can be sent to another process, got "
    ):
        rs.write(given, rs.Schema.loads("schema: s\nfeatures: {id: int64}"), tmp_path / "data", jobs=2)
