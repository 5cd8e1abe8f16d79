"""`recordspec.export`: the records of a dataset as a table, or files that describe it to other programs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, overload

from recordspec.errors import Problem, SpecError, State, StoreError, nearest, one_of
from recordspec.locations import AnyPath, is_path, local
from recordspec.progress import Progress
from recordspec.schema.schema import Schema, given_schema
from recordspec.store.expand import Files, without_config
from recordspec.store.manifest import SCHEMA_FILE, Manifest
from recordspec.store.shards import schema_mismatches
from recordspec.store.sidecars import add_sidecars
from recordspec.tables.export import Exported
from recordspec.tables.export import export as export_records

# The formats of a description. The module of each has the function `dataset_files`.
DescriptionFormat = Literal["croissant", "card", "tfds"]
FORMATS: tuple[str, ...] = get_args(DescriptionFormat)


@dataclass(frozen=True, kw_only=True)
class ExportedDescription:
    """Files that describe a dataset: their paths, and notes on what they do not express."""

    files: tuple[str, ...]
    notes: tuple[str, ...]


@overload
def export(
    files: Files,
    out: AnyPath,
    *,
    schema: Schema | AnyPath | None = ...,
    columns: Sequence[str] = ...,
    where: str | None = ...,
    limit: int | None = ...,
    force: bool = ...,
    progress: Progress | None = ...,
) -> Exported: ...


@overload
def export(
    files: Files, *, as_: DescriptionFormat, schema: Schema | AnyPath | None = ...
) -> ExportedDescription: ...


def export(
    files: Files,
    out: AnyPath | None = None,
    *,
    as_: DescriptionFormat | None = None,
    schema: Schema | AnyPath | None = None,
    columns: Sequence[str] = (),
    where: str | None = None,
    limit: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported | ExportedDescription:
    """Writes records to a file in the format of its suffix; or, with `as_`, files that describe a dataset to
    other programs, beside its shards.

    With a schema, given or beside the files, the columns are its features, as in `scan`. Without a
    schema, and for keys that are not in it, a column has single values if every record with the key has one
    value, else lists; missing values are null. Bytes are text if all of them are valid UTF-8. Records are
    written while they are read. They are written a second time only if a later record changes the type of a
    column.

    Within `recordspec.spark.running_on`, tasks write a folder of files, such as
    `points.csv/part-00000-of-00012.csv`: one for each file of records, or for 64 MiB of a large one. Together
    they have the columns and rows of the file that one machine writes.

    A description is made from the manifest and the schema alone: no record is read. The manifest names its
    files, so that `verify` checks them. A description that was exported before is replaced; a file of another
    origin is not.

    Args:
        files: paths, folders or patterns, of which blocks are unpacked; with `as_`, a folder or a config.
        out: FILE.jsonl, .csv or .parquet; on a cluster, the name of a folder with such a suffix.
        as_: `croissant` writes croissant.json, metadata of the standard Croissant 1.0; `card` writes
            README.md, a dataset card with the head of the Hugging Face Hub; `tfds` writes the files with
            which `tfds.builder_from_directory` opens the dataset.
        schema: the schema that names features and classes, or its path; by default the schema beside the
            files.
        columns: the names of features, in this order; empty for all.
        where: a condition on records in SQL, such as `age > 30`; None for all records.
        limit: the largest number of records; not on a cluster.
        force: replaces the file if it exists; on a cluster, also the folder of an earlier export. A folder
            in an object store is never replaced.
        progress: receives the number of records and bytes.

    Raises RecordError for records that are not Examples, have lists of two kinds in one column, or contradict
    the schema; SpecError for values that the format cannot represent, or that no source reads back, and for
    options of records with `as_`; StoreError if there are no files, they change meanwhile, or `out` exists or
    cannot be written, if the folder has no dataset, or if the format cannot describe it; MissingExtra without
    pyarrow.

    Example:
        >>> rs.export("data/points", "points.csv", schema=schema).rows
        20
        >>> rs.export("data/points", as_="card").files
        ('data/points/README.md',)
    """
    if as_ is None:
        if out is None:
            expected, hint = "a file", f"or the format of a description, as_: {one_of(FORMATS)}"
            raise SpecError(Problem(path=("out",), expected=expected, got="none", hint=hint))
        return export_records(
            files,
            out,
            schema=schema,
            columns=columns,
            where=where,
            limit=limit,
            force=force,
            progress=progress,
        )
    if as_ not in FORMATS:
        hint = nearest(as_, FORMATS)
        raise SpecError(Problem(path=("as_",), expected=one_of(FORMATS), got=f"`{as_}`", hint=hint))
    of_records = {"out": out, "columns": columns, "where": where, "limit": limit, "force": force}
    reasons = {"out": f"no file, since {as_} is written beside the shards"}
    none = f"no value, since {as_} reads no records"
    problems = [
        Problem(path=(name,), expected=reasons.get(name, none), got=f"`{value}`")
        for name, value in of_records.items()
        if value not in (None, (), False)
    ]
    if problems:
        raise SpecError(problems)
    return _describe(files, as_, given_schema(schema))


def _describe(given: Any, form: DescriptionFormat, schema: Schema | None) -> ExportedDescription:
    if not is_path(given):
        expected, got = "the folder of one dataset", f"{type(given).__name__} {given!r}"
        raise SpecError(Problem(path=("files",), expected=expected, got=got))
    folder = local(without_config(str(local(given))))
    manifest = Manifest.load(folder)
    if schema is None:
        schema = _stored_schema(folder, manifest, form)
    elif problems := schema_mismatches(manifest, schema, folder):
        raise StoreError(problems)
    texts, notes = importlib.import_module(f"recordspec.interop.{form}").dataset_files(
        folder, manifest, schema
    )
    add_sidecars(folder, texts)
    return ExportedDescription(files=tuple(str(folder / name) for name in texts), notes=notes)


def _stored_schema(folder: Path, manifest: Manifest, form: str) -> Schema:
    path = folder / manifest.name_of(SCHEMA_FILE)
    if not path.exists():
        raise StoreError(State(where=str(path), got="does not exist", hint=f"{form} describes its features"))
    return Schema.load(path)
