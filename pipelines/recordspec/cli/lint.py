"""`recordspec lint`."""

from __future__ import annotations

from pathlib import Path

import click

from recordspec.cli.choosing import PATH
from recordspec.cli.output import echo, json_option, print_json
from recordspec.errors import RecordspecError, show_path


@click.command(short_help="Every problem in schemas and configs, with lines.")
@click.argument("files", nargs=-1, required=True, type=PATH)
@json_option
def lint(files: tuple[Path, ...], as_json: bool) -> int:
    """Find every problem in schemas and configs.

    \b
      recordspec lint schemas/digits.yaml
      recordspec lint schemas/*.yaml configs/*.yaml --json

    Exits with 2 if there is one, with 3 if a file cannot be read.
    """
    from recordspec.config import load_any

    worst = 0
    for file in files:
        try:
            load_any(file)
        except RecordspecError as error:
            worst = max(worst, error.exit_code)
            for problem in error.problems:
                if as_json:
                    print_json({**vars(problem), "path": show_path(problem.path)})
                else:
                    echo(problem)
            continue
        if as_json:
            print_json({"file": str(file), "problems": 0})
        else:
            echo(f"{file}: no problems")
    return worst
