"""Parses and writes Examples outside a graph, with protobuf's own parser and without TensorFlow.

The messages are declared here with `declare`, independently of TensorFlow, which registers the same names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from recordspec.errors import Problem, RecordError, counted
from recordspec.wire import fast_parser
from recordspec.wire.columns import TF_DTYPES, Kind, Section
from recordspec.wire.varints import read_varint, varint_bytes

ListValues = list[int] | list[float] | list[bytes] | None

_KINDS: dict[str, Kind] = {"bytes_list": "bytes", "float_list": "float32", "int64_list": "int64"}

_FIELDS = {kind: name for name, kind in _KINDS.items()}

_OTHERWISE = "TensorFlow reads other values than protobuf"

_MESSAGES = {
    "BytesList": "value=1:bytes*",
    "FloatList": "value=1:float*",
    "Int64List": "value=1:int64*",
    "Feature": "bytes_list=1:BytesList float_list=2:FloatList int64_list=3:Int64List",
    "FeatureList": "feature=1:Feature*",
    "FeatureEntry": "key=1:string value=2:Feature",
    "FeatureListEntry": "key=1:string value=2:FeatureList",
    # a map is a repeated entry on the wire; parsed as entries, it shows duplicate keys
    "Features": "feature=1:FeatureEntry*",
    "FeatureLists": "feature_list=1:FeatureListEntry*",
    "Example": "features=1:Features",
    "SequenceExample": "context=1:Features feature_lists=2:FeatureLists",
    # tensorflow_serving/apis/input.proto; TF-Ranking's records
    "ExampleListWithContext": "examples=1:Example* context=2:Example",
}

# Values of more bytes than this are not copied into protobuf's messages, nor out of them to be compared.
_LONG = 1 << 20
# The most pieces of a message that are searched for long values, three a field: 0.2 ms for all of them.
_MOST_PARTS = 300
# The messages that contain bytes values at any depth.
_AROUND_BYTES = set(_MESSAGES) - {"FloatList", "Int64List"}


def parse_example(data: bytes | memoryview) -> dict[str, ListValues]:
    """The values of an Example by key; None for a Feature without a kind.

    Raises RecordError if the bytes are not an Example, and if TensorFlow rejects the record or reads other
    values.
    """
    parsed = entries(data, sequence=False)
    if parsed.conflicts:
        raise RecordError(conflict.problem for conflict in parsed.conflicts)
    return {key: None if feature.kind == "none" else feature.values for key, feature in parsed.features}


def serialize(
    features: Iterable[tuple[str, Listed]], lists: Iterable[tuple[str, list[Listed]]] | None
) -> bytes:
    """Serializes an Example; with `lists` (feature lists), a SequenceExample. Keys keep their order."""
    record = _classes()["Example" if lists is None else "SequenceExample"]()
    context = record.features if lists is None else record.context
    context.SetInParent()
    for key, feature in features:
        _set(context.feature.add(key=key).value, feature)
    if lists is not None:
        record.feature_lists.SetInParent()
        for key, steps in lists:
            entry = record.feature_lists.feature_list.add(key=key)
            entry.value.SetInParent()
            for step in steps:
                _set(entry.value.feature.add(), step)
    return bytes(record.SerializeToString())


def _set(feature: Any, items: Listed) -> None:
    if items.kind == "none":
        feature.SetInParent()
        return
    values = getattr(feature, _FIELDS[items.kind])
    values.SetInParent()
    values.value.extend(items.values)


def _decode_error() -> type[Exception]:
    """The error that protobuf raises for bytes it cannot parse. Its import takes 40 ms, and most records do
    not need it."""
    from google.protobuf import message

    return message.DecodeError


def unknown_fields_of(parsed: Any) -> Iterator[Any]:
    """The fields of a message that its type does not have, with `field_number`, `wire_type` and `data`."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    fields: Any = UnknownFieldSet(parsed)  # its type has no __iter__
    return iter(fields)


class Listed(NamedTuple):
    """The list of a Feature: its kind and its values."""

    kind: Kind
    values: list[Any]


class Conflict(NamedTuple):
    """A difference between TensorFlow's parser and protobuf on a record: see `fast_parser`.

    Attributes:
        refused: whether TensorFlow rejects the record; otherwise it reads other values.
        problem: the problem. Its path is the section and the key, or empty if the whole record is rejected.
    """

    refused: bool
    problem: Problem


@dataclass(frozen=True, kw_only=True)
class Entries:
    """The map entries of an Example or a SequenceExample, in their order. A key may occur twice.

    Attributes:
        features: the features of an Example, or of the context.
        lists: the feature lists.
        unknown_fields: whether the record has fields that neither message has. They are left out.
        conflicts: the differences from TensorFlow's parser.
    """

    features: list[tuple[str, Listed]]
    lists: list[tuple[str, list[Listed]]]
    unknown_fields: bool = False
    conflicts: tuple[Conflict, ...] = ()


def entries(data: bytes | memoryview, *, sequence: bool | None) -> Entries:
    """Parses a record with protobuf.

    Uses little memory beyond the values: one copy of each long value.

    Args:
        data: the bytes of the record.
        sequence: whether the record is a SequenceExample; None if unknown: it is one if it has feature lists.

    Raises RecordError if the bytes are not such a message.
    """
    name, article = ("Example", "an") if sequence is False else ("SequenceExample", "a")
    short, long = _shortened(data)
    try:
        parsed = _classes()[name].FromString(short)
    except _decode_error() as error:
        other = list_with_context(data)
        got = "1 byte that does not parse" if len(data) == 1 else f"{len(data):,} bytes that do not parse"
        problem = Problem(expected=f"{article} {name}", got=got)
        raise RecordError(problem if other is None else other.problem) from error
    size = parsed.ByteSize()
    features, lists = _maps(parsed)
    conflicts = _conflicts(parsed, short, sequence=sequence)
    return Entries(
        features=[(entry.key, _listed(entry.value, long)) for entry in features],
        lists=[(entry.key, [_listed(step, long) for step in entry.value.feature]) for entry in lists],
        unknown_fields=parsed.ByteSize() != size,
        conflicts=conflicts,
    )


def _shortened(data: bytes | memoryview) -> tuple[bytes, Mapping[bytes, memoryview]]:
    """Replaces the long bytes values of a record by marks. Returns the record, and the values by mark.

    A record is returned unchanged if it has an unusual encoding around its long values, or very many fields
    beside them.
    """
    long: dict[bytes, memoryview] = {}
    if len(data) > _LONG:
        with suppress(ValueError, IndexError):
            return _with_marks(memoryview(data), "SequenceExample", long), long
    return bytes(data), {}


def _with_marks(data: memoryview, name: str, long: dict[bytes, memoryview]) -> bytes:
    """A message with marks for its long values. Adds the values to `long`.

    Raises ValueError or IndexError if the encoding is unusual, or if there are too many fields for a loop in
    Python.
    """
    types = dict(re.findall(r"=(\d):(\w+)", _MESSAGES[name]))
    parts: list[bytes | memoryview] = []
    at = 0
    while at < len(data):
        tag, place = read_varint(data, at)
        size, start = read_varint(data, place)
        stop = start + size
        head = varint_bytes(tag) + varint_bytes(size)
        # every field of these messages has a stated length
        if tag & 7 != 2 or data[at:start] != head or stop > len(data) or len(parts) > _MOST_PARTS:
            raise ValueError
        kind = types.get(str(tag >> 3))
        part = data[start:stop]
        if size > _LONG and kind == "bytes":
            mark = os.urandom(16)  # no value equals it by chance
            long[mark], part = part, memoryview(mark)
        elif size > _LONG and kind in _AROUND_BYTES:
            part = memoryview(_with_marks(part, kind, long))
        parts += [varint_bytes(tag), varint_bytes(len(part)), part]
        at = stop
    return b"".join(parts)


def has_lists(data: bytes | memoryview) -> bool:
    """Whether a record is a SequenceExample with feature lists."""
    try:
        return bool(entries(data, sequence=None).lists)
    except RecordError:
        return False


class ListWithContext(NamedTuple):
    """An ExampleListWithContext, as TF-Ranking writes it.

    Attributes:
        context: the context, a serialized Example; None if there is none.
        examples: the serialized Examples that share the context.
    """

    context: bytes | None
    examples: tuple[bytes, ...]

    @property
    def problem(self) -> Problem:
        """The problem of a record that is an ExampleListWithContext instead of an Example."""
        number = counted(len(self.examples), "Example")
        return Problem(
            expected="an Example or a SequenceExample",
            got=f"an ExampleListWithContext of {number}",
            hint="a record of TF-Ranking: `recordspec build` with the source `tfrecord` writes it as a "
            "SequenceExample",
        )

    def sequence_example(self, keys: Collection[str] = ()) -> bytes:
        """Converts the message to a SequenceExample with the same context and a step for each Example.

        If an Example lacks a key, its step has a Feature without a list.

        Args:
            keys: the keys of feature lists to write even if no Example has them.

        Raises RecordError if TensorFlow rejects an Example or reads other values.
        """
        context, *examples = (entries(part, sequence=False) for part in (self.context or b"", *self.examples))
        if problems := [one.problem for part in (context, *examples) for one in part.conflicts]:
            raise RecordError(problems)
        values = [dict(example.features) for example in examples]
        every = dict.fromkeys((*(key for value in values for key in value), *sorted(keys)))
        none = Listed("none", [])
        return serialize(
            context.features, [(key, [value.get(key, none) for value in values]) for key in every]
        )


def list_with_context(data: bytes | memoryview) -> ListWithContext | None:
    """Parses an ExampleListWithContext; None for other bytes.

    Bytes are an ExampleListWithContext if they parse without unknown fields, and have map entries that all
    have a value. No Example or SequenceExample with a feature is mistaken for one: at the place of a map
    entry it has Features, and their only field is 1, while every map entry that protobuf writes has a value,
    field 2. Without any feature, the bytes of all three messages are equal, and are taken for an Example.
    """
    try:
        parsed = _classes()["ExampleListWithContext"].FromString(data)
    except _decode_error():
        return None
    size = parsed.ByteSize()
    parsed.DiscardUnknownFields()
    parts = [*parsed.examples, *([parsed.context] if parsed.HasField("context") else [])]
    has_values = [entry.HasField("value") for part in parts for entry in part.features.feature]
    if parsed.ByteSize() != size or not has_values or not all(has_values):
        return None
    context = parsed.context.SerializeToString() if parsed.HasField("context") else None
    return ListWithContext(context, tuple(example.SerializeToString() for example in parsed.examples))


def _are_usual(entries: Sequence[Any]) -> bool:
    """Whether all entries of a map have a value and a distinct key that is not empty."""
    keys = {entry.key for entry in entries}
    return len(keys) == len(entries) and "" not in keys and all(entry.HasField("value") for entry in entries)


def _conflicts(parsed: Any, data: bytes, *, sequence: bool | None) -> tuple[Conflict, ...]:
    """The differences between TensorFlow's parser and the message parsed by protobuf. Discards unknown
    fields.

    Raises RecordError for an ExampleListWithContext.
    """
    parsed.DiscardUnknownFields()
    features, lists = _maps(parsed)
    # most records equal, byte for byte, the output of protobuf
    if _are_usual(features) and _are_usual(lists) and parsed.SerializeToString() == data:
        return ()
    if (other := list_with_context(data)) is not None:
        raise RecordError(other.problem)
    sequence = bool(lists) if sequence is None else sequence
    try:
        read = fast_parser.entries(data, sequence=sequence)
    except RecordError as error:
        return tuple(Conflict(True, problem) for problem in error.problems)
    section: Section = "context" if sequence else "features"
    items = list(_of_features({entry.key: entry.value for entry in features}, read.features, section))
    if sequence:
        items += _of_lists({entry.key: entry.value for entry in lists}, dict(read.lists))
    return tuple(items)


def _maps(parsed: Any) -> tuple[Any, Any]:
    """The map entries of an Example, or of both maps of a SequenceExample."""
    if parsed.DESCRIPTOR.name == "Example":
        return parsed.features.feature, ()
    return parsed.context.feature, parsed.feature_lists.feature_list


def _of_features(
    parsed: Mapping[str, Any], read: list[tuple[bytes, bytes]], section: Section
) -> Iterator[Conflict]:
    by_key: dict[str, list[bytes]] = {key: [] for key in parsed}
    for raw, value in read:
        by_key[raw.decode()].append(value)
    for key, values in by_key.items():
        not_empty = [value for value in values if value]
        try:
            for value in not_empty:
                fast_parser.list_tag(value)
            feature = fast_parser.feature(not_empty[-1] if not_empty else b"")
        except RecordError as error:
            yield from (Conflict(True, problem.under(section, key)) for problem in error.problems)
            continue
        theirs = _classes()["Feature"].FromString(feature)
        if theirs.SerializeToString() != parsed[key].SerializeToString():
            yield Conflict(False, _different(parsed[key], theirs).under(section, key))


def _of_lists(parsed: Mapping[str, Any], read: Mapping[bytes, bytes]) -> Iterator[Conflict]:
    for key, steps in parsed.items():
        path = ("sequence", key)
        try:
            fast_parser.check_steps(read.get(key.encode(), b""))
        except RecordError as error:
            yield from (Conflict(True, problem.under(*path)) for problem in error.problems)
            continue
        theirs = _classes()["FeatureList"].FromString(read.get(key.encode(), b""))
        if key.encode() not in read or theirs.SerializeToString() != steps.SerializeToString():
            ours, other = (f"{len(one.feature):,} steps" for one in (steps, theirs))
            got = "no list" if key.encode() not in read else other if ours != other else "other ones"
            expected, got = f"{ours}, as protobuf reads the record", f"{got} in TensorFlow"
            yield Conflict(False, Problem(path=path, expected=expected, got=got, hint=_OTHERWISE))


def _different(ours: Any, theirs: Any) -> Problem:
    expected, other = (_describe(_listed(feature)) for feature in (ours, theirs))
    got = f"{other if expected != other else 'other values'} in TensorFlow"
    return Problem(expected=f"{expected}, as protobuf reads the record", got=got, hint=_OTHERWISE)


def _describe(feature: Listed) -> str:
    if feature.kind == "none":
        return "no list"
    return f"{len(feature.values)} {TF_DTYPES[feature.kind]}"


def _listed(feature: Any, long: Mapping[bytes, memoryview] = MappingProxyType({})) -> Listed:
    kinds = feature.ListFields()  # the oneof; of several on the wire, protobuf keeps the last
    if not kinds:
        return Listed("none", [])
    descriptor, declared = kinds[-1]
    kind = _KINDS[descriptor.name]
    if long and kind == "bytes":
        return Listed(kind, [bytes(long.get(value, value)) for value in declared.value])
    return Listed(kind, list(declared.value))


@cache
def _classes() -> Mapping[str, Any]:
    return declare("recordspec.wire", _MESSAGES, oneofs={"Feature": "kind"})


def declare(
    package: str,
    messages: Mapping[str, str],
    *,
    syntax: Literal["proto2", "proto3"] = "proto3",
    enums: Mapping[str, str] | None = None,
    oneofs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Declares protobuf messages, and returns their classes by name.

    Each package has a descriptor pool of its own, so that TensorFlow and others may register the same names
    in the default pool.

    Args:
        package: the package of the messages.
        messages: the fields of each message, as `name=number:type name=number:type`. A type with a star is
            repeated; one that is neither a message nor an enum is protobuf's own, such as `int64`.
        syntax: in proto2, an unset number can be distinguished from 0.
        enums: the values of each enum, as `name=number name=number`.
        oneofs: the messages whose fields form a oneof, and its name.
    """
    # 20 ms, and most records are read without it
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax=syntax)
    enums, oneofs = enums or {}, oneofs or {}
    for name, values in enums.items():
        declared = file.enum_type.add(name=name)
        for value in values.split():
            label, _, number = value.partition("=")
            declared.value.add(name=label, number=int(number))
    for name, fields in messages.items():
        added = file.message_type.add(name=name)
        if name in oneofs:
            added.oneof_decl.add(name=oneofs[name])
        for field in fields.split():
            _declare(added, field, package, (messages, enums))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = {name: pool.FindMessageTypeByName(f"{package}.{name}") for name in messages}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in classes.items()}


def _declare(
    declared: Any, text: str, package: str, known: tuple[Mapping[str, str], Mapping[str, str]]
) -> None:
    """Adds a field, `name=number:type`, to a message; `known` are the messages and the enums."""
    name, _, rest = text.partition("=")
    number, _, kind = rest.partition(":")
    field = declared.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
    kind = kind.removesuffix("*")
    messages, enums = known
    if kind in messages or kind in enums:
        field.type = field.TYPE_MESSAGE if kind in messages else field.TYPE_ENUM
        field.type_name = f".{package}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")
    if declared.oneof_decl:
        field.oneof_index = 0
