"""What the columns of a table hold: of Parquet as its types say, of CSV as all cells of text tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.writing.sources import cells

# Texts of no more different values may be classes.
_MOST_CLASSES = 20

_INT64 = range(-(1 << 63), 1 << 63)
_SURELY_INT64 = "^[-+]?[0-9]{1,18}$"
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


@dataclass
class Column:
    """What was seen of a column.

    Attributes:
        type: Arrow's; of a CSV file's, string.
        in_text: whether its values are cells of text, of a CSV file.
        nulls: rows without a value.
        empty: cells with a quoted text of nothing in them, which is no number.
        values: the different texts, while they are few.
        rounded: the first whole number that float32 does not hold, an identifier perhaps.
        large: whether float32 does not hold a number at all, or int64 a whole one.
        gaps: whether a list has an item that is missing.
    """

    name: str
    type: Any
    in_text: bool
    rows: int = 0
    nulls: int = 0
    empty: int = 0
    values: set[str] | None = field(default_factory=set)
    rounded: float | None = None
    large: bool = False
    gaps: bool = False
    _dtypes: tuple[str, ...] = ("int64", "float64", "bool")

    def add(self, column: Any) -> None:
        """The next rows: an Arrow array."""
        import pyarrow.types as types

        self.rows += len(column)
        self.nulls += column.null_count
        some = column.drop_null()
        if types.is_dictionary(column.type):
            some = some.dictionary_decode()
        if types.is_string(some.type) or types.is_large_string(some.type):
            self._add_texts(some)
        elif types.is_floating(some.type):
            self._add_numbers(some.to_numpy(zero_copy_only=False).astype(np.float64))
        elif types.is_uint64(some.type):
            self.large |= bool((some.to_numpy() > _INT64[-1]).any())
        elif is_list(some.type):
            self.gaps |= some.flatten().null_count > 0

    @property
    def dtype(self) -> str:
        """Of cells of text: int64, float64 or bool if all of them are, else string."""
        return self._dtypes[0] if self._dtypes and self.rows > self.nulls + self.empty else "string"

    @property
    def narrow(self) -> str:
        """What numbers are first thought to be."""
        import pyarrow.types as types

        is_float = self.dtype == "float64" if self.in_text else types.is_floating(self.type)
        return "float32" if is_float else "int64"

    @property
    def missing(self) -> int:
        """Rows without a value, where an empty text is none."""
        return self.nulls + (self.empty if self.in_text and self.dtype != "string" else 0)

    def _add_texts(self, some: Any) -> None:
        import pyarrow.compute as compute

        if self.values is not None:
            self.values |= set(compute.unique(some).to_pylist()[: _MOST_CLASSES + 1])
            self.values = None if len(self.values) > _MOST_CLASSES else self.values
        if not self.in_text:
            return
        filled = some.filter(compute.greater(compute.binary_length(some), 0))
        self.empty += len(some) - len(filled)
        self._dtypes = tuple(dtype for dtype in self._dtypes if cells.are(filled, dtype))
        if "int64" in self._dtypes and not _in_int64(filled):
            self._dtypes, self.large = (), True
        elif "float64" in self._dtypes:
            self._add_numbers(np.array(filled.to_pylist(), np.float64))

    def _add_numbers(self, numbers: npt.NDArray[np.float64]) -> None:
        finite = numbers[np.isfinite(numbers)]
        self.large |= bool((abs(finite) > _LARGEST_FLOAT32).any())
        whole = finite[(np.trunc(finite) == finite) & (abs(finite) <= _LARGEST_FLOAT32)]
        lost = whole[whole.astype(np.float32) != whole]  # float32 has all up to 2^24
        if self.rounded is None and len(lost):
            self.rounded = float(lost[0])


def is_list(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _in_int64(some: Any) -> bool:
    """Whether whole numbers, in cells of text, are such as int64 holds."""
    import pyarrow.compute as compute

    others = some.filter(compute.invert(compute.match_substring_regex(some, _SURELY_INT64)))
    return all(int(text) in _INT64 for text in others.to_pylist())
