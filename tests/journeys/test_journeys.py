"""Each script beside this file goes from raw data, in an empty folder, to a model that is better than chance.

Its last line of output is JSON with `accuracy` or `loss`, and `chance`, the same of a constant answer, which the script
computes of its data. What a user
writes is in here-documents (YAML, PYTHON); all other lines behind `# --` are commands. The documentation shows the
scripts, and in `plain` the same without recordspec.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from learning import check_accuracy

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / "remote"), str(HERE.parents[1] / "docs/extensions")]
from servers import NoServerError, start  # noqa: E402

pages = importlib.import_module("journeys")

SCRIPTS = sorted(HERE.glob("*.sh"))

# With the oldest TensorFlow: those whose steps it does.
OLDEST = ("csv", "images", "served", "sequences", "sounds")

# Those of JAX, PyTorch and Ray, where these are installed.
FRAMEWORKS = ("jax", "keras_jax", "on_ray", "torch")

pytestmark = pytest.mark.docs


def check_installed(name: str) -> None:
    if name in FRAMEWORKS and not all(map(find_spec, ("jax", "torch", "ray"))):
        pytest.skip("JAX, PyTorch or Ray is not installed")
    if name == "on_spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java: there is no `java`")


@pytest.fixture
def bucket(tmp_path, request):
    """The URL of a bucket, and the variables that lead to it."""
    try:
        server = start("s3", tmp_path)
    except NoServerError as error:
        pytest.skip(str(error))
    yield {"BUCKET": server.root, **server.environment}
    server.proxy.close()
    server.close()


def run(script: str, folder: Path, **more: str) -> dict[str, float]:
    """What a script prints at its end."""
    folder.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "RAW": str(HERE / "journey_data.py"), **more}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if "accuracy" in found:
        check_accuracy(found["accuracy"], found["chance"])
    else:
        assert found["loss"] < found["chance"] * 0.8, found
    return found


@pytest.mark.parametrize("path", [*SCRIPTS, *sorted(HERE.glob("plain/*.py"))], ids=lambda path: path.name)
def test_no_script_assumes_its_chance(path):
    assert not re.search(r'"chance": *[0-9]', path.read_text())


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [pytest.param(path.stem, marks=[] if path.stem in OLDEST else [pytest.mark.newest]) for path in SCRIPTS],
)
def test_journey(name, tmp_path, request, record_property):
    check_installed(name)
    script = (HERE / f"{name}.sh").read_text()
    more = request.getfixturevalue("bucket") if "$BUCKET" in script else {}
    found = run(script, tmp_path / "empty", **more)
    written = ", ".join(f"{count} of {language}" for language, count in pages.lines_of(name).items())
    result = ", ".join(f"{key} {value:.3f}" for key, value in found.items())
    record_property("journey", f"journey {name}: lines: {written}; {result}")


@pytest.mark.newest
@pytest.mark.long(commits=6)
@pytest.mark.parametrize("name", [path.stem for path in SCRIPTS])
def test_the_same_without_recordspec(name, tmp_path, request):
    check_installed(name)
    raw = (HERE / f"{name}.sh").read_text().partition(pages.BEGIN)[0]
    code = HERE / f"plain/{name}.py"
    assert "recordspec" not in code.read_text()
    more = request.getfixturevalue("bucket") if "BUCKET" in code.read_text() else {}
    # In the empty folder: beside the others, csv.py would hide Python's own.
    more["FRACTION"] = "3"  # of the gigabytes, which take a minute to write
    run(f'{raw}\ncp "{code}" train.py\npython train.py', tmp_path / "empty", **more)
