"""A build on Spark gives the bytes of a local build."""

from __future__ import annotations

import random

import pytest

import recordspec as rs

SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  id: int64
  name: string
  many: {kind: var_len, dtype: float32}
  class: {kind: label, names: [a, b, c]}
"""
)


def rows(count: int) -> list[dict]:
    draw = random.Random(count)
    return [
        {
            "id": number,
            "name": "x" * draw.randrange(40),
            "many": [0.5 * draw.randrange(9) for _ in range(draw.randrange(4))],
            "class": draw.choice("abc"),
        }
        for number in range(count)
    ]


TYPES = "id long, name string, many array<float>, class string"


@pytest.mark.parametrize("partitions", [1, 7])
def test_a_frame(session, tmp_path, same, partitions):
    from recordspec import spark

    some = rows(3000)
    rs.write(SCHEMA, some, tmp_path / "local", shuffle=1, shards=5)
    frame = session.createDataFrame(some, TYPES).repartition(partitions)
    spark.write(frame, SCHEMA, tmp_path / "spark", shuffle=1, shards=5)
    assert same(tmp_path / "spark", tmp_path / "local").rows("train") == 3000
