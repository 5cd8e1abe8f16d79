"""What a schema of TensorFlow Metadata says that is not understood: a note on each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordspec.errors import Path
from recordspec.interop.notes import Note
from recordspec.interop.tfmd.declared import STEPS, stages
from recordspec.interop.tfmd.parsing import inline
from recordspec.interop.tfmd.values import DTYPES

# What becomes of a field that has no counterpart.
_REASONS = {
    "presence": "in how many records it is, is not checked",
    "min": "how many values it has at least, is not checked",
    "value_counts": "lists in lists are read flat (a tensor representation says how they are stored)",
    "shape": "it is not said that every record has it, or a size is unknown: read as a list",
    "domain": "values are not restricted to it",
    "string_domain": "values are not restricted to it",
    "int_domain": "the range is not checked",
    "float_domain": "the range is not checked",
    "image_domain": "how images are encoded is not said: they stay bytes, until `kind: image` says it",
    "audio_domain": "how sounds are encoded is not said: they stay bytes, until `kind: audio` says it",
    "weighted_feature": "both features are read, each by itself",
    "sparse_feature": "its size is not said: its features are read, each by itself",
}
NO_COUNTERPART = "has no counterpart"


def left_in(message: Any) -> Iterator[Note]:
    """On what was not understood of a schema."""
    for descriptor, value in message.ListFields():
        if descriptor.name == "feature":
            yield from _left_in_features(value, ("feature",))
        else:
            yield from _left_of(value, (descriptor.name,))


def is_live(feature: Any) -> bool:
    return not feature.deprecated and feature.lifecycle_stage not in stages()


def _left_in_features(features: Any, path: Path) -> Iterator[Note]:
    for feature in features:
        here = (*path, feature.name)
        if not is_live(feature):
            stage = stages().get(feature.lifecycle_stage, "deprecated")
            yield Note(path=here, text=f"{stage}: left out, as TFX leaves it out")
            continue
        if feature.type not in DTYPES and here != ("feature", STEPS):
            yield Note(path=here, text="no list of bytes, integers or floats: left out")
            continue
        for descriptor, value in feature.ListFields():
            if descriptor.name == "struct_domain":
                yield from _left_in_features(value.feature, here)
            elif descriptor.name == "shape" and not any(dim.HasField("size") for dim in value.dim):
                text = f"{inline(value)}: the names of dimensions have no counterpart"
                yield Note(path=(*here, "shape"), text=text)
            elif descriptor.name == "value_count":
                yield from _left_of(value.min, (*here, "value_count", "min"))
            elif descriptor.enum_type is not None and descriptor.name != "type":
                label = descriptor.enum_type.values_by_number[value].name
                yield Note(path=(*here, descriptor.name), text=f"{label}: {NO_COUNTERPART}")
            elif descriptor.name not in ("name", "type"):
                yield from _left_of(value, (*here, descriptor.name))


def _left_of(value: Any, path: Path) -> Iterator[Note]:
    parts = list(value) if hasattr(value, "append") else [value]
    for part in parts:
        reason = _REASONS.get(str(path[-1]), NO_COUNTERPART)
        named = (*path, part.name) if hasattr(part, "name") and len(path) == 1 else path
        yield Note(path=named, text=f"{inline(part)}: {reason}")
