"""A config file: which schema, where the rows come from, how they are written, read and fed to a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.reading.fit import Fit
from recordspec.reading.options import Read
from recordspec.spec.features import KINDS, Feature
from recordspec.spec.options import INVALID, document, read_fields
from recordspec.spec.schema import Schema, read_text
from recordspec.writing.options import Write
from recordspec.writing.sources.base import Source
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.image_folder import ImageFolder
from recordspec.writing.sources.tfrecord import TFRecords


@dataclass(frozen=True, kw_only=True)
class From:
    """Where rows come from: one of these."""

    csv: Csv | None = None
    image_folder: ImageFolder | None = None
    tfrecord: TFRecords | None = None

    def __post_init__(self) -> None:
        given = [one for one in self._all() if one is not None]
        if len(given) != 1:
            expected = "one of csv, image_folder, tfrecord"
            raise SpecError(Problem(expected=expected, got="several" if given else "none"))

    def _all(self) -> tuple[Csv | ImageFolder | TFRecords | None, ...]:
        return (self.csv, self.image_folder, self.tfrecord)

    def open(self, folder: Path) -> Source:
        """The rows; relative paths start at `folder`."""
        return next(one for one in self._all() if one is not None).open(folder)


@dataclass(frozen=True, kw_only=True)
class WriteFrom(Write):
    """The section `write:`. Without a source, rows are given in Python."""

    source: From | None = None


@dataclass(frozen=True, kw_only=True)
class Config:
    """A dataset definition. Its paths are relative to the config file.

    Attributes:
        schema: the path of the feature spec.
        data: the folder of the shards.
        write: how they are built; see `Write`.
        read: how they are read; see `Read`.
        fit: what a model takes; see `Fit`. Without it, a dict of all features.
        description: for people.
    """

    schema: str
    data: str
    write: WriteFrom = field(default_factory=WriteFrom)
    read: Read = field(default_factory=Read)
    fit: Fit | None = None
    description: str = ""


def load(path: Path, kinds: Mapping[str, type[Feature]] = KINDS) -> tuple[Config, Schema]:
    """A config and its schema. Raises SpecError with every problem in both, or StoreError."""
    node, log = document(read_text(path), str(path))
    config: Any = read_fields(Config, node, (), log)
    schema = None
    if config is not INVALID:
        try:
            schema = Schema.load(path.parent / config.schema, kinds)
        except SpecError as error:
            log.close()
            raise error
        log.relocate(SpecError(list(_check(config, schema))), node, ())
    log.close()
    assert schema is not None  # an invalid config has problems, and `close` raised them
    return config, schema


def load_any(path: Path) -> tuple[Config | None, Schema]:
    """A schema file, or a config file with its schema: a schema has features. Raises as `load` does."""
    text = read_text(path)
    node, _ = document(text, str(path))
    if "data" in node.values or "write" in node.values:
        return load(path)
    return None, Schema.loads(text, source=str(path))


def _check(config: Config, schema: Schema) -> Iterator[Problem]:
    """What the sections say of the schema."""
    if config.fit is not None:
        yield from config.fit.check(schema.outputs)
    if config.fit is not None and config.read.batch is None:
        hint = "Keras takes batches"
        yield Problem(path=("read",), expected="a batch to fit on", got="none", hint=hint)
