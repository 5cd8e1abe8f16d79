"""Imports and exports schemas of TensorFlow Datasets, `features.json`, without its package. Prepares
datasets for `tfds.builder_from_directory`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from recordspec.errors import StoreError, show_json
from recordspec.interop import MAX_SCHEMA_BYTES, TFDS_FEATURES, TFDS_INFO
from recordspec.interop.notes import Note, losses
from recordspec.interop.tfds import dataset_info
from recordspec.interop.tfds.exporter import export_features, label_files
from recordspec.interop.tfds.importer import ClassNames, import_schema
from recordspec.interop.tfds.nodes import LABELS_SUFFIX, parse_features
from recordspec.locations import local, read_text
from recordspec.schema.schema import Schema
from recordspec.store.manifest import Manifest


def load(path: str | Path) -> tuple[Schema, tuple[Note, ...]]:
    """Reads the schema of a features.json, or of its folder. Also returns notes on parts without a
    counterpart.

    The names of labels are read from files in the folder, the name of the schema from dataset_info.json.
    Raises SpecError with all problems, StoreError if a file cannot be read.
    """
    path = local(path)
    file = path / TFDS_FEATURES if path.is_dir() else path
    text = _read(file)
    return loads(text, name=_name(file), names=lambda stem: _names(file.parent, stem), source=str(file))


def _read(file: Path) -> str:
    return read_text(file, MAX_SCHEMA_BYTES)


def _name(file: Path) -> str:
    info = file.with_name(TFDS_INFO)
    if not info.exists():
        return file.stem
    try:
        name = json.loads(_read(info))["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return file.stem  # a schema can be read even if its dataset_info.json is invalid
    return name if isinstance(name, str) and name else file.stem


def _names(folder: Path, stem: str) -> tuple[str, ...] | None:
    """The names of classes, read like TFDS reads them."""
    file = folder / f"{stem}{LABELS_SUFFIX}"
    if not file.exists():
        return None
    return tuple(line.strip() for line in _read(file).split("\n") if line.strip())


def loads(
    text: str, *, name: str = "features", names: ClassNames = lambda stem: None, source: str = "<text>"
) -> tuple[Schema, tuple[Note, ...]]:
    """Returns the schema in a text, with the name `name`, and notes on parts without a counterpart.

    Raises SpecError.

    `names` returns the names of a label's classes by the stem of their file; `source` names the text in
    messages.
    """
    return import_schema(parse_features(text, source), name, names, source)


def dumps(schema: Schema) -> tuple[str, tuple[Note, ...]]:
    """Returns a schema as features.json, and notes on parts that it cannot express. Raises SpecError.

    The names of labels are stored in other files of the folder; see `dataset_files`.
    """
    features, notes = export_features(schema)
    text = _dump_json(features)
    back, _ = loads(text)
    return text, (*notes, *_losses(schema, back))


def dataset_files(folder: Path, manifest: Manifest, schema: Schema) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns the texts of the files that `tfds.builder_from_directory(folder)` needs to open a dataset, by
    name, and notes on parts that they cannot express.

    Raises StoreError if TFDS cannot read the dataset.
    """
    problems = [problem.at(str(folder)) for problem in dataset_info.unreadable(manifest)]
    if problems:
        raise StoreError(problems)
    features, notes = export_features(schema)
    labels = dict(label_files(schema))
    named = {f"{stem}{LABELS_SUFFIX}": "\n".join(names) + "\n" for stem, names in labels.items()}
    files = {
        TFDS_FEATURES: _dump_json(features),
        **named,
        TFDS_INFO: _dump_json(dataset_info.dataset_info(manifest, schema)),
    }
    back, _ = loads(files[TFDS_FEATURES], name=schema.name, names=labels.get)
    lost = _losses(schema, replace(back, version=schema.version))
    return files, tuple(map(str, (*notes, *lost)))


def _losses(schema: Schema, back: Schema) -> Iterator[Note]:
    """Notes on differences, with their consequences for readers with TFDS."""
    defaults = {(place.section, feature.name, "default") for place, feature in schema._placed}
    for note in losses(schema, back):
        more = ": TFDS fails at a record without the feature" * (note.path in defaults)
        yield replace(note, text=f"{note.text}{more}")


def _dump_json(value: dict[str, Any]) -> str:
    return show_json(json.dumps(value, indent=1, ensure_ascii=False)) + "\n"
