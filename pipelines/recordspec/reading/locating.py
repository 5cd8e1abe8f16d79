"""Errors of a running pipeline, traced back to the record that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from recordspec.errors import RecordError
from recordspec.reading.faults import check
from recordspec.reading.mending import is_mended
from recordspec.spec.decoder import decode_errors
from recordspec.spec.schema import Schema
from recordspec.store.shards import File, Files, expand, path_list, shard_files


@contextmanager
def locating(schema: Schema, files: Files) -> Iterator[None]:
    """A context in which TensorFlow's errors of reading name the record that they come from.

        with recordspec.locating(schema, "data/digits"):
            for batch in recordspec.read(schema, "data/digits", batch=32):
                ...

    When such an error leaves it, the files are checked up to the first one that has a fault. Without an
    error it costs nothing.

    Raises:
        RecordError: names the shard, the record, the byte, the feature, what was expected and what found.
            It comes from the original error; where the files have no fault, that goes on as it is.
        StoreError: files are missing, or of another spec.
        SpecError: a path is a URL.
    """
    given = path_list(files)
    try:
        yield
    except Exception as error:
        if not isinstance(error, decode_errors()):
            raise
        found = _first(shard_files(expand(given), schema), schema)
        if found is None:
            raise
        raise found from error


def _first(files: Iterable[File], schema: Schema) -> RecordError | None:
    """The first fault of the files, and how many more there are in its file."""
    for file in files:
        if not is_mended(file.path) and (faults := check(file, schema).faults):
            *problems, last = faults[0].problems
            hints = [last.hint, f"{len(faults):,} records of this file have faults" if faults[1:] else ""]
            last = replace(last, hint="; ".join(filter(None, hints)))
            return RecordError([*problems, last], faults[0].record)
    return None
