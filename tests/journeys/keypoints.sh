# Images with COCO's keypoints, to a model that finds the points of an image.
python "$RAW" poses
# --
recordspec infer raw/keypoints.json --out poses.yaml
cat > config.yaml <<'YAML'
schema: poses.yaml
data: data
write:
  source: {coco: {annotations: raw/keypoints.json, images: raw/images}}
  splits: {train: 80, test: 20}
  shuffle: {seed: 1}
read: {batch: 32, shuffle: {buffer: 10000, seed: 1}}
fit: {inputs: image, targets: keypoints}
YAML
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import recordspec as rs
import tensorflow as tf

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
first = lambda image, points: (image, tf.reshape(points[:, 0, :, :2] / 32, [-1, 4]))
train, test = (pipeline.dataset(split, map_fit=first) for split in ("train", "test"))
model = keras.Sequential([
    keras.Input((32, 32, 3)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(8, 5, 2, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(4),
])
model.compile(keras.optimizers.Adam(0.003), "mae")
model.fit(train, epochs=10, verbose=0)
points = np.concatenate([batch for _, batch in test])
chance = float(np.abs(points - points.mean(0)).mean())
print(json.dumps({"loss": model.evaluate(test, verbose=0), "chance": chance}))
PYTHON
python train.py
