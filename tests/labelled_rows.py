"""A dataset of rows sorted by label, and the features that `stats` reports."""

from __future__ import annotations

from pathlib import Path

import recordspec as rs

LABELLED = """
schema: labelled
features:
  id: int64
  kind: {kind: label, names: [cat, dog, fox]}
  many: {kind: var_len, dtype: float32}
  maybe: {dtype: int64, default: 0}
"""


def only(report):
    (split,) = report.splits
    return split, {feature.feature: feature for feature in split.features}


def labelled(folder: Path, **options) -> Path:
    """60 rows sorted by label, without the class `fox`."""
    rows = [
        {"id": row, "kind": "cat" if row < 40 else "dog", "many": [row / 2] * (row % 3)} for row in range(60)
    ]
    rows = [row | ({} if row["id"] % 4 else {"maybe": row["id"]}) for row in rows]
    rs.write(rows, rs.Schema.loads(LABELLED), folder, shuffle=None, **options)
    return folder
