"""Ray Data has the rows of a scan: `recordspec.ray_data`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as compute
import pytest

import recordspec as rs
from recordspec.store import scan

sys.path.append(str(Path(__file__).parents[1] / "net"))
import gallery

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def ray_data(tmp_path_factory):
    """The module, with two workers, which keep the order of rows."""
    from recordspec import ray_data

    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init(num_cpus=2, object_store_memory=100 << 20, **options)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    yield ray_data
    ray.shutdown()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return gallery.home(tmp_path_factory.mktemp("ray") / "home")


def plain(value: Any) -> Any:
    """A value as Arrow has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", [*gallery.NAMES, "blocks", "gzip", "damaged"])
def test_a_dataset_has_the_rows_of_a_scan(ray_data, home, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scan, "_RANGE", 4000)  # files have several ranges
    layouts = {"blocks": {"layout": {"blocks": 16}}, "gzip": {"compression": "gzip"}, "damaged": {}}
    if name in layouts:
        some = ({"id": n, "many": [n / 2] * (n % 4)} for n in range(900))
        spec = rs.Schema.loads("schema: s\nfeatures: {id: int64, many: {kind: var_len, dtype: float32}}\n")
        rs.write(some, spec, "data", shards=2, progress=False, **layouts[name])
    else:
        gallery.build(home, name, str(tmp_path / "data"))
    if name == "damaged":
        path = next(Path("data").glob("train-00001*"))
        stored = bytearray(path.read_bytes())
        stored[len(stored) // 2] ^= 1
        path.write_bytes(stored)
    options = {"corrupt": "skip", "columns": [*rs.scan("data").schema.names, "record", "content"]}
    wanted = rs.scan("data", **options).without_dictionaries().to_table()
    monkeypatch.setattr(scan.tfrecord, "record_ranges", None)  # tasks find ranges, not this process
    dataset = ray_data.read("data", **options, override_num_blocks=3)
    assert dataset.schema().names == wanted.schema.names
    assert repr([plain(row) for row in dataset.take_all()]) == repr(wanted.to_pylist())


def test_tasks_read_the_rows_and_columns_that_are_asked_for(ray_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = rs.Schema.loads("schema: s\nfeatures: {id: int64, name: text}\n")
    rows = [{"id": n, "name": f"n{n}"} for n in range(300)]
    rs.write(rows, spec, "data", split={"a": 1, "b": 1}, shards=2, progress=False)
    chosen = rs.scan("data", columns=["name"]).filter(compute.field("name") == "n7")
    tasks = ray_data.RecordDatasource(chosen).get_read_tasks(4)
    blocks = [block for task in tasks for block in task()]
    assert (len(tasks), sum(block.num_rows for block in blocks)) == (4, 1)
    few = ray_data.read("data", columns=["name"], where=compute.field("name") == "n7")
    assert few.take_all() == [{"name": "n7"}]
    none = ray_data.read("data", where=compute.field("id") < 0)
    assert none.materialize().schema().names == ["id", "name"]
    assert ray_data.read("data", split="a").count() == rs.scan("data", split="a").count_rows()
    # and back
    dataset = ray_data.read("data").map_batches(lambda table: table, batch_format="pyarrow")
    manifest = rs.write(dataset.iter_rows(), spec, "again", progress=False)
    assert manifest.rows("train") == 300
    assert rs.scan("again").to_table().sort_by("id")["name"].to_pylist() == [row["name"] for row in rows]


def test_errors_of_records_are_those_of_tasks(ray_data, tmp_path):
    rs.write(
        ({"id": n} for n in range(50)),
        rs.Schema.loads("schema: s\nfeatures: {id: int64}\n"),
        tmp_path / "data",
    )
    path = next((tmp_path / "data").glob("train-*"))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(Exception, match="RecordError") as caught:
        ray_data.read(tmp_path / "data").take_all()
    assert str(path) in str(caught.value)
    with pytest.raises(rs.SpecError, match="columns: expected one of id"):
        ray_data.read(tmp_path / "data", columns=["ids"])
