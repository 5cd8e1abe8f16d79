"""The batches of recordspec's pipeline."""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

import recordspec as rs
from feeding_speed.data import Fed
from feeding_speed.ways import Begin


def _pipeline(folder: Path) -> rs.Pipeline:
    return rs.Pipeline.load(folder / "c.yaml")


def dataset(fed: Fed, folder: Path) -> Begin:
    """Each iteration is the next pass."""
    batches = _pipeline(folder).dataset("train")
    return lambda: batches


def iterate(fed: Fed, folder: Path) -> Begin:
    pipeline, epochs = _pipeline(folder), count()
    assert "tensorflow" not in sys.modules
    return lambda: pipeline.iterate("train", start=(next(epochs), 0))


def keras_dataset(fed: Fed, folder: Path) -> Begin:
    os.environ["KERAS_BACKEND"] = "jax"
    batches = _pipeline(folder).keras_dataset("train")
    return lambda: (batches[number] for number in range(len(batches)))


def torch_dataset(fed: Fed, folder: Path) -> Begin:
    from torch.utils.data import DataLoader

    loader = DataLoader(_pipeline(folder).torch_dataset("train"), batch_size=None)
    return lambda: loader


def torch_workers(fed: Fed, folder: Path) -> Begin:
    """Two worker processes, which live as long as the loader."""
    from torch.utils.data import DataLoader

    batches, epochs = _pipeline(folder).torch_dataset("train"), count()
    loader = DataLoader(batches, batch_size=None, num_workers=2, persistent_workers=True)

    def begin() -> Any:
        batches.set_epoch(next(epochs))
        return loader

    return begin


def jax_dataset(fed: Fed, folder: Path) -> Begin:
    batches = _pipeline(folder).jax_dataset("train")
    return lambda: batches
