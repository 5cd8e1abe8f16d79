"""The rows that are scanned, and their schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from writing.data import DATASETS, Columns, criteo, tokens_var


@dataclass(frozen=True, kw_only=True)
class Scanned:
    """Rows and their schema.

    Attributes:
        title: for the table.
        rows: the default number of rows.
        schema: in YAML.
        make: makes the columns of a number of rows.
    """

    title: str
    rows: int
    schema: str
    make: Callable[[int], Columns]


def taxi(rows: int) -> Columns:
    """9 numbers and 2 texts of three, as of trips by taxi."""
    rng = np.random.default_rng(0)
    columns: Columns = {f"n{number}": rng.random(rows, np.float32) for number in range(9)}
    return columns | {
        name: rng.choice([b"Cash", b"Card", b"Mobile"], rows) for name in ("company", "payment")
    }


def sequences(rows: int) -> Columns:
    """A user and 1 to 20 steps of an item and a price."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 21, rows)
    return {
        "user": rng.integers(0, 10_000, rows),
        "items": [rng.integers(0, 50_000, length) for length in lengths],
        "prices": [rng.random(length, np.float32) for length in lengths],
    }


SCANNED = {
    "criteo": Scanned(
        title=DATASETS["criteo"].title, rows=200_000, schema=DATASETS["criteo"].schema, make=criteo
    ),
    "taxi": Scanned(
        title="Taxi-like: 9 float32 and 2 texts of three",
        rows=500_000,
        schema="schema: taxi\nfeatures:\n"
        + "".join(f"  n{number}: float32\n" for number in range(9))
        + "  company: string\n  payment: string\n",
        make=taxi,
    ),
    "sequences": Scanned(
        title="SequenceExamples: an int64, and 1 to 20 steps of an int64 and a float32",
        rows=100_000,
        schema="schema: sequences\nrecord: sequence_example\ncontext: {user: int64}\nsequence:\n"
        "  items: {kind: fixed_len_sequence, dtype: int64, shape: []}\n"
        "  prices: {kind: fixed_len_sequence, dtype: float32, shape: []}\n",
        make=sequences,
    ),
    "tokens": Scanned(
        title=DATASETS["tokens_var"].title,
        rows=20_000,
        schema=DATASETS["tokens_var"].schema,
        make=tokens_var,
    ),
}
