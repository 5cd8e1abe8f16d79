"""PyTorch's DataLoader over arrays that are mapped into memory, and over JPEG files, which Pillow decodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, default_collate

from feeding_speed.data import Fed
from feeding_speed.ways import Begin


class FileRows(Dataset):  # type: ignore[misc]
    """Rows by number."""

    def __init__(self, fed: Fed, folder: Path) -> None:
        self._images = folder if fed.inputs == ["image"] else None
        self._columns = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}

    def __len__(self) -> int:
        return len(self._columns["label"])

    def __getitem__(self, number: int) -> Any:
        label = int(self._columns["label"][number])
        if self._images is not None:
            with Image.open(self._images / f"{number:06}.jpg") as image:
                return {"image": torch.from_numpy(np.array(image))}, label
        if "tokens" in self._columns:
            ends = self._columns["tokens_ends"]
            start = int(ends[number - 1]) if number else 0
            return {"tokens": torch.from_numpy(self._columns["tokens"][start : ends[number]].copy())}, label
        row = {name: torch.from_numpy(self._columns[name][number].copy()) for name in ("dense", "ids")}
        return row, label


def loader(fed: Fed, folder: Path, workers: int = 0) -> Begin:
    batches = DataLoader(
        FileRows(fed, folder / "files"),
        batch_size=fed.batch,
        shuffle=True,
        collate_fn=padded if fed.summed == "tokens" else default_collate,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    return lambda: batches


def workers(fed: Fed, folder: Path) -> Begin:
    return loader(fed, folder, workers=2)


def padded(rows: list[Any]) -> Any:
    """A batch of rows of tokens and labels."""
    tokens = pad_sequence([row["tokens"] for row, _ in rows], batch_first=True)
    return {"tokens": tokens}, torch.tensor([label for _, label in rows])
