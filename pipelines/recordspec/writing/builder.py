"""`recordspec.write`: a source of rows becomes a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.progress import Progress
from recordspec.spec.schema import Schema
from recordspec.store.manifest import Manifest
from recordspec.writing.build import Build, Input, Work
from recordspec.writing.ending import guarded
from recordspec.writing.sources import Rows, Source, source_of
from recordspec.writing.sources.base import Batch, name_of
from recordspec.writing.writer import ShardedWriter, options_of


def write(
    schema: Schema,
    rows: Any,
    directory: str | os.PathLike[str],
    *,
    split: Any = "train",
    jobs: int = 1,
    memory: str | None = None,
    limit: int | None = None,
    allow_empty: bool = False,
    force: bool = False,
    append: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Manifest:
    """Writes rows as a sharded dataset, which appears at `directory` whole or not at all.

    The same rows and options give the same bytes, however many jobs and however much memory.

    Args:
        schema: what a row is.
        rows: an iterable of dicts, a dict of arrays, a pandas or Polars frame, an Arrow table or
            record-batch reader; a `Source`.
        directory: a folder that does not exist yet.
        split: the name of the one split; or the weights of several, by name, a row's split being a
            function of its key; or `{"folds": k}`; or `{"column": name}`, which names each row's.
        jobs: processes that encode and write. A script that asks for several must be importable: it
            begins them under `if __name__ == "__main__":`.
        memory: what all of them may use together, such as `"2GiB"`, by default 512 MiB each: about 200 MiB
            of it is Python, NumPy and Arrow. More rows are sorted on the disk.
        limit: so many rows, the first ones, and no more.
        allow_empty: whether rows that are none make a dataset without rows; by default they are an error.
        force: whether a dataset at `directory` is replaced.
        append: whether the rows are added to the dataset at `directory`, in shards of their own; its
            options must be the same. A key that it has already is an error.
        resume: whether to go on with a build of the same rows that was broken off; they must come from
            files.
        progress: whether to show it on stderr; by default on a terminal.
        options: the fields of `Write`: key, group_by, shards (`"auto"`, a number, `{"size": "128MiB"}`),
            compression, layout (`{"blocks": 256}`), shuffle (a seed), and invalid (`"error"`,
            `"quarantine"`).

    Returns:
        The manifest of what was written.

    Raises:
        SpecError: an option is wrong.
        RecordError: a row does not fit; it names the first such row. With `invalid="quarantine"`:
            more rows than are allowed, or all of them. There is no row at all, and no `allow_empty`.
        WriteError: the source of the rows failed.
        StoreError: `directory` exists, or cannot be written, or a process was killed.
        Interrupted: Ctrl-C. In all of these cases nothing is published.
    """
    work = Work(
        jobs=jobs,
        memory=memory,
        limit=limit,
        allow_empty=allow_empty,
        force=force,
        append=append,
        resume=resume,
        progress=progress,
    )
    source = source_of(rows)
    again = not isinstance(source, Rows) and source.identity() is not None
    if resume and not again:
        expected = "rows of files, which can be read again"
        raise SpecError(Problem(path=("resume",), expected=expected, got=type(rows).__name__))
    if limit is None and (jobs > 1 or again):
        how = options_of(schema, split, options)
        return Build(schema, Input.of(source, schema, how), directory, how, work).run()
    return _write_here(schema, source, directory, split, work, options)


def _write_here(
    schema: Schema,
    source: Source | Rows,
    directory: str | os.PathLike[str],
    split: Any,
    work: Work,
    options: Mapping[str, Any],
) -> Manifest:
    """Rows that are at hand need no journal: what was done is as quickly done again."""
    known = source.rows if isinstance(source, Source) else None
    expected = known if known is None or work.limit is None else min(known, work.limit)
    with (
        Progress(show=work.progress) as bar,
        ShardedWriter(
            schema,
            directory,
            split=split,
            force=work.force,
            append=work.append,
            memory=work.memory,
            expected=expected,
            allow_empty=work.allow_empty,
            **options,
        ) as writer,
    ):
        writer.source = name_of(source)
        bar.begin("encoding", source.rows if work.limit is None else work.limit)
        if isinstance(source, Rows):
            _feed_rows(writer, source, work.limit, bar)
        else:
            _feed_parts(writer, source, work.limit, bar)
    return writer.manifest


def _feed_rows(writer: ShardedWriter, source: Rows, limit: int | None, bar: Progress) -> None:
    writer.begin(source.place)
    for row in guarded(islice(source, limit), str(writer.directory)):
        writer.write(row)
        bar.advance(1)


def _feed_parts(writer: ShardedWriter, source: Source, limit: int | None, bar: Progress) -> None:
    columns = writer.options.columns
    for part in guarded(source.parts(writer.schema, columns), str(writer.directory)):
        writer.begin(part.place)
        for batch in guarded(part.batches(writer.schema, columns), str(writer.directory)):
            left = batch.rows if limit is None else min(batch.rows, limit - writer.taken)
            writer.write_batch(Batch(left, batch.columns), bar.advance)
            if limit == writer.taken:
                return
