# A Parquet file of token lists, to a model of JAX.
python "$RAW" reviews
# --
recordspec infer raw/reviews.parquet --out reviews.yaml --config config.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import json
import jax
import jax.numpy as jnp
import recordspec as rs

pipeline = rs.Pipeline.load("config.yaml")
order = {"global": True, "seed": 1}
train = pipeline.jax_dataset("train", shuffle=order)
test = pipeline.jax_dataset("test", shuffle=None)


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
    for tokens, labels in train:
        weights = step(weights, tokens, labels)
guesses = ((logits(weights, tokens).argmax(1), labels) for tokens, labels in test)
right = sum(int((guess == labels).sum()) for guess, labels in guesses)
counts = pipeline.manifest.class_counts(("test",))["sentiment"]
accuracy, chance = right / sum(counts), max(counts) / sum(counts)
print(json.dumps({"accuracy": accuracy, "chance": chance}))
PYTHON
python train.py
