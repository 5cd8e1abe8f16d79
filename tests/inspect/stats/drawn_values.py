"""Values that tests of what is counted draw, and the places of values."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from recordspec.wire.hashes import splitmix64

INTS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 3), max_size=40)


def places(count: int, start: int = 0) -> np.ndarray:
    return splitmix64(np.arange(start, start + count, dtype=np.uint64))
