"""The bytes of a file that holds an image or a sound."""

from __future__ import annotations

from pathlib import Path

from recordspec.spec.values import BadValue


def read_file(row: int, path: Path, what: str) -> bytes:
    """A file's bytes. Raises BadValue where it cannot be read."""
    try:
        if not path.is_file() and path.exists():
            raise BadValue(row, f"{what} at {path}", "no regular file")  # a pipe may never end
        return path.read_bytes()
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        got = getattr(error, "strerror", None) or str(error)
        raise BadValue(row, f"{what} at {path}", got) from None
