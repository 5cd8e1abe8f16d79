"""Imports Keras at the first use: with its backend, that takes seconds."""

from __future__ import annotations

import importlib
import os
from typing import Any

from recordspec._tf import tf
from recordspec.errors import missing_package


class _LazyKeras:
    """Keras; under TF_USE_LEGACY_KERAS that of TensorFlow, which is tf_keras then."""

    def __getattr__(self, name: str) -> Any:
        if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
            return getattr(tf.keras, name)
        try:
            module = importlib.import_module("keras")
        except ImportError as missing:
            purpose = "training; KERAS_BACKEND names a backend that is installed: jax, torch or tensorflow"
            raise missing_package("Keras", purpose, "recordspec[jax]", missing) from None
        return getattr(module, name)


keras: Any = _LazyKeras()
