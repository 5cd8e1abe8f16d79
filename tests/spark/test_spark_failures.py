"""Executors and workers that are killed, jobs that fail, Ctrl-C (`spark.spark_jobs`): the same bytes, or nothing."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from test_spark_bytes import SCHEMA, TYPES, frame_of, rows

import recordspec as rs
from recordspec import remote
from recordspec.errors import Interrupted
from recordspec.locations import location
from recordspec.remote import RemotePath
from recordspec.store.manifest import Manifest
from recordspec.store.remote_transaction import RemoteTransaction
from waiting import wait_until

pytestmark = [pytest.mark.services, pytest.mark.long]


@pytest.fixture(scope="module", autouse=True)
def _pickled_by_value():
    """Executors do not have this file."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def after_a_batch(task, marker: Path, act):
    """The task; the first that has a batch done runs `act` before the next, once in all the attempts."""

    def run(*arguments):
        *first, batches = arguments

        def watched():
            for batch in batches:
                yield batch
                try:
                    marker.touch(exist_ok=False)
                except FileExistsError:
                    continue
                act()

        return task(*first, watched())

    return run


def kill_executor() -> None:
    """The JVM that has the daemon that has this worker."""
    os.kill(parent(parent(os.getpid())), signal.SIGKILL)
    time.sleep(60)


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("stage", "act"),
    [
        ("encode_frame", kill_executor),
        pytest.param("assign", kill_executor, marks=pytest.mark.newest),
        ("write_shard", kill_executor),
        pytest.param("write_shard", kill_worker, marks=pytest.mark.newest),
    ],
)
def test_what_is_killed_is_done_again(session, tmp_path, same, monkeypatch, stage, act):
    from recordspec import spark
    from recordspec.spark import engine

    some, options = rows(900), {"shuffle": 1, "shards": 4, "key": "id"}
    rs.write(some, SCHEMA, tmp_path / "local", **options)
    monkeypatch.setattr(engine, stage, after_a_batch(getattr(engine, stage), tmp_path / "killed", act))
    spark.write(frame_of(session, some), SCHEMA, tmp_path / "spark", **options)
    assert (tmp_path / "killed").exists()
    same(tmp_path / "spark", tmp_path / "local")


def names_in(place: RemotePath) -> list[str]:
    return [path.name for path in place.iterdir()]


def test_a_bucket(session, tmp_path, same, monkeypatch, store):
    """A worker is killed when it has uploaded its shard; then the dataset is replaced, and rows are added."""
    from recordspec import spark
    from recordspec.spark import engine

    some, options = rows(900), {"shuffle": 1, "shards": 3, "key": "id"}
    place = location(f"{store}/{tmp_path.name}")
    rs.write(some[:600], SCHEMA, tmp_path / "local", **options)
    with monkeypatch.context() as patched:
        marker = tmp_path / "killed"
        patched.setattr(engine, "write_shard", killed_at_the_end(engine.write_shard, marker))
        spark.write(frame_of(session, some[:600]), SCHEMA, place, **options)
    assert marker.exists()
    assert {name: (place / name).read_bytes() for name in names_in(place)} == {
        path.name: path.read_bytes() for path in (tmp_path / "local").iterdir()
    }
    spark.write(frame_of(session, some[:300]), SCHEMA, str(place), **options, force=True)
    spark.write(frame_of(session, some[300:600]), SCHEMA, str(place), **options, append=True)
    manifest = Manifest.load(place)
    assert manifest.rows("train") == 600
    for shard in manifest.all_shards:
        assert hashlib.sha256((place / shard.file).read_bytes()).hexdigest() == shard.sha256
    # three times index.bin, keys.bin, schema.yaml and three shards
    assert len(names_in(place)) == 3 * 6 + 1
    with pytest.raises(rs.RecordError) as error:
        spark.write(frame_of(session, some[599:]), SCHEMA, str(place), **options, append=True)
    assert str(error.value).startswith(
        "partition 0, row 0: id: expected a key that no other row has, got that of "
    )
    with pytest.raises(rs.StoreError) as error:
        spark.write(frame_of(session, some), SCHEMA, str(place), **options)
    assert str(error.value).startswith(f"`{place}` exists")


@pytest.mark.newest
def test_names_that_another_writer_takes(session, tmp_path, monkeypatch, store):
    from recordspec import spark

    place = location(f"{store}/{tmp_path.name}")
    free_names, calls = RemoteTransaction.free_names, []

    def taken(transaction, names):
        found = free_names(transaction, names)
        if not calls:
            remote.create(place / names[0], b"of another writer")
        calls.append(names)
        return found

    monkeypatch.setattr(RemoteTransaction, "free_names", taken)
    manifest = spark.write(frame_of(session, rows(90)), SCHEMA, place, shards=2)
    assert [shard.file for shard in manifest.all_shards] == [
        "train-v2-00000-of-00002.tfrecord",
        "train-v2-00001-of-00002.tfrecord",
    ]
    assert calls == [["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"]] * 2
    assert Manifest.load(place) == manifest
    assert (place / "train-00000-of-00002.tfrecord").read_bytes() == b"of another writer"


def killed_at_the_end(task, marker: Path):
    def run(*arguments):
        for batch in task(*arguments):
            if not marker.exists():
                marker.touch()
                kill_worker()
            yield batch

    return run


def fail() -> None:
    raise OSError(28, os.strerror(28))


def test_a_job_that_fails_leaves_nothing(session, tmp_path, monkeypatch):
    from recordspec import spark
    from recordspec.spark import engine

    def always(task, act):
        def run(*arguments):
            act()
            return task(*arguments)

        return run

    monkeypatch.setattr(engine, "write_shard", always(engine.write_shard, fail))
    with pytest.raises(rs.StoreError) as error:
        spark.write(frame_of(session, rows(9)), SCHEMA, tmp_path / "data")
    assert str(error.value) == (
        f"{tmp_path}/data: expected Spark's jobs to the end, got OSError: [Errno 28] No space left on device,"
        " after 9 rows (nothing was published)"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_frame_that_fails(session, tmp_path):
    from recordspec import spark

    def failing(batches):
        for _ in batches:
            raise RuntimeError("no such table")

    frame = frame_of(session, rows(9)).mapInArrow(failing, TYPES)
    with pytest.raises(rs.WriteError) as error:
        spark.write(frame, SCHEMA, tmp_path / "data")
    assert str(error.value) == (
        f"{tmp_path}/data: expected Spark's jobs to the end, got RuntimeError: no such table, after 0 rows"
        " (nothing was published)"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_frame_that_changes(session, tmp_path, monkeypatch):
    """Its rows are counted, and are others when they are computed once more."""
    from recordspec import spark
    from recordspec.spark import engine, tasks

    sizes = tasks.RowBatches.sizes
    monkeypatch.setattr(engine, "encode_frame", one_row_more(engine.encode_frame, sizes))
    with pytest.raises(rs.StoreError) as error:
        spark.write(frame_of(session, rows(9), partitions=1), SCHEMA, tmp_path / "data", shards=1)
    assert str(error.value) == (
        "train-00000-of-00001.tfrecord: expected 10 rows, got 9 (does the frame give other rows each time? persist it)"
    )
    assert list(tmp_path.iterdir()) == []


def one_row_more(task, sizes):
    def run(*arguments):
        from recordspec.spark import tasks

        tasks.RowBatches.sizes = lambda self, splits: {
            split: (rows + 1, size) for split, (rows, size) in sizes(self, splits).items()
        }
        try:
            yield from task(*arguments)
        finally:
            tasks.RowBatches.sizes = sizes

    return run


def test_ctrl_c_cancels_the_job_and_leaves_nothing(session, tmp_path, monkeypatch):
    from recordspec import spark
    from recordspec.spark import engine

    marker = tmp_path / "writing"
    monkeypatch.setattr(engine, "write_shard", after_a_batch(engine.write_shard, marker, wait))

    def interrupt():
        wait_until(marker.exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted) as error:
        spark.write(frame_of(session, rows(90)), SCHEMA, tmp_path / "data")
    thread.join()
    assert str(error.value) == f"{tmp_path}/data: interrupted after 90 rows (nothing was published)"
    assert list(tmp_path.iterdir()) == [marker]
    tracker = session.sparkContext.statusTracker()
    wait_until(lambda: not tracker.getActiveJobsIds())  # Spark tells it some time later
    monkeypatch.undo()
    assert spark.write(frame_of(session, rows(9)), SCHEMA, tmp_path / "data").rows("train") == 9


def wait() -> None:
    time.sleep(60)


def test_a_folder_that_executors_do_not_see(session, tmp_path, monkeypatch):
    from recordspec import spark
    from recordspec.spark import engine

    monkeypatch.setattr(engine, "write_shard", elsewhere(engine.write_shard))
    with pytest.raises(rs.StoreError) as error:
        spark.write(frame_of(session, rows(9)), SCHEMA, tmp_path / "data")
    message = f"`/nowhere` does not exist on {socket.gethostname()}: all executors need it under this path"
    assert str(error.value) == message
    assert list(tmp_path.iterdir()) == []


def elsewhere(task):
    def run(plan, *arguments):
        return task(replace(plan, folder=Path("/nowhere")), *arguments)

    return run


@pytest.mark.parametrize("name", ["jobs", "memory", "limit", "resume"])
def test_options_without_a_meaning_are_refused_by_name(session, tmp_path, name):
    from recordspec import spark

    with pytest.raises(rs.SpecError) as error:
        spark.write(frame_of(session, rows(1)), SCHEMA, tmp_path / "data", **{name: 2})
    assert str(error.value).startswith(f"{name}: expected an option of a build on Spark, got `{name}` (")


def test_an_executor_with_another_package_is_refused(session, tmp_path, monkeypatch):
    from recordspec import spark
    from recordspec.spark import spark_jobs
    from recordspec.spark.tasks import package

    monkeypatch.setattr(spark_jobs, "package", lambda: "recordspec 0.0.9 of source 0123456789ab")
    with pytest.raises(rs.StoreError) as error:
        spark.write(frame_of(session, rows(9)), SCHEMA, tmp_path / "data")
    host, ours = re.escape(socket.gethostname()), re.escape(package())
    expected = "recordspec 0.0.9 of source 0123456789ab, as the driver has"
    assert re.search(rf"executor {host}: expected {expected}, got {ours}", str(error.value))
    assert list(tmp_path.iterdir()) == []


def test_columns_are_checked_before_a_job_runs(session, tmp_path):
    from recordspec import spark

    frame = frame_of(session, rows(1)).withColumnRenamed("name", "nam")
    with pytest.raises(rs.SpecError) as error:
        spark.write(frame, SCHEMA, tmp_path / "data")
    assert str(error.value) == "expected names of `s`, got `nam` (did you mean `name`?)"


def test_an_invalid_row_of_a_frame_is_named_by_its_partition(session, tmp_path):
    from recordspec import spark

    some = rows(30)
    some[25]["class"] = "z"
    with pytest.raises(rs.RecordError) as error:
        spark.write(frame_of(session, some), SCHEMA, tmp_path / "data")
    assert str(error.value) == (
        "partition 2, row 5: features.class: expected one of `a`, `b`, `c`, or an index, got `z`"
        " (add `z` to `names` if it is a class)"
    )
    assert error.value.row == 25
    assert list(tmp_path.iterdir()) == []


@pytest.mark.newest
def test_the_command(session, tmp_path):
    (tmp_path / "schema.yaml").write_text("schema: s\nfeatures: {id: int64, name: string}\n")
    (tmp_path / "rows.csv").write_text("id,name\n" + "".join(f"{number},n\n" for number in range(50)))
    (tmp_path / "config.yaml").write_text(
        "schema: schema.yaml\ndata: data\nwrite: {source: {csv: rows.csv}, shards: 2}\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "recordspec", "build", "config.yaml", "--spark", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    done = run("local[2]")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        '{"split": "train", "shards": 2, "rows": 50, "bytes": 2300, "smallest": 1150, "largest": 1150}\n'
    )
    again = run("local[2]", "--force", "--jobs", "2")
    assert again.returncode == 2
    assert again.stderr.splitlines()[-1].endswith("got `jobs` (Spark's executors share the work)")
    assert run("local[2]", "--dry-run").stderr == (
        "--dry-run: expected no --spark, got `local[2]` (the estimate is made on this machine)\n"
    )
    assert run("locl[2]").stderr == (
        "expected a master of Spark, got `locl[2]` (such as local[4], spark://host:7077 or yarn)\n"
    )
