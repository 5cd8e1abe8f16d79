"""What TFDS calls dtypes, and which list it stores each in."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.spec.values import DTYPES as OURS
from recordspec.spec.values import is_integer

# By the names that features.json has had for them.
DTYPES = {name: name for name in OURS} | {"string": "string", "object": "string", "str": "string"}
# What tf.io parses, in which TFDS stores them when no encoding is asked for.
STORED: dict[str, str] = {
    **{name: "int64" for name in OURS if is_integer(name)},
    "bool": "int64",
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), "float32"),
    "string": "string",
}


def optional_default(dtype: str) -> Any:
    """What TFDS reads where an optional value is missing: the smallest there is. None for a dtype of ours
    that has no default.
    """
    known = {
        "string": "",
        "int64": int(np.iinfo(np.int64).min),
        "float32": float(np.finfo(np.float32).min),
    }
    return known.get(dtype)
