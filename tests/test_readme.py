"""Every block of the README runs, in its order, in an empty folder, as a newcomer would type it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from recordspec.cli import commands
from recordspec.spec.features import KINDS

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run_console(block: str, folder: Path) -> None:
    """Commands behind `$`; what is printed below each is compared."""
    for part in block.split("$ ")[1:]:
        command, _, expected = part.partition("\n")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        shell = subprocess.run(
            command, shell=True, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
        assert shell.returncode == 0, shell.stderr
        assert lines(shell.stdout) == lines(expected), command


def lines(text: str) -> list:
    return [json.loads(line) if line.startswith("{") else line for line in text.splitlines()]


def test_every_block_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for language, block in BLOCKS:
        if language == "yaml":
            path = tmp_path / block.partition("\n")[0].removeprefix("# ")
            path.parent.mkdir(exist_ok=True)
            path.write_text(block)
        elif language == "python":
            exec(block, names)
        elif language == "console":
            run_console(block, tmp_path)
    history = names["model"].history.history
    assert len(history["accuracy"]) == 5
    assert history["loss"][-1] < history["loss"][0]


def test_the_blocks_are_all_seen():
    assert [language for language, _ in BLOCKS].count("python") == 6
    assert [language for language, _ in BLOCKS].count("yaml") == 3


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_in_the_table(kind):
    assert f"| `{kind}`" in README


@pytest.mark.parametrize("command", commands.commands.values(), ids=lambda command: command.name)
def test_every_command_is_in_the_table_and_begins_its_help_with_two_that_run(command):
    assert re.search(rf"`(recordspec )?{command.name} ", README) or f"`recordspec {command.name}`" in README
    paragraph = click.unstyle(command.help).split("\n\n")[1]
    examples = paragraph.replace("\b", "").split("\n")
    assert len([line for line in examples if line.strip().startswith("recordspec ")]) == 2
    assert command.short_help


def test_make_targets_are_there(root):
    makefile = (root / "Makefile").read_text()
    for target in ("demo", "test"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
