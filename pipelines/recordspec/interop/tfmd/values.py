"""The parts of messages of TensorFlow Metadata: shapes, counts, presence, defaults."""

from __future__ import annotations

from typing import Any

from recordspec.interop.tfmd.declared import BYTES, FLOAT, INT

DTYPES = {BYTES: "string", INT: "int64", FLOAT: "float32"}
DEFAULT_KINDS = {"string": "bytes_value", "int64": "int_value", "float32": "float_value"}
# What TFX reads for a missing value under `generate_legacy_feature_spec`.
LEGACY_DEFAULTS: dict[str, Any] = {"string": "", "int64": -1, "float32": -1.0}


def take(message: Any, *fields: str) -> None:
    """Takes fields out of a message: they are understood, and need no note."""
    for field in fields:
        message.ClearField(field)


def sizes(shape: Any) -> tuple[int | None, ...]:
    """The sizes of a FixedShape; null for one that is not known."""
    return tuple(dim.size if dim.HasField("size") and dim.size >= 0 else None for dim in shape.dim)


def add_sizes(shape: Any, given: tuple[int, ...]) -> None:
    """Sets a FixedShape. That of a scalar is there, and empty."""
    shape.SetInParent()
    for size in given:
        shape.dim.add(size=size)


def is_always_there(feature: Any) -> bool:
    """Whether every record has it."""
    return bool(feature.presence.min_fraction == 1)


def take_shape(message: Any) -> None:
    """Takes a shape; what its dimensions are called stays, and is noted."""
    for dim in message.shape.dim:
        take(dim, "size")
    if not any(dim.HasField("name") for dim in message.shape.dim):
        take(message, "shape")


def take_presence(feature: Any) -> None:
    """Of a feature that every record has: fewer records than one are none."""
    if feature.presence.min_count <= 1:
        take(feature, "presence")
    else:
        take(feature.presence, "min_fraction")


def default_of(value: Any, dtype: str) -> Any:
    """A DefaultValue as a value of the dtype; None where it is of another, or no text."""
    kind = DEFAULT_KINDS[dtype]
    if not value.HasField(kind):
        return None
    given = getattr(value, kind)
    if kind != "bytes_value":
        return given
    try:
        return given.decode()
    except UnicodeDecodeError:
        return None


def comment_of(message: Any) -> str:
    """The description in an annotation, which is taken from there; empty if it is not one comment."""
    if len(message.annotation.comment) != 1:
        return ""
    (comment,) = message.annotation.comment
    take(message.annotation, "comment")
    if not message.annotation.ListFields():
        take(message, "annotation")
    return str(comment)
