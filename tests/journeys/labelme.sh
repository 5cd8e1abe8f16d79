# Images with the JSON files of LabelMe, to a model that finds the box of an image.
python "$RAW" labelme
# --
recordspec infer raw/images --out objects.yaml --config config.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
first = lambda images, targets: (images, targets["boxes"][:, 0])
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
