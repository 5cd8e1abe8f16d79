"""`recordspec.mix`: a mixture of datasets, which is read like one dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

import numpy as np

from recordspec import config as config_file
from recordspec import html
from recordspec._tf import Dataset
from recordspec.arrays.mixed_rows import MixedRows
from recordspec.arrays.random_access import Rows
from recordspec.config import Config, check_mixture, problems_of_mixed_reading
from recordspec.errors import Problem, SpecError, describe, show_text
from recordspec.locations import AnyPath, Location
from recordspec.order.mix_options import MixOptions, MixturePlan
from recordspec.order.packing import MixedPacks, PackedMixture, Packs, PacksOfDataset, Pieces
from recordspec.order.position import Position
from recordspec.order.read_options import Batch, Read
from recordspec.order.read_plan import Plan, WorkerShard, plan_files
from recordspec.pipeline import Pipeline, _plain, _Tensors
from recordspec.reading import dataset as reading
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.options import from_python, options_of
from recordspec.schema.schema import Schema
from recordspec.store.dataset import StoredDataset
from recordspec.training.fit import Fit, names_of
from recordspec.training.fit_batch import FinishArrays, shown
from recordspec.training.packs import Packing, packable
from recordspec.wire.arrays import Ints
from recordspec.wire.permutation import mixed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recordspec.order.read_options import DatasetOptions

_T = TypeVar("_T")


@overload
def mix(
    datasets: Sequence[Dataset],
    weights: Sequence[float] | None = None,
    *,
    seed: int,
    end: Literal["first", "all"] = "first",
) -> Dataset: ...


@overload
def mix(
    datasets: Mapping[str, Pipeline | AnyPath],
    weights: Mapping[str, float] | None = None,
    *,
    seed: int,
    end: Literal["first", "all", "never", "without_replacement"] | None = None,
    read: Mapping[str, Any] | Read | None = None,
    fit: Mapping[str, Any] | Fit | None = None,
    **options: Any,
) -> Mixture: ...


def mix(
    datasets: Any,
    weights: Any = None,
    *,
    seed: int,
    end: Any = None,
    read: Mapping[str, Any] | Read | None = None,
    fit: Mapping[str, Any] | Fit | None = None,
    **options: Any,
) -> Any:
    """Mixes datasets by weight.

    Pipelines, or the paths of their configs, by name, make a `Mixture`, which is read like a `Pipeline`: with
    `dataset`, `iterate` and the others, from any step on, by any number of workers, in the same order:

        weights = {"books": 3, "wiki": 1}
        mixture = recordspec.mix({"books": "books.yaml", "wiki": "wiki.yaml"}, weights, seed=17)
        model.fit(mixture.dataset("train", batch=256))

    The dataset of a row, and the row, are functions of the seed and the position. At the end of a batch, a
    dataset is at most two rows from its share; the rows within a batch are permuted.

    A sequence of tf.data datasets makes a tf.data dataset, which draws a dataset for each element, and yields
    its next one: `recordspec.reading.mixture.mix`. It neither begins at a step, nor says which rows a step
    had, nor has the same batches for any number of workers.

    Args:
        datasets: pipelines or configs by name; or tf.data datasets.
        weights: the relative frequency of each dataset; equal by default.
        seed: the seed of the order.
        end: when an epoch ends: see `MixOptions`; of tf.data datasets, `first` or `all`.
        read: the options of reading, as in a config, such as `{"batch": 256}`; `shuffle: {"lanes": 240}` is
            the order for datasets in object stores.
        fit: the inputs and targets, as in a config.
        options: the other options of `mix:` in a config: repetitions, temperature, cap, steps, stages, count,
            packs, batch, name_as.

    Raises:
        SpecError: an option is invalid, the datasets have no feature in common, or a feature differs between
            them.
        StoreError: a config cannot be read.

    Example:
        >>> mixture = rs.mix({"points": pipeline}, seed=17, read={"batch": 4})
        >>> [len(batch["x"]) for batch in mixture.iterate("train")]
        [4, 4, 4]
    """
    if not isinstance(datasets, Mapping):
        from recordspec.reading import mixture

        given = {"read": read, "fit": fit, **options}
        if others := [name for name, value in given.items() if value is not None]:
            hint = "a mapping of pipelines has it"
            raise SpecError(
                Problem(path=(others[0],), expected="none for tf.data datasets", got="some", hint=hint)
            )
        return mixture.mix(datasets, weights, seed=seed, end="first" if end is None else end)
    pipelines = {
        str(name): one if isinstance(one, Pipeline) else Pipeline.load(one) for name, one in datasets.items()
    }
    given = options_of(read) if isinstance(read, Read) else dict(read or {})
    shuffle = given.get("shuffle") or {"global": True}
    if not isinstance(shuffle, Mapping) or "seed" in shuffle:
        expected = "`global` or `lanes`, as `seed` is given"
        raise SpecError(Problem(path=("read", "shuffle"), expected=expected, got=describe(shuffle)))
    chosen = from_python(Read, {**given, "shuffle": {**shuffle, "seed": seed}})
    mixed = from_python(MixOptions, {"weights": weights, "end": end, **options})
    fitted = from_python(Fit, fit) if isinstance(fit, Mapping) else fit
    return Mixture(pipelines, mixed, read=chosen, fit=fitted)


class Mixture(Pipeline):
    """A mixture of datasets, which is read like the dataset of one pipeline: see `recordspec.mix`.

    Its schema has the features that all datasets have, and with `name_as`, the dataset of a row.

    Attributes:
        pipelines: the pipelines of the datasets, by name.
        options: how they are mixed.

    Example:
        >>> rs.mix({"points": pipeline}, seed=17)
        Mixture(points)
    """

    def __init__(
        self,
        pipelines: Mapping[str, Pipeline],
        options: MixOptions,
        *,
        read: Read,
        fit: Fit | None = None,
        folder: Location | str = ".",
        description: str = "",
    ) -> None:
        self.pipelines, self.options = dict(pipelines), options
        config = Config(schema="", data="", read=read, fit=fit, description=description)
        mixed = {name: (one.schema, one.data) for name, one in self.pipelines.items()}
        self._common, schema = check_mixture(mixed, options, config)
        super().__init__(config, schema, folder)

    @classmethod
    def load_mixture(
        cls, path: Location, kinds: Mapping[str, type[Feature]] = KINDS, text: str | None = None
    ) -> Mixture:
        """Loads a config with `mix:`; `text` replaces its contents. Raises SpecError, StoreError."""
        config, datasets = config_file.load_mixture(path, kinds, text)
        return cls(
            {name: Pipeline(*one) for name, one in datasets.items()},
            config.mix.options,
            read=config.read,
            fit=config.fit,
            folder=path.parent,
            description=config.description,
        )

    def __repr__(self) -> str:
        return show_text(f"{type(self).__name__}({', '.join(self.pipelines)})")

    def _html(self) -> Iterator[html.Markup]:
        yield html.heading(repr(self))
        yield html.Markup(self.schema._repr_html_())

    # What a pipeline knows of its one dataset.

    @property
    def _stored(self) -> Schema:
        return self._common

    @property
    def _identity(self) -> str:
        identities = [pipeline._identity for pipeline in self.pipelines.values()]
        if len(identities) == 1:
            return identities[0]
        return hashlib.sha256("".join(identities).encode()).hexdigest()

    @property
    def _split_names(self) -> tuple[str, ...]:
        first, *others = (pipeline._split_names for pipeline in self.pipelines.values())
        return tuple(name for name in first if all(name in names for names in others))

    @property
    def _order_options(self) -> dict[str, Any]:
        return {"mix": self.options.order_of(tuple(self.pipelines))}

    def _paths(self, split: str | Sequence[str]) -> tuple[Location, ...]:
        return tuple(path for paths in self._paths_by_name(split).values() for path in paths)

    def _paths_by_name(self, split: str | Sequence[str]) -> dict[str, tuple[Location, ...]]:
        """The files of each dataset."""
        return {name: pipeline._paths(split) for name, pipeline in self.pipelines.items()}

    def _files(self, split: str | Sequence[str]) -> StoredDataset:
        manifests = {pipeline.data: pipeline.manifest for pipeline in self.pipelines.values()}
        return StoredDataset(self._paths(split), manifests, self._common)

    def _plan(self, split: str | Sequence[str], read: Read, share: WorkerShard | None = None) -> Plan:
        return plan_files(self._files(split), share)

    def _opened(self, split: str | Sequence[str], read: Read) -> MixedRows:
        batch = 1 if read.batch is None else read.batch.size
        # packs are mixed, not rows
        options = self.options if read.pack is None else MixOptions()
        sizes = self._sizes(split, read) if read.pack is None else None
        lanes = None if read.shuffle is None else read.shuffle.lanes
        paths = self._paths_by_name(split)
        rows = MixedRows(paths, self._files(split), options, batch, sizes, lanes)._ordered(read)
        assert isinstance(rows, MixedRows)
        if rows.plan.epochs is not None and (read.passes is None or read.passes > rows.plan.epochs):
            raise _too_many_passes(rows.plan, read)
        return rows

    def _sizes(self, split: str | Sequence[str], read: Read) -> tuple[int, ...] | None:
        """The tokens in all rows of each dataset, if weights count them."""
        if self.options.count != "tokens":
            return None
        fit = self.config.fit
        names = self._common.names if fit is None else names_of(fit.inputs)
        shapes = {name: one.value_type.shape for name, one in self._common.names.items()}
        name = next((name for name in names if _is_list(shapes.get(name, ()))), None)
        if name is None:
            expected, got = "an input whose rows differ in length, to count tokens", "none"
            raise SpecError(Problem(path=("mix", "count"), expected=expected, got=got))
        schema, padded = packable(self._common)
        finish = FinishArrays(None, schema, {}, None, None, padded)
        only = replace(read, features=(name,))
        return tuple(
            int(pipeline._lengths(split, only, finish)[name].sum(dtype=np.int64))
            for pipeline in self.pipelines.values()
        )

    def _packing(
        self,
        split: str | Sequence[str],
        read: Read,
        finish: FinishArrays,
        predicate: Callable[..., Any] | None,
        tensors: Callable[[], Dataset] | None = None,
    ) -> tuple[Packing, Callable[[Rows], Packs]]:
        _check_filter(predicate)
        problems = []
        if self.options.name_as is not None:
            problems.append(Problem(path=("mix", "name_as"), expected="none with `read.pack`", got="one"))
        if tensors is not None:
            hint = "`map_fit` changes packs; a `map` of arrays works with `iterate`"
            problems.append(
                Problem(path=("map",), expected="none of tensors in a mixture of packs", got="one", hint=hint)
            )
        if problems:
            raise SpecError(problems)
        assert read.pack is not None
        assert read.shuffle is not None
        seed = read.shuffle.seed
        counted = [pipeline._lengths(split, read, finish) for pipeline in self.pipelines.values()]
        lengths = {name: np.concatenate([one[name] for one in counted]) for name in counted[0]}
        packing = Packing.of(read.pack, finish.fit, lengths, finish.schema)

        def planned(rows: Rows) -> Packs:
            assert isinstance(rows, MixedRows)
            blocks: Sequence[Ints | None] = rows.blocks_by_dataset or [None] * len(counted)
            if self.options.packs == "mixed":
                if rows.blocks_by_dataset is not None:
                    expected, hint = "datasets of the layout `rows`", "a pack would have rows of many blocks"
                    raise SpecError(
                        Problem(path=("mix", "packs"), expected=expected, got="blocks", hint=hint)
                    )
                pieces = self._of_each(packing.pieces, counted)
                plan = self._mixed_units(read, [len(one) for one in pieces], pieces)
                return PackedMixture(
                    pieces, packing.names, packing.pack, plan, seed=seed, firsts=rows.first_rows
                )
            seeds = [mixed(seed, number) for number in range(len(counted))]
            packs: Sequence[PacksOfDataset]
            if rows._lanes is None:
                packs = self._of_each(packing.order, counted, seeds, blocks)
            else:
                lanes, window = rows._lanes
                make = partial(packing.in_lanes, lanes=lanes, window=window)
                packs = self._of_each(make, counted, seeds, rows.files)
            plan = self._mixed_units(read, [one.count for one in packs], packs)
            return MixedPacks(packs, plan, seed, rows.first_rows)

        return packing, planned

    def _of_each(self, make: Callable[..., _T], *arguments: Sequence[Any]) -> list[_T]:
        """What `make` returns for each dataset. Errors name the dataset."""
        made = []
        for name, *some in zip(self.pipelines, *arguments, strict=True):
            try:
                made.append(make(*some))
            except SpecError as error:
                raise SpecError(problem.at(f"`{name}`") for problem in error.problems) from None
        return made

    def _mixed_units(
        self, read: Read, units: Sequence[int], datasets: Sequence[PacksOfDataset | Pieces]
    ) -> MixturePlan:
        """The mixture of so many packs, or rows in packs, of each dataset."""
        mixes_rows = self.options.packs == "mixed"
        count = self.options.count or ("rows" if mixes_rows else "packs")
        counts_units = count == ("rows" if mixes_rows else "packs")
        plan = MixturePlan(
            names=tuple(self.pipelines),
            rows=tuple(units),
            options=self.options,
            batch=1 if read.batch is None or mixes_rows else read.batch.size,
            sizes=None if counts_units else tuple(one.size(count) for one in datasets),
            lanes=None if read.shuffle is None else read.shuffle.lanes,
        )
        if plan.epochs is not None and (read.passes is None or read.passes > plan.epochs):
            raise _too_many_passes(plan, read)
        return plan

    def open(self, split: str | Sequence[str]) -> MixedRows:
        """Opens the rows of all datasets for random access, those of the first dataset first.

        Raises the errors of `Pipeline.open`.
        """
        return self._opened(split, self.config.read)

    def _read(self, options: Mapping[str, Any]) -> Read:
        read = super()._read(options)
        if problems := list(problems_of_mixed_reading(read)):
            raise SpecError(problems)
        return read

    def _reader(self, split: Any, read: Read, predicate: Any, *others: Any) -> Any:
        _check_filter(predicate)
        return super()._reader(split, read, predicate, *others)

    def _dataset(
        self,
        split: str | Sequence[str],
        tensors: _Tensors,
        predicate: Callable[..., Any] | None,
        *,
        start: Position | None,
        worker: WorkerShard | None = None,
    ) -> Any:
        _check_filter(predicate)
        read = self._augmenting(split, tensors.read)
        return reading.build(
            read,
            self._common if read.pack is None else tensors.schema,
            self._plan(split, read),
            split=split,
            map=tensors.finish,
            packed=tensors.packed,
            start=start,
            worker=worker,
            mixed=partial(self._opened, split, read),
        )

    def preview(self, split: str | Sequence[str], rows: int = 8, **options: Any) -> Any:
        """Returns the first rows of the mixture as a small batch: see `Pipeline.preview`.

        Example:
            >>> mixture = rs.mix({"points": pipeline}, seed=17)
            >>> len(mixture.preview("train", rows=3)["x"])
            3
        """
        map_, map_fit, predicate = (options.pop(name, None) for name in ("map", "map_fit", "filter"))
        targets = options.pop("targets", True)
        read = replace(self._read(options), batch=Batch(size=rows), repeat=1, prefetch=None)
        fit = self._fit(targets, read)
        tensors = self._tensors(split, read, map_, map_fit, predicate, targets=targets)
        batch = next(iter(self._dataset(split, tensors, predicate, start=None)))
        parts = () if fit is None else fit.parts
        return shown(batch, parts[0] if len(parts) == 1 else parts, self.schema.padding)

    def which(
        self,
        epoch: int,
        step: int,
        split: str | Sequence[str] = "train",
        *,
        worker: int = 0,
        workers: int = 1,
        **options: Unpack[DatasetOptions],
    ) -> list[dict[str, Any]]:
        """Returns the rows of a training step, with the name of the dataset of each: see `Pipeline.which`.

        Example:
            >>> rs.mix({"points": pipeline}, seed=17).which(epoch=0, step=1)[0]["dataset"]
            'points'
        """
        rows, numbers, placed = self._rows_of_step(split, options, epoch, step, worker, workers)
        assert isinstance(rows, MixedRows)
        names, datasets = tuple(self.pipelines), rows.datasets_of(numbers).tolist()
        keys = {name: one.manifest.key for name, one in self.pipelines.items()}
        shared = [key for key in self._common.names if all(key in some for some in keys.values())]
        values = rows.only(shared)[numbers] if shared else {}
        return [
            {"dataset": names[dataset], "file": str(path), "record": record}
            | ({} if rows._block_sizes is None else {"row": row})
            | placed[place]
            | {name: _plain(values[name][place]) for name in shared}
            for place, (dataset, (path, record, row)) in enumerate(
                zip(datasets, rows.places(numbers), strict=True)
            )
        ]

    def steps(self, split: str | Sequence[str], **options: Unpack[DatasetOptions]) -> int:
        """Returns the exact number of batches of all passes: see `Pipeline.steps`.

        Example:
            >>> rs.mix({"points": pipeline}, seed=17, read={"batch": 4}).steps("train")
            3
        """
        read = self._read(options)
        if read.passes is None:
            raise SpecError(Problem(path=("read", "repeat"), expected="an end", got="`forever`"))
        if read.pack is not None:
            return self._passes(split, 0, 1, options).steps * read.passes
        plan = self.plan(split, **options)
        drops = read.batch is not None and read.batch.drop_remainder
        return (plan.epoch_rows // plan.batch if drops else -(-plan.epoch_rows // plan.batch)) * read.passes

    def plan(self, split: str | Sequence[str] = "train", **options: Unpack[DatasetOptions]) -> MixturePlan:
        """Returns the arithmetic of the mixture: its weights, its epoch, and the rows of each dataset in it.

        Reads nothing but the manifests. With `read.pack`, its rows are packs, and the lengths of rows are
        counted, as with `count: tokens`.

        Raises SpecError for a mixture that does not exist, StoreError for a dataset that is not built.

        Example:
            >>> rs.mix({"points": pipeline}, seed=17, read={"batch": 4}).plan("train").epoch_rows
            12
        """
        read = self._read(options)
        if read.pack is not None:
            packs = self._passes(split, 0, 1, options).reader.packs
            assert isinstance(packs, MixedPacks | PackedMixture)
            return packs.mixture
        rows = [sum(shard.rows for shard in pipeline._shards(split)) for pipeline in self.pipelines.values()]
        batch = 1 if read.batch is None else read.batch.size
        return MixturePlan(
            names=tuple(self.pipelines),
            rows=tuple(rows),
            options=self.options,
            batch=batch,
            sizes=self._sizes(split, read),
            lanes=None if read.shuffle is None else read.shuffle.lanes,
        )

    @property
    def _usual_split(self) -> str:
        """`train`, or the first split that all datasets have. Raises SpecError if there is none."""
        names = self._split_names
        if not names:
            expected = "a split that all datasets have"
            raise SpecError(Problem(path=("mix", "datasets"), expected=expected, got="none"))
        return "train" if "train" in names else names[0]

    @property
    def _units(self) -> str:
        """What is mixed: rows, or the packs of each dataset."""
        return "rows" if self.config.read.pack is None or self.options.packs == "mixed" else "packs"

    def explain(self, split: str | Sequence[str] | None = None) -> tuple[list[dict[str, Any]], int, int]:
        """What is read of each dataset in all passes of `read`, as `MixturePlan.report` has it; and the steps
        and the rows of an epoch.

        Args:
            split: by default `train`, or the first split that all datasets have.

        Raises the errors of `plan`.
        """
        split = split or self._usual_split
        plan = self.plan(split)
        passes = self.config.read.passes or 1
        if plan.epochs is not None and passes > plan.epochs:
            raise _too_many_passes(plan, self.config.read)
        return plan.report(passes), self.steps(split, repeat=1), plan.epoch_rows

    def encoders(self, split: str | Sequence[str] = "train") -> dict[str, Any]:
        """Raises SpecError if `fit.encode` learns: pass `encoders`, of one of the pipelines.

        Example:
            >>> rs.mix({"points": pipeline}, seed=17).encoders()
            {}
        """
        fit = self.config.fit
        if fit is None or not fit.encode:
            return {}
        name = next(iter(self.pipelines))
        hint = f'`encoders=mixture.pipelines["{name}"].encoders()` takes those of one'
        raise SpecError(
            Problem(
                path=("encoders",),
                expected="the encoders of `fit.encode` in a mixture",
                got="none",
                hint=hint,
            )
        )

    def _encoders(self, fit: Fit, encoders: Any = None) -> Any:
        if encoders is None:
            return self.encoders()
        return super()._encoders(fit, encoders)

    def _refuse(self, name: str, hint: str) -> NoReturn:
        expected = "the pipeline of one dataset"
        raise SpecError(Problem(path=(name,), expected=expected, got="a mixture", hint=hint))

    @property
    def data(self) -> NoReturn:
        """Raises SpecError: each dataset of a mixture has its own folder."""
        self._refuse("data", "each of `pipelines` has its own")

    @property
    def manifest(self) -> NoReturn:
        """Raises SpecError: each dataset of a mixture has its own manifest."""
        self._refuse("manifest", "each of `pipelines` has its own")

    def build(self, *args: Any, **options: Any) -> NoReturn:
        """Raises SpecError: a mixture is not built, but each of its datasets."""
        self._refuse("build", "build each of its datasets")

    def existing(self) -> NoReturn:
        """Raises SpecError, as `build`."""
        self._refuse("existing", "ask each of its datasets")

    def estimate(self, *args: Any, **options: Any) -> NoReturn:
        """Raises SpecError, as `build`."""
        self._refuse("estimate", "estimate each of its datasets")

    def bench(self, *args: Any, **options: Any) -> NoReturn:
        """Raises SpecError: stages are measured for a single dataset."""
        self._refuse("bench", "measure each of its datasets")

    def class_weights(self, *args: Any, **options: Any) -> NoReturn:
        """Raises SpecError: the classes are counted in each dataset."""
        self._refuse("class_weights", "each of `pipelines` has its own")


def _is_list(shape: Sequence[int | None]) -> bool:
    """Whether values of a shape are lists, of values of one size."""
    return shape[:1] == (None,) and None not in shape[1:]


def _too_many_passes(plan: MixturePlan, read: Read) -> SpecError:
    expected = f"at most {plan.epochs}, as all datasets have reached their `cap` then"
    return SpecError(Problem(path=("read", "repeat"), expected=expected, got=str(read.repeat)))


def _check_filter(predicate: Callable[..., Any] | None) -> None:
    """Raises SpecError for a filter, which would change the shares of datasets."""
    if predicate is not None:
        hint = "the values of rows would decide batches; write the rows to read into a dataset"
        raise SpecError(Problem(path=("filter",), expected="none in a mixture", got="one", hint=hint))
