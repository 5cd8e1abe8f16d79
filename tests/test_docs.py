"""Every block of README.md and docs/ runs, in its order, in an empty folder, as a newcomer would type it.

The laws of `testing` hold for the kinds of docs/custom-kinds.md.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import recordspec as rs
from learning import check_accuracy, check_learned
from recordspec.cli import commands
from recordspec.testing import LAWS, Case
from third_party_data import DATA, needs_data

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs/extensions"))
generated = importlib.import_module("generated")
MNIST = DATA / "mnist/mnist.tfrecord"
DOCS = ROOT / "docs"
# Pages whose blocks other tests run: they need workers, Java or a bucket.
ELSEWHERE = ("docs/distributed.md", "docs/spark.md", "docs/stores.md")


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


def has_blocks(path: Path) -> bool:
    return any(language in ("python", "console") for language, _ in blocks(path.read_text()))


def code(path: Path) -> list[str]:
    return [block for language, block in blocks(path.read_text()) if language == "python"]


PAGES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *DOCS.rglob("*.md")) if has_blocks(path)
)


def check_readme(names: dict) -> None:
    model, history = names["model"], names["model"].history.history
    assert len(history["accuracy"]) == 5
    check_learned(model, names["pipeline"].dataset("test"), history["val_accuracy"][-1])
    check_learned(names["again"], names["inferred"].dataset("test"))


def check_adopting(names: dict) -> None:
    check_learned(names["model"], names["pipeline"].dataset("validation"))


def check_test_split(names: dict) -> None:
    check_learned(names["model"], names["pipeline"].dataset("test"))


def check_padding(names: dict) -> None:
    check_learned(names["tagger"], names["tagged"].dataset("train"), names["history"]["accuracy"][-1])


def check_training(names: dict) -> None:
    check_learned(names["model"], names["test"], names["model"].history.history["val_accuracy"][-1])


def check_encoding(names: dict) -> None:
    check_learned(names["reader"], names["reviews"].dataset("test"))


def check_packing(names: dict) -> None:
    import tensorflow as tf

    rows = names["documents"].dataset("eval", shuffle=None)
    known = rows.map(lambda inputs, targets, weights: (inputs, tf.where(weights > 0, targets, -1)))
    check_learned(names["model"], known)


def check_building(names: dict) -> None:
    days = rs.Pipeline.load("configs/days.yaml").build(progress=False)
    assert {split: days.rows(split) for split in days.splits} == {"train": 1999, "eval": 2000}


def check_tutorial(names: dict) -> None:
    assert names["error"] < 15
    assert 200 < names["answer"]["price"].numpy().item() < 280


def check_integrity(names: dict) -> None:
    assert names["damaged"] == ["numbers/train-00000-of-00002.tfrecord"]
    assert names["done"].manifest.rows("train") == 999


def check_custom_kinds(names: dict) -> None:
    assert names["schema"].names["came"].unit == "s"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_timestamp.py"]
    tested = subprocess.run(command, capture_output=True, text=True)
    assert f"{2 * len(LAWS)} passed" in tested.stdout, tested.stdout
    keypoints = names["Keypoints"](name="joints", points=3)
    for section in ("features", "sequence"):
        for law in LAWS:
            law(Case(keypoints, section))


CHECKS = {
    "README.md": check_readme,
    "docs/building.md": check_building,
    "docs/custom-kinds.md": check_custom_kinds,
    "docs/integrity.md": check_integrity,
    "docs/adopting.md": check_adopting,
    "docs/balancing.md": check_test_split,
    "docs/encoding.md": check_encoding,
    "docs/packing.md": check_packing,
    "docs/padding.md": check_padding,
    "docs/resuming.md": check_test_split,
    "docs/serving.md": check_test_split,
    "docs/training.md": check_training,
    "docs/tutorial.md": check_tutorial,
}


# These train a model for half a minute.
LONG = ("docs/tutorial.md",)


@pytest.mark.docs
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long] * (page in LONG))
        for page in PAGES
        if page not in ELSEWHERE
    ],
)
def test_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names = run((ROOT / page).read_text(), tmp_path)
    for schema in tmp_path.glob("schemas/*.yaml"):
        rs.Schema.load(schema)
    CHECKS.get(page, lambda _: None)(names)


@pytest.mark.docs
def test_each_recipe_for_agents_runs_alone(tmp_path, monkeypatch):
    recipes = generated.filled((DOCS / "agents.md").read_text()).split("\n### ")[1:]
    assert len(recipes) == 3
    for recipe in recipes:
        folder = tmp_path / recipe.partition("\n")[0]
        folder.mkdir()
        monkeypatch.chdir(folder)
        assert run(recipe, folder)


@pytest.mark.docs
@needs_data
def test_five_commands_train_a_model(tmp_path):
    shutil.copy(MNIST, tmp_path)
    (five,) = (block for language, block in blocks((DOCS / "inferring.md").read_text()) if language == "sh")
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
    pipeline = rs.Pipeline.load(tmp_path / "config.yaml")
    (counts,) = pipeline.manifest.class_counts(("test",)).values()
    check_accuracy(accuracy, max(counts) / sum(counts))


@pytest.mark.docs
@pytest.mark.newest
@pytest.mark.long
def test_the_demo_trains_a_model(tmp_path):
    """`make demo` in a copy of what it reads."""
    for name in ("demo", "schemas", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "demo/digits.py"]
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    (accuracy, rows), *_ = re.findall(
        r"^test accuracy: ([0-9.]+) on (\d+) images$", done.stdout, re.MULTILINE
    )
    counts = rs.Pipeline.load(tmp_path / "configs/digits.yaml").manifest.class_counts(("test",))["label"]
    assert int(rows) == sum(counts)
    check_accuracy(float(accuracy), max(counts) / sum(counts))


def test_pages_are_found():
    assert len(PAGES) > 15
    assert set(ELSEWHERE) < set(PAGES)
    assert CHECKS.keys() < set(PAGES)


def test_every_page_that_trains_a_classifier_is_checked_to_learn():
    trained = {page for page in PAGES if "CategoricalCrossentropy(" in "".join(code(ROOT / page))}
    learned = {page for page, check in CHECKS.items() if "check_learned" in check.__code__.co_names}
    assert trained == learned


@pytest.mark.parametrize("command", commands.list_commands(None))
def test_every_command_begins_its_help_with_two_that_run(command):
    command = commands.get_command(None, command)
    paragraph = click.unstyle(command.help).split("\n\n")[1]
    examples = paragraph.replace("\b", "").split("\n")
    assert len([line for line in examples if line.strip().startswith("recordspec ")]) == 2
    assert command.short_help


def examples(command: str) -> list[str]:
    text = click.unstyle(commands.get_command(None, command).help)
    return [line.strip() for line in text.splitlines() if line.strip().startswith("recordspec ")]


# Of these commands the examples end with 1: the files differ, or are damaged.
ENDS_WITH_1 = ("diff", "repair")


@pytest.mark.docs
@pytest.mark.newest
@pytest.mark.long
def test_the_examples_of_help_run_as_they_stand(tmp_path):
    """In a folder with the schemas and configs of the repository, its digits, and files of other names."""
    for name in ("schemas", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def shell(line: str) -> subprocess.CompletedProcess:
        return subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, env=environment)

    raw = shell(f"{sys.executable} {ROOT}/demo/raw.py digits raw/digits")
    assert raw.returncode == 0, raw.stderr
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    rest = [
        name for name in commands.list_commands(None) if name not in ("build", "sweep", "view")
    ]  # the last ends with Ctrl-C
    for command in ("build", *rest):
        for example in examples(command):
            if command == "repair":
                whole = (tmp_path / "data/digits/train-00000-of-00002.tfrecord").read_bytes()
                (tmp_path / "broken.tfrecord").write_bytes(whole[:-7])
            # measuring for five seconds a stage is not what is tested
            done = shell(f"{example} --seconds 0.1" if command == "bench" else example)
            expected = (0, 1) if command in ENDS_WITH_1 else (0,)
            assert done.returncode in expected, f"{example}\n{done.stderr}"
            assert "Traceback" not in done.stderr
            if command == "build" and not (tmp_path / "old").exists():
                shutil.copytree(tmp_path / "data/digits", tmp_path / "old")
        if command == "build":
            # the shards of the dataset that `--force` has replaced have the names of the examples
            shutil.rmtree(tmp_path / "data/digits")
            shutil.copytree(tmp_path / "old", tmp_path / "data/digits")
            # a file without a manifest, as another writer leaves it
            (tmp_path / "exported").mkdir()
            shutil.copy(
                tmp_path / "data/digits/train-00000-of-00002.tfrecord", tmp_path / "exported/train.tfrecord"
            )


def test_make_targets_are_there(root):
    makefile = (root / "Makefile").read_text()
    for target in ("demo", "test"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
