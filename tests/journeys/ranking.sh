# TF-Ranking's lists of documents to a model that ranks them.
python "$RAW" results
# --
cat > results.yaml <<'YAML'
schema: results
context: {query: {dtype: float32, shape: [4]}}
sequence:
  document: {kind: fixed_len_sequence, dtype: float32, shape: [4], with_length: true}
  clicked: {kind: fixed_len_sequence, dtype: int64}
YAML
cat > config.yaml <<'YAML'
schema: results.yaml
data: data
write:
  source: {train: {tfrecord: raw/train.tfrecord}, test: {tfrecord: raw/test.tfrecord}}
read: {batch: 32, shuffle: {buffer: 1000, seed: 1}}
fit: {inputs: [query, document, document_mask], targets: clicked}
YAML
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
clicked = lambda inputs, targets: (inputs, keras.ops.argmax(targets, axis=1))
train, test = (pipeline.dataset(split, map_fit=clicked) for split in ("train", "test"))
query = keras.Input((4,), name="query")
document = keras.Input((None, 4), name="document")
mask = keras.Input((None,), name="document_mask")
pairs = document * keras.layers.Dense(4)(query)[:, None]
scores = keras.layers.Dense(1)(keras.layers.Dense(16, "relu")(pairs))[..., 0]
scores = scores - 1e9 * (1 - keras.ops.cast(mask, "float32"))
inputs = {"query": query, "document": document, "document_mask": mask}
model = keras.Model(inputs, scores)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
places = np.concatenate([targets for _, targets in test])
chance = float(np.bincount(places).max() / len(places))
print(json.dumps({"accuracy": model.evaluate(test, verbose=0)[1], "chance": chance}))
PYTHON
python train.py
