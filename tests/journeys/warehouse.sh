# A Parquet file of the types of a warehouse, to a model.
python "$RAW" orders
# --
recordspec infer raw/orders.parquet --out orders.yaml
cat > config.yaml <<'YAML'
schema: orders.yaml
data: data
write:
  source: {parquet: raw/orders.parquet}
  key: order
  splits: {train: 80, test: 20}
  shuffle: {seed: 1}
read: {batch: 32, shuffle: {buffer: 10000, seed: 1}}
fit:
  inputs: [price, at, member, member_missing, customer.age, customer.town, quantities]
  targets: late
  encode:
    price: normalize
    at: normalize
    customer.age: normalize
    customer.town: one_hot
  pad_to: {quantities: 5}
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
counts = pipeline.manifest.class_counts(("test",))["late"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
