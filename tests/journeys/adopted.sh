# 2,000 small TFRecord files of another program, adopted where they are.
python "$RAW" readings
# --
recordspec infer raw/readings --out readings.yaml
recordspec adopt raw/readings --schema readings.yaml
cat > config.yaml <<'YAML'
schema: readings.yaml
data: raw/readings
read: {batch: 64, shuffle: {seed: 1, global: true}}
fit: {inputs: trace, targets: state, encode: {trace: normalize, state: index}}
YAML
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
train, test = pipeline.dataset("train"), pipeline.dataset("test")
model = keras.Sequential([
    keras.Input((16,)),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.003), loss, metrics=["accuracy"])
model.fit(train, epochs=5, verbose=0)
states = np.concatenate([targets for _, targets in test])
chance = float(np.bincount(states).max() / len(states))
print(json.dumps({"accuracy": model.evaluate(test, verbose=0)[1], "chance": chance}))
PYTHON
python train.py
