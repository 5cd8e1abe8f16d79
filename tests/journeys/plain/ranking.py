import json

import keras
import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FEATURES = {
    "document": tf.io.FixedLenFeature([4], tf.float32),
    "clicked": tf.io.FixedLenFeature([], tf.int64),
}
# The message of TF-Ranking, which TensorFlow does not have.
package = descriptor_pb2.FileDescriptorProto(
    name="elwc.proto",
    package="elwc",
    dependency=["tensorflow/core/example/example.proto"],
)
message = package.message_type.add(name="ExampleListWithContext")
for number, (name, label) in enumerate((("examples", 3), ("context", 1)), 1):
    message.field.add(
        name=name, number=number, label=label, type=11, type_name=".tensorflow.Example"
    )
descriptor_pool.Default().Add(package)
found = descriptor_pool.Default().FindMessageTypeByName("elwc.ExampleListWithContext")
ELWC = message_factory.GetMessageClass(found)


def lists(split):
    for record in tf.data.TFRecordDataset(f"raw/{split}.tfrecord").as_numpy_iterator():
        elwc = ELWC.FromString(record)
        query = list(elwc.context.features.feature["query"].float_list.value)
        yield query, [example.SerializeToString() for example in elwc.examples]


def parse(query, documents):
    # A batch of lists, padded to the longest.
    examples = documents.with_values(
        tf.io.parse_example(documents.values, FEATURES)["document"]
    )
    clicked = documents.with_values(
        tf.io.parse_example(documents.values, FEATURES)["clicked"]
    )
    mask = tf.ones_like(clicked, tf.bool).to_tensor()
    inputs = {"query": query, "document": examples.to_tensor(), "document_mask": mask}
    return inputs, tf.argmax(clicked.to_tensor(), 1)


def read(split):
    types = tf.TensorSpec([4], tf.float32), tf.RaggedTensorSpec([None], tf.string, 0)
    dataset = tf.data.Dataset.from_generator(
        lambda: lists(split),
        output_signature=(types[0], tf.TensorSpec([None], tf.string)),
    )
    if split == "train":
        dataset = dataset.shuffle(1000, seed=1)
    return (
        dataset
        .ragged_batch(32)
        .map(
            lambda query, documents: parse(
                query.to_tensor(shape=[None, 4])
                if isinstance(query, tf.RaggedTensor)
                else query,
                documents,
            )
        )
        .prefetch(tf.data.AUTOTUNE)
    )


keras.utils.set_random_seed(1)
train, test = read("train"), read("test")
query = keras.Input((4,), name="query")
document = keras.Input((None, 4), name="document")
mask = keras.Input((None,), name="document_mask")
pairs = document * keras.layers.Dense(4)(query)[:, None]
scores = keras.layers.Dense(1)(keras.layers.Dense(16, "relu")(pairs))[..., 0]
scores = scores - 1e9 * (1 - keras.ops.cast(mask, "float32"))
model = keras.Model(
    {"query": query, "document": document, "document_mask": mask}, scores
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
places = np.concatenate([targets for _, targets in test])
chance = float(np.bincount(places).max() / len(places))
print(json.dumps({"accuracy": model.evaluate(test, verbose=0)[1], "chance": chance}))
