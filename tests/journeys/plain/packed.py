import json
import os
import random
import zlib

import keras
import numpy as np
import tensorflow as tf

LENGTH = 64
FEATURES = {"tokens": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}


def serialize(row):
    example = tf.train.Example()
    example.features.feature["tokens"].int64_list.value.extend(row["tokens"])
    return example.SerializeToString(deterministic=True)


def write(split, records, shards=4):
    for shard in range(shards):
        path = f"data/{split}-{shard:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for record in records[shard::shards]:
                writer.write(record)


def packs(split):
    # The first open pack that has room takes a sentence. A training that is interrupted
    # cannot continue there: this function alone knows which sentences are open.
    files = sorted(tf.io.gfile.glob(f"data/{split}-*"))
    records = tf.data.TFRecordDataset(files)
    if split == "train":
        records = records.shuffle(10_000)
    open_packs = []
    for record in records:
        sentence = tf.io.parse_single_example(record, FEATURES)["tokens"].numpy()
        for pack in open_packs:
            if sum(map(len, pack)) + len(sentence) <= LENGTH:
                pack.append(sentence)
                break
        else:
            open_packs.append([sentence])
        if len(open_packs) > 64:
            yield padded(open_packs.pop(0))
    yield from map(padded, open_packs)


def padded(pack):
    tokens, following = np.zeros([2, LENGTH], np.int64)
    segments, positions = np.zeros([2, LENGTH], np.int32)
    weights, start = np.zeros(LENGTH, np.float32), 0
    for number, sentence in enumerate(pack, 1):
        stop = start + len(sentence)
        tokens[start:stop], segments[start:stop] = sentence, number
        positions[start:stop] = np.arange(len(sentence))
        following[start : stop - 1], weights[start : stop - 1] = sentence[1:], 1
        start = stop
    return (
        {"tokens": tokens, "segments": segments, "positions": positions},
        following,
        weights,
    )


def read(split):
    inputs = {
        "tokens": tf.TensorSpec([LENGTH], tf.int64),
        "segments": tf.TensorSpec([LENGTH], tf.int32),
        "positions": tf.TensorSpec([LENGTH], tf.int32),
    }
    signature = (
        inputs,
        tf.TensorSpec([LENGTH], tf.int64),
        tf.TensorSpec([LENGTH], tf.float32),
    )
    dataset = tf.data.Dataset.from_generator(
        lambda: packs(split), output_signature=signature
    )
    return dataset.batch(16).prefetch(tf.data.AUTOTUNE)


splits = {"train": [], "test": []}
with open("raw/sentences.jsonl") as file:
    for line in file:
        record = serialize(json.loads(line))
        splits["test" if zlib.crc32(record) % 5 == 0 else "train"].append(record)
os.makedirs("data", exist_ok=True)
for split, records in splits.items():
    random.Random(1).shuffle(records)
    write(split, records)

keras.utils.set_random_seed(1)
inputs = {
    name: keras.Input([LENGTH], name=name, dtype="int32")
    for name in ("tokens", "segments", "positions")
}
tokens, segments, positions = inputs.values()
steps = keras.layers.Embedding(50, 16)(tokens) + keras.layers.Embedding(LENGTH, 16)(
    positions
)
same = segments[:, :, None] == segments[:, None, :]
causal = np.tril(np.ones((LENGTH, LENGTH), bool))
mask = keras.ops.logical_and(same, causal)
steps += keras.layers.MultiHeadAttention(2, 8)(steps, steps, attention_mask=mask)
model = keras.Model(inputs, keras.layers.Dense(50)(steps))
loss = keras.losses.SparseCategoricalCrossentropy(
    from_logits=True, reduction="mean_with_sample_weight"
)
model.compile(keras.optimizers.Adam(0.01), loss)
model.fit(read("train"), epochs=10, verbose=0)
words = np.concatenate([targets[weights > 0] for _, targets, weights in read("test")])
shares = np.bincount(words) / len(words)
chance = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
print(json.dumps({"loss": model.evaluate(read("test"), verbose=0), "chance": chance}))
