"""Answers the requests of the page: columns, rows, single records, images and audio of the viewed files."""

from __future__ import annotations

import math
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, RecordspecError, counted
from recordspec.remote import RemotePath
from recordspec.schema.options import format_bytes
from recordspec.schema.schema import Schema
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files
from recordspec.store.manifest import FILE as MANIFEST_FILE
from recordspec.store.scan import RowBatch, Scanner, UnreadableRecord
from recordspec.store.shard_names import training_first
from recordspec.tables.cells import cell_of
from recordspec.tables.query import Query
from recordspec.tables.scan_columns import ColumnReader, ScanColumn, columns_of, is_picture, type_words
from recordspec.tables.show import RecordViewer
from recordspec.viewer.boxes import BoxesOfImage, boxes_of_images
from recordspec.viewer.cells_json import drawn, item_at
from recordspec.viewer.distributions import Side, compared, statistics
from recordspec.viewer.jobs import Job, JobProgress, Jobs
from recordspec.viewer.media_previews import Media, medium
from recordspec.viewer.problems import problems
from recordspec.viewer.row_pages import NumberedRows, PlacedRows
from recordspec.viewer.selection import Choice, Selection
from recordspec.wire.file_types import compression_of
from recordspec.wire.framing import masked_crc

if TYPE_CHECKING:
    from recordspec.viewer.batches import ModelBatches

# Rows as cells, and the rows themselves.
ReadRows = tuple["list[dict[str, Any]]", "list[PlacedRows]"]
# The largest number of rows in a page.
MOST_ROWS = 100
_OF_OTHERS = " of the other files"
# The splits that the top of the page lists, and the classes of a label that have a colour of their own.
_MOST_SPLITS, _MOST_CLASSES = 4, 100
# The bytes of shown rows that are kept in memory.
_MOST_RECENT = 32 << 20
# A record of at most this many bytes is shown in full as it is stored; for a larger record, values are cut.
_MOST_STORED = 1 << 18
# The number of bytes of a record that the page shows in hexadecimal.
_RAW = 1 << 12


class NotThereError(LookupError):
    """The item that a request names does not exist."""


class ViewedFiles:
    """The files that the viewer was started with. The viewer opens no other files.

    Args:
        files: paths, folders or patterns.
        schema: the schema of the rows; by default the schema beside the files.
        other: the files to compare with.
        batches: the batches that a config yields for a model.

    Raises StoreError if there are no files, and for blocks without a schema.
    """

    def __init__(
        self,
        files: Files,
        schema: Schema | None = None,
        *,
        other: ViewedFiles | None = None,
        batches: ModelBatches | None = None,
    ) -> None:
        self._files, self._schema = files, schema
        self._other, self.batches = other, batches
        self._lock, self._batching = threading.Lock(), threading.Lock()
        self._open()

    def _open(self) -> None:
        dataset = StoredDataset.of(self._files, self._schema)
        self._mismatches = dataset.known_mismatches
        if self._mismatches:  # rows are shown as they were written
            dataset = StoredDataset(dataset.paths, dataset.manifests)
        self.scanner = Scanner.of_rows(dataset)
        self.splits = training_first(dict.fromkeys(self.scanner.dataset.splits.values()))
        self._rows: dict[str | None, NumberedRows] = {}
        self._jobs, self._searches, self._pages = Jobs(), Jobs(are_brief=True), Jobs(most=4, are_brief=True)
        self._recent: tuple[str | None, list[PlacedRows]] = (None, [])
        for name in ("columns", "_reader", "_viewers", "_boxes"):
            self.__dict__.pop(name, None)
        self._stamp = self._stamp_now()

    def _stamp_now(self) -> list[tuple[int, int]]:
        """The sizes and times of the first files and of the manifest. They change whenever the dataset
        changes.

        In an object store, only the manifest is read, since each file takes a request.
        """
        paths, stamps = self.scanner.dataset.paths, []
        first = [] if self._is_remote else paths[:MOST_ROWS]
        for path in (*first, paths[0].parent / MANIFEST_FILE):
            with suppress(OSError, RecordspecError):  # the reader of a missing file reports it
                status = path.stat()
                stamps.append((status.st_size, status.st_mtime_ns))
        return stamps

    @cached_property
    def columns(self) -> dict[str, ScanColumn]:
        """The columns by name."""
        return columns_of(self.scanner, is_decoded=False, binary=frozenset())

    @cached_property
    def _reader(self) -> ColumnReader:
        return ColumnReader(list(self.columns.values()), self.scanner.dataset.schema)

    @cached_property
    def _viewers(self) -> dict[str, RecordViewer]:
        """The viewers that show records as they are stored, by style."""
        query = Query(schema=self.scanner.dataset.schema)
        return {style: RecordViewer(self._files, query, style=style) for style in ("full", "short")}

    def described(self) -> dict[str, Any]:
        """The files, their splits and columns, and the number of rows, if it is known.

        The page calls this when it is loaded. Files that have changed since the last call are opened again.
        """
        if self._stamp_now() != self._stamp:
            self._open()
        return {
            "name": self._name,
            "facts": list(self._facts()),
            "files": [str(path) for path in self.scanner.dataset.paths[:MOST_ROWS]],
            "count": len(self.scanner.dataset.paths),
            "splits": self.splits,
            "columns": [self._described(name, column) for name, column in self.columns.items()],
            "total": self.numbered(None).total,
            "sides": [*self.sides],
            "pair": self._pair,
            "batches": None if self.batches is None else self.batches.described(),
            "compressed": self._is_compressed,
            "remote": self._is_remote,
        }

    @property
    def _name(self) -> str:
        """The folder of the files; for several folders, the number of files."""
        folders = {path.parent for path in self.scanner.dataset.paths}
        return str(folders.pop()) if len(folders) == 1 else f"{len(self.scanner.dataset.paths):,} files"

    def _facts(self) -> Iterator[str]:
        """Rows, splits, size, schema and version, each as a short text, if they are known without reading."""
        dataset, splits = self.scanner.dataset, self.splits
        counts = {split: self.numbered(split).total for split in splits}
        known = [count for count in counts.values() if count is not None]
        if len(known) == len(splits):
            yield counted(sum(known), "row")
        if len(splits) > 1:
            listed = [f"{split} {count:,}" if count is not None else split for split, count in counts.items()]
            more = f" and {len(splits) - _MOST_SPLITS} more" if len(splits) > _MOST_SPLITS else ""
            yield ", ".join(listed[:_MOST_SPLITS]) + more
        files, size = counted(len(dataset.paths), "file"), self._size
        yield files if size is None else f"{files}, {format_bytes(size)}"
        if dataset.schema is None:
            yield "no schema"
        else:
            yield f"schema {dataset.schema.name}, version {dataset.schema.version}"

    @property
    def _size(self) -> int | None:
        """The size of all files in bytes; None if it is unknown: a file of a store would take a request."""
        dataset = self.scanner.dataset
        if len(dataset.shards) == len(dataset.paths):
            return sum(shard.bytes for shard in dataset.shards.values())
        if self._is_remote:
            return None
        with suppress(OSError):  # the reader of a missing file reports it
            return sum(path.stat().st_size for path in dataset.paths)
        return None

    @property
    def _is_remote(self) -> bool:
        return isinstance(self.scanner.dataset.paths[0], RemotePath)

    @property
    def _is_compressed(self) -> bool:
        with suppress(RecordError):  # if this is no TFRecord file, its rows report the reason
            return compression_of(self.scanner.dataset.paths[0]) != "none"
        return False

    def _described(self, name: str, column: ScanColumn) -> dict[str, Any]:
        types, type_ = arrow().types, column.type
        classes = column.features[0].feature.traits.class_names if column.features else ()
        described: dict[str, Any] = {
            "name": name,
            "type": type_words(column),
            "number": types.is_integer(type_) or types.is_floating(type_),
            "classes": classes[:_MOST_CLASSES],
            "key": name in self._key,
        }
        if name in self._boxes:
            described["boxes"] = self._boxes[name].image
        return described

    @property
    def _key(self) -> tuple[str, ...]:
        """The columns that identify a row, if the manifest tells them."""
        manifest = self.scanner.dataset.manifest
        return () if manifest is None else manifest.key

    @cached_property
    def _boxes(self) -> dict[str, BoxesOfImage]:
        """The columns of boxes, each of which belongs to a column of images."""
        schema = self.scanner.dataset.schema
        return {} if schema is None else boxes_of_images(schema, self.columns)

    @property
    def sides(self) -> dict[str, Side]:
        """The comparable sides, by name: the splits and all rows, of these files and of the other files."""
        sides = {}
        for viewed, of in ((self, ""), (self._other, _OF_OTHERS)):
            if viewed is not None:
                for split in [*viewed.splits, None] if len(viewed.splits) > 1 else [None]:
                    name = f"{'all rows' if split is None else split}{of}"
                    name += " (of all splits)" * (name in sides)
                    sides[name] = Side(name=name, scanner=viewed.scanner, split=split, columns=viewed.columns)
        return sides

    @property
    def _pair(self) -> list[str]:
        """The sides that are compared first: the other files and these, or training and test."""
        names = [*self.sides]
        if self._other is not None:
            others = [name for name in names if name.endswith(_OF_OTHERS)]
            return [others[-1], names[len(names) - len(others) - 1]]
        if len(self.splits) < 2:
            return [names[0], names[0]]
        test = next((split for split in self.splits if split.lower().startswith("test")), self.splits[1])
        return [self.splits[0], test if test != self.splits[0] else self.splits[1]]

    def statistics(self, seen: int, *, first: bool) -> dict[str, Any]:
        """The statistics so far, unless the page has already seen this version; with `first`, of the first
        rows only. See `statistics`."""
        job = self._jobs.of(
            ("statistics", first),
            lambda progress, publish: statistics(
                self.scanner, self.columns, self.numbered(None).total, progress, None if first else publish
            ),
        )
        return self._answer(job, seen)

    def problems(self) -> dict[str, Any]:
        """The problems of the files, once all are read; see `problems`."""
        job = self._jobs.of(
            "problems",
            lambda progress, _: problems(
                self._files, self.scanner, self._mismatches, self.numbered(None), progress
            ),
        )
        return self._answer(job)

    def compared(self, old: str, new: str) -> dict[str, Any]:
        """The differences of two sides, once both are read; see `compared`. Raises NotThereError for an
        unknown side."""
        for name in (old, new):
            if name not in self.sides:
                raise NotThereError(name)
        sides = self.sides[old], self.sides[new]
        return self._answer(self._jobs.of((old, new), lambda progress, _: compared(sides, progress)))

    def batch(self, split: str, epoch: int, step: int) -> dict[str, Any]:
        """A batch as the model receives it, beside the stored rows; see `ModelBatches.batch`.

        Raises NotThereError without a config.
        """
        batches = self.batches
        if batches is None:
            raise NotThereError("config")

        def read(progress: JobProgress, _: Any) -> dict[str, Any]:
            progress.begin("reading the batch", None)
            with self._batching:
                progress.advance(0)  # cancels the job if its batch is no longer wanted
                return self._beside_stored(batches.batch(split, epoch, step), progress)

        return self._answer(self._pages.of(("batch", split, epoch, step), read))

    def _beside_stored(self, batch: dict[str, Any], progress: JobProgress) -> dict[str, Any]:
        """Adds the boxes to a batch, and the stored rows if their numbers are known."""
        names = [column["name"] for column in batch["columns"]]
        for place, name in enumerate(names):
            if name in self._boxes and self._boxes[name].image in names:
                batch["columns"][place]["boxes"] = self._boxes[name].image
                for row in batch["rows"]:
                    cells = dict(zip(names, row["cells"], strict=True))
                    row["cells"][place] = self._boxes[name].of_batch(cells)
        numbers = [row["row"] for row in batch["rows"]]
        if None not in numbers:
            stored, kept = self._read(self.numbered(batch["split"]).at(numbers, progress), progress)
            self._recent = (batch["split"], kept)
            for row, of_row in zip(batch["rows"], stored, strict=True):
                row["stored"] = of_row
        return batch

    def _answer(self, job: Job[dict[str, Any]], seen: int = 0) -> dict[str, Any]:
        value = job.wait(lambda: job.version > seen)
        return {"value": value if job.version > seen else None, **job.described()}

    def numbered(self, split: str | None) -> NumberedRows:
        """The rows of a split, or of all files. Raises NotThereError for an unknown split."""
        if split not in (None, *self.splits):
            raise NotThereError(split)
        with self._lock:
            if split not in self._rows:
                self._rows[split] = NumberedRows(self.scanner, split)
            return self._rows[split]

    def page(self, split: str | None, choice: Choice, first: int, count: int) -> dict[str, Any]:
        """Rows as cells. An unreadable row has its problems instead. With a choice, the matching rows found
        so far.

        Raises SpecError for an invalid choice.
        """
        count = min(count, MOST_ROWS)
        rows = self.numbered(split)
        if not choice:
            job = self._pages.of(
                ("page", split, first, count),
                lambda progress, _: self._read(rows.page(first, count, progress), progress),
            )
            return {
                "first": first,
                "rows": self._remembered(split, job.wait(lambda: False)),
                "total": rows.total,
                **job.described(),
            }
        searching = self._selecting(split, choice)
        selection = searching.wait(
            lambda: count > 0 and searching.value is not None and len(searching.value) >= first + count
        )
        if selection is None:
            return {"first": first, "rows": [], "total": None, **searching.described()}
        answer = {
            "first": first,
            "rows": [],
            "total": len(selection),
            "skipped": selection.skipped,
            "ends": selection.ends,
            **searching.described(),
        }
        numbers = tuple(selection.numbers(first, count))
        if numbers:
            reading = self._pages.of(
                ("rows", split, numbers),
                lambda progress, _: self._read(rows.at(numbers, progress), progress),
            )
            answer["rows"] = self._remembered(split, reading.wait(lambda: False))
            answer["done"] = answer["done"] and reading.is_whole
        return answer

    def _read(self, page: list[PlacedRows], progress: JobProgress) -> ReadRows:
        """Rows as cells, and the rows themselves, unless they are large."""
        size = sum(rows.item.bytes for rows in page if isinstance(rows.item, RowBatch))
        kept = [
            replace(rows, item=rows.item.kept()) if isinstance(rows.item, RowBatch) else rows
            for rows in (page if size <= _MOST_RECENT else ())
        ]
        return list(self._shown(page, progress)), kept

    def _remembered(self, split: str | None, read: ReadRows | None) -> list[dict[str, Any]]:
        """The cells of rows. The rows are kept, since the page requests their images next."""
        if read is None:
            return []
        self._recent = (split, read[1])
        return read[0]

    def _row(self, split: str | None, number: int) -> RowBatch | UnreadableRecord:
        """A row: one of the kept rows, or read again. Raises NotThereError if there is no such row."""
        of_split, recent = self._recent
        page = [
            rows for rows in recent if split == of_split and rows.first <= number < rows.first + len(rows)
        ]
        for rows in page or self.numbered(split).page(number, 1):
            return rows.part(number, number + 1).item
        raise NotThereError(f"row {number}")

    def _selecting(self, split: str | None, choice: Choice) -> Job[Selection]:
        def select(progress: JobProgress, publish: Callable[[Selection], None]) -> Selection:
            selection = Selection(choice, self.numbered(split), self.scanner, self.columns)
            publish(selection)
            selection.find(progress)
            return selection

        return self._searches.of((split, choice), select)

    def _shown(self, page: list[PlacedRows], progress: JobProgress) -> Iterator[dict[str, Any]]:
        for rows in page:
            if isinstance(rows.item, UnreadableRecord):
                yield {"row": rows.first, "problems": _texts(rows.item.problems)}
                continue
            made, error = self._reader.made(rows.item)
            number = rows.first
            for batch in made:
                for index in range(len(batch)):
                    progress.advance(0)  # cancels the job if the page is no longer wanted
                    yield {"row": number, "cells": self._cells(batch, index)}
                    number += 1
            if error is not None:
                yield {"row": number, "problems": _texts(error.problems)}
                left = rows.part(number + 1, rows.first + len(rows))
                if number + 1 < rows.first + len(rows):
                    yield from self._shown([left], progress)

    def _cells(self, batch: Any, index: int, *, whole: bool = False) -> list[Any]:
        row = {name: batch.column(place)[index] for place, name in enumerate(self.columns)}
        return [
            self._boxes[name].cell(row)
            if name in self._boxes and value.is_valid
            else drawn(cell_of(value, is_picture=is_picture(self.columns[name])), whole=whole)
            for name, value in row.items()
        ]

    def record(self, split: str | None, row: int) -> dict[str, Any]:
        """A single row: all its features, its place, and its bytes. Raises NotThereError if there is no such
        row."""
        item = self._row(split, row)
        if isinstance(item, UnreadableRecord):
            return {
                "row": row,
                "problems": _texts(item.problems),
                "offset": item.offset,
                "record": item.number,
            }
        data = item.data(0)
        viewer = self._viewers["full" if len(data) <= _MOST_STORED else "short"]
        made, error = self._reader.made(item)
        number = int(item.numbers[0])
        return {
            "row": row,
            "file": str(item.path),
            "split": item.split,
            "record": int(item.records[0]),
            "row_of_block": None if item.block_rows is None else int(item.block_rows[0]),
            "offset": int(item.offsets[0]),
            "length": int(item.sizes[0]) if len(item.sizes) == 1 else len(data),
            "crc": f"{masked_crc([data]):08x}",
            "cells": self._cells(made[0], 0, whole=True) if made else None,
            "problems": [] if error is None else _texts(error.problems),
            "stored": {
                name: _in_json(value)
                for name, value in viewer.shown(item, 0).items()
                if name not in ("file", "record", "row")
            },
            "bytes": bytes(data[:_RAW]).hex(),
            "command": f"recordspec show {shlex.quote(str(item.path))} {number}",
        }

    def medium(self, split: str | None, row: int, column: str, place: list[int], *, large: bool) -> Media:
        """An image or an audio value of a row, re-encoded.

        Raises NotThereError if there is no such value, and RecordError if it cannot be decoded.
        """
        chosen, item = self.columns.get(column), self._row(split, row)
        if chosen is None or isinstance(item, UnreadableRecord):
            raise NotThereError(f"row {row}")
        made, error = ColumnReader([chosen], self.scanner.dataset.schema).made(item)
        if error is not None:
            raise error
        try:
            return medium(item_at(made[0].column(0)[0], place), large=large)
        except IndexError:
            raise NotThereError(f"item {place}") from None


def _in_json(value: Any) -> Any:
    """A value for JSON: NaN and infinities become text."""
    if isinstance(value, Mapping):
        return {name: _in_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_json(item) for item in value]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _texts(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]
