"""What a probe comes to."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass

from recordspec.errors import MissingExtra


@dataclass(frozen=True)
class Finding:
    """One capability: whether it works, what was found, and what to do about it."""

    capability: str
    works: bool
    found: str
    advice: str = ""


class UnusableError(Exception):
    """A capability that is not there, in words that need no name of an exception before them."""


def find(capability: str, probe: Callable[[], str], advice: str) -> Finding:
    """Runs a probe, which returns what it found, or raises anything."""
    try:
        return Finding(capability, True, probe())
    except MissingExtra as error:  # what a user's pipeline would be told
        (problem,) = error.problems
        return Finding(capability, False, problem.got, problem.hint)
    except UnusableError as error:
        return Finding(capability, False, str(error), advice)
    except Exception as error:  # whatever is broken is what the report is for
        lines = str(error).splitlines() or [""]
        return Finding(capability, False, f"{type(error).__name__}: {lines[0][:80]}", advice)


def check(holds: bool, what: str) -> None:
    """Raises ValueError if what came out is not what went in."""
    if not holds:
        raise ValueError(f"wrong {what}")


def version(package: str) -> str:
    """A package by name and version."""
    return f"{package} {importlib.metadata.version(package)}"
