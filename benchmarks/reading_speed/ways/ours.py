"""recordspec: `rs.read` with its defaults, of rows and of blocks, and with a permutation of all rows."""

from __future__ import annotations

from typing import Any

import recordspec as rs
from reading_speed.data import BATCH, Form, Given
from reading_speed.draining import passes
from reading_speed.ways import Run


def rows(given: Given) -> Run:
    return _reading(given, "rows")


def blocks(given: Given) -> Run:
    return _reading(given, "blocks")


def _reading(given: Given, form: Form) -> Run:
    schema = rs.Schema.loads(given.dataset.schema)
    shuffle: dict[str, Any] = {"shuffle": given.shuffle, "seed": 1} if given.shuffle else {}
    return passes(rs.read(given.folder / form, schema, batch=BATCH, **shuffle), given)


def all_rows(given: Given) -> Run:
    return _permuted(given, "rows")


def all_blocks(given: Given) -> Run:
    return _permuted(given, "blocks")


def _permuted(given: Given, form: Form) -> Run:
    schema = rs.Schema.loads(given.dataset.schema)
    shuffle = {"global": True, "seed": 1}
    return passes(rs.read(given.folder / form, schema, batch=BATCH, shuffle=shuffle), given)
