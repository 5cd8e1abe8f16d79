"""Sidecars: files for other readers beside a dataset's shards. The manifest names them, since they belong to
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recordspec.errors import Problem, StoreError, system_errors
from recordspec.locations import atomic_write
from recordspec.store.manifest import FILE, Manifest
from recordspec.store.transaction import changing
from recordspec.wire.hashes import sha256_of


def add_sidecars(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes files, by name, beside the manifest of a dataset, each atomically, and adds them to the
    manifest.

    Replaces files that this function wrote before. Raises StoreError before anything is written if another
    file has the name, or if a sidecar was changed since; also if the folder cannot be written.
    """
    manifest = Manifest.load(folder)
    files = {name: text.encode() for name, text in texts.items()}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    problems = []
    for name, sha256 in hashes.items():
        # after a crash the new text may be there already
        if not _is_one_of(folder / name, {manifest.beside.get(name), sha256}):
            expected, hint = "no file, or a sidecar of this dataset", "move it elsewhere first"
            problems.append(
                Problem(where=str(folder / name), expected=expected, got="another file", hint=hint)
            )
    if problems:
        raise StoreError(problems)
    files[FILE] = replace(manifest, beside={**manifest.beside, **hashes}).dump().encode()
    with system_errors("write", folder), changing(folder, manifest):
        for name, data in files.items():
            atomic_write(folder / name, data)


def _is_one_of(path: Path, hashes: set[str | None]) -> bool:
    if not path.exists():
        return True
    try:
        return sha256_of(path) in hashes
    except StoreError:  # a folder, for example
        return False
