"""Whether the classifier of an example has learned something: it beats a constant answer."""

from __future__ import annotations

from typing import Any

import numpy as np

# By how much the accuracy of an example exceeds the share of the most frequent class.
MARGIN = 0.1


def check_accuracy(accuracy: float, majority: float) -> None:
    """Asserts that an accuracy exceeds the share of the most frequent class by `MARGIN`."""
    assert accuracy >= majority + MARGIN, f"accuracy {accuracy:.3f}, most frequent class {majority:.3f}"


def check_learned(model: Any, rows: Any, reported: float | None = None) -> None:
    """Asserts that a classifier beats a constant answer, and that its reported accuracy is right.

    Args:
        model: a Keras model that returns a number for each class, in the last dimension.
        rows: a dataset of (inputs, labels) or (inputs, labels, weights). Labels below 0 are padding.
        reported: the accuracy on these rows that an example prints, if it does.
    """
    labels, guesses = [], []
    for inputs, of_batch, *_ in rows:
        known = of_batch.numpy() >= 0
        labels.append(of_batch.numpy()[known])
        guesses.append(np.argmax(model(inputs, training=False), axis=-1)[known])
    found = np.concatenate(labels)
    accuracy = float(np.mean(found == np.concatenate(guesses)))
    check_accuracy(accuracy, np.bincount(found).max() / len(found))
    if reported is not None:
        assert abs(reported - accuracy) < 0.005, (reported, accuracy)
