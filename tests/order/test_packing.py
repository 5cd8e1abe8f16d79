"""Packs: every row once in a pass, within the length of a pack, pinned, and a function of the position."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec import SpecError
from recordspec.order.packing import PackedRows, PackOrder
from recordspec.order.read_options import Batch, Pack
from selection import scaled

LENGTHS = np.array([[5, 3, 8, 1, 0, 2, 7, 4, 6, 3, 5, 1]])
# A training outlives a release: these must not change. The rows of the first packs of epoch 2, by seed and blocks.
GOLDEN = {
    (None, None): [[2], [6, 3], [8, 5], [0, 1], [10, 9]],
    (17, None): [[6, 11], [10, 9], [7, 3], [2], [0, 1]],
    (17, 4): [[6, 3], [7, 11], [10, 9], [2], [0, 1]],
}


def planned(lengths, *, seed=None, size=None, **options) -> PackOrder:
    lengths = np.asarray(lengths)
    names = tuple("xyz"[: len(lengths)])
    blocks = None
    if size is not None:
        blocks = np.diff([*range(0, lengths.shape[1], size), lengths.shape[1]])
    return PackOrder(lengths, names, Pack(**options), seed, blocks)


def by_pack(found: PackedRows, values: np.ndarray) -> list[list[int]]:
    return [part.tolist() for part in np.split(values, np.cumsum(found.counts)[:-1])]


@pytest.mark.parametrize(("seed", "size"), GOLDEN)
def test_packs_are_those_of_all_releases(seed, size):
    found = planned(LENGTHS, seed=seed, size=size, length=8).at(2, np.arange(5))
    assert by_pack(found, found.rows) == GOLDEN[seed, size]


@given(data=st.data())
@settings(max_examples=scaled(150), deadline=None)
def test_every_value_comes_once_and_fits(data):
    draw, length = data.draw, data.draw(st.integers(1, 40))
    keys = draw(st.integers(1, 2))
    rows = draw(st.integers(1, 400))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    longer = draw(st.sampled_from(["error", "truncate", "drop", *(["split"] if keys == 1 else [])]))
    align = draw(st.sampled_from([1, 1, 2, 4]))
    length *= align
    separator = draw(st.sampled_from([None, 7]))
    most = draw(st.sampled_from([None, 1, 3]))
    high = length if longer == "error" else 3 * length
    lengths = rng.integers(0, high + 1 - (longer == "error" and separator is not None), (keys, rows))
    seed, size = draw(st.sampled_from([None, 3])), draw(st.sampled_from([None, 7]))
    order = planned(
        lengths,
        seed=seed,
        size=size,
        length=length,
        longer=longer,
        align=align,
        separator=separator,
        most=most,
    )
    for epoch in (0, 1):
        found = order.at(epoch, np.arange(order.count))
        wanted = lengths + (separator is not None)
        kept = lengths.any(0)
        if longer == "drop":
            kept &= (wanted <= length).all(0)
        if longer == "truncate":
            wanted = np.minimum(wanted, length)
        # each row that is kept, whole: its pieces follow each other
        values = np.zeros_like(wanted)
        np.add.at(values.T, found.rows, found.sizes.T)
        assert (values == np.where(kept, wanted, 0)).all()
        pieces = sorted(zip(found.rows.tolist(), found.starts.tolist(), found.sizes[0].tolist(), strict=True))
        for (row, start, held), (other, after, _) in pairwise(pieces):
            assert other > row or after == start + held
        assert (found.lengths == lengths[:, found.rows]).all()
        # within a pack, one after the other
        assert found.counts.min(initial=1) >= 1
        assert most is None or found.counts.max(initial=0) <= most
        for key in range(keys):
            places = found.places(key, align)
            assert (places % align == 0).all()
            assert (places + found.sizes[key] <= length).all()
            ends = places + -(-found.sizes[key] // align) * align
            same = found.packs[1:] == found.packs[:-1]
            assert (places[1:][same] == ends[:-1][same]).all()
            assert (places[1:][~same] == 0).all()
        # any positions alone, in any order
        some = rng.integers(0, order.count + 2, 5)
        alone, every = order.at(epoch, some), by_pack(found, found.rows)
        assert by_pack(alone, alone.rows) == [[] if one >= order.count else every[one] for one in some]


def test_an_epoch_deals_the_rows_anew():
    lengths = np.random.default_rng(1).integers(10, 90, (1, 3000))
    for size in (None, 64):
        order = planned(lengths, seed=5, size=size, length=256)
        packs = [
            {tuple(sorted(pack)) for pack in by_pack(found, found.rows)}
            for found in (order.at(epoch, np.arange(order.count)) for epoch in (0, 1))
        ]
        assert len(packs[0] & packs[1]) < len(packs[0]) / 20
        assert order.plan(1).fill["x"] > 0.99


def test_rows_of_blocks_are_read_window_by_window():
    lengths = np.random.default_rng(1).integers(10, 90, (1, 60_000))
    found = planned(lengths, seed=5, size=200, length=512).at(0, np.arange(2000))
    assert len(np.unique(found.rows // 200)) < 200  # of 300: those of two windows of 81


def test_the_length_of_a_feature_limits_a_pack_alone():
    order = planned([[4, 4, 4], [1, 9, 1]], length={"x": 8, "y": 10})
    found = order.at(0, np.arange(order.count))
    assert by_pack(found, found.rows) == [[1, 0], [2]]


def test_longer_rows_are_an_error_with_their_place():
    message = (
        r"read.pack: expected at most 6 values of `x` in a row, got 8 in row 2; 2 of 12 rows are longer "
        r"\(`longer: truncate`, `split` or `drop`\)"
    )
    with pytest.raises(SpecError, match=message):
        planned(LENGTHS, length=6)
    plan = planned(LENGTHS, length=6, longer="drop").plan(1)
    assert (plan.rows, plan.pieces, plan.longer, plan.empty) == (12, 9, 2, 1)
    with pytest.raises(
        SpecError, match="longer: expected features of equal lengths in each row to split, got x, y"
    ):
        planned([[9, 2], [8, 2]], length=8, longer="split")


def test_empty_packs_make_the_last_batch_whole():
    order = planned(LENGTHS, length=8)
    assert order.count == 6
    assert order.padded(Batch(size=4)) == 8
    assert order.padded(Batch(size=4, drop_remainder=True)) == 6
    found = order.at(0, np.array([5, 6, 7]))
    assert found.counts.tolist() == [2, 0, 0]


def test_no_rows_make_no_packs():
    order = planned(np.zeros((1, 0), int), seed=1, length=8)
    assert order.count == 0
    assert order.at(0, np.arange(2)).counts.tolist() == [0, 0]
