"""Options that several commands have: which files and records, and by how many processes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recordspec.locations import local

if TYPE_CHECKING:
    from recordspec.inspect.query import Query
    from recordspec.spec.schema import Schema

Function = Callable[..., Any]


class LocalPath(click.Path):
    """A path on this machine. Every path of a command line is one: a URL raises SpecError."""

    def __init__(self, path_type: type[str] | type[Path]) -> None:
        super().__init__(readable=False, path_type=path_type)  # who opens it tells what is wrong with it

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        local(value, _name_of(param))
        return super().convert(value, param, ctx)


def _name_of(param: click.Parameter | None) -> str:
    """`--out`, or `FILES`."""
    if param is None:
        return ""
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name


PATH = LocalPath(Path)
# A path as it was written, or a pattern.
PATTERN = LocalPath(str)

_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"\s*|([^,]*)),')

files_argument = click.argument("files", nargs=-1, required=True, type=PATTERN)

jobs_option = click.option("--jobs", type=click.IntRange(1), help="Processes. [default: one a processor]")

where_option = click.option(
    "--where", metavar="CONDITION", help="""Only records such as 'age > 30 and city == "Paris"'."""
)


def columns_options(function: Function) -> Function:
    """`--columns` and `--spec`, which `query` takes."""
    told = 'Only these features, in this order; "A, B" in double quotes is one.'
    wanted = click.option("--columns", metavar="A,B", help=told)
    said = "A schema or config: what features and labels are called."
    return wanted(click.option("--spec", type=PATH, help=said)(function))


def query(columns: str | None, spec: Path | None, where: str | None = None) -> Query:
    """What these options choose. Raises SpecError."""
    from recordspec.inspect.query import Query

    return Query(columns=_names(columns or ""), where=where, spec=None if spec is None else _schema(spec))


def _names(columns: str) -> tuple[str, ...]:
    """Names with commas between them. One in double quotes is what it is, with `""` for each that it has."""
    found = _NAME.findall(columns + ",") if columns else ()
    return tuple(quoted.replace('""', '"') if quoted else plain.strip() for quoted, plain in found)


def _schema(spec: Path) -> Schema:
    from recordspec.config import load_any  # it takes 0.1 s, and most look without a spec

    return load_any(spec)[1]
