"""Sizes in bytes, as people write them."""

from __future__ import annotations

import re

from recordspec.errors import Problem, SpecError

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(B|KiB|MiB|GiB)")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def bytes_of(size: str, *path: str) -> int:
    """`128MiB` as a number. Raises SpecError, with `path`, for what is no size."""
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    count = 0 if match is None else int(float(match[1]) * _UNITS[match[2]])
    if not count:
        expected = "a size such as 128MiB (B, KiB, MiB, GiB)"
        raise SpecError(Problem(path=path, expected=expected, got=f"`{size}`"))
    return count


def in_words(count: float) -> str:
    """`134217728` as `128 MiB`."""
    for unit in ("GiB", "MiB", "KiB"):
        if count >= _UNITS[unit]:
            return f"{count / _UNITS[unit]:.3g} {unit}"
    return f"{count:.0f} B"
