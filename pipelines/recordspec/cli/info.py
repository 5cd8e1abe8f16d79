"""`recordspec info`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.options import files_argument, json_option
from recordspec.cli.output import echo, print_json, print_rows, size, wants_json
from recordspec.errors import counted

if TYPE_CHECKING:
    from recordspec.inspect.info import FeatureInfo, Info
    from recordspec.inspect.stats.sketches import SizeCounts
    from recordspec.store.manifest import Manifest


@click.command(short_help="Show the records, bytes and features of files.")
@files_argument
@click.option("-n", "most", type=click.IntRange(1), help="Records to read of each file. [default: 1000]")
@click.option("--all", "every", is_flag=True, help="Read all records.")
@json_option
def info(files: tuple[str, ...], most: int | None, every: bool, as_json: bool) -> None:
    """Show what TFRecord files contain, with or without a manifest beside them.

    \b
      recordspec info data/digits
      recordspec info "data/digits/train-*" --all --json

    Prints the records, bytes and compression of each file; and from its first records their type, and the
    kinds, presence and lengths of their features.
    """
    from recordspec.inspect.info import info as info_of
    from recordspec.inspect.scan import FIRST

    found = info_of(files, None if every else most or FIRST)
    if wants_json(as_json):
        print_json(_summary(found))
        return
    print_rows((vars(one) for one in found.files), as_json)
    for line in (*_lines(found), ""):
        echo(line)
    parts = any(feature.sequence or feature.within for feature in found.features)
    steps = any(feature.sequence for feature in found.features)
    print_rows((_row(feature, parts, steps) for feature in found.features), as_json)


def _summary(found: Info) -> dict[str, Any]:
    return {
        "files": [vars(one) for one in found.files],
        "records": found.records,
        "bytes": sum(one.bytes for one in found.files),
        "looked_at": found.looked_at,
        "kinds": found.kinds,
        **({"examples": _range(found.examples)} if found.examples.count else {}),
        **({"conflicts": found.conflicts} if found.conflicts else {}),
        "layout": "blocks" if found.blocks else "rows",
        "more_keys": found.more_keys,
        "features": [_feature(feature) for feature in found.features],
        "manifest": None if found.manifest is None else _manifest(found.manifest),
    }


def _manifest(manifest: Manifest) -> dict[str, Any]:
    return {
        "schema": manifest.schema,
        "record": manifest.record,
        "layout": "rows" if manifest.block is None else {"blocks": manifest.block},
        "compression": manifest.compression,
        "splits": {
            split: {"shards": len(shards), "rows": manifest.rows(split), "bytes": manifest.bytes(split)}
            for split, shards in manifest.splits.items()
        },
    }


def _feature(feature: FeatureInfo) -> dict[str, Any]:
    return {
        "key": feature.key,
        "sequence": feature.sequence,
        **({"within": feature.within} if feature.within else {}),
        "records": feature.records,
        "kinds": feature.kinds,
        "lengths": _range(feature.lengths),
        "steps": _range(feature.steps),
    }


def _range(lengths: SizeCounts) -> list[int] | None:
    return [lengths.low, lengths.high] if lengths.count else None


def _row(feature: FeatureInfo, parts: bool, steps: bool) -> dict[str, Any]:
    """A line of the table; with `parts` and `steps` it has the columns `in` and `steps`."""
    kinds = sorted(feature.kinds, key=lambda kind: (kind == "none", -feature.kinds[kind]))
    several = ", ".join(f"{feature.kinds[kind]:,} {kind}" for kind in kinds)
    return {
        "key": feature.key,
        **({"in": feature.within or ("sequence" if feature.sequence else "context")} if parts else {}),
        "records": feature.records,
        "kind": next(iter(kinds), "") if len(kinds) < 2 else several,
        "lengths": _shown(feature.lengths),
        **({"steps": _shown(feature.steps)} if steps else {}),
    }


def _shown(lengths: SizeCounts) -> str:
    if not lengths.count:
        return ""
    low, high = f"{lengths.low:,}", f"{lengths.high:,}"
    return low if low == high else f"{low}..{high}"


def _lines(found: Info) -> Iterator[str]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.items() if count)
    total = sum(one.bytes for one in found.files)
    yield f"{counted(found.records, 'record')} in {counted(len(found.files), 'file')}, {size(total)}"
    every = found.looked_at == found.records
    which = "all read" if every else f"{found.looked_at:,} read, the first of each file"
    yield f"{which}: {kinds or 'none'}"
    if found.examples.count:
        yield f"an ExampleListWithContext has {_shown(found.examples)} Examples, and is not read as rows"
    if found.conflicts:
        yield f"TensorFlow refuses {found.conflicts:,} of them, or reads other values: see `check`"
    if found.more_keys:
        yield f"there are more features than the {len(found.features):,} below"
    if found.blocks:
        yield "each record is a block of rows"
    if found.manifest is not None:
        yield from _of_manifest(found.manifest)


def _of_manifest(manifest: Manifest) -> Iterator[str]:
    layout = "rows" if manifest.block is None else f"blocks of {manifest.block:,} rows"
    yield f"manifest: schema {manifest.schema or 'unknown'}, {manifest.record}, layout {layout}"
    for split, shards in manifest.splits.items():
        held = f"{counted(manifest.rows(split), 'row')} in {counted(len(shards), 'shard')}"
        yield f"  {split}: {held}, {size(manifest.bytes(split))}"
