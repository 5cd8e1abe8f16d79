"""Files of others, read whole: none that says what records are is large."""

from __future__ import annotations

from pathlib import Path

from recordspec import locations
from recordspec.errors import SpecError

_MOST_BYTES = 64 << 20


def read_bytes(path: Path) -> bytes:
    """A file. Raises StoreError where it cannot be read, SpecError where it is too large."""
    return locations.read_bytes(path, _MOST_BYTES, SpecError)


def read_text(path: Path) -> str:
    """A file of UTF-8 text. Raises as `read_bytes` does, and SpecError where it is none."""
    return locations.read_text(path, _MOST_BYTES)
