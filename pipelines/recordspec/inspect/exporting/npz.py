"""Columns as NumPy arrays in one file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.exporting.forms import Columns, Form, Forms
from recordspec.inspect.looking.values import Values
from recordspec.wire.strings import Ints, Strings

Array = npt.NDArray[Any]

# Arrays are written whole, so that all of them are in memory at the end.
MOST_BYTES = 2 << 30
_LENGTHS = "/lengths"
_FILE = ".npy"
_LONGEST_NAME = (1 << 16) - 1  # in an archive


class Npz:
    """Holds all values, and writes them at the end.

    Of a column of single values that is an array `[rows]`, of lists of k `[rows, k]`. Of lists that vary, and
    where some are missing, it is the values end to end, and under `<name>/lengths` how many each row has.
    """

    def __init__(self, path: Path, forms: Forms) -> None:
        self._path = path
        self._parts: dict[str, list[Values]] = {name: [] for name in forms}
        self._widest: dict[str, int] = {}

    @staticmethod
    def check(forms: Forms) -> None:
        """Raises SpecError for columns that are no arrays of numbers or text, or whose names are not kept."""
        hint = "choose other columns, or write parquet"
        problems = [
            Problem(path=(name,), expected=expected, got=got, hint=hint)
            for name, form in forms.items()
            for expected, got in [
                ("numbers or text for npz", _not_held(form)),
                ("a name for npz", _no_name(name)),
            ]
            if got
        ]
        if problems:
            raise SpecError(problems)

    def write(self, columns: Columns, rows: int) -> None:
        for name, parts in self._parts.items():
            values = columns[name]
            assert isinstance(values, Values)  # steps are refused
            if isinstance(values.flat, Strings):
                _check_ends(name, values.flat)
                self._widest[name] = max(self._widest.get(name, 0), int(values.flat.sizes.max(initial=0)))
            parts.append(values)
        if sum(map(self._size, self._parts)) > MOST_BYTES:
            self._parts.clear()
            hint = "choose fewer columns or a limit, or write parquet"
            expected = f"at most {MOST_BYTES >> 30} GiB of values for npz, which are in memory together"
            raise RecordError(Problem(path=("out",), expected=expected, got="more", hint=hint))

    def _size(self, name: str) -> int:
        """Bytes in memory; NumPy's texts all take as much as the longest, 4 a character."""
        texts = 4 * self._widest.get(name, 0)
        return sum(
            len(part.flat) * texts if isinstance(part.flat, Strings) else getattr(part.flat, "nbytes", 0)
            for part in self._parts[name]
        )

    def finish(self) -> None:
        taken = set(self._parts)
        with zipfile.ZipFile(self._path, "w") as file:
            for name in list(self._parts):
                for key, array in _arrays(name, self._parts.pop(name)).items():
                    if key != name and key in taken:
                        raise _taken(key)
                    with file.open(key + _FILE, "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)

    def close(self) -> None:
        """The file is open only while it is written."""


def _not_held(form: Form) -> str:
    return "lists of steps" if form.steps else "" if form.text else "bytes that are no text"


def _no_name(name: str) -> str:
    """What is wrong with the name of a column, which becomes that of a file in an archive."""
    if "\0" in name:
        return "one with a zero, which ends it"
    if name.endswith(_FILE):
        return f"one that ends in {_FILE}, which NumPy takes off"
    length = len((name + _LENGTHS + _FILE).encode("utf-8", "surrogateescape"))
    return "one that is too long" if length > _LONGEST_NAME else ""


def _taken(key: str) -> SpecError:
    hint = "choose one of the two columns, or write parquet"
    got = "that of a column"
    return SpecError(Problem(path=(key,), expected="a name for the lengths of lists", got=got, hint=hint))


def _check_ends(name: str, texts: Strings) -> None:
    """Raises RecordError for a text that ends in a zero, which NumPy's texts lose."""
    stops = texts.offsets[1:][texts.sizes > 0]
    if not texts.buffer[stops - 1].all():
        expected = "texts that end in no zero for npz"
        raise RecordError(Problem(path=(name,), expected=expected, got="one that does"))


def _arrays(name: str, parts: list[Values]) -> dict[str, Array]:
    flat = _flat(parts)
    lengths: Ints = np.concatenate([part.lengths for part in parts]) if parts else np.zeros(0, np.int64)
    if not len(lengths) or bool((lengths == lengths[0]).all()):
        each = int(lengths[0]) if len(lengths) else 1
        return {name: flat if each == 1 else flat.reshape(len(lengths), each)}
    return {name: flat, name + _LENGTHS: lengths}


def _flat(parts: list[Values]) -> Array:
    arrays = [_array(part.flat) for part in parts if part.flat is not None]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.float32)


def _array(flat: Array | Strings) -> Array:
    return np.array([text.decode() for text in flat], "U") if isinstance(flat, Strings) else flat
