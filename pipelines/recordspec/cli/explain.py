"""`recordspec explain`."""

from __future__ import annotations

from pathlib import Path

import click

from recordspec.cli.output import json_option, print_rows, quiet_tensorflow, size


@click.command(short_help="What a spec or config compiles to.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--python", is_flag=True, help="Only the parse dictionary, as Python that runs.")
@json_option
def explain(file: Path, python: bool, as_json: bool) -> None:
    """Show what a spec or a config compiles to.

    \b
      recordspec explain schemas/movie_ratings.yaml
      recordspec explain schemas/movie_ratings.yaml --python > parse.py

    For each feature: what it stores, what it decodes to, and the bytes of an invented value.
    """
    from recordspec.config import load_any
    from recordspec.inspect.explain import features, python_source

    _, schema = load_any(file)
    if python:
        click.echo(python_source(schema), nl=False)
        return
    with quiet_tensorflow():
        rows = features(schema)
    total = sum(row["bytes"] for row in rows)
    print_rows(
        rows, as_json, lambda: f"{schema.record}, about {size(total)} a row\n\n{python_source(schema)}"
    )
