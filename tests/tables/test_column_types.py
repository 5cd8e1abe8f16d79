"""The values of rows as Python values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recordspec.tables.column_types import shortest


@given(st.lists(st.floats(width=32)))
def test_floats_are_short_and_exact(values):
    numbers = np.array(values, np.float32)
    found = shortest(numbers)
    np.testing.assert_array_equal(np.array(found, np.float32), numbers)
    assert shortest(np.array([0.1, 2.5, 1e20], np.float32)) == [0.1, 2.5, 1e20]
