# A gigabyte of columns, by commands alone: inferred, built, verified, described, measured.
python "$RAW" clicks
# --
recordspec infer raw/clicks.parquet --sample 1000 --out clicks.yaml --config config.yaml
recordspec build config.yaml --jobs 2
recordspec verify clicks-data
recordspec bench config.yaml --seconds 1
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
names = [f"i{number}" for number in range(13)]


def read(split):
    # Batches of numbers and targets.
    return pipeline.dataset(split, batch=1024, map_fit=stacked)


def stacked(inputs, targets):
    return keras.ops.stack([inputs[name] for name in names], 1), targets


model = keras.Sequential([
    keras.layers.BatchNormalization(),
    keras.layers.Dense(16, "relu"),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(read("train"), epochs=1, verbose=0)
counts = pipeline.manifest.class_counts(("test",))["click"]
accuracy = model.evaluate(read("test"), verbose=0)[1]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
