"""Croissant 1.0 metadata of a dataset: JSON-LD for search engines and loaders, from its manifest and schema.

The standard: https://docs.mlcommons.org/croissant/docs/croissant-spec.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recordspec.errors import Problem, StoreError, counted, show_json
from recordspec.interop.notes import feature_line
from recordspec.schema.features import Feature
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.box import Box
from recordspec.schema.schema import Schema
from recordspec.store.manifest import Manifest
from recordspec.wire.columns import Column, Component, Fixed, Place

JsonLd = dict[str, Any]

FILE = "croissant.json"
# The context that the standard asks for, which maps each key to its vocabulary.
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TFRECORD = "application/x-tfrecord"
# The identifiers of the files, of the rows, and of the splits.
_SHARDS, _ROWS, _SPLITS = "shards", "rows", "splits"
_STORED_TYPES = {"int64": "sc:Integer", "float32": "sc:Float", "bytes": "sc:Text"}
_ABSENT = "license, url, creator and datePublished"


def dataset_files(folder: Path, manifest: Manifest, schema: Schema) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns the text of croissant.json, by its name, and notes on what Croissant asks for and the manifest
    does not have.

    Raises StoreError if a shard has no SHA-256.
    """
    if problems := [problem.at(str(folder)) for problem in _without_hash(manifest)]:
        raise StoreError(problems)
    metadata: JsonLd = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": schema.name,
        "description": schema.description or f"The dataset {schema.name}.",
        "version": f"{schema.version}.0.0",
        "distribution": [*_file_objects(manifest), _file_set(manifest)],
        "recordSet": [_splits(manifest), *_classes(manifest, schema), _rows(manifest, schema)],
    }
    note = f"{FILE} has no {_ABSENT}, which Croissant asks for: the manifest does not have them"
    return {FILE: show_json(json.dumps(metadata, indent=1, ensure_ascii=False)) + "\n"}, (note,)


def _without_hash(manifest: Manifest) -> Iterator[Problem]:
    hint = "`recordspec adopt --check --force` computes it"
    for split, shards in manifest.splits.items():
        for shard in shards:
            if not shard.sha256:
                expected, got = "the SHA-256 of every shard", f"none of `{shard.file}`"
                yield Problem(path=("splits", split), expected=expected, got=got, hint=hint)
                break


def _file_objects(manifest: Manifest) -> Iterator[JsonLd]:
    for shard in manifest.all_shards:
        yield {
            "@type": "cr:FileObject",
            "@id": quote(shard.file),
            "name": shard.file,
            "contentUrl": quote(shard.file),
            "contentSize": f"{shard.bytes} B",
            "encodingFormat": _TFRECORD,
            "sha256": shard.sha256,
        }


def _file_set(manifest: Manifest) -> JsonLd:
    """The set of all shards: all fields of the rows have one source."""
    compressed = "" if manifest.compression == "none" else f", compressed with {manifest.compression}"
    return {
        "@type": "cr:FileSet",
        "@id": _SHARDS,
        "name": _SHARDS,
        "description": f"TFRecord files{compressed}.",
        "encodingFormat": _TFRECORD,
        "includes": [shard.file for shard in manifest.all_shards],
    }


def _record_set(name: str, key: str, fields: list[JsonLd], data: list[JsonLd], **more: Any) -> JsonLd:
    """A record set whose records are in the metadata. The names of its fields begin with its own."""
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        **more,
        "key": {"@id": f"{name}/{key}"},
        "field": [{"@type": "cr:Field", "@id": f"{name}/{field['name']}", **field} for field in fields],
        "data": [{f"{name}/{column}": value for column, value in row.items()} for row in data],
    }


def _splits(manifest: Manifest) -> JsonLd:
    fields = [
        {"name": "name", "dataType": "sc:Text"},
        {"name": "rows", "description": "The number of rows.", "dataType": "sc:Integer"},
        {"name": "bytes", "description": "The size of the files in bytes.", "dataType": "sc:Integer"},
    ]
    data = [
        {"name": split, "rows": manifest.rows(split), "bytes": manifest.bytes(split)}
        for split in manifest.splits
    ]
    return _record_set(_SPLITS, "name", fields, data, dataType="cr:Split")


def _classes(manifest: Manifest, schema: Schema) -> Iterator[JsonLd]:
    """A record set of the classes of each label, with the rows of each class in the splits that were
    counted.
    """
    for place, feature in schema._placed:
        names = feature.traits.class_names
        if not names:
            continue
        counts = {
            split: by_label[feature.name]
            for split, by_label in manifest.label_counts.items()
            if feature.name in by_label
        }
        fields: list[JsonLd] = [
            {"name": "index", "dataType": "sc:Integer"},
            {"name": "name", "dataType": "sc:Text"},
        ]
        for split in counts:
            text = f"The number of rows of the split {split}."
            fields.append({"name": f"rows_{quote(split)}", "description": text, "dataType": "sc:Integer"})
        data = [
            {
                "index": index,
                "name": name,
                **{f"rows_{quote(split)}": rows[index] for split, rows in counts.items()},
            }
            for index, name in enumerate(names)
        ]
        yield _record_set(_classes_id(place, feature), "index", fields, data, dataType="sc:Enumeration")


def _classes_id(place: Place, feature: Feature) -> str:
    return f"classes/{place.section}/{quote(feature.name)}"


def _rows(manifest: Manifest, schema: Schema) -> JsonLd:
    fields = [*_split_field(manifest)]
    for place, feature in schema._placed:
        columns = feature.columns()
        main = [column for column in columns if not isinstance(column.layout, Component)]
        for column in columns:
            fields.append(
                {
                    "@type": "cr:Field",
                    "@id": _field_id(place, column),
                    "name": feature.name if len(main) == 1 and column is main[0] else column.key,
                    "description": _description(feature),
                    **(_meaning(place, feature, column) if main == [column] else _stored(place, column)),
                    "source": {"fileSet": {"@id": _SHARDS}, "extract": {"column": column.key}},
                }
            )
    key = _key(manifest, schema)
    layout = "" if manifest.block is None else f" A record is a block of up to {manifest.block:,} rows."
    count = counted(sum(map(manifest.rows, manifest.splits)), "row")
    return {
        "@type": "cr:RecordSet",
        "@id": _ROWS,
        "name": _ROWS,
        "description": f"{count} as messages tf.train.{_MESSAGES[manifest.record]} of TensorFlow.{layout}",
        **({"key": key} if key else {}),
        "field": fields,
    }


_MESSAGES = {"example": "Example", "sequence_example": "SequenceExample"}


def _field_id(place: Place, column: Column) -> str:
    return f"{_ROWS}/{place.section}/{quote(column.key)}"


def _key(manifest: Manifest, schema: Schema) -> list[JsonLd]:
    """The fields that identify a row; none if a part of the key is not stored, or keys are not unique."""
    by_name = {feature.name: (place, feature) for place, feature in schema._placed}
    if manifest.keys_sha256 is None or not all(name in by_name for name in manifest.key):
        return []
    placed = [by_name[name] for name in manifest.key]
    return [{"@id": _field_id(place, feature.columns()[0])} for place, feature in placed]


def _split_field(manifest: Manifest) -> Iterator[JsonLd]:
    """The split of a row, which the name of its file tells, if a build has named all shards."""
    splits = "|".join(map(re.escape, sorted(manifest.splits, key=len, reverse=True)))
    pattern = rf"^({splits})(?:-v\d+)?(?:-add\d+)?-\d{{5,}}-of-\d{{5,}}"
    for split, shards in manifest.splits.items():
        for shard in shards:
            if (match := re.match(pattern, shard.file)) is None or match[1] != split:
                return
    yield {
        "@type": "cr:Field",
        "@id": f"{_ROWS}/split",
        "name": "split",
        "description": "The split of the row.",
        "dataType": "sc:Text",
        "references": {"field": {"@id": f"{_SPLITS}/name"}},
        "source": {
            "fileSet": {"@id": _SHARDS},
            "extract": {"fileProperty": "filename"},
            "transform": {"regex": pattern},
        },
    }


def _description(feature: Feature) -> str:
    """The description of a feature, and its options: Croissant 1.0 has neither shapes nor encodings."""
    options = feature_line(feature)
    return f"{feature.description} ({options})" if feature.description else options


def _meaning(place: Place, feature: Feature, column: Column) -> JsonLd:
    """The type of a feature that is stored under one key, and what it refers to."""
    value, stored = feature.value_type, _stored(place, column)
    if isinstance(feature, Box):
        return {"dataType": "cr:BoundingBox", "repeated": True}
    if feature.traits.class_names:
        part = "name" if column.storage == "bytes" else "index"
        reference = {"field": {"@id": f"{_classes_id(place, feature)}/{part}"}}
        return {**stored, "dataType": [stored["dataType"], "cr:Label"], "references": reference}
    if value.item == "media":
        of_frames = {"repeated": True} if "repeated" in stored or len(value.shape) > 3 else {}
        return {"dataType": "sc:AudioObject" if isinstance(feature, Audio) else "sc:ImageObject", **of_frames}
    if not value.is_number or "complex" in value.item:  # complex numbers are stored as bytes
        return stored
    number = "sc:Boolean" if value.item == "bool" else "sc:Float" if "float" in value.item else "sc:Integer"
    return {"dataType": number, **({"repeated": True} if value.shape or "repeated" in stored else {})}


def _stored(place: Place, column: Column) -> JsonLd:
    """The type of the values under a key."""
    single = isinstance(column.layout, Fixed) and not column.cell and not place.in_steps
    return {"dataType": _STORED_TYPES[column.storage], **({} if single else {"repeated": True})}
