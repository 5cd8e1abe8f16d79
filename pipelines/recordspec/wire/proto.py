"""Reading Example bytes outside a graph, with protobuf's own parser and without TensorFlow.

The two messages are declared here, in a descriptor pool of their own, so that TensorFlow may register
the same names in the default pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from recordspec.errors import Problem, RecordError

Value = list[int] | list[float] | list[bytes] | None
Steps = list[Value]
# Which list a Feature has, if any.
Kind = Literal["none", "bytes", "float32", "int64"]

_KINDS: dict[str, Kind] = {"bytes_list": "bytes", "float_list": "float32", "int64_list": "int64"}

_MESSAGES: dict[str, list[tuple[str, int, str, bool]]] = {
    # message: (field, number, type, repeated)
    "BytesList": [("value", 1, "bytes", True)],
    "FloatList": [("value", 1, "float", True)],
    "Int64List": [("value", 1, "int64", True)],
    "Feature": [
        ("bytes_list", 1, "BytesList", False),
        ("float_list", 2, "FloatList", False),
        ("int64_list", 3, "Int64List", False),
    ],
    "FeatureList": [("feature", 1, "Feature", True)],
    "FeatureEntry": [("key", 1, "string", False), ("value", 2, "Feature", False)],
    "FeatureListEntry": [("key", 1, "string", False), ("value", 2, "FeatureList", False)],
    # a map is a repeated entry on the wire; entries as they stand show a key that is there twice
    "Features": [("feature", 1, "FeatureEntry", True)],
    "FeatureLists": [("feature_list", 1, "FeatureListEntry", True)],
    "Example": [("features", 1, "Features", False)],
    "SequenceExample": [("context", 1, "Features", False), ("feature_lists", 2, "FeatureLists", False)],
}


def parse_example(data: bytes, where: str) -> dict[str, Value]:
    """The values of an Example by key, None where a Feature has no kind. Raises RecordError."""
    return _features(_parse("Example", data, where).features)


def parse_sequence_example(data: bytes, where: str) -> tuple[dict[str, Value], dict[str, Steps]]:
    """The context of a SequenceExample, and its feature lists. Raises RecordError."""
    parsed = _parse("SequenceExample", data, where)
    lists = {
        entry.key: [_value(feature) for feature in entry.value.feature]
        for entry in parsed.feature_lists.feature_list
    }
    return _features(parsed.context), lists


class Listed(NamedTuple):
    """What a Feature has: the kind of its list, and the values."""

    kind: Kind
    values: list[Any]


def entries(
    data: bytes, where: str, *, sequence: bool
) -> tuple[list[tuple[str, Listed]], list[tuple[str, list[Listed]]]]:
    """The features of an Example, or of a SequenceExample the context and the feature lists, as they stand
    on the wire: a key may come twice. Raises RecordError.
    """
    if not sequence:
        parsed = _parse("Example", data, where)
        return [(entry.key, _listed(entry.value)) for entry in parsed.features.feature], []
    parsed = _parse("SequenceExample", data, where)
    lists = parsed.feature_lists.feature_list
    context = [(entry.key, _listed(entry.value)) for entry in parsed.context.feature]
    return context, [(entry.key, [_listed(step) for step in entry.value.feature]) for entry in lists]


def _listed(feature: Any) -> Listed:
    kinds = feature.ListFields()
    if not kinds:
        return Listed("none", [])
    descriptor, found = kinds[-1]
    return Listed(_KINDS[descriptor.name], list(found.value))


def _features(features: Any) -> dict[str, Value]:
    return {entry.key: _value(entry.value) for entry in features.feature}


def _value(feature: Any) -> Value:
    kinds = feature.ListFields()  # the oneof; of several on the wire, protobuf keeps the last
    return list(kinds[-1][1].value) if kinds else None


def _parse(name: str, data: bytes, where: str) -> Any:
    try:
        return _classes()[name].FromString(data)
    except message.DecodeError as error:
        expected = "an Example" if name == "Example" else f"a {name}"
        got = f"{len(data):,} bytes that are none"
        raise RecordError(Problem(where=where, expected=expected, got=got)) from error


@cache
def _classes() -> Mapping[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="recordspec/example.proto", package="recordspec.wire", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        declared = file.message_type.add(name=name)
        if name == "Feature":
            declared.oneof_decl.add(name="kind")
        for field, number, kind, repeated in fields:
            _declare(declared, field, number, kind, repeated)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"recordspec.wire.{name}"))
        for name in ("Example", "SequenceExample")
    }


def _declare(declared: Any, name: str, number: int, kind: str, repeated: bool) -> None:
    proto = descriptor_pb2.FieldDescriptorProto
    field = declared.field.add(name=name, number=number)
    field.label = proto.LABEL_REPEATED if repeated else proto.LABEL_OPTIONAL
    if kind in _MESSAGES:
        field.type, field.type_name = proto.TYPE_MESSAGE, f".recordspec.wire.{kind}"
    else:
        field.type = getattr(proto, f"TYPE_{kind.upper()}")
    if declared.name == "Feature":
        field.oneof_index = 0
