"""The rows, their schema, and how they are written.

The values include edge cases: the limits of int64, NaN, subnormal and negative zero float32, empty lists and
strings, non-ASCII text, images of many sizes.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from reading import Row

LABELS = ("cat", "dog", "bird")
VECTOR = 4
SCHEMA = f"""\
schema: sample
features:
  id: int64
  vector: {{dtype: float32, shape: [{VECTOR}]}}
  name: string
  tokens: {{kind: var_len, dtype: int64}}
  label: {{kind: label, names: [{", ".join(LABELS)}]}}
  image: {{kind: image, shape: [null, null, 3], encoding: png}}
"""

# The options of `recordspec.write`, by dataset. The position of a row depends only on seed and key.
SAME: dict[str, Any] = {"split": {"train": 3, "test": 1}, "key": "id", "shards": 2, "shuffle": 17}
DATASETS: dict[str, dict[str, Any]] = {
    "rows": SAME,
    "gzip": {**SAME, "compression": "gzip"},
    "blocks": {**SAME, "layout": {"blocks": 64}},
}
SPLITS = tuple(SAME["split"])
PARSE = "parse.py"  # beside the datasets: the output of `recordspec explain --python`

_INTEGERS = (-(1 << 63), (1 << 63) - 1, -1, 0, 1, 127, 128)
_FLOATS = np.array([-0.0, np.nan, np.inf, -np.inf, 1e-45, 3.4028235e38, 1.1754944e-38, 0.1], np.float32)
_NAMES = ("", "plain", "Grüße", "記録", "line\nand\ttab", "🦆" * 100)


def rows(count: int) -> list[Row]:
    """Random rows from a seed; images as pixels, uint8 `[h, w, 3]`, labels as indices."""
    rng = np.random.default_rng(5)
    return [_row(index, rng) for index in range(count)]


def _row(index: int, rng: np.random.Generator) -> Row:
    bits = int(rng.integers(1, 63))
    vector = np.where(rng.random(VECTOR) < 0.2, rng.choice(_FLOATS, VECTOR), rng.normal(0, 1e3, VECTOR))
    return {
        "id": _INTEGERS[index] if index < len(_INTEGERS) else index * 1_000_003,
        "vector": vector.astype(np.float32),
        "name": f"{rng.choice(_NAMES)}" if index % 3 else f"row {index}",
        "tokens": rng.integers(-(1 << bits), 1 << bits, index % 7),
        "label": int(rng.integers(len(LABELS))),
        "image": rng.integers(0, 256, (*rng.integers(1, 12, 2), 3), np.uint8),
    }


def given(row: Row) -> Row:
    """A row as it is passed to recordspec: the image as the bytes of a PNG file, the label by its name."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(row["image"]).save(stream, "png")
    return {**row, "image": stream.getvalue(), "label": LABELS[row["label"]]}


def files_of(folder: Path, split: str) -> list[str]:
    """The shards of a split, in order."""
    return [str(path) for path in sorted(folder.glob(f"{split}-*-of-*.tfrecord*"))]


def plain(row: Row) -> Row:
    """A row as exact JSON: float32 as the same number, bytes as text."""
    return {name: _plain(row[name]) for name in sorted(row)}


def _plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return value.decode() if isinstance(value, bytes) else value
