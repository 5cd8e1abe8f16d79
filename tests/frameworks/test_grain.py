"""`rs.open` is a source of Grain, whose DataLoader resumes with it."""

from __future__ import annotations

import functools
import operator

import pytest

import recordspec as rs

grain = pytest.importorskip("grain.python")
flags = pytest.importorskip("absl.flags")


def loader(pipeline, workers: int):
    rows = pipeline.open("train").only(["row", "x"])
    sampler = grain.IndexSampler(num_records=len(rows), shuffle=True, seed=3, num_epochs=1)
    return grain.DataLoader(
        data_source=rows, sampler=sampler, worker_count=workers, operations=[grain.Batch(16)]
    )


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_resumes_at_a_batch(pipeline, home, workers):
    flags.FLAGS.mark_as_parsed()  # Grain's are those of absl's programs
    batches = iter(loader(pipeline, workers))
    seen = [next(batches)["row"].tolist() for _ in range(3)]
    again = iter(loader(rs.Pipeline.load(home / "c.yaml"), workers))
    again.set_state(batches.get_state())
    seen += [batch["row"].tolist() for batch in again]
    assert sorted(functools.reduce(operator.iadd, seen, [])) == sorted(
        row["row"] for row in pipeline.open("train")
    )
