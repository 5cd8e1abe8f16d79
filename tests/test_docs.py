"""Every block of README.md and docs/ runs, in its order, in an empty folder, as a newcomer would type it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

from recordspec.cli import commands
from recordspec.spec.features import KINDS
from recordspec.testing import LAWS
from third_party_data import DATA, needs_data

ROOT = Path(__file__).parents[1]
MNIST = DATA / "mnist/mnist.tfrecord"
README = (ROOT / "README.md").read_text()
BUILDING = (ROOT / "docs/building.md").read_text()
INTEROP = (ROOT / "docs/interop.md").read_text()
STORES = (ROOT / "docs/stores.md").read_text()
TRAINING = (ROOT / "docs/training.md").read_text()
READING = (ROOT / "docs/reading.md").read_text()
INFERRING = (ROOT / "docs/inferring.md").read_text()
INSPECTING = (ROOT / "docs/inspecting.md").read_text()
STATISTICS = (ROOT / "docs/statistics.md").read_text()
INTEGRITY = (ROOT / "docs/integrity.md").read_text()
CUSTOM_KINDS = (ROOT / "docs/custom-kinds.md").read_text()


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


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


def run(text: str, folder: Path) -> dict:
    """Runs the blocks of a page; a first line `# name` is a file's name. Gives the names of its Python."""
    names: dict = {"__name__": "page"}
    for language, block in blocks(text):
        named = re.match(r"# (\S+\.(yaml|py))\n", block)
        if named:
            path = folder / named[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block)
        if language == "python":
            exec(compile(block, "page", "exec", dont_inherit=True), names)
        elif language == "console":
            run_console(block, folder)
    return names


@pytest.mark.slow
def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    history = run(README, tmp_path)["model"].history.history
    assert len(history["accuracy"]) == 5
    assert history["loss"][-1] < history["loss"][0]


@pytest.mark.services
@needs_data
def test_five_commands_train_a_model(tmp_path):
    shutil.copy(MNIST, tmp_path)
    (five,) = (block for language, block in blocks(README) if language == "sh")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", five],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stderr
    accuracy = float(re.findall(r"val_accuracy: ([0-9.]+)", done.stdout)[-1])
    assert accuracy > 0.7


@pytest.mark.slow
def test_the_page_on_building_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(BUILDING, tmp_path)
    run_console("$ recordspec lint configs/street.yaml\nconfigs/street.yaml: no problems\n", tmp_path)


@pytest.mark.slow
def test_the_page_on_interop_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(INTEROP, tmp_path)


@pytest.mark.slow
def test_the_page_on_reading_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(READING, tmp_path)


@pytest.mark.slow
def test_the_page_on_training_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(TRAINING, tmp_path)
    names["rs"].Schema.load("schemas/pets.yaml")
    _, accuracy = names["model"].evaluate(names["test"], verbose=0)
    majority = np.mean([row["tip"] == "none" for row in names["rows"]])
    assert accuracy > majority + 0.1
    _, accuracy = names["reader"].evaluate(names["reviews"].dataset("test"), verbose=0)
    assert accuracy > 0.9
    (tmp_path / "models/reviews/1/saved_model.pb").stat()


@pytest.mark.slow
def test_the_page_on_inspecting_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    run(INSPECTING, tmp_path)


@pytest.mark.slow
def test_the_page_on_inferring_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(INFERRING, tmp_path)


@pytest.mark.slow
def test_the_page_on_statistics_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    run(STATISTICS, tmp_path)


@pytest.mark.slow
def test_the_page_on_integrity_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(INTEGRITY, tmp_path)
    assert names["damaged"] == ["numbers/train-00000-of-00002.tfrecord"]
    assert names["done"].manifest.rows("train") == 999


@pytest.mark.slow
def test_a_custom_kind_runs_and_keeps_every_law(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(CUSTOM_KINDS, tmp_path)["schema"].names["came"].unit == "s"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_timestamp.py"]
    tested = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert f"{2 * len(LAWS)} passed" in tested.stdout, tested.stdout


@pytest.mark.parametrize(
    ("text", "pythons", "yamls"),
    [
        (README, 6, 3),
        (BUILDING, 2, 5),
        (INTEROP, 4, 1),
        (INSPECTING, 7, 3),
        (CUSTOM_KINDS, 3, 1),
        (STORES, 3, 3),
    ],
)
def test_the_blocks_are_all_seen(text, pythons, yamls):
    languages = [language for language, _ in blocks(text)]
    assert (languages.count("python"), languages.count("yaml")) == (pythons, yamls)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_in_the_table(kind):
    assert f"| `{kind}`" in README


@pytest.mark.parametrize("command", commands.list_commands(None))
def test_every_command_is_in_the_table_and_begins_its_help_with_two_that_run(command):
    command = commands.get_command(None, command)
    assert re.search(rf"`(recordspec )?{command.name} ", README) or f"`recordspec {command.name}`" in README
    paragraph = click.unstyle(command.help).split("\n\n")[1]
    examples = paragraph.replace("\b", "").split("\n")
    assert len([line for line in examples if line.strip().startswith("recordspec ")]) == 2
    assert command.short_help


def test_make_targets_are_there(root):
    makefile = (root / "Makefile").read_text()
    for target in ("demo", "test"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
