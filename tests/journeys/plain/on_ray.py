import json
import zlib
from pathlib import Path

import numpy as np
import ray
import torch
from torch import nn

LABELS = ["circle", "square"]
splits = {"train": [], "test": []}
for path in sorted(Path("raw/shapes").glob("*/*.jpg")):
    split = "test" if zlib.crc32(path.read_bytes()) % 5 == 0 else "train"
    splits[split].append(str(path.absolute()))


def read(split):
    images = ray.data.read_images(
        splits[split], size=(32, 32), mode="RGB", include_paths=True
    )

    def labelled(rows):
        names = [Path(path).parent.name for path in rows["path"]]
        labels = np.array([LABELS.index(name) for name in names])
        return {"image": rows["image"], "label": labels}

    return images.map_batches(labelled)


class Predictor:
    def __init__(self, model):
        self.model = torch.jit.load(model)

    def __call__(self, rows):
        images = torch.tensor(rows["image"])
        guesses = self.model(images.permute(0, 3, 1, 2) / 255).argmax(1).numpy()
        return {"label": rows["label"], "guess": guesses}


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
torch.manual_seed(1)
model = nn.Sequential(
    nn.Conv2d(3, 8, 5, 2), nn.ReLU(),
    nn.Conv2d(8, 16, 3, 2), nn.ReLU(),
    nn.Flatten(), nn.Linear(576, 32), nn.ReLU(), nn.Linear(32, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), 0.003)
train = read("train").materialize()  # decoded once, and in memory
for epoch in range(10):
    for rows in train.iter_batches(
        batch_size=32, local_shuffle_buffer_size=1000, local_shuffle_seed=epoch
    ):
        optimizer.zero_grad()
        guesses = model(torch.tensor(rows["image"]).permute(0, 3, 1, 2) / 255)
        labels = torch.tensor(rows["label"])
        nn.functional.cross_entropy(guesses, labels).backward()
        optimizer.step()
torch.jit.trace(model, torch.zeros(1, 3, 32, 32)).save("model.pt")

predicted = read("test").map_batches(
    Predictor,
    fn_constructor_args=["model.pt"],
    batch_size=32,
    compute=ray.data.ActorPoolStrategy(size=1),
)
found = predicted.to_pandas()
accuracy = (found["label"] == found["guess"]).mean()
chance = found["label"].value_counts(normalize=True).max()
print(json.dumps({"accuracy": accuracy, "chance": chance}))
