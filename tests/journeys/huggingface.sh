# A Hugging Face Dataset in memory, with images and the names of classes.
# --
cat > config.yaml <<'YAML'
schema: digits.yaml
data: data
write: {shuffle: {seed: 1}}
read: {batch: 32, shuffle: {seed: 1}}
fit: {inputs: image, targets: label}
YAML
cat > train.py <<'PYTHON'
import json
import datasets
import keras
import recordspec as rs
from PIL import Image
from sklearn.datasets import load_digits

keras.utils.set_random_seed(1)
digits = load_digits()
images = [Image.fromarray((pixels * 15).astype("uint8")) for pixels in digits.images]
features = datasets.Features({
    "image": datasets.Image(),
    "label": datasets.ClassLabel(names=list("0123456789")),
})
dataset = datasets.Dataset.from_dict(
    {"image": images, "label": digits.target.tolist()}, features=features
)

rs.infer(dataset, "digits").schema.dump("digits.yaml")
pipeline = rs.Pipeline.load("config.yaml")
pipeline.build(dataset.train_test_split(test_size=0.2, seed=1))
model = keras.Sequential([
    keras.Input((8, 8, 1)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Flatten(),
    keras.layers.Dense(32, "relu"),
    keras.layers.Dense(10),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(pipeline.dataset("train"), epochs=10, verbose=0)
accuracy = model.evaluate(pipeline.dataset("test"), verbose=0)[1]
counts = pipeline.manifest.class_counts(("test",))["label"]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
