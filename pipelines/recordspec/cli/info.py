"""`recordspec info`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.output import echo, print_json, print_rows, size, wants_json
from recordspec.cli.shared_options import files_argument, json_option
from recordspec.errors import counted

if TYPE_CHECKING:
    from recordspec.statistics.info import FeatureInfo, Info
    from recordspec.statistics.sizes import SizeCounts
    from recordspec.store.manifest import Manifest


_ADOPTED = {
    "files": "files of another writer, which recordspec neither replaces nor deletes",
    "links": "links to files of another writer",
}


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
    from recordspec.statistics.info import info as info_of
    from recordspec.store.scan import FIRST

    summary = info_of(files, None if every else most or FIRST)
    if wants_json(as_json):
        print_json(_summary(summary))
        return
    print_rows((vars(file) for file in summary.files), as_json)
    for line in (*_lines(summary), ""):
        echo(line)
    parts = any(feature.sequence for feature in summary.features)
    steps = any(feature.sequence for feature in summary.features)
    print_rows((_row(feature, parts, steps) for feature in summary.features), as_json)


def _summary(summary: Info) -> dict[str, Any]:
    return {
        "files": [vars(file) for file in summary.files],
        "records": summary.records,
        "bytes": sum(file.bytes for file in summary.files),
        "looked_at": summary.looked_at,
        "kinds": summary.kinds,
        **({"conflicts": summary.conflicts} if summary.conflicts else {}),
        "layout": "blocks" if summary.blocks else "rows",
        "more_keys": summary.more_keys,
        "features": [_feature(feature) for feature in summary.features],
        "manifest": None if summary.manifest is None else _manifest(summary.manifest),
    }


def _manifest(manifest: Manifest) -> dict[str, Any]:
    return {
        "schema": manifest.schema,
        "record": manifest.record,
        "layout": "rows" if manifest.block is None else {"blocks": manifest.block},
        "compression": manifest.compression,
        **({"adopted": manifest.adopted} if manifest.adopted else {}),
        "splits": {
            split: {"shards": len(shards), "rows": manifest.rows(split), "bytes": manifest.bytes(split)}
            for split, shards in manifest.splits.items()
        },
    }


def _feature(feature: FeatureInfo) -> dict[str, Any]:
    return {
        "key": feature.key,
        "sequence": feature.sequence,
        "records": feature.records,
        "kinds": feature.kinds,
        "lengths": _range(feature.lengths),
        "steps": _range(feature.steps),
    }


def _range(lengths: SizeCounts) -> list[int] | None:
    return [lengths.low, lengths.high] if lengths.count else None


def _row(feature: FeatureInfo, parts: bool, steps: bool) -> dict[str, Any]:
    """A row of the table. `parts` adds the column `in`, `steps` the column `steps`."""
    kinds = sorted(feature.kinds, key=lambda kind: (kind == "none", -feature.kinds[kind]))
    several = ", ".join(f"{feature.kinds[kind]:,} {kind}" for kind in kinds)
    return {
        "key": feature.key,
        **({"in": "sequence" if feature.sequence else "context"} if parts else {}),
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


def _lines(summary: Info) -> Iterator[str]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in summary.kinds.items() if count)
    total = sum(file.bytes for file in summary.files)
    yield f"{counted(summary.records, 'record')} in {counted(len(summary.files), 'file')}, {size(total)}"
    every = summary.looked_at == summary.records
    which = "all read" if every else f"{summary.looked_at:,} read, the first of each file"
    yield f"{which}: {kinds or 'none'}"
    if summary.conflicts:
        yield f"TensorFlow refuses {summary.conflicts:,} of them, or reads other values: see `check`"
    if summary.more_keys:
        yield f"there are more features than the {len(summary.features):,} below"
    if summary.blocks:
        yield "each record is a block of rows"
    if summary.manifest is not None:
        yield from _of_manifest(summary.manifest)


def _of_manifest(manifest: Manifest) -> Iterator[str]:
    layout = "rows" if manifest.block is None else f"blocks of {manifest.block:,} rows"
    yield f"manifest: schema {manifest.schema or 'unknown'}, {manifest.record}, layout {layout}"
    if manifest.adopted:
        yield f"adopted: {_ADOPTED[manifest.adopted]}"
    for split, shards in manifest.splits.items():
        content = f"{counted(manifest.rows(split), 'row')} in {counted(len(shards), 'shard')}"
        yield f"  {split}: {content}, {size(manifest.bytes(split))}"
