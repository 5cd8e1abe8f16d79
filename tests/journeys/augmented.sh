# COCO annotations, inferred, to a model that finds the box of an image, trained on augmented images.
python "$RAW" objects
# --
recordspec infer raw/instances.json --out objects.yaml
cat > config.yaml <<'YAML'
schema: objects.yaml
data: data
write:
  source: {coco: {annotations: raw/instances.json, images: raw/images}}
  splits: {train: 80, test: 20}
  shuffle: {seed: 1}
read:
  batch: 32
  shuffle: {seed: 1}
  augment: {seed: 1, flip: both, brightness: 0.1, contrast: [0.8, 1.2]}
fit: {inputs: image, targets: boxes, pad_to: {boxes: 1}}
YAML
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
first = lambda images, boxes: (images, boxes[:, 0])
train, test = (pipeline.dataset(split, map_fit=first) for split in ("train", "test"))
model = keras.Sequential([
    keras.Input((48, 48, 3)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(8, 5, 2, activation="relu"),
    keras.layers.Conv2D(16, 3, 2, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(4),
])
model.compile("adam", "mae")
model.fit(train, epochs=10, verbose=0)
boxes = np.concatenate([batch for _, batch in test])
chance = float(np.abs(boxes - boxes.mean(0)).mean())
print(json.dumps({"loss": model.evaluate(test, verbose=0), "chance": chance}))
PYTHON
python train.py
