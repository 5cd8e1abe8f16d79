"""Selects tests for each environment: every test runs once, and on the oldest versions once in three commits.

Without TensorFlow, importing it skips a test (`tests/without_tensorflow`), and `--passed=FILE` writes the
tests that passed. With the newest TensorFlow, `--except=FILE` leaves out these tests, so that only the rest
runs there. With TensorFlow 2.16 and the lower bounds of setup.cfg, `--third=N` selects three groups: the
files of `OLDEST`, the files that the last small commits changed, and every third of the remaining files, from the
N-th on, so that three commits run all of them. Whole files are selected, since the tests of a file share
fixtures and traced graphs. Tests with the mark `together` count as a file for each of its names.
`--third-of=MARK` selects a third of the tests with this mark, test by test, and all tests without it; of tests
whose mark has `commits=6`, a sixth.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
# Golden files, facts about TensorFlow, parsing, decoding.
OLDEST = [
    TESTS / name
    for name in (
        "schema/test_golden.py",
        "schema/test_numpy_decoder.py",
        "test_facts.py",
        "wire/test_fast_parser.py",
    )
]
# A commit that changes more test files than this changes words or names in
# them: its files run in their third.
LAST_COMMITS, MOST_FILES = 4, 10


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("which tests run")
    group.addoption("--passed", type=Path, metavar="FILE", help="write the names of the tests that passed")
    group.addoption("--except", type=Path, metavar="FILE", help="leave out the tests that FILE names")
    group.addoption(
        "--third",
        type=int,
        metavar="N",
        help="run `OLDEST`, changed files, and the N-th third of all other tests",
    )
    group.addoption("--third-of", metavar="MARK", help="make thirds of the tests with this mark alone")


def pytest_configure(config: pytest.Config) -> None:
    if gone := [str(path) for path in OLDEST if not path.exists()]:
        raise pytest.UsageError(f"selection.OLDEST names what is not there: {', '.join(gone)}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out: set[str] = set()
    if names := config.getoption("--except"):
        left_out |= set(names.read_text().split("\n"))
    if (third := config.getoption("--third")) is not None:
        if mark := config.getoption("--third-of"):
            marked = {item.nodeid: found for item in items if (found := item.get_closest_marker(mark))}
            groups = {name: (name, found.kwargs.get("commits", 3)) for name, found in marked.items()}
        else:
            always = {str(path) for path in (*OLDEST, *_changed_files())}
            groups = {item.nodeid: (group, 3) for item in items if (group := _group(item)) not in always}
        chosen = set[tuple[str, int]]()
        for commits in {commits for _, commits in groups.values()}:
            several = [group for group in dict.fromkeys(groups.values()) if group[1] == commits]
            chosen |= {*several[third % commits :: commits]}
        left_out |= {name for name, group in groups.items() if group not in chosen}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if path := terminalreporter.config.getoption("--passed"):
        passed = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{name}\n" for name in passed))


def scaled(examples: int) -> int:
    """The number of examples that Hypothesis tries: all with the profile `all`, a third with the default one."""
    return -(-examples * settings.default.max_examples // 100)


def _group(item: pytest.Item) -> str:
    """The name of the tests that run in the same commits."""
    mark = item.get_closest_marker("together")
    return str(item.path) if mark is None else f"{item.path} {mark.args[0]}"


def _changed_files() -> set[Path]:
    """The test files that each of the last commits added or modified; none if there is no repository."""
    options = ("--format=%x00", "--name-only", "--diff-filter=AM", "-M")
    command = ["git", "log", f"-{LAST_COMMITS}", *options, "--relative", "--", "."]
    try:
        done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    except FileNotFoundError:
        return set()
    commits = [
        {TESTS / name for name in commit.splitlines() if "/test_" in f"/{name}"}
        for commit in done.stdout.split("\0")
    ]
    return set().union(*(files for files in commits if len(files) <= MOST_FILES))
