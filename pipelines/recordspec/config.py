"""Reads a config: its schema, the source of its rows, and how they are built, read and fed to a model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from recordspec.errors import Problem, SpecError, one_of
from recordspec.locations import Location, LocationText, absolute, below, location_problem
from recordspec.reading.filtering import check_label
from recordspec.reading.fit import Fit
from recordspec.reading.options import Read
from recordspec.remote import RemotePath
from recordspec.spec.features import KINDS, Feature
from recordspec.spec.options import INVALID, YamlValue, document, read_fields
from recordspec.spec.schema import Schema, read_text, schema_in
from recordspec.spec.yaml_text import ScalarNode
from recordspec.writing.options import Write
from recordspec.writing.sources.base import Source
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import AudioFolder, ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.tfrecord import TFRecords


@dataclass(frozen=True, kw_only=True)
class From:
    """The source of rows: exactly one of these."""

    csv: Csv | None = None
    jsonl: Jsonl | None = None
    parquet: Parquet | None = None
    image_folder: ImageFolder | None = None
    audio_folder: AudioFolder | None = None
    tfrecord: TFRecords | None = None

    def __post_init__(self) -> None:
        if len(self._given) != 1:
            expected = one_of(field.name for field in fields(self))
            raise SpecError(Problem(expected=expected, got="several" if self._given else "none"))

    @property
    def _given(self) -> dict[str, Any]:
        forms = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: form for name, form in forms.items() if form is not None}

    def open(self, folder: Location, path: str | os.PathLike[str] | RemotePath | None = None) -> Source:
        """The source of rows; its paths are relative to `folder`. Another `path` than its own is relative to
        the current folder."""
        (form,) = self._given.values()
        found = form.open(folder)
        source: Source = found if path is None else replace(found, **{form.SHORT_FORM: str(absolute(path))})
        return source


@dataclass(frozen=True, kw_only=True)
class WriteFrom(Write):
    """The section `write:`. Without a source, rows are given in Python."""

    source: From | None = None


@dataclass(frozen=True, kw_only=True)
class Config:
    """A dataset definition. Its paths are relative to the config file, or URLs.

    Attributes:
        schema: the path of the feature spec.
        data: the folder of the shards.
        write: how the shards are built; see `Write`.
        read: how the shards are read; see `Read`.
        fit: what a model takes; see `Fit`. Without it, a dict of all features.
        description: for people.
    """

    schema: LocationText
    data: LocationText
    write: WriteFrom = field(default_factory=WriteFrom)
    read: Read = field(default_factory=Read)
    fit: Fit | None = None
    description: str = ""


def load(path: Location, kinds: Mapping[str, type[Feature]] = KINDS) -> tuple[Config, Schema]:
    """A config and its schema. Raises SpecError with every problem in both, or StoreError."""
    node, log = document(read_text(path), str(path))
    config: Config = read_fields(Config, YamlValue(node), (), log)
    schema: Any = INVALID
    name = node.values.get("schema")
    if isinstance(name, ScalarNode) and location_problem(name.text) is None:
        try:
            schema = Schema.load(below(path.parent, name.text), kinds)
        except SpecError as error:  # its problems join those of the config
            for problem in error.problems:
                log.put(problem)
    if config is not INVALID and schema is not INVALID:
        log.adopt(SpecError(list(_check(config, schema))), YamlValue(node), ())
    log.close()
    return config, schema


def load_any(path: Location) -> tuple[Config | None, Schema]:
    """A schema file, or a config file with its schema: only a schema has features. Raises as `load` does."""
    schema = schema_in(path)
    return load(path) if schema is None else (None, schema)


def _check(config: Config, schema: Schema) -> Iterator[Problem]:
    """Yields the problems of sections that do not agree with the schema, or with each other."""
    if config.fit is not None:
        yield from config.fit.check(schema)
    if config.read.balance is not None:
        yield from check_label(config.read.balance.by, schema, ("read", "balance", "by"))
    if config.fit is not None and config.read.batch is None:
        hint = "Keras takes batches"
        yield Problem(path=("read",), expected="a batch to fit on", got="none", hint=hint)
