# JSON lines of nested objects, to a model.
python "$RAW" posts
# --
recordspec infer raw/posts.jsonl --out posts.yaml
cat > config.yaml <<'YAML'
schema: posts.yaml
data: data
write:
  source: {jsonl: raw/posts.jsonl}
  key: id
  splits: {train: 80, test: 20}
  shuffle: {seed: 1}
read: {batch: 32, shuffle: {buffer: 10000, seed: 1}}
fit:
  inputs: [author.stats.followers, tags, replies.length]
  targets: popular
  encode: {author.stats.followers: normalize, tags: multi_hot}
  pad_to: {replies.length: 12}
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
model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
accuracy = model.evaluate(test, verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["popular"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
