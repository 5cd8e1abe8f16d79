"""How datasets are mixed: the options of `recordspec.mix` and of a config's `mix:`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import lcm
from typing import Any, Literal

import numpy as np

from recordspec.errors import Path, Problem, SpecError, counted, nearest, one_of
from recordspec.order.mixture_order import (
    MIXTURE_VERSION,
    MixtureInLanes,
    MixtureOrder,
    UnitOrder,
    UnitStage,
    integer_weights,
)
from recordspec.schema.options import to_builtins
from recordspec.wire.arrays import Ints

# `pow` of a float differs in its last bit from one system to the next, and with it the order of rows.
_DIGITS = Context(prec=40)


@dataclass(frozen=True, kw_only=True)
class MixStage:
    """Weights from a step of the training on. Each dataset continues after the last row that was read.

    Attributes:
        from_: the first step, counted from 0 over all epochs.
        weights: the weights by dataset; a dataset that is not named is not read in this stage.
    """

    from_: int
    weights: dict[str, int | float]


@dataclass(frozen=True, kw_only=True)
class MixOptions:
    """How datasets are mixed. At most one of `weights`, `repetitions`, `temperature` and `stages` is given;
    without any, all datasets have the same weight.

    Attributes:
        weights: the relative number of rows of each dataset; or of batches, with `batch: one`. Integers and
            decimals are used exactly if the sum of the smallest integers with their ratios is below 2^31.
        repetitions: how often each dataset is read in an epoch, such as 2 or 0.5; 1 if it is not named.
        temperature: the weight is the number of rows to the power of 1 / temperature: with 1 proportional to
            the rows, and the larger, the more equal.
        cap: the most passes over a dataset in the whole training, for all datasets, or by dataset. A dataset
            that has reached it leaves, and the others go on by their weights.
        end: when an epoch ends. `first`, the default: before a row of a dataset is read a second time. `all`:
            when all rows have been read; rows of small datasets are read again. `without_replacement`: when
            all rows have been read; a dataset without rows leaves, and the others go on by their weights.
            `never`: after `steps`, whatever was read. With `repetitions`, when each dataset is read as often.
        steps: the steps of an epoch, with `end: never`.
        stages: weights by step.
        count: what weights count: `rows`, or `tokens`, the values of the first feature whose rows differ in
            length. With `read.pack`: `packs`, the default, `rows` or `tokens`.
        packs: `mixed` for packs with rows of several datasets. Weights then count rows, unless they count
            tokens, and each epoch has as many rows of a dataset.
        batch: `one` for batches with rows of a single dataset each.
        name_as: the name of a new feature, the dataset of a row: a label, whose classes are the datasets.
    """

    weights: dict[str, int | float] | None = None
    repetitions: dict[str, int | float] | None = None
    temperature: int | float | None = None
    cap: int | float | dict[str, int | float] | None = None
    end: Literal["first", "all", "never", "without_replacement"] | None = None
    steps: int | None = None
    stages: tuple[MixStage, ...] = ()
    count: Literal["rows", "packs", "tokens"] | None = None
    packs: Literal["one", "mixed"] = "one"
    batch: Literal["mixed", "one"] = "mixed"
    name_as: str | None = None

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    def _check(self) -> Iterator[Problem]:
        shares = ("weights", "repetitions", "temperature", "stages")
        several = [name for name in shares if getattr(self, name) not in (None, ())]
        if len(several) > 1:
            yield Problem(path=(several[1],), expected=f"none with `{several[0]}`", got="some")
        for path, number in self._numbers():
            if not 0 < number < math.inf:
                yield Problem(path=path, expected="a number above 0", got=f"{number:g}")
        if self.count is not None and self.repetitions is not None:
            hint = "they say how often all rows of a dataset come"
            yield Problem(path=("count",), expected="none with `repetitions`", got=self.count, hint=hint)
        yield from self._check_end()
        yield from self._check_stages()
        yield from self._check_packs()

    def _check_end(self) -> Iterator[Problem]:
        if self.end == "never" and self.steps is None:
            hint = "it is how long an epoch is"
            yield Problem(path=("steps",), expected="a number with `end: never`", got="none", hint=hint)
        if self.steps is not None and self.end != "never":
            hint = "rows decide how long an epoch is"
            expected = "none without `end: never`"
            yield Problem(path=("steps",), expected=expected, got=str(self.steps), hint=hint)
        if self.steps is not None and self.steps < 1:
            yield Problem(path=("steps",), expected="at least 1", got=str(self.steps))
        if self.repetitions is not None and self.end is not None:
            hint = "an epoch ends when each dataset is read as often"
            expected = "none with `repetitions`"
            yield Problem(path=("end",), expected=expected, got=f"`{self.end}`", hint=hint)
        if self.reads_all:
            name = "repetitions" if self.repetitions is not None else "end: without_replacement"
            for option, hint in (
                ("cap", "it says how often a dataset is read"),
                ("stages", "each epoch starts over, and stages do not"),
                ("batch", "the rows that do not fill a batch would be left out"),
            ):
                if getattr(self, option) not in (None, (), "mixed"):
                    yield Problem(path=(option,), expected=f"none with `{name}`", got="some", hint=hint)

    def _check_packs(self) -> Iterator[Problem]:
        if self.packs != "mixed":
            return
        hint = "each epoch has the same number of rows of each dataset"
        for option in ("cap", "stages", "steps"):
            if getattr(self, option) not in (None, ()):
                yield Problem(path=(option,), expected="none with `packs: mixed`", got="some", hint=hint)
        if self.batch == "one":
            yield Problem(path=("batch",), expected="`mixed` with `packs: mixed`", got="`one`")
        if self.count == "packs":
            yield Problem(path=("count",), expected="`rows` or `tokens` with `packs: mixed`", got="packs")

    def _check_stages(self) -> Iterator[Problem]:
        if self.stages and self.stages[0].from_ != 0:
            got = str(self.stages[0].from_)
            yield Problem(path=("stages", 0, "from"), expected="0, the first step", got=got)
        for number, (stage, following) in enumerate(pairwise(self.stages), 1):
            if following.from_ <= stage.from_:
                expected = f"more than {stage.from_}, the step before"
                yield Problem(path=("stages", number, "from"), expected=expected, got=str(following.from_))
        for number, stage in enumerate(self.stages):
            if not stage.weights:
                yield Problem(path=("stages", number, "weights"), expected="at least one", got="none")

    def _numbers(self) -> Iterator[tuple[Path, float]]:
        """All numbers that are above 0, with their places."""
        for name in ("weights", "repetitions", "cap"):
            if isinstance(given := getattr(self, name), Mapping):
                yield from (((name, dataset), number) for dataset, number in given.items())
        for name in ("temperature", "cap"):
            if isinstance(number := getattr(self, name), int | float):
                yield (name,), number
        for place, stage in enumerate(self.stages):
            for dataset, number in stage.weights.items():
                yield ("stages", place, "weights", dataset), number

    @property
    def is_anew(self) -> bool:
        """Whether each epoch begins with the first unit of the mixture again."""
        return self.reads_all or self.packs == "mixed"

    @property
    def reads_all(self) -> bool:
        """Whether an epoch ends when each dataset has been read as often as it may be."""
        return self.repetitions is not None or self.end == "without_replacement"

    def check_names(self, names: Sequence[str]) -> Iterator[Problem]:
        """Yields the problems of options that name other datasets, or not all."""
        by_name: dict[Path, Mapping[str, Any]] = {
            (option,): given
            for option in ("weights", "repetitions", "cap")
            if isinstance(given := getattr(self, option), Mapping)
        }
        by_name |= {("stages", place, "weights"): stage.weights for place, stage in enumerate(self.stages)}
        for path, given in by_name.items():
            for name in given:
                if name not in names:
                    hint = nearest(name, names)
                    yield Problem(path=(*path, name), expected=one_of(names), got=f"`{name}`", hint=hint)
        if self.weights is not None and (lacking := [name for name in names if name not in self.weights]):
            expected = "a weight for each dataset"
            yield Problem(path=("weights",), expected=expected, got=f"none for {', '.join(lacking)}")

    def problems_in_lanes(self) -> Iterator[Problem]:
        """Yields the problems of options that a mixture in lanes does not have."""
        expected, hint = "none with `shuffle.lanes`", "`shuffle: {global: true}` has it, for local files"
        for option in ("repetitions", "cap", "stages"):
            if getattr(self, option) not in (None, ()):
                yield Problem(path=(option,), expected=expected, got="some", hint=hint)
        if self.end == "without_replacement" or self.batch == "one":
            option, got = ("batch", "one") if self.batch == "one" else ("end", self.end)
            expected = "another value with `shuffle.lanes`"
            yield Problem(path=(option,), expected=expected, got=f"`{got}`", hint=hint)
        if self.packs == "mixed":
            yield Problem(path=("packs",), expected="`one` with `shuffle.lanes`", got="`mixed`", hint=hint)

    def order_of(self, names: Sequence[str]) -> dict[str, Any]:
        """What determines which rows of datasets come next, as JSON values."""
        options = to_builtins(replace(self, name_as=None))
        return {"version": MIXTURE_VERSION, "datasets": list(names), **options}


def _exact(number: float) -> Fraction:
    """A number as it is written: 0.7 is 7 / 10."""
    return Fraction(repr(number))


@dataclass(frozen=True, kw_only=True)
class MixturePlan:
    """A mixture of datasets of known sizes.

    Attributes:
        names: the names of the datasets.
        rows: the rows of each dataset.
        options: how they are mixed.
        batch: the rows of a global batch.
        sizes: what weights count, in all rows of each dataset together; None if they count rows.
        lanes: the lanes of each dataset; None if rows are not read in lanes.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    options: MixOptions
    batch: int
    sizes: tuple[int, ...] | None = None
    lanes: int | None = None

    def __post_init__(self) -> None:
        problems = list(self.options.check_names(self.names))
        if self.lanes is not None:
            problems += [problem.under("mix") for problem in self.options.problems_in_lanes()]
            expected = f"at least {self.lanes} rows, one for each lane"
            problems += [
                Problem(path=("mix", name), expected=expected, got=str(rows))
                for name, rows in zip(self.names, self.rows, strict=True)
                if 0 < rows < self.lanes
            ]
        problems += [
            Problem(path=("mix", name), expected=str(self.options.count), got="none")
            for name, rows, size in zip(self.names, self.rows, self.sizes or self.rows, strict=True)
            if rows and not size
        ]
        problems += [
            Problem(path=("mix", name), expected="rows", got="none")
            for name, rows in zip(self.names, self.rows, strict=True)
            if not rows
        ]
        if not self.names:
            problems = [Problem(path=("mix",), expected="at least one dataset", got="none")]
        if problems:
            raise SpecError(problems)
        self.epoch_rows  # noqa: B018  raises for a mixture without an epoch

    @property
    def alone(self) -> bool:
        """Whether units are batches."""
        return self.options.batch == "one"

    @property
    def _unit_rows(self) -> int:
        return self.batch if self.alone else 1

    @cached_property
    def stages(self) -> tuple[UnitStage, ...]:
        """The weights that are used, as integers."""
        options, names = self.options, self.names
        if options.stages:
            unit_steps = 1 if self.alone else self.batch
            return tuple(
                UnitStage(first=stage.from_ * unit_steps, weights=self._weights(stage.weights))
                for stage in options.stages
            )
        if options.temperature is not None:
            power = _DIGITS.divide(Decimal(1), Decimal(repr(options.temperature)))
            of_sizes = [Fraction(_DIGITS.power(Decimal(size), power)) for size in self.sizes or self.rows]
            return (UnitStage(first=0, weights=self._of_units(of_sizes)),)
        if options.repetitions is not None:
            room = [Fraction(most) for most in self._room if most is not None]
            return (UnitStage(first=0, weights=integer_weights(room)),)
        return (UnitStage(first=0, weights=self._weights(options.weights or dict.fromkeys(names, 1))),)

    def _weights(self, weights: Mapping[str, int | float]) -> tuple[int, ...]:
        return self._of_units([_exact(weights.get(name, 0)) for name in self.names])

    def _of_units(self, weights: Sequence[Fraction]) -> tuple[int, ...]:
        """Weights of what `sizes` counts as integer weights of units."""
        sizes = self.sizes or self.rows
        units = [Fraction(rows, size) for rows, size in zip(self.rows, sizes, strict=True)]
        return integer_weights([weight * unit for weight, unit in zip(weights, units, strict=True)])

    @cached_property
    def _room(self) -> list[int | None]:
        """The most units of each dataset: in an epoch, if each epoch starts over, else in the training."""
        options, room = self.options, list[int | None]()
        for name, rows in zip(self.names, self.rows, strict=True):
            if options.repetitions is not None:
                most: float | None = options.repetitions.get(name, 1)
            elif options.end == "without_replacement":
                most = 1
            else:
                most = options.cap.get(name) if isinstance(options.cap, Mapping) else options.cap
            room.append(None if most is None else int(_exact(most) * rows) // self._unit_rows)
        return room

    @cached_property
    def units(self) -> UnitOrder:
        """The dataset of each unit."""
        return UnitOrder(self.stages, self._room)

    @cached_property
    def epoch_rows(self) -> int:
        """The rows of an epoch. Raises SpecError if there is none, or the mixture ends before."""
        end, step = self.options.end or "first", self.batch
        if self.options.reads_all:
            assert self.units.units is not None
            rows = self.units.units
            if not rows:
                raise self._too_short(1)
            return rows
        if self.lanes is not None:
            rows = self._rows_in_lanes(end, self.lanes)
        elif end == "never":
            assert self.options.steps is not None
            rows = self.options.steps * step
        elif end == "first":
            rows = self._first_again() * self._unit_rows // step * step
            if not rows:
                raise self._too_short(step)
        else:
            rows = -(-self._last_new() * self._unit_rows // step) * step
        if self._all_rows is not None and rows > self._all_rows:
            raise self._too_short(rows)
        return rows

    def _rows_in_lanes(self, end: str, lanes: int) -> int:
        """The rows of an epoch in lanes, each of which has equally many."""
        together = lcm(lanes, self.batch)
        if self.options.steps is not None:
            rows, steps = self.options.steps * self.batch, together // self.batch
            if rows % lanes:
                expected = f"a multiple of {steps}, so that {lanes} lanes have equally many rows"
                got = str(self.options.steps)
                raise SpecError(Problem(path=("mix", "steps"), expected=expected, got=got))
            return rows
        numbers, sizes = np.arange(lanes), np.array(self.rows)
        held = sizes // lanes + (numbers[:, None] < sizes % lanes) + self._skipped
        last = held - (end != "first")
        places = self.units.positions({dataset: last[:, dataset] for dataset in range(len(sizes))})
        ends = np.array([place - numbers for place in places.values()])
        if end == "first":
            rows = int(ends.min()) * lanes // together * together
            if rows < together:
                raise self._too_short(together)
            return rows
        return -(-int(ends.max() + 1) * lanes // together) * together

    @cached_property
    def _skipped(self) -> Ints:
        """The units of each dataset before the first of each lane, int64 `[lanes, d]`."""
        return np.array([self.units.counts(lane) for lane in range(self.lanes or 0)])

    @property
    def _all_rows(self) -> int | None:
        return None if self.units.units is None else self.units.units * self._unit_rows

    def _first_again(self) -> int:
        """The number of units before the first that would be of a second pass."""
        found = [
            place
            for dataset, rows in enumerate(self.rows)
            if (place := self.units.position(dataset, rows // self._unit_rows)) is not None
        ]
        # none is read again if all are capped at one pass
        return min(found) if found else self.units.units or 0

    def _last_new(self) -> int:
        """The number of units until each dataset was read."""
        last = 0
        for dataset, rows in enumerate(self.rows):
            units = -(-rows // self._unit_rows)
            room = self._room[dataset]
            place = self.units.position(dataset, (units if room is None else min(units, room)) - 1)
            if place is None:
                ended = self.units.units
                hint = "`end: first`, or a stage that reads it"
                got = f"the last stage, in which `{self.names[dataset]}` has no weight"
                if ended is not None:
                    got = f"the end of all other datasets, before `{self.names[dataset]}` was read"
                raise SpecError(
                    Problem(path=("mix", "end"), expected="all rows of each dataset", got=got, hint=hint)
                )
            last = max(last, place + 1)
        return last

    def _too_short(self, rows: int) -> SpecError:
        """The error of a mixture that ends before an epoch of `rows` rows."""
        there = self._all_rows
        if there is None:
            there = self._first_again() * self._unit_rows
        place = min(range(len(self.rows)), key=lambda dataset: self.rows[dataset])
        short = f"{there:,}, {rows - there:,} too few; the smallest dataset, `{self.names[place]}`, has"
        got = f"{short} {counted(self.rows[place], 'row')}"
        hint = "a higher cap, fewer steps or a smaller batch"
        return SpecError(Problem(path=("mix",), expected=f"{rows:,} rows in an epoch", got=got, hint=hint))

    @property
    def epochs(self) -> int | None:
        """The number of epochs until the datasets have reached their caps; None without an end."""
        if self.options.is_anew or self._all_rows is None:
            return None
        return self._all_rows // self.epoch_rows

    def order(self, seed: int, epoch: int, blocks: Sequence[Ints] | None = None) -> MixtureOrder:
        """The order of an epoch. Raises SpecError for an epoch after the caps.

        Args:
            seed, epoch: the seed of all epochs, and the number of the epoch, from 0.
            blocks: the rows of each block of each dataset; None if rows are not in blocks.
        """
        if self.epochs is not None and epoch >= self.epochs:
            expected = f"an epoch below {self.epochs}, as datasets have reached their `cap`"
            raise SpecError(Problem(path=("epoch",), expected=expected, got=str(epoch)))
        return MixtureOrder(
            units=self.units,
            rows=np.array(self.rows),
            seed=seed,
            epoch=epoch,
            epoch_rows=self.epoch_rows,
            batch=self.batch,
            alone=self.alone,
            again=self.options.is_anew,
            blocks=blocks,
        )

    def order_in_lanes(
        self, seed: int, epoch: int, files: Sequence[Ints] = (), window: int = 1
    ) -> MixtureInLanes:
        """The order of an epoch in lanes.

        Args:
            seed, epoch: as for `order`.
            files: the rows of the files of each dataset; not needed for `MixtureInLanes.places_at`.
            window: the rows of a lane of a dataset that are permuted together.
        """
        return MixtureInLanes(
            units=self.units,
            skipped=self._skipped,
            rows=np.array(self.rows),
            files=files,
            window=window,
            seed=seed,
            epoch=epoch,
            epoch_rows=self.epoch_rows,
        )

    def counts(self, epochs: int = 1) -> list[int]:
        """The rows that are read of each dataset in the first epochs."""
        if self.lanes is not None:
            stops = range(last := self.epoch_rows // self.lanes * epochs, last + self.lanes)
            read: Ints = np.array([self.units.counts(stop) for stop in stops]) - self._skipped
            return [int(count) for count in read.sum(0)]
        rows = self.epoch_rows // self._unit_rows
        if self.options.is_anew:
            return [count * epochs for count in self.units.counts(rows)]
        return [count * self._unit_rows for count in self.units.counts(rows * epochs)]

    def report(self, epochs: int = 1) -> list[dict[str, Any]]:
        """What is read of each dataset in the first epochs: the integers that are used as weights, for each
        stage; the share of what weights count, in the first of them that reads it; the rows that are read, in
        passes; and the rows that the dataset is short by: as many are read again.
        """
        return [
            {
                "dataset": name,
                "rows": rows,
                "weight": ", ".join(str(stage.weights[dataset]) for stage in self.stages),
                "share": self._share(dataset),
                "read": count,
                "passes": round(count / rows, 4),
                "short by": max(0, count - rows),
            }
            for dataset, (name, rows, count) in enumerate(
                zip(self.names, self.rows, self.counts(epochs), strict=True)
            )
        ]

    def _share(self, dataset: int) -> float:
        stage = next((stage for stage in self.stages if stage.weights[dataset]), self.stages[0])
        sizes = [Fraction(size, rows) for size, rows in zip(self.sizes or self.rows, self.rows, strict=True)]
        parts = [weight * size for weight, size in zip(stage.weights, sizes, strict=True)]
        return float(f"{float(parts[dataset] / sum(parts)):.12g}")
