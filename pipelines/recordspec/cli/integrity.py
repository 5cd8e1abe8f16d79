"""`recordspec verify`, `repair` and `index`: are files whole, what can be saved, where do records stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.options import PATH, files_argument, json_option
from recordspec.cli.output import counted, echo, print_json, print_notes, print_rows, wants_json
from recordspec.errors import RecordError

if TYPE_CHECKING:
    from recordspec.inspect.tally import Tally
    from recordspec.inspect.verify import Verified


@click.command(short_help="Whether files are whole: every length, every CRC, and their manifest.")
@files_argument
@json_option
def verify(files: tuple[str, ...], as_json: bool) -> int:
    """Read every byte of FILES (paths, folders, patterns), and tell all that is wrong with them.

    \b
      recordspec verify data/digits
      recordspec verify "data/digits/train-*" --json

    Of each file: the records that are whole, those with wrong data, those that can be found again behind a
    bad length, and the bytes and rows lost. Where a manifest lies beside it: sizes, hashes, numbers of
    records, shards that are missing or foreign, and the schema. Exits with 1 if anything is wrong.
    """
    from recordspec.inspect.verify import verify as verify_files
    from recordspec.progress import Progress

    with Progress() as progress:
        found = list(verify_files(files, progress))
    wrong = [one for one in found if not one.whole]
    if wants_json(as_json):
        for one in found:
            print_json(_verified(one))
    else:
        tallies = [one.tally for one in found if one.tally is not None]
        print_rows(map(_row, tallies), as_json, lambda: "\n".join(_told(found)))
        echo(f"whole: {len(found) - len(wrong):,} of {counted(len(found), 'file')}")
    return RecordError.exit_code if wrong else 0


def _verified(one: Verified) -> dict[str, Any]:
    from recordspec.inspect.tally import described

    read = {"file": one.file} if one.tally is None else described(one.tally)
    problems = [{"expected": problem.expected, "got": problem.got} for problem in one.problems]
    return {**read, "whole": one.whole, "problems": problems}


def _told(found: Iterable[Verified]) -> Iterator[str]:
    for one in found:
        yield from map(str, one.problems)
        if one.tally is not None:
            yield from _losses(one.tally)


def _row(tally: Tally) -> dict[str, Any]:
    return {
        "file": str(tally.path),
        "records": tally.records,
        "bad": tally.bad,
        "found again": tally.found_again,
        "bytes lost": "unknown" if tally.bytes_lost is None else tally.bytes_lost,
        "rows lost": "unknown" if tally.rows_lost is None else tally.rows_lost,
    }


def _losses(tally: Tally) -> Iterator[str]:
    for loss in tally.losses:
        stop = "the end" if loss.stop is None else f"{loss.stop:,}"
        yield f"{loss.problem}; bytes {loss.offset:,} to {stop} are lost"
    if tally.lost > len(tally.losses):
        yield f"{tally.path}: {tally.lost - len(tally.losses):,} more losses are not named"


@click.command(short_help="Save what is whole of damaged files.")
@files_argument
@click.option("--out", "folder", type=PATH, required=True, help="The folder that is written.")
@click.option("--force", is_flag=True, help="Replace the folder if it holds a dataset or a repair.")
@json_option
def repair(files: tuple[str, ...], folder: Path, force: bool, as_json: bool) -> None:
    """Write the records of FILES (paths, folders, patterns) that are whole to new shards in a folder.

    \b
      recordspec repair data/digits --out data/digits-repaired
      recordspec repair broken.tfrecord --out saved --force

    FILES stay as they are. Behind a bad length, whole records are looked for. The folder has a report,
    `repair.json`: what was saved and lost, from which byte to which; and where FILES are those of a
    dataset, a manifest of what was saved.
    """
    from recordspec.inspect.repair import repair as repair_files
    from recordspec.progress import Progress

    with Progress() as progress:
        done = repair_files(files, folder, force=force, progress=progress)
    report = done.report()
    if wants_json(as_json):
        for row in report["files"]:
            print_json(row)
    else:
        losses = [line for one in done.files for line in _losses(one.tally)]
        print_rows(map(_saved, report["files"]), as_json, lambda: "\n".join(losses))
    if done.note:
        print_notes([done.note])


def _saved(row: dict[str, Any]) -> dict[str, Any]:
    names = ("file", "saved", "found again", "bytes lost", "rows lost")
    return {name: "unknown" if row[name] is None else row[name] for name in names}


@click.command(short_help="Where each record stands, for random access.")
@files_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["recordspec", "tfrecord", "dali"]),
    default="recordspec",
    show_default=True,
    help="For recordspec, the tfrecord package, or NVIDIA DALI.",
)
@json_option
def index(files: tuple[str, ...], form: Any, as_json: bool) -> None:
    """Write an index beside each of FILES (paths, folders, patterns), which must not be compressed.

    \b
      recordspec index data/digits
      recordspec index "data/digits/train-*" --format dali

    FILE.index.json is used by recordspec as long as the file does not change; FILE.tfindex and FILE.idx are
    lines of text: the byte where a record begins, and its size with its length and CRCs.
    """
    from recordspec.inspect.index import index as index_files

    print_rows(map(vars, index_files(files, form)), as_json)
