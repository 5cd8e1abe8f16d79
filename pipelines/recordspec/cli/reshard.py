"""`recordspec reshard`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recordspec.cli.build import print_dataset
from recordspec.cli.choosing import PATH, PATTERN
from recordspec.cli.output import json_option
from recordspec.wire.compression import CODECS


@click.command(short_help="Put the records of TFRecord files into other shards.")
@click.argument("files", nargs=-1, required=True, type=PATTERN)
@click.argument("folder", type=PATH)
@click.option(
    "--shards", help="How many of each split: a number, a size such as 128MiB, or auto (the default)."
)
@click.option("--compression", type=click.Choice(list(CODECS)), help="By default as it is.")
@click.option("--shuffle", type=int, metavar="SEED", help="Put all rows in another order.")
@click.option("--blocks", type=int, metavar="ROWS", help="So many rows a record; 0: one.")
@click.option("--schema", type=PATH, help="What the records are; blocks need it.")
@click.option("--force", is_flag=True, help="Replace the dataset if it exists.")
@click.option("--resume", is_flag=True, help="Go on where this was broken off.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes that share the work.")
@click.option("--memory", help="What they may use together, such as 2GiB; by default 512MiB each.")
@json_option
def reshard(
    files: tuple[str, ...],
    folder: Path,
    schema: Path | None,
    blocks: int | None,
    shards: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Put the records of FILES (paths, folders, patterns) into other shards, in FOLDER.

    \b
      recordspec reshard data/digits data/digits-8 --shards 8
      recordspec reshard 'old/*.tfrecord' data/new --shards 128MiB --compression gzip --shuffle 7

    Their bytes are kept, each CRC is checked, and splits stay what they are.
    """
    from recordspec.spec.schema import Schema
    from recordspec.writing.reshard import reshard

    options = {name: value for name, value in how.items() if value is not None}
    if shards is not None:
        options["shards"] = _shards(shards)
    if blocks is not None:
        options["layout"] = {"blocks": blocks} if blocks else "rows"
    known = None if schema is None else Schema.load(schema)
    with print_dataset(folder, as_json) as printed:
        printed(reshard(files, folder, schema=known, **options))


def _shards(text: str) -> Any:
    if text.isdecimal():
        return int(text)
    return text if text == "auto" else {"size": text}
