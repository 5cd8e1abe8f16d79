"""The first minute of a user: from the installed wheel to a trained model.

`make test-wheel` runs it three times, with the Python of an environment that has the package and its
requirements, and without a compiler on the PATH. The argument is `reference` for a package without a compiled
codec, `build` for the wheel without TensorFlow, and then, in the same folder, `fit` for the wheel with
TensorFlow.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

EXTRAS = ("pandas", "polars", "soundfile", "sklearn", "pytest")
GOLDEN = Path(__file__).absolute().parent / "golden/format1"
CONFIG = """
schema: schema.yaml
data: data
write: {source: {image_folder: raw}, shards: 1}
read: {batch: 4}
fit: {inputs: image, targets: label}
"""
SCHEMA = """
schema: squares
features:
  image: {kind: image, encoding: png, shape: [8, 8, 3]}
  label: {kind: label, names: [dark, light]}
"""


def recordspec(*arguments: str) -> None:
    """Runs a command as a user types it, with the `recordspec` of this environment."""
    command = Path(sys.executable).with_name("recordspec")
    print("$ recordspec", *arguments, flush=True)
    subprocess.run([command, *arguments], check=True)


def check_environment(tensorflow: bool) -> None:
    """Raises AssertionError if anything other than the wheel could make the rest succeed."""
    assert bool(importlib.util.find_spec("tensorflow")) == tensorflow
    found = importlib.util.find_spec("recordspec")
    assert found is not None
    assert Path(str(found.origin)).is_relative_to(sys.prefix), f"recordspec is that of {found.origin}"
    installed = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not installed, f"the environment is not clean: {installed}"


def check_codec(native: bool) -> None:
    """Checks that the codec in use writes and reads the records of the golden files."""
    import recordspec as rs
    from recordspec.schema.row_blocks import records_of_block
    from recordspec.wire.arrays import bytes_in
    from recordspec.wire.native import describe
    from recordspec.wire.tfrecord import scan

    assert describe().startswith("the native codec") == native, describe()
    sys.path.insert(0, str(GOLDEN))
    import make

    rows = make.rows()[:40]
    without_id = [{name: value for name, value in row.items() if name != "id"} for row in rows]
    for name, given in (("keyed", rows), ("blocks", without_id)):
        schema = rs.Schema.load(GOLDEN / name / "schema.yaml")
        columns = {name: [row[name] for row in given] for name in given[0]}
        expected = set(schema.encode_batch(columns, len(given)))
        stored = [one.data for path in sorted(GOLDEN.glob(f"{name}/*-of-*")) for one in scan(path)]
        if name == "blocks":
            stored = [record for block in stored for record in bytes_in(records_of_block(schema, block))]
        assert set(stored) == expected, f"other records than in {name}"
    print("golden records are made and read by", describe())


def build_without_tensorflow() -> None:
    import recordspec as rs

    recordspec("init", "flowers")
    recordspec("build", "flowers/configs/flowers.yaml")
    recordspec("check", "flowers/configs/flowers.yaml")
    message = ""
    try:
        rs.Pipeline.load("flowers/configs/flowers.yaml").dataset("train")
    except rs.MissingExtra as error:
        message = str(error)
    assert "pip install 'recordspec[tensorflow]'" in message, message


def fit_what_was_built() -> None:
    import keras

    import recordspec as rs

    pipeline = rs.Pipeline.load("flowers/configs/flowers.yaml")
    assert sum(pipeline.manifest.rows(split) for split in ("train", "test")) == 60
    keras.utils.set_random_seed(1)
    inputs = {name: keras.Input((1,), name=name) for name in ("petal_length", "petal_width")}
    joined = keras.layers.Concatenate()([*inputs.values()])
    hidden = keras.layers.Dense(16, activation="relu")(joined)
    model = keras.Model(inputs, keras.layers.Dense(3)(hidden))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.02), loss, metrics=["accuracy"])
    model.fit(pipeline.dataset("train"), epochs=40, verbose=0)
    accuracy = model.evaluate(pipeline.dataset("test"), verbose=0, return_dict=True)["accuracy"]
    print(f"accuracy on the test split: {accuracy:.2f}")
    assert accuracy > 0.8


def from_a_folder_of_images_to_batches() -> None:
    import tensorflow as tf

    import recordspec as rs

    for label, grey in (("dark", 10), ("light", 240)):
        folder = Path("photos/raw", label)
        folder.mkdir(parents=True)
        image = tf.fill([8, 8, 3], tf.constant(grey, tf.uint8))
        (folder / "a.png").write_bytes(tf.io.encode_png(image).numpy())
        (folder / "b.jpg").write_bytes(tf.io.encode_jpeg(image).numpy())  # Pillow makes it a PNG
        (folder / "c.bmp").write_bytes(b"BM" + bmp(grey))
    Path("photos/schema.yaml").write_text(SCHEMA)
    Path("photos/config.yaml").write_text(CONFIG)
    recordspec("build", "photos/config.yaml")
    seen = {0: 0, 1: 0}
    for images, labels in rs.Pipeline.load("photos/config.yaml").dataset("train"):
        assert images.dtype == tf.uint8
        assert images.shape[1:] == (8, 8, 3)
        for image, label in zip(images.numpy(), labels.numpy(), strict=True):
            assert abs(int(image.max()) - (10, 240)[label]) <= 2, "another image's pixels"
            seen[int(label)] += 1
    assert seen == {0: 3, 1: 3}


def bmp(grey: int) -> bytes:
    """The bytes after `BM` in a bitmap of 8 x 8 pixels."""
    header = [54 + 192, 0, 54, 40, 8, 8, 1 | 24 << 16, 0, 192, 0, 0, 0, 0]
    return b"".join(value.to_bytes(4, "little") for value in header) + bytes([grey]) * 192


if __name__ == "__main__":
    step, work = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    check_environment(tensorflow=step == "fit")
    check_codec(native=step != "reference")
    recordspec("docs", "stores")
    if step != "fit":
        build_without_tensorflow()
    else:
        fit_what_was_built()
        from_a_folder_of_images_to_batches()
        print("the wheel suffices, with TensorFlow to read")
