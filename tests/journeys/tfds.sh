# A TFDS folder, there and back: described for TFDS, inferred from it, and built anew.
python "$RAW" reviews
# --
recordspec infer raw/reviews.parquet --out reviews.yaml --config first.yaml
recordspec build first.yaml
recordspec export reviews-data --as tfds
recordspec infer reviews-data --out again.yaml --config config.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
model = keras.Sequential([
    keras.layers.Embedding(100, 8, mask_zero=True),
    keras.layers.GlobalAveragePooling1D(),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(pipeline.dataset("train"), epochs=10, verbose=0)
accuracy = model.evaluate(pipeline.dataset("test"), verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["sentiment"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
