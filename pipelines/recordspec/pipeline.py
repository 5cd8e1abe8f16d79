"""A config made live."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from recordspec import config as config_file
from recordspec.config import Config
from recordspec.errors import Problem, SpecError
from recordspec.reading import bench as benching
from recordspec.reading import dataset as reading
from recordspec.reading.options import Read
from recordspec.reading.order import Position
from recordspec.reading.plan import Plan, Share, check_schema, plan
from recordspec.spec.features import KINDS, Feature
from recordspec.spec.options import from_python
from recordspec.spec.plain import shallow
from recordspec.spec.schema import Schema
from recordspec.store.manifest import Manifest, Shard
from recordspec.writing.builder import write
from recordspec.writing.estimate import Estimate, estimate
from recordspec.writing.sources import source_of


class Pipeline:
    """A dataset that a config defines: built, read, and fed to a model.

    Attributes:
        config: the sections of the file.
        schema: the feature spec that it names.
        folder: what the config's paths are relative to.
        notes: what the last build left out, for people.
    """

    def __init__(self, config: Config, schema: Schema, folder: str | os.PathLike[str] = ".") -> None:
        self.config = config
        self.schema = schema
        self.folder = Path(folder)
        self.notes: list[str] = []

    @classmethod
    def load(cls, path: str | os.PathLike[str], kinds: Mapping[str, type[Feature]] = KINDS) -> Pipeline:
        """The pipeline of a config file. Raises SpecError with every problem in it, or StoreError."""
        path = Path(path)
        return cls(*config_file.load(path, kinds), path.parent)

    @property
    def data(self) -> Path:
        """The folder of the shards."""
        return Path(os.path.normpath(self.folder / self.config.data))

    def build(
        self,
        rows: Any = None,
        *,
        source: str | os.PathLike[str] | None = None,
        **how: Any,
    ) -> Manifest:
        """Writes the dataset.

        Args:
            rows: as `recordspec.write` takes them; by default those of the config's source.
            source: a file or folder to read in the place of the one that the config names.
            how: jobs, memory, limit, force, append, resume and progress, as `recordspec.write` takes them.

        Raises what `recordspec.write` raises.
        """
        rows, options = self._to_write(rows, source)
        self.__dict__.pop("manifest", None)
        return write(self.schema, rows, self.data, **options, **how)

    def plan(self, rows: Any = None, *, source: str | os.PathLike[str] | None = None, **how: Any) -> Estimate:
        """What `build` would write, and what it would need, told from a sample of the rows.

        Takes what `build` takes, and writes nothing but the sample, into a folder that is gone afterwards.
        """
        rows, options = self._to_write(rows, source)
        return estimate(self.schema, rows, self.data, **options, **how)

    def _to_write(self, rows: Any, source: str | os.PathLike[str] | None) -> tuple[Any, dict[str, Any]]:
        """The rows, and the options of the config as `recordspec.write` takes them."""
        section = self.config.write
        if rows is None:
            if section.source is None:
                hint = "give rows, or add write.source to the config"
                raise SpecError(Problem(path=("write",), expected="a source of rows", got="none", hint=hint))
            given = section.source if source is None else section.source.at(source)
            rows = given.open(self.folder)
        rows = source_of(rows)
        self.notes = rows.notes
        options = shallow(section)
        del options["source"]
        return rows, {"split": options.pop("splits"), **options}

    @cached_property
    def manifest(self) -> Manifest:
        """Of the dataset as it was built. Raises StoreError if it was not, or with another schema."""
        manifest = Manifest.load(self.data)
        check_schema(manifest, self.schema, self.data)
        return manifest

    def dataset(
        self,
        split: str | Sequence[str],
        *,
        map: Callable[..., Any] | None = None,  # noqa: A002  tf.data's name
        filter: Callable[..., Any] | None = None,  # noqa: A002
        start: Position | tuple[int, int] | None = None,
        **options: Any,
    ) -> Any:
        """A tf.data.Dataset of a split, for `model.fit`: what the config's `fit` says, else all features.

        Args:
            split: its name, or those of several, folds say.
            map: a function on each decoded batch, a dict, before `fit` picks from it.
            filter: a function of a decoded batch that gives a bool for each row: whether it is kept.
            start: the epoch and the step, both from 0, to begin at, as if all before had been read.
            options: of `read`, in place of the config's: batch, shuffle, interleave, bucket, features,
                cache, repeat, prefetch, deterministic, corrupt, service.

        Raises:
            SpecError: an option is wrong.
            StoreError: the dataset is not built, has no such split, or was written with another spec.
        """
        return self._dataset(split, self._read(options), map, filter, start=Position.of(start))

    def input_fn(
        self,
        split: str | Sequence[str],
        *,
        map: Callable[..., Any] | None = None,  # noqa: A002
        filter: Callable[..., Any] | None = None,  # noqa: A002
        start: Position | tuple[int, int] | None = None,
        **options: Any,
    ) -> Callable[..., Any]:
        """A function that makes the dataset, as tf.distribute takes it; arguments as of `dataset`.

        Called with a `tf.distribute.InputContext`, it gives one worker its share of the records, in
        batches of the config's size divided by the number of replicas. Every worker has the same number
        of batches.
        """
        begin = Position.of(start)
        how = self._read(options)

        def make(context: Any = None) -> Any:
            if context is None:
                return self._dataset(split, how, map, filter, start=begin)
            share = Share(context.num_input_pipelines, context.input_pipeline_id)
            divided = reading.per_replica(how, context.num_replicas_in_sync)
            return self._dataset(split, divided, map, filter, start=begin, share=share)

        return make

    def bench(
        self,
        split: str | Sequence[str],
        *,
        map: Callable[..., Any] | None = None,  # noqa: A002
        filter: Callable[..., Any] | None = None,  # noqa: A002
        seconds: float = 5.0,
        **options: Any,
    ) -> benching.Bench:
        """How fast `dataset` is, stage by stage, and how well it shuffles; arguments as of `dataset`.

        Args:
            seconds: for each stage.

        Raises what `dataset` raises, and SpecError if `seconds` is no time.
        """
        how, what = self._read(options), self._plan(split, None)
        return benching.bench(how, self.schema, what, map=self._mapped(map), keep=filter, seconds=seconds)

    def steps(self, split: str | Sequence[str], **options: Any) -> int:
        """Batches in an epoch of the split, exactly; with options as `dataset` takes them.

        Raises SpecError where no end was asked for, or what is in a row decides how many there are.
        """
        how = self._read(options)
        if how.bucket is not None:
            expected = "batches whose number follows from that of the rows"
            raise SpecError(Problem(path=("read", "bucket"), expected=expected, got="`bucket`"))
        if how.passes is None:
            raise SpecError(Problem(path=("read", "repeat"), expected="an end", got="`forever`"))
        return (self._plan(split, None).batches(how.batch) or 0) * how.passes

    def _read(self, options: Mapping[str, Any]) -> Read:
        how: Read = from_python(Read, {**shallow(self.config.read), **options})
        if how.cache in ("none", "memory"):
            return how
        return replace(how, cache=os.path.normpath(self.folder / how.cache))

    def _shards(self, split: str | Sequence[str]) -> list[Shard]:
        splits = (split,) if isinstance(split, str) else split
        return [shard for one in splits for shard in self.manifest.shards(one)]

    def _plan(self, split: str | Sequence[str], share: Share | None) -> Plan:
        paths = tuple(self.data / shard.file for shard in self._shards(split))
        return plan(paths, self.schema, share)

    def _dataset(
        self,
        split: str | Sequence[str],
        how: Read,
        mapped: Callable[..., Any] | None,
        keep: Callable[..., Any] | None,
        *,
        start: Position | None,
        share: Share | None = None,
    ) -> Any:
        what = self._plan(split, share)
        return reading.build(how, self.schema, what, map=self._mapped(mapped), keep=keep, start=start)

    def _mapped(self, mapped: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """With what `fit` picks after it."""
        fit = self.config.fit
        return mapped if fit is None else _then(mapped, fit.pick)


def _then(first: Callable[..., Any] | None, second: Callable[..., Any]) -> Callable[..., Any]:
    return second if first is None else lambda features: second(first(features))
