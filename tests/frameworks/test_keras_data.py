"""`Pipeline.keras_dataset` in `fit` on JAX and PyTorch (`_keras`), and `Backup` there: the same weights as one batch
after the other, and after a training was killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

if not all(map(find_spec, ("keras", "jax", "torch"))):
    pytest.skip("JAX or PyTorch is not installed", allow_module_level=True)

BACKENDS = ["jax", "torch"]
MODEL = """
import os, signal, sys, warnings
import keras, numpy as np
import recordspec as rs

def model(dropout=0.0):
    keras.utils.set_random_seed(5)
    inputs = {name: keras.Input(shape, name=name) for name, shape in [("row", ()), ("x", (4,)), ("words", (4,))]}
    row = keras.layers.Rescaling(1 / 200)(keras.layers.Reshape((1,))(inputs["row"]))
    joined = keras.layers.Concatenate()([row, inputs["x"], inputs["words"]])
    hidden = keras.layers.Dropout(dropout)(keras.layers.Dense(8, "relu")(joined))
    made = keras.Model(inputs, keras.layers.Dense(2, "softmax")(hidden))
    made.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return made

def weights(made):
    return [np.asarray(value.numpy()) for value in [*made.weights, *made.optimizer.variables]]

pipeline = rs.Pipeline.load("c.yaml")
"""
TRAINED = """
def same(epochs, batches, data, **options):
    one, other = model(), model()
    one.fit(data, epochs=epochs, verbose=0, **options)
    for inputs, targets in batches:
        other.train_on_batch(inputs, targets, class_weight=options.get("class_weight"))
    for a, b in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(a, b)
    return one

def passes(first, last, **options):
    return (batch for epoch in range(first, last) for batch in pipeline.iterate("train", start=(epoch, 0), **options))

data = pipeline.keras_dataset("train")
assert isinstance(data, keras.utils.PyDataset)
made = same(3, passes(0, 3), data)
same(2, passes(3, 5), data, shuffle=False)
same(1, passes(0, 1), pipeline.keras_dataset("train"), class_weight={0: 1.0, 1: 3.0})
same(2, passes(4, 8), pipeline.keras_dataset("train", repeat=2, start=(4, 0)))
odd = lambda features: features["row"] % 2 == 1
same(2, passes(0, 2, filter=odd), pipeline.keras_dataset("train", filter=odd))
steps = len(data)
endless = pipeline.keras_dataset("train", repeat="forever")
assert endless.num_batches is None
many = (batch for _, batch in zip(range(3 * (steps - 2)), passes(0, 9)))
same(3, many, endless, steps_per_epoch=steps - 2, shuffle=False)
later = pipeline.keras_dataset("train", start=(1, steps - 3))
ends = [*pipeline.iterate("train", start=(1, steps - 3)), *passes(2, 4)]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Keras warns of the shorter epoch
    same(3, ends, later)
    rest = made.evaluate(pipeline.keras_dataset("test", start=(0, 1), shuffle=None), verbose=0)
assert rest != made.evaluate(pipeline.keras_dataset("test", shuffle=None), verbose=0)
history = model().fit(data, validation_data=pipeline.keras_dataset("test"), epochs=2, verbose=0).history
assert len(history["val_loss"]) == 2
test = pipeline.keras_dataset("test", shuffle=None)
losses = [made.evaluate(test, verbose=0)[0] for _ in range(2)]
assert losses[0] == losses[1]
assert made.predict(test, verbose=0).shape == (len(pipeline.open("test")), 2)
assert "tensorflow" not in sys.modules
"""
RESUMED = """
class Kill(keras.callbacks.Callback):
    seen = 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

warnings.filterwarnings("error", category=UserWarning)
backup = rs.Backup(sys.argv[1], every=3)
made = model(0.5)
data = pipeline.keras_dataset("train", start=backup.start)
begin = (backup.start.epoch, backup.start.step)
made.fit(data, initial_epoch=begin[0], epochs=3, callbacks=[Kill(), backup], verbose=0)
np.savez("weights.npz", *weights(made))
"""


def run(home, backend: str, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error::UserWarning:keras", "-c", MODEL + program, *map(str, arguments)]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    return subprocess.run(command, cwd=home, capture_output=True, text=True, env=environment)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_fit_sees_each_pass_in_its_order(home, backend):
    done = run(home, backend, TRAINED)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_killed_training_goes_on_with_the_next_batch(home, tmp_path, backend):
    done = run(home, backend, RESUMED, tmp_path / "whole", 0)
    assert done.returncode == 0, done.stderr
    expected = dict(np.load(home / "weights.npz"))
    for killed_after in (4, 13, 5):  # of steps since it went on
        done = run(home, backend, RESUMED, tmp_path / "killed", killed_after)
        assert done.returncode != 0
    position = json.loads((tmp_path / "killed/position.json").read_text())
    assert position["step"] > 0
    done = run(home, backend, RESUMED, tmp_path / "killed", 0)
    assert done.returncode == 0, done.stderr
    found = dict(np.load(home / "weights.npz"))
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)
