"""`recordspec describe`."""

from __future__ import annotations

from pathlib import Path

import click

from recordspec.cli.choosing import PATH
from recordspec.cli.output import json_option, print_notes, print_rows


@click.command(short_help="Let others open a dataset.")
@click.argument("folder", type=PATH)
@click.option(
    "--as",
    "form",
    type=click.Choice(["tfds"]),
    default="tfds",
    show_default=True,
    help="For whom: TensorFlow Datasets.",
)
@json_option
def describe(folder: Path, form: str, as_json: bool) -> None:
    """Write files beside the shards of the dataset in FOLDER, by which others open it.

    \b
      recordspec describe data/digits
      recordspec describe data/digits --as tfds --json

    Then tfds.builder_from_directory("data/digits") reads it: features.json, dataset_info.json and the names
    of labels tell it how. What they cannot say is told on stderr. A file of another hand is not replaced.
    """
    from recordspec.interop import tfds

    files, notes = tfds.describe(folder)
    rows = [{"file": str(folder / name), "bytes": (folder / name).stat().st_size} for name in files]
    print_rows(rows, as_json)
    print_notes(notes)
