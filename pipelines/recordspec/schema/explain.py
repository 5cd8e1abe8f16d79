"""What a schema compiles to, as text and as rows of a table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from recordspec.schema.decoder import batch_spec, types_of
from recordspec.schema.encoder import columns_of
from recordspec.schema.features import Feature
from recordspec.schema.schema import Schema
from recordspec.wire.columns import Column, Place, parse_call, parse_calls

_SAMPLES = 32
_LISTS = {"int64": "Int64List", "float32": "FloatList", "bytes": "BytesList"}
_FUNCTIONS = {
    "example": """
def parse(serialized):
    \"\"\"The columns of a batch of records, string [n], by stored key.\"\"\"
    return tf.io.parse_example(serialized, features)
""",
    "sequence_example": """
def parse(serialized):
    \"\"\"The context, the steps and the numbers of steps of a batch of records, string [n].\"\"\"
    return tf.io.parse_sequence_example(serialized, context, sequence)
""",
}


def python_source(schema: Schema) -> str:
    """Python that parses the schema's records with TensorFlow alone."""
    lines = ["import tensorflow as tf", ""]
    for section in schema._sections:
        calls = parse_calls(schema.columns(section), section)
        lines.append(f"{section} = {{")
        lines += [f"    {key!r}: {call.source()}," for key, call in calls.items()]
        lines += ["}", ""]
    return "\n".join(lines) + _FUNCTIONS[schema.record]


def features(schema: Schema) -> list[dict[str, Any]]:
    """For each feature, its kind, what it stores and decodes to, its padding, and the mean bytes of a value.

    The values are invented, so the bytes of what varies in length say little. Loads TensorFlow only for kinds
    that are not recordspec's own.
    """
    with types_of(schema):
        specs, batches = schema.element_spec(), batch_spec(schema)
    return [
        {
            "feature": feature.name,
            "kind": feature.kind,
            "stored as": ", ".join(_stored(column, place) for column in feature.columns()),
            "decodes to": ", ".join(_type(specs[output]) for output in feature.outputs),
            "padded with": ", ".join(
                padding_text(feature.padding[output], batches[output].dtype.name)
                for output in feature.outputs
                if is_padded(feature, batches[output])
            ),
            "bytes": _bytes(place, feature),
        }
        for place, feature in schema._placed
    ]


def _stored(column: Column, place: Place) -> str:
    call = parse_call(column, in_steps=place.in_steps)
    form = f", {call.function}" if call is not None else ""
    return f"{column.key}: {_LISTS[column.storage]}{form}"


def _type(spec: Any) -> str:
    kind = type(spec).__name__.removesuffix("Spec")
    return f"{kind} {spec.dtype.name} {str(spec.shape).replace('None', 'null')}"


def is_padded(feature: Feature, batch: Any) -> bool:
    """Whether rows of the type `batch` may differ in size, or are filled up to a static one."""
    if type(batch).__name__ != "TensorSpec":
        return True
    static = len(batch.shape) > 1 and feature.traits.longest is not None
    return static or None in batch.shape.as_list()[1:]


def padding_text(pad: Any, dtype: str) -> str:
    if pad is None:
        pad = "" if dtype == "string" else False if dtype == "bool" else 0
    return json.dumps(pad, ensure_ascii=False)


def _bytes(place: Place, feature: Feature) -> int:
    """The mean size of the feature's entry in a record, rounded."""
    record = "example" if place.section == "features" else "sequence_example"
    feature = feature.among(())
    alone = Schema(name="alone", record=record, **{place.section: (feature,)})  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    steps = place.in_steps and not feature.traits.spans_steps
    values = [
        [feature.sample(rng) for _ in range(3)] if steps else feature.sample(rng) for _ in range(_SAMPLES)
    ]
    rows = [{feature.name: value} for value in values]
    records = alone.encode_batch(columns_of(alone, rows), _SAMPLES)
    return round(sum(map(len, records)) / _SAMPLES)
