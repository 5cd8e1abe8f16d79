# A folder of WAV files of mixed sample rates, channels and widths.
python "$RAW" rates
# --
recordspec infer raw/rates --out rates.yaml --config config.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
model = keras.Sequential([
    keras.Input((None, 1)),
    keras.layers.Conv1D(8, 64, 8, activation="relu"),
    keras.layers.Conv1D(16, 8, 4, activation="relu"),
    keras.layers.GlobalAveragePooling1D(),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
model.fit(pipeline.dataset("train"), epochs=6, verbose=0)
accuracy = model.evaluate(pipeline.dataset("test"), verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["label"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
