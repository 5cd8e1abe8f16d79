"""Hugging Face datasets over its Arrow files, in a random order, with the format of NumPy or of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from feeding_speed.data import Fed
from feeding_speed.ways import Batch, Begin


def arrays(fed: Fed, folder: Path) -> Begin:
    """Batches of NumPy arrays."""
    rows, seeds = datasets.load_from_disk(folder / "arrow").with_format("numpy"), count()

    def begin() -> Iterator[Batch]:
        for batch in rows.shuffle(seed=next(seeds)).iter(fed.batch):
            yield {name: _stacked(batch[name]) for name in fed.inputs}, batch["label"]

    return begin


def _stacked(values: Any) -> Any:
    """Rows of one length as they are, others padded."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values
    padded = np.zeros((len(values), max(map(len, values))), values[0].dtype)
    for row, value in zip(padded, values, strict=True):
        row[: len(value)] = value
    return padded


def loader(fed: Fed, folder: Path) -> Begin:
    """PyTorch's DataLoader over a dataset of tensors."""
    from torch.utils.data import DataLoader, default_collate

    from feeding_speed.torch_files import padded

    rows = datasets.load_from_disk(folder / "arrow").with_format("torch")
    collate = padded if fed.summed == "tokens" else default_collate

    def collated(some: list[dict[str, Any]]) -> Any:
        return collate([({name: row[name] for name in fed.inputs}, row["label"]) for row in some])

    batches = DataLoader(rows, batch_size=fed.batch, shuffle=True, collate_fn=collated)
    return lambda: batches
