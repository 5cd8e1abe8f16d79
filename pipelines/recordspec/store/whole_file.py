"""A single file that appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recordspec.errors import Problem, StoreError
from recordspec.locations import local
from recordspec.store.durable import sync_file, sync_folder

_MOST_KEPT = 60  # characters, of 4 bytes at most


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """Gives a path to write to; what is there at the end becomes the file.

    Raises StoreError where it exists, unless `force` replaces it, and where it cannot be written; SpecError
    for a URL.
    """
    local(path)
    if not force and os.path.lexists(path):
        hint = "force=True, or --force, replaces it"
        raise StoreError(Problem(where=str(path), expected="a new file", got="one that exists", hint=hint))
    # hidden, so that no pattern of a reader finds it; and with a name that is short enough for any disk
    begun = path.with_name(f".{path.name[-_MOST_KEPT:]}.{os.getpid()}")
    try:
        begun.touch()
        yield begun
        sync_file(begun)
        os.replace(begun, path)
        sync_folder(path.parent)
    except OSError as error:
        got = os.strerror(error.errno) if error.errno else str(error)  # pyarrow's text is a long one
        raise StoreError(Problem(where=str(path), expected="a file to write", got=got)) from None
    finally:
        with suppress(OSError):  # what is wrong there was said
            begun.unlink()
