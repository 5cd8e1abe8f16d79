"""The rows of the write benchmark, made from a seed, so that each process makes the same.

Values are in memory in their usual types: columns are NumPy arrays, and lists of arrays or bytes if rows
differ in length; a dict row has Python numbers and bytes, and arrays for lists.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["int", "float", "bytes"]
Columns = dict[str, Any]

VOCABULARY = 50_000


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Rows and their recordspec schema.

    Attributes:
        title: for the table.
        rows: the default number of rows.
        features: the lines of the schema.
        kinds: the kind of the values of each column.
        make: makes the columns of a number of rows.
        ways: the names of the measured variants; all if empty.
    """

    name: str
    title: str
    rows: int
    features: str
    kinds: dict[str, Kind]
    make: Callable[[int], Columns]
    ways: tuple[str, ...] = ()

    @property
    def schema(self) -> str:
        return f"schema: {self.name}\nfeatures:\n{self.features}"


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    """The rows as dicts."""
    listed = [values.tolist() if _is_scalar(values) else list(values) for values in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*listed, strict=True)]


def _is_scalar(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1


FLOATS = tuple(f"f{index:02}" for index in range(13))
STRINGS = tuple(f"c{index:02}" for index in range(26))


def criteo(rows: int, seed: int = 0) -> Columns:
    """A label, 13 float32 and 26 strings of 8 hexadecimal digits, as in the Criteo data."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, rows)
    floats = {name: rng.random(rows, np.float32) for name in FLOATS}
    strings = {name: _hexadecimal(rng.integers(0, 256, (rows, 4), np.uint8)) for name in STRINGS}
    return {"label": label, **floats, **strings}


def _hexadecimal(values: np.ndarray) -> np.ndarray:
    """Bytes `[rows, k]` as strings of 2k digits, dtype `S`."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    pairs = np.stack([digits[values >> 4], digits[values & 15]], axis=-1)
    return pairs.reshape(len(values), -1).copy().view(f"S{2 * values.shape[1]}")[:, 0]


def floats(rows: int) -> Columns:
    """784 float32 and a label, as in MNIST."""
    rng = np.random.default_rng(1)
    return {"pixels": rng.random((rows, 784), np.float32), "label": rng.integers(0, 10, rows)}


def tokens_fixed(rows: int) -> Columns:
    rng = np.random.default_rng(2)
    return {"tokens": rng.integers(0, VOCABULARY, (rows, 512))}


def tokens_var(rows: int) -> Columns:
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 1024, rows)
    return {"tokens": [rng.integers(0, VOCABULARY, length) for length in lengths]}


def texts(rows: int) -> Columns:
    """One text of 240 bytes."""
    rng = np.random.default_rng(5)
    return {"text": _hexadecimal(rng.integers(0, 256, (rows, 120), np.uint8))}


def jpegs(rows: int, distinct: int = 36) -> Columns:
    """JPEG files of about 100 KB; each row has its own copy, so that they do not fit into a cache."""
    rng = np.random.default_rng(4)
    files = [_jpeg(rng) for _ in range(min(distinct, rows))]
    return {"image": [bytes(bytearray(files[index % len(files)])) for index in range(rows)]}


def _jpeg(rng: np.random.Generator) -> bytes:
    from PIL import Image

    y, x = np.mgrid[:450, :600]
    smooth = np.stack([x * 0.3, y * 0.4, (x + y) * 0.2], axis=-1) + rng.integers(0, 60, 3)
    pixels = np.clip(smooth + rng.normal(0, 18, smooth.shape), 0, 255).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "jpeg", quality=85)
    return stream.getvalue()


DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="criteo",
            title="Criteo-like: 1 int64, 13 float32, 26 strings of 8 bytes",
            rows=200_000,
            features="  label: int64\n"
            + "".join(f"  {name}: float32\n" for name in FLOATS)
            + "".join(f"  {name}: string\n" for name in STRINGS),
            kinds={"label": "int", **dict.fromkeys(FLOATS, "float"), **dict.fromkeys(STRINGS, "bytes")},
            make=criteo,
        ),
        Dataset(
            name="floats",
            title="784 float32 and a label",
            rows=20_000,
            features="  pixels: {dtype: float32, shape: [784]}\n  label: int64\n",
            kinds={"pixels": "float", "label": "int"},
            make=floats,
        ),
        Dataset(
            name="tokens_fixed",
            title="512 int64 tokens",
            rows=20_000,
            features="  tokens: {dtype: int64, shape: [512]}\n",
            kinds={"tokens": "int"},
            make=tokens_fixed,
        ),
        Dataset(
            name="tokens_var",
            title="0 to 1023 int64 tokens",
            rows=20_000,
            features="  tokens: {kind: var_len, dtype: int64}\n",
            kinds={"tokens": "int"},
            make=tokens_var,
        ),
        Dataset(
            name="text",
            title="one text of 240 bytes",
            rows=100_000,
            features="  text: text\n",
            kinds={"text": "bytes"},
            make=texts,
        ),
        Dataset(
            name="jpegs",
            title="JPEG files of 100 KB, given as bytes, stored by `string`",
            rows=2_000,
            features="  image: string\n",
            kinds={"image": "bytes"},
            make=jpegs,
        ),
        Dataset(
            name="jpegs_checked",
            title="JPEG files by `kind: image`: each decoded to check it",
            rows=2_000,
            features="  image: {kind: image, encoding: jpeg, shape: [null, null, 3]}\n",
            kinds={"image": "bytes"},
            make=jpegs,
            ways=("columns", "arrow", "rows", "loop", "limit"),
        ),
    )
}
