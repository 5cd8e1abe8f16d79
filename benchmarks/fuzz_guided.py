"""Coverage-guided fuzzing of the targets of `fuzz.py` with atheris.

    pip install atheris
    python benchmarks/fuzz_guided.py framing [CORPUS] [-runs=100000] [-rss_limit_mb=2048]

The first argument is the target; the others are libFuzzer's. An input that crashes, or hangs for 10
seconds, is written to a file, and ends the run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["recordspec"], enable_loader_override=False):
    import fuzz

FILE = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)) / "input"


def framing(data: bytes) -> None:
    """The first byte selects the chunk size; the others are the file."""
    if data:
        fuzz.judged_file(data[1:], FILE, (1, 30, 200, 1000)[data[0] % 4])


def records(data: bytes) -> None:
    """The first byte selects the message; the others are records, each after a byte with its length."""
    made, place = [], 1
    while place < len(data):
        made.append(data[place + 1 : place + 1 + data[place]])
        place += 1 + data[place]
    if made:
        fuzz.judged_records(made, sequence=bool(data[0] & 1))


def yaml(data: bytes) -> None:
    fuzz.judged_spec(data.decode("utf-8", "replace"))


if __name__ == "__main__":
    target = {"framing": framing, "records": records, "yaml": yaml}[sys.argv.pop(1)]
    atheris.Setup([*sys.argv, "-timeout=10"], target)
    atheris.Fuzz()
