"""Writes the golden datasets of manifest format 1: run by the last commit that wrote it, 1f35623.

They are committed, so that datasets of format 1 stay readable. A later commit writes another format: to run
this again, check out that commit.
"""

from __future__ import annotations

from pathlib import Path

import recordspec as rs

HERE = Path(__file__).parent
SCHEMA = """
schema: animals
features:
  id: int64
  name: string
  weight: {dtype: float32, default: 0.0}
  kind: {kind: label, names: [cat, dog]}
  scores: {kind: var_len, dtype: int64}
"""


def rows() -> list[dict[str, object]]:
    """40 rows, of which two are equal but for their id, and one that is invalid."""
    made = [
        {
            "id": number,
            "name": f"animal {number % 39}",
            "weight": number % 39 / 4,
            "kind": ("cat", "dog")[number % 39 % 2],
            "scores": list(range(number % 39 % 4)),
        }
        for number in range(40)
    ]
    return [*made, {**made[0], "id": 40, "kind": "bird"}]


def main() -> None:
    """Writes `keyed`, with quarantined rows, and `blocks`, whose rows are known by their content."""
    how = {"split": {"train": 3, "test": 1}, "shards": 2, "shuffle": {"seed": 7}, "invalid": "quarantine"}
    rs.write(rows(), rs.Schema.loads(SCHEMA), HERE / "keyed", key="id", **how)
    without_id = rs.Schema.loads(SCHEMA.replace("  id: int64\n", ""))
    without = [{name: value for name, value in row.items() if name != "id"} for row in rows()]
    rs.write(without, without_id, HERE / "blocks", layout={"blocks": 4}, compression="gzip", **how)


if __name__ == "__main__":
    main()
