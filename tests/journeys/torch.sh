# A folder of JPEG files of several sizes, to a model of PyTorch.
python "$RAW" shapes
# --
recordspec infer raw/shapes --out shapes.yaml --config config.yaml
sed -i 's/encoding: jpeg/encoding: jpeg, resize: [32, 32]/' shapes.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import torch
from torch import nn
from torch.utils.data import DataLoader
import recordspec as rs

torch.manual_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
order = {"global": True, "seed": 1}
train = pipeline.torch_dataset("train", shuffle=order)
test = pipeline.torch_dataset("test", shuffle=None)
loader = DataLoader(train, batch_size=None)
model = nn.Sequential(
    nn.Conv2d(3, 8, 5, 2), nn.ReLU(),
    nn.Conv2d(8, 16, 3, 2), nn.ReLU(),
    nn.Flatten(), nn.LazyLinear(32), nn.ReLU(), nn.Linear(32, 2),
)


def predict(images):
    return model(images.permute(0, 3, 1, 2) / 255)


predict(next(iter(test))[0])  # makes the weights of the lazy layer
optimizer = torch.optim.Adam(model.parameters(), 0.003)
for _ in range(10):  # each epoch is the next pass
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(predict(images), labels).backward()
        optimizer.step()
with torch.no_grad():
    guesses = ((predict(images).argmax(1), labels) for images, labels in test)
    right = sum((guess == labels).sum().item() for guess, labels in guesses)
counts = pipeline.manifest.class_counts(("test",))["label"]
accuracy, chance = right / sum(counts), max(counts) / sum(counts)
print(json.dumps({"accuracy": accuracy, "chance": chance}))
PYTHON
python train.py
