"""Files of others beside a dataset's shards: the manifest names them, as parts of the dataset."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recordspec.errors import Problem, StoreError
from recordspec.locations import read_bytes
from recordspec.store.durable import sync, sync_folder
from recordspec.store.manifest import FILE, Manifest

_MOST_BYTES = 1 << 30  # a larger file was not put there by this module


def put(folder: Path, files: Mapping[str, str]) -> None:
    """Writes texts beside the manifest of a dataset, each at once, and names them in it.

    One that was put there before is replaced. Raises StoreError, before anything is written, where a file
    stands in the way that was not, or was changed since; and where the folder cannot be written.
    """
    manifest = Manifest.load(folder)
    problems = [
        _in_the_way(folder / name) for name in files if not _is_ours(folder / name, files[name], manifest)
    ]
    if problems:
        raise StoreError(problems)
    named = {name: _hash(text.encode()) for name, text in files.items()}
    known = replace(manifest, beside={**manifest.beside, **named})
    try:
        for name, text in (*files.items(), (FILE, known.dump())):
            _write(folder / name, text)
        sync_folder(folder)
    except OSError as error:
        got = error.strerror or str(error)
        raise StoreError(Problem(where=str(folder), expected="a folder to write in", got=got)) from None


def _is_ours(path: Path, text: str, manifest: Manifest) -> bool:
    """Whether a file may be replaced; the text itself may stand there after a crash."""
    if not path.exists():
        return True
    try:
        found = _hash(read_bytes(path, _MOST_BYTES))
    except StoreError:
        return False
    return found in (manifest.beside.get(path.name), _hash(text.encode()))


def _in_the_way(path: Path) -> Problem:
    hint = "move it elsewhere first"
    return Problem(where=str(path), expected="no file, or one that was put here", got="another", hint=hint)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, text: str) -> None:
    """A file that is there as it was, or as it shall be."""
    fresh = path.with_name(f".{path.name}.partial")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            sync(file)
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
