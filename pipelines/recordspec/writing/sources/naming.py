"""Which column of a source a feature takes, and whether it is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from recordspec.errors import Problem, SpecError, nearest
from recordspec.spec.schema import Schema


def wanted_columns(
    schema: Schema,
    extra: tuple[str, ...],
    columns: Mapping[str, str],
    where: str,
    header: Sequence[str] | None = None,
) -> dict[str, str]:
    """The column of each feature, and of each extra name: its own name, unless `columns` has another.

    Raises SpecError for a name in `columns` that is neither, and for a column that the header, where
    there is one, has not once.
    """
    wanted = {name: columns.get(name, name) for name in (*schema.names, *extra)}
    problems = [
        Problem(
            path=("columns",),
            expected=f"features of `{schema.name}`",
            got=f"`{name}`",
            hint=nearest(name, wanted),
        )
        for name in columns
        if name not in wanted
    ]
    if header is not None:
        problems += not_once(wanted, header)
    if problems:
        raise SpecError([problem.at(where) for problem in problems])
    return wanted


def not_once(wanted: Mapping[str, str], header: Sequence[str]) -> Iterator[Problem]:
    """A problem for each name whose column a header has not, or several times."""
    for name, column in wanted.items():
        if header.count(column) != 1:
            got = "several" if column in header else "none"
            hint = nearest(column, [one for one in header if one not in wanted.values()])
            yield Problem(path=(name,), expected=f"one column `{column}`", got=got, hint=hint)


def ignored(wanted: Mapping[str, str], header: Sequence[str]) -> list[str]:
    """A note of the columns that are not wanted."""
    others = [column for column in header if column not in wanted.values()]
    return [f"columns that no feature names: {', '.join(others)}"] if others else []


def check_names(schema: Schema, extra: tuple[str, ...], names: Iterable[str]) -> None:
    """Raises SpecError for the first of these names that is neither a feature's nor an extra one.

    Whoever gives columns in Python chose them: a name misspelt would otherwise be a column lost.
    """
    known = (*schema.names, *extra)
    given = tuple(names)
    for name in given:
        if name not in known:
            hint = nearest(name, [one for one in known if one not in given])
            raise SpecError(Problem(expected=f"names of `{schema.name}`", got=f"`{name}`", hint=hint))
