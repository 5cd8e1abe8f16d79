"""Reads an epoch in global order as a tf.data.Dataset.

Python fetches many records at once, and a graph parses them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from recordspec._tf import Dataset, tf
from recordspec.arrays.random_access import KeptBlocks, Rows
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.order.global_order import FileOrder, Permutation, Share, check_share
from recordspec.order.read_options import Read
from recordspec.order.read_plan import Plan
from recordspec.reading.seeds import passes
from recordspec.reading.stages import untuned
from recordspec.reading.transformations import CALLS, drop_iterators_at_exit, map_elements
from recordspec.schema import row_blocks
from recordspec.schema.row_blocks import Handed
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor
from recordspec.wire.arrays import Ints, bytes_in, objects_in

PATH, LANES_PATH = ("read", "shuffle", "global"), ("read", "shuffle", "lanes")


def check(options: Read, plan: Plan) -> None:
    """Raises SpecError, with a hint, for options and files that a global shuffle does not support."""
    hints = {
        "service": "its workers run no Python: shuffle with a buffer",
        "interleave": "the global order determines the next row",
        "cache": "files are mapped into memory",
        "corrupt": "`recordspec repair` writes the intact records",
    }
    usual = Read()
    expected = "none with a global shuffle"
    problems = [
        Problem(path=("read", option), expected=expected, got=f"`{getattr(options, option)}`", hint=hint)
        for option, hint in hints.items()
        if getattr(options, option) != getattr(usual, option)
    ]
    assert options.shuffle is not None
    if options.shuffle.lanes is None:
        problems += problems_of_files(plan, PATH, "; or shuffle with a buffer")
    if problems:
        raise SpecError(problems)


def problems_of_files(plan: Plan, path: tuple[str, ...], otherwise: str = "") -> list[Problem]:
    """The problem of files of which pieces are read, if rows are in an order of other places.

    Args:
        path: the option that needs the order.
        otherwise: another way, for the hint.
    """
    pieces = (one for one in plan.pieces if one.remote is not None or one.compression != "none")
    if (piece := next(pieces, None)) is None:
        return []
    expected, got = "files of this machine", f"`{piece.path}`"
    if piece.remote is None:
        expected, got = "files that are not compressed", f"{piece.compression}: {got}"
    hint = f"`shuffle: {{lanes: 240}}` reads a piece of a file once{otherwise}"
    return [Problem(path=path, expected=expected, got=got, hint=hint)]


class GlobalShuffle:
    """The rows of one worker, in the order of each epoch.

    Args:
        rows: all rows.
        schema: the schema of the features to read.
        seed: the seed of the order.
        share: the part of this worker.
        handed: the arrays to hand over; None to hand over records.
        chunk: the approximate number of rows to fetch together; None for that of `Rows`.
    """

    def __init__(
        self,
        rows: Rows,
        schema: Schema,
        seed: int,
        share: Share,
        handed: tuple[Handed, ...] | None,
        chunk: int | None,
    ) -> None:
        check_share(share, PATH)
        drop_iterators_at_exit()
        self._rows, self._schema, self._seed, self._share = rows, schema, seed, share
        self._handed, self._fetcher = handed, RowFetcher(rows, schema, handed)
        if chunk is None:
            chunk = rows._chunk(self._windows(FileOrder(), 0))
        self._together = max(1, chunk * share.workers // share.batch)
        self._epochs = EpochNumbers()
        self._lock = threading.Lock()
        self._last: tuple[int, Permutation, KeptBlocks | None] | None = None

    def records(self, of_pass: Tensor, skip: Tensor | int) -> Dataset:
        """The records of a pass from global batch `skip` on, string `[k]`: rows, or blocks of them; or tuples
        of `row_blocks.arrays_of`.

        Args:
            of_pass: the seed of the pass, of `seeds.passes`, which identifies its number.
        """
        first = tf.cast(skip, tf.int64)
        count = -(-(self._share.steps - first) // self._together)
        specs = self._fetcher.specs

        def fetched(number: Tensor) -> Tensor | tuple[Tensor, ...]:
            step = first + number * self._together
            # not stateful, as equal arguments give equal records: so iterators can be in checkpoints
            types = [spec.dtype for spec in specs]
            parts = tf.numpy_function(self._fetch, [of_pass, step], types, stateful=False)
            shaped = tuple(tf.ensure_shape(part, spec.shape) for part, spec in zip(parts, specs, strict=True))
            return shaped[0] if self._handed is None else shaped

        return map_elements(tf.data.Dataset.range(count), fetched, CALLS)

    def _fetch(self, of_pass: Any, step: Any) -> list[Any]:
        epoch, first = self._epochs.of(of_pass), int(step)
        positions = self._share.positions(first, min(first + self._together, self._share.steps))
        order, windows = self._order(epoch, int(positions[0]))
        if not self._rows._is_mapped and first + self._together < self._share.steps:
            stop = min(first + 2 * self._together, self._share.steps)
            positions_next = self._share.positions(first + self._together, stop)
            self._rows._expect(order.rows_at(positions_next), order)
        return self._fetcher.fetch(order.rows_at(positions), windows)

    def rows_at(self, epoch: int, positions: Ints) -> Ints:
        """The numbers of the rows at positions of an epoch, int64 `[n]`."""
        last = self._last
        order = last[1] if last is not None and last[0] == epoch else self._permutation(epoch)
        return order.rows_at(positions)

    def datasets_at(self, of_pass: Any, positions: Any) -> Ints:
        """The numbers of the datasets of a mixture at positions of a pass, int64 `[n]`."""
        from recordspec.arrays.mixed_rows import MixedRows

        assert isinstance(self._rows, MixedRows)
        return self._rows.datasets_of(self.rows_at(self._epochs.of(of_pass), positions))

    def _windows(self, order: Permutation, first: int) -> KeptBlocks | None:
        # blocks that are encoded again take no less time with windows
        return None if self._handed is None else self._rows._windows(self._schema, order, first)

    def _permutation(self, epoch: int) -> Permutation:
        return self._rows._in_epoch(epoch, self._seed)

    def _order(self, epoch: int, first: int = 0) -> tuple[Permutation, KeptBlocks | None]:
        """The order of an epoch, and its windows, with the first position that is read."""
        with self._lock:
            last = self._last
            if last is None or last[0] != epoch:
                order = self._permutation(epoch)
                last = self._last = epoch, order, self._windows(order, first)
        return last[1:]


class RowFetcher:
    """Reads rows by their numbers for a graph: their records, or arrays of their values.

    Args:
        rows: all rows.
        schema: the schema of the features to read.
        handed: the arrays to hand over; None to hand over records.

    Attributes:
        specs: the types of what `fetch` returns.
    """

    def __init__(self, rows: Rows, schema: Schema, handed: tuple[Handed, ...] | None) -> None:
        self._rows, self._schema, self._handed = rows, schema, handed
        self._fixed = None if handed is None else row_blocks.fixed_keys(handed)
        self.specs = [tf.TensorSpec([None], tf.string)] if handed is None else row_blocks.array_specs(handed)

    def fetch(self, numbers: Ints, windows: KeptBlocks | None = None) -> list[Any]:
        """Records, string `[n]`, or blocks of them; or the arrays of `row_blocks.arrays_of`. Raises
        RecordError.
        """
        if self._handed is not None:
            return self._arrays(self._handed, numbers, windows)
        if not self._rows._has_blocks:
            return [objects_in(self._rows.records(numbers))]
        taken = self._rows._taken(self._schema, numbers)
        blocks = row_blocks.blocks_of(self._schema, taken.sections(), taken.count, 1)
        return [objects_in(bytes_in(blocks))]

    def _arrays(self, handed: tuple[Handed, ...], numbers: Ints, windows: KeptBlocks | None) -> list[Any]:
        try:
            if self._rows._has_blocks:
                return row_blocks.arrays_of(handed, self._rows._taken(self._schema, numbers, windows))
            records = self._rows._files.records(numbers)
            return row_blocks.arrays_of_records(self._schema, handed, self._fixed, records)
        except RecordError as error:
            if error.row is None:
                raise
            raise RecordError(error.at(self._rows._place(int(numbers[error.row]))).problems) from None


class EpochNumbers:
    """Finds the numbers of passes by their seeds.

    A dataset cannot count its iterations, as Keras makes some iterations that it does not use. A dataset can
    only draw a pair of random numbers in each iteration that is used. The pair of pass n is always the same,
    and identifies the pass.
    """

    def __init__(self) -> None:
        with tf.init_scope():
            # with autotuning, it would wait at exit for its thread, for minutes after minutes of reading
            self._seeds: Iterator[Any] = iter(untuned(passes(0, None)))
        self._known: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def of(self, seeds: Any) -> int:
        """The number of the pass with these seeds."""
        key = seeds.tobytes()
        with self._lock:
            while key not in self._known:
                self._known[next(self._seeds).numpy().tobytes()] = len(self._known)
        return self._known[key]
