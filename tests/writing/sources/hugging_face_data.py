"""A class label of Hugging Face, and the rows of a dataset that is written."""

from __future__ import annotations

import datasets

import recordspec as rs


def read(schema, folder, split="train") -> list[dict]:
    rows = rs.read(folder / f"{split}-*", schema)
    return [{name: value.numpy() for name, value in row.items()} for row in rows]


INNER = datasets.ClassLabel(names=["a", "b", "c"])
