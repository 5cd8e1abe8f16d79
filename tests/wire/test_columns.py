"""Columns: the values of rows that were decoded separately."""

from __future__ import annotations

import numpy as np

from recordspec.wire.columns import Cells, KeyValues, merged


def test_values_that_were_decoded_separately_come_in_the_order_of_their_rows():
    one = KeyValues(
        "int64", np.array([0, 3]), Cells(flat=np.array([1, 2, 3]), lengths=np.array([2, 1]), rows=2)
    )
    other = KeyValues(
        "int64", np.array([1, 2]), Cells(flat=np.array([4, 5, 6]), lengths=np.array([0, 3]), rows=2)
    )
    found = merged([one, other])
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert found.cells.counts.tolist() == [2, 0, 3, 1]
    assert np.asarray(found.cells.flat).tolist() == [1, 2, 4, 5, 6, 3]
