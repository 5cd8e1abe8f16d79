# A model of a table, served: a process without recordspec answers the test rows.
python "$RAW" rides
# --
recordspec infer raw/rides.csv --out rides.yaml
cat > config.yaml <<'YAML'
schema: rides.yaml
data: data
write:
  source: {csv: raw/rides.csv}
  splits: {train: 80, test: 20}
  shuffle: {seed: 1}
read: {batch: 64, shuffle: {seed: 1}}
fit:
  inputs: [fare, payment]
  targets: tipped
  encode: {fare: normalize, payment: one_hot}
YAML
recordspec build config.yaml
cat > train.py <<'PYTHON'
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
inputs = {
    "fare": keras.Input((), name="fare"),
    "payment": keras.Input((3,), name="payment"),
}
columns = [keras.ops.expand_dims(inputs["fare"], 1), inputs["payment"]]
hidden = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()(columns))
model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss)
model.fit(pipeline.dataset("train"), epochs=8, verbose=0)
pipeline.export_model(model, "models/rides/1")
PYTHON
python train.py
cat > ask.py <<'PYTHON'
import glob
import json
import sys
import tensorflow as tf

assert "recordspec" not in sys.modules
dataset = tf.data.TFRecordDataset(sorted(glob.glob("data/test-*")))
records = dataset.batch(10_000).get_single_element()
model = tf.saved_model.load("models/rides/1")
answers = model.signatures["examples"](examples=records)["probabilities"]
features = {"tipped": tf.io.FixedLenFeature([], tf.int64)}
tipped = tf.io.parse_example(records, features)["tipped"]
right = tf.reduce_mean(tf.cast(tf.argmax(answers, 1) == tipped, tf.float32))
most = tf.reduce_max(tf.math.bincount(tf.cast(tipped, tf.int32))) / tf.size(tipped)
print(json.dumps({"accuracy": float(right), "chance": float(most)}))
PYTHON
python ask.py
