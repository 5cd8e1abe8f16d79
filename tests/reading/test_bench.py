"""How fast a dataset is read: consistent numbers, and what is printed of them (`cli.bench`)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import recordspec as rs
from recordspec.order.read_options import Read
from recordspec.order.read_plan import plan_files
from recordspec.reading import bench as benching
from recordspec.reading.bench import Stage, bench
from recordspec.schema.options import from_python
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import expand
from shell import run_here

SCHEMA = rs.Schema.loads("""
schema: moods
features:
  id: int64
  words: {kind: var_len, dtype: string}
  mood: {kind: label, names: [calm, glad, angry, sad]}
  filler: {kind: fixed_len, dtype: string, default: ""}
""")
ROWS = 2000
FORMS = {"rows": ("rows", 0), "blocks": ({"blocks": 64}, 0), "large": ("rows", 9000)}
CONFIG = """
schema: schema.yaml
data: data
read:
  batch: 32
  shuffle: {buffer: 100, seed: 7}
fit: {inputs: id, targets: mood}
"""
SHUFFLE = {"buffer": 100, "seed": 7}


def how(**options) -> Read:
    return from_python(Read, {"batch": 32, **options})


def written(folder: Path, layout: str | dict[str, int], filler: int) -> Path:
    """A dataset of 3 shards; its schema and config are in the folder, too."""
    rows = [
        {"id": index, "words": ["w"] * (index % 3), "mood": index % 4, "filler": "x" * filler}
        for index in range(ROWS)
    ]
    rs.write(rows, SCHEMA, folder / "data", shards=3, layout=layout)
    SCHEMA.dump(folder / "schema.yaml")
    (folder / "config.yaml").write_text(CONFIG)
    return folder / "data"


@pytest.fixture(scope="module", params=FORMS.values(), ids=FORMS)
def data(tmp_path_factory, request) -> Path:
    return written(tmp_path_factory.mktemp("home"), *request.param)


in_rows = pytest.mark.parametrize("data", [("rows", 0)], ids=["rows"], indirect=True)


@pytest.mark.parametrize("shuffle", [None, SHUFFLE], ids=["in-order", "shuffled"])
@pytest.mark.parametrize("batch", [None, 32])
def test_every_stage_is_measured(data, shuffle, batch):
    what = plan_files(StoredDataset.of(data, SCHEMA))
    given = how(shuffle=shuffle, batch=batch)
    found = bench(given, SCHEMA, what, map=lambda features: features["mood"], seconds=0.05)
    mix = "shuffle" if shuffle else "batch"
    if what.block is None:  # ragged rows are decoded in their batches
        parsed = [mix, "parse", "decode"]
    else:
        parsed = [f"parse, decode, {mix}"] if batch else [f"parse, {mix}", "decode"]
    assert [stage.name for stage in found.stages] == ["read", *parsed, "map", "whole"]
    assert found.limit in [stage.name for stage in found.stages[:-1]]
    size = sum(path.stat().st_size for path in expand(data))
    for stage in found.stages:
        assert stage.rows > 0
        assert stage.bytes == size * stage.rows // ROWS
        assert stage.rate == stage.rows / stage.seconds
        assert stage.cores == stage.cpu / stage.seconds > 0


def test_passes_that_are_short_are_counted_whole_and_long_ones_without_their_beginning(monkeypatch):
    ticks = count()
    monkeypatch.setattr(benching, "_clocks", lambda: ((now := next(ticks) / 8), now / 2))
    short = SimpleNamespace(as_numpy_iterator=lambda: iter([np.array([5, 5])] * 4))
    assert benching._timed(short, None, 2.0) == (11 * 40, 2.0, 1.0)
    long = SimpleNamespace(as_numpy_iterator=lambda: repeat(np.array([1])))
    assert benching._timed(long, None, 0.2) == (2, 3 / 8, 3 / 16)


@pytest.mark.parametrize("data", [("rows", 0), ({"blocks": 64}, 0)], ids=["rows", "blocks"], indirect=True)
def test_passes_without_end_are_measured_too(data):
    endless = how(shuffle=SHUFFLE, repeat="forever")
    found = bench(endless, SCHEMA, plan_files(StoredDataset.of(data, SCHEMA)), seconds=0.05)
    assert found.stages[-1].seconds > 0.05
    assert found.stages[-1].rows > 0


def test_the_stage_that_adds_most_is_the_limit():
    def stage(name: str, seconds: float) -> Stage:
        return Stage(name=name, rows=100, bytes=1, seconds=seconds, cpu=1.0)

    measured = (stage("read", 1.0), stage("parse", 3.0), stage("decode", 4.0), stage("whole", 9.0))
    assert benching._limit(measured) == "parse"
    assert benching._limit((replace(measured[0], seconds=2.5), *measured[1:])) == "read"


@in_rows
def test_a_pipeline_measures_a_split(data):
    found = rs.Pipeline.load(data.parent / "config.yaml").bench("train", seconds=0.02, prefetch=2)
    assert found.stages[-1].name == "whole"


def test_no_rows_and_no_time_are_refused(tmp_path):
    rs.write([], SCHEMA, tmp_path / "data", allow_empty=True)
    what = plan_files(StoredDataset.of(tmp_path / "data", SCHEMA))
    with pytest.raises(rs.StoreError) as refused:
        bench(how(), SCHEMA, what, seconds=0.01)
    assert str(refused.value) == f"`{tmp_path / 'data'}` has no rows to read"
    with pytest.raises(rs.SpecError) as refused:
        bench(how(), SCHEMA, what, seconds=0)
    assert str(refused.value) == "seconds: expected more than 0, got 0"


@pytest.mark.slow
@in_rows
def test_the_command_prints_lines_of_json(data):
    done = run_here("bench", data.parent / "config.yaml", "--seconds", "0.02")
    assert (done.returncode, done.stderr) == (0, "")
    *stages, summary = map(json.loads, done.stdout.splitlines())
    assert [stage["stage"] for stage in stages][-2:] == ["map", "whole"]
    assert all(stage["rows/s"] > 0 and stage["MB/s"] > 0 and stage["CPU s/s"] > 0 for stage in stages)
    assert summary.keys() == {"limit"}
    assert summary["limit"] in [stage["stage"] for stage in stages]


@in_rows
def test_an_unknown_split_is_told_in_a_line(data):
    unknown = run_here("bench", data.parent / "config.yaml", "--split", "trian")
    assert (unknown.returncode, unknown.stdout) == (3, "")
    assert unknown.stderr == "split: expected train, got `trian` (did you mean `train`?)\n"
