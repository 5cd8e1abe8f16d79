# A dataset that is read without recordspec, by the module that `explain` wrote.
python "$RAW" shapes
# --
recordspec infer raw/shapes --out shapes.yaml --config config.yaml
sed -i 's/encoding: jpeg/encoding: jpeg, resize: [32, 32]/' shapes.yaml
recordspec build config.yaml
recordspec explain shapes.yaml --as python > shapes_reader.py
cat > train.py <<'PYTHON'
import glob
import json
import sys

sys.modules["recordspec"] = None
import keras
import numpy as np
import shapes_reader

keras.utils.set_random_seed(1)


def read(split):
    files = sorted(glob.glob(f"shapes-data/{split}-*"))
    dataset = shapes_reader.dataset(files, 32)
    return dataset.map(lambda row: (row["image"], row["label"]))


model = keras.Sequential([
    keras.Input((32, 32, 3)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(8, 5, 2, activation="relu"),
    keras.layers.Conv2D(16, 3, 2, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.003), loss, metrics=["accuracy"])
model.fit(read("train"), epochs=10, verbose=0)
accuracy = model.evaluate(read("test"), verbose=0)[1]
labels = np.concatenate([batch for _, batch in read("test")])
chance = np.bincount(labels).max() / len(labels)
print(json.dumps({"accuracy": accuracy, "chance": chance}))
PYTHON
python train.py
