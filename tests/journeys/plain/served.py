import json
import os
import random
import zlib

import keras
import pandas as pd
import tensorflow as tf

INPUTS = {
    "fare": tf.io.FixedLenFeature([1], tf.float32, default_value=0.0),
    "payment": tf.io.FixedLenFeature([1], tf.string),
}
TARGET = {"tipped": tf.io.FixedLenFeature([], tf.int64)}


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
    inputs = tf.io.parse_example(records, {**INPUTS, **TARGET})
    tipped = inputs.pop("tipped")
    return inputs, tipped


def read(split):
    files = sorted(tf.io.gfile.glob(f"data/{split}-*"))
    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.shuffle(10_000, seed=1)
    return dataset.batch(64).prefetch(tf.data.AUTOTUNE)


frame = pd.read_csv("raw/rides.csv", parse_dates=["pickup"])
frame["pickup"] = (frame["pickup"] - pd.Timestamp("1970-01-01")).dt.days
in_test = frame["ride"].map(lambda ride: zlib.crc32(ride.encode()) % 5 == 0)
os.makedirs("data", exist_ok=True)
write("train", frame[~in_test])
write("test", frame[in_test])

keras.utils.set_random_seed(1)
train = read("train").map(parse, tf.data.AUTOTUNE)
fare = keras.layers.Normalization()
fare.adapt(train.map(lambda inputs, _: inputs["fare"]))
payment = keras.layers.StringLookup(output_mode="one_hot")
payment.adapt(train.map(lambda inputs, _: inputs["payment"]))
inputs = {
    "fare": keras.Input([1], name="fare"),
    "payment": keras.Input([1], name="payment", dtype="string"),
}
columns = [fare(inputs["fare"]), payment(inputs["payment"])]
hidden = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()(columns))
model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss)
model.fit(train, epochs=8, verbose=0)

# Two endpoints, of serialized tf.train.Examples and of tensors.
archive = keras.export.ExportArchive()
archive.track(model)
archive.add_endpoint(
    "examples",
    lambda examples: model(tf.io.parse_example(examples, INPUTS)),
    [tf.TensorSpec([None], tf.string, "examples")],
)
tensors = {
    name: tf.TensorSpec([None, 1], feature.dtype, name)
    for name, feature in INPUTS.items()
}
archive.add_endpoint("serving_default", model, [tensors])
archive.write_out("models/rides/1", verbose=False)

# The saved model answers the test rows.
records = read("test").unbatch().batch(10_000).get_single_element()
examples = tf.saved_model.load("models/rides/1").signatures["examples"]
answers = examples(examples=records)["output_0"]
_, tipped = parse(records)
right = tf.reduce_mean(tf.cast(tf.argmax(answers, 1) == tipped, tf.float32))
chance = frame["tipped"][in_test].value_counts(normalize=True).max()
print(json.dumps({"accuracy": float(right), "chance": chance}))
