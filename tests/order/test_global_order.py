"""The order of an epoch: exact, pinned, and the same global batches for any number of workers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec import SpecError
from recordspec.order.global_order import Share, check_share, permutation
from selection import scaled

# A dataset and a training outlive a release: these must not change.
GOLDEN = {
    (10, None): [8, 2, 5, 3, 4, 1, 7, 6, 0, 9],
    (10, 4): [6, 8, 9, 3, 4, 2, 5, 0, 7, 1],
    (40_000, 256): [26688, 20388, 23653, 31023, 20442, 27144, 17684, 18087, 10287, 37824],
}


def blocks_of(rows: int, size: int | None) -> np.ndarray | None:
    if size is None:
        return None
    sizes = np.full(-(-rows // size), size)
    sizes[-1] = rows - (len(sizes) - 1) * size
    return sizes


@pytest.mark.parametrize(("rows", "size"), GOLDEN)
def test_orders_are_those_of_all_releases(rows, size):
    order = permutation(rows, 17, 2, blocks_of(rows, size))
    assert order.rows_at(np.arange(10)).tolist() == GOLDEN[rows, size]


@given(
    st.integers(1, 3000),
    st.sampled_from([None, 1, 7, 256, 20_000]),
    st.integers(-5, 1 << 70),
    st.integers(0, 9),
)
@settings(max_examples=scaled(60), deadline=None)
def test_every_row_comes_once_and_any_position_alone(rows, size, seed, epoch):
    order = permutation(rows, seed, epoch, blocks_of(rows, size))
    every = order.rows_at(np.arange(rows))
    assert sorted(every.tolist()) == list(range(rows))
    some = np.random.default_rng(rows).integers(0, rows, 20)
    assert order.rows_at(some).tolist() == every[some].tolist()


def test_without_a_seed_it_is_the_order_of_the_files():
    assert permutation(5, None, 3, None).rows_at(np.array([4, 1])).tolist() == [4, 1]


def test_blocks_mix_the_rows_of_a_window():
    rows, size = 200_000, 256
    order = permutation(rows, 1, 0, blocks_of(rows, size)).rows_at(np.arange(rows))
    blocks = order // size
    assert len(np.unique(blocks[:16_384])) <= 65  # those of one window
    neighbours = (blocks[1:] == blocks[:-1]).mean()
    assert neighbours < 3 / 64  # and no more alike than by chance among 64 blocks


@given(
    rows=st.integers(1, 60),
    batch=st.integers(1, 20),
    workers=st.integers(1, 5),
    replicas=st.integers(1, 3),
    drop=st.booleans(),
    begin=st.integers(0, 20),
    together=st.integers(1, 4),
)
@settings(max_examples=scaled(300), deadline=None)
def test_shares_are_every_position_once(rows, batch, workers, replicas, drop, begin, together):
    def share(worker: int) -> Share:
        return Share(
            rows=rows, batch=batch, drop_remainder=drop, worker=worker, workers=workers, replicas=replicas
        )

    steps, parts = share(0).steps, workers * replicas
    begin = min(begin, steps)
    assert steps == (rows // batch if drop else -(-rows // batch))
    for step in range(begin, steps, together):
        stop = min(step + together, steps)
        wanted = np.arange(step * batch, min(stop * batch, rows))
        given_out = [share(worker).positions(step, stop) for worker in range(workers)]
        assert sorted(np.concatenate(given_out).tolist()) == wanted.tolist()
        for worker, positions in enumerate(given_out):
            of_step = positions // batch
            assert (np.diff(of_step) >= 0).all()
            if replicas == 1:
                assert (positions % batch % workers == worker).all()
                assert (
                    share(worker).sizes(step, stop).tolist()
                    == np.bincount(of_step - step, minlength=stop - step).tolist()
                )
            elif batch % parts == 0 and (step + 1) * batch <= rows:
                first = positions[of_step == step]
                wanted_parts = np.repeat(np.arange(replicas) + worker * replicas, batch // parts)
                assert (first % batch % parts).tolist() == wanted_parts.tolist()


def test_a_worker_without_rows_is_refused():
    for last, workers in ((1, 2), (3, 4)):
        with pytest.raises(
            SpecError, match=f"expected a row of every batch for each worker, got {last} for {workers}"
        ):
            check_share(Share(rows=20 + last, batch=10, workers=workers), ("workers",))
        check_share(Share(rows=20 + last, batch=10, workers=workers, drop_remainder=True), ("workers",))
    with pytest.raises(SpecError, match=r"got 2 for 3 \(a larger batch\)"):
        check_share(Share(rows=20, batch=2, workers=3), ("workers",))
    with pytest.raises(SpecError, match="expected whole batches of 10 for 2 replicas, got a last one of 3"):
        check_share(Share(rows=13, batch=10, replicas=2), ("workers",))
