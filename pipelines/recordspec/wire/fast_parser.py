"""Finds the values that TensorFlow's own parser reads from a record.

`tf.io.parse_example` does not use protobuf (tensorflow/core/util/example_proto_fast_parsing.cc). It compares
tags byte by byte, and refuses unknown fields almost everywhere. Of several lists in a Feature, and of several
packed fields in a list, it reads the first, while protobuf merges all of them. `tf.io.parse_sequence_example`
is stricter still. Both agree with protobuf on every record that a protobuf library writes; this module is for
all other records.

The given bytes must be a message that protobuf parses: lengths and varints are not validated. Every function
raises RecordError if TensorFlow refuses the record, or reads other steps from it.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from recordspec.errors import Problem, RecordError
from recordspec.wire.varints import read_varint, varint_bytes

REFUSED = "TensorFlow refuses the record"

_FIRST, _SECOND = 0x0A, 0x12  # fields 1 and 2, length-delimited
_LISTS = {0x0A: "a bytes list", 0x12: "a float list", 0x1A: "an int64 list"}
_SINGLE = {0x0A: 0x0A, 0x12: 0x0D, 0x1A: 0x08}  # the tag of an unpacked value, by the tag of its list
_FIXED = {1: 8, 5: 4}


class MapEntries(NamedTuple):
    """The map entries of an Example, or of a SequenceExample's two maps, as pairs of key and value."""

    features: list[tuple[bytes, bytes]]
    lists: list[tuple[bytes, bytes]]


def entries(record: bytes, *, sequence: bool) -> MapEntries:
    """The map entries of a record, in their order. With `sequence`, the record is a SequenceExample."""
    parsed = MapEntries([], [])
    at = 0
    while at < len(record):
        tag = record[at]
        if tag == _FIRST or (sequence and tag == _SECOND):
            payload, at = _payload(record, at + 1)
            name = "FeatureLists" if tag == _SECOND else "Features"
            into = parsed.lists if tag == _SECOND else parsed.features
            into += _map(payload, name, strict=sequence)
        else:
            at = _skip(record, at)
    return parsed


def feature(value: bytes) -> bytes:
    """A Feature that protobuf reads as TensorFlow reads the given one."""
    if not value:
        return value
    tag = list_tag(value)
    values, _ = _payload(value, 1)
    read = values[: _read(tag, values)]
    return bytes([tag]) + varint_bytes(len(read)) + read


def list_tag(value: bytes) -> int:
    """The first byte of a non-empty Feature: the tag of its list."""
    if value[0] not in _LISTS:
        _refuse(value, 0, "a bytes, float or int64 list in a Feature")
    return value[0]


def check_steps(feature_list: bytes) -> None:
    """Raises RecordError unless TensorFlow reads the same steps from a FeatureList as protobuf."""
    at = 0
    while at < len(feature_list):
        if feature_list[at] != _FIRST:
            _refuse(feature_list, at, "only steps in a FeatureList")
        step, at = _payload(feature_list, at + 1)
        if not step:
            continue
        tag = list_tag(step)
        values, stop = _payload(step, 1)
        read = _read(tag, values)
        if read < len(values) or stop < len(step):
            # TensorFlow continues after the part of a step that it has read, and parses the rest as steps
            got = _describe(values, read) if read < len(values) else _describe(step, stop)
            expected, hint = f"{_LISTS[tag]} and no more in a step", f"{REFUSED}, or reads other steps"
            raise RecordError(Problem(expected=expected, got=got, hint=hint))


def _map(payload: bytes, name: str, *, strict: bool) -> list[tuple[bytes, bytes]]:
    pairs, at = [], 0
    while at < len(payload):
        if payload[at] != _FIRST:
            _refuse(payload, at, f"only map entries in {name}")
        entry, at = _payload(payload, at + 1)
        pairs.append(_entry(entry, strict=strict))
    return pairs


def _entry(entry: bytes, *, strict: bool) -> tuple[bytes, bytes]:
    """The key and the value of a map entry; with `strict`, they must be in this order and have tags of
    one byte.
    """
    parts = {_FIRST: b"", _SECOND: b""}
    at = 0
    for place in parts:
        tag, behind = read_varint(entry, at) if at < len(entry) else (0, at)
        if tag not in parts or (strict and (tag, behind) != (place, at + 1)):
            _refuse(entry, at, f"a key and {'then ' * strict}a value in a map entry")
        parts[tag], at = _payload(entry, behind)
    if at < len(entry):
        _refuse(entry, at, "only a key and a value in a map entry")
    return parts[_FIRST], parts[_SECOND]


def _read(tag: int, values: bytes) -> int:
    """The number of bytes of a list that TensorFlow reads."""
    if tag != _FIRST and values[:1] == bytes([_FIRST]):
        return _payload(values, 1)[1]  # the first packed field
    at = 0
    while at < len(values):
        if values[at] != _SINGLE[tag]:
            alike = ", all packed or none" if tag != _FIRST else ""
            _refuse(values, at, f"only values in {_LISTS[tag]}{alike}")
        at = _skip(values, at)
    return at


def _skip(data: bytes, at: int) -> int:
    """The offset after a field."""
    tag, behind = read_varint(data, at)
    wire = tag & 7
    if wire == 0:
        return read_varint(data, behind)[1]
    if wire == 2:
        return _payload(data, behind)[1]
    if wire not in _FIXED:
        _refuse(data, at, "no groups")
    return behind + _FIXED[wire]


def _payload(data: bytes, at: int) -> tuple[bytes, int]:
    """The payload after a length, and the offset after it."""
    size, start = read_varint(data, at)
    return data[start : start + size], start + size


def _refuse(data: bytes, at: int, expected: str) -> NoReturn:
    raise RecordError(Problem(expected=expected, got=_describe(data, at), hint=REFUSED))


def _describe(data: bytes, at: int) -> str:
    """Describes the field at an offset."""
    if at >= len(data):
        return "no more fields"
    tag, behind = read_varint(data, at)
    number, wire = tag >> 3, tag & 7
    if behind - at > 1 and tag < 0x80:
        return f"field {number} with a tag of {behind - at} bytes"
    kind = {0: "a varint", 1: "8 bytes", 2: "length-delimited", 5: "4 bytes"}.get(wire, "a group")
    return f"field {number}, {kind}"
