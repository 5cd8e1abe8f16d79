"""Imports and exports schemas of TensorFlow Metadata, `schema.pbtxt`, without its package."""

from __future__ import annotations

from pathlib import Path

from recordspec.errors import SpecError
from recordspec.interop import MAX_SCHEMA_BYTES
from recordspec.interop.notes import Note, losses
from recordspec.interop.tfmd.exporter import export_schema
from recordspec.interop.tfmd.importer import import_schema
from recordspec.interop.tfmd.messages import dump_text, parse_binary, parse_text
from recordspec.locations import local, read_bytes, read_text
from recordspec.schema.schema import Schema

_BINARY_SUFFIXES = (".pb", ".binpb")


def load(path: str | Path) -> tuple[Schema, tuple[Note, ...]]:
    """Reads the schema in a file, named after the file. Also returns notes on parts without a counterpart.

    A file that ends in .pb or .binpb is binary; any other file is text. Raises SpecError with all problems,
    StoreError if the file cannot be read.
    """
    path = local(path)
    if path.suffix in _BINARY_SUFFIXES:
        message, unknown = parse_binary(read_bytes(path, MAX_SCHEMA_BYTES, SpecError), str(path))
    else:
        message, unknown = parse_text(read_text(path, MAX_SCHEMA_BYTES), str(path))
    schema, notes = import_schema(message, path.stem, str(path))
    return schema, (*unknown, *notes)


def loads(text: str, *, name: str = "schema", source: str = "<text>") -> tuple[Schema, tuple[Note, ...]]:
    """Returns the schema in a text, with the name `name`, and notes on parts without a counterpart.

    Raises SpecError.

    `source` names the text in messages.
    """
    message, unknown = parse_text(text, source)
    schema, notes = import_schema(message, name, source)
    return schema, (*unknown, *notes)


def dumps(schema: Schema) -> tuple[str, tuple[Note, ...]]:
    """Returns a schema as text of TensorFlow Metadata, and notes on what it cannot express."""
    message = export_schema(schema)
    back, _ = import_schema(message, "schema", schema.name)
    return dump_text(message), tuple(losses(schema, back))
