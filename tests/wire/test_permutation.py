"""The permutation that is the order of an epoch: exact, uniform, and the same for ever."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from recordspec.wire import native
from recordspec.wire.permutation import mixed, permuted

# A dataset and a training outlive a release: these must not change.
GOLDEN = {
    (2, 0, 0): [0, 1],
    (5, 17, 0): [4, 2, 3, 1, 0],
    (5, 17, 1): [2, 1, 3, 4, 0],
    (10, 1 << 63, 3): [1, 0, 9, 4, 2, 6, 3, 5, 8, 7],
    (5000, 17, 0): [4488, 4442, 1465, 3073, 2695, 4663, 4218, 3526, 4412, 3239],
    (1 << 40, 17, 2): [
        856800499247,
        768415040578,
        571022333234,
        165812461290,
        903692828367,
        726701482399,
        195098980031,
        246163609154,
        769940225212,
        533048614683,
    ],
}


def order(count: int, seed: int = 17, epoch: int = 0) -> list[int]:
    return permuted(np.arange(count), count, mixed(seed, epoch)).tolist()


@pytest.mark.parametrize(("count", "seed", "epoch"), GOLDEN)
def test_orders_are_those_of_all_releases(codec, count, seed, epoch):
    assert (
        permuted(np.arange(min(count, 10)), count, mixed(seed, epoch)).tolist() == GOLDEN[count, seed, epoch]
    )


def test_keys_are_those_of_all_releases():
    assert [mixed(0), mixed(17, 0), mixed(17, 1), mixed(-1, 2)] == [
        16294208416658607535,
        6733223810566004848,
        6723047646547389893,
        5886236958684341581,
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 17, 255, 256, 257, 4095, 4096, 65_537])
def test_every_number_comes_once(codec, count):
    if count > 5000 and native.library() is None:
        pytest.skip("the NumPy reference takes a second for so many")
    assert sorted(order(count)) == list(range(count))


def test_the_library_and_the_reference_agree_up_to_the_largest_count(monkeypatch):
    rng = np.random.default_rng(1)
    for count in (3, 100, 4096, 10**6 + 3, 1 << 40, (1 << 62) - 1, 1 << 62):
        places = rng.integers(0, count, 500)
        fast = permuted(places, count, mixed(count))
        with monkeypatch.context() as patch:
            patch.setattr(native, "library", lambda: None)
            assert permuted(places, count, mixed(count)).tolist() == fast.tolist()
        assert 0 <= fast.min() <= fast.max() < count


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_all_orders_of_few_are_equally_likely(count):
    epochs, known = 12_000, {each: number for number, each in enumerate(permutations(range(count)))}
    seen = np.bincount(
        [known[tuple(order(count, epoch=epoch))] for epoch in range(epochs)], minlength=len(known)
    )
    assert chi_square(seen) < 1.35 if count > 4 else chi_square(seen) < 3


def test_every_number_is_as_likely_at_every_place_and_after_every_other():
    count, epochs = 64, 4000
    placed, followed = np.zeros((count, count)), np.zeros(count)
    moved, before = np.zeros((count, count)), np.arange(count)
    for epoch in range(epochs):
        now = permuted(np.arange(count), count, mixed(3, epoch))
        placed[np.arange(count), now] += 1
        np.add.at(followed, np.diff(now) % count, 1)
        moved[np.argsort(before), np.argsort(now)] += 1
        before = now
    assert chi_square(placed) < 1.1
    assert chi_square(moved) < 1.1  # from one epoch to the next
    assert chi_square(followed[1:]) < 1.8


def chi_square(counts: np.ndarray) -> float:
    """Over its degrees of freedom: 1 by chance, with a deviation of sqrt(2 / freedom)."""
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2 / expected).sum() / (counts.size - 1))
