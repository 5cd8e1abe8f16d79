"""Imports TensorFlow at the first use, because that takes 2 to 4 seconds."""

from __future__ import annotations

import importlib
from typing import Any

from recordspec.errors import missing_package


class _Lazy:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__version__":
            raise AttributeError(name)  # pytest looks for its own marks in every name of a module
        try:
            module = importlib.import_module("tensorflow")
        except ImportError as missing:
            raise missing_package(
                "TensorFlow", "tensors and tf.data", "recordspec[tensorflow]", missing
            ) from None
        return getattr(module, name)


tf: Any = _Lazy()
