# A dataset in a bucket: built, verified and trained on there.
python "$RAW" reviews
# --
recordspec infer raw/reviews.parquet --out reviews.yaml
cat > config.yaml <<YAML
schema: reviews.yaml
data: $BUCKET/reviews
write:
  source: {parquet: raw/reviews.parquet}
  splits: {train: 80, test: 20}
  shuffle: {seed: 1}
read: {batch: 32, shuffle: {seed: 1}, staging: {folder: copies, size: 64MiB}}
fit: {inputs: tokens, targets: sentiment}
YAML
recordspec build config.yaml
recordspec verify "$BUCKET/reviews"
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
