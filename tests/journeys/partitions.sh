# Parquet files in folders named after columns, as Spark writes them, to a model.
python "$RAW" trips
# --
recordspec infer raw/trips --out trips.yaml --config config.yaml
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
model.fit(train, epochs=10, verbose=0)
accuracy = model.evaluate(test, verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["category"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
