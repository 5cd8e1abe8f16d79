"""`recordspec init`."""

from __future__ import annotations

import importlib.resources
from pathlib import Path

import click

from recordspec.cli.choosing import PATH
from recordspec.cli.output import echo
from recordspec.errors import Problem, StoreError, system_problem

_FILES = {
    "schema.yaml": "schemas/flowers.yaml",
    "config.yaml": "configs/flowers.yaml",
    "rows.csv": "raw/flowers.csv",
}


@click.command(short_help="A schema, a config and a few rows to start from.")
@click.argument("folder", default=".", type=PATH)
def init(folder: Path) -> None:
    """Write a schema, a config and a few rows into FOLDER, to start from.

    \b
      recordspec init my-data
      recordspec build my-data/configs/flowers.yaml

    Nothing that exists is overwritten.
    """
    targets = {name: folder / place for name, place in _FILES.items()}
    for target in targets.values():
        if target.exists():
            got = "one that exists"
            raise StoreError(Problem(where=str(target), expected="a new file", got=got))
    starter = importlib.resources.files("recordspec.cli") / "starter"
    for name, target in targets.items():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((starter / name).read_text(encoding="utf-8"), encoding="utf-8")
        except OSError as error:
            raise StoreError(system_problem("write", error, str(target))) from None
        echo(target)
    echo(f"next: recordspec build {targets['config.yaml']}", err=True)
