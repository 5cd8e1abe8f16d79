"""A way to do what is measured, in a module and an environment of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal


class UnsupportedError(Exception):
    """The way cannot take this dataset; its message says why."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way.

    Attributes:
        title: for the table.
        module: which alone imports what it measures.
        function: prepares it.
        environment: the requirements file, and the virtual environment made from it.
        packages: those whose versions matter.
        side: ours, a peer, or the limit.
    """

    title: str
    module: str
    function: str = "prepare"
    environment: str = "bench"
    packages: tuple[str, ...] = ()
    side: Literal["ours", "peer", "limit"] = "peer"

    def load(self) -> Callable[..., Any]:
        """The function that prepares it."""
        prepare: Callable[..., Any] = getattr(import_module(self.module), self.function)
        return prepare
