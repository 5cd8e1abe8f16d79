"""A vocabulary: a text file of names, one a line."""

from __future__ import annotations

from pathlib import Path

from recordspec.errors import Problem, SpecError, StoreError
from recordspec.locations import read_text, url_problem

# A file of names is read whole, and each of them is held in memory.
_MOST_BYTES = 64 << 20


def read_vocabulary(name: str, folder: Path | None) -> tuple[str, ...]:
    """The names in a file of `folder`, in their order. Raises SpecError with all that is wrong."""
    if folder is None:
        hint = "Schema.load takes it from the schema's folder"
        raise _wrong("a schema that is read from a file", "text", hint)
    url = url_problem(name)
    if url is not None:
        raise SpecError(url.under("vocabulary"))
    try:
        path = (folder / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in it, or links in a circle
        raise _wrong("the path of a file", f"`{name}`: {error}") from None
    if not path.is_relative_to(folder.resolve()):
        raise _wrong(f"a file in {folder}", f"`{name}`")
    try:
        text = read_text(path, _MOST_BYTES, "utf-8-sig")
    except (StoreError, SpecError) as error:
        (problem,) = error.problems
        raise _wrong(problem.expected, f"{path}: {problem.got}", problem.hint) from None
    return _names(text, path)


def _names(text: str, path: Path) -> tuple[str, ...]:
    lines = text.split("\n")
    if lines[-1] == "":  # behind the last line break
        lines.pop()
    names = tuple(line.removesuffix("\r") for line in lines)
    if not names:
        raise _wrong("at least one name", f"{path}: none")
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise _wrong("a name on every line", f"{path}:{number}: an empty one")
        if name in first:
            got = f"{path}:{number}: `{name}`, which line {first[name]} has"
            raise _wrong("every name once", got)
        first[name] = number
    return names


def _wrong(expected: str, got: str, hint: str = "") -> SpecError:
    return SpecError(Problem(path=("vocabulary",), expected=expected, got=got, hint=hint))
