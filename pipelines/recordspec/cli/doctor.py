"""`recordspec doctor`."""

from __future__ import annotations

import click

from recordspec.cli.output import print_rows, quiet_tensorflow
from recordspec.cli.shared_options import json_option


@click.command(short_help="Check what this installation can do.")
@json_option
def doctor(as_json: bool) -> None:
    """Check what this installation can do, and how to install what is missing.

    \b
      recordspec doctor
      recordspec doctor --json
    """
    from recordspec.cli.probes import examine

    with quiet_tensorflow():
        findings = examine()
    print_rows((vars(finding) for finding in findings), as_json)
