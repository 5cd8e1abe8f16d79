import json
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

FOLDER = Path("raw/signs/1.0.0")
INFO = json.loads((FOLDER / "dataset_info.json").read_text())
FEATURES = {
    "values": tf.io.FixedLenFeature([8], tf.float32),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parse(records):
    parsed = tf.io.parse_example(records, FEATURES)
    return parsed["values"], parsed["label"]


def checked(values, label):
    # A label of -1, for which TensorFlow's loss is NaN, is an error.
    tf.debugging.assert_non_negative(label, "a row without a label")
    return values, label


def read(split):
    files = sorted(map(str, FOLDER.glob(f"signs-{split}.tfrecord-*")))
    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.shuffle(10_000, seed=1)
    dataset = dataset.batch(32).map(parse, tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.map(checked)
    return dataset.prefetch(tf.data.AUTOTUNE)


keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.Input((8,)),
    keras.layers.Dense(16, "relu"),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss)
model.fit(read("train"), epochs=5, verbose=0)
values = np.concatenate([batch for batch, _ in read("test")])
if len(values) != sum(map(int, INFO["splits"][1]["shardLengths"])):
    raise ValueError("the test split has other rows than its description")
found = model.predict(values, verbose=0).argmax(1)
labels = (values[:, :4].sum(1) > values[:, 4:].sum(1)).astype(
    int
)  # how the labels were made
chance = np.bincount(labels).max() / len(labels)
print(
    json.dumps({"accuracy": float((found == labels).mean()), "chance": float(chance)})
)
