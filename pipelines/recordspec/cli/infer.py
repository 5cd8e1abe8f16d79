"""`recordspec infer`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recordspec.cli.output import echo, print_json, print_text
from recordspec.cli.shared_options import LOCAL_PATH, PATTERN, jobs_option, spark_option
from recordspec.errors import ExistsError, Problem, SpecError, StoreError, exists
from recordspec.locations import read_text, resolved

if TYPE_CHECKING:
    from recordspec.inferring.inferred_config import InferredConfig
    from recordspec.inferring.input_files import FileFormat
    from recordspec.writing.sources.folders import ClassFolders

_MOST_BYTES = 16 << 20  # the largest schema or config, as in the loader


@click.command(short_help="Infer a schema from files.")
@click.argument("files", nargs=-1, required=True, type=PATTERN)
@click.option("--out", type=LOCAL_PATH, help="Write the schema to this file.")
@click.option("--config", type=LOCAL_PATH, help="Also write a config that builds a dataset from FILES.")
@click.option("--name", help="The name of the schema. [default: that of the first file]")
@click.option(
    "--format",
    "given_format",
    type=click.Choice(["csv", "jsonl", "json", "parquet", "tfrecord"]),
    help="The format of FILES whose names have no known suffix.",
)
@click.option(
    "--classes",
    type=click.Choice(["first", "last", "path"]),
    help="The subfolder that names the class of an image or audio file. [default: first]",
)
@click.option("--force", is_flag=True, help="Replace the files of --out and --config.")
@click.option("--sample", type=click.IntRange(1), help="Read only this many records of each file.")
@jobs_option
@spark_option
@click.option("--json", "as_json", is_flag=True, help="One line of JSON: schema, rows, notes, files written.")
def infer(
    files: tuple[str, ...],
    out: Path | None,
    config: Path | None,
    name: str | None,
    given_format: FileFormat | None,
    classes: ClassFolders | None,
    force: bool,
    sample: int | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Infer a schema for FILES: TFRecords, CSV, JSONL or Parquet files; a folder of these, of TFDS, or of
    images or audio files by class; TensorFlow Metadata's `schema.pbtxt`, or TFDS's `features.json`.

    \b
      recordspec infer 'data/digits/train-*'
      recordspec infer rows.csv --out schemas/rows.yaml --config configs/rows.yaml

    Splits in the names of files or folders (train, validation, test, ...) are kept in the config. The
    schema is written to --out or to stdout. Notes on stderr list keys that are always empty, how often
    others are missing, and what may be a class.
    """
    from recordspec.inferring.infer import infer_files
    from recordspec.inferring.input_files import input_files
    from recordspec.progress import Progress

    if config is not None and out is None:
        raise click.UsageError("--config needs --out, the schema that it names")
    if config is not None and out is not None and resolved(config) == resolved(out):
        raise click.UsageError("--out and --config name the same file")
    # a single existing file with the same text is from an interrupted run
    there = [path for path in (out, config) if path is not None and not force and path.exists()]
    if there and (config is None or len(there) == 2):
        raise _exists(there[0])
    with Progress() as progress:
        to_infer = input_files(files, given_format, classes)
        for option, path in (("--out", out), ("--config", config)):
            if path is not None and resolved(path) in map(resolved, to_infer.paths):
                got = f"`{path}`, which is among FILES"
                raise SpecError(Problem(where=option, expected="a file of its own", got=got))
        inferred = infer_files(to_infer, name, sample=sample, jobs=jobs, progress=progress)
    written = [] if out is None else _written(inferred, out, config, there, force)
    if as_json:
        files_written = list(map(str, written))
        print_json(
            {
                "schema": inferred.schema.dump(),
                "rows": inferred.rows,
                "notes": inferred.notes,
                "files": files_written,
            }
        )
        return
    for path in written:
        echo(path)
    if not written:
        print_text(inferred.schema.dump())
    for note in inferred.notes:
        echo(note, err=True)


def _exists(path: Path) -> StoreError:
    return ExistsError(exists(path, "nothing was written; --force replaces it"))


def _written(
    inferred: InferredConfig, out: Path, config: Path | None, there: Sequence[Path], force: bool
) -> list[Path]:
    """Writes the schema and the config, and returns the written files: all except files in `there`, which
    have the same text already."""
    from recordspec.inferring.inferred_config import config_text, write_texts
    from recordspec.language import header, write_json_schema

    texts = {out: header() + inferred.schema.dump()}
    if config is not None:
        texts[config] = header() + config_text(inferred, out, config)
    for path in there:
        if read_text(path, _MOST_BYTES) != texts[path]:
            raise _exists(path)
    folders = dict.fromkeys(path.parent for path in texts)
    written = [*texts, *filter(None, map(write_json_schema, folders))]
    write_texts({path: text for path, text in texts.items() if path not in there}, force=force)
    return written
