"""Encoded rows as records and as columns: what is made of one is made of the other."""

from __future__ import annotations

import numpy as np
import pytest

from instances import CASES
from recordspec.schema.encoder import columns_of
from recordspec.wire.arrays import bytes_in
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES, frames
from recordspec.writing.encoded_rows import ColumnRows, EncodedRows, RecordRows, joined_rows


def as_records(case) -> RecordRows:
    return RecordRows(frames(case.records))


def as_columns(case) -> ColumnRows:
    given = [*case.rows, {}] if case.feature.traits.optional else case.rows
    return ColumnRows.encode(case.schema, columns_of(case.schema, given), len(given))


def data(rows: EncodedRows) -> list[bytes]:
    return [record[HEADER_BYTES:-FOOTER_BYTES] for record in bytes_in(rows.records)]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("form", [as_records, as_columns])
def test_rows_are_cut_joined_and_sorted_in_either_form(case, form):
    expected, rows = data(form(case)), form(case)
    count = len(rows)
    assert expected[: len(case.records)] == case.records
    assert data(rows.part(1, count)) == expected[1:]
    assert data(joined_rows([rows.part(0, 1), rows.part(1, count), rows])) == expected * 2
    order = np.array([count - 1, 0, *range(count)])
    assert data(rows.take(order)) == [expected[row] for row in order]
    assert type(joined_rows([rows, rows])) is type(rows)
