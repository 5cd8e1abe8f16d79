"""Runs commands in their own process, or in this process for tests that would only wait for TensorFlow's
import."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

import recordspec.cli

ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "COLUMNS": "200"}


def run(*arguments: object, cwd: Path | None = None) -> CompletedProcess:
    command = [sys.executable, "-m", "recordspec", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def on_a_terminal(
    *arguments: object,
    cwd: Path,
    stream: str = "stdout",
    other: int | None = None,
    environment: dict[str, str] = ENVIRONMENT,
) -> tuple[int, str]:
    """Runs a command whose `stream` is a terminal and whose other stream is `other`. Returns its exit code,
    and the text it writes to the terminal.

    The terminal is read to its end: output may arrive there after the process has ended.
    """
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "recordspec", *map(str, arguments)]
    streams = {"stdout": other, "stderr": other, stream: follower}
    with subprocess.Popen(command, cwd=cwd, env=environment, **streams) as process:
        os.close(follower)
        shown = b""
        with suppress(OSError):  # EIO at the end
            while some := os.read(leader, 4096):
                shown += some
    os.close(leader)
    return process.returncode, shown.decode()


def run_here(*arguments: object, cwd: Path | None = None) -> CompletedProcess:
    """Runs `recordspec ...` with pipes in this process. Returns its output and its exit code.

    Exceptions that a shell would show as a traceback are raised. Output that native code writes to the
    descriptors of stdout and stderr is not captured.
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
