"""`recordspec adopt`, `verify`, `repair`, `index` and `sweep`: commands on whole files."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.output import echo, print_json, print_notes, print_rows, size, wants_json
from recordspec.cli.shared_options import (
    LOCAL_PATH,
    PATH,
    PATTERN,
    LocationType,
    files_argument,
    jobs_option,
    json_option,
    removed_option,
    spark_option,
)
from recordspec.errors import ExistsError, RecordError, StoreError, counted, exists, see
from recordspec.locations import Location, location

if TYPE_CHECKING:
    from recordspec.integrity.verify import FileIntegrity
    from recordspec.schema.schema import Schema
    from recordspec.store.manifest import Manifest

_COLUMNS = ("file", "records", "corrupt", "recovered", "bytes lost", "rows lost")


def _split(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, list[str]]:
    """Parses texts like `train=shards/a*` to the files of each split."""
    splits: dict[str, list[str]] = {}
    for value in values:
        name, equals, pattern = value.partition("=")
        if not (name and equals and pattern):
            raise click.BadParameter(
                f"expected a split and its files such as train='shards/a*', got {value!r}"
            )
        splits.setdefault(name, []).append(pattern)
    return splits


class _SchemaPath(LocationType):
    """The path of a schema. Where it is missing, the error names the command that writes one."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "`recordspec infer FILES --out schema.yaml` writes one."


_SCHEMA = _SchemaPath(location, Path)


@click.command(short_help="Make a dataset of existing files, without a copy.")
@click.argument("files", nargs=-1, type=PATTERN)
@removed_option("--spec", "`--schema`")
@click.option("--schema", type=_SCHEMA, required=True, help="The schema of the records; `infer` writes one.")
@click.option("--out", type=PATH, help="A folder for links to FILES; by default FILES stay in theirs.")
@click.option(
    "--split",
    "splits",
    metavar="NAME=FILES",
    multiple=True,
    callback=_split,
    help="The files of a split, in place of FILES; repeat it for each.",
)
@click.option("--config", type=LOCAL_PATH, help="Also write a config that trains on the dataset.")
@click.option("--check", is_flag=True, help="Read every record: check it, and count the classes of labels.")
@click.option("--force", is_flag=True, help="Adopt FILES again.")
@jobs_option
@spark_option
@json_option
def adopt(
    files: tuple[str, ...],
    schema: Location,
    out: Location | None,
    splits: dict[str, list[str]],
    config: Path | None,
    check: bool,
    force: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Make a dataset of TFRecords that another program wrote: FILES are paths, folders or patterns.

    \b
      recordspec adopt 'data/digits/train-*' --schema schemas/digits.yaml --out adopted
      recordspec adopt --split a='data/digits/t*' --schema schemas/digits.yaml --out folds

    Writes a manifest, an index and the schema into the folder of FILES, or to a folder of links to them. A
    config whose `data` is that folder, as --config writes it, trains on it, and every command reads it.
    FILES do not change: no command replaces or deletes them. The splits follow from the names of files or
    folders, or it is `train`.

    Reads the lengths and the first records of each file, with --check all records.
    """
    from recordspec.progress import Progress
    from recordspec.schema.schema import as_schema, schema_path
    from recordspec.store.expand import expand
    from recordspec.writing.adopt import adopt as adopt_files

    if bool(files) == bool(splits):
        raise click.UsageError("name either FILES, or those of each --split")
    if config is not None and not force and config.exists():
        raise ExistsError(exists(config, "nothing was adopted; --force replaces it"))
    start = time.perf_counter()
    loaded = as_schema(schema)
    with Progress() as progress:
        manifest = adopt_files(
            splits or files,
            loaded,
            None if out is None else str(out),
            check=check,
            jobs=jobs,
            force=force,
            progress=progress,
        )
    seconds = time.perf_counter() - start
    if config is not None:
        folder = expand([*files, *chain.from_iterable(splits.values())])[0].parent if out is None else out
        _write_config(config, folder, schema_path(schema), loaded, manifest, force=force)
    rows = counted(sum(map(manifest.rows, manifest.splits)), "row")
    several = (
        f"{counted(len(manifest.all_shards), 'file')}, {size(sum(map(manifest.bytes, manifest.splits)))}"
    )
    print_rows(
        (
            {
                "split": split,
                "files": len(shards),
                "rows": manifest.rows(split),
                "bytes": manifest.bytes(split),
            }
            for split, shards in manifest.splits.items()
        ),
        as_json,
        lambda: f"adopted {rows} in {several}, in {seconds:.1f} s",
    )


def _write_config(
    path: Path, folder: Location, spec: Location, schema: Schema, manifest: Manifest, *, force: bool
) -> None:
    """Writes a config for the adopted dataset in a folder. `spec` is the file of the schema."""
    from recordspec.inferring.inferred_config import adopted_config_text, write_texts
    from recordspec.language import header, write_json_schema

    text = adopted_config_text(schema, spec, path, folder, manifest.splits)
    write_json_schema(path.parent)
    write_texts({path: header() + text}, force=force)


@click.command(short_help="Check every length and CRC of files, and their manifest.")
@files_argument
@jobs_option
@spark_option
@json_option
def verify(files: tuple[str, ...], jobs: int | None, as_json: bool) -> int:
    """Read every byte of FILES (a config, paths, folders, patterns), and report all corruption.

    \b
      recordspec verify data/digits
      recordspec verify "data/digits/train-*" --json

    Prints for each file the number of intact records, of records with corrupt data, of records that `repair`
    can recover after a corrupt length, and of bytes and rows lost. If there is a manifest, it also checks
    sizes, hashes, numbers of records, missing and unexpected shards, and the schema. Exits with 1 if it finds
    an error, with 3 if a file cannot be read.
    """
    from recordspec.integrity.verify import verify as verify_files
    from recordspec.progress import Progress

    with Progress() as progress:
        verified = verify_files(files, jobs=jobs, progress=progress)
    intact = sum(one.intact for one in verified)
    if wants_json(as_json):
        for file in verified:
            print_json(file.dump())
    else:
        lines = [
            line
            for file in verified
            if not file.unreadable
            for line in (*map(str, file.problems), *(_losses(file.integrity) if file.integrity else ()))
        ]
        rows = (_row(one.integrity.dump(), _COLUMNS) for one in verified if one.integrity is not None)
        print_rows(rows, as_json, lambda: "\n".join(lines))
        hint = f" (`recordspec repair` saves what can be read; {see('integrity')})"
        echo(
            f"intact: {intact:,} of {counted(len(verified), 'file')}{hint if intact < len(verified) else ''}"
        )
    unreadable = [problem for one in verified if one.unreadable for problem in one.problems]
    for problem in unreadable:
        echo(problem, err=True)
    if unreadable:
        return StoreError.exit_code
    return 0 if intact == len(verified) else RecordError.exit_code


def _row(dumped: dict[str, Any], columns: tuple[str, ...]) -> dict[str, Any]:
    return {name: "unknown" if dumped[name] is None else dumped[name] for name in columns}


def _losses(integrity: FileIntegrity) -> Iterator[str]:
    for loss in integrity.losses:
        stop = "the end" if loss.stop is None else f"{loss.stop:,}"
        yield f"{loss.problem}; bytes {loss.offset:,} to {stop} are lost"
    if integrity.lost > len(integrity.losses):
        yield f"{integrity.path}: {integrity.lost - len(integrity.losses):,} more losses are not listed"


@click.command(short_help="Recover the intact records of corrupt files.")
@files_argument
@click.option("--out", "folder", type=LOCAL_PATH, required=True, help="The folder to write.")
@click.option("--force", is_flag=True, help="Replace the folder if it holds a dataset or a repair.")
@json_option
def repair(files: tuple[str, ...], folder: Path, force: bool, as_json: bool) -> None:
    """Write the intact records of FILES (a config, paths, folders, patterns) to new shards in a folder.

    \b
      recordspec repair data/digits --out data/digits-repaired
      recordspec repair broken.tfrecord --out saved --force

    FILES do not change. Intact records after a corrupt length are recovered. The folder gets a report,
    `repair.json`, of the saved records and the byte ranges that were lost; and, if FILES are a dataset,
    a manifest of the saved records.
    """
    from recordspec.integrity.repair import repair as repair_files
    from recordspec.progress import Progress

    with Progress() as progress:
        done = repair_files(files, folder, force=force, progress=progress)
    report = done.report()
    if wants_json(as_json):
        for row in report["files"]:
            print_json(row)
    else:
        losses = [line for file in done.files for line in _losses(file.integrity)]
        columns = ("file", "saved", "recovered", "bytes lost", "rows lost")
        rows = (_row(row, columns) for row in report["files"])
        print_rows(rows, as_json, lambda: "\n".join(losses))
    if done.note:
        print_notes([done.note])


@click.command(short_help="Write an index for random access.")
@files_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["recordspec", "tfrecord", "dali"]),
    default="recordspec",
    show_default=True,
    help="For recordspec, the tfrecord package, or NVIDIA DALI.",
)
@jobs_option
@spark_option
@json_option
def index(files: tuple[str, ...], form: Any, jobs: int | None, as_json: bool) -> None:
    """Write an index of each of FILES (a config, paths, folders, patterns).

    \b
      recordspec index exported/train.tfrecord
      recordspec index "data/digits/train-*" --format dali

    A dataset has one since its build, index.bin, which is made again. FILE.index of another file is used as
    long as the file does not change. FILE.tfindex and FILE.idx have a line of text for each record: its byte
    offset, and its size including its length and CRCs.
    """
    from recordspec.integrity.indexing import index as index_files
    from recordspec.progress import Progress

    with Progress() as progress:
        written = index_files(files, form, jobs, progress)
    print_rows(map(vars, written), as_json)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _age(context: click.Context, param: click.Parameter, value: str) -> timedelta:
    """Parses a duration like `30m`, `12h` or `7d`."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", value)
    if match is None:
        raise click.BadParameter(f"expected a number of s, m, h or d such as 12h, got {value!r}")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


@click.command(short_help="Find unused files of builds in an object store.")
@click.argument("url", type=PATH)
@click.option("--older-than", default="1d", show_default=True, callback=_age, help="Such as 30m, 12h or 7d.")
@click.option("--delete", is_flag=True, help="Delete the files.")
@json_option
def sweep(url: Location, older_than: timedelta, delete: bool, as_json: bool) -> None:
    """List the files below URL that builds wrote and that no manifest names.

    \b
      recordspec sweep s3://bucket/data
      recordspec sweep s3://bucket/data --older-than 7d --delete

    They belong to interrupted builds and to replaced datasets. Running builds, and readers that started
    before a dataset was replaced, still need theirs: --older-than must be longer than these run.
    """
    from recordspec.store.sweep import sweep as sweep_store

    swept = list(sweep_store(url, older_than=older_than, delete=delete))
    what = "deleted" if delete else "to delete: --delete does it" if swept else "nothing to delete"
    print_rows(
        ({"file": one.file, "bytes": one.bytes, "age": round(one.age)} for one in swept),
        as_json,
        lambda: f"{counted(len(swept), 'file')}, {size(sum(one.bytes for one in swept))}: {what}",
    )
