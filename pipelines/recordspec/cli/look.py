"""`recordspec count`, `head`, `show` and `sample`: what is in TFRecord files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.choosing import Function, columns_options, files_argument, query, where_option
from recordspec.cli.output import counted, echo, json_option, print_json, print_rows, shown, size, wants_json

if TYPE_CHECKING:
    from recordspec.inspect.show import RecordViewer, Shown

number_option = click.option(
    "-n", "number", type=click.IntRange(1, 1 << 31), default=5, show_default=True, help="How many."
)


@click.command(short_help="How many records files have.")
@files_argument
@json_option
def count(files: tuple[str, ...], as_json: bool) -> None:
    """Count the records of TFRecord files, or of all shards in a folder.

    \b
      recordspec count data/digits
      recordspec count "data/digits/train-*" --json
    """
    from recordspec.inspect.count import count as count_records
    from recordspec.progress import Progress

    with Progress() as progress:
        found = count_records(files, progress)
    records, total = sum(one.records for one in found), sum(one.bytes for one in found)
    print_rows(
        (vars(one) for one in found),
        as_json,
        lambda: f"{counted(records, 'record')} in {counted(len(found), 'file')}, {size(total)}",
    )


def _shown_options(function: Function) -> Function:
    """What is shown of a record, and how."""
    full = click.option("--full", is_flag=True, help="Cut nothing.")
    raw = click.option("--raw", is_flag=True, help="Nothing cut, nor described: bytes, in JSON as base64.")
    return columns_options(full(raw(json_option(function))))


@click.command(short_help="The first records of files.")
@files_argument
@number_option
@where_option
@_shown_options
def head(files: tuple[str, ...], number: int, as_json: bool, **how: Any) -> None:
    """Show the first records of TFRecord files, with or without a spec for them.

    \b
      recordspec head data/digits
      recordspec head "data/digits/train-*" -n 20 --json
    """
    look = _look(files, **how)
    _print(look, look.head(number), as_json)


@click.command(short_help="One record by its number.")
@files_argument
@click.option("--record", "number", type=click.IntRange(0), required=True, help="Counted from 0.")
@_shown_options
def show(files: tuple[str, ...], number: int, as_json: bool, **how: Any) -> None:
    """Show one record of TFRecord files by its number, counted from 0 through all of them.

    \b
      recordspec show data/digits --record 0
      recordspec show "data/digits/train-*" --record 7 --full

    In shards of blocks that are unpacked, rows are counted.
    """
    look = _look(files, **how)
    _print(look, [look.show(number)], as_json)


@click.command(short_help="Any few records of files.")
@files_argument
@number_option
@click.option("--seed", type=int, default=0, show_default=True, help="Another gives other records.")
@where_option
@_shown_options
def sample(files: tuple[str, ...], number: int, seed: int, as_json: bool, **how: Any) -> None:
    """Show any few records of TFRecord files, each as likely as any other.

    \b
      recordspec sample data/digits
      recordspec sample "data/digits/train-*" -n 3 --seed 17
    """
    look = _look(files, **how)
    _print(look, look.sample(number, seed), as_json)


def _look(files: tuple[str, ...], full: bool, raw: bool, **chosen: Any) -> RecordViewer:
    from recordspec.inspect.show import RecordViewer

    return RecordViewer(files, query(**chosen), "raw" if raw else "full" if full else "short")


def _print(look: RecordViewer, records: Iterable[Shown], as_json: bool) -> None:
    for note in look.notes:
        echo(note, err=True)
    for record in records:
        if wants_json(as_json):
            print_json(record)
        else:
            echo(_title(record), bold=True)
            for line in (*_lines(record), *_notes(record)):
                echo(line)


def _title(record: Shown) -> str:
    number = "row" if "row" in record else "record"
    return f"{record['file']}: {number} {record[number]}"


def _lines(record: Shown) -> Iterator[str]:
    if "fields" in record:
        yield from _fields(record["fields"], "  ")
        return
    if "bytes" in record:
        yield f"  {shown(record['bytes'])}"
        return
    if "examples" in record:
        yield f"  {record['message']}, {counted(len(record['examples']), 'example')}"
        parts = {"context": record.get("context", {})}
        parts |= {f"examples[{number}]": features for number, features in enumerate(record["examples"])}
        values = [(f"{part}.{key}", value) for part, some in parts.items() for key, value in some.items()]
    else:
        values = [*record["features"].items(), *record.get("sequence", {}).items()]
    width = max((len(shown(key)) for key, _ in values), default=0)
    for key, value in values:
        # data as it is: 1478559600 is a time and 17031320600 a place, not counts to be read aloud
        text = str(value) if isinstance(value, int) else value
        yield f"  {shown(key):{width}}  {shown(text)}"
    for key in record.get("repeated", ()):
        yield f"  (more than once: {shown(key)}; the last counts)"


def _notes(record: Shown) -> Iterator[str]:
    """What TensorFlow makes of it otherwise."""
    for problem in record.get("tensorflow", ()):
        yield f"  {shown(problem)}"


def _fields(fields: list[Shown], indent: str) -> Iterator[str]:
    """The fields of a message, those of messages in it indented."""
    for field in fields:
        value = field.get("value")
        if "more" in field:
            yield f"{indent}..."
        elif isinstance(value, list):
            yield f"{indent}{field['field']} {field['type']}"
            yield from _fields(value, f"{indent}  ")
        else:
            text = str(value) if isinstance(value, int) else shown("" if value is None else value)
            yield f"{indent}{field['field']} {field['type']}  {text}".rstrip()
