"""Files of others, read whole: none that says what records are is large."""

from __future__ import annotations

from pathlib import Path

from recordspec.errors import Problem, SpecError, StoreError

_MOST_BYTES = 64 << 20


def read_bytes(path: Path) -> bytes:
    """A file. Raises StoreError where it cannot be read, SpecError where it is too large."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        got = getattr(error, "strerror", None) or str(error)
        raise StoreError(Problem(where=str(path), expected="a readable file", got=got)) from None
    if len(data) > _MOST_BYTES:
        expected = f"a file of at most {_MOST_BYTES >> 20} MiB"
        raise SpecError(Problem(where=str(path), expected=expected, got="a larger one"))
    return data


def read_text(path: Path) -> str:
    """A file of UTF-8 text. Raises as `read_bytes` does, and SpecError where it is none."""
    data = read_bytes(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        got = f"the byte 0x{data[error.start]:02x} at position {error.start}"
        raise SpecError(Problem(where=str(path), expected="UTF-8 text", got=got)) from None
