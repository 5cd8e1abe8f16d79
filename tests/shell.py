"""Commands in this process, for tests that would only wait for another one to import TensorFlow."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

import recordspec.cli


def run_here(*arguments: object, cwd: Path | None = None) -> CompletedProcess:
    """What `recordspec ...` prints into pipes, and its exit code.

    Exceptions that a shell would show as a traceback are raised. What is written to the descriptors of stdout
    and stderr by other than Python is not seen.
    """
    command = ["recordspec", *map(str, arguments)]
    stdout, stderr, folder = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(cwd or folder)
    try:
        with (
            redirect_stdout(stdout),
            redirect_stderr(stderr),
            mock.patch.object(sys, "argv", command),
        ):
            recordspec.cli.main()
    except SystemExit as done:
        code = done.code
    finally:
        os.chdir(folder)
    return CompletedProcess(command, code, stdout.getvalue(), stderr.getvalue())
