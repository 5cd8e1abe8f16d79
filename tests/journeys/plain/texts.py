import json
import os
import random
import zlib

import keras
import tensorflow as tf

CLASSES = ["blame", "praise"]
FEATURES = {
    "text": tf.io.FixedLenFeature([], tf.string),
    "opinion": tf.io.FixedLenFeature([], tf.int64),
}


def serialize(row):
    example = tf.train.Example()
    feature = example.features.feature
    feature["text"].bytes_list.value.append(row["text"].encode())
    feature["opinion"].int64_list.value.append(CLASSES.index(row["opinion"]))
    return example.SerializeToString()


def write(split, rows, shards=4):
    random.Random(1).shuffle(rows)
    for shard in range(shards):
        path = f"data/{split}-{shard:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for row in rows[shard::shards]:
                writer.write(serialize(row))


def parse(records):
    parsed = tf.io.parse_example(records, FEATURES)
    return parsed["text"], parsed["opinion"]


def read(split):
    files = sorted(tf.io.gfile.glob(f"data/{split}-*"))
    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    if split == "train":
        dataset = dataset.shuffle(10_000, seed=1)
    return dataset.batch(32).map(parse, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


splits = {"train": [], "test": []}
with open("raw/opinions.jsonl") as file:
    for row in map(json.loads, file):
        in_test = zlib.crc32(str(row["id"]).encode()) % 5 == 0
        splits["test" if in_test else "train"].append(row)
os.makedirs("data", exist_ok=True)
for split, rows in splits.items():
    write(split, rows)

keras.utils.set_random_seed(1)
train = read("train")
words = keras.layers.TextVectorization(20_000)
words.adapt(train.map(lambda texts, _: texts))
model = keras.Sequential([
    keras.Input((None,), dtype="int64"),
    keras.layers.Embedding(words.vocabulary_size(), 16, mask_zero=True),
    keras.layers.GlobalAveragePooling1D(),
    keras.layers.Dense(2, "softmax"),
])
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
model.fit(
    train.map(lambda texts, opinions: (words(texts), opinions)), epochs=3, verbose=0
)
module = tf.Module()
module.model, module.words = model, words


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
def predict(text):
    probabilities = model(words(text))
    return {
        "class": tf.gather(CLASSES, tf.argmax(probabilities, 1)),
        "probabilities": probabilities,
    }


module.predict = predict
tf.saved_model.save(module, "models/opinions/1", {"serving_default": predict})

rows = splits["test"]
served = tf.saved_model.load("models/opinions/1")
answers = served.predict(tf.constant([row["text"] for row in rows]))["class"].numpy()
said = [row["opinion"] for row in rows]
right = sum(
    answer.decode() == word for answer, word in zip(answers, said, strict=False)
)
chance = max(said.count(word) for word in set(said)) / len(said)
print(json.dumps({"accuracy": right / len(rows), "chance": chance}))
