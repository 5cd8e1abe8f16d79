"""Strategies of tf.distribute as users take them: several devices, and several processes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs

pytestmark = pytest.mark.services

SCHEMA = "schema: s\nfeatures: {n: int64, x: {dtype: float32, shape: [2]}, y: float32}\n"
CONFIG = """\
schema: s.yaml
data: data
write: {splits: {train: 1}}
read: {batch: 16, shuffle: {buffer: 40, seed: 3}}
"""
FIT = "fit: {inputs: x, targets: y}\n"
PAGE = (Path(__file__).parents[2] / "docs/distributed.md").read_text()


# Below 32,768, where Linux begins to assign ephemeral ports: it could assign one of those before a worker listens.
_ports = count(20_000 + os.getpid() * 16 % 10_000)


def free_port() -> int:
    """Returns a port that no process listens on."""
    for port in _ports:
        with socket.socket() as one, suppress(OSError):
            one.bind(("localhost", port))
            return port
    raise AssertionError


def run(script: str, folder: Path, workers: int = 1, **environment: str) -> list[str]:
    """Runs a script in so many processes, workers of one cluster if several. Gives what each printed last."""
    hosts = [f"localhost:{free_port()}" for _ in range(workers)]
    (folder / "script.py").write_text(script)
    processes = []
    try:
        for index in range(workers):
            task = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}}
            cluster = {"TF_CONFIG": json.dumps(task)} if workers > 1 else {}
            with (folder / f"{index}.out").open("w") as out, (folder / f"{index}.err").open("w") as err:
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "script.py"],
                        stdout=out,
                        stderr=err,
                        cwd=folder,
                        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **cluster, **environment},
                    )
                )
        codes = [process.wait(timeout=240) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert codes == [0] * workers, "\n".join((folder / f"{i}.err").read_text() for i in range(workers))
    return [(folder / f"{index}.out").read_text().splitlines()[-1] for index in range(workers)]


def build(folder: Path, rows: int, shards: int, config: str = CONFIG) -> None:
    (folder / "s.yaml").write_text(SCHEMA)
    (folder / "c.yaml").write_text(config)
    rng = np.random.default_rng(0)
    x = rng.random((rows, 2), np.float32)
    pipeline = rs.Pipeline.load(folder / "c.yaml")
    given = {"n": np.arange(rows), "x": x, "y": x @ np.float32([2, 1])}
    rs.write(given, pipeline.schema, pipeline.data, shards=shards, layout=pipeline.config.write.layout)


MIRRORED = """
import json, sys, warnings
import keras, numpy as np, tensorflow as tf
import recordspec as rs
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
warnings.filterwarnings("error", message="Your input ran out of data")

class Epochs(keras.callbacks.Callback):
    steps = []
    def on_epoch_begin(self, epoch, logs=None):
        self.steps.append(self.params["steps"])

found = []
for strategy in (tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])):
    for dropped in (False, True):
        seen = []

        def note(numbers):
            seen.append(numbers.tolist())
            return numbers

        def pick(row):
            numbers = tf.ensure_shape(tf.numpy_function(note, [row["n"]], tf.int64), [None])
            with tf.control_dependencies([numbers]):
                return tf.identity(row["x"]), row["y"]

        with strategy.scope():
            model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
            model.compile("sgd", "mse")
        batch = {"size": 16, "drop_remainder": dropped}
        data = rs.Pipeline.load("c.yaml").dataset("train", map=pick, batch=batch, deterministic=True)
        epochs = Epochs()
        epochs.steps = []
        model.fit(data, epochs=3, verbose=0, callbacks=[epochs])
        found.append([epochs.steps, seen])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory) -> list:
    folder = tmp_path_factory.mktemp("mirrored")
    build(folder, 100, 3)
    (printed,) = run(MIRRORED, folder)
    return json.loads(printed)


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("dropped", [False, True])
def test_every_epoch_of_fit_sees_every_row_in_an_order_of_its_own(mirrored, devices, dropped):
    shown, batches = mirrored[2 * (devices - 1) + dropped]
    steps = 100 // 16 if dropped else 7
    assert shown == [steps] * 3
    passes = [list(chain(*batches[first : first + steps])) for first in range(0, len(batches), steps)]
    if devices == 2:
        passes = passes[1:]  # of the first, Keras read a batch to build the model with
    assert len(passes) == 3
    for one in passes:
        assert len(one) == len(set(one)) == (96 if dropped else 100)
    assert len({tuple(one) for one in passes}) == 3


LOOP = """
import json
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
import recordspec as rs
with strategy.scope():
    weights = tf.Variable([0.0, 0.0], aggregation=tf.VariableAggregation.MEAN)
    data = strategy.distribute_datasets_from_function(rs.Pipeline.load("c.yaml").input_fn("train", batch=%s))

def step(row):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((tf.linalg.matvec(row["x"], weights) - row["y"]) ** 2) / 16
    gradient = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, weights))
    weights.assign_sub(0.3 * gradient)
    return row["n"]

run = tf.function(lambda row: strategy.run(step, [row]))
epochs = []
for epoch in range(2):
    epochs.append([])
    for row in data:
        epochs[-1] += strategy.experimental_local_results(run(row))[0].numpy().tolist()
print(json.dumps([weights.numpy().tolist(), epochs]))
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "shards", "dropped"), [(97, 1, False), (97, 3, True), (96, 2, False)], ids=str
)
def test_a_loop_of_two_processes_sees_every_row(tmp_path, rows, shards, dropped):
    build(tmp_path, rows, shards)
    printed = run(LOOP % {"size": 16, "drop_remainder": dropped}, tmp_path, workers=2)
    (one, first), (other, second) = map(json.loads, printed)
    assert one == other != [0, 0]
    assert first[0] != first[1]
    for epoch in range(2):
        assert len(set(first[epoch]) & set(second[epoch])) == 0
        seen = Counter(first[epoch] + second[epoch])
        if dropped:
            assert max(seen.values()) == 1
            assert len(seen) == 2 * (rows // 2 // 8) * 8
        else:
            assert set(seen) == set(range(rows))
            assert sum(seen.values()) - rows < 16


ELASTIC = """
import json, os
import tensorflow as tf
weights, first, stop = json.loads(os.environ["AT"])
strategy = tf.distribute.MultiWorkerMirroredStrategy() if "TF_CONFIG" in os.environ else tf.distribute.get_strategy()
import recordspec as rs
with strategy.scope():
    weights = tf.Variable(weights, aggregation=tf.VariableAggregation.MEAN)
    make = rs.Pipeline.load("c.yaml").input_fn("train", start=(1, first))
    data = strategy.distribute_datasets_from_function(lambda context: make(context).take(stop - first))

def step(row):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((tf.linalg.matvec(row["x"], weights) - row["y"]) ** 2) / 16
    gradient = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, weights))
    weights.assign_sub(0.3 * gradient)
    return row["n"]

run = tf.function(lambda row: strategy.run(step, [row]))
batches = [strategy.experimental_local_results(run(row))[0].numpy().tolist() for row in data]
print(json.dumps([weights.numpy().tolist(), batches]))
"""


@pytest.mark.long
@pytest.mark.parametrize("layout", ["rows", pytest.param("{blocks: 7}", marks=pytest.mark.newest)])
def test_a_training_of_two_processes_goes_on_as_one_and_as_three(tmp_path, layout):
    config = CONFIG.replace("{buffer: 40, seed: 3}", "{global: true, seed: 3}")
    build(
        tmp_path, 97 + 13, 3, config.replace("splits: {train: 1}", f"splits: {{train: 1}}, layout: {layout}")
    )
    steps = list(rs.iterate(tmp_path / "data", batch=16, shuffle=True, seed=3, epoch=1))
    wanted = [batch["n"].tolist() for batch in steps]

    def trained(workers: int, weights: list[float], first: int, stop: int) -> list[float]:
        parts = [
            json.loads(line)
            for line in run(ELASTIC, tmp_path, workers, AT=json.dumps([weights, first, stop]))
        ]
        for number, batch in enumerate(wanted[first:stop]):
            assert [part[1][number] for part in parts] == [
                batch[worker::workers] for worker in range(workers)
            ]
        assert all(part[0] == parts[0][0] for part in parts)
        return parts[0][0]

    whole = trained(1, [0.0, 0.0], 0, len(wanted))
    stopped = trained(2, [0.0, 0.0], 0, 3)
    for workers in (1, 3):
        np.testing.assert_allclose(trained(workers, stopped, 3, len(wanted)), whole, rtol=1e-5)


TF_KERAS = """
import json
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
import tf_keras, numpy as np, recordspec as rs
pipeline = rs.Pipeline.load("c.yaml")
with strategy.scope():
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
data = strategy.distribute_datasets_from_function(pipeline.input_fn("train", repeat="forever"))
model.fit(data, steps_per_epoch=pipeline.steps("train"), epochs=2, verbose=0)
print(json.dumps([weight.tolist() for weight in model.get_weights()]))
"""


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("tf_keras") is None, reason="tf_keras is not installed")
def test_tf_keras_fits_in_two_processes(tmp_path):
    build(tmp_path, 97, 1, CONFIG + FIT)
    one, other = run(TF_KERAS, tmp_path, workers=2, TF_USE_LEGACY_KERAS="1")
    assert one == other
    assert np.isfinite(json.loads(one)[0]).all()


@pytest.mark.long
def test_the_page_on_many_workers_runs(tmp_path):
    blocks = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    files = dict(blocks)
    assert list(files) == ["schemas/points.yaml", "configs/points.yaml", "build.py", "train.py"]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert run(files["build.py"], tmp_path) == ["1000 rows"]
    one, other = run(files["train.py"], tmp_path, workers=2)
    assert one == other
    slope = [float(number) for number in re.findall(r"[-\d.]+", one)]
    np.testing.assert_allclose(slope, [2, -1], atol=0.1)
