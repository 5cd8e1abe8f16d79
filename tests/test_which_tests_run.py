"""Which tests run where: no test is lost between two runs, or among three commits."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import selection

ALWAYS = selection.OLDEST[0]
CHANGED = selection.TESTS / "test_changed.py"
PATHS = [ALWAYS, *[selection.TESTS / "test_rest.py"] * 7, CHANGED]
ITEMS = [
    SimpleNamespace(
        nodeid=f"{path.name}::test_{n}",
        path=path,
        get_closest_marker=lambda mark, n=n: n if (mark, n % 2) == ("odd", 1) else None,
    )
    for n, path in enumerate(PATHS)
]


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
    assert sorted(map(len, thirds)) == [4, 4, 5]


def test_thirds_are_made_of_the_tests_with_a_mark():
    marked = {item.nodeid for item in ITEMS[1::2]}
    thirds = [set(selected(third=commits, **{"third-of": "odd"})) for commits in (7, 8, 9)]
    assert set.intersection(*thirds) == {item.nodeid for item in ITEMS} - marked
    assert set.union(*thirds) == {item.nodeid for item in ITEMS}
    assert sorted(len(third & marked) for third in thirds) == [1, 1, 2]


def test_a_path_that_is_gone_is_an_error(monkeypatch):
    monkeypatch.setattr(selection, "OLDEST", [Path("tests/gone.py")])
    with pytest.raises(pytest.UsageError, match=r"OLDEST names what is not there: tests/gone\.py"):
        selection.pytest_configure(SimpleNamespace())
