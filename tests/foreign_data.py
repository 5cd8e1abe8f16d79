"""Files that others wrote, beside the checkout; `needs_data` is the mark of the tests that need them."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "shared/data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the foreign data is not beside this checkout")
