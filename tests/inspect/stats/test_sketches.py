"""Sketches of parts, merged, are those of the whole, and as near to it as they say."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from drawn_values import INTS, places
from hypothesis import example as an_example
from hypothesis import given
from hypothesis import strategies as st

from recordspec.inspect.stats.sketches import (
    SAMPLE_SIZE,
    AdjacentValues,
    BottomK,
    FrequentValues,
    KMinimumValues,
    Moments,
    SizeCounts,
    rank_error,
)
from recordspec.wire.hashes import splitmix64

FLOATS = st.lists(st.floats(width=32), max_size=40)
CUT = st.integers(0, 40)


@given(FLOATS, CUT)
def test_moments_are_those_of_numpy_in_parts_too(values, cut):
    held = np.array(values, np.float32)
    merged = Moments()
    for some in (held[:cut], held[cut:]):
        part = Moments()
        part.add(some)
        merged.merge(part)
    finite = held[np.isfinite(held)].astype(np.float64)
    assert merged.count == len(values)
    assert merged.nans == np.isnan(held).sum()
    assert merged.infinite == np.isinf(held).sum()
    assert merged.lowest == np.isneginf(held).sum()
    assert merged.zeros == (held == 0).sum()
    if len(finite):
        scale = np.abs(finite).max()
        assert (merged.low, merged.high) == (finite.min(), finite.max())
        assert merged.mean == pytest.approx(finite.mean(), rel=1e-9, abs=1e-12 * scale)
        assert merged.deviation == pytest.approx(finite.std(), rel=1e-6, abs=1e-9 * scale)
    else:
        assert (merged.low, merged.high) == (None, None)


@given(INTS | st.lists(st.integers(2**60, 2**60 + 3), max_size=40), CUT)
@an_example([2**53 + 1, 2**53 + 2, 2**53 + 3], 1)
@an_example([-(2**63), 2**63 - 1], 1)
@an_example([2**60 + 1] * 5 + [2**60 + 3] * 4, 9)
def test_moments_of_integers_are_those_of_fractions(values, cut):
    """Float64 would round each value."""
    merged = Moments()
    for some in (values[:cut], values[cut:]):
        part = Moments()
        part.add(np.array(some, np.int64))
        merged.merge(part)
    assert (merged.count, merged.finite, merged.zeros) == (len(values), len(values), values.count(0))
    if values:
        mean = Fraction(sum(values), len(values))
        variance = sum((value - mean) ** 2 for value in values) / len(values)
        assert (merged.low, merged.high) == (min(values), max(values))
        assert merged.mean == float(mean)
        assert merged.deviation == pytest.approx(math.sqrt(variance), rel=1e-12, abs=0)


def test_moments_of_many_large_integers():
    """More than 64 bits hold the sum of."""
    values = np.concatenate([np.full(1 << 21, 2**63 - 1), np.full(1 << 21, -(2**63) + 5)])
    moments = Moments()
    moments.add(values)
    mean = Fraction(2**63 - 1 - 2**63 + 5, 2)
    assert (moments.mean, moments.deviation) == (
        float(mean),
        pytest.approx(float(2**63 - 1 - mean), rel=1e-12),
    )


@given(INTS, CUT, st.integers(1, 50))
def test_a_sample_is_the_same_in_parts_and_all_there_is_of_few(values, cut, size):
    held, where = np.array(values, np.int64), places(len(values))
    whole = BottomK(size, np.int64)
    whole.add(where, held)
    merged = BottomK(size, np.int64)
    for some in (slice(cut, None), slice(0, cut)):
        part = BottomK(size, np.int64)
        part.add(where[some], held[some])
        merged.merge(part)
    assert merged.values.tolist() == whole.values.tolist()
    assert merged.full == whole.full == (len(values) > size)
    assert len(whole.values) == min(size, len(values))
    if not whole.full:
        assert sorted(whole.values.tolist()) == sorted(values)


def test_the_ranks_of_a_sample_are_off_by_less_than_is_said():
    values = np.arange(300_000)
    sample = BottomK(SAMPLE_SIZE, np.int64)
    for start in range(0, len(values), 7777):
        some = values[start : start + 7777]
        sample.add(places(len(some), start), some)
    shares = np.linspace(0, 1, 101)
    apart = np.abs(np.quantile(sample.values, shares) / len(values) - shares)
    assert sample.full
    assert apart.max() < rank_error(len(sample.values)) < 0.013


@given(st.lists(st.integers(0, 1 << 40) | st.integers(0, 5000), max_size=40), CUT)
def test_sizes_are_those_of_numpy_within_a_thousandth(values, cut):
    held = np.array(values, np.int64)
    merged = SizeCounts()
    for some in (held[:cut], held[cut:]):
        part = SizeCounts()
        part.add(some)
        merged.merge(part)
    assert merged.count == len(values)
    assert merged.total == sum(values)
    assert merged.high == max(values, default=0)
    assert merged.low == min(values, default=0)
    for share in (0.01, 0.5, 0.99):
        if values:
            expected = int(np.quantile(held, share, method="inverted_cdf"))
            assert merged.quantile(share) == pytest.approx(expected, rel=0.001)
            if expected < 2048:
                assert merged.quantile(share) == max(expected, merged.low)


def test_one_size_of_many_is_that_of_each():
    together, each = SizeCounts(), SizeCounts()
    together.add(np.full(5, 784))
    for _ in range(5):
        each.add(np.array([784]))
    assert vars(together) == vars(each)


@given(st.lists(st.integers(0, 60), max_size=80), CUT, st.integers(1, 70))
def test_the_smallest_hashes_are_the_same_in_parts(values, cut, size):
    held = splitmix64(np.array(values, np.uint64))
    whole = KMinimumValues(size)
    whole.count(held)
    merged = KMinimumValues(size)
    for some in (held[cut:], held[:cut]):
        part = KMinimumValues(size)
        part.count(some)
        merged.merge(part)
    assert merged.distinct == whole.distinct
    assert merged.repeated == whole.repeated
    assert merged.hashes.tolist() == whole.hashes.tolist()
    assert merged.values.tolist() == whole.values.tolist()
    if len(set(values)) <= size:
        assert (whole.distinct.value, whole.distinct.error) == (len(set(values)), 0)
        assert whole.repeated.value == len(values) - len(set(values))


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)), st.integers(1, 40))
def test_what_two_have_in_common(one, other, size):
    held = []
    for values in (one, other):
        held.append(KMinimumValues(size))
        held[-1].count(splitmix64(np.array(values, np.uint64)))
    shared = held[0].shared(held[1])
    assert shared == held[1].shared(held[0])
    if max(len(set(one)), len(set(other))) <= size:
        assert shared.value == len(set(one) & set(other))
        assert shared.error == 0


def test_estimates_are_near():
    numbers = np.arange(200_000, dtype=np.uint64)
    smallest = KMinimumValues(1 << 12)
    for start in range(0, len(numbers), 999):
        smallest.count(splitmix64(numbers[start : start + 999]))
    smallest.count(splitmix64(numbers[:50_000]))
    assert smallest.distinct.value == pytest.approx(200_000, rel=4 * smallest.distinct.error)
    assert smallest.distinct.error == pytest.approx(0.0156, abs=0.0001)
    assert smallest.repeated.value == pytest.approx(50_000, rel=0.2)


@given(st.lists(st.integers(0, 30), max_size=80), CUT, st.integers(1, 40))
def test_frequent_values_are_counted_short_by_no_more_than_is_said(values, cut, size):
    held = np.array(values, np.uint64)
    merged = FrequentValues(size)
    for some in (held[:cut], held[cut:]):
        part = FrequentValues(size)
        part.add(some)
        merged.merge(part)
    counts = {value: values.count(value) for value in values}
    found = dict(zip(merged.codes.tolist(), merged.counts.tolist(), strict=True))
    assert merged.short <= len(values) / (size + 1)
    assert len(found) <= size
    for value, count in counts.items():
        assert 0 <= count - found.get(value, 0) <= merged.short
    if len(counts) <= size:
        assert found == counts
        assert merged.exact
        assert merged.distinct.value == len(counts)


@given(st.lists(st.integers(0, 2), max_size=30), CUT)
def test_neighbours_are_the_same_in_parts(values, cut):
    held = np.array(values, np.uint64)
    merged = AdjacentValues()
    for some in (held[:cut], held[cut:]):
        part = AdjacentValues()
        part.add(some)
        merged.merge(part)
    pairs = list(pairwise(values))
    assert (merged.pairs, merged.same) == (len(pairs), sum(one == other for one, other in pairs))
