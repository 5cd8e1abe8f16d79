"""Rows that are sorted by class, in small and in large records, and how they are read."""

from __future__ import annotations

from pathlib import Path

import recordspec as rs
from recordspec.order.read_options import Read
from recordspec.order.read_plan import plan_files
from recordspec.reading.dataset import Recipe
from recordspec.schema.options import from_python
from recordspec.store.expand import expand

SCHEMA = rs.Schema.loads("""
schema: sorted
features:
  id: int64
  words: {kind: var_len, dtype: string}
  mood: {kind: label, names: [calm, glad, angry, sad]}
  filler: {kind: fixed_len, dtype: string, default: ""}
""")
ROWS = 2000
FORMS = {"rows": ("rows", 0), "blocks": ({"blocks": 64}, 0), "large": ("rows", 9000)}
CONFIG = """
schema: schema.yaml
data: data
read:
  batch: 32
  shuffle: {buffer: 100, seed: 7}
fit: {inputs: id, targets: mood}
"""
SHUFFLE = {"buffer": 100, "seed": 7}


def rows(count: int = ROWS, filler: int = 0) -> list[dict]:
    """Sorted by class, all four of the same size."""
    return [
        {"id": index, "words": ["w"] * (index % 3), "mood": index * 4 // count, "filler": "x" * filler}
        for index in range(count)
    ]


def how(**options) -> Read:
    return from_python(Read, {"batch": 32, **options})


def recipe(data: Path, **options) -> Recipe:
    return Recipe(options=how(**options), schema=SCHEMA, plan=plan_files(expand(data), SCHEMA))


def written(folder: Path, layout: str | dict[str, int], filler: int) -> Path:
    """A dataset of 3 shards; its schema and config are in the folder, too."""
    rs.write(SCHEMA, rows(filler=filler), folder / "data", shards=3, layout=layout)
    SCHEMA.dump(folder / "schema.yaml")
    (folder / "config.yaml").write_text(CONFIG)
    return folder / "data"
