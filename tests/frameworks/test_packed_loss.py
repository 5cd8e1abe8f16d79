"""The loss of a packed row is that of the row alone, on TensorFlow, JAX and PyTorch: no row sees another."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs

if not all(map(find_spec, ("keras", "jax", "torch"))):
    pytest.skip("JAX or PyTorch is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[2]
TENSORFLOW = ROOT / ".venvs/tensorflow-latest/bin/python"
PYTHONS = {"jax": sys.executable, "torch": sys.executable, "tensorflow": TENSORFLOW}
CONFIG = """
schema: s.yaml
data: data
read: {batch: 8, shuffle: {global: true}, pack: 48}
fit: {inputs: tokens, targets: tokens_next}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    (folder / "s.yaml").write_text(
        "schema: s\nfeatures: {tokens: {kind: ragged, dtype: int64, shape: [null]}}\n"
    )
    (folder / "c.yaml").write_text(CONFIG)
    rng = np.random.default_rng(1)
    rows = [{"tokens": rng.integers(0, 90, rng.integers(1, 40))} for _ in range(60)]
    rs.Pipeline.load(folder / "c.yaml").build(rows)
    return folder / "c.yaml"


@pytest.mark.parametrize("backend", PYTHONS)
def test_the_loss_of_packs_is_that_of_the_rows_alone(backend, config):
    if not Path(PYTHONS[backend]).exists():
        pytest.skip("no environment of TensorFlow")
    script = Path(__file__).with_name("packed_loss.py")
    more = {"KERAS_BACKEND": backend}
    done = subprocess.run(
        [PYTHONS[backend], script, config], capture_output=True, text=True, env={**os.environ, **more}
    )
    assert done.returncode == 0, done.stderr
    name, packed, alone = done.stdout.split()[-3:]
    assert name == backend
    assert abs(float(packed) - float(alone)) < 1e-6
