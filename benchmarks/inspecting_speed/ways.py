"""The variants, by name.

A variant is `prepare(file) -> run`, where `run()` makes one pass over all records, and returns their number.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ways import Way

Run = Callable[[], int]
Prepare = Callable[[Path], Run]

_HERE = "inspecting_speed"


def _ours(title: str, function: str) -> Way:
    packages = ("recordspec", "numpy", "crc32c")
    return Way(title=title, module=f"{_HERE}.ours", function=function, packages=packages, side="ours")


def _peer(title: str, function: str) -> Way:
    return Way(title=title, module=f"{_HERE}.peers", function=function, packages=("tensorflow", "numpy"))


WAYS = {
    "count": _ours("recordspec count", "count"),
    "verify": _ours("recordspec verify", "verify"),
    "check": _ours("recordspec check", "check"),
    "stats": _ours("recordspec stats", "stats"),
    "iterated": _peer("TFRecordDataset, iterated in Python", "iterated"),
    "reduced": _peer("TFRecordDataset, reduced", "reduced"),
    "batched": _peer("TFRecordDataset, batch(1024), reduced", "batched"),
}
