"""`rs.iterate`: the same global batches for any number of workers, from any step on, of rows and of blocks."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import recordspec as rs
from recordspec import RecordError, SpecError
from recordspec.arrays import random_access
from recordspec.order import global_order
from recordspec.order.global_order import FileOrder

SCHEMA = rs.Schema.loads("""
schema: s
features:
  a: int64
  b: {kind: var_len, dtype: int64}
  c: {kind: var_len, dtype: int64, as: sparse}
""")
NUMBERS = rs.Schema.loads("{schema: s, features: {a: int64}}")
SIZES = (1, 2, 3, 5, 17, 997)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory) -> dict[tuple[int, str], rs.Rows]:
    folder, made = tmp_path_factory.mktemp("iterate"), {}
    for rows in SIZES:
        lists = pa.array([[number] * (number % 3) for number in range(rows)], pa.list_(pa.int64()))
        table = pa.table({"a": np.arange(rows), "b": lists, "c": lists})
        for layout in ("rows", {"blocks": 7}):
            path = folder / f"{rows}{str(layout)[:3]}"
            rs.write(table, SCHEMA, path, layout=layout, shards=min(3, rows), progress=False)
            made[rows, str(layout)[:3]] = rs.open(path)
    return made


def check(batch: dict) -> np.ndarray:
    """The values are those of their rows."""
    wanted = np.repeat(batch["a"], batch["a"] % 3)
    assert batch["b"].lengths.tolist() == (batch["a"] % 3).tolist()
    assert batch["b"].values.tolist() == batch["c"].values.tolist() == wanted.tolist()
    assert batch["c"].shape[0] == len(batch["a"])
    assert batch["c"].indices[:, 0].tolist() == np.repeat(np.arange(len(batch["a"])), batch["a"] % 3).tolist()
    return batch["a"]


@pytest.mark.parametrize("seed", range(60))
def test_global_batches_are_the_same_wherever_workers_come_and_go(datasets, seed):
    chance = random.Random(seed)
    (size, _), rows = chance.choice(sorted(datasets.items(), key=lambda item: item[0]))
    batch, shuffle, drop = chance.randint(1, min(size, 40)), chance.random() < 0.8, chance.random() < 0.3
    how = {
        "batch": batch,
        "shuffle": shuffle,
        "seed": seed,
        "epoch": chance.randint(0, 3),
        "drop_remainder": drop,
    }
    whole = [check(each) for each in rs.iterate(rows, **how)]
    every = [int(row) for each in whole for row in each]
    assert len(every) == len(set(every)) == (size // batch * batch if drop else size)
    step, last = 0, len(whole[-1])
    while step < len(whole):
        workers, stop = chance.randint(1, min(batch, last, 5)), chance.randint(step + 1, len(whole))
        parts = [rs.iterate(rows, start=step, worker=one, workers=workers, **how) for one in range(workers)]
        for wanted in whole[step:stop]:
            together = np.empty(len(wanted), int)
            for worker, part in enumerate(parts):
                together[worker::workers] = check(next(part))
            assert together.tolist() == wanted.tolist()
        step = stop


def test_epochs_differ_and_seeds_do(datasets):
    def order(**how) -> list[int]:
        return [int(row) for each in rs.iterate(datasets[997, "row"], batch=50, **how) for row in each["a"]]

    assert order() == list(range(997))
    orders = [order(shuffle=True, seed=seed, epoch=epoch) for seed in (1, 2, -1) for epoch in (0, 1)]
    assert len(set(map(tuple, orders))) == 6
    assert all(sorted(one) == list(range(997)) for one in orders)


def test_padding_is_that_of_the_batch(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {a: {kind: var_len, dtype: int64, as: dense}}}")
    rs.write([{"a": [1] * number} for number in range(12)], schema, tmp_path / "data", progress=False)
    batches = list(rs.iterate(tmp_path / "data", batch=4))
    assert [batch["a"].shape for batch in batches] == [(4, 3), (4, 7), (4, 11)]


def test_arguments_are_checked_before_anything_is_read(datasets):
    rows = datasets[17, "row"]
    for wrong, message in {
        ("batch", 0): "batch: expected a whole number of at least 1, got 0",
        ("batch", 2.0): "batch: expected a whole number of at least 1, got 2.0",
        ("epoch", -1): "epoch: expected a whole number of at least 0, got -1",
        ("start", -1): "start: expected a whole number of at least 0, got -1",
        ("seed", 0.5): "seed: expected a whole number of 64 bits, got 0.5",
        ("worker", 1): "worker: expected a number from 0 to 0, got 1",
        ("worker", 0.5): "worker: expected a whole number of at least 0, got 0.5",
        ("batch", 1 << 70): f"batch: expected a whole number of at least 1, got {1 << 70}",
        (
            "workers",
            3,
        ): "workers: expected a row of every batch for each worker, got 1 for 3 (drop_remainder drops it)",
    }.items():
        with pytest.raises(SpecError) as caught:
            rs.iterate(rows, **{"batch": 4, wrong[0]: wrong[1]})
        assert str(caught.value) == message
    for seed in (1 << 63, 1.5, "a"):
        with pytest.raises(SpecError, match="seed: expected a whole number of 64 bits, got"):
            rs.iterate(rows, batch=4, shuffle=True, seed=seed)
    integers = {"batch": np.int32(4), "seed": np.int64(17), "epoch": np.uint8(1)}
    assert len(list(rs.iterate(rows, shuffle=True, **integers))) == 5
    assert list(rs.iterate(rows, batch=4, start=5)) == []
    assert list(rs.iterate(rows, batch=4, start=500)) == []


def test_files_are_opened_as_rs_open_does(datasets, tmp_path):
    folder = Path(next(iter(datasets[17, "row"].places([0])))[0]).parent
    assert [len(batch["a"]) for batch in rs.iterate(folder, batch=5)] == [5, 5, 5, 2]
    assert [len(batch["a"]) for batch in rs.iterate(f"{folder}/train-*", SCHEMA, batch=17)] == [17]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_windows_of_blocks_are_decoded_once(datasets, monkeypatch, shuffle, workers):
    rows, decoded = datasets[997, "{'b"], list[int]()
    whole = {"batch": 40, "shuffle": shuffle, "workers": workers, "worker": workers - 1}
    of = random_access.DecodedBlocks.of.__func__

    def counted(cls, rows, schema, blocks):
        decoded.extend(blocks.tolist())
        return of(cls, rows, schema, blocks)

    def batches():
        return [{name: str(value) for name, value in batch.items()} for batch in rs.iterate(rows, **whole)]

    monkeypatch.setattr(global_order, "WINDOW_ROWS", 60)
    monkeypatch.setattr(random_access, "WINDOW_ROWS", 60)
    monkeypatch.setattr(random_access.DecodedBlocks, "of", classmethod(counted))
    monkeypatch.setattr(random_access, "_TAKEN_BYTES", 1)
    kept, once = batches(), sorted(decoded)
    sample = decoded[0]
    once.remove(sample)
    assert once == list(range(len(rows._block_sizes)))
    decoded.clear()
    monkeypatch.setattr(random_access, "_WINDOW_BYTES", 0)
    assert batches() == kept
    if shuffle:
        assert len(decoded) > 1.4 * len(once)  # for every batch


def test_a_corrupt_block_stops_only_the_batches_with_its_rows(tmp_path):
    rs.write({"a": np.arange(80)}, NUMBERS, tmp_path / "data", layout={"blocks": 10}, progress=False)
    (shard,) = (tmp_path / "data").glob("*.tfrecord")
    damaged = bytearray(shard.read_bytes())
    damaged[len(damaged) // 4] ^= 1
    shard.write_bytes(damaged)
    for start in range(3, 8):
        assert len(list(rs.iterate(tmp_path / "data", batch=10, start=start))) == 8 - start
    for start in range(3):
        with pytest.raises(RecordError, match="record 2 at byte"):
            list(rs.iterate(tmp_path / "data", batch=10, start=start))


def test_the_window_with_the_largest_blocks_is_within_the_limit(tmp_path, monkeypatch):
    schema = rs.Schema.loads("{schema: s, features: {a: string}}")
    rows = {"a": ["x"] * 10 + ["x" * 1000] * 90}
    rs.write(rows, schema, tmp_path / "data", layout={"blocks": 10}, shards=1, progress=False)
    opened = rs.open(tmp_path / "data")
    for limit in (80_000, 120_000):
        monkeypatch.setattr(random_access, "_WINDOW_BYTES", limit)
        assert (opened._windows(opened.schema, FileOrder()) is None) == (limit == 80_000)


def test_large_strings_stay_in_the_files(tmp_path, monkeypatch):
    """Windows that are too large when decoded have where strings are; a corrupt block is decoded alone."""
    schema = rs.Schema.loads(
        "schema: s\nfeatures:\n  a: int64\n  s: string\n  c: {kind: label, names: [x, y], encoding: name}\n"
        "  o: {dtype: string, default: none}\n  l: {kind: var_len, dtype: string}\n"
    )
    rows = [
        {"a": row, "s": b"%d" % row * 500, "c": "xy"[row % 2], "l": ["z"] * (row % 3)}
        | ({} if row % 3 else {"o": "o"})
        for row in range(200)
    ]
    rs.write(rows, schema, tmp_path / "data", layout={"blocks": 8}, shards=3, progress=False)
    monkeypatch.setattr(global_order, "WINDOW_ROWS", 60)
    of, in_place = (getattr(random_access.DecodedBlocks, name).__func__ for name in ("of", "in_place"))
    decoded: dict[str, list[int]] = {"of": [], "in_place": []}

    def batches() -> list[dict[str, str]]:
        found = rs.iterate(tmp_path / "data", batch=16, shuffle=True)
        return [{name: str(value) for name, value in batch.items()} for batch in found]

    monkeypatch.setattr(random_access, "_WINDOW_BYTES", 0)
    wanted = batches()
    for name, function in (("of", of), ("in_place", in_place)):

        def counted(cls, rows, schema, blocks, name=name, function=function):
            decoded[name].extend(blocks.tolist())
            return function(cls, rows, schema, blocks)

        monkeypatch.setattr(random_access.DecodedBlocks, name, classmethod(counted))
    monkeypatch.setattr(random_access, "_WINDOW_BYTES", 20_000)
    assert batches() == wanted
    assert len(decoded["of"]) == 1  # the sample
    assert sorted(decoded["in_place"][1:]) == list(range(27))
    shard = sorted((tmp_path / "data").glob("*.tfrecord"))[1]
    damaged = bytearray(shard.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    shard.write_bytes(damaged)
    whole = [row for row in range(len(wanted)) if _readable(tmp_path / "data", row)]
    assert 0 < len(whole) < len(wanted)
    for row in whole:
        batch = next(iter(rs.iterate(tmp_path / "data", batch=16, shuffle=True, start=row)))
        assert {name: str(value) for name, value in batch.items()} == wanted[row]


def _readable(data: Path, step: int) -> bool:
    try:
        next(iter(rs.iterate(data, batch=16, shuffle=True, start=step)))
    except RecordError:
        return False
    return True
