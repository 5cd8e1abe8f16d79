"""Imports pyarrow at the first use, because that takes 0.2 seconds."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from recordspec.errors import missing_package


@cache
def arrow() -> Any:
    """The module pyarrow, with `pyarrow.compute`. Raises MissingExtra if it is missing or does not load.

    pyarrow 26 does not load with NumPy 1, which TensorFlow 2.16 needs.
    """
    try:
        pyarrow = importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.compute")
    except ImportError as error:
        raise missing_package("pyarrow", "tables of columns", "pyarrow<26", error) from None
    return pyarrow
