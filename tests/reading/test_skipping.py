"""`corrupt: skip`: damage and invalid records are skipped, and only with a report."""

from __future__ import annotations

import logging
import subprocess
import sys
from logging.handlers import BufferingHandler
from pathlib import Path

import pytest
from broken_files import (
    PER_SHARD,
    ROWS,
    SCHEMA,
    changed,
    flip,
    numbers,
    records,
    replace,
    row,
    shard,
    store,
    tell_size,
    told,
)

import recordspec as rs
from recordspec._tf import tf
from recordspec.order.read_options import Read
from recordspec.order.read_plan import WorkerShard, plan_files
from recordspec.reading import corrupt_records
from recordspec.reading.dataset import build
from recordspec.schema.options import from_python
from recordspec.store.dataset import StoredDataset
from recordspec.wire import framing


@pytest.fixture
def log():
    """What the package logs: TensorFlow warns of its own deprecations, once a process."""
    handler = BufferingHandler(1000)
    logger = logging.getLogger("recordspec")
    logger.addHandler(handler)
    yield handler.buffer
    logger.removeHandler(handler)


def test_bad_records_are_passed_over_and_counted(data, log):
    path, other = shard(data, 1), shard(data, 3)
    tenth = records(path)[9].offset
    flip(path, tenth + 40)
    place = replace(other, 17, changed(records(other)[17].data, n=[0.5]))
    dataset = rs.read(data, SCHEMA, batch=10, corrupt="skip")
    assert int(dataset.cardinality()) == 10
    left = [number for number in range(ROWS) if number not in (PER_SHARD + 9, 3 * PER_SHARD + 17)]
    assert numbers(dataset) == left
    assert [record.getMessage().splitlines() for record in log] == [
        [
            f"{path}: rows left out: 1, read: 24",
            f"{path}: record 9 at byte {tenth:,}: expected data that matches its CRC, got other bytes",
        ],
        [
            f"{other}: rows left out: 1, read: 24",
            f"{place}: features.n: expected 1 int64, got 1 float32",
        ],
    ]
    log.clear()
    assert sorted(numbers(rs.read(data, SCHEMA, batch=10, shuffle=20, seed=1, corrupt="skip"))) == left
    assert log == []  # it was said


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("layout", ["rows", {"blocks": 10}])
def test_of_a_cut_shard_what_is_whole_is_read(tmp_path, log, compression, layout):
    rs.write(
        map(row, range(ROWS)), SCHEMA, tmp_path / "data", key="n", layout=layout, compression=compression
    )
    path = shard(tmp_path / "data", 0)
    everything = numbers(rs.read(tmp_path / "data", SCHEMA, batch=10))
    found = records(path)
    kept = len(found) * 8 // 10
    store(path, [one.data for one in found[:kept]], compression)  # between two records
    with pytest.raises(rs.StoreError, match="bytes, as the manifest says"):
        rs.read(tmp_path / "data", SCHEMA)
    dataset = rs.read(tmp_path / "data", SCHEMA, batch=10, corrupt="skip")
    assert int(dataset.cardinality()) == 8
    assert numbers(dataset) == everything[:80]
    (record,) = log
    assert record.getMessage().splitlines() == [
        f"{path}: rows left out: 20, read: 80",
        f"{path}: record {kept} at byte {found[kept].offset:,}: expected {len(found)} records, as the manifest"
        " says, got the end of the file",
    ]


@pytest.mark.parametrize("where", ["length", "cut"])
def test_behind_a_bad_length_and_a_cut_record_all_is_lost_and_told(data, log, where):
    path = shard(data, 2)
    place, size = records(path)[20].offset, len(records(path)[20].data)
    if where == "length":
        flip(path, place)
        said = "expected a length that matches its CRC, got other bytes"
    else:
        path.write_bytes(path.read_bytes()[: place + 30])
        said = f"expected {size} bytes of data and its CRC, got the end of the file"
    dataset = rs.read(data, SCHEMA, batch=10, corrupt="skip")
    assert numbers(dataset) == [n for n in range(ROWS) if not 70 <= n < 75]
    (record,) = log
    assert record.getMessage().splitlines() == [
        f"{path}: rows left out: 5, read: 20",
        f"{path}: record 20 at byte {place:,}: {said}",
    ]


def test_without_a_manifest_the_rest_is_of_unknown_number(data, log):
    (data / "manifest.json").unlink()
    path = shard(data, 2)
    flip(path, records(path)[20].offset)
    dataset = rs.read(data, SCHEMA, batch=10, corrupt="skip")
    assert int(dataset.cardinality()) == 10
    assert len(numbers(dataset)) == 95
    assert log[0].getMessage().startswith(f"{path}: rows left out: unknown, read: 20")


def test_a_block_that_is_passed_over_takes_its_rows_along(tmp_path, log):
    rs.write(map(row, range(95)), SCHEMA, tmp_path / "data", key="n", layout={"blocks": 10})
    path = shard(tmp_path / "data", 0)
    everything = numbers(rs.read(tmp_path / "data", SCHEMA, batch=10))
    flip(path, records(path)[-1].offset + 40)
    flip(path, framing.HEADER_BYTES + 40)
    dataset = rs.read(tmp_path / "data", SCHEMA, batch=10, corrupt="skip")
    assert numbers(dataset) == everything[10:90]
    assert log[0].getMessage().startswith(f"{path}: rows left out: 15, read: 80\n")


def test_workers_share_what_is_left(data, log):
    path = shard(data, 1)
    flip(path, records(path)[9].offset + 40)
    seen = []
    for worker in range(3):
        what = plan_files(
            StoredDataset.of(data, SCHEMA), WorkerShard(3, worker), corrupt_records.without_corrupt
        )
        seen += numbers(build(from_python(Read, {"batch": 10, "corrupt": "skip"}), SCHEMA, what))
    assert set(seen) == set(range(ROWS)) - {34}


def test_a_pipeline_skips_and_counts(data, tmp_path, log):
    (tmp_path / "s.yaml").write_text(SCHEMA.dump())
    (tmp_path / "c.yaml").write_text(f"schema: s.yaml\ndata: {data}\nread: {{batch: 5, corrupt: skip}}\n")
    path = shard(data, 1)
    path.write_bytes(path.read_bytes()[: records(path)[5].offset])
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    assert pipeline.steps("train") == 16
    assert len(numbers(pipeline.dataset("train"))) == 80
    with pytest.raises(tf.errors.InvalidArgumentError, match="mine"), pipeline.locating():
        raise tf.errors.InvalidArgumentError(None, None, "mine")  # what was passed over explains nothing


def test_where_nothing_is_left_that_is_said_instead_of_looping(data):
    for index in range(4):
        flip(shard(data, index), 0)
    with pytest.raises(rs.RecordError) as caught:
        rs.read(data, SCHEMA, batch=10, repeat="forever", corrupt="skip")
    assert str(caught.value) == f"{data}: expected records that can be read, got none"


def test_what_is_no_tfrecord_is_not_skipped(data):
    path = shard(data, 1)
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    tell_size(path)
    for corrupt in ("error", "skip"):
        with pytest.raises(rs.RecordError) as caught:
            rs.read(data, SCHEMA, corrupt=corrupt)
        assert str(caught.value) == (
            f"{path}: expected a TFRecord file, got a Git LFS pointer (run git lfs pull)"
        )
    assert told(SCHEMA, data) == [str(caught.value)]


@pytest.mark.tensorflow
def test_copies_go_with_the_process(data, tmp_path):
    path = shard(data, 1)
    flip(path, records(path)[9].offset + 40)
    code = f"""
import recordspec as rs
from pathlib import Path
from recordspec.reading.corrupt_records import without_corrupt
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import expand
schema = rs.Schema.load({str(data / "schema.yaml")!r})
copies = [without_corrupt(file, schema).path for file in StoredDataset.of({str(data)!r}, schema).checked_files()]
print(*(copy for copy in copies if copy.exists() and copy.parent != Path({str(data)!r})))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    (copy,) = map(Path, run.stdout.split())
    assert copy.name == path.name
    assert not copy.parent.parent.exists()


def test_a_cache_of_copies_is_found_by_the_next_process(data, tmp_path):
    """Which has copies of its own, under other names."""
    path = shard(data, 1)
    flip(path, records(path)[9].offset + 40)
    cached = tmp_path / "cached"
    for _ in range(2):
        read = rs.read(data, SCHEMA, batch=10, corrupt="skip", cache=str(cached))
        assert len(numbers(read)) == ROWS - 1
        corrupt_records._replacement.cache_clear()
    assert len([*cached.iterdir()]) == 1


def test_records_that_the_manifest_does_not_know_are_left_out(data, log):
    path = shard(data, 1)
    found = records(path)
    store(path, [one.data for one in [*found, *found]])
    assert numbers(rs.read(data, SCHEMA, batch=10, corrupt="skip")) == list(range(ROWS))
    assert log[0].getMessage().startswith(f"{path}: rows left out: 0, read: 25\n")
