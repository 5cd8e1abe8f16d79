"""A dataset card: a README.md with the YAML head of the Hugging Face Hub, from a manifest and a schema."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from recordspec.errors import show_text
from recordspec.interop.notes import Note, feature_line
from recordspec.schema.features import Feature
from recordspec.schema.features.audio import Audio
from recordspec.schema.options import format_bytes
from recordspec.schema.schema import Schema
from recordspec.schema.yaml_text import dump
from recordspec.store.manifest import SCHEMA_FILE, LabelCounts, Manifest

FILE = "README.md"
_ABSENT = "license, language and task_categories"
# The largest number of classes of a label that are listed; the manifest has all.
_MOST_CLASSES = 100
# The bounds of the Hub's categories of sizes: powers of ten from 1,000 rows on.
_BOUNDS = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
# The dtypes that the library `datasets` does not have.
_NO_DTYPES = ("bfloat16", "complex64", "complex128")
_USE = """```python
import recordspec as rs

for batch in rs.read(".", split={split}, batch=32):
    ...
```

`recordspec explain {schema} --python` prints a program that parses the records with TensorFlow alone."""


def dataset_files(folder: Path, manifest: Manifest, schema: Schema) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns the text of README.md, by its name. The notes say what the Hub asks for and the manifest does
    not have, and which features the head does not express.
    """
    features, notes = _features(schema)
    size = sum(map(manifest.bytes, manifest.splits))
    head = {
        "pretty_name": schema.name,
        "tags": ["tfrecord"],
        "size_categories": [_size_category(sum(map(manifest.rows, manifest.splits)))],
        "dataset_info": {
            "features": features,
            "splits": [
                {"name": split, "num_bytes": manifest.bytes(split), "num_examples": manifest.rows(split)}
                for split in manifest.splits
            ],
            "download_size": size,
            "dataset_size": size,
        },
    }
    note = f"{FILE} has no {_ABSENT}, which the Hub asks for: the manifest does not have them"
    text = f"---\n{dump(head)}---\n\n" + "\n\n".join(_sections(manifest, schema)) + "\n"
    return {FILE: text}, (note, *map(str, notes))


def _size_category(rows: int) -> str:
    digits = len(str(rows))
    if digits <= 3:
        return f"n<{_BOUNDS[0]}"
    if digits - 3 >= len(_BOUNDS):
        return f"n>{_BOUNDS[-1]}"
    return f"{_BOUNDS[digits - 4]}<n<{_BOUNDS[digits - 3]}"


def _features(schema: Schema) -> tuple[list[dict[str, Any]], list[Note]]:
    """The features as the library `datasets` writes them, and notes on features that it has no type for."""
    features, notes = [], []
    for place, feature in schema._placed:
        if (item := _type(feature)) is None:
            text = f"not in dataset_info: the Hub has no type for kind {feature.kind} of {_item(feature)}"
            notes.append(Note(path=(place.section, feature.name), text=text))
            continue
        sizes = feature.value_type.shape
        if place.in_steps and not feature.traits.spans_steps:
            sizes = (None, *sizes)
        described: dict[str, Any] = {"dtype": item}
        for size in reversed(sizes):
            length = {} if size is None else {"length": size}
            described = {"list": described.get("dtype", described), **length}
        features.append({"name": feature.name, **described})
    return features, notes


def _item(feature: Feature) -> str:
    item = feature.value_type.item
    return {"pair": "indices and values", "any": "its own values"}.get(item, item)


def _type(feature: Feature) -> Any:
    """The type of an item of a value; None if `datasets` has no such type."""
    item = feature.value_type.item
    if feature.traits.class_names:
        return {
            "class_label": {"names": {str(at): name for at, name in enumerate(feature.traits.class_names)}}
        }
    if isinstance(feature, Audio):
        return {"audio": {"sampling_rate": feature.sample_rate}}
    if feature.value_type.is_number:
        return None if item in _NO_DTYPES else item
    return {"media": "image", "text": "string"}.get(item)


def _sections(manifest: Manifest, schema: Schema) -> Iterator[str]:
    yield f"# {_escaped(schema.name)}"
    if schema.description:
        yield _escaped(schema.description)
    layout = "one row per record" if manifest.block is None else f"blocks of up to {manifest.block:,} rows"
    compressed = "" if manifest.compression == "none" else f", compressed with {manifest.compression}"
    yield f"TFRecord files of `{manifest.record}` messages, {layout}{compressed}."
    splits = [
        (split, f"{manifest.rows(split):,}", f"{len(shards):,}", format_bytes(manifest.bytes(split)))
        for split, shards in manifest.splits.items()
    ]
    yield _table(("split", "rows", "shards", "size"), splits)
    yield "## Features"
    features = [(feature.name, feature_line(feature), feature.description) for _, feature in schema._placed]
    yield _table(("feature", "options", "description"), features)
    for _, feature in schema._placed:
        if feature.traits.class_names:
            yield f"## Classes of {_escaped(feature.name)}"
            yield _classes(feature, manifest.label_counts)
    if manifest.rejected:
        yield f"{manifest.rejected:,} invalid rows were left out."
    yield "## Use"
    # by its split, not by a pattern: adopted shards keep their names
    split = json.dumps(next(iter(manifest.splits), "train"), ensure_ascii=False)
    yield _USE.format(split=split, schema=manifest.name_of(SCHEMA_FILE))


def _classes(feature: Feature, counts: LabelCounts) -> str:
    """The classes of a label, with their rows in each split that was counted."""
    names = feature.traits.class_names
    by_split = {
        split: by_label[feature.name] for split, by_label in counts.items() if feature.name in by_label
    }
    rows = [
        (str(index), name, *(f"{of_split[index]:,}" for of_split in by_split.values()))
        for index, name in enumerate(names[:_MOST_CLASSES])
    ]
    table = _table(("index", "class", *(f"rows of {split}" for split in by_split)), rows)
    more = len(names) - len(rows)
    return f"{table}\n\n{more:,} more are in the manifest." if more else table


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def _escaped(text: str) -> str:
    """A text on one line without markup: names and descriptions may have any characters."""
    text = html.escape(show_text(text), quote=False)
    return "".join(f"\\{char}" if char in "\\`*_[]|#" else char for char in text)
