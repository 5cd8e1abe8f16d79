"""The command line: parse, one call of the API, print."""

from __future__ import annotations

import importlib
import io
import os
import sys

import click

from recordspec import __version__
from recordspec.cli.output import echo, print_text
from recordspec.errors import Interrupted, RecordspecError, StoreError, nearest, see, system_problem

# What Ctrl-C ends a shell command with: 128 and the number of SIGINT.
_INTERRUPTED = 130
# The module of each command.
_MODULES = {
    "bench": "bench",
    "build": "build",
    "check": "check",
    "count": "records",
    "describe": "schemas",
    "diff": "diff",
    "doctor": "doctor",
    "explain": "schemas",
    "export": "records",
    "head": "records",
    "index": "integrity",
    "infer": "infer",
    "info": "info",
    "init": "schemas",
    "language": "schemas",
    "lint": "schemas",
    "repair": "integrity",
    "reshard": "build",
    "sample": "records",
    "show": "records",
    "stats": "stats",
    "sweep": "integrity",
    "verify": "integrity",
}
# The page of each command in the documentation.
PAGES = {
    "bench": "reading.md",
    "build": "building.md",
    "check": "inspecting.md",
    "count": "inspecting.md",
    "describe": "interop.md",
    "diff": "statistics.md",
    "doctor": "installing.md",
    "explain": "interop.md",
    "export": "inspecting.md",
    "head": "inspecting.md",
    "index": "integrity.md",
    "infer": "inferring.md",
    "info": "inspecting.md",
    "init": "tutorial.md",
    "language": "reference/language.md",
    "lint": "reference/language.md",
    "repair": "integrity.md",
    "reshard": "building.md",
    "sample": "inspecting.md",
    "show": "inspecting.md",
    "stats": "statistics.md",
    "sweep": "stores.md",
    "verify": "integrity.md",
}


class Commands(click.Group):
    """Commands that are imported on demand, so that each starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"recordspec.cli.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        command.epilog = f"For more, {see(PAGES[cmd_name])}."
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        hint = "" if args[0] in _MODULES else nearest(args[0], _MODULES)
        if hint:
            ctx.fail(f"No such command '{args[0]}' ({hint})")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="recordspec")
def commands() -> None:
    """Write TFRecords, read them with tf.data and train on them, from one YAML spec.

    \b
      recordspec init my-data
      recordspec build my-data/configs/flowers.yaml

    Exit codes: 0 success, 1 invalid data, 2 an invalid spec or command line, 3 an error of the
    environment (disk, permissions, a missing package).
    """


def main() -> None:
    """Runs a command. Errors are one line each on stderr, never a traceback."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors only
    try:
        # not `commands()`: click treats a closed pipe as an error
        with commands.make_context("recordspec", sys.argv[1:]) as context:
            status = commands.invoke(context)
        if sys.stdout is not None:  # a shell may close it: `>&-`
            sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except click.exceptions.Exit as done:  # --help, --version
        sys.exit(done.exit_code)
    except RecordspecError as error:
        for line in (*error.problems, *getattr(error, "__notes__", ())):
            echo(line, err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        print_text(message.getvalue(), err=True)  # it repeats arguments
        sys.exit(error.exit_code)
    except (Interrupted, KeyboardInterrupt, click.Abort) as error:
        echo(str(error) or "interrupted", err=True)
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        echo(system_problem("read or write", error, str(error.filename or "")), err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # flushing the buffer would fail again
        sys.exit(StoreError.exit_code)
