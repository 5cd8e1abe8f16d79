"""Measures the memory that code uses in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Not getrusage: its peak starts at the peak of the parent process.
_PEAK = "__import__('re').search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]"


def peak_of(code: str, setup: str, cwd: Path) -> tuple[str, int]:
    """The output of `code`, and the number of bytes by which it raises the peak after `setup`."""
    whole = f"{setup}\nbefore = {_PEAK}\n{code}\nprint(int({_PEAK}) - int(before))"
    done = subprocess.run([sys.executable, "-c", whole], cwd=cwd, capture_output=True, text=True, check=True)
    printed, _, kib = done.stdout.rstrip("\n").rpartition("\n")
    return printed, int(kib) << 10
