"""Schemas of TensorFlow Datasets, `features.json`, in and out, without its package; and datasets of ours
that `tfds.builder_from_directory` opens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, StoreError, show_json
from recordspec.interop.files import read_text
from recordspec.interop.notes import Note, losses
from recordspec.interop.tfds import dataset
from recordspec.interop.tfds.nodes import document
from recordspec.interop.tfds.reading import Names, read_schema
from recordspec.interop.tfds.writing import label_files, write_features
from recordspec.locations import local
from recordspec.spec.schema import Schema
from recordspec.store.manifest import SCHEMA_FILE, Manifest
from recordspec.store.sidecars import add_sidecars

_NAMES_SUFFIX = ".labels.txt"


def load(path: str | Path) -> tuple[Schema, tuple[Note, ...]]:
    """The schema of a features.json, or of the folder it lies in, and what of it has no counterpart.

    The names of its labels come from the files beside it, its own name from dataset_info.json. Raises
    SpecError with what is wrong, StoreError if a file cannot be read.
    """
    path = local(path)
    file = path / dataset.FEATURES if path.is_dir() else path
    schema, notes = read_schema(
        document(read_text(file), str(file)), _name(file), lambda stem: _names(file.parent, stem), str(file)
    )
    return schema, tuple(notes)


def _name(file: Path) -> str:
    info = file.with_name(dataset.INFO)
    if not info.exists():
        return file.stem
    try:
        name = json.loads(read_text(info))["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return file.stem  # that file is no business of who reads a schema
    return name if isinstance(name, str) and name else file.stem


def _names(folder: Path, stem: str) -> tuple[str, ...] | None:
    """The names of classes, as TFDS reads them."""
    file = folder / f"{stem}{_NAMES_SUFFIX}"
    if not file.exists():
        return None
    return tuple(line.strip() for line in read_text(file).split("\n") if line.strip())


def loads(
    text: str, *, name: str = "features", names: Names = lambda stem: None, source: str = "<text>"
) -> tuple[Schema, tuple[Note, ...]]:
    """The schema in text, called `name`, and what of it has no counterpart. Raises SpecError.

    `names` gives the names of a label's classes by the stem of their file, `source` names the text in
    messages.
    """
    schema, notes = read_schema(document(text, source), name, names, source)
    return schema, tuple(notes)


def dumps(schema: Schema) -> tuple[str, tuple[Note, ...]]:
    """A schema as text of features.json, and what of it that does not say. Raises SpecError.

    The names of labels stand in files beside it; see `describe`.
    """
    features, notes = write_features(schema)
    text = _printed(features)
    back, _ = loads(text)
    return text, (*notes, *_losses(schema, back))


def describe(folder: str | Path) -> tuple[tuple[str, ...], tuple[Note, ...]]:
    """Writes what TFDS reads beside a dataset of ours: `tfds.builder_from_directory(folder)` opens it then.

    Gives the names of the files that were written, and notes on what they do not say. Raises StoreError
    where TFDS cannot read the dataset, or files of another hand stand there.
    """
    folder = local(folder)
    manifest = Manifest.load(folder)
    problems = [problem.at(str(folder)) for problem in dataset.obstacles(manifest)]
    if problems:
        raise StoreError(problems)
    schema = _schema(folder)
    features, notes = write_features(schema)
    labels = dict(label_files(schema))
    named = {f"{stem}{_NAMES_SUFFIX}": "\n".join(names) + "\n" for stem, names in labels.items()}
    files = {
        dataset.FEATURES: _printed(features),
        **named,
        dataset.INFO: _printed(dataset.info(manifest, schema)),
    }
    back, _ = loads(files[dataset.FEATURES], name=schema.name, names=labels.get)
    add_sidecars(folder, files)
    return tuple(files), (*notes, *_losses(schema, replace(back, version=schema.version)))


def _losses(schema: Schema, back: Schema) -> Iterator[Note]:
    """What comes back otherwise, with what follows from it for who reads with TFDS."""
    defaults = {(section, feature.name, "default") for section, feature in schema.placed}
    for note in losses(schema, back):
        more = ": TFDS fails at a record without the feature" * (note.path in defaults)
        yield replace(note, text=f"{note.text}{more}")


def _schema(folder: Path) -> Schema:
    path = folder / SCHEMA_FILE
    if not path.exists():
        hint = "TFDS must be told what the records are"
        raise StoreError(Problem(where=str(path), expected="the dataset's schema", got="none", hint=hint))
    return Schema.load(path)


def _printed(value: dict[str, Any]) -> str:
    return show_json(json.dumps(value, indent=1, ensure_ascii=False)) + "\n"
