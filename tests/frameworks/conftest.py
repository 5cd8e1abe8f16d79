"""A config for training with JAX, PyTorch and Keras."""

from __future__ import annotations

import numpy as np
import pytest

import recordspec as rs

SCHEMA = """
schema: s
features:
  row: int64
  x: {dtype: float32, shape: [4]}
  words: {kind: var_len, dtype: string}
  y: {kind: label, names: [left, right]}
"""
CONFIG = """
schema: s.yaml
data: data
write: {shards: 3, shuffle: null, splits: {train: 200, test: 40}}
read: {batch: 16, shuffle: {global: true, seed: 5}}
fit: {inputs: [row, x, words], targets: y, encode: {x: normalize, words: multi_hot}}
"""


def row(n: int) -> dict[str, object]:
    x = np.random.default_rng(n).normal(size=4).astype(np.float32)
    return {"row": n, "x": x, "words": ["a", "b", "c"][: n % 4], "y": int(x.sum() + n % 4 > 1)}


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    (folder / "s.yaml").write_text(SCHEMA)
    (folder / "c.yaml").write_text(CONFIG)
    rs.Pipeline.load(folder / "c.yaml").build([row(n) for n in range(240)], progress=False)
    return folder


@pytest.fixture
def pipeline(home):
    return rs.Pipeline.load(home / "c.yaml")


@pytest.fixture
def rows_of(pipeline):
    """The rows of each batch of a pass, as from `iterate`."""

    def rows(epoch: int, **options) -> list[list[int]]:
        batches = pipeline.iterate("train", start=(epoch, 0), **options)
        return [inputs["row"].tolist() for inputs, _ in batches]

    return rows


@pytest.fixture
def mixture(pipeline, tmp_path):
    """The pipeline and another dataset of its schema, with the dataset of a row as the target."""
    other = rs.Pipeline(pipeline.config, pipeline.schema, tmp_path)
    other.build([row(n) for n in range(1000, 1050)], progress=False)
    fit = {"inputs": ["row", "x"], "targets": "source"}
    named = {"home": pipeline, "other": other}
    return rs.mix(
        named, {"home": 3, "other": 2}, seed=5, end="all", name_as="source", fit=fit, read={"batch": 15}
    )
