"""`recordspec.write`: all the rows of a source, given to a writer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recordspec.errors import Problem, RecordspecError, WriteError
from recordspec.spec.schema import Schema
from recordspec.store.manifest import Manifest
from recordspec.writing.progress import Progress
from recordspec.writing.sources import Rows, Source, source_of
from recordspec.writing.writer import ShardedWriter


def write(
    schema: Schema,
    rows: Any,
    directory: str | os.PathLike[str],
    *,
    split: str | Mapping[str, float] = "train",
    force: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Manifest:
    """Writes rows as a sharded dataset, which appears at `directory` whole or not at all.

    Args:
        schema: what a row is.
        rows: an iterable of dicts, a dict of arrays, or a pandas frame; a `Source`.
        directory: a folder that does not exist yet.
        split: the name of the one split, or the weights of several, by name; a row's split is a
            function of its key.
        force: whether a dataset at `directory` is replaced.
        progress: whether to show it on stderr; by default on a terminal.
        options: the fields of `Write`: key, shards (`"auto"`, a number, `{"size": "128MiB"}`),
            compression, shuffle (a seed), and invalid (`"error"`, `"quarantine"`).

    Returns:
        The manifest of what was written.

    Raises:
        SpecError: an option is wrong.
        RecordError: a row does not fit; it names the first such row. With `invalid="quarantine"`:
            more rows than are allowed, or all of them.
        WriteError: the source of the rows failed.
        StoreError: `directory` exists, or cannot be written.
        Interrupted: Ctrl-C. In all of these cases nothing is published.
    """
    source = source_of(rows)
    with ShardedWriter(schema, directory, split=split, force=force, **options) as writer:
        writer.place = source.place
        with Progress("writing", source.rows, show=progress) as bar:
            if isinstance(source, Rows):
                _feed_rows(writer, source, bar)
            else:
                _feed_batches(writer, source, bar)
    return writer.manifest


def _feed_rows(writer: ShardedWriter, source: Rows, bar: Progress) -> None:
    for row in _guarded(source, writer):
        writer.write(row)
        bar.advance(1)


def _feed_batches(writer: ShardedWriter, source: Source, bar: Progress) -> None:
    for batch in _guarded(source.batches(writer.schema, writer.options.keys), writer):
        writer.write_batch(batch, bar.advance)


def _guarded(items: Iterable[Any], writer: ShardedWriter) -> Iterator[Any]:
    """The items; a failure of their source says how far it came."""
    # Around the whole loop, not each row; what the consumer of a generator raises does not come by here.
    try:
        yield from items
    except RecordspecError:
        raise
    except Exception as error:
        got = f"{type(error).__name__}: {error}, after {writer.taken:,} rows"
        hint = "nothing was published"
        raise WriteError(
            Problem(where=str(writer.directory), expected="all the rows", got=got, hint=hint)
        ) from error
