# `.npy` files of several lengths in folders of folders, to a model.
python "$RAW" vibrations
# --
recordspec infer raw/vibrations --classes path --out schema.yaml --config config.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
train, test = pipeline.dataset("train"), pipeline.dataset("test")
model = keras.Sequential([
    keras.Input((None,)),
    keras.layers.Reshape((-1, 1)),
    keras.layers.Conv1D(16, 7, activation="relu"),
    keras.layers.GlobalMaxPooling1D(),
    keras.layers.Dense(3),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.02), loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
accuracy = model.evaluate(test, verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["label"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
