"""The first records of files, as a person or a script can read them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

from recordspec.store.shards import Files, expand
from recordspec.wire import proto
from recordspec.wire.tfrecord import place, scan

_LONGEST_TEXT = 200
_MOST_VALUES = 16
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"RIFF": "RIFF",
    b"fLaC": "FLAC",
    b"OggS": "Ogg",
    b"ID3": "MP3",
}


def head(files: Files, count: int) -> Iterator[dict[str, Any]]:
    """The first `count` records of the files together, each as a dict.

    `file` and `record` say where it stands; `features` has the values by key. Of a SequenceExample
    these are the context, and `sequence` has a list of steps by key. One value stands alone, bytes
    that are no text are described, and long lists are cut.

    Raises RecordError at a record that is not whole or not an Example, StoreError without files.
    """
    records = ((path, record) for path in expand(files) for record in scan(path))
    for path, record in islice(records, count):
        where = f"{path}: {place(record.number, record.offset)}"
        # An Example is, byte for byte, a SequenceExample without feature lists.
        context, lists = proto.parse_sequence_example(record.data, where)
        shown: dict[str, Any] = {
            "file": str(path),
            "record": record.number,
            "features": {key: _values(values) for key, values in sorted(context.items())},
        }
        if lists:
            shown["sequence"] = {
                key: _cut([_values(step) for step in steps]) for key, steps in sorted(lists.items())
            }
        yield shown


def _values(values: proto.Value) -> Any:
    if values is None:
        return None
    if len(values) == 1:
        return _value(values[0])
    return _cut([_value(value) for value in values[: _MOST_VALUES + 1]], len(values))


def _cut(values: list[Any], length: int | None = None) -> list[Any]:
    length = len(values) if length is None else length
    if length <= _MOST_VALUES:
        return values
    return [*values[:_MOST_VALUES], f"... {length - _MOST_VALUES} more"]


def _value(value: int | float | bytes) -> Any:
    if not isinstance(value, bytes):
        # A float32 has 7 significant digits; more would show its binary form.
        return float(f"{value:.7g}") if isinstance(value, float) else value
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return _described(value)
    if not all(char.isprintable() or char in "\n\t" for char in text):
        return _described(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}... {len(value):,} bytes"


def _described(value: bytes) -> str:
    names = [name for start, name in _SIGNATURES.items() if value.startswith(start)]
    name = f" {names[0]}" if names else ""
    if name == " PNG" and len(value) >= 24:
        width, height = struct.unpack(">II", value[16:24])  # the IHDR chunk comes first
        name = f" PNG {width}x{height}"
    return f"<{len(value):,} bytes{name}>"
