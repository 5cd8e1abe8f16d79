# Sequences with a label for each step, as SequenceExamples.
python "$RAW" sentences
# --
cat > sentences.yaml <<'YAML'
schema: sentences
context:
  topic: int64
sequence:
  tokens: {kind: fixed_len_sequence, dtype: int64, with_length: true}
  tags: {kind: label, names: [article, noun, verb]}
YAML
cat > config.yaml <<'YAML'
schema: sentences.yaml
data: data
write:
  source: {jsonl: raw/sentences.jsonl}
  splits: {train: 80, test: 20}
  shuffle: {seed: 1}
read: {batch: 32, shuffle: {seed: 1}}
fit:
  inputs: [tokens, tokens_mask]
  targets: tags
  weights: tags_mask
YAML
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
tokens = keras.Input([None], dtype="int64", name="tokens")
mask = keras.Input([None], dtype="bool", name="tokens_mask")
steps = keras.layers.Embedding(50, 8)(tokens)
steps = keras.layers.GRU(16, return_sequences=True)(steps, mask=mask)
steps = keras.layers.Dense(3)(steps)
model = keras.Model({"tokens": tokens, "tokens_mask": mask}, steps)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
model.compile("adam", loss, weighted_metrics=["accuracy"])
model.fit(pipeline.dataset("train"), epochs=5, verbose=0)
test = pipeline.dataset("test")
accuracy = model.evaluate(test, verbose=0)[1]
tags = np.concatenate([batch[batch >= 0] for _, batch, _ in test.as_numpy_iterator()])
print(json.dumps({"accuracy": accuracy, "chance": np.bincount(tags).max() / len(tags)}))
PYTHON
python train.py
