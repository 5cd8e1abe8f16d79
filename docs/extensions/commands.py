"""The reference of the commands, from click."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from recordspec.cli import commands


def page(section: str) -> str:
    """Each command, with its usage, its examples and its options, in Markdown; or `brief`, in a line."""
    context = click.Context(commands, info_name="recordspec")
    *_, exit_codes = inspect.cleandoc(commands.help or "").split("\n\n")
    lines = [f"{_plain(exit_codes)}\n"] if section == "brief" else []
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=context)
        if section == "brief":
            usage = " ".join(command.collect_usage_pieces(own))
            lines.append(f"- `recordspec {name} {usage}`: {command.short_help}")
        else:
            lines += _command(command, own)
    return "\n".join(lines)


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    first, examples, *more = inspect.cleandoc(command.help or "").split("\n\n")
    yield f"## {command.name}\n"
    yield f"{_plain(first)}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```\n"
    commands_ = "\n".join(f"$ {line.strip()}" for line in examples.splitlines() if line.strip("\b "))
    yield f"```console\n{commands_}\n```\n"
    for paragraph in more:
        yield f"{_plain(paragraph)}\n"
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is not None and record[1]:  # an argument has no text
            names, text = record
            yield f"`{names}`\n: {_plain(text)}\n"


def _plain(text: str) -> str:
    """Text of a terminal in Markdown: nothing in it is markup but its code."""
    joined = " ".join(text.replace("\b", "").split())
    parts = joined.split("`")
    for index in range(0, len(parts), 2):
        for mark in "\\*_[]<>#|$":
            parts[index] = parts[index].replace(mark, f"\\{mark}")
        parts[index] = parts[index].replace("--", "\\-\\-")
    return "`".join(parts)
