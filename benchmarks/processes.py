"""Processes in the virtual environments of the Makefile, which answer with lines of JSON."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".venvs"


def command(environment: str, module: str, *arguments: object) -> list[str]:
    """The command that runs a module of this folder, the working directory. Exits without the environment."""
    python = ENVIRONMENTS / environment / "bin/python"
    if not python.exists():
        sys.exit(f"{environment}: expected an environment, got none (make .venvs/{environment}/ready)")
    return [str(python), "-m", module, *map(str, arguments)]


def answers() -> Callable[[Any], None]:
    """A stream for answers on stdout, one a line; other output of the process goes to stderr."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(message: Any) -> None:
        print(json.dumps(message), file=lines, flush=True)

    return answer


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """The versions of Python and of packages of its environment."""
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def cpu_seconds() -> float:
    """CPU seconds, from getrusage: os.times counts in hundredths of a second."""
    times = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in times)


class Worker:
    """A process that runs one variant. It first prints its versions, or why it cannot run.

    Attributes:
        way: its name.
        versions: of its packages.
        skipped: why it cannot run, or empty.
    """

    def __init__(self, way: str, arguments: list[str], errors: Path) -> None:
        self.way = way
        self._errors = errors
        with open(errors, "w") as file:
            self._process = subprocess.Popen(
                arguments,
                cwd=HERE,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        ready = self._answer()
        self.skipped: str = ready.get("skipped", "")
        self.versions: dict[str, str] = ready.get("versions", {})

    def ask(self, what: str) -> dict[str, Any]:
        """Sends a line and waits for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.way} failed:\n{self._errors.read_text()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
