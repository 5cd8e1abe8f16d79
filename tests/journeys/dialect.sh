# A compressed text file without a header, with comments and lists in its cells, to a model.
python "$RAW" log
# --
cat > press.yaml <<'YAML'
schema: press
features:
  number: int64
  part: string
  load: float32
  alarms: {kind: var_len, dtype: string}
  state: {kind: label, names: [run, stop]}
YAML
cat > config.yaml <<'YAML'
schema: press.yaml
data: data
write:
  source:
    csv:
      files: raw/press.csv.bz2
      header: [number, part, load, alarms, state]
      delimiter: ;
      comment: "#"
      quote: null
      lists: {alarms: "|"}
  key: number
  splits: {train: 80, test: 20}
  shuffle: {seed: 1}
read: {batch: 32, shuffle: {buffer: 10000, seed: 1}}
fit:
  inputs: [part, load, alarms]
  targets: state
  encode: {part: one_hot, load: normalize, alarms: multi_hot}
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
    name: keras.Input(spec.shape[1:], dtype=spec.dtype, name=name.replace(".", "_"))
    for name, spec in train.element_spec[0].items()
}
columns = [
    keras.layers.Flatten()(keras.ops.expand_dims(keras.ops.cast(one, "float32"), -1))
    for one in inputs.values()
]
hidden = keras.layers.Dense(32, "relu")(keras.layers.Concatenate()(columns))
model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
model.fit(train, epochs=6, verbose=0)
accuracy = model.evaluate(test, verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["state"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
