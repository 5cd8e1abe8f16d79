"""Rows with a feature of each sort that can be encoded, and a config that encodes them."""

from __future__ import annotations

import numpy as np

SCHEMA = """\
schema: s
features:
  company: {dtype: string, default: ""}
  fare: {dtype: float32, default: 0.0, with_missing: true}
  day: int64
  vec: {dtype: float32, shape: [3]}
  tags: {kind: var_len, dtype: string}
  ids: {kind: var_len, dtype: int64}
  two: {dtype: string, shape: [2]}
  kind: {kind: label, names: [a, b, c]}
  photo: {kind: image, resize: [4, 4]}
  w: float32
  y: {kind: label, names: [n, p]}
"""
ENCODE = {
    "company": "one_hot",
    "fare": "normalize",
    "day": "{as: discretize, bins: 5}",
    "vec": "normalize",
    "tags": "multi_hot",
    "ids": "index",
    "two": "{as: count, max_tokens: 3}",
    "kind": "one_hot",
    "photo": "normalize",
}
CONFIG = f"""\
schema: s.yaml
data: data
write: {{splits: {{train: 8, test: 2}}, shuffle: {{seed: 1}}, shards: 2}}
read: {{batch: 32}}
fit:
  inputs: [company, fare, fare_missing, day, vec, tags, ids, two, kind, photo, tags_mask]
  targets: y
  weights: w
  encode: {{{", ".join(f"{name}: {how}" for name, how in ENCODE.items())}}}
"""


def rows(count: int) -> list[dict]:
    draw = np.random.default_rng(0)
    made = [
        {
            "company": draw.choice(["x", "y", "", "[UNK]"]),
            "fare": float(draw.normal(5, 3)),
            "day": int(draw.integers(-5, 30)),
            "vec": (draw.normal(size=3) * [1, 2, 3] + [0, 5, 9]).astype(np.float32),
            "tags": list(draw.choice(list("pqr"), draw.integers(0, 4))),
            "ids": draw.integers(-3, 5, draw.integers(0, 4)).tolist(),
            "two": list(draw.choice(list("stuv"), 2)),
            "kind": int(draw.integers(3)),
            "photo": draw.integers(0, 255, (*draw.integers(2, 9, 2), 3), np.uint8),
            "w": 1.0,
            "y": int(draw.integers(2)),
        }
        for _ in range(count)
    ]
    for row in made[::7]:
        del row["fare"]
    return made
