"""Processes in the environments that the Makefile makes, which answer with lines of JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".venvs"


def command(environment: str, module: str, *arguments: object) -> list[str]:
    """Runs a module of this folder, which must be the working directory. Exits without the environment."""
    python = ENVIRONMENTS / environment / "bin/python"
    if not python.exists():
        sys.exit(f"{environment}: expected an environment, got none (make .venvs/{environment}/ready)")
    return [str(python), "-m", module, *map(str, arguments)]


def answers() -> Callable[[Any], None]:
    """A line each on what was stdout; what libraries print there goes to stderr from now on."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(message: Any) -> None:
        print(json.dumps(message), file=lines, flush=True)

    return answer


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Of this Python, and of packages of its environment."""
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
