"""Selects tests for each environment: every test runs once, and on the oldest versions too if they can change
its result.

Without TensorFlow, importing it skips a test (`tests/without_tensorflow`), and `--passed=FILE` writes the
tests that passed. With the newest TensorFlow, `--except=FILE` leaves out these tests, so that only the rest
runs there. With TensorFlow 2.16 and the lower bounds of setup.cfg, `--third=N` selects three groups: the
tests of `OLDEST`, the files that the last commits changed, and every third of the remaining tests, from the
N-th on, so that three commits run all of them. `--third-of=MARK` selects a third of the tests with this mark,
and all tests without it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
# Laws, golden files, parsing, decoding, serving: the version of TensorFlow can change their results.
OF_TENSORFLOW = (
    "cli/test_doctor.py",
    "training/test_serving.py",
    "schema/features",
    "schema/media",
    "schema/test_golden.py",
    "schema/test_laws.py",
    "schema/test_numpy_decoder.py",
    "schema/test_ragged_array.py",
    "schema/test_schema_blocks.py",
    "schema/test_validate.py",
    "test_facts.py",
    "wire/test_fast_parser.py",
)
# Sources and tables: the versions of pyarrow, pandas, Polars and DuckDB can change their results.
OF_ARROW = (
    "inferring/test_tables.py",
    "tables/test_export.py",
    "statistics/test_leaks.py",
    "store/test_scan.py",
    "tables/test_sql.py",
    "tables/test_table.py",
    "tables/test_table_writers.py",
    "schema/test_arrow_values.py",
    "writing/sources",
)
OLDEST = [TESTS / name for name in (*OF_TENSORFLOW, *OF_ARROW)]
# The commits of about a day of work.
LAST_COMMITS = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("which tests run")
    group.addoption("--passed", type=Path, metavar="FILE", help="write the names of the tests that passed")
    group.addoption("--except", type=Path, metavar="FILE", help="leave out the tests that FILE names")
    group.addoption(
        "--third", type=int, metavar="N", help="of the tests that versions seldom change, run the N-th third"
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
            others = [item.nodeid for item in items if item.get_closest_marker(mark) is not None]
        else:
            always = [*OLDEST, *_changed_files()]
            others = [item.nodeid for item in items if not any(map(item.path.is_relative_to, always))]
        left_out |= set(others) - set(others[third % 3 :: 3])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if path := terminalreporter.config.getoption("--passed"):
        passed = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{name}\n" for name in passed))


def scaled(examples: int) -> int:
    """The number of examples that Hypothesis tries: all with the profile `all`, a third with the default
    profile."""
    return -(-examples * settings.default.max_examples // 100)


def _changed_files() -> set[Path]:
    """The test files that the last commits added or modified; none if there is no repository."""
    options = ("--format=", "--name-only", "--diff-filter=AM", "-M")
    command = ["git", "log", f"-{LAST_COMMITS}", *options, "--relative", "--", "."]
    try:
        done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    except FileNotFoundError:
        return set()
    return {TESTS / name for name in done.stdout.splitlines() if "/test_" in f"/{name}"}
