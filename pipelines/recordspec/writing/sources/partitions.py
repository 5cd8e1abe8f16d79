"""Columns in the names of folders, `country=DE/year=2020/part-0.parquet`, as Hive and Spark write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from recordspec._arrow import arrow
from recordspec.errors import State, StoreError, one_of
from recordspec.locations import Location, files_in, folders_in, location
from recordspec.store.expand import expand
from recordspec.writing.sources.text_files import uncompressed_name

_FOLDER = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_MISSING = "__HIVE_DEFAULT_PARTITION__"
# The integers that are written in one way only, and all integers.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_PADDED = re.compile(r"-?[0-9]{1,18}")
# Paths whose folders are considered.
_MOST_NAMED = 100


def is_partition(folder: Location) -> bool:
    """Whether a folder is named after a column and its value."""
    return _FOLDER.fullmatch(folder.name) is not None


def partition_of(path: Location) -> dict[str, str | None]:
    """The texts of the columns in the names of a file's folders; None for a missing value."""
    matches = map(_FOLDER.fullmatch, PurePath(str(path)).parent.parts)
    texts = {unquote(match[1]): match[2] for match in matches if match is not None}
    return {name: None if text == _MISSING else unquote(text) for name, text in texts.items()}


def columns_of_folders(paths: Sequence[Location]) -> list[str]:
    """The columns in the names of the folders of the first files."""
    return list(dict.fromkeys(name for path in paths[:_MOST_NAMED] for name in partition_of(path)))


def notes_of_partitions(files: Iterable[tuple[Location, Collection[str]]]) -> Iterator[str]:
    """A note on each column that files have, and the names of their folders, too.

    Args:
        files: the files, each with the names of its columns.
    """
    noted: set[str] = set()
    for path, names in files:
        for name, text in partition_of(path).items():
            if name in names and name not in noted:
                noted.add(name)
                yield f"{name}: read from the files, not from their folders, such as `{name}={text}`"


def typed_partitions(paths: Sequence[Location], numbers: Collection[str] = ()) -> list[dict[str, Any]]:
    """For each file, the columns in the names of its folders, as Arrow scalars: of int64 if all values of a
    column are integers, else of text.

    Args:
        numbers: the columns that features of numbers read, in which `01` is 1.
    """
    partitions = [partition_of(path) for path in paths]
    texts: dict[str, list[str]] = {}
    for partition in partitions:
        for name, text in partition.items():
            texts.setdefault(name, []).extend([] if text is None else [text])
    pyarrow = arrow()
    forms = {name: _PADDED if name in numbers else _INTEGER for name in texts}
    whole = {name for name, some in texts.items() if some and all(map(forms[name].fullmatch, some))}
    types = {name: pyarrow.int64() if name in whole else pyarrow.large_string() for name in texts}
    return [
        {
            name: pyarrow.scalar(int(text) if text is not None and name in whole else text, types[name])
            for name, text in partition.items()
        }
        for partition in partitions
    ]


def with_partition(batch: Any, values: Mapping[str, Any]) -> Any:
    """A record batch with further columns, which have one value each."""
    if not values:
        return batch
    pyarrow = arrow()
    more = [pyarrow.repeat(value, batch.num_rows) for value in values.values()]
    fields = [*batch.schema, *(pyarrow.field(name, value.type) for name, value in values.items())]
    schema = pyarrow.schema(fields, metadata=batch.schema.metadata)
    return pyarrow.RecordBatch.from_arrays([*batch.columns, *more], schema=schema)


def files_of(given: Iterable[str], suffixes: Sequence[str]) -> tuple[Location, ...]:
    """The files of paths, patterns and folders; of a folder, the files with one of the suffixes, also in
    folders named after a column.

    Raises StoreError for a folder without such files.
    """
    found: list[Location] = []
    for text in given:
        path = location(text)
        if not path.is_dir():
            found += expand(text)
            continue
        files = [*tables_in(path, suffixes)]
        if not files:
            raise StoreError(State(where=text, got=f"has no files named {one_of(suffixes)}"))
        found += files
    return tuple(found)


def tables_in(folder: Location, suffixes: Sequence[str]) -> Iterator[Location]:
    """The files with one of the suffixes in a folder, and in its folders named after a column."""
    for path in files_in(folder):
        suffix = PurePath(uncompressed_name(path.name)).suffix
        if suffix in suffixes and not path.name.startswith((".", "_")):
            yield path
    for below in folders_in(folder):
        if is_partition(below):
            yield from tables_in(below, suffixes)
