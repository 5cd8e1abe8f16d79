"""`recordspec explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recordspec.cli.choosing import PATH
from recordspec.cli.output import json_option, print_notes, print_rows, print_text, quiet_tensorflow, size

if TYPE_CHECKING:
    from recordspec.interop.notes import Note
    from recordspec.spec.schema import Schema


@click.command(short_help="What a spec or config compiles to.")
@click.argument("file", type=PATH)
@click.option("--python", is_flag=True, help="The same as --as python.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["python", "tfmd", "tfds"]),
    help="Only the spec, as: the parse dictionary in Python that runs; schema.pbtxt of TensorFlow Metadata; "
    "features.json of TensorFlow Datasets.",
)
@json_option
def explain(file: Path, python: bool, form: str | None, as_json: bool) -> None:
    """Show what a spec or a config compiles to.

    \b
      recordspec explain schemas/movie_ratings.yaml
      recordspec explain schemas/movie_ratings.yaml --as python > parse.py

    For each feature: what it stores, what it decodes to, and the bytes of an invented value. What --as tfmd
    and --as tfds cannot say is told on stderr.
    """
    from recordspec.config import load_any
    from recordspec.inspect.explain import features, python_source

    _, schema = load_any(file)
    if python or form is not None:
        text, notes = _said(schema, form or "python")
        print_text(text)
        print_notes(notes)
        return
    with quiet_tensorflow():
        rows = features(schema)
    total = sum(row["bytes"] for row in rows)
    print_rows(
        rows, as_json, lambda: f"{schema.record}, about {size(total)} a row\n\n{python_source(schema)}"
    )


def _said(schema: Schema, form: str) -> tuple[str, tuple[Note, ...]]:
    """A schema in another language, and what that does not say."""
    if form == "python":
        from recordspec.inspect.explain import python_source

        return python_source(schema), ()
    if form == "tfmd":
        from recordspec.interop import tfmd

        return tfmd.dumps(schema)
    from recordspec.interop import tfds

    return tfds.dumps(schema)
