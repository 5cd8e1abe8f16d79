"""Kills a training run on JAX at random steps, and compares its weights with an undisturbed run:
`kill_rounds.py [ROUNDS] [BACKEND]`."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import numpy as np
from test_keras_data import RESUMED, run

import conftest
import recordspec as rs


def main(rounds: int, backend: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "s.yaml").write_text(conftest.SCHEMA)
        (home / "c.yaml").write_text(conftest.CONFIG)
        pipeline = rs.Pipeline.load(home / "c.yaml")
        pipeline.build([conftest.row(n) for n in range(240)], progress=False)
        program = RESUMED.replace("epochs=3", f"epochs={rounds}")
        assert run(home, backend, program, home / "whole", 0).returncode == 0
        expected = dict(np.load(home / "weights.npz"))
        chance, killed = random.Random(0), 0
        while killed < rounds:
            done = run(home, backend, program, home / "killed", chance.randint(1, 9))
            killed += 1
            if done.returncode == 0:
                raise SystemExit(f"the training ended after {killed} rounds")
        done = run(home, backend, program, home / "killed", 0)
        assert done.returncode == 0, done.stderr
        found = dict(np.load(home / "weights.npz"))
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, name)
        print(f"{backend}: the weights after {killed} kills are those of a training that nothing killed")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, sys.argv[2] if len(sys.argv) > 2 else "jax")
