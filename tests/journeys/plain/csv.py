import json
import os
import random
import zlib

import keras
import pandas as pd
import tensorflow as tf

FEATURES = {
    "pickup": tf.io.FixedLenFeature([1], tf.int64),
    "company": tf.io.FixedLenFeature([1], tf.string, default_value=""),
    "fare": tf.io.FixedLenFeature([1], tf.float32, default_value=0.0),
    "payment": tf.io.FixedLenFeature([1], tf.string),
    "tipped": tf.io.FixedLenFeature([], tf.int64),
}


def serialize(row):
    # A tf.train.Example of a row; what is missing is left out.
    example = tf.train.Example()
    feature = example.features.feature
    feature["ride"].bytes_list.value.append(row.ride.encode())
    feature["pickup"].int64_list.value.append(row.pickup)
    if pd.notna(row.company):
        feature["company"].bytes_list.value.append(row.company.encode())
    if pd.notna(row.fare):
        feature["fare"].float_list.value.append(row.fare)
    feature["payment"].bytes_list.value.append(row.payment.encode())
    feature["tipped"].int64_list.value.append(["no", "yes"].index(row.tipped))
    return example.SerializeToString()


def write(split, rows, shards=4):
    records = [serialize(row) for row in rows.itertuples()]
    random.Random(1).shuffle(records)
    for shard in range(shards):
        path = f"data/{split}-{shard:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for record in records[shard::shards]:
                writer.write(record)


def parse(records):
    inputs = tf.io.parse_example(records, FEATURES)
    tipped = inputs.pop("tipped")
    return inputs, tipped


def read(split):
    files = sorted(tf.io.gfile.glob(f"data/{split}-*"))
    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.shuffle(10_000, seed=1)
    dataset = dataset.batch(64).map(parse, tf.data.AUTOTUNE)
    return dataset.prefetch(tf.data.AUTOTUNE)


frame = pd.read_csv("raw/rides.csv", parse_dates=["pickup"])
frame["pickup"] = (frame["pickup"] - pd.Timestamp("1970-01-01")).dt.days
in_test = frame["ride"].map(lambda ride: zlib.crc32(ride.encode()) % 5 == 0)
os.makedirs("data", exist_ok=True)
write("train", frame[~in_test])
write("test", frame[in_test])

keras.utils.set_random_seed(1)
train, test = read("train"), read("test")


def encoded(name, layer):
    # An input, and what a layer that is adapted to the training split makes of it.
    layer.adapt(train.map(lambda inputs, _: inputs[name]))
    value = keras.Input([1], dtype=FEATURES[name].dtype.name, name=name)
    return value, layer(value)


inputs, columns = zip(
    encoded("pickup", keras.layers.Normalization()),
    encoded("company", keras.layers.StringLookup(output_mode="one_hot")),
    encoded("fare", keras.layers.Normalization()),
    encoded("payment", keras.layers.StringLookup(output_mode="one_hot")),
    strict=True,
)
hidden = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()(columns))
outputs = keras.layers.Dense(2)(hidden)
model = keras.Model({value.name: value for value in inputs}, outputs)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
accuracy = model.evaluate(test, verbose=0)[1]
chance = frame["tipped"][in_test].value_counts(normalize=True).max()
print(json.dumps({"accuracy": accuracy, "chance": chance}))
