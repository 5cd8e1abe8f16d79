"""Prints the loss of a small transformer over packs, and over the same rows alone, on the backend of Keras."""

from __future__ import annotations

import sys

import keras
import numpy as np

import recordspec as rs

LENGTH, WORDS, WIDTH = 48, 90, 16


def transformer() -> keras.Model:
    keras.utils.set_random_seed(1)
    names = ("tokens", "tokens_segment_ids", "tokens_positions")
    tokens, segments, places = (keras.Input([LENGTH], dtype="int32", name=name) for name in names)
    made = keras.layers.Embedding(WORDS, WIDTH)(tokens) + keras.layers.Embedding(LENGTH, WIDTH)(places)
    mask = rs.SegmentMask()(segments)
    for _ in range(2):
        normal = keras.layers.LayerNormalization()(made)
        made += keras.layers.MultiHeadAttention(2, 8)(normal, normal, attention_mask=mask)
        wide = keras.layers.Dense(32, activation="gelu")(keras.layers.LayerNormalization()(made))
        made += keras.layers.Dense(WIDTH)(wide)
    return keras.Model([tokens, segments, places], keras.layers.Dense(WORDS)(made))


def loss(model: keras.Model, batches) -> float:
    """The mean loss of all values with a weight."""
    total = count = 0.0
    for inputs, targets, weights in batches:
        logits = np.asarray(model.predict_on_batch([inputs[one.name] for one in model.inputs]), np.float64)
        chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        total -= (np.take_along_axis(chances, targets[..., None], -1)[..., 0] * weights).sum()
        count += weights.sum()
    return total / count


def alone(rows):
    """Each row in a sequence of its own, padded."""
    for row in rows:
        tokens = row["tokens"]
        made = {
            name: np.zeros((1, LENGTH), np.int64)
            for name in ("tokens", "segments", "places", "next", "weights")
        }
        size = len(tokens)
        made["tokens"][0, :size], made["segments"][0, :size] = tokens, 1
        made["places"][0, :size] = np.arange(size)
        if size > 1:
            made["next"][0, : size - 1], made["weights"][0, : size - 1] = tokens[1:], 1
        inputs = {"tokens": made["tokens"], "tokens_segment_ids": made["segments"]}
        yield {**inputs, "tokens_positions": made["places"]}, made["next"], made["weights"]


if __name__ == "__main__":
    pipeline, model = rs.Pipeline.load(sys.argv[1]), transformer()
    packed = loss(model, pipeline.iterate("train"))
    print(keras.backend.backend(), packed, loss(model, alone(pipeline.open("train"))))
