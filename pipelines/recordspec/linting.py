"""Checks schemas and configs as far as a build knows before it reads rows, and corrects them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

from recordspec.config import Config, From, load_any, missing_path
from recordspec.errors import Path as OptionPath
from recordspec.errors import Problem, RecordspecError, SpecError, State, correction
from recordspec.locations import Location, below, location, output_file, read_bytes
from recordspec.remote import RemotePath
from recordspec.schema.schema import LARGEST_BYTES, Schema, parse_file
from recordspec.schema.yaml_text import MappingNode, Node, ScalarNode, SequenceNode, locate
from recordspec.store.expand import Files, missing_file, path_list

# The line breaks of YAML.
_BREAK = re.compile("\r\n?|[\n\x85\u2028\u2029]")
# A text that YAML reads as it is, also in a list or a mapping on one line.
_PLAIN = re.compile(r"[\w./][\w./+-]*( [\w./+-]+)*")
# The options of sources that are mappings with names of columns, or of features, as keys.
_COLUMN_OPTIONS = ("columns", "missing", "dates")
# A line, or a line and a column, after the path of a file.
_POSITION = re.compile("(:[0-9]+){1,2}$")
_NO_CORRECTION = "a problem has no single correction"
# The most times that a file is corrected: a correction may reveal other problems.
_MOST_PASSES = 10


def lint(files: Files, *, sources: bool = True) -> tuple[Problem, ...]:
    """Returns all problems of schemas and configs, each with its file, line and column.

    A file that cannot be read is a problem, too. If the source of a config is on this machine, its missing
    files are problems, and the missing columns in the header of a CSV or Parquet file, or in the first line
    of a JSON Lines file unless invalid rows are quarantined. No other data is read.

    Args:
        files: the path of a schema or of a config, or several paths.
        sources: whether the sources of configs are examined; not where the data is elsewhere.

    Example:
        >>> rs.lint(["schemas/points.yaml", "configs/points.yaml"])
        ()
    """
    linted = lint_files(map(location, path_list(files)), sources=sources)
    return tuple(problem for one in linted for problem in one.problems)


@dataclass(frozen=True, kw_only=True)
class LintedFile:
    """A schema or a config that was checked.

    Attributes:
        path: the path of the file.
        error: its error, if it has one.
        problems: the problems of the error that no file before has: several configs may name a schema.
    """

    path: Location
    error: RecordspecError | None
    problems: tuple[Problem, ...]


def lint_files(paths: Iterable[Location], *, sources: bool = True) -> Iterator[LintedFile]:
    """Checks schemas and configs, one after another; with `sources`, also the sources of configs."""
    known: set[Problem] = set()
    for path in paths:
        error = _error_of(path, None, sources)
        problems = () if error is None else tuple(dict.fromkeys(error.problems))
        yield LintedFile(path=path, error=error, problems=tuple(one for one in problems if one not in known))
        known.update(problems)


def check_file(path: Location, text: str | None = None, *, sources: bool = True) -> None:
    """Checks a schema or a config; with `sources`, also the source of a config. `text` replaces the contents
    of the file.

    Raises SpecError with all problems, StoreError.
    """
    config, schema = load_any(path, text)
    if config is None or not sources or config.write.source is None:
        return
    root, _ = parse_file(path, text)
    if problems := list(_source_problems(config, schema, path, root)):
        raise SpecError(problems)


def _source_problems(config: Config, schema: Schema, path: Location, root: Node) -> Iterator[Problem]:
    """The problems that a build of a config finds before it reads rows."""
    for problem in schema._shared_keys:
        yield problem.at(str(path))
    source = config.write.source
    named: Mapping[OptionPath, Any] = {(): source}
    if isinstance(source, Mapping):
        named = {(split,): one for split, one in source.items()}
    for split, one in named.items():
        place = ("write", "source", *split)
        source_place = (*place, one.given[0])
        missing = list(_missing_files(root, place, one, path.parent))
        yield from missing
        opened = one.open(path.parent)
        if missing or any(isinstance(location(given), RemotePath) for given in opened.given):
            continue
        try:
            opened.check(schema, config.write.columns)
            if config.write.quarantine is None:
                opened.check_first_row(schema, config.write.columns)
        except RecordspecError as error:
            for problem in error.problems:
                if not problem.where:
                    problem = problem.under(*source_place)
                    problem = problem.at(str(locate(root, problem.path)))
                problem = _at_option(problem, config, schema, root)
                yield _at_source(problem, root, source_place, path.parent)


def _missing_files(root: Node, place: OptionPath, source: From, folder: Location) -> Iterator[Problem]:
    """The problems of the paths of a source that do not exist, each at its position."""
    name, form = source.given
    path: OptionPath = (*place, name)
    if isinstance(node := _node_at(root, path), MappingNode):
        node, path = node.values.get(form.SHORT_FORM), (*path, form.SHORT_FORM)
    for scalar, at in _scalars(node, path):
        if (missing := missing_file(str(below(folder, scalar.text)))) is not None:
            yield missing_path(missing, scalar, at)


def _at_option(problem: Problem, config: Config, schema: Schema, root: Node) -> Problem:
    """The problem of a missing column; if an option names the column, and no feature, at the option."""
    name = problem.path[0] if len(problem.path) == 1 else ""
    if name in config.write.columns and name not in schema.names:
        for option in (("write", "key"), ("write", "group_by"), ("write", "splits")):
            for scalar, path in _scalars(_node_at(root, option), option):
                if scalar.text == name:
                    expected = f"{problem.expected} in {problem.where}"
                    return replace(problem, where=str(scalar.position), path=path, expected=expected)
    return problem


def _at_source(problem: Problem, root: Node, place: OptionPath, folder: Location) -> Problem:
    """The problem of a file or folder that a source names, or of a column that a mapping of the source names,
    at its position in the config."""
    if not problem.path:
        for scalar, path in _scalars(_node_at(root, place), place):
            if str(below(folder, scalar.text)) == problem.where:
                got = f"`{problem.where}` {problem.got}" if isinstance(problem, State) else problem.got
                here = str(scalar.position)
                return Problem(where=here, path=path, expected=problem.expected, got=got, hint=problem.hint)
    option = (*place, *(name for name in problem.path[-1:] if name in _COLUMN_OPTIONS))
    node = _node_at(root, option)
    if option != place and isinstance(node, MappingNode):
        for name, key in node.keys.items():
            if problem.got == f"`{name}`":
                in_file = "" if option[-1] == "columns" else f" in {problem.where}"
                here, expected = str(key.position), f"{problem.expected}{in_file}"
                return replace(problem, where=here, path=(*option, name), expected=expected)
    return problem


def _node_at(node: Node | None, path: OptionPath) -> Node | None:
    for part in path:
        node = node.values.get(str(part)) if isinstance(node, MappingNode) else None
    return node


def _scalars(node: Node | None, path: OptionPath = ()) -> Iterator[tuple[ScalarNode, OptionPath]]:
    """The values at and below a node that are scalars, each with its path."""
    if isinstance(node, ScalarNode):
        yield node, path
    elif isinstance(node, SequenceNode):
        for index, one in enumerate(node.values):
            yield from _scalars(one, (*path, index))
    elif isinstance(node, MappingNode):
        for key, one in node.values.items():
            yield from _scalars(one, (*path, key))


@dataclass(frozen=True, kw_only=True)
class Fix:
    """The correction of a file.

    Attributes:
        changes: the changes, as a unified diff; empty if the file is not changed.
        reason: why the file is not changed.
        remaining: the problems that the correction would reveal and not solve.
    """

    changes: str = ""
    reason: str = ""
    remaining: tuple[Problem, ...] = ()


def fix_files(paths: Iterable[Location], *, sources: bool = True) -> dict[Location, Fix]:
    """Corrects files in which every problem has one correction; with `sources`, also of the sources of
    configs. Returns the correction of each file that has problems.

    A file in which a problem remains is not changed. The name of a missing file has no correction: a file of
    a similar name has other data. Raises StoreError if a file cannot be written, SpecError for a file in an
    object store.
    """
    fixes: dict[Location, Fix] = {}
    left = list(dict.fromkeys(paths))
    while True:  # a config can be corrected after its schema
        found = {path: fix for path in left if (fix := _fix(path, sources)) is not None}
        fixes = {path: fix for path, fix in fixes.items() if path not in left} | found
        left = [path for path, fix in found.items() if not fix.changes]
        if len(left) == len(found):
            return fixes


def _fix(path: Location, sources: bool) -> Fix | None:
    """Corrects a file; None if it has no problem."""
    error = _error_of(path, None, sources)
    if error is None:
        return None
    if not all(map(_correction, error.problems)):
        return Fix(reason=_NO_CORRECTION)
    if not isinstance(path, Path):
        raise SpecError(Problem(where=str(path), expected="a file on this machine to correct", got="a URL"))
    files = [_POSITION.sub("", problem.where) for problem in error.problems]
    if elsewhere := [file for file in files if file != str(path)]:
        return Fix(reason=f"a problem is in another file, {elsewhere[0]}")
    old = text = str(read_bytes(path, LARGEST_BYTES), "utf-8")  # with its line breaks
    for _ in range(_MOST_PASSES):
        corrected = _corrected(path, text, error.problems)
        if corrected is None:
            break
        text = corrected
        if (error := _error_of(path, text, sources)) is None:
            with output_file(path, force=True) as fresh:
                fresh.chmod(path.stat().st_mode)
                fresh.write_bytes(text.encode())
            lines = unified_diff(old.splitlines(), text.splitlines(), str(path), str(path), lineterm="")
            return Fix(changes="\n".join(lines) + "\n")
    if text == old:
        return Fix(reason=_NO_CORRECTION)
    return Fix(reason="after the correction, these problems remain", remaining=error.problems)


def _correction(problem: Problem) -> str | None:
    """The correction of a problem; None for the name of a missing file, although its hint may have one."""
    return correction(problem) if problem.expected else None


def _error_of(path: Location, text: str | None, sources: bool) -> RecordspecError | None:
    try:
        check_file(path, text, sources=sources)
    except RecordspecError as error:
        return error
    return None


def _corrected(path: Path, text: str, problems: Iterable[Problem]) -> str | None:
    """The text of a file with a correction for each problem; None if a problem has none, or is elsewhere."""
    starts = [0, *(found.end() for found in _BREAK.finditer(text))]
    nodes: dict[str, list[Node]] = {}
    for node in _all_nodes(parse_file(path, text)[0]):
        nodes.setdefault(str(node.position), []).append(node)
    edits: dict[tuple[int, int], str] = {}
    for problem in problems:
        scalar, meant = _wrong_scalar(problem, nodes.get(problem.where, [])), _correction(problem)
        if scalar is None or meant is None:
            return None
        start = starts[scalar.position.line - 1] + scalar.position.column - 1
        quote = "" if scalar.plain else text[start]
        written = f"{quote}{scalar.text}{quote}"
        if not text.startswith(written, start):  # escapes, or several lines
            return None
        span, new = (start, start + len(written)), _yaml_of(problem, scalar, meant, quote)
        if edits.setdefault(span, new) != new:
            return None
    for (start, stop), new in sorted(edits.items(), reverse=True):
        text = f"{text[:start]}{new}{text[stop:]}"
    return text


def _all_nodes(node: Node) -> Iterator[Node]:
    """A node, and all keys and values below it."""
    yield node
    if isinstance(node, MappingNode):
        yield from node.keys.values()
    if isinstance(node, (MappingNode, SequenceNode)):
        for one in node.values.values() if isinstance(node, MappingNode) else node.values:
            yield from _all_nodes(one)


def _wrong_scalar(problem: Problem, nodes: Iterable[Node]) -> ScalarNode | None:
    """The only scalar at the position of a problem, or below it, that the message quotes."""
    quoted = f"{problem.expected} {problem.got}"
    at = [node for node in nodes if isinstance(node, ScalarNode)]
    scalars = at or [scalar for node in nodes for scalar, _ in _scalars(node)]
    wrong = [one for one in scalars if f"`{one.text}`" in quoted]
    return wrong[0] if len(wrong) == 1 else None


def _yaml_of(problem: Problem, scalar: ScalarNode, meant: str, quote: str) -> str:
    """The correction of a scalar as YAML, in the same quotes if there were some."""
    if meant == f'"{scalar.text}"':
        return json.dumps(scalar.text, ensure_ascii=False)
    if quote and not re.search(r"""["'\\]""", meant):
        return f"{quote}{meant}{quote}"
    is_number = problem.hint.startswith("write ")
    is_text = (
        _PLAIN.fullmatch(meant) and ScalarNode(position=scalar.position, text=meant, plain=True).type == "str"
    )
    return meant if is_number or is_text else json.dumps(meant, ensure_ascii=False)
