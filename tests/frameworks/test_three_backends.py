"""The journeys csv, images and tokens on TensorFlow, JAX and PyTorch, of one config: the same batches, and the same
losses after the same steps. What JAX trained is served by TensorFlow."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if not all(map(find_spec, ("keras", "jax", "torch"))):
    pytest.skip("JAX or PyTorch is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[2]
TENSORFLOW = ROOT / ".venvs/tensorflow-latest/bin/python"
PYTHONS = {"jax": sys.executable, "torch": sys.executable, "tensorflow": TENSORFLOW}
RIDES = """
schema: rides.yaml
data: data
write: {source: {csv: raw/rides.csv}, splits: {train: 80, test: 20}, shuffle: {seed: 1}}
read: {batch: 64}
fit:
  inputs: [pickup, company, fare, payment]
  targets: tipped
  encode: {pickup: normalize, company: one_hot, fare: normalize, payment: one_hot}
"""
RAW = {
    "csv": ("rides", "infer raw/rides.csv --out rides.yaml"),
    "images": ("shapes", "infer raw/shapes --out shapes.yaml --config config.yaml"),
    "tokens": ("reviews", "infer raw/reviews.parquet --out reviews.yaml --config config.yaml"),
}


def run(*command: object, cwd: Path, **more: str) -> None:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, env={**os.environ, **more}
    )
    assert done.returncode == 0, done.stdout + done.stderr


def assert_same(one, other, *, are_images: bool) -> None:
    assert one.keys() == other.keys()
    for key in one:
        assert (one[key].dtype, one[key].shape) == (other[key].dtype, other[key].shape)
        if key == "inputs" and are_images:  # JPEG: see docs/random-access.md
            apart = np.abs(one[key].astype(float) - other[key])
            assert apart.mean() < 1
            assert apart.max() <= 12
        else:
            np.testing.assert_array_equal(one[key], other[key])


@pytest.mark.long
@pytest.mark.parametrize("name", RAW)
def test_one_config_trains_alike(name, tmp_path):
    data, infer = RAW[name]
    recordspec = [sys.executable, "-m", "recordspec"]
    run(sys.executable, ROOT / "tests/journeys/journey_data.py", data, cwd=tmp_path)
    run(*recordspec, *infer.split(), cwd=tmp_path)
    if name == "csv":
        (tmp_path / "config.yaml").write_text(RIDES)
    if name == "images":
        schema = tmp_path / "shapes.yaml"
        schema.write_text(schema.read_text().replace("encoding: jpeg", "encoding: jpeg, resize: [32, 32]"))
    run(*recordspec, "build", "config.yaml", cwd=tmp_path)
    script, batches, losses = Path(__file__).with_name("three_backends.py"), {}, {}
    for backend, python in PYTHONS.items():
        if not Path(python).exists():
            continue
        folder = tmp_path / backend
        folder.mkdir()
        run(python, script, name, folder, cwd=tmp_path, KERAS_BACKEND=backend)
        files = sorted(folder.glob("*.npz"), key=lambda path: int(path.stem))
        batches[backend] = [dict(np.load(path, allow_pickle=False)) for path in files]
        losses[backend] = np.load(folder / "losses.npy")
    assert len(batches) >= 2
    first = batches.pop("jax")
    for others in batches.values():
        for one, other in zip(first, others, strict=True):
            assert_same(one, other, are_images=name == "images")
    if "tensorflow" in losses:
        powers = np.exp(np.load(tmp_path / "jax/logits.npy"))
        expected, served = powers / powers.sum(1, keepdims=True), np.load(tmp_path / "tensorflow/served.npy")
        np.testing.assert_allclose(served, expected, atol=0.03 if name == "images" else 2e-6)
    whole = losses.pop("jax")
    assert len(whole) > 10
    for other in losses.values():
        np.testing.assert_allclose(other, whole, rtol=1e-2 if name == "images" else 2e-6)
