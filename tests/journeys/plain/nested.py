import json
import os
import random
import zlib

import keras
import tensorflow as tf

TAGS = ["cats", "code", "food", "news"]
CLASSES = ["no", "yes"]
FEATURES = {
    "followers": tf.io.FixedLenFeature([1], tf.float32),
    "tags": tf.io.RaggedFeature(tf.string),
    "lengths": tf.io.RaggedFeature(tf.int64),
    "popular": tf.io.FixedLenFeature([], tf.int64),
}


def serialize(post):
    example = tf.train.Example()
    feature = example.features.feature
    feature["followers"].float_list.value.append(post["author"]["stats"]["followers"])
    feature["tags"].bytes_list.value.extend(tag.encode() for tag in post["tags"])
    feature["lengths"].int64_list.value.extend(
        reply["length"] for reply in post["replies"]
    )
    feature["popular"].int64_list.value.append(CLASSES.index(post["popular"]))
    return example.SerializeToString()


def write(split, posts, shards=4):
    random.Random(1).shuffle(posts)
    for shard in range(shards):
        path = f"data/{split}-{shard:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for post in posts[shard::shards]:
                writer.write(serialize(post))


def parse(records):
    inputs = tf.io.parse_example(records, FEATURES)
    popular = inputs.pop("popular")
    inputs["tags"] = inputs["tags"].to_tensor("")
    inputs["lengths"] = inputs["lengths"].to_tensor(shape=[None, 12])
    return inputs, popular


def read(split):
    files = sorted(tf.io.gfile.glob(f"data/{split}-*"))
    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.shuffle(10_000, seed=1)
    return dataset.batch(32).map(parse, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


splits = {"train": [], "test": []}
with open("raw/posts.jsonl") as file:
    for post in map(json.loads, file):
        in_test = zlib.crc32(str(post["id"]).encode()) % 5 == 0
        splits["test" if in_test else "train"].append(post)
os.makedirs("data", exist_ok=True)
for split, posts in splits.items():
    write(split, posts)

keras.utils.set_random_seed(1)
train, test = read("train"), read("test")
scale = keras.layers.Normalization()
scale.adapt(train.map(lambda inputs, _: inputs["followers"]))
lookup = keras.layers.StringLookup(
    vocabulary=TAGS, mask_token="", output_mode="multi_hot"
)
inputs = {
    "followers": keras.Input((1,), name="followers"),
    "tags": keras.Input((None,), dtype="string", name="tags"),
    "lengths": keras.Input((12,), dtype="int64", name="lengths"),
}
columns = keras.layers.Concatenate()([
    scale(inputs["followers"]),
    lookup(inputs["tags"]),
    keras.ops.cast(inputs["lengths"], "float32"),
])
outputs = keras.layers.Dense(2)(keras.layers.Dense(32, "relu")(columns))
model = keras.Model(inputs, outputs)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
said = [post["popular"] for post in splits["test"]]
chance = max(said.count(name) for name in CLASSES) / len(said)
print(json.dumps({"accuracy": model.evaluate(test, verbose=0)[1], "chance": chance}))
