"""The order of a mixture: exact shares at every position, each pass once, and pinned."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recordspec.order.mix_options import MixOptions, MixturePlan
from recordspec.order.mixture_order import (
    MOST_WEIGHT,
    MixtureOrder,
    SplitTree,
    UnitOrder,
    UnitStage,
    _keys,
    integer_weights,
)
from recordspec.schema.options import from_python
from recordspec.wire.permutation import mixed
from selection import scaled

WEIGHTS = st.one_of(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.builds(
        lambda seed, count, sigma: np.random.default_rng(seed).lognormal(0, sigma, count).tolist(),
        st.integers(0, 1 << 30),
        st.integers(1, 1000),
        st.sampled_from([0.1, 1.0, 3.0]),
    ),
    st.builds(lambda count: (0.5 ** np.arange(count)).tolist(), st.integers(1, 30)),
)

# The rows of an epoch, and the first of epoch 2.
IN_LANES = (70, [36, 5, 23, 12, 36, 19, 17, 7, 37, 29, 25, 4, 22, 39, 9, 18, 16, 38, 0, 28])


def whole(weights: list[float]) -> tuple[int, ...]:
    return integer_weights([Fraction(str(weight)) for weight in weights])


def order_of(weights, room=None) -> UnitOrder:
    return UnitOrder([UnitStage(first=0, weights=tuple(weights))], room or [None] * len(weights))


# A dataset and a training outlive a release: these must not change.
def test_orders_are_those_of_all_releases():
    units = order_of((3, 1, 1))
    assert units.at(np.arange(10))[0].tolist() == [0, 2, 0, 1, 0, 0, 2, 0, 1, 0]
    for alone, wanted in (
        (False, [1, 3, 4, 12, 11, 2, 14, 5, 2, 8, 6, 0]),
        (True, [14, 12, 14, 13, 3, 2, 5, 6, 8, 11, 8, 7]),
    ):
        rows = np.array([7, 5, 3])
        order = MixtureOrder(units=units, rows=rows, seed=17, epoch=2, epoch_rows=12, batch=4, alone=alone)
        assert order.rows_at(np.arange(12)).tolist() == wanted


@given(WEIGHTS, st.integers(0, 10**12))
@settings(max_examples=scaled(40), deadline=None)
@example([1, 0.5, 4.6e-8], 10**12)
@example([1000.0] + [1.0] * 999, 10**12)
def test_no_dataset_is_more_than_two_units_from_its_share(weights, start):
    weights = whole(weights)
    tree, total = SplitTree(weights), sum(weights)
    assert total < MOST_WEIGHT
    positions = np.arange(start, start + 2000)
    datasets, units = tree.at(positions)
    for dataset, position, unit in zip(datasets.tolist(), positions.tolist(), units.tolist(), strict=True):
        # in integers: floats of 10**12 have no digits left; at its own unit, and just after
        assert abs(unit * total - weights[dataset] * position) <= 2 * total
        assert abs((unit + 1) * total - weights[dataset] * (position + 1)) <= 2 * total
    before, after = tree.counts(start), tree.counts(start + 2000)
    assert sum(before) == start
    for count, weight in zip(before, weights, strict=True):  # also of those that are not drawn here
        assert abs(count * total - weight * start) <= 2 * total
    drawn = np.bincount(datasets, minlength=len(weights)).tolist()
    assert drawn == [late - early for early, late in zip(before, after, strict=True)]
    for dataset in np.unique(datasets).tolist():
        own = units[datasets == dataset]
        assert own.tolist() == list(range(before[dataset], after[dataset]))
    some = dict(zip(datasets[::97].tolist(), units[::97].tolist(), strict=True))
    found = tree.positions(some)
    for dataset, unit in some.items():
        assert tree.at(np.array([found[dataset]])) == (dataset, unit)


def test_a_small_weight_has_its_units():
    weights = whole([1, 0.5, 4.6e-8])
    assert weights == (500_000_000, 250_000_000, 23)
    assert SplitTree(weights).counts(10**12)[2] == round(10**12 * 23 / sum(weights))


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 30)), min_size=1, max_size=9),
    st.lists(st.integers(1, 60), max_size=2),
    st.randoms(use_true_random=False),
)
@settings(max_examples=scaled(150), deadline=None)
def test_a_dataset_without_room_leaves_and_others_go_on(datasets, lengths, random):
    count, room = len(datasets), [most for _, most in datasets]
    firsts = np.cumsum([0, *lengths]).tolist()
    stages = [
        UnitStage(first=first, weights=tuple(random.randint(0, 9) for _ in range(count)) or (1,))
        for first in firsts
    ]
    order = UnitOrder(stages, room)
    assert order.units is not None
    assert order.units <= sum(room)
    if not order.units:
        return
    positions = np.arange(order.units)
    drawn, units = order.at(positions)
    counts = [0] * count
    for position, (dataset, unit) in enumerate(zip(drawn.tolist(), units.tolist(), strict=True)):
        stage = max(number for number, first in enumerate(firsts) if first <= position)
        assert stages[stage].weights[dataset]  # only those that a stage names
        assert unit == counts[dataset] < room[dataset]
        assert order.position(dataset, unit) == position
        if position % 7 == 0:
            assert order.counts(position) == counts
        counts[dataset] += 1
    # nothing is left that the stage of the end could read
    last = max(number for number, first in enumerate(firsts) if first <= order.units)
    assert all(
        drawn == most or not weight
        for drawn, most, weight in zip(counts, room, stages[last].weights, strict=True)
    )
    assert all(order.position(dataset, drawn) is None for dataset, drawn in enumerate(counts))


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 50)), min_size=1, max_size=6),
    st.integers(1, 9),
    st.integers(1, 60),
    st.sampled_from([0, -3, 1 << 40]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=scaled(80), deadline=None)
def test_each_pass_of_a_dataset_has_each_row_once(datasets, batch, steps, seed, alone, in_blocks):
    weights, rows = zip(*datasets, strict=True)
    units = order_of(weights)
    blocks = None
    if in_blocks:
        blocks = [np.diff([*range(0, count, 4), count]) for count in rows]
    firsts = np.cumsum([0, *rows])
    found: list[list[int]] = [[] for _ in rows]
    sequence = []
    for epoch in range(3):
        order = MixtureOrder(
            units=units,
            rows=np.array(rows),
            seed=seed,
            epoch=epoch,
            epoch_rows=steps * batch,
            batch=batch,
            alone=alone,
            blocks=blocks,
        )
        positions = np.arange(steps * batch)
        every = order.rows_at(positions)
        sequence += every.tolist()
        some = np.random.default_rng(batch).permutation(positions)[:30]
        assert order.rows_at(some).tolist() == every[some].tolist()
        drawn, numbers = order.units_at(positions)
        for dataset in np.unique(drawn).tolist():
            own = np.flatnonzero(drawn == dataset)
            own = own[np.argsort(numbers[own])]
            found[dataset] += every[own].tolist()
        if alone:
            assert all(len(set(drawn[step : step + batch].tolist())) == 1 for step in positions[::batch])
    for dataset, own in enumerate(found):
        first, stop = int(firsts[dataset]), int(firsts[dataset + 1])
        for begin in range(0, len(own), stop - first):
            one_pass = own[begin : begin + stop - first]
            assert len(set(one_pass)) == len(one_pass)
            assert all(first <= row < stop for row in one_pass)


def test_lanes_are_those_of_all_releases():
    options = from_python(MixOptions, {"weights": {"a": 3, "b": 1}, "end": "all"})
    plan = MixturePlan(names=("a", "b"), rows=(30, 11), options=options, batch=5, lanes=10)
    files = [np.array([10, 20]), np.array([11])]
    order = plan.order_in_lanes(7, 2, files, 3)
    assert (plan.epoch_rows, order.rows_at(np.arange(20)).tolist()) == IN_LANES


def test_keys_are_those_of_mixed():
    for seed, dataset, number in ((0, 0, 0), (-5, -1, 3), (1 << 70, 4, 1 << 40)):
        assert int(_keys(seed, np.array([dataset]), np.array([number]))[0]) == mixed(seed, dataset, number)


def test_weights_are_exact_where_integers_have_them():
    assert whole([0.7, 0.2, 0.1]) == (7, 2, 1)
    assert whole([3, 1]) == (3, 1)
    assert integer_weights([Fraction(0), Fraction(4), Fraction(6)]) == (0, 2, 3)
    rounded = integer_weights([Fraction(1, 3), Fraction(1 << 40), Fraction(0)])
    assert rounded == (1, MOST_WEIGHT - 5, 0)
    assert sum(rounded) < MOST_WEIGHT


def test_the_weights_of_options_are_those_of_all_releases():
    def weights(**options):
        plan = MixturePlan(
            names=("a", "b", "c"), rows=(10**9, 1000, 7), options=from_python(MixOptions, options), batch=4
        )
        return [stage.weights for stage in plan.stages]

    assert weights() == [(1, 1, 1)]
    assert weights(weights={"a": 0.5, "b": 3, "c": 1e-3}) == [(500, 3000, 1)]
    assert weights(repetitions={"b": 2.5}) == [(1_000_000_000, 2500, 7)]
    assert weights(temperature=1) == [(1_000_000_000, 1000, 7)]
    assert weights(temperature=3) == [(2122201997, 21222019, 4059626)]
    stages = [{"from": 0, "weights": {"a": 0.1}}, {"from": 5, "weights": {"b": 2, "c": 4}}]
    assert weights(stages=stages) == [(1, 0, 0), (0, 1, 2)]
