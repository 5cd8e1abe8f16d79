# Pairs of texts in JSON lines, to a model that translates word by word.
python "$RAW" phrases
# --
cat > schema.yaml <<'YAML'
schema: phrases
features: {english: text, french: text}
YAML
cat > config.yaml <<'YAML'
schema: schema.yaml
data: data
write:
  source: {jsonl: {files: raw/phrases.jsonl, ignore: [id]}}
  splits: {train: 80, test: 20}
read: {batch: 64, shuffle: true}
fit:
  inputs: [english, french_shifted]
  targets: french
  encode: {english: words, french: {as: words, length: 4}}
YAML
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
train, test = (pipeline.dataset(split) for split in ("train", "test"))
english = keras.Input((None,), dtype="int64", name="english")
french = keras.Input((None,), dtype="int64", name="french_shifted")
embed = lambda words: keras.layers.Embedding(64, 16, mask_zero=True)(words)
encoder = keras.layers.GRU(32, return_sequences=True, return_state=True)
read, state = encoder(embed(english))
decoder = keras.layers.GRU(32, return_sequences=True)
written = decoder(embed(french), initial_state=state)
found = keras.layers.Attention()([written, read])
both = keras.layers.Concatenate()([written, found])
inputs = {"english": english, "french_shifted": french}
model = keras.Model(inputs, keras.layers.Dense(64, "softmax")(both))
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
model.fit(train, epochs=2, verbose=0)
right, spoken = [], []
for batch, french in test.as_numpy_iterator():
    right.append(model.predict(batch, verbose=0).argmax(-1) == french)
    spoken.append(french)
spoken = np.concatenate(spoken).ravel()
chance = float(np.bincount(spoken).max() / len(spoken))
print(json.dumps({"accuracy": float(np.concatenate(right).mean()), "chance": chance}))
PYTHON
python train.py
