"""How many shards a split has."""

from __future__ import annotations

import pytest

from recordspec.writing.options import Write
from recordspec.writing.shards import shard_count

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "rows", "count"),
    [(0, 0, 1), (MIB, 1000, 1), (127 * MIB, 1000, 1), (128 * MIB, 1000, 2), (1000 * MIB, 1000, 8), (1000 * MIB, 3, 3)],
)  # fmt: skip
def test_auto_shards_are_64_to_128_mib(size, rows, count):
    assert shard_count(Write(), size, rows) == count
