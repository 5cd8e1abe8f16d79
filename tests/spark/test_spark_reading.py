"""What reads all records gives on Spark what it gives on one machine: `spark.running_on`, `spark.frames`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as compute
import pytest
from pyarrow import parquet
from test_spark_bytes import SCHEMA, rows
from test_spark_failures import after_a_batch, kill_executor

import recordspec as rs
from recordspec.executors import new_attempt
from recordspec.integrity.indexing import index
from recordspec.statistics.count import count
from recordspec.store import scan

sys.path.append(str(Path(__file__).parents[1] / "net"))
import gallery

pytestmark = pytest.mark.services

# Datasets beside those of `configs/`.
OTHERS: dict[str, dict[str, Any]] = {
    "blocks": {"layout": {"blocks": 16}},
    "gzip": {"compression": "gzip", "key": "id"},
    "damaged": {"split": {"train": 3, "test": 1}},
}
# With the oldest Spark.
OLDEST = ("digits", "taxi", "blocks")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return gallery.home(tmp_path_factory.mktemp("questions") / "home")


@pytest.fixture
def small_ranges(monkeypatch) -> None:
    """Files have several ranges, in several groups."""
    monkeypatch.setattr(scan, "_RANGE", 4000)
    monkeypatch.setattr(scan, "_GROUP", 10_000)


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name in OLDEST else pytest.mark.newest)
        for name in (*gallery.NAMES, *OTHERS)
    ]
)
def data(request, home, tmp_path) -> Path:
    folder = tmp_path / "data"
    if request.param not in OTHERS:
        gallery.build(home, request.param, str(folder))
        return folder
    rs.write(rows(900), SCHEMA, folder, shards=2, progress=False, **OTHERS[request.param])
    if request.param == "damaged":
        path = next(folder.glob("train-00001*"))
        stored = bytearray(path.read_bytes())
        stored[len(stored) // 2] ^= 1
        path.write_bytes(stored)
    return folder


def inferred(data: Path) -> Any:
    proposal = rs.infer(str(data / "*-of-*"))
    return proposal.schema.dump(), proposal.notes


def exported(data: Path) -> Any:
    out = data.parent / f"{new_attempt()}.parquet"
    done = rs.export(data, out)
    tables = map(parquet.read_table, sorted(out.iterdir()) if out.is_dir() else [out])
    return done.rows, done.columns, repr(pyarrow.concat_tables(tables).to_pylist())


def counted_and_indexed(data: Path) -> Any:
    (data / "index.bin").unlink()  # it has the counts
    return count(data), index(data), (data / "index.bin").read_bytes()


QUESTIONS: dict[str, Callable[[Path], Any]] = {
    "verify": lambda data: [one.dump() for one in rs.verify(data)],
    "check": lambda data: rs.check(data).dump(),
    "stats": lambda data: repr(asdict(rs.stats(data))),
    "leaks": lambda data: [rs.leaks(data), rs.leaks(data, columns=rs.scan(data).schema.names[:1])],
    "diff": lambda data: [repr(asdict(rs.diff(data, data, keys=keys))) for keys in (False, None)],
    "infer": inferred,
    "count and index": counted_and_indexed,
    "export": exported,
    "adopt": lambda data: repr(rs.adopt(data / "*-of-*", data / "schema.yaml", data.parent / new_attempt())),
}
OF_INTACT_FILES = ("leaks", "diff", "infer", "export")


def answers(data: Path) -> dict[str, Any]:
    """What commands find."""
    intact = all(file.intact for file in rs.verify(data))
    return {
        name: question(data) for name, question in QUESTIONS.items() if intact or name not in OF_INTACT_FILES
    }


def test_answers_are_those_of_one_machine(session, data, tmp_path, small_ranges, monkeypatch):
    from recordspec import spark

    wanted = answers(data)
    monkeypatch.setattr(scan.tfrecord, "record_ranges", None)  # executors find ranges, not the driver
    with spark.running_on(session):
        assert answers(data) == wanted


@pytest.mark.newest
def test_parquet_files_are_inferred_as_on_one_machine(session, tmp_path):
    from recordspec import spark

    for number in range(3):
        columns = {
            "id": range(number * 50, number * 50 + 50),
            "kind": list("ab" * 25),
            "at": ["2026-01-01"] * 50,
        }
        parquet.write_table(
            pyarrow.table({**columns, "id": [*columns["id"]]}), tmp_path / f"{number}.parquet"
        )
    wanted = rs.infer(tmp_path)
    with spark.running_on(session):
        found = rs.infer(tmp_path)
        (tmp_path / "rows.csv").write_text("a\n1\n")
        with pytest.raises(rs.SpecError, match="expected TFRecords or Parquet on a cluster, got a source"):
            rs.infer(tmp_path / "rows.csv")
    assert (found.schema, found.notes) == (wanted.schema, wanted.notes)


@pytest.mark.long
@pytest.mark.newest
def test_an_executor_is_killed(session, tmp_path, small_ranges, monkeypatch):
    import test_spark_failures
    from pyspark import cloudpickle

    from recordspec import spark
    from recordspec.spark import frames, spark_jobs

    tasks_of = {"run_tasks": spark_jobs.run_tasks, "_read": frames._read}
    cloudpickle.register_pickle_by_value(test_spark_failures)
    try:
        rs.write(rows(900), SCHEMA, tmp_path / "data", shards=4, progress=False)
        data = tmp_path / "data"
        wanted = answers(data)
        for name, question in QUESTIONS.items():
            marker = tmp_path / f"{name}.killed"
            for module, task in ((spark_jobs, "run_tasks"), (frames, "_read")):
                monkeypatch.setattr(module, task, after_a_batch(tasks_of[task], marker, kill_executor))
            with spark.running_on(session):
                assert question(data) == wanted[name]
            assert marker.exists(), name
    finally:
        cloudpickle.unregister_pickle_by_value(test_spark_failures)


def plain(value: Any) -> Any:
    """A value of a frame as Arrow has it."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return (
        bytes(value) if isinstance(value, bytearray) else int(value) if isinstance(value, Decimal) else value
    )


def collected(frame) -> list[dict[str, Any]]:
    return [plain(row.asDict(recursive=True)) for row in frame.collect()]


def test_a_frame_has_the_rows_of_a_scan(session, data, small_ranges, monkeypatch):
    from recordspec import spark

    options = {"corrupt": "skip", "columns": [*rs.scan(data).schema.names, "record", "content"]}
    wanted = rs.scan(data, **options).without_dictionaries().to_table()
    monkeypatch.setattr(scan.tfrecord, "record_ranges", None)
    frame = spark.read(session, data, **options)
    assert frame.columns == wanted.schema.names
    assert repr(collected(frame)) == repr(wanted.to_pylist())


@pytest.mark.newest
def test_the_program_finds_leaks(tmp_path):
    """The program imports no pandas for this command on one machine, but PySpark needs it."""
    split = {"a": 1, "b": 1}
    same = [{"id": n, "name": "x", "many": [], "class": "a"} for n in range(20)]
    rs.write(same, SCHEMA, tmp_path / "data", key="id", split=split, progress=False)
    command = [sys.executable, "-m", "recordspec", "leaks", str(tmp_path / "data"), "--columns", "name"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    here, there = (
        subprocess.run([*command, *options], capture_output=True, text=True, env=environment)
        for options in ((), ("--spark", "local[2]"))
    )
    assert here.returncode == there.returncode == 1, there.stderr
    assert here.stdout == there.stdout != ""


@pytest.mark.newest
def test_small_files_share_partitions(session, tmp_path):
    from recordspec import spark

    rs.write(rows(300), SCHEMA, tmp_path / "data", shards=100, progress=False)
    spark.register(session)
    frame = spark.read(session, tmp_path / "data")
    formatted = session.read.format("recordspec").load(str(tmp_path / "data"))
    wanted = rs.scan(tmp_path / "data").to_table().to_pylist()
    for read in (frame, formatted):
        groups = 8 * session.sparkContext.defaultParallelism
        assert groups <= read.rdd.getNumPartitions() <= 2 * groups
        assert repr(collected(read)) == repr(wanted)


def test_sessions_of_spark_connect_are_refused():
    from recordspec import spark

    for call in (lambda: spark.read(object(), "data"), lambda: spark.register(object())):
        with pytest.raises(
            rs.SpecError, match="expected a session with a SparkContext, got one of Spark Con"
        ):
            call()


def received(frame, what: str) -> int:
    """What Spark received of the processes that read a frame, whose rows were collected."""
    return frame._jdf.queryExecution().executedPlan().metrics().apply(what).value()


def test_columns_and_conditions_are_read_by_executors(session, tmp_path, small_ranges):
    from recordspec import spark

    some = rows(600)
    rs.write(some, SCHEMA, tmp_path / "data", shards=3, split={"a": 1, "b": 1}, progress=False)
    other = [{"id": n, "name": str(n), "many": [], "class": "a"} for n in range(0, 600, 7)]
    rs.write(other, SCHEMA, tmp_path / "other", progress=False)
    where = (compute.field("id") < 100) & (compute.field("class") == "b")
    frame = spark.read(session, tmp_path / "data", columns=["id", "class"], where=where)
    wanted = {row["id"]: row["class"] for row in some if row["id"] < 100 and row["class"] == "b"}
    assert {row.id: row["class"] for row in frame.collect()} == wanted
    assert received(frame, "pythonNumRowsReceived") == len(wanted)
    frames = [spark.read(session, tmp_path / "data", columns=columns) for columns in (["id"], None)]
    narrow, wide = (received(frame, "pythonDataReceived") for frame in frames if frame.collect())
    assert narrow < wide / 2
    of_split = spark.read(session, tmp_path / "data", split="a").count()
    assert of_split == rs.scan(tmp_path / "data", split="a").count_rows()
    joined = spark.read(session, tmp_path / "data", columns=["id"]).join(
        spark.read(session, tmp_path / "other", columns=["id", "name"]), "id"
    )
    assert {(row.id, row.name) for row in joined.collect()} == {(n, str(n)) for n in range(0, 600, 7)}
    with pytest.raises(rs.SpecError, match="columns: expected one of id, name, many, class"):
        spark.read(session, tmp_path / "data", columns=["ids"])


@pytest.mark.newest
def test_spark_reads_the_format(session, tmp_path, small_ranges):
    from recordspec import spark

    some = [{**row, "score": [0.5, float("nan"), -1.0][row["id"] % 3]} for row in rows(300)]
    schema = rs.Schema.loads(SCHEMA.dump().replace("  id: int64\n", "  id: int64\n  score: float32\n", 1))
    rs.write(some, schema, tmp_path / "data", shards=2, progress=False)
    spark.register(session)
    whole = session.read.format("recordspec").load(str(tmp_path / "data"))
    assert repr(collected(whole)) == repr(collected(spark.read(session, tmp_path / "data")))
    narrow = session.read.format("recordspec").option("columns", "id, score, name")
    frame = narrow.load(str(tmp_path / "data"))
    found = {
        condition: sorted(row.id for row in frame.where(condition).collect())
        for condition in ("id >= 290", "score > 0", "name = 'x' or id = 3")
    }
    assert found == {
        "id >= 290": [*range(290, 300)],
        "score > 0": [n for n in range(300) if n % 3 < 2],  # Spark has NaN after all numbers
        "name = 'x' or id = 3": sorted({3} | {row["id"] for row in some if row["name"] == "x"}),
    }
    with pytest.raises(rs.SpecError, match="option: expected one of columns, corrupt, path, schema"):
        spark.frames._table_of_options({"path": "data", "colums": "id"})
