# A dataset that is read without recordspec, with the parse dictionary that `explain` wrote.
python "$RAW" shapes
# --
recordspec infer raw/shapes --out shapes.yaml --config config.yaml
recordspec build config.yaml
recordspec explain shapes.yaml --python > parse_shapes.py
cat > train.py <<'PYTHON'
import glob
import json
import sys

sys.modules["recordspec"] = None
import keras
import numpy as np
import parse_shapes
import tensorflow as tf

keras.utils.set_random_seed(1)


def decode(serialized):
    columns = parse_shapes.parse(serialized)
    images = tf.map_fn(decode_image, columns["image"], fn_output_signature=tf.float32)
    return images, columns["label"]


def decode_image(data):
    return tf.image.resize(tf.io.decode_jpeg(data, channels=3), [32, 32])


def read(split):
    files = sorted(glob.glob(f"shapes-data/{split}-*"))
    dataset = tf.data.TFRecordDataset(files).batch(32)
    return dataset.map(decode, tf.data.AUTOTUNE)


model = keras.Sequential([
    keras.Input((32, 32, 3)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(8, 5, 2, activation="relu"),
    keras.layers.Conv2D(16, 3, 2, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.003), loss, metrics=["accuracy"])
model.fit(read("train"), epochs=10, verbose=0)
accuracy = model.evaluate(read("test"), verbose=0)[1]
labels = np.concatenate([batch for _, batch in read("test")])
chance = np.bincount(labels).max() / len(labels)
print(json.dumps({"accuracy": accuracy, "chance": chance}))
PYTHON
python train.py
