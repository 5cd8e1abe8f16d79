"""Rows of lists of several lengths, in every layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import recordspec as rs

SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  n: int64
  words: {kind: var_len, dtype: int64}
  other: {dtype: float32, default: 1.0}
  text: {kind: text}
"""
)
ROWS = 500


def numbers(dataset) -> list[int]:
    return [number for batch in dataset for number in batch["n"].numpy().reshape(-1).tolist()]


def written(folder: Path, layout: str | dict[str, int]) -> Path:
    """A dataset of 3 shards."""
    rows = {
        "n": np.arange(ROWS),
        "words": [[index] * (index % 40) for index in range(ROWS)],
        "other": np.arange(ROWS, dtype=np.float32),
        "text": [f"text {index}" for index in range(ROWS)],
    }
    rs.write(rows, SCHEMA, folder, shards=3, layout=layout)
    return folder
