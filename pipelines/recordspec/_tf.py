"""Imports TensorFlow at the first use, because that takes 2 to 4 seconds."""

from __future__ import annotations

import importlib
from typing import Any


class _Lazy:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__version__":
            raise AttributeError(name)  # pytest looks for its own marks in every name of a module
        return getattr(importlib.import_module("tensorflow"), name)


tf: Any = _Lazy()
