"""`Pipeline`: builds and reads the dataset that a config defines."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from recordspec import config as config_file
from recordspec import html
from recordspec._tf import Dataset
from recordspec.arrays.iterate import BatchReader, Passes, rows_of_step
from recordspec.arrays.random_access import Rows
from recordspec.config import Config
from recordspec.errors import (
    ExistsError,
    Problem,
    SpecError,
    State,
    StoreError,
    missing_package,
    nearest,
    see,
    show_text,
)
from recordspec.locations import Location, below, local, location
from recordspec.order.packing import PackPlan, Packs
from recordspec.order.position import Position, check_step, fingerprint_of, order_of
from recordspec.order.read_options import Batch, DatasetOptions, Read
from recordspec.order.read_plan import Plan, WorkerShard, plan_files
from recordspec.reading import bench as benching
from recordspec.reading import dataset as reading
from recordspec.reading import staged_shards
from recordspec.reading.corrupt_records import locating, without_corrupt
from recordspec.reading.decoded_files import decoded_files
from recordspec.reading.filtering import class_counts, class_weights
from recordspec.remote import RemotePath
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.options import from_python, option_texts, options_of, to_builtins
from recordspec.schema.schema import Schema
from recordspec.schema.user_functions import check_arguments, naming_features
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import expand
from recordspec.store.manifest import LAYERS_FILE, LENGTHS_FILE, Manifest, Shard, manifest_in
from recordspec.store.shard_names import notes_on_case
from recordspec.store.shards import replaced, schema_mismatches
from recordspec.training import encoding, encoding_arrays, encoding_tensors, serving
from recordspec.training.fit import Fit, check_packed
from recordspec.training.fit_batch import FinishArrays, arrays_of, check_functions, finish_tensors, shown
from recordspec.training.packs import Packing, counted_lengths, kept_lengths, packable
from recordspec.training.predictions import ModelOutputs, TargetClasses
from recordspec.wire.arrays import Ints

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recordspec.writing.estimate import BuildEstimate
    from recordspec.writing.write_options import BuildOptions


# The rows whose lengths are counted together.
_COUNTED = 1024
# The number of batches that a thread prefetches for `prefetch: auto`.
_AHEAD = 2
# Methods that have another name since a former release.
_RENAMED = {"plan": "estimate"}


class IterateOptions(DatasetOptions, total=False):
    """The options of `Pipeline.iterate`: the options of reading, and arguments of `Pipeline.dataset`."""

    map: Callable[..., Any] | None
    filter: Callable[..., Any] | None
    map_fit: Callable[..., Any] | None
    encoders: Mapping[str, encoding.FitEncoder] | None
    start: Position | tuple[int, int] | None
    targets: bool


@dataclass(frozen=True)
class _Tensors:
    """How a dataset is read as tensors.

    Attributes:
        read: the options.
        schema: the schema with which rows are decoded.
        finish: a function of decoded features that returns what a model takes; None to leave them unchanged.
        packed: plans the packs of all rows; None if rows are not packed.
    """

    read: Read
    schema: Schema
    finish: Callable[..., Any] | None
    packed: Callable[[Rows], Packs] | None = None


class Pipeline:
    """A dataset that a config defines: built, read, and fed to a model.

    Attributes:
        config: the sections of the file.
        schema: the feature spec.
        folder: the folder to which the config's paths are relative.
        ignore: the names to ignore in rows that are given in Python, as `recordspec.write` ignores them.
        notes: notes on what the last build ignored.

    Example:
        >>> pipeline = rs.Pipeline.load("configs/points.yaml")
        >>> pipeline.schema == schema
        True
        >>> pipeline
        Pipeline(points, data: data/points)
    """

    def __init__(
        self,
        config: Config,
        schema: Schema,
        folder: str | os.PathLike[str] | RemotePath = ".",
        *,
        ignore: Iterable[str] = (),
    ) -> None:
        self.config = config
        self.schema = schema
        self.folder = location(folder)
        self.ignore = tuple(ignore)
        self.notes: list[str] = []
        self._manifest: Manifest | None = None

    @classmethod
    def load(
        cls, path: str | os.PathLike[str] | RemotePath, kinds: Mapping[str, type[Feature]] = KINDS
    ) -> Pipeline:
        """Loads a config file; a config with `mix:` as a mixture, see `recordspec.mix`.

        Raises SpecError with every problem in the file, or StoreError if it cannot be read.

        Example:
            >>> rs.Pipeline.load("configs/points.yaml").config.read.batch.size
            4
        """
        path = location(path)
        if config_file.is_mixture(path):
            from recordspec.pipeline.mixture import Mixture

            return Mixture.load_mixture(path, kinds)
        return cls(*config_file.load(path, kinds), path.parent)

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            replaced = f": it is `{_RENAMED[name]}` now" if name in _RENAMED else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{replaced}")

    def __repr__(self) -> str:
        return show_text(f"{type(self).__name__}({self.schema.name}, data: {self.data})")

    def _repr_html_(self) -> str:
        return html.in_notebook(self._html)

    def _html(self) -> Iterator[html.Markup]:
        yield html.heading(f"{self.schema.name}: data in {self.data}")
        if self.config.description:
            yield html.paragraph(self.config.description)
        sections = {name: getattr(self.config, name) for name in ("write", "read", "fit")}
        yield html.listing(
            ("section", "option", "value"),
            [
                (section, name, text)
                for section, options in sections.items()
                if options is not None
                for name, text in option_texts(options).items()
            ],
            "option",
        )
        yield html.Markup(self.schema._repr_html_())
        try:
            manifest = self.manifest
        except StoreError as error:  # not built, most often
            yield html.items(error.problems)
        else:
            yield html.Markup(manifest._repr_html_())

    @property
    def data(self) -> Location:
        """The folder of the shards.

        Example:
            >>> print(pipeline.data)
            data/points
        """
        return below(self.folder, self.config.data)

    def build(
        self,
        rows: Any = None,
        *,
        source: str | os.PathLike[str] | RemotePath | None = None,
        write: Callable[..., Manifest] | None = None,
        **options: Unpack[BuildOptions],
    ) -> Manifest:
        """Writes the dataset.

        Args:
            rows: as for `recordspec.write`; by default the rows of the config's source.
            source: a file or folder to read instead of the config's source.
            write: a function that writes the rows, with the arguments of `recordspec.write`, the default.
            options: jobs, memory, limit, allow_empty, force, append, resume and progress, as
                for `recordspec.write`.

        Raises the errors of `recordspec.write`.

        Example:
            >>> pipeline.build(rows, force=True).rows("test")
            5
        """
        rows, section = self._to_write(rows, source)
        self._manifest = None
        if write is None:
            from recordspec.writing import write as on_this_machine

            write = on_this_machine.write
        manifest = write(rows, self.schema, self.data, **section, **options)
        self.notes += notes_on_case(manifest.splits)
        if self.config.read.pack is not None:  # counts the lengths, which the first training would wait for
            for split in manifest.splits:
                with suppress(SpecError):  # told by `explain`, and when the split is read
                    self._arrays(split, {})
        return manifest

    def existing(self) -> Manifest | None:
        """Returns the manifest of the dataset that is built already, or None.

        `pipeline.existing() or pipeline.build()` builds a missing dataset. The schema, the key, the
        compression, the layout, the shuffle and the splits of an existing one are compared with the config.
        Neither the source, its columns, the number of shards nor invalid rows are, as a manifest does not
        have them.

        Raises ExistsError if the dataset was built from another config, StoreError if a shard is missing, and
        what `Manifest.load` raises for an invalid manifest.

        Example:
            >>> pipeline.existing() == pipeline.manifest
            True
        """
        from recordspec.writing.append import different_options
        from recordspec.writing.write import write_options

        manifest = manifest_in(self.data)
        if manifest is None:
            return None
        section = self.config.write
        if section.source is None:
            options = options_of(section)
            options["split"] = options.pop("splits")
            del options["source"]
        else:
            _, options = section.open(self.folder, self.schema)
        write = write_options(self.schema, options.pop("split"), options)
        different = different_options(manifest, self.schema, write)
        if write.unique != (manifest.keys_sha256 is not None):  # only unique keys are stored
            different.setdefault("key", ({"unique": not write.unique}, {"unique": write.unique}))
        if isinstance(section.source, Mapping) and set(section.source) != set(manifest.splits):
            different["splits"] = (sorted(manifest.splits), sorted(section.source))
        if different:
            values = (
                f"`{name}` is another one"
                if name == "schema"
                else f"`{name}` is {json.dumps(old)}, not {json.dumps(new)}"
                for name, (old, new) in different.items()
            )
            got = f"exists, and was built from another config, of which {', '.join(values)}"
            raise ExistsError(
                State(where=str(self.data), got=got, hint="force=True, or --force, replaces it")
            )
        expand(str(self.data))  # raises for a shard that is missing
        return manifest

    def estimate(
        self,
        rows: Any = None,
        *,
        source: str | os.PathLike[str] | RemotePath | None = None,
        **options: Unpack[BuildOptions],
    ) -> BuildEstimate:
        """Estimates from a sample of the rows the output of `build` and the resources that it needs.

        The arguments are those of `build`. Only the sample is written, to a temporary folder.

        Raises the errors of `build`.

        Example:
            >>> pipeline.estimate(rows).rows
            20
        """
        from recordspec.writing.estimate import estimate as estimate_build

        rows, section = self._to_write(rows, source)
        return estimate_build(rows, self.schema, self.data, **section, **options)

    def _to_write(
        self, rows: Any, source: str | os.PathLike[str] | RemotePath | None
    ) -> tuple[Any, dict[str, Any]]:
        """The rows, and the options of the config as `recordspec.write` takes them."""
        from recordspec.writing.sources.base import leave_out
        from recordspec.writing.sources.python_rows import source_of

        section = self.config.write
        if rows is None:
            rows, options = section.open(self.folder, self.schema, source)
        else:
            options = options_of(section)
            if isinstance(options.pop("source"), Mapping):
                expected, hint = "those of the sources of the splits", "without `rows` they are read"
                raise SpecError(Problem(path=("rows",), expected=expected, got="others", hint=hint))
            options["split"] = options.pop("splits")
            ignore = [name for name in self.ignore if name not in section.columns]
            rows = leave_out(source_of(rows), ignore)
        rows = source_of(rows)
        self.notes = rows.notes
        return rows, options

    @property
    def _identity(self) -> str:
        """The identity of the dataset, as positions have it."""
        return self.manifest.identity

    @property
    def _split_names(self) -> tuple[str, ...]:
        return tuple(self.manifest.splits)

    @property
    def _stored(self) -> Schema:
        """The schema of the stored features."""
        return self.schema

    @property
    def _order_options(self) -> dict[str, Any]:
        """What determines which rows come next, beside the options of reading, as JSON values."""
        return {}

    @property
    def manifest(self) -> Manifest:
        """The manifest; it is read once, and again after a build.

        Raises StoreError if the dataset is not built, or was built with another schema.

        Example:
            >>> list(pipeline.manifest.splits)
            ['train', 'test']
        """
        if self._manifest is None:
            manifest = Manifest.load(self.data)
            if problems := schema_mismatches(manifest, self.schema, self.data):
                raise StoreError(problems)
            self._manifest = manifest
        return self._manifest

    def dataset(
        self,
        split: str | Sequence[str],
        *,
        map: Callable[..., Any] | None = None,  # noqa: A002  tf.data's name
        filter: Callable[..., Any] | None = None,  # noqa: A002
        map_fit: Callable[..., Any] | None = None,
        encoders: Mapping[str, encoding.FitEncoder] | None = None,
        start: Position | tuple[int, int] | None = None,
        targets: bool = True,
        **options: Unpack[DatasetOptions],
    ) -> Dataset:
        """Returns a tf.data.Dataset of a split for `model.fit`: the features in `fit:`, by default all.

        Args:
            split: the name of a split, or the names of several, such as folds.
            map: a function from a decoded batch, a dict, to a dict, applied before `fit` selects and encodes;
                the config lists new names in `fit.derived`.
            filter: a function from a decoded batch to a bool for each row, true for rows to keep. It is
                applied before `map`.
            map_fit: a function of the parts that `fit` selects: (inputs), (inputs, targets) or (inputs,
                targets, weights). It is called as `tf.data.Dataset.map` calls functions.
            encoders: the encoders of `fit.encode`, by default `encoders()`. Keras layers apply them.
            start: the position at which to begin, as if all earlier batches had been read: a `Position`, or
                the epoch and the step, both from 0.
            targets: whether batches have the targets and weights. Without them, batches are the inputs, for
                `model.predict`, and rows may lack the targets.
            options: options of `read` that replace the config's: batch, shuffle, interleave, bucket,
                balance, features, augment, cache, repeat, prefetch, deterministic, corrupt, service.

        Raises:
            SpecError: an option is invalid, `start` is a position of another batch size or dataset, or
                `augment` names some, but not all, of several splits.
            StoreError: the dataset is not built, has no such split, or was written with another spec.

        Example:
            >>> for inputs, targets in pipeline.dataset("train").take(1):
            ...     print(inputs.shape, targets.shape)
            (4,) (4,)
        """
        if "layers" in options:
            hint = "renamed: `encoders=pipeline.encoders(SPLIT)`"
            raise SpecError(Problem(path=("layers",), expected="`encoders`", got="`layers`", hint=hint))
        tensors = self._tensors(split, self._read(options), map, map_fit, filter, encoders, targets=targets)
        return self._dataset(split, tensors, filter, start=Position.of(start))

    def iterate(
        self,
        split: str | Sequence[str],
        *,
        worker: int = 0,
        workers: int = 1,
        **options: Unpack[IterateOptions],
    ) -> Iterator[Any]:
        """Yields the batches of `dataset` as NumPy arrays, without TensorFlow: for JAX, PyTorch or any loop.

        A thread decodes rows while the loop body runs; several threads decode media. Another thread applies
        `map`, `fit` and `map_fit`, `prefetch` batches ahead. The threads stop when the iterator is closed.
        Without a `map`, only the features that `fit` selects are decoded.

        Args:
            split: the name of a split, or the names of several.
            worker, workers: the number of this worker, from 0, and the number of workers, as for
                `recordspec.iterate`. The global batches are the same for any number of workers, also in the
                order of the files.
            options: the options of `dataset`. `map`, `filter` and `map_fit` are functions of NumPy arrays;
                if rows differ in length, of a RaggedArray or a SparseArray. For `filter`, only the features
                that it asks for are decoded. `encoders` are the encoders for `fit.encode`, by default
                `encoders()`. A shuffle must be `global: true`, or have `lanes`; cache, interleave, balance,
                augment, service and `corrupt: skip` need TensorFlow.

        Raises:
            SpecError: as for `dataset`, for options that need TensorFlow, and for `global: true` of shards
                that are compressed, in an object store, or more than a process may map.
            StoreError: as for `dataset`.
            RecordError: a file is compressed without restart points, a record is corrupt, a row is longer
                than its `fit.pad_to`, or the value of a target is not a class of the training split.

        Example:
            >>> inputs, targets = next(pipeline.iterate("train"))
            >>> inputs.shape, targets.dtype
            ((4,), dtype('int64'))
        """
        passes = self._passes(split, worker, workers, options)
        passes.check_start(self._identity)
        return passes.begin(passes.start)

    def keras_dataset(self, split: str | Sequence[str], **options: Unpack[IterateOptions]) -> Any:
        """Returns a dataset for `fit`, `evaluate` and `predict` of Keras, on any of its backends.

        With the TensorFlow backend, it is the dataset of `dataset`, and functions take tensors. With another
        backend, it is a `keras.utils.PyDataset` of the batches of `iterate`: each epoch of `fit` is the next
        pass, in the order of the config, whatever the argument `shuffle` of `fit` is.

        Args:
            split, options: as for `iterate`.

        Raises the errors of `dataset` with the TensorFlow backend, otherwise the errors of `iterate`.

        Example:
            >>> len(pipeline.keras_dataset("train"))
            4
        """
        from recordspec._keras import keras

        if keras.backend.backend() == "tensorflow":
            return self.dataset(split, **options)
        from recordspec.training.keras_data import KerasDataset

        passes = self._passes(split, 0, 1, options)
        made = KerasDataset(passes)
        passes.check_start(self._identity, made.restart)
        return made

    def torch_dataset(
        self,
        split: str | Sequence[str],
        *,
        worker: int | None = None,
        workers: int | None = None,
        **options: Unpack[IterateOptions],
    ) -> Any:
        """Returns the batches of `iterate` as PyTorch tensors: a `torch.utils.data.IterableDataset`.

        Read it in a loop, or with `DataLoader(dataset, batch_size=None)`. A DataLoader needs no workers, as
        threads decode. The batches and their order are the same for any number of workers of a DataLoader.
        If it has workers, call `dataset.set_epoch(n)` before each pass to set the pass to read.
        StatefulDataLoader of torchdata resumes at any batch.

        Args:
            split, options: as for `iterate`.
            worker, workers: the number of this process, from 0, and the number of processes that train
                together, each with a part of every batch; by default the rank and the world size of
                `torch.distributed`, if it is initialized.

        Raises the errors of `iterate`.

        Example:
            >>> inputs, targets = next(iter(pipeline.torch_dataset("train")))
            >>> inputs.shape, targets.dtype
            (torch.Size([4]), torch.int64)
        """
        try:
            import torch
        except ImportError as missing:
            raise missing_package("PyTorch", "tensors of PyTorch", "recordspec[torch]", missing) from None
        from recordspec.training.torch_data import TorchDataset

        group = torch.distributed
        if workers is None and group.is_available() and group.is_initialized():
            worker, workers = group.get_rank(), group.get_world_size()
        passes = self._passes(split, worker or 0, workers or 1, options)
        passes.check_start(self._identity)
        return TorchDataset(passes, self._identity)

    def jax_dataset(
        self, split: str | Sequence[str], *, sharding: Any = None, **options: Unpack[IterateOptions]
    ) -> Any:
        """Returns the batches of `iterate` as JAX arrays. Each iteration is the next pass.

        If JAX has several processes, each process reads its part of every batch.

        Args:
            split, options: as for `iterate`.
            sharding: how `jax.make_array_from_process_local_data` distributes arrays over devices, such as
                `NamedSharding(mesh, PartitionSpec("data"))`; by default arrays are on one device.

        Raises the errors of `iterate`, and SpecError for values that JAX has no array for, such as strings.

        Example:
            >>> inputs, targets = next(iter(pipeline.jax_dataset("train")))
            >>> inputs.shape, targets.dtype
            ((4,), dtype('int32'))
        """
        try:
            import jax
        except ImportError as missing:
            raise missing_package("JAX", "arrays of JAX", "recordspec[jax]", missing) from None
        from recordspec.training.jax_data import JaxDataset

        passes = self._passes(split, jax.process_index(), jax.process_count(), options)
        passes.check_start(self._identity)
        return JaxDataset(passes, sharding)

    def _passes(
        self, split: str | Sequence[str], worker: int, workers: int, options: Mapping[str, Any]
    ) -> Passes:
        """The passes that `iterate` reads, by its arguments."""
        read, finish, begin, predicate, packed = self._arrays(split, options)
        reader = self._reader(split, read, predicate, worker, workers, packed)
        check_step(begin.step, reader.steps)
        ahead = _AHEAD if read.prefetch == "auto" else read.prefetch or 0
        order = order_of(read, split, predicate) | self._order_options
        return Passes(reader=reader, finish=finish, start=begin, count=read.passes, ahead=ahead, order=order)

    def _arrays(
        self, split: str | Sequence[str], options: Mapping[str, Any]
    ) -> tuple[Read, FinishArrays, Position, Callable[..., Any] | None, Callable[[Rows], Packs] | None]:
        """How arrays are read and finished, by the arguments of `iterate`: the options, the function of
        decoded features, the first position, the filter, and the function that plans the packs.
        """
        others = dict[str, Any](options)
        functions = {
            name: others.pop(name, None) for name in ("map", "map_fit", "filter", "encoders", "start")
        }
        targets = others.pop("targets", True)
        read, begin = self._read(others), Position.of(functions["start"]) or Position()
        fit, mapped, map_fit = self._fit(targets, read), functions["map"], functions["map_fit"]
        schema, padded = self._read_as(read)
        check_functions(fit, mapped, map_fit, read.pack)
        encoders = {} if fit is None else self._encoders(fit, functions["encoders"])
        finish = FinishArrays(fit, schema, encoders, mapped, map_fit, padded)
        if not targets:
            read = self._without_targets(read, mapped)
        elif fit is not None and mapped is None and read.features is None and not fit.derived:
            read = replace(read, features=fit.features_of(schema))
        packed = None
        if read.pack is not None:
            packing, packed = self._packing(split, read, finish, functions["filter"])
            finish = replace(finish, packing=packing)
        return read, finish, begin, functions["filter"], packed

    def _reader(
        self,
        split: str | Sequence[str],
        read: Read,
        predicate: Callable[..., Any] | None,
        worker: int,
        workers: int,
        packed: Callable[[Rows], Packs] | None = None,
    ) -> BatchReader:
        """The reader of the batches of a split without TensorFlow."""
        read, bucket = self._augmenting(split, read), read.bucket
        encode = None if self.config.fit is None or bucket is None else self.config.fit.encode.get(bucket.by)
        return BatchReader.of(
            read,
            partial(self._opened, split, read),
            predicate=predicate,
            worker=worker,
            workers=workers,
            measure=None if encode is None else encoding_arrays.measure(encode),
            packed=packed,
        )

    def _packing(
        self,
        split: str | Sequence[str],
        read: Read,
        finish: FinishArrays,
        predicate: Callable[..., Any] | None,
        tensors: Callable[[], Dataset] | None = None,
    ) -> tuple[Packing, Callable[[Rows], Packs]]:
        """What makes packs of a batch, and the function that plans the packs of all rows.

        Args:
            finish, tensors: as for `_lengths`.
        """
        if predicate is not None:
            hint = "a filter would change the packs: filter the rows when they are built"
            raise SpecError(Problem(path=("filter",), expected="none with packs", got="a filter", hint=hint))
        assert read.pack is not None
        lengths = self._lengths(split, read, finish, tensors)
        packing = Packing.of(read.pack, finish.fit, lengths, finish.schema)
        seed = None if read.shuffle is None else read.shuffle.seed

        def planned(rows: Rows) -> Packs:
            if rows._lanes is None or seed is None:
                return packing.order(lengths, seed, rows._block_sizes)
            count, window = rows._lanes
            files = np.diff(rows._first)
            return packing.in_lanes(lengths, seed, files, lanes=count, window=window)

        return packing, planned

    def _lengths(
        self,
        split: str | Sequence[str],
        read: Read,
        finish: FinishArrays,
        tensors: Callable[[], Dataset] | None = None,
    ) -> dict[str, Ints]:
        """The lengths of all rows of the packed features, counted once, and kept beside the dataset.

        Args:
            finish: selects and encodes the features.
            tensors: a dataset of all rows with what `fit` selects, if `finish` is of tensors; None for
                arrays.
        """
        schema = finish.schema
        features = schema.outputs if read.features is None else read.features
        known = {
            "shards": [shard.identity for shard in self._shards(split)],
            "features": {one.name: to_builtins(one.shortest) for one in schema.only(features).names.values()},
            "fit": None if finish.fit is None else to_builtins(finish.fit),
            "encoders": {name: encoder.state for name, encoder in finish.encoders.items()},
            "map": None if finish.mapped is None else [fingerprint_of(finish.mapped), tensors is not None],
        }
        fingerprint = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

        def count() -> dict[str, Ints]:
            if tensors is None:
                picked: Iterable[Any] = map(finish.picked, self._batches(split, features, schema))
            else:
                picked = map(arrays_of, tensors())
            return counted_lengths(finish.fit, picked)

        return kept_lengths(self.data / LENGTHS_FILE, fingerprint, count)

    def preview(
        self,
        split: str | Sequence[str],
        rows: int = 8,
        *,
        map: Callable[..., Any] | None = None,  # noqa: A002
        filter: Callable[..., Any] | None = None,  # noqa: A002
        map_fit: Callable[..., Any] | None = None,
        targets: bool = True,
        **options: Unpack[DatasetOptions],
    ) -> Any:
        """Returns a small batch of `dataset` to inspect: NumPy arrays, and lists for ragged features.

        Sparse features are dense, filled with their `pad`.

        The rows are the first of each shard in turn, and the same at each call: no buffer is filled, no cache
        is read or written, and neither shuffle, bucket nor balance is applied. Images of an augmented split
        are augmented; `augment=None` shows the stored images.

        Args:
            split: the name of a split, or the names of several.
            rows: the number of rows, at most.
            map, filter, map_fit, targets: as for `dataset`.
            options: as for `dataset`; only features, augment and corrupt are used.

        Raises the errors of `dataset` and of `locating`, and StoreError if there are no rows.

        Example:
            >>> len(pipeline.preview("train", rows=3)[1])
            3
        """
        read = reading.at_a_glance(self._read(options), rows)
        tensors, fit = (
            self._tensors(split, read, map, map_fit, filter, targets=targets),
            self._fit(targets, read),
        )
        with self.locating(split):
            for batch in self._dataset(split, tensors, filter, start=None).take(1):
                parts = () if fit is None else fit.parts
                return shown(batch, parts[0] if len(parts) == 1 else parts, self.schema.padding)
        raise StoreError(State(where=str(self.data), got="has no rows to show"))

    def input_fn(
        self,
        split: str | Sequence[str],
        *,
        map: Callable[..., Any] | None = None,  # noqa: A002
        filter: Callable[..., Any] | None = None,  # noqa: A002
        map_fit: Callable[..., Any] | None = None,
        start: Position | tuple[int, int] | None = None,
        targets: bool = True,
        **options: Unpack[DatasetOptions],
    ) -> Callable[..., Dataset]:
        """Returns a function that makes the dataset for tf.distribute, with the arguments of `dataset`.

        Called with a `tf.distribute.InputContext`, it returns the dataset of one worker, in
        batches of the config's size divided by the number of replicas. Every worker has the same number
        of batches.

        With several workers, `start` is a `Position` for the same number of workers, which `position`
        returns. Another number of workers raises SpecError: some rows would be read twice, and some never.

        Example:
            >>> make = pipeline.input_fn("train")
            >>> make().element_spec[1]
            TensorSpec(shape=(None,), dtype=tf.int64, name=None)
        """
        begin = Position.of(start)
        tensors = self._tensors(split, self._read(options), map, map_fit, filter, targets=targets)

        def make(context: Any = None) -> Dataset:
            if context is None:
                return self._dataset(split, tensors, filter, start=begin)
            workers, number = context.num_input_pipelines, context.input_pipeline_id
            divided, worker = reading.of_worker(tensors.read, workers, number, context.num_replicas_in_sync)
            return self._dataset(split, replace(tensors, read=divided), filter, start=begin, worker=worker)

        return make

    def position(
        self,
        epoch: int = 0,
        step: int = 0,
        *,
        workers: int = 1,
        replicas: int | None = None,
        split: str | Sequence[str] = "train",
        filter: Callable[..., Any] | None = None,  # noqa: A002
        **options: Unpack[DatasetOptions],
    ) -> Position:
        """Returns a position in this dataset, to save, and to resume from with `start`.

        Args:
            epoch: the number of the pass, from 0.
            step: the number of batches of the pass that a worker has read. For `input_fn`, a batch is that of
                one replica: a worker with two replicas reads two batches in a step of training.
            workers: the number of workers: for `input_fn`, the context's `num_input_pipelines`.
            replicas: for `input_fn`, the context's `num_replicas_in_sync`; by default one for each worker.
            split, filter, options: as for `dataset`.

        Raises SpecError if an option is invalid, StoreError if the dataset is not built.

        Example:
            >>> pipeline.position(epoch=1, step=2).batch
            4
        """
        read = self._read(options)
        if read.divides_batches:
            workers = 1  # a step is the same global batch for any number of workers
        elif workers > 1 or replicas is not None:
            read = reading.per_replica(read, replicas or workers)
        batch = 1 if read.batch is None else read.batch.size
        return Position(
            epoch=epoch,
            step=step,
            workers=workers,
            batch=batch,
            manifest=self._identity,
            order=order_of(read, split, filter) | self._order_options,
        )

    def packs(self, split: str | Sequence[str], **options: Unpack[DatasetOptions]) -> PackPlan:
        """The packs of a split, as `read.pack` plans them.

        Args:
            split: the name of a split, or the names of several.
            options: as for `dataset`.

        Raises the errors of `iterate`, and SpecError if the config has no `read.pack`.

        Example:
            >>> pipeline.packs("train")
            Traceback (most recent call last):
            recordspec.errors.SpecError: read.pack: expected the length of a pack, got none
        """
        read = self._read(options)
        if read.pack is None:
            raise SpecError(Problem(path=("read", "pack"), expected="the length of a pack", got="none"))
        passes = self._passes(split, 0, 1, options)
        assert passes.reader.packs is not None
        return passes.reader.packs.plan(passes.steps)

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
        """Returns the rows of a training step, if the dataset is read with `global: true` or in file order.

        Args:
            epoch, step: the numbers of the pass, and of the global batch in the pass, both from 0.
            split: the name of a split, or the names of several.
            worker, workers: the number of a worker, from 0, and the number of workers, to return only the
                rows of that worker.
            options: the options of the training, as for `dataset`.

        Returns:
            A dict for each row, in order: `file`; `record`, the number of the record in the file; in blocks
            `row`, the place of the row in the record; with `read.pack`, `pack`, the number of the pack in the
            batch, `segment`, from 1, and `start`, the first value, of which there may be several pieces; and
            the features of the key.

        Raises the errors of `dataset`, and SpecError for a shuffle with a buffer, for other options with
        which the values of rows decide batches, and for a step beyond the pass.

        Example:
            >>> pipeline.which(epoch=0, step=1)[0]["record"]
            4
        """
        rows, numbers, placed = self._rows_of_step(split, options, epoch, step, worker, workers)
        keys = [name for name in self.manifest.key if name in self.schema.names]
        values = rows.only(keys)[numbers] if keys else {}
        return [
            {"file": str(path), "record": record, **({} if rows._block_sizes is None else {"row": row})}
            | placed[place]
            | {name: _plain(values[name][place]) for name in keys}
            for place, (path, record, row) in enumerate(rows.places(numbers))
        ]

    def _rows_of_step(
        self,
        split: str | Sequence[str],
        options: Mapping[str, Any],
        epoch: int,
        step: int,
        worker: int,
        workers: int,
    ) -> tuple[Rows, Ints, list[dict[str, Any]]]:
        """All rows, the numbers of the rows of a step, and with packs, where each of these is in its pack."""
        read = self._read(options)
        if read.pack is None:
            opened = partial(self._opened, split, read)
            rows, numbers = rows_of_step(read, opened, epoch, step, worker, workers)
            return rows, numbers, [{} for _ in numbers]
        reader = self._passes(split, worker, workers, options).reader
        found = reader.packs_of_step(epoch, step)
        parts = zip(found.packs.tolist(), found.segments.tolist(), found.starts.tolist(), strict=True)
        placed = [dict(zip(("pack", "segment", "start"), part, strict=True)) for part in parts]
        return reader.rows, found.rows, placed

    def open(self, split: str | Sequence[str]) -> Rows:
        """Opens a split for random access to its rows by number, without TensorFlow: see `recordspec.open`.

        Raises the errors of `recordspec.open`, and StoreError if the dataset was replaced since `manifest`
        was read.

        Example:
            >>> len(pipeline.open("train"))
            15
        """
        return self._open(split, self.schema)

    def _opened(self, split: str | Sequence[str], read: Read) -> Rows:
        """The rows of a split, as the options read them."""
        return self._open(split, self._read_as(read)[0])

    def _open(self, split: str | Sequence[str], schema: Schema) -> Rows:
        paths = self._paths(split)
        if isinstance(self.data, RemotePath):
            return Rows._of(StoredDataset(paths, {self.data: self.manifest}, schema))
        try:
            return Rows(paths, schema)
        except StoreError:
            if (gone := next(filter(None, map(replaced, paths)), None)) is not None:
                raise StoreError(gone) from None
            raise

    def bench(
        self,
        split: str | Sequence[str],
        *,
        map: Callable[..., Any] | None = None,  # noqa: A002
        filter: Callable[..., Any] | None = None,  # noqa: A002
        map_fit: Callable[..., Any] | None = None,
        seconds: float = 5.0,
        targets: bool = True,
        **options: Unpack[DatasetOptions],
    ) -> benching.Bench:
        """Measures the speed of `dataset`, stage by stage.

        Args:
            split, map, filter, map_fit, targets, options: as for `dataset`.
            seconds: the running time of each stage.

        Raises the errors of `dataset`, and SpecError if `seconds` is not above 0.

        Example:
            >>> [stage.name for stage in pipeline.bench("train", seconds=0.01).stages][-1]
            'whole'
        """
        tensors = self._tensors(split, self._read(options), map, map_fit, filter, targets=targets)
        read = self._augmenting(split, tensors.read)
        plan, finish = self._plan(split, read), tensors.finish
        return benching.bench(
            read,
            tensors.schema,
            plan,
            map=finish,
            predicate=filter,
            seconds=seconds,
            measures=self._measures,
            packed=tensors.packed,
        )

    def export_model(
        self,
        model: Any,
        folder: str | os.PathLike[str],
        *,
        map: Callable[..., Any] | None = None,  # noqa: A002
        encoders: Mapping[str, encoding.FitEncoder] | None = None,
        outputs: ModelOutputs | None = None,
    ) -> dict[str, str]:
        """Writes a trained model as a SavedModel, with the decoding and the encoding of its training.

        The SavedModel has these signatures, for TensorFlow Serving, or for `tf.saved_model.load` without
        recordspec:

        - `serving_default` takes the features as tensors `[n, ...]` by name: the names of classes for a
          label, text for a date, and decoded values for other features. In a name, characters other than
          ASCII letters and digits become `_`. A name that does not begin with a letter gets the prefix
          `feature_`, and a Python keyword or `self` the suffix `_`. If another feature has the name, in any
          case, a number follows, as in `price_2`. A ragged feature is padded; if the lengths of its rows
          differ, they are the argument `<name>_row_lengths`, int64 `[n]`. Values with more than one ragged
          dimension, such as images, have the same size in a request. Zeros and empty strings of a sparse
          feature are absent.
        - `examples` takes `examples`, string `[n]`: records as they are stored, without targets or weights.

        Features with a `default`, and lists, are optional: in records, for each row alone; in a request of
        plain tensors, for all rows together. In plain tensors, NaN is a missing float, and an empty text is a
        missing date. The loaded model has the function `predict` with these defaults.

        If the target is a label, or encoded by `fit.encode`, the outputs are `class` and `probability` of the
        most probable class, `[n]`, and `classes` and `probabilities` of all classes, `[n, k]`; for
        `multi_hot`, only `classes` and `probabilities`. Otherwise, a single output has the name of the single
        target, or `outputs` if there is no single target, or with `raw`. Several outputs keep their names.

        Without a `map`, a request has the inputs of `fit`; with a `map`, all features except for targets and
        weights.

        Args:
            model: a Keras model, or a function of the inputs of `fit`.
            folder: the folder of the SavedModel, such as `models/taxi/1`; must not exist yet.
            map, encoders: as for `dataset`.
            outputs: whether a classifier returns `logits` or `probabilities`; by default derived from its
                last activation or its loss. `raw` exports its outputs unchanged.

        Returns the names of the arguments of `serving_default`, by feature.

        Raises:
            SpecError: the config has no `fit`, the model cannot be exported, or neither its last activation
                nor its loss tells logits from probabilities.
            StoreError: the folder exists, or cannot be written.

        Example:
            >>> import tensorflow as tf
            >>> model = tf.function(lambda x: tf.stack([x, -x], 1))
            >>> pipeline.export_model(model, "models/points/1", outputs="logits")
            {'x': 'x'}
        """
        place, fit = local(folder), self.config.fit
        if fit is None:
            raise SpecError(Problem(path=("fit",), expected="the inputs of the model", got="none"))
        if map is not None:
            check_arguments("map", map, 1, "(features), a dict")
            map = naming_features("map", map)  # noqa: A001
        schema = fit.request(self.schema, whole=map is not None)
        serving.check_exportable(model)
        serving.check_inputs(model, fit)
        chosen = self._encoders(fit, encoders)
        target = fit.target_of_classes(self.schema)
        classes = target and TargetClasses(
            target=target,
            names=self.class_names(target, encoders=chosen),
            several=bool(self.schema.names[target].value_type.shape),
        )
        layers = encoding_tensors.layers(chosen)
        return serving.export_model(model, place, schema, fit, layers, map, classes or None, outputs)

    def steps(self, split: str | Sequence[str], **options: Unpack[DatasetOptions]) -> int:
        """Returns the exact number of batches of all passes of a split, for the options of `dataset`.

        Raises SpecError for `repeat: forever`, and if the number depends on the values of rows.

        Example:
            >>> pipeline.steps("train", batch=5)
            3
        """
        read = self._read(options)
        for option in ("bucket", "balance"):
            if getattr(read, option) is not None:
                expected = "batches whose number follows from that of the rows"
                raise SpecError(Problem(path=("read", option), expected=expected, got=f"`{option}`"))
        if read.passes is None:
            raise SpecError(Problem(path=("read", "repeat"), expected="an end", got="`forever`"))
        if read.pack is not None:
            return self._passes(split, 0, 1, options).steps * read.passes
        return (self._plan(split, read).batches(read.batch) or 0) * read.passes

    def locating(self, split: str | Sequence[str] | None = None) -> AbstractContextManager[None]:
        """A context manager in which TensorFlow's read errors name the record that caused them.

            with pipeline.locating():
                model.fit(pipeline.dataset("train"))

        See `recordspec.locating`. Checks the files of one split, of several, or by default of all.

        Example:
            >>> with pipeline.locating("train"):
            ...     steps = sum(1 for _ in pipeline.dataset("train"))
        """
        return locating(self._stored, self._paths(self._split_names if split is None else split))

    def class_weights(self, split: str | Sequence[str], feature: str | None = None) -> dict[int, float]:
        """Returns class weights of a label, or of a target in `fit.encode`, for
        `model.fit(class_weight=...)`, larger for rare classes.

        A weight is rows / (classes * rows of the class), as for scikit-learn's "balanced". A class without
        rows is not counted among the classes, and has the weight 1.

        Args:
            split: the name of a split, or the names of several to count together.
            feature: the label or the target; by default the target of the config's `fit`. The rows of an
                encoded target are counted in one pass over the split.

        Raises:
            SpecError: there is no such label, or target with one class for each row.
            StoreError: there is no such split, or the rows of its classes were not counted.
            RecordError: a value is not a class of the training split.

        Example:
            >>> sorted(pipeline.class_weights("train"))
            [0, 1]
        """
        splits = _splits(split)
        label = self._target if feature is None else feature
        self._shards(splits)  # each must be there
        encoder = self._encoder_of_classes(label)
        if encoder is not None:
            counts = np.zeros(len(encoder.class_names), np.int64)
            for batch in self._batches(split, (label,)):
                counts += np.bincount(
                    encoding_arrays.class_codes(batch[label], encoder), minlength=len(counts)
                )
            return class_weights(counts.tolist())
        known = self.manifest.class_counts(splits)
        return class_weights(class_counts(label, self.schema, known, self.data, ("feature",)))

    def _encoder_of_classes(self, name: str) -> encoding.FitEncoder | None:
        """The encoder of a target with one learned class for each row; None for any other feature."""
        fit, feature = self.config.fit, self.schema.names.get(name)
        if fit is None or feature is None or feature.traits.class_names or feature.value_type.shape:
            return None
        is_class = name in fit.encoded_targets and fit.encode[name].as_ != "words"
        return self._encoders(fit)[name] if is_class else None

    def class_names(
        self,
        feature: str | None = None,
        *,
        encoders: Mapping[str, encoding.FitEncoder] | None = None,
    ) -> tuple[str, ...]:
        """Returns the class names of a target, by index: of a label, or of a target in `fit.encode`.

        Args:
            feature: a label, or an encoded target; by default the target of the config's `fit`.
            encoders: as for `dataset`.

        Raises SpecError for a feature without classes, and the errors of `encoders`.

        Example:
            >>> pipeline.class_names()
            ('no', 'yes')
        """
        name = self._target if feature is None else feature
        fit, known = self.config.fit, self.schema.names.get(name)
        if known is not None and known.traits.class_names:
            return known.traits.class_names
        if fit is not None and name in fit.encoded_targets:
            return self._encoders(fit, encoders)[name].class_names
        expected = "a label, or a target in `fit.encode`"
        hint = "" if known is not None else nearest(name, self.schema.names)
        raise SpecError(Problem(path=("feature",), expected=expected, got=f"`{name}`", hint=hint))

    def _fit(self, targets: bool, read: Read) -> Fit | None:
        """The selection of the config, or that of its inputs alone. Raises SpecError if there is none."""
        fit = self.config.fit
        if fit is not None:
            problems = list(check_packed(fit, read.pack))
            if problems:
                raise SpecError(problems)
            if read.pack is not None:
                fit = replace(fit, ragged="keep")
        if fit is None and not targets:
            raise SpecError(
                Problem(path=("targets",), expected="true without `fit` in the config", got="false")
            )
        return fit if fit is None or targets else fit.without_targets

    def _without_targets(self, read: Read, mapped: Callable[..., Any] | None) -> Read:
        """The options, without decoding targets and weights, which rows may lack."""
        fit = self.config.fit
        if fit is None or read.features is not None:
            return read
        whole = mapped is not None or bool(fit.derived)
        return replace(read, features=fit.request(self.schema, whole=whole).outputs)

    @property
    def _target(self) -> str:
        targets = None if self.config.fit is None else self.config.fit.targets
        if not isinstance(targets, str):
            expected, hint = "the name of a label", "the config's `fit` has no single target"
            raise SpecError(Problem(path=("feature",), expected=expected, got="none", hint=hint))
        return targets

    def _read(self, options: Mapping[str, Any]) -> Read:
        read: Read = from_python(Read, {**options_of(self.config.read), **options})
        return read.within(self.folder)

    def _shards(self, split: str | Sequence[str]) -> list[Shard]:
        return [shard for one in _splits(split) for shard in self.manifest.shards(one)]

    def _paths(self, split: str | Sequence[str]) -> tuple[Location, ...]:
        return tuple(self.data / shard.file for shard in self._shards(split))

    def _plan(self, split: str | Sequence[str], read: Read, share: WorkerShard | None = None) -> Plan:
        intact = without_corrupt if read.corrupt == "skip" else None
        dataset = StoredDataset(self._paths(split), {self.data: self.manifest}, self.schema)
        return plan_files(dataset, share, intact)

    def _augmenting(self, split: str | Sequence[str], read: Read) -> Read:
        """The options, without `augment` if it is for other splits."""
        return read if read.augment is None else read.of_splits(_splits(split), self._split_names)

    def _dataset(
        self,
        split: str | Sequence[str],
        tensors: _Tensors,
        predicate: Callable[..., Any] | None,
        *,
        start: Position | None,
        worker: WorkerShard | None = None,
    ) -> Any:
        read = self._augmenting(split, tensors.read)
        plan = self._plan(split, read, None if read.divides_batches else worker)
        return reading.build(
            read,
            tensors.schema,
            plan,
            split=split,
            map=tensors.finish,
            packed=tensors.packed,
            predicate=predicate,
            start=start,
            worker=worker,
            measures=self._measures,
        )

    @property
    def _measures(self) -> dict[str, Callable[..., Any]]:
        return {} if self.config.fit is None else encoding_tensors.measures(self.config.fit.encode)

    def layers(self, split: str | Sequence[str] = "train") -> dict[str, Any]:
        """Returns the Keras layers of the inputs and targets in `fit.encode`, by name.

        The layers have the statistics of a split: see `encoders`. They equal `keras.layers.Normalization`,
        `StringLookup`, `IntegerLookup`, `Discretization` and `TextVectorization` adapted to the stored
        values. They encode single values, or a whole batch; `dataset` also pads, sums `multi_hot` and
        `count`, and encodes missing values as unknown.

        Args:
            split: the name of the training split, or the names of several.

        Raises the errors of `encoders`.

        Example:
            >>> pipeline.layers()
            {}
        """
        return encoding_tensors.layers(self.encoders(split))

    def encoders(self, split: str | Sequence[str] = "train") -> dict[str, encoding.FitEncoder]:
        """Returns the encoders of the inputs and targets in `fit.encode`, by name.

        An encoder is data, with the statistics of a split. `layers` converts encoders to Keras layers, and
        `iterate` applies them without TensorFlow.

        Statistics are computed from the stored values, before `map` and `filter`, without the values that
        `with_missing` marks as missing. One pass computes all statistics, without TensorFlow, and stores them
        in `layers.json` beside the dataset. They are valid until the dataset, a feature or `fit.encode`
        changes.

        Args:
            split: the name of the training split, or the names of several.

        Raises the errors of `dataset`; RecordError for a record that cannot be read; SpecError for values
        from which nothing can be learned, and for a custom kind without `decode_numpy`.

        Example:
            >>> pipeline.encoders()
            {}
        """
        fit = self.config.fit
        if fit is None or not fit.encode:
            return {}

        batches = partial(self._batches, split)
        encodes, targets = fit.encode, fit.encoded_targets
        fingerprint = encoding.fingerprint(self.schema, encodes, targets, self._shards(split))
        return encoding.encoders(self.schema, encodes, targets, fingerprint, self.data / LAYERS_FILE, batches)

    def _read_as(self, read: Read) -> tuple[Schema, tuple[str, ...]]:
        """The schema with which rows are decoded, and the features that are padded, but not in packs."""
        return (self.schema, ()) if read.pack is None else packable(self.schema)

    def _batches(
        self, split: str | Sequence[str], names: Iterable[str], schema: Schema | None = None
    ) -> Iterator[dict[str, Any]]:
        """Batches of the named features of a split, as `Schema.decode_numpy` returns them.

        Args:
            schema: the schema with which rows are decoded; by default that of the pipeline.
        """
        read = self._read({})
        plan = self._plan(split, read)
        folder = staged_shards.folder_of(read.staging, plan.pieces)
        return decoded_files((schema or self.schema).only(names), plan, folder)

    def _tensors(
        self,
        split: str | Sequence[str],
        read: Read,
        mapped: Callable[..., Any] | None,
        map_fit: Callable[..., Any] | None,
        predicate: Callable[..., Any] | None,
        encoders: Mapping[str, encoding.FitEncoder] | None = None,
        *,
        targets: bool,
    ) -> _Tensors:
        """How tensors are read and finished, by the arguments of `dataset`."""
        fit, (schema, padded) = self._fit(targets, read), self._read_as(read)
        check_functions(fit, mapped, map_fit, read.pack)
        chosen = {} if fit is None else self._encoders(fit, encoders)
        layers = encoding_tensors.layers(chosen)
        finished = partial(finish_tensors, fit, schema, layers, mapped, padded=padded)
        if not targets:
            read = self._without_targets(read, mapped)
        if read.pack is None:
            return _Tensors(read, schema, finished(map_fit, batched=read.batch is not None))
        if fit is not None and mapped is None and read.features is None and not fit.derived:
            read = replace(read, features=fit.features_of(schema))
        finish, picked = FinishArrays(fit, schema, chosen, mapped, None, padded), None
        if mapped is not None:  # a function of tensors
            whole = Read(batch=Batch(size=_COUNTED), features=read.features)
            picked = partial(
                self._dataset, split, _Tensors(whole, schema, finished(None, batched=True)), None, start=None
            )
        packing, packed = self._packing(split, read, finish, predicate, picked)
        return _Tensors(read, schema, finished(map_fit, batched=True, packing=packing), packed)

    def _encoders(
        self, fit: Fit, encoders: Mapping[str, encoding.FitEncoder] | None = None
    ) -> Mapping[str, encoding.FitEncoder]:
        """The given encoders, or the encoders of the split `train`."""
        if encoders is not None:
            fit.check_encoders(encoders)
            return encoders
        if fit.encode and "train" not in self.manifest.splits:
            expected = "a split `train`, from which `fit.encode` learns"
            got = ", ".join(self.manifest.splits)
            hint = f"`encoders=pipeline.encoders(SPLIT)` takes another one; {see('encoding')}"
            raise StoreError(Problem(path=("encoders",), expected=expected, got=got, hint=hint))
        return self.encoders()


def _splits(split: str | Sequence[str]) -> tuple[str, ...]:
    return (split,) if isinstance(split, str) else tuple(split)


def _plain(value: Any) -> Any:
    """A NumPy value as a Python value; bytes as text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value.item()
