"""How fast a dataset is read: consistent numbers, and what is printed of them (`cli.bench`)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sorted_rows import FORMS, ROWS, SCHEMA, SHUFFLE, how, written

import recordspec as rs
from recordspec.reading import bench as benching
from recordspec.reading.bench import Advice, Stage, bench
from recordspec.reading.plan import plan_files
from recordspec.store.expand import expand
from shell import run_here


@pytest.fixture(scope="module", params=FORMS.values(), ids=FORMS)
def data(tmp_path_factory, request) -> Path:
    return written(tmp_path_factory.mktemp("home"), *request.param)


in_rows = pytest.mark.parametrize("data", [("rows", 0)], ids=["rows"], indirect=True)


@pytest.mark.parametrize("shuffle", [None, SHUFFLE], ids=["in-order", "shuffled"])
@pytest.mark.parametrize("batch", [None, 32])
def test_every_stage_is_measured(data, shuffle, batch):
    what = plan_files(expand(data), SCHEMA)
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
    assert (found.neighbours is None) == (shuffle is None)
    assert found.classes.rows <= ROWS


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
    found = bench(endless, SCHEMA, plan_files(expand(data), SCHEMA), seconds=0.05)
    assert found.stages[-1].seconds > 0.05
    assert found.stages[-1].rows > 0


def test_the_stage_that_adds_most_is_the_limit():
    def stage(name: str, seconds: float) -> Stage:
        return Stage(name=name, rows=100, bytes=1, seconds=seconds, cpu=1.0)

    measured = (stage("read", 1.0), stage("parse", 3.0), stage("decode", 4.0), stage("whole", 9.0))
    assert benching._limit(measured) == "parse"
    assert benching._limit((replace(measured[0], seconds=2.5), *measured[1:])) == "read"


@in_rows
def test_advice_is_what_was_faster_and_nothing_else(data, monkeypatch):
    def stage(name: str, counts: object, what: object, seconds: float) -> Stage:
        rates = {"prefetch: auto": 1.5, "batch: 128": 1.1}
        return Stage(name=name, rows=int(1000 * rates.get(name, 1.0)), bytes=1, seconds=1.0, cpu=1.0)

    monkeypatch.setattr(benching, "_stage", stage)
    slow = how(batch=None, prefetch=None)
    found = bench(slow, SCHEMA, plan_files(expand(data), SCHEMA), seconds=0.01)
    assert found.advice == (Advice(option="prefetch: auto", gain=1.5),)
    assert str(found.advice[0]) == "set `prefetch: auto` in `read:`: 1.5 times as many rows per second"


@pytest.mark.parametrize(
    ("limit", "options", "tried"),
    [
        ("read", {}, ["interleave: {parallel: auto}"]),
        ("read", {"interleave": {"parallel": 2}}, ["interleave: {parallel: null}"]),
        ("decode", {}, ["deterministic: false"]),
        ("decode", {"deterministic": False}, []),
        ("shuffle", {"batch": None, "prefetch": 0}, ["batch: 128", "prefetch: auto"]),
    ],
)
def test_what_is_tried_can_be_set_in_a_config(data, limit, options, tried):
    given, what = how(**options), plan_files(expand(data), SCHEMA)
    trials = dict(benching._trials(given, what, limit))
    assert list(trials) == tried
    assert all(other != given for other in trials.values())


@in_rows
def test_a_pipeline_measures_a_split(data):
    found = rs.Pipeline.load(data.parent / "config.yaml").bench("train", seconds=0.02, prefetch=2)
    assert found.stages[-1].name == "whole"
    assert found.classes.label == "mood"


def test_no_rows_and_no_time_are_refused(tmp_path):
    rs.write(SCHEMA, [], tmp_path / "data", allow_empty=True)
    what = plan_files(expand(tmp_path / "data"), SCHEMA)
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
    assert summary.keys() == {"limit", "advice", "neighbours", "classes"}
    assert summary["classes"]["label"] == "mood"
    assert summary["neighbours"]["rows"] == ROWS


def test_a_terminal_gets_sentences(capsys):
    from recordspec.cli.bench import _lines
    from recordspec.reading.bench import Bench
    from recordspec.reading.shuffle_quality import Classes, Neighbours

    found = Bench(
        stages=(),
        limit="decode",
        advice=(),
        neighbours=Neighbours(
            rows=9, adjacent=0.125, adjacent_by_chance=0.25, apart=1234.0, apart_by_chance=3000.0
        ),
        classes=Classes(label="mood", rows=9000, same=0.5, same_on_disk=0.999, same_by_chance=0.25),
    )
    assert _lines(found) == [
        "\nlimit: decode",
        "no option that was tried makes it faster",
        "neighbours are 1,234 rows apart on disk (a perfect shuffle: 3,000); 12.50% were neighbours there (a perfect shuffle: 25.00%)",
        "50.0% of neighbours have the same `mood` (a perfect shuffle: 25.0%; on disk: 99.9%; of 9,000 rows)",
    ]


@in_rows
def test_an_unknown_split_is_told_in_a_line(data):
    unknown = run_here("bench", data.parent / "config.yaml", "--split", "trian")
    assert (unknown.returncode, unknown.stdout) == (3, "")
    assert unknown.stderr == "expected train, got `trian` (did you mean `train`?)\n"
