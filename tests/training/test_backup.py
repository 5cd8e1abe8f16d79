"""A training that was broken off, and went on, ends like one that nothing broke off."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs

pytestmark = [pytest.mark.services, pytest.mark.newest]

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {x: {dtype: float32, shape: [4]}, y: float32}")
EPOCHS, STEPS = 3, 7  # of 16 rows, the last of 4

# Trains, and is broken off in the way that argv[3] says: at a step of the whole training, by a signal, by an
# exception, or by Keras. Without one it ends, and leaves its weights.
TRAINING = """
import os, signal, sys, warnings
import keras
import numpy as np
import recordspec as rs

data, folder, how, at, every, out = sys.argv[1:]
warnings.filterwarnings("error", message="Your input ran out of data")

class Break(keras.callbacks.Callback):
    seen = 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen == int(at) and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.seen == int(at) and how == "raise":
            raise RuntimeError("broken off")
        if self.seen == int(at) and how == "stop":
            self.model.stop_training = True

keras.utils.set_random_seed(5 if not os.path.exists(folder) else 6)
layers = keras.layers
model = keras.Sequential([keras.Input((4,)), layers.Dense(8), layers.Dropout(0.5), layers.Dense(1)])
model.compile("adam", "mse", metrics=["mae"])
schema = rs.Schema.load(data + "/schema.yaml")
backup = rs.Backup(folder, every=int(every) or None)
pick = lambda features: (features["x"], features["y"])
dataset = rs.read(data, schema, batch=16, shuffle=40, seed=3, map=pick, start=backup.start)
breaks = Break()
model.fit(
    dataset, initial_epoch=backup.start.epoch, epochs=3, callbacks=[breaks, backup], verbose=0, shuffle=False
)
print("steps", breaks.seen)
if how != "stop":
    np.savez(out, *[value.numpy() for value in [*model.weights, *model.optimizer.variables]])
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("backup") / "data"
    rng = np.random.default_rng(0)
    rows = {"x": rng.random((100, 4), np.float32), "y": rng.random(100, np.float32)}
    rs.write(rows, SCHEMA, folder, shards=3)
    return folder


def train(data: Path, folder: Path, how: str = "not", at: int = 0, every: int = 0):
    """Runs the training in a process of its own. Gives how it ended, its output, and its weights."""
    out = folder.parent / "weights.npz"
    command = [sys.executable, "-c", TRAINING, *map(str, [data, folder, how, at, every, out])]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert (run.returncode == 0) == (how in ("not", "stop")), run.stderr
    weights = list(np.load(out).values()) if how == "not" else []
    return run, weights


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory) -> list:
    run, weights = train(data, tmp_path_factory.mktemp("undisturbed") / "backup")
    assert f"steps {EPOCHS * STEPS}" in run.stdout
    return weights


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "at", "every", "left"),
    [
        (
            "kill",
            11,
            2,
            EPOCHS * STEPS - 9,
        ),  # the second epoch is broken off in its middle: 7 + 4, 2 of 4 kept
        ("raise", 11, 0, EPOCHS * STEPS - STEPS),  # only epochs are kept
        ("stop", 11, 3, EPOCHS * STEPS - 11),  # Keras ends the epoch: the backup is of its last step
    ],
)
def test_what_goes_on_ends_the_same(data, tmp_path, undisturbed, how, at, every, left):
    folder = tmp_path / "backup"
    broken, _ = train(data, folder, how, at, every)
    if how == "kill":
        assert broken.returncode == -signal.SIGKILL
    run, weights = train(data, folder, every=every)
    assert f"steps {left}" in run.stdout
    assert all((one == other).all() for one, other in zip(weights, undisturbed, strict=True))
    again, same = train(data, folder, every=every)
    assert "steps 0" in again.stdout
    assert all((one == other).all() for one, other in zip(same, undisturbed, strict=True))
    assert sorted(os.listdir(folder)) == ["position.json", f"weights-{EPOCHS}-0.weights.h5"]


def small_model(**options):
    import keras

    model = keras.Sequential(
        [*([keras.Input((4,))] if options.pop("built", True) else []), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    return model


def fit(data, model, backup, *, steps_per_epoch=None, **options) -> None:
    dataset = rs.read(
        data, SCHEMA, batch=16, map=lambda row: (row["x"], row["y"]), start=backup.start, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(dataset, epochs=1, verbose=0, callbacks=[backup], steps_per_epoch=steps_per_epoch)


def test_a_foreign_folder_is_named_and_stays(tmp_path):
    (tmp_path / "thesis.txt").write_text("years")
    with pytest.raises(rs.StoreError) as caught:
        rs.Backup(tmp_path)
    assert (
        str(caught.value)
        == f"{tmp_path}/position.json: cannot read: no such file or directory (a backup's folder has one, or is empty)"
    )
    with pytest.raises(rs.StoreError, match=r"position.json: expected a backup, got not a directory"):
        rs.Backup(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "years"


def test_foreign_files_beside_a_backup_stay(data, tmp_path):
    folder = tmp_path / "backup"
    folder.mkdir()
    fit(data, small_model(), rs.Backup(folder, every=2))
    beside = [folder / "notes.txt", folder / "best.weights.h5", tmp_path / ".backup.new" / "mine"]
    beside[-1].parent.mkdir()
    for path in beside:
        path.write_text("mine")
    (folder / "position.json").write_text('{"epoch": 0, "step": 0, "seeds": []}')
    fit(data, small_model(), rs.Backup(folder))
    assert [path.read_text() for path in beside] == ["mine"] * 3
    sha256 = rs.Manifest.load(data).identity
    assert rs.Backup(folder).start == rs.Position(epoch=1, batch=16, manifest=sha256, order={"version": 1})


def test_a_backup_is_of_one_batch_and_dataset(data, tmp_path):
    folder, mine = tmp_path / "backup", tmp_path / "data"
    shutil.copytree(data, mine)
    fit(mine, small_model(), rs.Backup(folder))
    assert json.loads((folder / "position.json").read_text()) == {
        "epoch": 1,
        "step": 0,
        "workers": 1,
        "batch": 16,
        "manifest": rs.Manifest.load(mine).identity,
        "order": {"version": 1},
        "seeds": [],
    }
    pick = {"map": lambda row: (row["x"], row["y"])}
    with pytest.raises(
        rs.SpecError, match=r"start\.batch: expected 8, the rows per batch that are read, got 16 "
    ):
        rs.read(mine, SCHEMA, batch=8, start=rs.Backup(folder).start, **pick)
    rs.write({"x": np.zeros((3, 4), np.float32), "y": np.zeros(3, np.float32)}, SCHEMA, mine, append=True)
    backup = rs.Backup(folder)
    with pytest.raises(
        rs.SpecError, match=r"start\.manifest: expected .+the dataset was replaced, rows were added"
    ):
        rs.read(mine, SCHEMA, batch=16, start=backup.start, **pick)
    # a backup of an earlier version has the epoch and the step alone
    (folder / "position.json").write_text('{"epoch": 1, "step": 2, "seeds": []}')
    assert rs.Backup(folder).start == rs.Position(epoch=1, step=2)
    rs.read(mine, SCHEMA, batch=8, start=rs.Backup(folder).start, **pick)


def test_a_resumed_training_that_would_read_other_rows_is_refused(data, tmp_path):
    fit(data, small_model(), rs.Backup(tmp_path))
    with pytest.raises(
        rs.SpecError, match=r"Backup: expected initial_epoch=1, got 0 \(give `fit` `backup.start"
    ):
        fit(data, small_model(), rs.Backup(tmp_path))
    from_the_beginning = rs.read(data, SCHEMA, batch=16, map=lambda row: (row["x"], row["y"]))
    expected = "Backup: expected a dataset that begins where the backup ends, got another"
    for epoch, folder in ((1, tmp_path), (0, tmp_path / "new")):
        with pytest.raises(rs.SpecError, match=expected):
            small_model().fit(
                from_the_beginning, initial_epoch=epoch, epochs=2, verbose=0, callbacks=[rs.Backup(folder)]
            )


def test_a_first_backup_that_was_broken_off_is_none(tmp_path):
    (tmp_path / "weights-0-5.weights.h5").write_text("half")
    assert rs.Backup(tmp_path).start == rs.Position()


def test_what_could_not_be_exact_is_refused(data, tmp_path):
    import tensorflow as tf

    def refused(model, backup, **options) -> str:
        with pytest.raises(rs.SpecError) as caught:
            fit(data, model, backup, **options)
        return str(caught.value)

    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        mirrored = small_model()
    assert refused(mirrored, rs.Backup(tmp_path / "a")) == (
        "Backup: expected a model without a strategy, got MirroredStrategy (see `recordspec docs distributed`)"
    )
    assert refused(small_model(built=False), rs.Backup(tmp_path / "a")) == (
        "Backup: expected a model that is built, got one without weights (give it an Input, or call build)"
    )
    backup = rs.Backup(tmp_path / "a", every=2)
    assert refused(small_model(), backup, filter=lambda row: row["y"] > 0) == (
        "Backup: expected a dataset of known cardinality, or no `every`, got an unknown one"
    )
    # a pass that is no epoch: what was read of the next one would be read again
    for repeat in (2, "forever"):
        assert refused(small_model(), rs.Backup(tmp_path / "b"), repeat=repeat) == (
            "Backup: expected a dataset without `repeat`, as an epoch is a pass, got several passes "
            "(`epochs` of `fit` repeats it)"
        )
    for options, whole in (({}, "7"), ({"filter": lambda row: row["y"] > 0}, "all")):
        assert refused(small_model(), rs.Backup(tmp_path / "b"), steps_per_epoch=3, **options) == (
            f"Backup: expected {whole} steps, as an epoch is a pass, got 3 (leave out `steps_per_epoch`)"
        )
    with pytest.raises(rs.SpecError, match=r"every: expected at least 1 step, got 0"):
        rs.Backup(tmp_path / "a", every=0)


def test_a_backup_is_a_regular_file_in_a_local_folder(tmp_path):
    with pytest.raises(rs.SpecError) as caught:
        rs.Backup("s3://bucket/backup")
    assert str(caught.value) == ("expected a local path, got the URL `s3://bucket/backup`")
    os.mkfifo(tmp_path / "position.json")
    with pytest.raises(rs.StoreError) as caught:
        rs.Backup(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/position.json: expected a backup, got a pipe (copy its contents to a file first)"
    )
