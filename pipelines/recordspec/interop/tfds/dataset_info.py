"""dataset_info.json, by which TFDS opens a dataset, from its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordspec.errors import Problem
from recordspec.spec.schema import Schema
from recordspec.store.manifest import Manifest
from recordspec.store.shards import parse_name

INFO, FEATURES = "dataset_info.json", "features.json"
_TEMPLATE = "{SPLIT}-{SHARD_X_OF_Y}.tfrecord"


def unreadable(manifest: Manifest) -> Iterator[Problem]:
    """Reasons why TFDS cannot read a dataset, regardless of its features."""
    if manifest.record != "example":
        yield Problem(path=("record",), expected="example", got=manifest.record, hint="TFDS parses Examples")
    if manifest.compression != "none":
        hint = "`recordspec reshard --compression none` converts it"
        got = manifest.compression
        yield Problem(path=("compression",), expected="none, for TFDS", got=got, hint=hint)
    if manifest.block is not None:
        hint = "`recordspec reshard --blocks 0 --schema SCHEMA` converts it"
        yield Problem(path=("layout",), expected="rows, for TFDS", got="blocks", hint=hint)
    hint = "`recordspec reshard` renumbers the shards"
    for split, shards in manifest.splits.items():
        if "+" in split:
            expected = "splits without a + in their names, which TFDS adds up"
            yield Problem(path=("splits",), expected=expected, got=f"`{split}`")
        for index, shard in enumerate(shards):
            name = parse_name(shard.file)
            if name is None or (name.split, name.index, name.count) != (split, index, len(shards)):
                expected = f"shard {index} of {len(shards)} of `{split}`"
                yield Problem(path=("splits", split), expected=expected, got=f"`{shard.file}`", hint=hint)
                break


def dataset_info(manifest: Manifest, schema: Schema) -> dict[str, Any]:
    """The JSON of dataset_info.json."""
    splits = [
        {
            "name": split,
            "filepathTemplate": _TEMPLATE,
            "shardLengths": [str(shard.rows) for shard in shards],
            "numBytes": str(manifest.bytes(split)),
        }
        for split, shards in manifest.splits.items()
    ]
    return {
        "name": schema.name,
        "description": schema.description,
        "version": f"{schema.version}.0.0",
        "fileFormat": "tfrecord",
        "splits": splits,
    }
