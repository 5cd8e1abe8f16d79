"""Transcripts: what every command prints, and how it exits, over the datasets of `configs/`.

Each file in `snapshots/commands/` is a session in a folder with the schemas, the configs, the raw data, the
datasets built from them, and the files of `gallery.prepare`. A line that begins with `$ ` is a command; what
is indented below it is what it prints: stdout, and behind `!` stderr. Each command runs in a pipe, on a
terminal of 100 columns without colours, and there with `--json` and stderr in a file; what is equal is
written once. With `# in a pipe` behind it, it runs only there.

To add a command to a session, write its `$ ` line; to write all that is below such lines again:

    python -m pytest tests/net --update-snapshots
"""

from __future__ import annotations

import io
import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click
import gallery
import pytest

from recordspec.cli import commands, main

pytestmark = pytest.mark.slow

SESSIONS = sorted(path.stem for path in (gallery.SNAPSHOTS / "commands").glob("*.txt"))
# What a session may do other than call recordspec: look at what was written.
TOOLS: dict[str, Callable[..., None]] = {
    "cat": lambda path: print(Path(path).read_text(encoding="utf-8"), end=""),
    "ls": lambda path: print("\n".join(sorted(str(one) for one in Path(path).rglob("*") if one.is_file()))),
}


@pytest.fixture(scope="session")
def built_home(tmp_path_factory) -> Path:
    return gallery.prepare(gallery.home(tmp_path_factory.mktemp("net") / "built"))


def test_every_command_has_a_session():
    assert set(commands.list_commands(click.Context(commands))) <= set(SESSIONS)


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_it_did(name, built_home, tmp_path, snapshot, monkeypatch):
    for variable in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in {"COLUMNS": "100", "LINES": "50", "TERM": "dumb"}.items():
        monkeypatch.setenv(variable, value)
    shells = [
        Shell(copied(built_home, tmp_path / "pipe"), "in a pipe", terminal=False, json=False),
        Shell(copied(built_home, tmp_path / "terminal"), "on a terminal", terminal=True, json=False),
        Shell(copied(built_home, tmp_path / "json"), "on a terminal, --json", terminal=True, json=True),
    ]
    path = gallery.SNAPSHOTS / "commands" / f"{name}.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    snapshot(f"commands/{name}.txt", "\n".join(transcript(lines, shells)) + "\n")


def copied(home: Path, folder: Path) -> Path:
    """A home that a session may write into: datasets and files of its own, and links to what it only reads."""
    folder.mkdir()
    for name in ("data", "files"):
        shutil.copytree(home / name, folder / name)
    for name in ("schemas", "configs", "raw"):
        (folder / name).symlink_to(home / name)
    return folder


def transcript(lines: list[str], shells: list[Shell]) -> Iterator[str]:
    """A session with the outputs of today."""
    for line in lines:
        if line.startswith("$ "):
            yield line
            which = shells[:1] if line.endswith("# in a pipe") else shells
            yield from outputs(shlex.split(line[2:], comments=True), which)
            yield ""
        elif line.startswith("#"):
            yield line


def outputs(words: list[str], shells: list[Shell]) -> Iterator[str]:
    """What a command prints on stdout, then on stderr, then how it exits: by where it runs, and without a
    heading where that is the same everywhere."""
    printed = {}
    for shell in shells:
        json = shell.json and has_json(words)
        found = shell.run([*words, "--json"] if json else words)
        if json or not shell.json:
            printed[shell.name] = found
    for outputs_of_one_kind in zip(*printed.values(), strict=True):
        places: dict[tuple[str, ...], list[str]] = {}
        for name, lines in zip(printed, outputs_of_one_kind, strict=True):
            places.setdefault(lines, []).append(name)
        for lines, names in places.items():
            if len(places) > 1 and lines:
                yield f"  [{'; '.join(names)}]"
            yield from lines


def has_json(words: list[str]) -> bool:
    """Whether `--json` makes another command of it."""
    if words[0] != "recordspec" or len(words) < 2 or "--help" in words:
        return False
    command = commands.get_command(click.Context(commands), words[1])
    return command is not None and any("--json" in option.opts for option in command.params)


@dataclass(frozen=True)
class Shell:
    """Where commands run.

    Attributes:
        home: the folder.
        name: of the place, in transcripts.
        terminal: whether stdout is one, and stderr.
        json: whether `--json` is added to commands that have it; then stderr is no terminal.
    """

    home: Path
    name: str
    terminal: bool
    json: bool

    def run(self, words: list[str]) -> tuple[tuple[str, ...], ...]:
        """The lines of stdout, those of stderr, and what says how it exits."""
        stdout, stderr = Stream(self.terminal), Stream(self.terminal and not self.json)
        exit_code = self._run(words, stdout, stderr)
        drawn = groupby(f"  ! {line}".rstrip() for line in self._lines(words, stderr))
        return (
            tuple(f"    {line}".rstrip() for line in self._lines(words, stdout)),
            tuple(line for line, _ in drawn),  # how often a progress bar is drawn depends on the time
            (f"  [exit {exit_code}]",) if exit_code else (),
        )

    def _run(self, words: list[str], stdout: Stream, stderr: Stream) -> int:
        kept = os.dup(1), os.dup(2)  # `main` closes them after some errors
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(self.home)
                patch.setattr(sys, "stdout", stdout)
                patch.setattr(sys, "stderr", stderr)
                patch.setattr(sys, "argv", words)
                patch.setattr(logging.root, "handlers", [])  # pytest's: without them, warnings go to stderr
                if words[0] in TOOLS:
                    TOOLS[words[0]](*words[1:])
                    return 0
                main()
        except SystemExit as end:
            return int(end.code or 0)
        finally:
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
        raise AssertionError("main() exits")

    def _lines(self, words: list[str], stream: Stream) -> list[str]:
        return normal(" ".join(words), stream.text.replace(str(self.home), "HOME")).splitlines()


class Stream(io.TextIOWrapper):
    """What is printed, with the word of a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode().replace("\x1b", "␛")


# What differs from run to run, and from version to version: by a pattern of the command, a pattern of what
# it prints, and what stands for that here.
_VARIES = (
    # of a progress bar: how much is drawn, the rate, and the time
    ("", r" *━[━╸╺ ]*", " ━ "),
    ("", r"━ ([\d,]+ rows) .*", r"━ \1 #"),
    ("build", r"note: the reference codec.*\n", ""),
    (
        "build|reshard",
        r" by the (native codec|reference codec, which is slow: .*?)(?=, \d+ rejected|$)",
        " by # codec",
    ),
    ("build|reshard", r"in [\d.]+ s \([\d,]+ rows/s, [\d.,]+ MB/s\)", "in # s (# rows/s, # MB/s)"),
    ("adopt", r"(?m)in [\d.]+ s$", "in # s"),
    ("dry-run", r"of which [\d.,]+ \w+ are free", "of which # are free"),
    ("doctor", r'"works": .*', '"works": #, "found": #, "advice": #}'),
    ("bench", r'"limit": "[^"]*"', '"limit": #'),
    ("bench", r'": -?[\d.]+(e-?\d+)?', '": #'),
    # matplotlib 3.8 with a newer pyparsing, where TensorFlow 2.16 loads it first
    ("", r"In \S+\.mplstyle: .*\n", ""),
    # click before 8.2 names the shorter option
    ("", r"Try '(.*) -h' for help", r"Try '\1 --help' for help"),
    ("export", r'(parquet", "rows".*"bytes": )\d+', r"\1#"),
    ("export", r"(parquet, )[\d.,]+ \w+", r"\1# bytes"),
)


# The last digits of a sum depend on the version of NumPy and on the processor.
_LONG_FLOAT = re.compile(r"\d+\.\d{9,}(e[-+]?\d+)?")


def normal(command: str, text: str) -> str:
    """What a command prints, without what varies."""
    text = _LONG_FLOAT.sub(lambda found: f"{float(found[0]):.9g}", text)
    for which, pattern, stand_in in _VARIES:
        if re.search(which, command):
            text = re.sub(pattern, stand_in, text)
    return text
