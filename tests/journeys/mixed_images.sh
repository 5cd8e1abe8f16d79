# A folder of images of all modes, inferred and built without a dropped file.
python "$RAW" modes
# --
recordspec infer raw/modes --out modes.yaml --config config.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
model = keras.Sequential([
    keras.Input((40, 40, 3)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(8, 5, 2, activation="relu"),
    keras.layers.Conv2D(16, 3, 2, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.003), loss, metrics=["accuracy"])
model.fit(pipeline.dataset("train"), epochs=6, verbose=0)
accuracy = model.evaluate(pipeline.dataset("test"), verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["label"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
