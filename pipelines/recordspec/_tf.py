"""The one handle on TensorFlow. It is imported at the first use, because that takes 2 to 4 seconds."""

from __future__ import annotations

import importlib
from typing import Any


class _Lazy:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("tensorflow"), name)


tf: Any = _Lazy()
