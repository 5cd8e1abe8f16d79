"""What the page shows of files: their columns, rows, single records, images and sounds."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from recordspec.errors import Problem
from recordspec.inspect.query import Query
from recordspec.inspect.scan import Scanner, UnreadableRecord
from recordspec.inspect.scan_columns import ColumnReader, ScanColumn, columns_of
from recordspec.inspect.show import RecordViewer
from recordspec.schema.schema import Schema
from recordspec.store.expand import Files
from recordspec.viewer.cells import cell, item_at
from recordspec.viewer.media import Media, medium
from recordspec.viewer.rows import NumberedRows, PlacedRows
from recordspec.wire.framing import masked_crc

# Rows of a page.
MOST_ROWS = 100
# Bytes of a record of which the page shows the hexadecimal.
_RAW = 1 << 12


class ViewedFiles:
    """Files that were named when the viewer was started: it opens no others.

    Args:
        files: paths, folders or patterns.
        schema: of the rows; by default the one beside the files.

    Raises StoreError without files, or for blocks without a schema.
    """

    def __init__(self, files: Files, schema: Schema | None = None) -> None:
        self._files = files
        self.scanner = Scanner.of_rows(files, schema)
        self.splits = list(dict.fromkeys(self.scanner.splits.values()))
        self._rows: dict[str | None, NumberedRows] = {}
        self._lock = threading.Lock()

    @cached_property
    def columns(self) -> dict[str, ScanColumn]:
        """The columns by name."""
        return columns_of(self.scanner, is_decoded=False, binary=frozenset())

    @cached_property
    def _reader(self) -> ColumnReader:
        return ColumnReader(list(self.columns.values()), self.scanner)

    @cached_property
    def _viewer(self) -> RecordViewer:
        return RecordViewer(self._files, Query(spec=self.scanner.schema), style="full")

    def described(self) -> dict[str, Any]:
        """The files, their splits and their columns; and how many rows there are, if that is known."""
        return {
            "files": [str(path) for path in self.scanner.paths[:MOST_ROWS]],
            "count": len(self.scanner.paths),
            "splits": self.splits,
            "columns": [_column(name, column) for name, column in self.columns.items()],
            "total": self.numbered(None).total,
        }

    def numbered(self, split: str | None) -> NumberedRows:
        """The rows of a split, or of all files. Raises KeyError for a split that is none."""
        if split not in (None, *self.splits):
            raise KeyError(split)
        if split not in self._rows:
            self._rows[split] = NumberedRows(self.scanner, split)
        return self._rows[split]

    def page(self, split: str | None, first: int, count: int) -> dict[str, Any]:
        """Rows as cells; of one that cannot be read, why."""
        with self._lock:
            rows = self.numbered(split)
            shown = list(self._shown(rows.page(first, min(count, MOST_ROWS))))
        return {"first": first, "rows": shown, "total": rows.total, "passed": rows.passed}

    def _shown(self, page: list[PlacedRows]) -> Iterator[dict[str, Any]]:
        for rows in page:
            if isinstance(rows.item, UnreadableRecord):
                yield {"row": rows.first, "problems": _texts(rows.item.problems)}
                continue
            made, error = self._reader.made(rows.item)
            number = rows.first
            for batch in made:
                for index in range(len(batch)):
                    yield {"row": number, "cells": self._cells(batch, index)}
                    number += 1
            if error is not None:
                yield {"row": number, "problems": _texts(error.problems)}
                left = rows.part(number + 1, rows.first + len(rows))
                if number + 1 < rows.first + len(rows):
                    yield from self._shown([left])

    def _cells(self, batch: Any, index: int) -> list[Any]:
        return [
            cell(batch.column(place)[index], is_picture=_is_picture(column))
            for place, column in enumerate(self.columns.values())
        ]

    def record(self, split: str | None, row: int) -> dict[str, Any]:
        """A row on its own: all its features, its place, and its bytes. Raises IndexError without it."""
        with self._lock:
            page = self.numbered(split).page(row, 1)
        if not page:
            raise IndexError(row)
        item = page[0].item
        if isinstance(item, UnreadableRecord):
            return {
                "row": row,
                "problems": _texts(item.problems),
                "offset": item.offset,
                "record": item.number,
            }
        data = item.data(0)
        made, error = self._reader.made(item)
        number = int(item.numbers[0])
        return {
            "row": row,
            "file": str(item.path),
            "split": self.scanner.splits[item.path],
            "record": int(item.records[0]),
            "row_of_block": None if item.block_rows is None else int(item.block_rows[0]),
            "offset": int(item.offsets[0]),
            "length": int(item.sizes[0]) if len(item.sizes) == 1 else len(data),
            "crc": f"{masked_crc([data]):08x}",
            "cells": self._cells(made[0], 0) if made else None,
            "problems": [] if error is None else _texts(error.problems),
            "stored": {
                name: value
                for name, value in self._viewer.shown(item, 0).items()
                if name not in ("file", "record", "row")
            },
            "bytes": bytes(data[:_RAW]).hex(),
            "command": f"recordspec show {shlex.quote(str(item.path))} --record {number}",
        }

    def medium(self, split: str | None, row: int, column: str, place: list[int], *, large: bool) -> Media:
        """An image or a sound of a row, re-encoded.

        Raises KeyError, IndexError without it, RecordError if it cannot be decoded.
        """
        chosen = self.columns[column]
        with self._lock:
            page = self.numbered(split).page(row, 1)
        if not page or isinstance(page[0].item, UnreadableRecord):
            raise IndexError(row)
        made, error = ColumnReader([chosen], self.scanner).made(page[0].item)
        if error is not None:
            raise error
        return medium(item_at(made[0].column(0)[0], place), large=large)


def _column(name: str, column: ScanColumn) -> dict[str, Any]:
    described = {"name": name, "type": str(column.type).removeprefix("large_")}
    if column.features:
        feature = column.features[0].feature
        described |= {"kind": feature.kind}
    return described


def _is_picture(column: ScanColumn) -> bool:
    return len(column.features) == 1 and column.features[0].feature.pictures is not None


def _texts(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]
