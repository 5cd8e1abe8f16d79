"""Projections, filters and buckets, in every layout (`reading.layouts`)."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from shaped_rows import ROWS, SCHEMA, numbers, written

import recordspec as rs
from recordspec.schema.decoder import batch_spec


@pytest.fixture(scope="module", params=["rows", {"blocks": 32}], ids=["rows", "blocks"])
def data(tmp_path_factory, request):
    return written(tmp_path_factory.mktemp("shaping") / "data", request.param)


def test_only_the_features_asked_for_are_read(data):
    dataset = rs.read(SCHEMA, data, batch=50, features=["text", "n"])
    assert dataset.element_spec == {name: batch_spec(SCHEMA)[name] for name in ("text", "n")}
    assert list(next(iter(dataset))) == ["text", "n"]
    assert numbers(dataset) == list(range(ROWS))
    with pytest.raises(rs.SpecError, match="expected one of n, words, other, text, got `texts`"):
        rs.read(SCHEMA, data, batch=50, features=["texts"])


@pytest.mark.parametrize("batch", [None, 30, {"size": 30, "drop_remainder": True}])
@pytest.mark.parametrize("features", [None, ["n"]])
def test_a_filter_keeps_rows(data, batch, features):
    dataset = rs.read(
        SCHEMA, data, batch=batch, features=features, filter=lambda f: f["words"].row_lengths() > 30
    )
    expected = [number for number in range(ROWS) if number % 40 > 30]
    size = 30 if isinstance(batch, dict) else 1
    assert numbers(dataset) == expected[: len(expected) // size * size]
    if isinstance(batch, int):
        assert [len(one["n"]) for one in dataset] == [30] * (len(expected) // 30) + [len(expected) % 30]


def test_a_filter_that_gives_no_bools_is_named(data):
    with pytest.raises(rs.SpecError, match="filter: expected a bool for each row"):
        rs.read(SCHEMA, data, batch=10, filter=lambda features: features["n"])
    with pytest.raises(rs.SpecError, match="filter: expected a feature: n, words, other, text, got 'm'"):
        rs.read(SCHEMA, data, batch=10, filter=lambda features: features["m"] > 1)


def test_buckets_have_rows_of_like_lengths(data):
    dataset = rs.read(SCHEMA, data, batch=20, bucket={"by": "words", "boundaries": [10, 20]})
    seen = []
    for batch in dataset:
        lengths = batch["words"].row_lengths().numpy()
        assert len(set(np.searchsorted([10, 20], lengths, side="right"))) == 1
        assert len(lengths) <= 20
        seen += batch["n"].numpy().tolist()
    assert sorted(seen) == list(range(ROWS))
    assert seen != list(range(ROWS))


def test_buckets_resume_too(data):
    options = {"batch": 20, "bucket": {"by": "words", "boundaries": [10]}, "shuffle": 100, "seed": 1}
    whole = [batch["n"].numpy().tolist() for batch in rs.read(SCHEMA, data, **options)]
    rest = [batch["n"].numpy().tolist() for batch in rs.read(SCHEMA, data, **options, start=(0, 4))]
    assert rest == whole[4:]


def test_single_rows_of_every_layout_are_those_of_the_schema(data):
    dataset = rs.read(SCHEMA, data)
    assert dataset.element_spec == SCHEMA.element_spec()
    rows = list(dataset)
    assert [row["words"].numpy().tolist() for row in rows] == [[i] * (i % 40) for i in range(ROWS)]
    assert isinstance(rows[0]["words"], tf.Tensor)
