# Sentences of different lengths, in packs of 64 words, to a language model.
python "$RAW" sentences
# --
recordspec infer raw/sentences.jsonl --out sentences.yaml
cat > config.yaml <<'YAML'
schema: sentences.yaml
data: data
write: {source: {jsonl: raw/sentences.jsonl}, splits: {train: 4, test: 1}}
read: {batch: 16, shuffle: {global: true}, pack: 64}
fit: {inputs: tokens, targets: tokens_next}
YAML
recordspec build config.yaml
recordspec explain config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
train, test = (pipeline.dataset(split) for split in ("train", "test"))
names = train.element_spec[0]
inputs = {name: keras.Input([64], name=name, dtype="int32") for name in names}
tokens, segments, positions = inputs.values()
steps = keras.layers.Embedding(50, 16)(tokens)
steps += keras.layers.Embedding(64, 16)(positions)
mask = rs.SegmentMask()(segments)  # a word sees the words before it in its sentence
steps += keras.layers.MultiHeadAttention(2, 8)(steps, steps, attention_mask=mask)
model = keras.Model(inputs, keras.layers.Dense(50)(steps))
loss = keras.losses.SparseCategoricalCrossentropy(
    from_logits=True, reduction="mean_with_sample_weight"
)
model.compile(keras.optimizers.Adam(0.01), loss)
model.fit(train, epochs=10, verbose=0)
batches = pipeline.iterate("test")
words = np.concatenate([targets[weights > 0] for _, targets, weights in batches])
shares = np.bincount(words) / len(words)
chance = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
print(json.dumps({"loss": model.evaluate(test, verbose=0), "chance": chance}))
PYTHON
python train.py
