"""How TFDS stores features: dtypes, keys, and the names of files."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.spec.values import DTYPES as OURS
from recordspec.spec.values import is_integer

# By the names that features.json has had for them.
DTYPES = {name: name for name in OURS} | {"string": "string", "object": "string", "str": "string"}
# The dtype that tf.io parses, in which TFDS stores each when no encoding is given.
STORED: dict[str, str] = {
    **{name: "int64" for name in OURS if is_integer(name)},
    "bool": "int64",
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), "float32"),
    "string": "string",
}
# What TFDS reads where an optional value is missing: the smallest value.
OPTIONAL_DEFAULTS: dict[str, Any] = {
    "string": "",
    "int64": int(np.iinfo(np.int64).min),
    "float32": float(np.finfo(np.float32).min),
}
# TFDS appends these to the key of nested sequences.
FLAT, ROW_LENGTHS = "ragged_flat_values", "ragged_row_lengths_"
LABELS_SUFFIX = ".labels.txt"


def file_stem(name: str) -> str:
    """How a feature's name appears in the names of files."""
    return name.replace("/", ".")
