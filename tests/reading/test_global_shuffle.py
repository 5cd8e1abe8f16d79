"""`shuffle: {global: true}`: the order of an epoch in TensorFlow, for Keras, workers, checkpoints and receipts."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from recordspec import SpecError
from recordspec._tf import tf
from recordspec.arrays import random_access
from recordspec.order import global_order
from recordspec.schema import row_blocks
from shell import run_here

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

SCHEMA = rs.Schema.loads("""
schema: s
features:
  a: int64
  b: {kind: var_len, dtype: int64}
  c: {kind: label, names: [x, y]}
""")
ROWS = [{"a": number, "b": [number] * (number % 3), "c": "xy"[number % 2]} for number in range(101)]
GLOBAL = {"global": True, "seed": 17}
STEPS = 13  # of 8 rows; the last has 5


@pytest.fixture(scope="module", params=["rows", "blocks"])
def pipeline(request, tmp_path_factory) -> rs.Pipeline:
    folder = tmp_path_factory.mktemp("global")
    SCHEMA.dump(folder / "spec.yaml")
    layout = "rows" if request.param == "rows" else "{blocks: 7}"
    (folder / "config.yaml").write_text(
        f"schema: spec.yaml\ndata: data\nwrite: {{key: a, shards: 3, layout: {layout}}}\n"
        "read: {batch: 8, shuffle: {global: true, seed: 17}}\n"
    )
    made = rs.Pipeline.load(folder / "config.yaml")
    made.build(ROWS, progress=False)
    return made


def batches(dataset) -> list[list[int]]:
    read = []
    for batch in dataset:
        assert batch["b"].values.numpy().tolist() == np.repeat(batch["a"], batch["a"].numpy() % 3).tolist()
        read.append(batch["a"].numpy().tolist())
    return read


def epoch(pipeline: rs.Pipeline, number: int) -> list[list[int]]:
    rows = pipeline.open("train")
    return [batch["a"].tolist() for batch in rs.iterate(rows, batch=8, shuffle=True, seed=17, epoch=number)]


def test_epochs_are_those_of_numpy_whatever_iterators_are_made(pipeline):
    dataset = pipeline.dataset("train")
    assert dataset.cardinality().numpy() == STEPS
    for number in range(3):
        iter(dataset)  # not used, as Keras makes some
        assert batches(dataset) == epoch(pipeline, number)
    both = pipeline.dataset("train", repeat=2)
    assert batches(both) == epoch(pipeline, 0) + epoch(pipeline, 1)
    assert batches(pipeline.dataset("train", features=["a", "b"])) == epoch(pipeline, 0)
    whole = pipeline.dataset("train", batch={"size": 8, "drop_remainder": True})
    assert whole.element_spec["a"].shape == [8]
    assert batches(whole) == epoch(pipeline, 0)[:-1]


def test_keras_trains_on_epoch_after_epoch(pipeline):
    seen: list[int] = []

    def pair(batch):
        row = tf.cast(batch["a"], tf.float32)[:, None]
        return row, row

    class Seen(tf.keras.layers.Layer):
        def call(self, inputs):
            tf.py_function(lambda rows: seen.extend(map(int, rows.numpy()[:, 0])), [inputs], [])
            return inputs

    model = tf.keras.Sequential([tf.keras.Input((1,)), Seen(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(
        pipeline.dataset("train", map=pair, batch={"size": 8, "drop_remainder": True}), epochs=2, verbose=0
    )
    wanted = [row for number in (0, 1) for batch in epoch(pipeline, number)[: STEPS - 1] for row in batch]
    assert seen[-len(wanted) :] == wanted


@pytest.mark.parametrize("start", [(0, 5), (2, 0), (1, STEPS - 1), (1, STEPS)])
def test_it_resumes_at_any_step(pipeline, start):
    dataset = pipeline.dataset("train", start=start)
    assert batches(dataset) == epoch(pipeline, start[0])[start[1] :]
    assert batches(dataset) == epoch(pipeline, start[0] + 1)


def test_an_iterator_can_be_in_a_checkpoint(pipeline, tmp_path):
    iterator = iter(pipeline.dataset("train"))
    for _ in range(4):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "at")
    again = iter(pipeline.dataset("train"))
    tf.train.Checkpoint(iterator=again).restore(path)
    assert batches(again) == batches(iterator) == epoch(pipeline, 0)[4:]


@pytest.mark.parametrize("workers", [1, 3, 5])
def test_workers_share_the_same_global_batches(pipeline, workers):
    for start in ((0, 0), (1, 7)):
        parts = [
            batches(
                pipeline.input_fn("train", start=start)(tf.distribute.InputContext(workers, one, workers))
            )
            for one in range(workers)
        ]
        for number, wanted in enumerate(epoch(pipeline, start[0])[start[1] :]):
            assert [part[number] for part in parts] == [wanted[one::workers] for one in range(workers)]


def test_replicas_are_like_workers(pipeline):
    whole = {"size": 8, "drop_remainder": True}
    make = pipeline.input_fn("train", start=(0, 2), batch=whole)
    parts = [batches(make(tf.distribute.InputContext(2, one, 4))) for one in range(2)]
    for number, wanted in enumerate(epoch(pipeline, 0)[2 : STEPS - 1]):
        for worker in range(2):
            of_replicas = parts[worker][2 * number : 2 * number + 2]
            assert of_replicas == [wanted[2 * worker + replica :: 4] for replica in range(2)]
    with pytest.raises(SpecError, match="expected whole batches of 8 for 4 replicas, got a last one of 5"):
        pipeline.input_fn("train")(tf.distribute.InputContext(2, 0, 4))


def test_a_position_is_the_same_for_any_number_of_workers(pipeline):
    positions = [
        pipeline.position(1, 7, workers=workers, replicas=replicas)
        for workers, replicas in ((1, None), (3, 3), (2, 4))
    ]
    order = {"version": 1, "split": "train", "seed": 17, "global": True}
    identity = pipeline.manifest.identity
    assert positions == [rs.Position(epoch=1, step=7, batch=8, manifest=identity, order=order)] * 3
    make = pipeline.input_fn("train", start=positions[0])
    parts = [batches(make(tf.distribute.InputContext(3, one, 3))) for one in range(3)]
    assert parts[1] == [batch[1::3] for batch in epoch(pipeline, 1)[7:]]
    with pytest.raises(SpecError, match=r"start\.batch: expected 4, the rows per batch that are read, got 8"):
        pipeline.dataset("train", batch=4, start=positions[0])


def test_what_decides_batches_by_values_is_for_one_worker(pipeline):
    even = [row for batch in epoch(pipeline, 0) for row in batch if row % 2 == 0]
    wanted = [even[start : start + 8] for start in range(0, len(even), 8)]

    def is_even(batch):
        return batch["a"] % 2 == 0

    assert batches(pipeline.dataset("train", filter=is_even)) == wanted
    assert batches(pipeline.dataset("train", filter=is_even, start=(0, 3))) == wanted[3:]
    for options, name in (
        ({"filter": is_even}, "filter"),
        ({"balance": "c"}, "balance"),
        ({"bucket": {"by": "b", "boundaries": [2]}}, "bucket"),
    ):
        make = pipeline.input_fn("train", repeat="forever", **options)
        with pytest.raises(SpecError, match=f"since batches depend on the values of rows, got {name}"):
            make(tf.distribute.InputContext(2, 0, 2))


def test_what_it_does_not_go_with_is_named(pipeline, tmp_path):
    for options, message in {
        ("service", "grpc://localhost:5050"): "(its workers run no Python: shuffle with a buffer)",
        ("interleave", 2): "(the global order determines the next row)",
        ("cache", "memory"): "(files are mapped into memory)",
        ("corrupt", "skip"): "(`recordspec repair` writes the intact records)",
    }.items():
        option = {options[0]: {"cycle": 2} if options[0] == "interleave" else options[1]}
        with pytest.raises(SpecError) as caught:
            pipeline.dataset("train", **option)
        assert str(caught.value).startswith(f"read.{options[0]}: expected none with a global shuffle, got ")
        assert str(caught.value).endswith(message)
    rs.write(ROWS, SCHEMA, tmp_path / "data", compression="gzip", progress=False)
    with pytest.raises(
        SpecError,
        match=r"expected files that are not compressed, got gzip: .*lanes.* once; or shuffle with a buffer",
    ):
        rs.read(tmp_path / "data", SCHEMA, batch=8, shuffle=GLOBAL)
    with pytest.raises(SpecError, match=r"shuffle\.buffer: expected none with `global: true`, got 5"):
        rs.read(tmp_path / "data", SCHEMA, shuffle={**GLOBAL, "buffer": 5})


def test_a_step_has_a_receipt(pipeline):
    seen = pipeline.which(epoch=1, step=4)
    assert [row["a"] for row in seen] == epoch(pipeline, 1)[4]
    for row in seen:
        file = rs.open(row["file"])
        assert file[row["record"] * 7 + row["row"] if "row" in row else row["record"]]["a"] == row["a"]
    assert pipeline.which(1, 4, worker=1, workers=3) == seen[1::3]
    with pytest.raises(
        SpecError, match=f"step: expected a number below {STEPS}, the batches of an epoch, got {STEPS}"
    ):
        pipeline.which(0, STEPS)
    with pytest.raises(SpecError, match="worker: expected a number from 0 to 2, got 3"):
        pipeline.which(0, 0, worker=3, workers=3)
    done = run_here("which", str(pipeline.folder / "config.yaml"), "--epoch", "1", "--step", "4")
    assert [json.loads(line) for line in done.stdout.splitlines()] == seen


def test_a_shuffle_with_a_buffer_has_none(pipeline):
    config = Path(str(pipeline.folder)) / "buffer.yaml"
    config.write_text("schema: spec.yaml\ndata: data\nread: {batch: 8, shuffle: {seed: 17}}\n")
    with pytest.raises(SpecError, match="expected `global: true`, or the order of the files, got a buffer"):
        rs.Pipeline.load(config).which(0, 0)


@pytest.mark.parametrize(
    ("option", "value"), [("balance", "c"), ("bucket", {"by": "b", "boundaries": [2]}), ("corrupt", "skip")]
)
def test_what_makes_other_batches_has_no_receipt(pipeline, option, value):
    with pytest.raises(
        SpecError,
        match=f"read.{option}: expected none, got .* the position of a step does not say which rows",
    ):
        pipeline.which(0, 0, **{option: value})


def test_workers_in_the_order_of_files_have_no_receipt(pipeline):
    first = pipeline.open("train")[:8]["a"].tolist()
    assert [row["a"] for row in pipeline.which(0, 0, shuffle=None)] == first
    with pytest.raises(SpecError, match="workers: expected 1 in the order of the files, got 2"):
        pipeline.which(0, 0, workers=2, shuffle=None)


def test_a_process_ends_while_batches_are_made_ahead(tmp_path):
    """An iterator that is left calls Python to the end, which must not wait for it."""
    schema = rs.Schema.loads("{schema: s, features: {a: int64}}")
    rs.write({"a": np.arange(200_000)}, schema, tmp_path / "data", progress=False)
    code = f"""
import recordspec as rs
data, how = {str(tmp_path / "data")!r}, dict(batch=20000, shuffle={GLOBAL}, repeat="forever", prefetch=8)
left = iter(rs.read(data, rs.Schema.load(data + "/schema.yaml"), **how))
print(int(next(left)["a"].shape[0]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "20000\n")


def test_a_backup_resumes_a_training_at_its_step(pipeline, tmp_path):
    def pair(batch):
        row = tf.cast(batch["a"], tf.float32)[:, None]
        return row, row

    class Stop(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 4:
                raise KeyboardInterrupt

    def train(callbacks, start=None):
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(1e-5), "mse")
        dataset = pipeline.dataset("train", map=pair, start=start)
        model.fit(
            dataset, initial_epoch=start.epoch if start else 0, epochs=2, verbose=0, callbacks=callbacks
        )
        return model.get_weights()

    whole = train([])
    backup = rs.Backup(tmp_path / "backup", every=3)
    with pytest.raises(KeyboardInterrupt):
        train([backup, Stop()], backup.start)
    backup = rs.Backup(tmp_path / "backup", every=3)
    assert (backup.start.epoch, backup.start.step) == (0, 3)
    for resumed, wanted in zip(train([backup], backup.start), whole, strict=True):
        np.testing.assert_array_equal(resumed, wanted)


def test_datasets_that_were_read_hold_no_files(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    rs.write([{"id": number} for number in range(40)], schema, tmp_path / "data", shards=20)

    def opened() -> int:
        batches = rs.read(tmp_path / "data", schema, batch=16, shuffle={"global": True, "seed": 1})
        assert sum(len(batch["id"]) for batch in batches) == 40
        links = Path("/proc/self/fd").iterdir()
        return sum(str(tmp_path) in os.readlink(link) for link in links if link.is_symlink())

    assert [opened() for _ in range(3)] == [0, 0, 0]
    maps = Path("/proc/self/maps").read_text().splitlines()
    assert sum(str(tmp_path / "data") in line for line in maps) <= 21  # each shard once, and the index


HANDED = """schema: s
features:
  id: int64
  matrix: {dtype: float32, shape: [2, 3]}
  text: string
  texts: {dtype: string, shape: [2]}
  raw: {kind: tensor, dtype: int32, shape: [3], encoding: raw}
  list: {kind: var_len, dtype: int64}
  padded: {kind: var_len, dtype: float32, as: dense}
  sparse: {kind: var_len, dtype: string, as: sparse}
  default: {dtype: float32, default: 7.5}
  missing: {dtype: int64, default: -1, with_missing: true}
"""
# of four columns of one type, a tensor; and what only a parser makes
GROUPED = HANDED + "".join(f"  n{number}: int64\n" for number in range(4))
# rows of it are handed over, too; some in a group whose features tell what is missing
DENSE = "".join(line for line in HANDED.splitlines(True) if "var_len" not in line and "missing:" not in line)
DENSE += "".join(f"  m{number}: {{dtype: float32, default: -1, with_missing: true}}\n" for number in range(4))
PARSED = HANDED + "  lists: {kind: ragged, dtype: int64, shape: [null, null]}\n"


@pytest.mark.parametrize("text", [HANDED, GROUPED, DENSE, PARSED])
@pytest.mark.parametrize("kept", [True, False])
def test_rows_of_blocks_are_those_of_rows(tmp_path, monkeypatch, text, kept):
    schema = rs.Schema.loads(text)
    handed = row_blocks.handed(schema, math.inf)
    assert (handed is None) == (text == PARSED)
    rows = [
        {
            "id": row,
            "matrix": np.full((2, 3), row, np.float32),
            "text": "x" * (row % 4),
            "texts": [str(row), ""],
            "raw": np.arange(row, row + 3, dtype=np.int32),
            "list": list(range(row % 3)),
            "padded": [0.5] * (row % 5),
            "sparse": ["a", "b"][: row % 2],
            **({} if row % 3 else {"default": 1.5, "missing": 3}),
            **({"lists": [[row] * (row % 2), []][: row % 3]} if text == PARSED else {}),
            **({f"n{number}": row + number for number in range(4)} if text == GROUPED else {}),
            **({f"m{number}": row for number in range(row % 5)} if text == DENSE else {}),
        }
        for row in range(150)
    ]
    rows = [{name: value for name, value in row.items() if name in schema.names} for row in rows]
    if not kept:
        monkeypatch.setattr(random_access, "_WINDOW_BYTES", 0)
    monkeypatch.setattr(global_order, "WINDOW_ROWS", 40)
    monkeypatch.setattr(row_blocks, "_BYTES_OF_A_STRING", 0)
    read = {}
    for layout in ("rows", {"blocks": 16}):
        folder = tmp_path / str(len(str(layout)))
        rs.write(rows, schema, folder, layout=layout, shards=2, progress=False)
        for batch in (None, 8):
            dataset = rs.read(folder, schema, batch=batch, shuffle=True, seed=3)
            singles = dataset if batch is None else dataset.unbatch()
            found = {int(row["id"]): str(tf.nest.map_structure(plain, row)) for row in singles}
            read.setdefault(batch, []).append((tf.nest.map_structure(str, dataset.element_spec), found))
            if batch is not None:  # what TensorFlow parses
                parsed = rs.read(folder, schema, batch=batch).unbatch()
                assert found == {int(row["id"]): str(tf.nest.map_structure(plain, row)) for row in parsed}
    for by_rows, by_blocks in read.values():
        assert by_rows == by_blocks
        assert len(by_rows[1]) == 150


def plain(value):
    """Python's value, without the padding, which depends on the batch."""
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    dense = tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value
    items = np.asarray(dense).tolist()
    while isinstance(items, list) and items and items[-1] in (0, b""):
        items.pop()
    return items


def test_a_row_that_violates_the_schema_is_named(tmp_path):
    """Rows whose arrays are handed over are decoded by Python."""
    optional = rs.Schema.loads("{schema: s, features: {a: int64, b: {dtype: int64, default: 0}}}")
    rs.write([{"a": row} for row in range(20)], optional, tmp_path / "data", shards=1, progress=False)
    (shard,) = (tmp_path / "data").glob("*.tfrecord")
    schema = rs.Schema.loads("{schema: s, features: {a: int64, b: int64}}")
    shard = shard.rename(tmp_path / "rows.tfrecord")
    with pytest.raises(rs.RecordError) as caught, rs.locating(schema, shard):
        list(rs.read(shard, schema, batch=8, shuffle=GLOBAL))
    assert str(caught.value).startswith(f"{shard}: record 0 at byte 0: features.b: expected 1 int64")
