import json
import random
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq

LABELS = ["bad", "good"]


def batches(rows, seed=None):
    # Batches of 32 rows, whose tokens are padded with zeros; all rows are in memory.
    rows = list(rows)
    if seed is not None:
        random.Random(seed).shuffle(rows)
    for start in range(0, len(rows), 32):
        some = rows[start : start + 32]
        tokens = np.zeros(
            (len(some), max(len(row["tokens"]) for row in some)), np.int32
        )
        for number, row in enumerate(some):
            tokens[number, : len(row["tokens"])] = row["tokens"]
        labels = np.array([LABELS.index(row["sentiment"]) for row in some])
        yield jnp.asarray(tokens), jnp.asarray(labels)


splits = {"train": [], "test": []}
for row in pq.read_table("raw/reviews.parquet").to_pylist():
    key = zlib.crc32(json.dumps(row).encode())
    splits["test" if key % 5 == 0 else "train"].append(row)


def logits(weights, tokens):
    # The mean of the embeddings of all tokens but the padding, 0.
    real = (tokens > 0)[..., None]
    mean = (weights["table"][tokens] * real).sum(1) / real.sum(1)
    return mean @ weights["out"]


def loss(weights, tokens, labels):
    logs = jax.nn.log_softmax(logits(weights, tokens))
    return -logs[jnp.arange(len(labels)), labels].mean()


@jax.jit
def step(weights, tokens, labels):
    slopes = jax.grad(loss)(weights, tokens, labels)
    return jax.tree.map(lambda weight, slope: weight - 5 * slope, weights, slopes)


one, two = jax.random.split(jax.random.key(1))
weights = {
    "table": jax.random.normal(one, (100, 8)) / 9,
    "out": jax.random.normal(two, (8, 2)) / 9,
}
for epoch in range(10):
    for tokens, labels in batches(splits["train"], epoch):
        weights = step(weights, tokens, labels)
test = batches(splits["test"])
right = sum(
    int((logits(weights, tokens).argmax(1) == labels).sum()) for tokens, labels in test
)
counts = np.bincount([LABELS.index(row["sentiment"]) for row in splits["test"]])
accuracy, chance = right / counts.sum(), counts.max() / counts.sum()
print(json.dumps({"accuracy": float(accuracy), "chance": float(chance)}))
