"""The same rows in the files of each variant: records of recordspec, arrays and JPEG files, an Arrow dataset
of Hugging Face, and ArrayRecord."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

Rows = dict[str, Any]

SEED = 5

# Of a file of ArrayRecord.
_RECORDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Fed:
    """Rows for a training.

    Attributes:
        rows: the default number of rows.
        batch: rows of a batch.
        step: seconds of a step, during which the processor is idle, as when a GPU works.
        features: of the schema, in YAML; the target is `label`.
        make: makes the columns of a number of rows.
        summed: the input whose sum says whether all rows were read.
    """

    title: str
    rows: int
    batch: int
    step: float
    features: str
    make: Callable[[int], Rows]
    summed: str

    @property
    def schema(self) -> str:
        return f"schema: s\nfeatures:\n{self.features}  label: int64\n"

    @property
    def inputs(self) -> list[str]:
        return [line.split(":")[0].strip() for line in self.features.splitlines()]

    @property
    def config(self) -> str:
        """For batches in the order of a permutation of all rows."""
        return (
            "schema: s.yaml\ndata: rows\nwrite: {splits: {train: 100}}\n"
            f"read: {{batch: {self.batch}, shuffle: {{global: true, seed: {SEED}}}}}\n"
            f"fit: {{inputs: [{', '.join(self.inputs)}], targets: label}}\n"
        )


def _table(rows: int) -> Rows:
    rng = np.random.default_rng(0)
    return {
        "dense": rng.random((rows, 13), np.float32),
        "ids": rng.integers(0, 50_000, (rows, 26)),
        "label": rng.integers(0, 2, rows),
    }


def _tokens(rows: int) -> Rows:
    rng = np.random.default_rng(0)
    lengths = rng.integers(16, 257, rows)
    flat = rng.integers(1, 50_000, lengths.sum())
    return {
        "tokens": np.split(flat, np.cumsum(lengths)[:-1]),
        "label": rng.integers(0, 2, rows),
    }


def _images(rows: int) -> Rows:
    """JPEG files of 224 by 224 pixels, of two photographs."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    rng, photos, images = np.random.default_rng(0), load_sample_images().images, []
    for index in range(rows):
        photo = photos[index % len(photos)]
        top, left = (int(rng.integers(0, size - 224)) for size in photo.shape[:2])
        stream = io.BytesIO()
        Image.fromarray(photo[top : top + 224, left : left + 224]).save(stream, "jpeg", quality=90)
        images.append(stream.getvalue())
    return {"image": images, "label": rng.integers(0, 10, rows)}


FED = {
    "table": Fed(
        title="a table of 13 floats and 26 ids",
        rows=100_000,
        batch=256,
        step=0.004,
        features="  dense: {dtype: float32, shape: [13]}\n  ids: {dtype: int64, shape: [26]}\n",
        make=_table,
        summed="ids",
    ),
    "tokens": Fed(
        title="16 to 256 tokens, padded",
        rows=50_000,
        batch=128,
        step=0.004,
        features="  tokens: {kind: var_len, dtype: int64, as: dense}\n",
        make=_tokens,
        summed="tokens",
    ),
    "images": Fed(
        title="JPEG of 224 by 224 pixels",
        rows=2_000,
        batch=64,
        step=0.060,
        features="  image: {kind: image, encoding: jpeg, shape: [224, 224, 3]}\n",
        make=_images,
        summed="image",
    ),
}


def write(fed: Fed, rows: int, folder: Path) -> None:
    """Writes the rows for every variant."""
    import recordspec as rs

    columns = fed.make(rows)
    folder.mkdir()
    (folder / "s.yaml").write_text(fed.schema)
    (folder / "c.yaml").write_text(fed.config)
    rs.Pipeline.load(folder / "c.yaml").build(columns, progress=False)
    for name, values in columns.items():
        _write_files(name, values, folder / "files")
    _write_arrow(columns, folder / "arrow")
    _write_array_record(columns, folder / "array_record")


def _write_files(name: str, values: Any, folder: Path) -> None:
    """A column as an array, as an array of all items and one of where each row ends, or as a file a row."""
    folder.mkdir(exist_ok=True)
    if isinstance(values, np.ndarray):
        np.save(folder / f"{name}.npy", values)
    elif isinstance(values[0], bytes):
        for number, image in enumerate(values):
            (folder / f"{number:06}.jpg").write_bytes(image)
    else:
        np.save(folder / f"{name}.npy", np.concatenate(values))
        np.save(folder / f"{name}_ends.npy", np.cumsum([len(value) for value in values]))


def _write_arrow(columns: Rows, folder: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    features: dict[str, Any] = {"label": datasets.Value("int64")}
    for name, values in columns.items():
        if name == "image":
            features[name] = datasets.Image()
        elif name != "label":
            length = values.shape[1] if isinstance(values, np.ndarray) else -1
            features[name] = datasets.List(datasets.Value(values[0].dtype.name), length=length)
    made = {
        name: [{"bytes": value, "path": None} for value in values] if name == "image" else list(values)
        for name, values in columns.items()
    }
    datasets.Dataset.from_dict(made, datasets.Features(features)).save_to_disk(folder)


def _write_array_record(columns: Rows, folder: Path) -> None:
    """The bytes of a row's values one after the other; a group of one is what its readers of rows by number
    want, and of a file of 100,000 records they take six times as long as of files of 10,000."""
    from array_record.python.array_record_module import ArrayRecordWriter

    folder.mkdir()
    records = _records(columns)
    for number in range(-(-len(columns["label"]) // _RECORDS)):
        writer = ArrayRecordWriter(str(folder / f"{number:03}"), "group_size:1")
        for record in islice(records, _RECORDS):
            writer.write(record)
        writer.close()


def _records(columns: Rows) -> Iterator[bytes]:
    for row in zip(*columns.values(), strict=True):
        yield b"".join(value if isinstance(value, bytes) else value.tobytes() for value in row)
