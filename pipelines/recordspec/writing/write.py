"""`recordspec.write`: writes the rows of a source as a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recordspec.errors import Problem, SpecError
from recordspec.locations import AnyPath
from recordspec.remote import RemotePath
from recordspec.schema.inferred import Inferred
from recordspec.schema.options import from_python
from recordspec.schema.schema import Schema, as_schema, check_data_first
from recordspec.store.manifest import Manifest
from recordspec.writing.local import build_locally
from recordspec.writing.sources.base import Source, leave_out
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.splits import SplitSources
from recordspec.writing.write_options import ByColumn, Execution, Write

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recordspec.writing.write_options import WriteOptions


def write(
    rows: Any,
    schema: Schema | Inferred | AnyPath,
    directory: str | os.PathLike[str] | RemotePath,
    *,
    split: str | Mapping[str, Any] = "train",
    ignore: Iterable[str] = (),
    jobs: int = 1,
    memory: str | None = None,
    limit: int | None = None,
    allow_empty: bool = False,
    force: bool = False,
    append: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **options: Unpack[WriteOptions],
) -> Manifest:
    """Writes rows as a sharded dataset, which appears at `directory` as a whole or not at all.

    The same rows and options yield the same bytes, for any number of jobs and any amount of memory.

    Args:
        rows: an iterable of dicts, a dict of arrays, a pandas or Polars frame, an Arrow table or
            record-batch reader; a dataset of TensorFlow or Hugging Face; a `Source`. A DatasetDict of Hugging
            Face defines the splits.
        schema: the schema of the rows, or its path; or the result of `infer`, with its `left_out` columns
            ignored.
        directory: a folder that does not exist yet, or its URL in an object store.
        split: the name of the only split; or the weights of several splits, by name: the split of a row is
            then a function of its key; or `{"folds": k}`; or `{"column": name}` for a column with the split.
        ignore: names in the rows to ignore. Any other name without a feature is an error, because a misspelt
            name would lose values.
        jobs: the number of processes that encode and write. A script that uses several processes must be
            importable: it calls `write` under `if __name__ == "__main__":`.
        memory: the memory of all processes together, such as `"2GiB"`; by default 512 MiB per process, of
            which Python, NumPy and Arrow use about 200 MiB. Rows that do not fit are sorted on disk.
        limit: the number of rows to read, from the first; per split, if splits are predefined.
        allow_empty: whether a source without rows makes a dataset without rows; by default it is an error.
        force: whether a dataset at `directory` is replaced.
        append: whether the rows are added to the dataset at `directory`, in new shards; its
            options must be the same. A key that already exists is an error.
        resume: whether to continue an interrupted build of the same rows, which must come from files.
        progress: whether to show progress on stderr, or in a notebook: a bar, or a line each 30 s without a
            terminal.
        options: the fields of `Write`: key, group_by, shards (`"auto"`, a number, `{"size": "128MiB"}`),
            compression, layout (`{"blocks": 256}`), shuffle (true, or a seed), and invalid (`"error"`,
            `"quarantine"`, `{"max_invalid": "20%"}`).

    Returns:
        The manifest of the dataset.

    Raises:
        SpecError: an option is invalid.
        RecordError: a row is invalid; the error names the first invalid row. With `invalid="quarantine"`:
            more rows than allowed are invalid, or all rows are. Without `allow_empty`: there are no rows.
        WriteError: the source of the rows failed.
        StoreError: `directory` exists, or cannot be written, or a process was killed.
        Interrupted: Ctrl-C. In each of these cases, nothing is published.

    Example:
        >>> rs.write([{"x": 0.5, "inside": "yes"}], schema, "data/one", shards=1).rows("train")
        1
    """
    execution = Execution(
        jobs=jobs,
        memory=memory,
        limit=limit,
        allow_empty=allow_empty,
        force=force,
        append=append,
        resume=resume,
        progress=progress,
    )
    schema, source = named_rows(rows, schema, ignore, split, options)
    if resume and source.identity() is None:
        expected = "rows of files, which can be read again"
        raise SpecError(Problem(path=("resume",), expected=expected, got=type(rows).__name__))
    splits: Any = split
    if isinstance(source, SplitSources):
        source, splits = given_splits(schema, source, split, options)
        if limit is not None:
            source = replace(source, limit=limit)
            execution = replace(execution, limit=limit * len(source.sources))
    return build_locally(schema, source, directory, write_options(schema, splits, options), execution)


def named_rows(
    rows: Any,
    schema: Schema | Inferred | AnyPath,
    ignore: Iterable[str],
    split: Any,
    options: Mapping[str, Any],
) -> tuple[Schema, Source]:
    """The schema, and the source of the rows without the names to ignore.

    Raises SpecError if a name to ignore is a feature.
    """
    if isinstance(rows, Inferred):
        rows = rows.schema
    check_data_first(rows, "rows", "rs.write(rows, schema, directory)")
    left_out = [*ignore]
    if isinstance(schema, Inferred):
        read = write_options(schema.schema, split, options).columns
        left_out += [name for name in schema.left_out if name not in read]
        schema = schema.schema
    schema = as_schema(schema)
    features = [name for name in left_out if name in schema.names]
    if features:
        expected, got = "names without a feature", f"the feature `{features[0]}`"
        raise SpecError(Problem(path=("ignore",), expected=expected, got=got))
    return schema, leave_out(source_of(rows), left_out)


def given_splits(
    schema: Schema, source: SplitSources, split: Any, options: Mapping[str, Any]
) -> tuple[SplitSources, ByColumn]:
    """The sources, with a column that names the split of each row; and the option that names the column.

    Raises SpecError if `split` or `group_by` asks for other splits.
    """
    if isinstance(split, ByColumn) and split.column == source.column:
        return source, split
    made = write_options(schema, "train", options)
    if split not in ("train", made.splits) or made.group_by is not None:
        option = "split" if made.group_by is None else "group_by"
        hint = "give the rows of one split"
        raise SpecError(Problem(path=(option,), expected="rows without splits", got="rows with", hint=hint))
    source = source.beside((*schema.names, *made.keys))
    return source, ByColumn(column=source.column)


def write_options(schema: Schema, split: Any, options: Mapping[str, Any]) -> Write:
    """The options of a build. Raises SpecError for an invalid option or a schema that cannot be written."""
    if schema._shared_keys:
        raise SpecError(schema._shared_keys)
    if "splits" in options:
        expected, hint = "the argument `split`", "it takes a name, or the weights of several"
        raise SpecError(Problem(path=("splits",), expected=expected, got="`splits`", hint=hint))
    splits = {split: 1.0} if isinstance(split, str) else split
    made: Write = from_python(Write, {**options, "splits": splits})
    return made
