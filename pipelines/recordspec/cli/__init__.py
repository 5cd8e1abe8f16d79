"""The command line. Each command parses its arguments, makes one call of the API, and prints the result."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Any, NoReturn

import click

from recordspec import __version__
from recordspec.cli.output import echo
from recordspec.errors import Interrupted, RecordspecError, StoreError, nearest, see, system_problem

# The exit code of a command that Ctrl-C ends: 128 plus the number of SIGINT.
_INTERRUPTED = 130
# The exit code of a command whose pipe closes: 128 plus the number of SIGPIPE.
_CLOSED = 141
# The environment variable that shell completion sets; see `docs/installing.md`.
_COMPLETE = "_RECORDSPEC_COMPLETE"
# The commands as `recordspec --help` groups them, and the module of each.
_GROUPS = {
    "begin": {"init": "schemas", "infer": "infer", "build": "build", "adopt": "integrity"},
    "look": {
        "view": "view",
        "info": "info",
        "count": "records",
        "head": "records",
        "show": "records",
        "sample": "records",
        "explain": "schemas",
    },
    "ask": {"query": "query", "stats": "stats", "diff": "diff", "leaks": "leaks"},
    "validate": {"lint": "schemas", "check": "check", "verify": "integrity", "repair": "integrity"},
    "move": {"export": "records", "reshard": "build", "index": "integrity", "sweep": "integrity"},
    "train": {"bench": "bench", "which": "records"},
    "help": {"docs": "docs", "doctor": "doctor"},
}
_MODULES = {name: group[name] for group in _GROUPS.values() for name in group}
# Commands that were removed, and what replaces them.
_REMOVED = {
    "describe": "recordspec export DATA --as tfds",
    "language": "recordspec docs language",
}
# Commands whose exit code reports a finding or an action: a closed pipe ends them with an error, since they
# are not finished. Any other command prints as much as the reader of the pipe wants, and succeeds.
_ACT = frozenset({"adopt", "build", "check", "diff", "index", "init", "leaks", "lint"})
_ACT |= {"repair", "reshard", "sweep", "verify"}
# The page of each command in the documentation.
PAGES = {
    "adopt": "adopting",
    "bench": "reading",
    "build": "building",
    "check": "validating",
    "count": "inspecting",
    "diff": "comparing",
    "docs": "installing",
    "doctor": "installing",
    "explain": "interop",
    "export": "exporting",
    "head": "inspecting",
    "index": "integrity",
    "infer": "inferring",
    "info": "inspecting",
    "init": "tutorial",
    "leaks": "comparing",
    "lint": "reference/language",
    "query": "tables",
    "repair": "integrity",
    "reshard": "building",
    "sample": "inspecting",
    "show": "inspecting",
    "stats": "statistics",
    "sweep": "stores",
    "verify": "integrity",
    "view": "viewing",
    "which": "resuming",
}


class Commands(click.Group):
    """Commands, each imported only when it runs, so that it starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _MODULES))
        for group, names in _GROUPS.items():
            lines = []
            for name in names:
                command = self.get_command(ctx, name)
                assert command is not None
                lines.append((name.ljust(width), command.get_short_help_str(formatter.width)))
            with formatter.section(group.capitalize()):
                formatter.write_dl(lines)

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
        if (replacement := _REMOVED.get(args[0])) is not None:
            ctx.fail(f"`recordspec {args[0]}` was removed: use `{replacement}`")
        hint = "" if args[0] in _MODULES else nearest(args[0], _MODULES)
        if hint:
            ctx.fail(f"No such command '{args[0]}' ({hint})")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:  # click also suggests hidden options; its words differ by version
            params = error.ctx.command.params if error.ctx else ()
            shown = [name for one in params if not getattr(one, "hidden", False) for name in one.opts]
            hint = nearest(error.option_name, shown)
            message = f"No such option '{error.option_name}'"
            raise click.UsageError(f"{message} ({hint})" if hint else f"{message}.", error.ctx) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="recordspec")
def commands() -> None:
    """Write TFRecords, read them with tf.data and train on them, from one YAML schema.

    \b
      recordspec init my-data
      recordspec build my-data/configs/flowers.yaml

    Exit codes: 0 success, 1 invalid data, 2 an invalid schema, config or command line, 3 an error of the
    environment (disk, permissions, a missing package), 4 a file or dataset that exists already.
    """


def main() -> None:
    """Runs a command. Prints errors on stderr, one line each and never a traceback."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors only
    _open_standard_streams()
    if instruction := os.environ.get(_COMPLETE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(commands, {}, "recordspec", _COMPLETE, instruction))
    try:
        # not `commands()`: click treats a closed pipe as an error
        with commands.make_context("recordspec", sys.argv[1:]) as context:
            status = commands.invoke(context)
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except click.exceptions.Exit as done:  # --help, --version
        sys.exit(done.exit_code)
    except RecordspecError as error:
        _fail(error.exit_code, *error.problems, *getattr(error, "__notes__", ()))
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        _fail(error.exit_code, *message.getvalue().removesuffix("\n").split("\n"))
    except (Interrupted, KeyboardInterrupt, click.Abort) as error:
        _fail(_INTERRUPTED, str(error) or "interrupted")
    except BrokenPipeError:  # `| head` has seen enough
        _discard(1, 2)
        sys.exit(_CLOSED if _ACT.intersection(sys.argv[1:2]) else 0)
    except OSError as error:
        _discard(1)
        _fail(StoreError.exit_code, system_problem("read or write", error, str(error.filename or "")))


def _open_standard_streams() -> None:
    """Opens standard streams that the shell has closed, as by `2>&-`. Otherwise the first files that a
    command opens would take their numbers, and printed text would be written into these files."""
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            _discard(number)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _fail(status: int, *lines: Any) -> NoReturn:
    """Prints messages on stderr, and exits."""
    try:
        for line in lines:
            echo(line, err=True)
    except OSError:  # only the exit code can still report the error
        _discard(2)
    sys.exit(status)


def _discard(*streams: int) -> None:
    """Discards further output to standard streams: flushing their buffers would fail again."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in streams:
        if stream != nothing:
            os.dup2(nothing, stream)
