"""Notes on parts of a TensorFlow Metadata schema that the importer does not support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordspec.errors import Path
from recordspec.interop.notes import Note
from recordspec.interop.tfmd.messages import DTYPES, STEPS, ignored_stages, inline, is_live

# The consequence of a field without a counterpart.
_REASONS = {
    "presence": "the number of records that have it is not checked",
    "min": "the minimum number of values is not checked",
    "value_counts": "nested lists are read flat (a tensor representation defines how they are stored)",
    "shape": "not required in every record, or of an unknown size: read as a list",
    "domain": "values are not restricted to it",
    "string_domain": "values are not restricted to it",
    "int_domain": "the range is not checked",
    "float_domain": "the range is not checked",
    "image_domain": "the encoding is unknown: kept as bytes, `kind: image` decodes them",
    "audio_domain": "the encoding is unknown: kept as bytes, `kind: audio` decodes them",
    "weighted_feature": "both features are read separately",
    "sparse_feature": "its shape is unknown: its features are read separately",
}
NO_COUNTERPART = "has no counterpart"


def unsupported(message: Any) -> Iterator[Note]:
    """Notes on the fields that remain in a schema after the importer has removed the supported ones."""
    for descriptor, value in message.ListFields():
        if descriptor.name == "feature":
            yield from _in_features(value, ("feature",))
        else:
            yield from _in_field(value, (descriptor.name,))


def _in_features(features: Any, path: Path) -> Iterator[Note]:
    for feature in features:
        here = (*path, feature.name)
        if not is_live(feature):
            stage = ignored_stages().get(feature.lifecycle_stage, "deprecated")
            yield Note(path=here, text=f"{stage}: left out, as in TFX")
        elif feature.type not in DTYPES and here != ("feature", STEPS):
            yield Note(path=here, text="neither BYTES, INT nor FLOAT: left out")
        else:
            yield from _in_feature(feature, here)


def _in_feature(feature: Any, here: Path) -> Iterator[Note]:
    for descriptor, value in feature.ListFields():
        if descriptor.name == "struct_domain":
            yield from _in_features(value.feature, here)
        elif descriptor.name == "shape" and not any(dim.HasField("size") for dim in value.dim):
            text = f"{inline(value)}: the names of dimensions have no counterpart"
            yield Note(path=(*here, "shape"), text=text)
        elif descriptor.name == "value_count":
            yield from _in_field(value.min, (*here, "value_count", "min"))
        elif descriptor.enum_type is not None and descriptor.name != "type":
            label = descriptor.enum_type.values_by_number[value].name
            yield Note(path=(*here, descriptor.name), text=f"{label}: {NO_COUNTERPART}")
        elif descriptor.name not in ("name", "type"):
            yield from _in_field(value, (*here, descriptor.name))


def _in_field(value: Any, path: Path) -> Iterator[Note]:
    reason = _REASONS.get(str(path[-1]), NO_COUNTERPART)
    for part in list(value) if hasattr(value, "append") else [value]:
        named = (*path, part.name) if hasattr(part, "name") and len(path) == 1 else path
        yield Note(path=named, text=f"{inline(part)}: {reason}")
