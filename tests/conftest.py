"""Fixtures for all tests: folders, the codecs, a browser, and commands. Silences TensorFlow."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from recordspec import cli, executors
from recordspec.wire import native

pytest_plugins = ["selection"]

# No deadline: no test depends on the speed or the load of the machine. `make test-all` tries all examples.
for profile, examples in (("all", 100), ("third", 33)):
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("third")

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# TensorFlow logs a TensorArray of a failed map_fn when it is collected, into the output of an unrelated test.
logging.getLogger("tensorflow").addFilter(lambda record: "Object was never used" not in record.getMessage())

# Most tests have too little work for several processes to start.
executors._ALONE = 0.0

_NOBODY = 65534
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="class", params=["native", "reference"])
def codec(request) -> Iterator[None]:
    """One of the two codecs, in this process, for one test. Outside of a class, the scope `class` means one
    test; Hypothesis rejects fixtures with the scope `function`."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "reference":
            patch.setattr(native, "library", lambda: None)
        elif native.library() is None:
            pytest.skip(native.missing())
        yield


@pytest.fixture(scope="module")
def browser():
    """Chromium, driven by Playwright. If it is missing, tests are skipped with the reason."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("there is no Chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def root() -> Path:
    """The folder of the project."""
    return ROOT


@pytest.fixture
def home(tmp_path) -> Path:
    """A folder with the schemas and configs, and a place for raw data."""
    for folder in ("schemas", "configs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "raw").mkdir()
    return tmp_path


@pytest.fixture
def unprivileged():
    """A folder that any user may read, and a context manager in which permissions apply. They do not apply to
    root.

    Import modules before entering the context: it may lack the permission to read them.
    """

    @contextmanager
    def as_nobody() -> Iterator[None]:
        user = os.geteuid()
        if not user:
            os.seteuid(_NOBODY)
        try:
            yield
        finally:
            os.seteuid(user)

    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name), as_nobody


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs a command in this process. Returns its exit code, and its output on stdout and stderr."""

    def run(*arguments: object, terminal: bool = False) -> tuple[object, str, str]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["recordspec", *map(str, arguments)])
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        with pytest.raises(SystemExit) as done:
            cli.main()
        return done.value.code, *capsys.readouterr()

    return run


def pytest_terminal_summary(terminalreporter) -> None:
    """Prints for each journey what the user wrote, and the quality of the model."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "journey" and report.when == "call":
                terminalreporter.write_line(value)
