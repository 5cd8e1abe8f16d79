"""protobuf messages that are declared here, each package in a descriptor pool of its own, so that
TensorFlow and others may register the same names in the default pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def declare(
    package: str,
    messages: Mapping[str, str],
    *,
    syntax: Literal["proto2", "proto3"] = "proto3",
    enums: Mapping[str, str] | None = None,
    oneofs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The classes of messages, by name.

    Args:
        package: what they belong to.
        messages: of each the fields, as `name=number:type name=number:type`. A type with a star behind it
            is repeated; one that is neither a message nor an enum is protobuf's own, such as `int64`.
        syntax: in proto2, a number that is not given can be told from 0.
        enums: of each the values, as `name=number name=number`.
        oneofs: the messages whose fields exclude each other, and what that is called.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax=syntax)
    enums, oneofs = enums or {}, oneofs or {}
    for name, values in enums.items():
        declared = file.enum_type.add(name=name)
        for value in values.split():
            label, _, number = value.partition("=")
            declared.value.add(name=label, number=int(number))
    for name, fields in messages.items():
        one = file.message_type.add(name=name)
        if name in oneofs:
            one.oneof_decl.add(name=oneofs[name])
        for field in fields.split():
            _declare(one, field, package, (messages, enums))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"{package}.{name}") for name in messages}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found.items()}


def _declare(one: Any, text: str, package: str, known: tuple[Mapping[str, str], Mapping[str, str]]) -> None:
    """Adds a field, `name=number:type`, to a message; `known` are the messages and the enums."""
    proto = descriptor_pb2.FieldDescriptorProto
    name, _, rest = text.partition("=")
    number, _, kind = rest.partition(":")
    field = one.field.add(name=name, number=int(number))
    field.label = proto.LABEL_REPEATED if kind.endswith("*") else proto.LABEL_OPTIONAL
    kind = kind.removesuffix("*")
    messages, enums = known
    if kind in messages or kind in enums:
        field.type = proto.TYPE_MESSAGE if kind in messages else proto.TYPE_ENUM
        field.type_name = f".{package}.{kind}"
    else:
        field.type = getattr(proto, f"TYPE_{kind.upper()}")
    if one.oneof_decl:
        field.oneof_index = 0
