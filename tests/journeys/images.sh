# A folder of JPEG files of several sizes, with augmentation.
python "$RAW" shapes
# --
recordspec infer raw/shapes --out shapes.yaml --config config.yaml
sed -i 's/encoding: jpeg/encoding: jpeg, resize: [32, 32]/' shapes.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
augment = keras.Sequential([
    keras.layers.RandomFlip(),
    keras.layers.RandomRotation(0.05),
])
train = pipeline.dataset(
    "train", map_fit=lambda images, labels: (augment(images, training=True), labels)
)
test = pipeline.dataset("test")
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
model.fit(train, epochs=10, verbose=0)
accuracy = model.evaluate(test, verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["label"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
