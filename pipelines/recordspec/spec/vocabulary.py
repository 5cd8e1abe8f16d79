"""A vocabulary: a text file of names, one a line."""

from __future__ import annotations

from pathlib import Path

from recordspec.errors import Problem, SpecError

# A file of names is read whole, and each of them is held in memory.
_MOST_BYTES = 64 << 20


def read_vocabulary(name: str, folder: Path | None) -> tuple[str, ...]:
    """The names in a file of `folder`, in their order. Raises SpecError with all that is wrong."""
    if folder is None:
        hint = "Schema.load takes it from the schema's folder"
        raise _wrong("a schema that is read from a file", "text", hint)
    try:
        path = (folder / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in it, or links in a circle
        raise _wrong("the path of a file", f"`{name}`: {error}") from None
    if not path.is_relative_to(folder.resolve()):
        raise _wrong(f"a file in {folder}", f"`{name}`")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _wrong(f"a file of at most {_MOST_BYTES >> 20} MiB", f"{path.stat().st_size:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _wrong("a readable file", f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        got = f"{path}: the byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise _wrong("UTF-8 text", got) from None
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
