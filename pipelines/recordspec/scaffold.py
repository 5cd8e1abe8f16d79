"""A first schema and a first config for files that have neither."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from recordspec.errors import Problem, SpecError
from recordspec.inspect.infer import infer
from recordspec.locations import Location
from recordspec.progress import Progress
from recordspec.remote import is_url
from recordspec.spec.infer import Inferred
from recordspec.spec.schema import Schema
from recordspec.store.shards import expand

_TABLES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}
_LANGUAGES = {".pbtxt": "tfmd", ".pb": "tfmd", ".binpb": "tfmd", ".json": "tfds"}


def inferred(
    files: Sequence[str],
    name: str | None,
    *,
    sample: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Inferred:
    """A schema inferred from TFRecords or a table, or translated from another language, by the file names.

    Args:
        name: the name of the schema; by default that of the first file, or that in the other language.
        sample: the number of records of each file, or rows of a table, to read; None for all.

    Raises StoreError, RecordError or SpecError where there is none.
    """
    paths = expand(files)
    suffix = paths[0].suffix
    if suffix not in (*_TABLES, *_LANGUAGES):
        return infer(files, name or stem(paths[0]), sample=sample, jobs=jobs, progress=progress)
    if len(paths) > 1:
        raise SpecError(Problem(where=str(paths[1]), expected=f"one {suffix} file", got="several"))
    if suffix in _TABLES:
        from recordspec.writing.sources.infer_table import infer_table

        return infer_table(paths[0], name or stem(paths[0]), sample)
    language = importlib.import_module(f"recordspec.interop.{_LANGUAGES[suffix]}")
    schema, translated = language.load(paths[0])
    schema = schema if name is None else replace(schema, name=name)
    return Inferred(schema=schema, notes=tuple(map(str, translated)), rows=None)


def config_text(files: Sequence[str], schema: Schema, schema_path: Path, path: Path) -> str:
    """A config, in YAML, that builds a dataset of these files and trains on it.

    What a model takes is a guess: the labels, or else the last feature, from all others. Raises SpecError
    for a schema of another language, which has no rows.
    """
    paths, home = expand(files), path.parent
    if paths[0].suffix in _LANGUAGES:
        expected, hint = "TFRecords, CSV or Parquet", "a config names its rows: infer without --config"
        raise SpecError(Problem(where=str(paths[0]), expected=expected, got="a schema", hint=hint))
    targets = [feature.name for _, feature in schema.placed if feature.class_names]
    names = [feature.name for _, feature in schema.placed]
    targets = targets or names[-1:]
    source = _TABLES.get(paths[0].suffix, "tfrecord")
    given = [one if is_url(one) else os.path.relpath(one, home) for one in files]
    config = {
        "schema": os.path.relpath(schema_path, home),
        "data": os.path.relpath(home / f"{schema.name}-data", home),
        "write": {
            "source": {source: given[0] if len(given) == 1 else given},
            "splits": {"train": 80, "test": 20},
            "shuffle": {"seed": 1},
        },
        "read": {"batch": 32, "shuffle": {"buffer": 10_000, "seed": 1}},
        "fit": {
            "inputs": _one_or_all([one for one in names if one not in targets] or targets),
            "targets": _one_or_all(targets),
        },
    }
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True)


def _one_or_all(names: list[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else names


def stem(path: Location) -> str:
    """What a schema of a file is called."""
    first = path.name.partition(".")[0].partition("-")[0]
    return "".join(letter if letter.isalnum() else "_" for letter in first) or "data"
