"""Random files are built as inferred, each value as it was generated. `generated_files.py` makes thousands."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from generated_files import KINDS, outcome, parquet_table
from pyarrow import parquet

import recordspec as rs

# Of each kind, some files that once were refused, lost or changed, and the first ones.
SEEDS = {"jsonl": range(24), "csv": range(10), "parquet": range(12)}


@pytest.mark.parametrize("kind", KINDS)
def test_generated_files_are_built_as_inferred(tmp_path, kind):
    outcomes = [outcome(kind, seed, tmp_path) for seed in SEEDS[kind]]
    assert sum(one.startswith("built") for one in outcomes) > 0.8 * len(outcomes)


def proposal(*paths: Path) -> tuple[str, ...]:
    """The features that are inferred of files and the notes, or the error."""
    try:
        inferred = rs.infer(list(map(str, paths)), name="rows")
    except rs.RecordspecError as error:
        return error.problems[0].expected, error.problems[0].got
    return inferred.schema.dump(), *inferred.notes


@pytest.mark.newest  # the oldest pyarrow does not write some of these lists
def test_several_parquet_files_are_inferred_as_one(tmp_path):
    for seed in range(40):
        rng = random.Random(seed)
        table = parquet_table(rng)
        bounds = sorted({0, table.num_rows, *(rng.randrange(table.num_rows + 1) for _ in range(3))})
        parts = [tmp_path / f"{seed}-{start}.parquet" for start in bounds[:-1]]
        for path, (start, stop) in zip(parts, pairwise(bounds), strict=True):
            parquet.write_table(
                table.take(list(range(start, stop))), path
            )  # old releases write no slices of lists
        parquet.write_table(table, tmp_path / f"{seed}.parquet")
        assert proposal(*parts) == proposal(tmp_path / f"{seed}.parquet"), seed


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_generated_files_are_built_as_inferred(tmp_path, kind):
    for seed in range(100, 150):
        outcome(kind, seed, tmp_path)
