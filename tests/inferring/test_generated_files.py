"""Random files are built as inferred, each value as it was generated. `generated_files.py` makes thousands."""

from __future__ import annotations

import pytest
from generated_files import KINDS, outcome

# Of each kind, some files that once were refused, lost or changed, and the first ones.
SEEDS = {"jsonl": range(24), "csv": range(10), "parquet": range(12)}


@pytest.mark.parametrize("kind", KINDS)
def test_generated_files_are_built_as_inferred(tmp_path, kind):
    outcomes = [outcome(kind, seed, tmp_path) for seed in SEEDS[kind]]
    assert sum(one.startswith("built") for one in outcomes) > 0.8 * len(outcomes)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_generated_files_are_built_as_inferred(tmp_path, kind):
    for seed in range(100, 150):
        outcome(kind, seed, tmp_path)
