"""Batches as arrays of JAX, on one device and on several; what has no array is named (`training.framework_arrays`)."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from recordspec.errors import SpecError

jax = pytest.importorskip("jax")


def test_batches_are_arrays_of_jax(pipeline, rows_of):
    data = pipeline.jax_dataset("train")
    assert len(data) == len(rows_of(0))
    for epoch in range(2):
        found = list(data)
        assert all(isinstance(value, jax.Array) for value in jax.tree.leaves(found))
        assert [inputs["row"].tolist() for inputs, _ in found] == rows_of(epoch)
    expected, _ = next(pipeline.iterate("train"))
    inputs, _ = next(iter(pipeline.jax_dataset("train")))
    np.testing.assert_array_equal(inputs["x"], expected["x"])


def test_what_jax_has_no_array_for_is_named(pipeline):
    with pytest.raises(SpecError, match=r"^fit.words: expected an array of numbers, got string"):
        next(
            iter(pipeline.jax_dataset("train", map_fit=lambda x, y: ({"words": np.array([b"a"], object)}, y)))
        )
    for value, got in ((1 << 31, "2147483648"), (1e300, r"1e\+300"), (np.uint64(1 << 32), "4294967296")):
        large = pipeline.jax_dataset("train", map_fit=lambda x, y, value=value: ({"n": np.array([value])}, y))
        with pytest.raises(SpecError, match=rf"^fit.n: expected numbers of 32 bits, got {got} "):
            next(iter(large))
    with pytest.raises(SpecError, match=r"^fit.n: expected numbers of 32 bits, got 2147483648 "):
        next(iter(pipeline.jax_dataset("train", map_fit=lambda x, y: ({"n": np.array([1, 1 << 31])}, y))))
    least = pipeline.jax_dataset("train", map_fit=lambda x, y: ({"n": np.array([-(1 << 31)])}, y))
    assert next(iter(least))[0]["n"].tolist() == [-(1 << 31)]


SHARDED = """
import jax, numpy as np, recordspec as rs
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((4,), ("data",))
sharding = NamedSharding(mesh, PartitionSpec("data"))
pipeline = rs.Pipeline.load("c.yaml")
try:
    pipeline.jax_dataset("train", sharding=sharding)
except rs.SpecError as error:
    message = "read.batch: expected batches that 4 devices or processes divide, got a last one of "
    assert str(error).startswith(message), error
data = pipeline.jax_dataset("train", sharding=sharding, batch={"size": 16, "drop_remainder": True})
inputs, targets = next(iter(data))
assert len(inputs["x"].sharding.device_set) == 4
assert [part.data.shape for part in inputs["x"].addressable_shards] == [(4, 4)] * 4
print(inputs["row"].tolist())
"""


def test_a_batch_is_divided_among_devices(home, rows_of):
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(
        [sys.executable, "-c", SHARDED],
        cwd=home,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{rows_of(0)[0]}\n"


def test_a_mixture_is_read_like_a_dataset(mixture):
    data = mixture.jax_dataset("train", start=(1, 2))
    wanted = [batch for start in ((1, 2), (2, 0)) for batch in mixture.iterate("train", start=start)]
    for (inputs, targets), (expected, sources) in zip([*data, *data], wanted, strict=True):
        assert inputs["row"].tolist() == expected["row"].tolist()
        assert targets.tolist() == sources.tolist() == (expected["row"] >= 1000).tolist()
