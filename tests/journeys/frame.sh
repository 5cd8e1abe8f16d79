# A pandas frame, to a model.
# --
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs
from sklearn.datasets import load_wine

keras.utils.set_random_seed(1)
frame = load_wine(as_frame=True).frame
config = rs.infer(frame, "wine").with_options(
    write={"splits": {"train": 3, "test": 1}},
    read={"batch": 16},
    fit={"inputs": ["alcohol", "flavanoids", "hue", "proline"], "targets": "target"},
)
pipeline = config.pipeline("data")
pipeline.build(frame)

train, test = pipeline.dataset("train"), pipeline.dataset("test")
inputs = {name: keras.Input((), name=name) for name in train.element_spec[0]}
hidden = keras.layers.Dense(16, "relu")(keras.ops.stack(list(inputs.values()), 1))
model = keras.Model(inputs, keras.layers.Dense(3)(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(train, epochs=30, verbose=0)
chance = frame["target"].value_counts(normalize=True).max()
accuracy = model.evaluate(test, verbose=0)[1]
print(json.dumps({"accuracy": accuracy, "chance": chance}))
PYTHON
python train.py
