"""Schemas of TensorFlow Metadata, `schema.pbtxt`, in and out, without its package."""

from __future__ import annotations

from pathlib import Path

from recordspec.interop.files import read_bytes, read_text
from recordspec.interop.notes import Note, losses
from recordspec.interop.tfmd import parsing
from recordspec.interop.tfmd.reading import read_schema
from recordspec.interop.tfmd.writing import write_schema
from recordspec.locations import local
from recordspec.spec.schema import Schema

_BINARY = (".pb", ".binpb")


def load(path: str | Path) -> tuple[Schema, tuple[Note, ...]]:
    """The schema in a file, named after the file, and what of it has no counterpart.

    A file that ends in .pb or .binpb is binary, any other is text. Raises SpecError with what is wrong,
    StoreError if the file cannot be read.
    """
    path = local(path)
    if path.suffix in _BINARY:
        message, unknown = parsing.binary(read_bytes(path), str(path))
    else:
        message, unknown = parsing.text(read_text(path), str(path))
    schema, notes = read_schema(message, path.stem, str(path))
    return schema, (*unknown, *notes)


def loads(text: str, *, name: str = "schema", source: str = "<text>") -> tuple[Schema, tuple[Note, ...]]:
    """The schema in text, called `name`, and what of it has no counterpart. Raises SpecError.

    `source` names the text in messages.
    """
    message, unknown = parsing.text(text, source)
    schema, notes = read_schema(message, name, source)
    return schema, (*unknown, *notes)


def dumps(schema: Schema) -> tuple[str, tuple[Note, ...]]:
    """A schema as text of TensorFlow Metadata, and what of it that does not say."""
    message = write_schema(schema)
    back, _ = read_schema(message, "schema", schema.name)
    return parsing.printed(message), tuple(losses(schema, back))
