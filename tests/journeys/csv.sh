# A CSV file with gaps and dates, to a model of who gives a tip.
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
  inputs: [pickup, company, fare, payment]
  targets: tipped
  encode: {pickup: normalize, company: one_hot, fare: normalize, payment: one_hot}
YAML
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
train, test = pipeline.dataset("train"), pipeline.dataset("test")
inputs = {
    name: keras.Input(spec.shape[1:], name=name)
    for name, spec in train.element_spec[0].items()
}
columns = [
    keras.ops.reshape(value, (-1, value.shape[1] if len(value.shape) > 1 else 1))
    for value in inputs.values()
]
hidden = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()(columns))
model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
counts = pipeline.manifest.class_counts(("test",))["tipped"]
accuracy = model.evaluate(test, verbose=0)[1]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
