"""The order in lanes: exact, pinned, and whole parts of the files for each worker."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec import SpecError
from recordspec.order.global_order import Share
from recordspec.order.lane_order import LaneOrder, check_lanes
from selection import scaled

# A training outlives a release: these must not change.
GOLDEN = {
    (10, 7, 3): (4, 2, [10, 3, 16, 8, 11, 4, 15, 9, 13, 6]),
    (1000, 1000, 999): (60, 16, [750, 104, 1709, 1056, 1409, 715, 550, 2304, 607, 1955]),
}


@pytest.mark.parametrize("files", GOLDEN)
def test_orders_are_those_of_all_releases(files):
    lanes, window, rows = GOLDEN[files]
    assert LaneOrder(np.array(files), lanes, window, 17).rows_at(np.arange(10)).tolist() == rows


@given(
    files=st.lists(st.integers(0, 400), min_size=1, max_size=30).filter(any),
    lanes=st.integers(1, 70),
    window=st.integers(1, 40),
    key=st.integers(0, (1 << 64) - 1),
)
@settings(max_examples=scaled(80), deadline=None)
def test_every_row_comes_once_and_any_position_alone(files, lanes, window, key):
    order, count = LaneOrder(np.array(files), lanes, window, key), sum(files)
    every = order.rows_at(np.arange(count))
    assert sorted(every.tolist()) == list(range(count))
    some = np.random.default_rng(count).integers(0, count, 20)
    assert order.rows_at(some).tolist() == every[some].tolist()
    # a lane is a range of the files laid end to end, and a window a range of it
    ends = np.cumsum(files)
    for lane in range(min(lanes, count)):
        own = every[lane::lanes]
        for first in range(0, len(own), window):
            some = np.sort(own[first : first + window])
            of_files = np.searchsorted(ends, some, "right")
            breaks = (np.diff(some) != 1) | (np.diff(of_files) != 0)
            assert breaks.sum() == len(np.unique(of_files)) - 1
        # what a lane reads of a file without a gap
        of_files = np.searchsorted(ends, own, "right")
        wanted = {file: own[of_files == file].max() + 1 for file in np.unique(of_files).tolist()}
        assert order.stops_of(own).tolist() == [wanted[file] for file in of_files.tolist()]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60])
def test_workers_read_whole_lanes_and_together_each_file_once(workers):
    files, lanes, batch = np.full(200, 97), 60, 60
    order = LaneOrder(files, lanes, 8, 5)
    share = [
        Share(rows=int(files.sum()), batch=batch, worker=worker, workers=workers) for worker in range(workers)
    ]
    read = [order.rows_at(one.positions(0, one.steps)) for one in share]
    assert sorted(np.concatenate(read).tolist()) == list(range(files.sum()))
    by_file = [len(np.unique(rows // 97)) for rows in read]
    assert sum(by_file) <= len(files) + lanes  # a cut file is read in two parts


def test_neighbours_are_of_other_windows_and_lanes_are_turned():
    order = LaneOrder(np.full(240, 1000), 240, 250, 9)
    first = order.rows_at(np.arange(240)) % 1000 % 250
    assert len(np.unique(first)) > 100  # not the same place of each file
    lane = order.rows_at(np.arange(0, 240 * 250, 240)) % 1000
    assert np.corrcoef(lane[:-1], lane[1:])[0, 1] < 0.2
    other = LaneOrder(np.full(240, 1000), 240, 250, 10)
    assert (order.rows_at(np.arange(5000)) == other.rows_at(np.arange(5000))).mean() < 0.01


def test_workers_without_whole_lanes_are_refused():
    check_lanes(Share(rows=100, batch=12, workers=2, replicas=3), 240, ("workers",))
    for workers, batch, those in ((7, 21, "1, 3"), (8, 12, "1, 2, 3, 4, 6, 12")):
        with pytest.raises(SpecError) as error:
            check_lanes(Share(rows=100, batch=batch, workers=workers), 240, ("workers",))
        assert str(error.value) == (
            f"workers: expected as many workers as divide 240 lanes and a batch of {batch}: {those}, "
            f"got {workers}"
        )
