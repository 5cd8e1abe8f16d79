"""An order of an epoch in lanes, in which a worker reads files from their beginning to their end.

The files, in an order by (seed, epoch), are laid end to end and cut into lanes of equally many rows; the
first lanes have one row more, if the rows do not divide. The numbers of the lanes are drawn by (seed, epoch),
so that a batch of fewer rows than lanes has parts from everywhere. Row i of lane l is at position
`i * lanes + l` of the epoch. If the number of workers divides the lanes and the batch, workers have whole
lanes, and together read every byte once. A file that two lanes share is read in two parts.

Within a lane, rows are permuted in windows. Each batch has rows of all lanes, and a lane is within one window
at any time: rows that are read together lie in as many ranges of files as there are lanes.

Trainings outlive a release: tests pin the order.
"""

from __future__ import annotations

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.order.global_order import Share
from recordspec.wire.arrays import Ints, offsets
from recordspec.wire.hashes import splitmix64
from recordspec.wire.permutation import mixed, permuted

# In the place of the number of a window, for the permutation of the lanes.
_OF_LANES = -1


class LaneOrder:
    """The order of the rows of an epoch.

    Args:
        rows: the rows of each file, int64 `[f]`.
        lanes: the number of lanes.
        window: the rows of a lane that are permuted together.
        key: selects the order of the epoch.
    """

    def __init__(self, rows: Ints, lanes: int, window: int, key: int) -> None:
        self._lanes, self._window, self._key = lanes, window, key
        self._files = files = permuted(np.arange(len(rows)), len(rows), mixed(key, 0))
        self._ends, self._first = np.cumsum(rows[files]), offsets(rows)
        self._shift = self._first[:-1][files] - (self._ends - rows[files])
        drawn = permuted(np.arange(lanes), lanes, mixed(key, _OF_LANES))
        least, more = divmod(int(rows.sum()), lanes)
        self._sizes = least + (np.arange(lanes) < more)
        self._bounds = offsets(self._sizes[drawn])
        self._begin = np.empty(lanes, np.int64)  # of each lane, among the files laid end to end
        self._begin[drawn] = self._bounds[:-1]

    def rows_at(self, positions: Ints) -> Ints:
        numbers, lanes = np.divmod(positions, self._lanes)
        sizes = self._sizes[lanes]
        windows, within = np.divmod(numbers, self._window)
        bounds = np.minimum(sizes - windows * self._window, self._window)
        # the permutation of a window is one for all lanes, which are turned against each other
        keys = (windows.astype(np.uint64) << np.uint64(32)) + lanes.astype(np.uint64)
        turned = splitmix64(keys ^ np.uint64(mixed(self._key, 1))) % bounds.astype(np.uint64)
        places = (self._permuted(windows, within, bounds) + turned.astype(np.int64)) % bounds
        places += windows * self._window + self._begin[lanes]
        rows: Ints = places + self._shift[np.searchsorted(self._ends, places, "right")]
        return rows

    def stops_of(self, rows: Ints) -> Ints:
        """The row after the last one that the lane of each row has in its file, int64 `[n]`."""
        file = np.searchsorted(self._first, rows, "right") - 1
        turn = np.argsort(self._files)[file]  # where the file is among the files of the epoch
        places = rows - self._shift[turn]
        ends = self._bounds[np.searchsorted(self._bounds, places, "right")]
        stops: Ints = rows + np.minimum(ends, self._ends[turn]) - places
        return stops

    def _permuted(self, windows: Ints, within: Ints, bounds: Ints) -> Ints:
        """The places within windows, permuted."""
        places = np.empty_like(within)
        kinds = windows * (self._window + 1) + bounds  # the last window has two sizes
        order = np.argsort(kinds, kind="stable")
        found, firsts = np.unique(kinds[order], return_index=True)
        for kind, own in zip(found.tolist(), np.split(order, firsts[1:]), strict=True):
            window, size = divmod(kind, self._window + 1)
            places[own] = permuted(within[own], size, mixed(self._key, 2 + window))
        return places


def check_lanes(share: Share, lanes: int, path: tuple[str, ...]) -> None:
    """Raises SpecError for workers that do not have whole lanes, with the numbers of workers that have."""
    parts = share.parts
    if lanes % parts or share.batch % parts:
        most = min(lanes, share.batch)
        those = [n for n in range(1, most + 1) if lanes % n == 0 and share.batch % n == 0]
        expected = f"as many workers as divide {lanes} lanes and a batch of {share.batch}: "
        expected += ", ".join(map(str, those))
        raise SpecError(Problem(path=path, expected=expected, got=str(parts)))
