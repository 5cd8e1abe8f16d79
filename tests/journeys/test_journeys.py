"""Each script beside this file goes from raw data, in an empty folder, to a model that is better than chance.

Its last line of output is JSON with `accuracy` or `loss`, and `chance`, the same of a constant answer. What a user
writes is in here-documents (YAML, PYTHON); all other lines behind the first comment are commands.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "remote"))
from servers import NoServerError, start  # noqa: E402

SCRIPTS = sorted(HERE.glob("*.sh"))
WRITTEN = re.compile(r"^cat > \S+ <<'?(YAML|PYTHON)'?\n(.*?)^\1$\n", re.MULTILINE | re.DOTALL)

# With the oldest TensorFlow: those whose steps it does.
OLDEST = ("csv", "images", "served", "sequences", "sounds")

pytestmark = pytest.mark.services


def lines_of(script: str) -> dict[str, int]:
    """The lines of YAML, of Python, and of commands, without empty ones and comments."""
    counts = {"YAML": 0, "PYTHON": 0}
    for language, text in WRITTEN.findall(script):
        counts[language] += counted(text)
    commands = re.sub(r"\\\n", "", WRITTEN.sub("", script))
    return {**counts, "commands": counted(commands.partition("# --\n")[2])}


def counted(text: str) -> int:
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines())


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


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.stem, marks=[] if script.stem in OLDEST else pytest.mark.newest)
        for script in SCRIPTS
    ],
)
def test_journey(script, tmp_path, request, record_property):
    text, folder = script.read_text(), tmp_path / "empty"
    folder.mkdir()
    more = request.getfixturevalue("bucket") if "$BUCKET" in text else {}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "RAW": str(HERE / "journey_data.py"), **more}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", script], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    written = ", ".join(f"{count} of {language}" for language, count in lines_of(text).items())
    result = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    record_property("journey", f"journey {script.stem}: lines: {written}; {result}")
    if "accuracy" in found:
        assert found["accuracy"] > found["chance"] + 0.1, found
    else:
        assert found["loss"] < found["chance"] * 0.8, found
