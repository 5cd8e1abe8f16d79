"""From a folder of images to a trained model: builds `configs/digits.yaml` and trains on it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

ROOT = Path(__file__).parents[1]
EPOCHS = 15


def run(*command: str) -> None:
    """Prints and runs a command."""
    print(f"\n$ {' '.join(command)}", flush=True)
    subprocess.run(command, cwd=ROOT, check=True)


def train() -> None:
    """Trains a small convolutional network on `pipeline.dataset("train")`."""
    import keras

    from recordspec import Pipeline

    keras.utils.set_random_seed(17)
    pipeline = Pipeline.load(ROOT / "configs/digits.yaml")
    model = keras.Sequential(
        [
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(32, 3, activation="relu", padding="same"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    print("\n>>> model.fit(pipeline.dataset('train'), validation_data=pipeline.dataset('validation'))")
    model.fit(
        pipeline.dataset("train"),
        validation_data=pipeline.dataset("validation"),
        epochs=EPOCHS,
        verbose=2,
    )
    _, accuracy = model.evaluate(pipeline.dataset("test"), verbose=0)
    print(f"\ntest accuracy: {accuracy:.3f} on {pipeline.manifest.rows('test')} images")
    print(f"reading: {rows_per_second(pipeline):,.0f} rows/s")


def rows_per_second(pipeline) -> float:
    """Decoded rows per second, over ten epochs without a model."""
    dataset = pipeline.dataset("train", repeat=10, cache="none")
    start = time.perf_counter()
    for _ in dataset:
        pass
    return 10 * pipeline.manifest.rows("train") / (time.perf_counter() - start)


if __name__ == "__main__":
    run("python", "demo/raw.py", "digits", "raw/digits")
    run("recordspec", "lint", "schemas/digits.yaml", "configs/digits.yaml")
    run("recordspec", "build", "configs/digits.yaml", "--force")
    run("recordspec", "head", "data/digits", "-n", "3")
    run("recordspec", "explain", "schemas/digits.yaml", "--python")
    train()
