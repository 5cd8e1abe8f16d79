"""Schemas of TensorFlow Metadata as text."""

from __future__ import annotations

from google.protobuf import text_format

from recordspec.interop import tfmd
from recordspec.interop.tfmd.messages import classes

ALWAYS = "presence {min_fraction: 1}"


def parsed(text: str):
    return text_format.Parse(text, classes()["Schema"]())


def imported(text: str) -> tuple[dict, list[str]]:
    """The features of a schema by name, and the notes."""
    loaded, notes = tfmd.loads(text)
    return loaded.names, [str(note) for note in notes]
