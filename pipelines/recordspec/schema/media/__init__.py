"""Encoded media. Records are written with Pillow and soundfile, and read with the codecs of TensorFlow.

This module reads the bytes of image and audio files.
"""

from __future__ import annotations

from typing import Any

from recordspec.errors import SpecError, StoreError, system_reason
from recordspec.locations import AnyPath, Location, location, read_bytes
from recordspec.schema import values
from recordspec.schema.values import BadValue

# The members with which Hugging Face stores an image or a sound: its bytes, or else its path.
FILE_NAMES = {"bytes", "path"}


def file_of(value: Any) -> Any:
    """If a value has both the bytes and the path of an image or audio file, as Hugging Face's do, returns
    the bytes, or else the path. Other values are returned unchanged.
    """
    if isinstance(value, dict) and value.keys() == FILE_NAMES:
        return value["path"] if value["bytes"] is None else value["bytes"]
    return value


def path_of(row: int, value: AnyPath) -> Location:
    """The location of an image or audio file given in a row. Raises BadValue for a URL of an unsupported
    scheme.
    """
    try:
        return location(value)
    except SpecError as error:
        (problem,) = error.problems
        raise BadValue(row, problem.expected, problem.got, problem.hint) from None


def read_file(row: int, path: Location, what: str) -> bytes:
    """The bytes of a file. Raises BadValue if it cannot be read."""
    try:
        return read_bytes(path, values.LONGEST_ROW)
    except StoreError as error:
        (problem,) = error.problems
        if error.__cause__ is not None:
            raise BadValue(row, f"{what} at {path}", system_reason(error.__cause__)) from None
        raise BadValue(row, f"{problem.expected} at {path}", problem.got, problem.hint) from None
