"""dataset_info.json, which TFDS needs to open a dataset: written from a manifest, and read for its splits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.interop import MAX_SCHEMA_BYTES, TFDS_INFO
from recordspec.locations import read_text
from recordspec.schema.schema import Schema
from recordspec.store.manifest import Manifest, Shard
from recordspec.store.shard_names import parse_name

_DEFAULT_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
# The shard names of a build; a build that has replaced a dataset has `-v2`, `-v3`, ... after the split.
_TEMPLATE = "{{SPLIT}}{version}-{{SHARD_X_OF_Y}}.tfrecord"
_VERSION = re.compile(r"(-v\d+)?")


def unreadable(manifest: Manifest) -> Iterator[Problem]:
    """Yields the reasons why TFDS cannot read a dataset, regardless of its features."""
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
        version = _version(split, shards)
        for index, shard in enumerate(shards):
            name = parse_name(shard.file)
            if name is None or (name.split, name.index, name.count) != (split + version, index, len(shards)):
                expected = f"shard {index} of {len(shards)} of `{split}`"
                yield Problem(path=("splits", split), expected=expected, got=f"`{shard.file}`", hint=hint)
                break


def _version(split: str, shards: tuple[Shard, ...]) -> str:
    """The version after the split in the names of its shards, such as `-v2`; empty if there is none."""
    name = parse_name(shards[0].file) if shards else None
    version = "" if name is None else name.split.removeprefix(split)
    return version if _VERSION.fullmatch(version) else ""


def dataset_info(manifest: Manifest, schema: Schema) -> dict[str, Any]:
    """The JSON of dataset_info.json."""
    splits = [
        {
            "name": split,
            "filepathTemplate": _TEMPLATE.format(version=_version(split, shards)),
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


def given_splits(folder: Path) -> dict[str, dict[Path, int]]:
    """The shards of each split of a TFDS dataset, with the number of records that each should have.

    Raises SpecError if dataset_info.json does not contain them, StoreError if it cannot be read.
    """
    path = folder / TFDS_INFO
    text = read_text(path, MAX_SCHEMA_BYTES)
    try:
        info = json.loads(text)
        file_format = info.get("fileFormat") or "tfrecord"
        shards = {
            str(split["name"]): dict(_shards(folder, info, split))
            for split in info["splits"]
            if split.get("shardLengths")
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        expected, got = "the splits of a dataset, as TFDS writes them", f"{type(error).__name__}: {error}"
        raise SpecError(Problem(where=str(path), expected=expected, got=got)) from None
    if file_format != "tfrecord":
        expected, hint = "tfrecord", "prepare it with `file_format='tfrecord'`"
        problem = Problem(path=("fileFormat",), expected=expected, got=f"`{file_format}`", hint=hint)
        raise SpecError(problem.at(str(path)))
    return shards


def _shards(folder: Path, info: Mapping[str, Any], split: Mapping[str, Any]) -> Iterator[tuple[Path, int]]:
    lengths = [int(length) for length in split["shardLengths"]]
    template = split.get("filepathTemplate") or _DEFAULT_TEMPLATE
    for index, length in enumerate(lengths):
        name = template.format(
            DATASET=info["name"],
            SPLIT=split["name"],
            FILEFORMAT="tfrecord",
            SHARD_INDEX=f"{index:05d}",
            NUM_SHARDS=f"{len(lengths):05d}",
            SHARD_X_OF_Y=f"{index:05d}-of-{len(lengths):05d}",
        )
        yield folder / name, length
