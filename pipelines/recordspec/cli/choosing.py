"""Options that several commands have: which files and records, and by how many processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from recordspec.inspect.looking.choice import Choice
    from recordspec.spec.schema import Schema

Function = Callable[..., Any]

files_argument = click.argument("files", nargs=-1, required=True)

jobs_option = click.option("--jobs", type=click.IntRange(1), help="Processes. [default: one a processor]")

where_option = click.option(
    "--where", metavar="CONDITION", help="""Only records such as 'age > 30 and city == "Paris"'."""
)


def columns_options(function: Function) -> Function:
    """`--columns` and `--spec`, which `choice` takes."""
    wanted = click.option("--columns", metavar="A,B", help="Only these features, in this order.")
    said = "A schema or config: what features and labels are called."
    return wanted(click.option("--spec", type=click.Path(path_type=Path), help=said)(function))


def choice(columns: str | None, spec: Path | None, where: str | None = None) -> Choice:
    """What these options choose. Raises SpecError."""
    from recordspec.inspect.looking.choice import Choice

    names = tuple(name.strip() for name in columns.split(",")) if columns else ()
    return Choice(columns=names, where=where, spec=None if spec is None else _schema(spec))


def _schema(spec: Path) -> Schema:
    from recordspec.config import load_any  # it takes 0.1 s, and most look without a spec

    return load_any(spec)[1]
