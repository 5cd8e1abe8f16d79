"""A process that runs commands in forked children. They start at once, since the process has imported
everything.

Each line of its input is a list of arguments in JSON. It answers with the process id of the child and, when
the child has ended, with its exit code. It makes no request to a store: the threads of a client do not
survive a fork.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from recordspec import cli


class Forking:
    """A client of the process for tests.

    Args:
        log: a file for the output of its children.
    """

    def __init__(self, log: Path, environment: dict[str, str]) -> None:
        self.log = log
        self._output = log.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            env=os.environ | environment,
            text=True,
        )

    def start(self, *arguments: object) -> int:
        """Starts a command. Returns the process id of its child."""
        assert self._process.stdin is not None
        self.log.write_bytes(b"")
        self._process.stdin.write(json.dumps([*map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        return self._line()

    def wait(self) -> int:
        """The exit code of the command; -9 after SIGKILL."""
        return self._line()

    def run(self, *arguments: object) -> int:
        self.start(*arguments)
        return self.wait()

    def said(self) -> str:
        """The output of the last command, on stdout and stderr."""
        return self.log.read_text(errors="replace")

    def close(self) -> None:
        self._process.communicate()
        self._output.close()

    def _line(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.argv = ["recordspec", *json.loads(line)]
            code = 1
            try:
                cli.main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(bool(end.code))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(child, file=answers, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


if __name__ == "__main__":
    main()
