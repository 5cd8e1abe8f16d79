"""The package tfrecord: its loaders, record by record."""

from __future__ import annotations

from pathlib import Path

from tfrecord.reader import sequence_loader, tfrecord_loader

from scanning_speed.ways import Run


def read(folder: Path) -> Run:
    (file,) = map(str, (folder / "rows").glob("*.tfrecord"))
    if folder.name == "sequences":
        context, steps = {"user": "int"}, {"items": "int", "prices": "float"}
        return lambda: sum(1 for _ in sequence_loader(file, None, context, steps))
    return lambda: sum(1 for _ in tfrecord_loader(file, None))
