# A JSON document with a list of nested objects, to a model.
python "$RAW" questions
# --
recordspec infer raw/exam.json --out exam.yaml --config config.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
train, test = pipeline.dataset("train"), pipeline.dataset("test")
kinds = keras.Input((2,), name="kinds")
numbers = keras.Input((None,), name="numbers")
total = keras.ops.sum(numbers, 1, keepdims=True) / 100
hidden = keras.layers.Dense(16, "relu")(keras.ops.concatenate([kinds, total], 1))
inputs = {"steps.kind": kinds, "steps.number": numbers}
model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.02), loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
accuracy = model.evaluate(test, verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["meta.level"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
