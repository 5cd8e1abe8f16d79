import csv
import json
import os
import random
from collections import Counter
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from PIL import Image

BREEDS = ["beagle", "husky"]
FEATURES = {
    "id": tf.io.FixedLenFeature([], tf.string),
    "image": tf.io.FixedLenFeature([], tf.string),
    "breed": tf.io.FixedLenFeature([], tf.int64, default_value=-1),
}


def table(name):
    with open(f"raw/{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def serialize(split, row):
    # An Example, without a breed in the test set; no image is an error.
    path = Path(f"raw/{split}/{row['id']}.png")
    with Image.open(path) as opened:
        opened.verify()
    example = tf.train.Example()
    feature = example.features.feature
    feature["id"].bytes_list.value.append(row["id"].encode())
    feature["image"].bytes_list.value.append(path.read_bytes())
    if "breed" in row:
        feature["breed"].int64_list.value.append(BREEDS.index(row["breed"]))
    return example.SerializeToString()


def write(split, shards=4):
    records = [serialize(split, row) for row in table(split)]
    random.Random(1).shuffle(records)
    for shard in range(shards):
        path = f"data/{split}-{shard:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for record in records[shard::shards]:
                writer.write(record)


def parse(record):
    parsed = tf.io.parse_single_example(record, FEATURES)
    image = tf.io.decode_png(parsed["image"], channels=3)
    parsed["image"] = tf.ensure_shape(image, [24, 24, 3])
    return parsed


def read(split):
    files = sorted(tf.io.gfile.glob(f"data/{split}-*"))
    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.shuffle(10_000, seed=1)
    dataset = dataset.map(parse, tf.data.AUTOTUNE).batch(32)
    return dataset.prefetch(tf.data.AUTOTUNE)


os.makedirs("data", exist_ok=True)
for split in ("train", "test"):
    write(split)

keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.Input((24, 24, 3)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(8, 5, activation="relu"),
    keras.layers.GlobalMaxPooling2D(),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss)
model.fit(
    read("train").map(lambda row: (row["image"], row["breed"])), epochs=8, verbose=0
)
submission = {}
for batch in read("test"):
    found = model.predict_on_batch(batch["image"]).argmax(1)
    for name, breed in zip(batch["id"].numpy(), found, strict=True):
        submission[name.decode()] = BREEDS[breed]
with open("submission.csv", "w", newline="") as file:
    csv.writer(file).writerows([("id", "breed"), *submission.items()])

solution = {row["id"]: row["breed"] for row in table("solution")}
accuracy = np.mean([submission[name] == breed for name, breed in solution.items()])
chance = max(Counter(solution.values()).values()) / len(solution)
print(json.dumps({"accuracy": accuracy, "chance": chance}))
