"""What lies in a dataset's folder, and what its manifest says of it; the shards themselves are not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recordspec.errors import Problem, RecordspecError, StoreError
from recordspec.store.manifest import FILE, KEYS_FILE, REJECTS_FILE, SCHEMA_FILE, Manifest, shard_differences
from recordspec.store.shards import parse_name
from recordspec.wire.hashes import sha256_of

Found = tuple[Path, Problem]


def manifest_in(folder: Path) -> tuple[Manifest | None, list[Found]]:
    """The manifest of a folder, if it has one; and what is wrong where that cannot be read."""
    path = folder / FILE
    if not path.exists():
        return None, []
    try:
        return Manifest.load(folder), []
    except StoreError as error:
        return None, [(path, problem) for problem in error.problems]


def differences(folder: Path, manifest: Manifest) -> Iterator[Found]:
    """What is missing in the folder, foreign there, or not what was written: all but the shards' bytes."""
    missing = {name for name in manifest.files if not (folder / name).exists()}
    found = {path.name for path in folder.iterdir() if parse_name(path.name)}
    for problem in shard_differences(folder, missing, found - manifest.files):
        yield Path(problem.where), problem
    yield from _schema(folder / SCHEMA_FILE, manifest)
    yield from ((folder / KEYS_FILE, problem) for problem in other_keys(folder, manifest))
    if manifest.rejected and not (folder / REJECTS_FILE).is_file():
        expected = f"{manifest.rejected:,} rejected rows, as the manifest says"
        yield _problem(folder / REJECTS_FILE, expected, "no file")
    for name, sha256 in manifest.beside.items():
        yield from ((folder / name, problem) for problem in _other(folder / name, sha256))


def _schema(path: Path, manifest: Manifest) -> Iterator[Found]:
    if manifest.fingerprint is None:
        return
    expected = f"the schema of fingerprint {manifest.fingerprint}, as the manifest says"
    if not path.is_file():
        yield _problem(path, expected, "no file")
        return
    from recordspec.spec.schema import Schema  # most files have none beside them

    try:
        got = Schema.load(path).fingerprint
    except RecordspecError as error:
        yield from ((path, problem) for problem in error.problems)
        return
    if got != manifest.fingerprint:
        yield _problem(path, expected, f"one of {got}")


def other_keys(folder: Path, manifest: Manifest) -> Iterator[Problem]:
    """What is wrong where the keys of a dataset's rows are not those that were written."""
    if manifest.keys_sha256 is not None:
        yield from _other(folder / KEYS_FILE, manifest.keys_sha256)


def _other(path: Path, sha256: str) -> Iterator[Problem]:
    got = "no file"
    if path.is_file():  # a pipe or a device would be read without an end
        got = sha256_of(path)
    if got != sha256:
        yield Problem(where=str(path), expected=f"sha256 {sha256}, as the manifest says", got=got)


def _problem(path: Path, expected: str, got: str) -> Found:
    return path, Problem(where=str(path), expected=expected, got=got)
