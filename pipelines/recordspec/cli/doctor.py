"""`recordspec doctor`."""

from __future__ import annotations

import click

from recordspec.cli.output import json_option, print_rows, quiet_tensorflow


@click.command(short_help="What this installation can do.")
@json_option
def doctor(as_json: bool) -> None:
    """Try out what this installation can do, and say what is missing for the rest.

    \b
      recordspec doctor
      recordspec doctor --json
    """
    from recordspec.inspect.doctor import examine

    with quiet_tensorflow():
        findings = examine()
    print_rows((vars(finding) for finding in findings), as_json)
