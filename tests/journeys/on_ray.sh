# A folder of JPEG files to a model of PyTorch, which predicts in tasks of Ray.
python "$RAW" shapes
# --
recordspec infer raw/shapes --out shapes.yaml --config config.yaml
sed -i 's/encoding: jpeg/encoding: jpeg, resize: [32, 32]/' shapes.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import torch
from torch import nn
import recordspec as rs

torch.manual_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
train = pipeline.torch_dataset("train", shuffle={"global": True, "seed": 1})
model = nn.Sequential(
    nn.Conv2d(3, 8, 5, 2), nn.ReLU(),
    nn.Conv2d(8, 16, 3, 2), nn.ReLU(),
    nn.Flatten(), nn.Linear(576, 32), nn.ReLU(), nn.Linear(32, 2),
)
optimizer = torch.optim.Adam(model.parameters(), 0.003)
for _ in range(10):  # each epoch is the next pass
    for images, labels in train:
        optimizer.zero_grad()
        guesses = model(images.permute(0, 3, 1, 2) / 255)
        nn.functional.cross_entropy(guesses, labels).backward()
        optimizer.step()
torch.jit.trace(model, torch.zeros(1, 3, 32, 32)).save("model.pt")
PYTHON
python train.py
cat > predict.py <<'PYTHON'
import json
import numpy as np
import ray
import torch
import recordspec as rs
from recordspec import ray_data

names = rs.Pipeline.load("config.yaml").schema["label"].names


class Predictor:  # each worker loads the model once
    def __init__(self, model):
        self.model = torch.jit.load(model)

    def __call__(self, rows):
        pixels = rows["image"].combine_chunks().flatten(recursive=True)
        images = torch.tensor(pixels.to_numpy()).reshape(-1, 32, 32, 3)
        guesses = self.model(images.permute(0, 3, 1, 2) / 255).argmax(1)
        return {"label": rows["label"].to_numpy(), "guess": np.array(names)[guesses]}


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
rows = ray_data.read("shapes-data", split="test", values="decoded")
predicted = rows.map_batches(
    Predictor,
    fn_constructor_args=["model.pt"],
    batch_format="pyarrow",
    batch_size=32,
    compute=ray.data.ActorPoolStrategy(size=1),
)
found = predicted.to_pandas()
accuracy = (found["label"] == found["guess"]).mean()
chance = found["label"].value_counts(normalize=True).max()
print(json.dumps({"accuracy": accuracy, "chance": chance}))
PYTHON
python predict.py
