# A Parquet file of token lists, to a model of padded text.
python "$RAW" reviews
# --
recordspec infer raw/reviews.parquet --out reviews.yaml --config config.yaml
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
