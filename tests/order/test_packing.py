"""Packs: every row once in a pass, within the length of a pack, pinned, and a function of the position."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec import SpecError
from recordspec.order.mix_options import MixOptions, MixturePlan
from recordspec.order.packing import PackedMixture, PackOrder, PacksInLanes, Pieces, RowsInPacks
from recordspec.order.read_options import Batch, Pack
from recordspec.wire.arrays import offsets
from selection import scaled

LENGTHS = np.array([[5, 3, 8, 1, 0, 2, 7, 4, 6, 3, 5, 1]])
# A training outlives a release: these must not change. The rows of the first packs of epoch 2, by seed and blocks.
GOLDEN = {
    (None, None): [[2], [6, 3], [8, 5], [0, 1], [10, 9]],
    (17, None): [[6, 11], [10, 9], [7, 3], [2], [0, 1]],
    (17, 4): [[6, 3], [7, 11], [10, 9], [2], [0, 1]],
}

# The rows of the packs of epoch 2 of a mixture of rows, the second dataset's from 12 on.
MIXED_ROWS = [[10, 9], [12, 15], [14, 7], [2], [18, 3], [0, 1]]

# The same in lanes, of the first twelve packs of epoch 2.
IN_LANES = [[34, 33], [10, 13], [30, 27], [32], [12, 11], [31, 29], [], [14], [23], [0, 1], [17], [26]]


def planned(lengths, *, seed=None, size=None, **options) -> PackOrder:
    lengths = np.asarray(lengths)
    names = tuple("xyz"[: len(lengths)])
    blocks = None
    if size is not None:
        blocks = np.diff([*range(0, lengths.shape[1], size), lengths.shape[1]])
    return PackOrder(lengths, names, Pack(**options), seed, blocks)


def by_pack(found: RowsInPacks, values: np.ndarray) -> list[list[int]]:
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


def mixed_rows(lengths, options: MixOptions, *, seed=17, **pack) -> PackedMixture:
    """The packs of a mixture of the rows of datasets of these lengths."""
    made = Pack(**pack)
    pieces = [Pieces(np.asarray(some)[None], ("x",), made) for some in lengths]
    names = tuple("abcde"[: len(pieces)])
    plan = MixturePlan(names=names, rows=tuple(map(len, pieces)), options=options, batch=1)
    firsts = offsets(np.array([len(some) for some in lengths]))[:-1]
    return PackedMixture(pieces, ("x",), made, plan, seed=seed, firsts=firsts)


def test_packs_of_mixed_rows_are_those_of_all_releases():
    options = MixOptions(packs="mixed", weights={"a": 3, "b": 1}, end="all")
    order = mixed_rows([LENGTHS[0], [6, 1, 4, 2, 3, 3, 7]], options, length=8)
    found = order.at(2, np.arange(6))
    assert by_pack(found, found.rows) == MIXED_ROWS


@given(data=st.data())
@settings(max_examples=scaled(100), deadline=None)
def test_every_row_of_a_mixture_comes_once_in_a_pass_and_fits(data):
    draw, length, align = data.draw, data.draw(st.integers(2, 40)), data.draw(st.sampled_from([1, 4]))
    length *= align
    longer = draw(st.sampled_from(["truncate", "drop", "split"]))
    separator, most = draw(st.sampled_from([None, 7])), draw(st.sampled_from([None, 1, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    sizes = draw(st.lists(st.integers(1, 150), min_size=1, max_size=4))
    lengths = [rng.integers(1, 2 * length, size) for size in sizes]
    for some in lengths:
        some[0] = 1  # `drop` leaves a row
    names = tuple("abcd"[: len(sizes)])
    numbers = st.sampled_from([1, 2, 0.5, 0.3, 7, 1.25])
    given_numbers = {name: draw(numbers) for name in names}
    options = MixOptions(packs="mixed", repetitions={name: 1.0 + n for name, n in given_numbers.items()})
    if draw(st.booleans()):
        end = draw(st.sampled_from(["first", "all"]))
        options = MixOptions(packs="mixed", weights=given_numbers, end=end)
    pack = {"length": length, "longer": longer, "align": align, "separator": separator, "most": most}
    try:
        order = mixed_rows(lengths, options, **pack)
    except SpecError:  # an epoch that ends before its first row
        assert options.end == "first"
        return
    counts, held = np.array(order.mixture.counts()), np.array(order.mixture.rows)
    firsts = offsets(np.array(sizes))
    seen: list[dict] = [{} for _ in sizes]
    epochs = draw(st.integers(1, 12))
    for epoch in range(epochs):
        found = order.at(epoch, np.arange(order.count))
        assert found.counts.min() >= 1
        assert most is None or found.counts.max() <= most
        places = found.places(0, align)
        assert (places + found.sizes[0] <= length).all()
        assert (found.sizes >= 1).all()
        datasets = np.searchsorted(firsts, found.rows, "right") - 1
        assert np.bincount(datasets, minlength=len(sizes)).tolist() == counts.tolist()
        for dataset, row, start in zip(
            datasets.tolist(), found.rows.tolist(), found.starts.tolist(), strict=True
        ):
            seen[dataset].setdefault((row, start), []).append(epoch)
        some = rng.integers(0, order.count + 2, 5)
        alone, every = order.at(epoch, some), by_pack(found, found.rows)
        assert by_pack(alone, alone.rows) == [[] if one >= order.count else every[one] for one in some]
    for pieces, read, rows in zip(seen, counts.tolist(), held.tolist(), strict=True):
        times = [len(epochs_of) for epochs_of in pieces.values()]
        least, more = divmod(epochs * read, rows)
        assert set(times) <= {least, least + 1}
        assert sum(times) == epochs * read
        assert len(times) == rows or not least
        assert more or set(times) <= {least}
        if 0 < read <= rows:  # between two passes of a row
            gaps = {later - one for epochs_of in pieces.values() for one, later in pairwise(epochs_of)}
            assert gaps <= {rows // read, -(-rows // read)}


def test_packs_of_mixed_rows_are_full_and_have_rows_of_several_datasets():
    rng = np.random.default_rng(3)
    lengths = [
        np.minimum(rng.lognormal(mean, 0.8, size).astype(np.int64) + 1, 512)
        for mean, size in ((4.5, 20_000), (5.0, 7_000), (3.5, 900))
    ]
    weights = {"a": 0.6, "b": 0.3, "c": 0.1}
    order = mixed_rows(lengths, MixOptions(packs="mixed", weights=weights, end="all"), length=512)
    found = order.at(1, np.arange(order.count))
    full = found.sizes.sum() / (512 * order.count)
    assert full > 0.995
    assert full == pytest.approx(order.plan(1).fill["x"], abs=0.002)
    datasets = np.searchsorted([20_000, 27_000], found.rows, "right")
    several = np.bincount(found.packs, datasets) / found.counts
    assert (several % 1 > 0).mean() > 0.5
    first = order.at(0, np.arange(order.count))
    packs = [{tuple(sorted(pack)) for pack in by_pack(one, one.rows)} for one in (first, found)]
    assert len(packs[0] & packs[1]) < len(packs[0]) / 10


def test_features_with_lengths_of_their_own_are_not_mixed_by_rows():
    made = Pack(length={"x": 8, "y": 8})
    pieces = [Pieces(np.array([[3, 4], [2, 4]]), ("x", "y"), made)]
    options = MixOptions(packs="mixed")
    plan = MixturePlan(names=("a",), rows=(2,), options=options, batch=1)
    message = "mix.packs: expected features of equal lengths in each row, to mix rows, got x, y"
    with pytest.raises(SpecError, match=message):
        PackedMixture(pieces, ("x", "y"), made, plan, seed=1, firsts=np.zeros(1, np.int64))


def in_lanes(lengths, files, *, lanes=3, window=4, **options) -> PacksInLanes:
    lengths, pack = np.asarray(lengths), Pack(**options)
    names = tuple("xyz"[: len(lengths)])
    return PacksInLanes(lengths, names, pack, seed=17, files=np.array(files), lanes=lanes, window=window)


def test_packs_in_lanes_are_those_of_all_releases():
    order = in_lanes(np.tile(LENGTHS, 3), [7, 12, 0, 17], length=8)
    found = order.at(2, np.arange(12))
    assert by_pack(found, found.rows) == IN_LANES


@given(data=st.data())
@settings(max_examples=scaled(100), deadline=None)
def test_every_row_comes_once_in_its_lane(data):
    draw, length = data.draw, data.draw(st.integers(1, 40))
    files = draw(st.lists(st.integers(0, 60), min_size=1, max_size=8))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    longer = draw(st.sampled_from(["truncate", "drop", "split"]))
    lengths = rng.integers(0, 2 * length, (1, sum(files)))
    lanes, window = draw(st.integers(1, 9)), draw(st.integers(1, 30))
    try:
        order = in_lanes(lengths, files, lanes=lanes, window=window, length=length, longer=longer)
    except SpecError:  # a lane without packs
        assert (lengths[0] > 0).sum() < 20 * lanes
        return
    assert order.count % lanes == 0
    of_epochs = []
    for epoch in (0, 1, 5):
        found = order.at(epoch, np.arange(order.count))
        values = np.zeros(sum(files), np.int64)
        np.add.at(values, found.rows, found.sizes[0])
        kept = {"truncate": np.minimum(lengths[0], length), "split": lengths[0]}.get(
            longer, np.where(lengths[0] > length, 0, lengths[0])
        )
        assert (values == kept).all()
        assert (found.places(0, 1) + found.sizes[0] <= length).all()
        pieces = list(zip(found.rows.tolist(), found.starts.tolist(), strict=True))
        assert len(set(pieces)) == len(pieces) == order.pieces
        of_epochs.append(dict(zip(pieces, (found.packs % lanes).tolist(), strict=True)))
        some = rng.integers(0, order.count + 2, 5)
        alone, every = order.at(epoch, some), by_pack(found, found.rows)
        assert by_pack(alone, alone.rows) == [[] if one >= order.count else every[one] for one in some]
    # a lane has the same pieces in all epochs, which are near each other
    assert of_epochs[0] == of_epochs[1] == of_epochs[2]


def test_a_lane_without_packs_is_refused():
    message = r"shuffle.lanes: expected packs for each of 24 lanes, got none for 1\d \(fewer `lanes`\)"
    with pytest.raises(SpecError, match=message):
        in_lanes(LENGTHS, [12], lanes=24, length=8)
    assert in_lanes(np.zeros((1, 5), int), [5], lanes=24, length=8).count == 0


def test_lanes_have_about_as_many_packs():
    lengths = np.random.default_rng(1).integers(10, 90, (1, 60_000))
    order = in_lanes(lengths, [1000] * 60, lanes=48, window=300, length=512)
    found = order.at(0, np.arange(order.count))
    assert (found.counts == 0).mean() < 0.02
    assert found.counts.reshape(-1, 8).any(1).all()
    assert order.plan(1).fill["x"] == pytest.approx(found.sizes.sum() / (512 * order.count))
    assert order.plan(1).fill["x"] > 0.96
    # those of a batch lie in as many windows as there are lanes
    batch = order.at(0, np.arange(48 * 10))
    assert len(np.unique(batch.rows // 100)) < 48 * 3 * 5
