"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recordspec.errors import Problem, SpecError
from recordspec.locations import Location, local, location

if TYPE_CHECKING:
    from recordspec.tables.query import Query

Command = Callable[..., Any]


class LocationType(click.Path):
    """The type of a path. Checks its syntax; errors of the file are reported when it is opened."""

    def __init__(self, check: Callable[..., Any], path_type: type[str] | type[Path]) -> None:
        super().__init__(readable=False, path_type=path_type)
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            checked = self._check(value)
        except SpecError as error:
            raise SpecError([problem.at(_name_of(param)) for problem in error.problems]) from None
        return value if self.type is str else checked


class _NamedPattern(LocationType):
    """The type of `NAME=FILES` or FILES. Checks the syntax, and returns a pair: the name, empty for FILES,
    and the files."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        named = None if Path(value).exists() else _NAMED_FILES.fullmatch(value)
        name, files = ("", value) if named is None else named.groups()
        return name, super().convert(files, param, ctx)


def _name_of(param: click.Parameter | None) -> str:
    """The name of a parameter in messages, like `--out` or `FILES`."""
    if param is None:
        return ""
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name


# PATH: a local path or the URL of an object store. LOCAL_PATH: a local path.
PATH, LOCAL_PATH = LocationType(location, Path), LocationType(local, Path)
# A path or a pattern, unchanged.
PATTERN = LocationType(location, str)
NAMED_PATTERN = _NamedPattern(location, str)


def grouped(named: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The patterns of each name, of values of `NAMED_PATTERN`."""
    by_name: dict[str, list[str]] = {}
    for name, pattern in named:
        by_name.setdefault(name, []).append(pattern)
    return by_name


_NAMED_FILES = re.compile(r"([^/=]+)=(.+)", re.DOTALL)  # any name: SQL can quote it
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"\s*|([^,]*)),')

files_argument = click.argument("files", nargs=-1, required=True, type=PATTERN)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines, also on a terminal.")

jobs_option = click.option(
    "--jobs", type=click.IntRange(1), help="Processes, or threads. [default: one per processor]"
)


# The options of one machine, by parameter, and the reasons.
_WITHOUT_SPARK = {
    "jobs": ("--jobs", "Spark's executors share the work"),
    "limit": ("--limit", "without --spark, one machine reads only these records"),
    "description": ("--as", "a description of a dataset reads no records"),
}


def spark_option(command: Command) -> Command:
    """`--spark MASTER`, which runs a command on Spark's executors."""

    @click.option("--spark", metavar="MASTER", help="Run on Spark: local[4], or the URL of a master.")
    @wraps(command)
    def run(*, spark: str | None, **options: Any) -> Any:
        if spark is None:
            return command(**options)
        for name, (option, hint) in _WITHOUT_SPARK.items():
            if (value := options.get(name)) is not None:
                problem = Problem(where=option, expected="none with --spark", got=str(value), hint=hint)
                raise SpecError(problem)
        from recordspec.spark import running_on, session_at

        with session_at(spark) as session, running_on(session, command.__name__):
            return command(**options)

    return run


force_option = click.option("--force", is_flag=True, help="Replace the file if it exists.")

where_option = click.option(
    "--where", metavar="CONDITION", help="""Only records such as "age > 30 AND city = 'Paris'", in SQL."""
)


def removed_option(name: str, replacement: str) -> Callable[[Command], Command]:
    """An option that was removed: it is an error that names its replacement, and is not in the help."""

    def refuse(context: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            raise click.UsageError(f"{name} was removed: use {replacement}", context)

    return click.option(
        name,
        type=click.UNPROCESSED,
        multiple=True,
        hidden=True,
        expose_value=False,
        is_eager=True,
        callback=refuse,
    )


def schema_option(command: Command) -> Command:
    """`--schema`, which names the features and classes of files that have none."""
    schema_help = "A schema, or a config with one, that names features and classes."
    command = removed_option("--spec", "`--schema`")(command)
    return click.option("--schema", type=PATH, help=schema_help)(command)


def build_options(command: Command) -> Command:
    """Options of commands that write a dataset: `--force`, `--resume`, `--jobs`, `--memory`."""
    for option in (
        click.option("--memory", help="Memory of all processes, such as 2GiB; by default 512MiB each."),
        click.option("--jobs", type=int, default=1, show_default=True, help="Processes that share the work."),
        click.option("--resume", is_flag=True, help="Continue an interrupted build."),
        click.option("--force", is_flag=True, help="Replace the dataset if it exists."),
    ):
        command = option(command)
    return command


def columns_options(command: Command) -> Command:
    """Adds `--columns` and `--schema`, the arguments of `query`."""
    columns_help = 'Only these features, in this order; "A, B" in double quotes is one name.'
    return click.option("--columns", metavar="A,B", help=columns_help)(schema_option(command))


def query(columns: str | None, schema: Location | None, where: str | None = None) -> Query:
    """The query that these options define. Raises SpecError."""
    from recordspec.schema.schema import given_schema
    from recordspec.tables.query import Query

    return Query(columns=names_in(columns or ""), where=where, schema=given_schema(schema))


def names_in(columns: str) -> tuple[str, ...]:
    """Comma-separated names. A name in double quotes may contain commas, and `""` for a double quote."""
    names = _NAME.findall(columns + ",") if columns else ()
    return tuple(quoted.replace('""', '"') if quoted else plain.strip() for quoted, plain in names)
