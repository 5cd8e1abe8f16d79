"""A measured variant, in a module and a virtual environment of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal


class UnsupportedError(Exception):
    """The variant does not support this dataset; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One variant.

    Attributes:
        title: for the table.
        module: the only one that imports the measured package.
        function: that prepares it.
        environment: the requirements file, and the virtual environment made from it.
        packages: whose versions are reported.
        side: ours, a peer, or an upper limit.
    """

    title: str
    module: str
    function: str = "prepare"
    environment: str = "bench"
    packages: tuple[str, ...] = ()
    side: Literal["ours", "peer", "limit"] = "peer"

    def load(self) -> Callable[..., Any]:
        """The function that prepares a variant."""
        prepare: Callable[..., Any] = getattr(import_module(self.module), self.function)
        return prepare
