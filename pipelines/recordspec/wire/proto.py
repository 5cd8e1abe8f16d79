"""Reading Example bytes outside a graph, with protobuf's own parser and without TensorFlow.

The two messages are declared here: TensorFlow, which registers the same names, need not be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from google.protobuf import message

from recordspec.errors import Problem, RecordError

Value = list[int] | list[float] | list[bytes] | None
Steps = list[Value]
# Which list a Feature has, if any.
Kind = Literal["none", "bytes", "float32", "int64"]

_KINDS: dict[str, Kind] = {"bytes_list": "bytes", "float_list": "float32", "int64_list": "int64"}

_MESSAGES = {
    "BytesList": "value=1:bytes*",
    "FloatList": "value=1:float*",
    "Int64List": "value=1:int64*",
    "Feature": "bytes_list=1:BytesList float_list=2:FloatList int64_list=3:Int64List",
    "FeatureList": "feature=1:Feature*",
    "FeatureEntry": "key=1:string value=2:Feature",
    "FeatureListEntry": "key=1:string value=2:FeatureList",
    # a map is a repeated entry on the wire; entries as they stand show a key that is there twice
    "Features": "feature=1:FeatureEntry*",
    "FeatureLists": "feature_list=1:FeatureListEntry*",
    "Example": "features=1:Features",
    "SequenceExample": "context=1:Features feature_lists=2:FeatureLists",
    # of which all fields are unknown
    "Any": "",
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


def parses(data: bytes) -> bool:
    """Whether these are the bytes of a protobuf message, of whatever definition."""
    try:
        _classes()["Any"].FromString(data)
    except message.DecodeError:
        return False
    return True


def has_others(data: bytes, *, sequence: bool) -> bool:
    """Whether a record that parses has fields that no Example (or SequenceExample) has."""
    parsed = _classes()["SequenceExample" if sequence else "Example"].FromString(data)
    before = parsed.ByteSize()
    parsed.DiscardUnknownFields()
    return bool(parsed.ByteSize() != before)


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
    from recordspec.wire.declared import declare  # most records are taken apart without it

    return declare("recordspec.wire", _MESSAGES, oneofs={"Feature": "kind"})
