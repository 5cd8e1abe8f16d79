import json
import os
import random
import zlib

import keras
import numpy as np
import tensorflow as tf

NAMES = ("english", "french")
FEATURES = {name: tf.io.FixedLenFeature([], tf.string) for name in NAMES}


def serialize(row):
    example = tf.train.Example()
    for name in NAMES:
        example.features.feature[name].bytes_list.value.append(row[name].encode())
    return example.SerializeToString()


def write(split, rows, shards=4):
    random.Random(1).shuffle(rows)
    for shard in range(shards):
        path = f"data/{split}-{shard:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for row in rows[shard::shards]:
                writer.write(serialize(row))


def parse(records):
    return tf.io.parse_example(records, FEATURES)


def mark(texts):
    return tf.strings.join(["[START]", tf.strings.lower(texts), "[END]"], " ")


def embed(words):
    return keras.layers.Embedding(64, 16, mask_zero=True)(words)


def read(split):
    files = sorted(tf.io.gfile.glob(f"data/{split}-*"))
    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.shuffle(10_000, seed=1)
    return dataset.batch(64).map(parse, tf.data.AUTOTUNE)


splits = {"train": [], "test": []}
with open("raw/phrases.jsonl") as file:
    for row in map(json.loads, file):
        in_test = zlib.crc32(row["id"].encode()) % 5 == 0
        splits["test" if in_test else "train"].append(row)
os.makedirs("data", exist_ok=True)
for split, rows in splits.items():
    write(split, rows)

keras.utils.set_random_seed(1)
train, test = read("train"), read("test")
english = keras.layers.TextVectorization(20_000)
english.adapt(train.map(lambda row: row["english"]))
french = keras.layers.TextVectorization(20_000, standardize=None)
french.adapt(train.map(lambda row: mark(row["french"])))


def encode(row):
    tokens = french(mark(row["french"]))
    return {
        "english": english(row["english"]),
        "french_shifted": tokens[:, :-1],
    }, tokens[:, 1:]


train, test = (
    dataset.map(encode).prefetch(tf.data.AUTOTUNE) for dataset in (train, test)
)
source = keras.Input((None,), dtype="int64", name="english")
target = keras.Input((None,), dtype="int64", name="french_shifted")
encoder = keras.layers.GRU(32, return_sequences=True, return_state=True)
states, state = encoder(embed(source))
decoder = keras.layers.GRU(32, return_sequences=True)
written = decoder(embed(target), initial_state=state)
found = keras.layers.Attention()([written, states])
both = keras.layers.Concatenate()([written, found])
inputs = {"english": source, "french_shifted": target}
model = keras.Model(inputs, keras.layers.Dense(64, "softmax")(both))
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
model.fit(train, epochs=2, verbose=0)
right, spoken = [], []
for batch, answer in test.as_numpy_iterator():
    right.append(model.predict(batch, verbose=0).argmax(-1) == answer)
    spoken.append(answer)
spoken = np.concatenate(spoken).ravel()
chance = float(np.bincount(spoken).max() / len(spoken))
print(json.dumps({"accuracy": float(np.concatenate(right).mean()), "chance": chance}))
