"""Trains on the backend of KERAS_BACKEND with a config in the working directory: `three_backends.py MODEL
FOLDER` writes the batches of the first pass and the loss of each step to FOLDER, as NumPy files. JAX also
saves the model and its predictions; TensorFlow exports that model, and calls the served one."""

from __future__ import annotations

import sys
from pathlib import Path

import keras
import numpy as np

import recordspec as rs

ORDER = {"shuffle": {"global": True, "seed": 3}, "batch": {"size": 32, "drop_remainder": True}}


def csv(batch):
    inputs = {name: keras.Input(value.shape[1:], name=name) for name, value in batch.items()}
    columns = [keras.layers.Reshape((-1,) if len(one.shape) > 1 else (1,))(one) for one in inputs.values()]
    hidden = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()(columns))
    return keras.Model(inputs, keras.layers.Dense(2)(hidden))


def images(batch):
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input(batch.shape[1:]),
            layers.Rescaling(1 / 255),
            layers.Conv2D(8, 5, 2, activation="relu"),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )


def tokens(batch):
    layers = keras.layers
    embedded = layers.Embedding(200, 8, mask_zero=True)
    return keras.Sequential(
        [keras.Input((None,), dtype="int64"), embedded, layers.GlobalAveragePooling1D(), layers.Dense(2)]
    )


class Losses(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.steps = []

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(float(logs["loss"]) * (batch + 1))  # the log has the mean of the epoch so far


def main(name: str, folder: Path) -> None:
    pipeline = rs.Pipeline.load("config.yaml")
    data = pipeline.keras_dataset("train", **ORDER)
    if keras.backend.backend() == "tensorflow":
        batches = list(data.as_numpy_iterator())
    else:
        assert "tensorflow" not in sys.modules
        batches = list(pipeline.iterate("train", **ORDER))
    for number, (inputs, targets) in enumerate(batches):
        parts = inputs if isinstance(inputs, dict) else {"inputs": inputs}
        np.savez(folder / f"{number}.npz", **parts, targets=targets)
    data = pipeline.keras_dataset("train", **ORDER)
    model = {"csv": csv, "images": images, "tokens": tokens}[name](batches[0][0])
    draw = np.random.default_rng(0)  # each backend draws different numbers
    model.set_weights([draw.normal(0, 0.1, value.shape) for value in model.get_weights()])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses = Losses()
    model.fit(data, epochs=2, verbose=0, callbacks=[losses])
    np.save(folder / "losses.npy", losses.steps)
    trained = folder.parent / "jax/model.keras"
    if keras.backend.backend() == "jax":
        model.save(trained)
        np.save(folder / "logits.npy", model.predict(pipeline.keras_dataset("test", shuffle=None), verbose=0))
    if keras.backend.backend() == "tensorflow":
        rows = pipeline.open("test")
        pipeline.export_model(keras.saving.load_model(trained), folder / "served")
        np.save(folder / "served.npy", served(folder / "served", rows.records(range(len(rows)))))


def served(folder, records):
    import tensorflow as tf

    signature = tf.saved_model.load(str(folder)).signatures["examples"]
    return signature(examples=tf.constant(records))["probabilities"].numpy()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
