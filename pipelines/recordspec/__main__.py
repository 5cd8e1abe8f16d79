"""The program: `recordspec`, and `python -m recordspec`."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

from recordspec.cli import main as run_command

# The commands that give tables to DuckDB, for which pyarrow and DuckDB 1 import pandas, in 0.2 s of 0.7.
_WITHOUT_PANDAS = ("query", "leaks", "head", "export")


class _WithoutPandas(MetaPathFinder):
    """An import finder for which pandas is not installed. In a program of its own, no one gives pandas'
    columns to pyarrow."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    """Runs a command, as `cli.main` does."""
    on_spark = any(one.startswith("--spark") for one in sys.argv)  # PySpark needs pandas for Arrow's batches
    if sys.argv[1:] and sys.argv[1] in _WITHOUT_PANDAS and not on_spark:
        sys.meta_path.insert(0, _WithoutPandas())
    run_command()


if __name__ == "__main__":
    main()
