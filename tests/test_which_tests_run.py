"""Which tests run where: no test is lost between two runs, or among three commits."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import selection

pytestmark = pytest.mark.newest
USER = ("-c", "user.name=t", "-c", "user.email=t@example.com")
ALWAYS = selection.OLDEST[0]
A, B, LAWS, CHANGED = (selection.TESTS / f"test_{name}.py" for name in ("a", "b", "laws", "changed"))
# the file of each test, and the name of its mark `together`
FILES = [
    (ALWAYS, None),
    *[(A, None), (B, None)] * 2,
    *[(LAWS, 0), (LAWS, 1), (LAWS, None)] * 2,
    (CHANGED, None),
]


def item(number: int, path: Path, name: int | None) -> SimpleNamespace:
    """A test. Those of odd numbers have the mark `odd`; of these, the last two with `commits=6`."""
    odd = SimpleNamespace(kwargs={"commits": 6} if number > 8 else {})
    marks = {
        "odd": odd if number % 2 else None,
        "together": None if name is None else SimpleNamespace(args=(name,)),
    }
    return SimpleNamespace(
        nodeid=f"{path.name}::test_{number}", path=path, name=name, get_closest_marker=marks.get
    )


ITEMS = [item(number, *file) for number, file in enumerate(FILES)]


def selected(**options: object) -> list[str]:
    """The names of the tests that run, of which the others are reported as deselected."""
    items, deselected = [*ITEMS], []
    hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items))
    config = SimpleNamespace(getoption=lambda name: options.get(name.strip("-")), hook=hook)
    selection.pytest_collection_modifyitems(config, items)
    assert sorted(item.nodeid for item in items + deselected) == sorted(item.nodeid for item in ITEMS)
    return [item.nodeid for item in items]


def test_without_options_all_tests_run():
    assert selected() == [item.nodeid for item in ITEMS]


def test_tests_that_passed_without_tensorflow_do_not_run_again(tmp_path):
    passed = tmp_path / "passed.txt"
    report = SimpleNamespace(stats={"passed": ITEMS[:4], "skipped": ITEMS[4:]})
    report.config = SimpleNamespace(getoption=lambda name: {"--passed": passed}[name])
    selection.pytest_terminal_summary(report)
    assert selected(**{"except": passed}) == [item.nodeid for item in ITEMS[4:]]


def test_three_commits_run_all_tests(monkeypatch):
    monkeypatch.setattr(selection, "_changed_files", lambda: {CHANGED})
    thirds = [selected(third=commits) for commits in (1000, 1001, 1002)]
    always = {item.nodeid for item in ITEMS if item.path in (ALWAYS, CHANGED)}
    assert set.intersection(*map(set, thirds)) == always
    assert set.union(*map(set, thirds)) == {item.nodeid for item in ITEMS}
    # two files, two graphs, and the rest of their file
    groups = [
        {(item.path, item.name) for item in ITEMS if item.nodeid in {*third} - always} for third in thirds
    ]
    assert sorted(map(len, groups)) == [1, 2, 2]
    assert len(set.union(*groups)) == 5  # none is divided


def test_changed_files_are_those_of_commits_that_change_few(tmp_path, monkeypatch):
    def commit(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text(f"{name} of {names}")
        subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
        subprocess.run(["git", *USER, "commit", "-qm", "some"], cwd=tmp_path, check=True)

    monkeypatch.setattr(selection, "TESTS", tmp_path)
    assert selection._changed_files() == set()  # no repository
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit("test_a.py", "media.py")
    commit(*(f"test_{number}.py" for number in range(selection.MOST_FILES + 1)))
    commit("test_0.py")
    assert selection._changed_files() == {tmp_path / "test_a.py", tmp_path / "test_0.py"}


def test_thirds_are_made_of_the_tests_with_a_mark():
    marked = {item.nodeid for item in ITEMS[1::2]}
    sixth = {item.nodeid for item in ITEMS[9::2]}
    runs = [set(selected(third=commits, **{"third-of": "odd"})) for commits in range(7, 13)]
    assert set.intersection(*runs) == {item.nodeid for item in ITEMS} - marked
    assert set.union(*runs[:3]) >= {item.nodeid for item in ITEMS} - sixth
    assert sorted(len(run & marked - sixth) for run in runs[:3]) == [1, 1, 2]
    assert sorted(len(run & sixth) for run in runs) == [0, 0, 0, 0, 1, 1]


def test_a_path_that_is_gone_is_an_error(monkeypatch):
    monkeypatch.setattr(selection, "OLDEST", [Path("tests/gone.py")])
    with pytest.raises(pytest.UsageError, match=r"OLDEST names what is not there: tests/gone\.py"):
        selection.pytest_configure(SimpleNamespace())
