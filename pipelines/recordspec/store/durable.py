"""What lasts through a power cut: files and names that are on the disk, not only on their way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any


def sync(file: IO[Any]) -> None:
    """What was written to an open file."""
    file.flush()
    os.fsync(file.fileno())


def sync_file(path: Path) -> None:
    """A file that was written before; there need not be one."""
    if path.exists():
        with path.open("ab") as file:
            sync(file)


def sync_folder(folder: Path) -> None:
    """The names in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
