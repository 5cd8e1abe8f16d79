"""Third-party datasets beside the checkout; `needs_data` marks the tests that need them."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "shared/data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the third-party data is not beside this checkout")
