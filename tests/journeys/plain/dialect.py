import bz2
import json
import os
import random
import zlib
from collections import Counter

import keras
import tensorflow as tf

STATES = ["run", "stop"]
FEATURES = {
    "part": tf.io.FixedLenFeature([], tf.string),
    "load": tf.io.FixedLenFeature([1], tf.float32),
    "alarms": tf.io.RaggedFeature(tf.string),
    "state": tf.io.FixedLenFeature([], tf.int64),
}


def lines():
    # The cells of each row; a comment is no row, and a quote encloses no cell.
    with bz2.open("raw/press.csv.bz2", "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.startswith("#"):
                cells = line.rstrip("\n").split(";")
                if len(cells) != 5:
                    raise ValueError(f"line {number}: {len(cells)} cells")
                yield cells


def serialize(row):
    _, part, load, alarms, state = row
    example = tf.train.Example()
    feature = example.features.feature
    feature["part"].bytes_list.value.append(part.encode())
    feature["load"].float_list.value.append(float(load))
    feature["alarms"].bytes_list.value.extend(
        one.encode() for one in alarms.split("|") if one
    )
    feature["state"].int64_list.value.append(STATES.index(state))
    return example.SerializeToString()


def write(split, rows, shards=4):
    records = [serialize(row) for row in rows]
    random.Random(1).shuffle(records)
    for shard in range(shards):
        path = f"data/{split}-{shard:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for record in records[shard::shards]:
                writer.write(record)


def parse(records):
    inputs = tf.io.parse_example(records, FEATURES)
    return inputs, inputs.pop("state")


def read(split):
    files = sorted(tf.io.gfile.glob(f"data/{split}-*"))
    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.shuffle(10_000, seed=1)
    return dataset.batch(32).map(parse, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


rows = list(lines())
splits = {"train": [], "test": []}
for row in rows:
    in_test = zlib.crc32(str(row[0]).encode()) % 5 == 0
    splits["test" if in_test else "train"].append(row)
os.makedirs("data", exist_ok=True)
for split, some in splits.items():
    write(split, some)

keras.utils.set_random_seed(1)
train, test = read("train"), read("test")
scale = keras.layers.Normalization()
scale.adapt(train.map(lambda inputs, _: inputs["load"]))
parts = keras.layers.StringLookup(output_mode="one_hot")
parts.adapt(train.map(lambda inputs, _: inputs["part"]))
alarms = keras.layers.StringLookup(output_mode="multi_hot")
alarms.adapt(train.map(lambda inputs, _: inputs["alarms"].flat_values))


def encode(inputs, state):
    # Padding of the list is a word, too, which takes the place of unknown words.
    padded = alarms(inputs["alarms"].to_tensor("[UNK]"))
    hot = tf.concat([parts(inputs["part"]), padded], 1)
    return tf.concat([scale(inputs["load"]), tf.cast(hot, tf.float32)], 1), state


train, test = train.map(encode), test.map(encode)
width = train.element_spec[0].shape[1]
model = keras.Sequential([
    keras.Input((width,)),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
model.fit(train, epochs=6, verbose=0)
counts = Counter(row[4] for row in splits["test"])
chance = max(counts.values()) / len(splits["test"])
print(json.dumps({"accuracy": model.evaluate(test, verbose=0)[1], "chance": chance}))
