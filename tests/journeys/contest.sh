# The tables and images of a contest, whose test set has no target, to its submission.
python "$RAW" dogs
# --
cat > dogs.yaml <<'YAML'
schema: dogs
features:
  id: string
  image: {kind: image, shape: [24, 24, 3]}
  breed: {kind: label, names: [beagle, husky], missing: true}
YAML
cat > config.yaml <<'YAML'
schema: dogs.yaml
data: data
write:
  source:
    train:
      csv:
        files: raw/train.csv
        columns: {image: id}
        media: {image: "train/{}.png"}
    test:
      csv:
        files: raw/test.csv
        columns: {image: id, breed: null}
        media: {image: "test/{}.png"}
  key: id
  shuffle: {seed: 1}
read: {batch: 32, shuffle: {buffer: 10000, seed: 1}}
fit: {inputs: image, targets: breed}
YAML
recordspec build config.yaml
cat > train.py <<'PYTHON'
import csv
import json
from collections import Counter

import keras
import numpy as np
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
model = keras.Sequential([
    keras.Input((24, 24, 3)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(8, 5, activation="relu"),
    keras.layers.GlobalMaxPooling2D(),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss)
model.fit(pipeline.dataset("train"), epochs=8, verbose=0)
test = pipeline.dataset("test", targets=False, shuffle=None)
rows = rs.iterate("data", split="test", batch=32)
ids = [id.decode() for batch in rows for id in batch["id"]]
classes = pipeline.class_names()
breeds = [classes[one] for one in model.predict(test, verbose=0).argmax(1)]
submission = dict(zip(ids, breeds))
with open("submission.csv", "w") as file:
    csv.writer(file).writerows([("id", "breed"), *submission.items()])

solution = {row["id"]: row["breed"] for row in csv.DictReader(open("raw/solution.csv"))}
accuracy = np.mean([submission[id] == breed for id, breed in solution.items()])
chance = max(Counter(solution.values()).values()) / len(solution)
print(json.dumps({"accuracy": accuracy, "chance": chance}))
PYTHON
python train.py
