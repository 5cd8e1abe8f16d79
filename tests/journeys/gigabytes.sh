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

pipeline = rs.Pipeline.load("config.yaml")
names = [f"i{number}" for number in range(13)]
numbers = lambda inputs, targets: (keras.ops.stack([inputs[name] for name in names], 1), targets)
model = keras.Sequential([keras.layers.BatchNormalization(), keras.layers.Dense(16, "relu"), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(pipeline.dataset("train", batch=1024, map_fit=numbers), epochs=1, verbose=0)
counts = pipeline.manifest.class_counts(("test",))["click"]
found = model.evaluate(pipeline.dataset("test", batch=1024, map_fit=numbers), verbose=0)[1]
print(json.dumps({"accuracy": found, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
