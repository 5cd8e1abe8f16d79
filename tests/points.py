"""A config of points, its schema and its rows."""

from __future__ import annotations

from pathlib import Path

import recordspec as rs

SCHEMA = """\
schema: points
features:
  id: int64
  x: float32
  words: {kind: var_len, dtype: string}
  gaps: {kind: sparse, dtype: float32, size: 4}
  weight: {dtype: float32, default: 1.0}
  label: {kind: label, names: [a, b]}
"""
CONFIG = """\
schema: points.yaml
data: data/points
write:
  key: id
  splits: {train: 3, test: 1}
  shards: 2
  shuffle: {seed: 1}
read:
  batch: {size: 16}
  shuffle: {buffer: 100, seed: 1}
fit:
  inputs: [x, words, gaps]
  targets: label
  weights: weight
"""
ROWS = [
    {
        "id": i,
        "x": i / 2,
        "words": ["w"] * (i % 3),
        "gaps": ([i % 4], [1.0]),
        "weight": i + 1.0,
        "label": i % 2,
    }
    for i in range(200)
]


def load(folder: Path, config: str = CONFIG) -> rs.Pipeline:
    (folder / "points.yaml").write_text(SCHEMA)
    (folder / "config.yaml").write_text(config)
    return rs.Pipeline.load(folder / "config.yaml")
