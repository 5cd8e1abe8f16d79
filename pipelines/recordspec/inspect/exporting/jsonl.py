"""Columns as lines of JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from recordspec.inspect.exporting.forms import Columns, Form, Forms
from recordspec.inspect.looking.values import StepValues, Values, plain
from recordspec.wire.strings import Ints, Mask


class JsonLines:
    """Writes an object a row. Bytes that are not all text are in base64."""

    def __init__(self, path: Path, forms: Forms) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._forms = forms

    @staticmethod
    def check(forms: Forms) -> None:
        """There is nothing that JSON does not hold."""

    def write(self, columns: Columns, rows: int) -> None:
        listed = [cells(columns[name], form) for name, form in self._forms.items()]
        for row in zip(*listed, strict=True) if listed else repeat((), rows):
            line = json.dumps(dict(zip(self._forms, row, strict=True)), ensure_ascii=False)
            self._file.write(f"{line}\n")

    def finish(self) -> None:
        """There is nothing left to write."""

    def close(self) -> None:
        self._file.close()


def cells(held: Values | StepValues, form: Form) -> Iterator[Any]:
    """The value of each row: a number, a text, a list of them, or None of what is missing."""
    if not isinstance(held, StepValues):
        return _cells(held, form)
    return _grouped(_cells(held.values, form), held.present, held.counts)


def _cells(values: Values, form: Form) -> Iterator[Any]:
    flat = iter(_plain(values, form))
    if not form.single:
        return _grouped(flat, values.present, values.lengths)
    return (next(flat) if present else None for present in values.present.tolist())


def _grouped(values: Iterator[Any], present: Mask, counts: Ints) -> Iterator[list[Any] | None]:
    for there, count in zip(present.tolist(), counts.tolist(), strict=True):
        yield list(islice(values, count)) if there else None


def _plain(values: Values, form: Form) -> list[Any]:
    flat = plain(values.flat)
    if form.kind != "bytes":
        return flat
    return [one.decode() for one in flat] if form.text else [base64.b64encode(one).decode() for one in flat]
