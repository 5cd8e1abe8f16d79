"""Damage and misfits in files: named to the record and the feature, passed over only with a report."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from logging.handlers import BufferingHandler
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.reading import faults
from recordspec.reading.dataset import build
from recordspec.reading.faults import check
from recordspec.reading.options import Read
from recordspec.reading.plan import Share, plan
from recordspec.spec.options import from_python
from recordspec.store.files import File, known
from recordspec.store.shards import expand
from recordspec.wire import tfrecord

SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  n: int64
  pair: {dtype: float32, shape: [2], key: p}
  kept: {dtype: int64, default: 7}
  words: {kind: var_len, dtype: string}
  steps: {kind: fixed_len_sequence, dtype: int64, shape: [2]}
  lists: {kind: ragged, dtype: int64, shape: [null, null], row_lengths: [l]}
  points: {kind: sparse, dtype: float32, size: 9, index_keys: [i]}
  picture: {kind: image, shape: [2, 2, 3]}
"""
)
STEPS = rs.Schema.loads(
    """
schema: steps
record: sequence_example
context: {n: int64}
sequence:
  v: {kind: fixed_len_sequence, dtype: int64}
  words: {kind: var_len, dtype: string}
"""
)
PICTURE = np.zeros((2, 2, 3), np.uint8)
ROWS = 100
PER_SHARD = 25


def row(number: int) -> dict:
    return {
        "n": number,
        "pair": [0.5, 1.5],
        "kept": number,
        "words": ["w"] * (number % 3),
        "steps": [[1, 2]],
        "lists": [[1], [2, 3]],
        "points": ([4], [0.5]),
        "picture": PICTURE,
    }


def step_row(number: int) -> dict:
    return {"n": number, "v": [1, 2], "words": [["a"], []]}


@pytest.fixture
def data(tmp_path):
    rs.write(SCHEMA, map(row, range(ROWS)), tmp_path / "data", shards=4)
    return tmp_path / "data"


def shard(folder, index: int):
    return sorted(folder.glob("train-*"))[index]


def records(path) -> list[tfrecord.Record]:
    return list(tfrecord.scan(path))


def store(path, data: list[bytes], compression="none") -> None:
    stream = tfrecord.compressor(compression)
    framed = b"".join(map(tfrecord.framed, data))
    path.write_bytes(bytes(stream.compress(framed)) + stream.flush())


def replace(path, number: int, data: bytes, compression="none") -> str:
    """Puts other data in the place of a record; says where that is."""
    found = records(path)
    store(path, [data if one.number == number else one.data for one in found], compression)
    tell_size(path)
    return f"{path}: record {number} at byte {found[number].offset:,}"


def tell_size(path) -> None:
    """Makes the manifest say what size the file has."""
    manifest = path.with_name("manifest.json")
    told = json.loads(manifest.read_text())
    for one in (one for shards in told["splits"].values() for one in shards if one["file"] == path.name):
        one["bytes"] = path.stat().st_size
    manifest.write_text(json.dumps(told))


def changed(data: bytes, **values) -> bytes:
    """An Example with other values under some keys; None takes a key away."""
    example = tf.train.Example.FromString(data)
    for key, given in values.items():
        del example.features.feature[key]
        if given is not None:
            example.features.feature[key].CopyFrom(feature(given))
    return example.SerializeToString()


def feature(values: list) -> tf.train.Feature:
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def flip(path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def told(schema, folder) -> list[str]:
    return [
        str(problem)
        for file in known(expand(folder), schema)
        for fault in check(file, schema).faults
        for problem in fault.problems
    ]


def numbers(dataset) -> list[int]:
    return [number for batch in dataset for number in batch["n"].numpy().reshape(-1).tolist()]


def test_whole_files_have_no_faults(data):
    for file in known(expand(data), SCHEMA):
        checked = check(file, SCHEMA)
        assert (checked.faults, checked.records, checked.rows) == ([], PER_SHARD, PER_SHARD)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"n": [1.0]}, ["features.n: expected 1 int64, got 1 float"]),
        ({"n": [1, 2]}, ["features.n: expected 1 int64, got 2 int"]),
        ({"n": None}, ["features.n: expected 1 int64, got none"]),
        ({"p": [0.5]}, ["features.pair: expected 2 float32, got 1 float (stored under `p`)"]),
        ({"kept": []}, ["features.kept: expected values, got an empty list (without the key it would have its default)"]),
        ({"kept": [1, 2]}, ["features.kept: expected 1 int64, got 2 int"]),
        ({"words": [3]}, ["features.words: expected any number of bytes, got 1 int"]),
        ({"steps": [1, 2, 3]}, ["features.steps: expected a multiple of 2 int64, got 3 int"]),
        ({"l": [1, 1]}, ["features.lists: expected 2 items, as `l` says, got 3"]),
        ({"i": [4, 5]}, ["features.points: expected 1 indices, one for each value, got 2 (stored under `i`)"]),
        ({"n": None, "p": [b"a", b"b"]}, ["features.n: expected 1 int64, got none", "features.pair: expected 2 float32, got 2 bytes (stored under `p`)"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_by_feature(data, values, expected):
    path = shard(data, 3)
    place = replace(path, 17, changed(records(path)[17].data, **values))
    assert told(SCHEMA, data) == [f"{place}: {one}" for one in expected]


def test_an_image_that_does_not_decode_is_named_with_what_it_is(data):
    path = shard(data, 1)
    other = tf.io.encode_png(np.zeros((3, 2, 3), np.uint8)).numpy()
    places = [
        replace(path, 4, changed(records(path)[4].data, picture=[b"<!doctype html> not found"])),
        replace(path, 9, changed(records(path)[9].data, picture=[other])),
    ]
    page, shape = told(SCHEMA, data)
    begins = f"{places[0]}: features.picture: expected what image decodes, got an HTML page (Unknown image"
    assert page.startswith(begins)  # TensorFlow's list of formats differs from version to version
    assert shape == (
        f"{places[1]}: features.picture: expected what image decodes, got a PNG image"
        " (Shape of tensor input [3,2,3] is not compatible with expected shape [2,2,3])"
    )


def test_bytes_that_are_no_example_are_named(data):
    place = replace(shard(data, 0), 24, b"\xff\xfe not an Example")
    assert told(SCHEMA, data) == [f"{place}: expected an Example, got 17 bytes that are none"]


def test_faults_of_many_records_are_told_in_order(data, monkeypatch):
    monkeypatch.setattr(faults, "_RECORDS_AT_ONCE", 4)
    path = shard(data, 2)
    places = []
    for number in (0, 5, 6, 24):
        places.append(replace(path, number, changed(records(path)[number].data, n=[0.5])))
    flip(path, records(path)[9].stop + tfrecord.HEAD)  # in the data of record 10
    where = f"{path}: record 10"
    assert [line.partition(" at byte")[0] for line in told(SCHEMA, data)] == [
        *(place.partition(" at byte")[0] for place in places[:3]),
        where,
        places[3].partition(" at byte")[0],
    ]
    (file,) = known(expand(path), SCHEMA)
    checked = check(file, SCHEMA)
    assert (checked.records, [fault.rows for fault in checked.faults]) == (20, [1] * 5)
    assert len(check(file, SCHEMA, most=2).faults) == 2


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_what_is_cut_is_named_and_counted(tmp_path, compression):
    rs.write(SCHEMA, map(row, range(ROWS)), tmp_path / "data", shards=4, compression=compression)
    path = shard(tmp_path / "data", 1)
    found = records(path)
    store(path, [one.data for one in found[:20]], compression)  # between records
    (file,) = known(expand(path), SCHEMA)
    checked = check(file, SCHEMA)
    (fault,) = checked.faults
    assert (fault.record, fault.offset, fault.rows, fault.ends) == (20, found[20].offset, 5, True)
    place = f"{path}: record 20 at byte {found[20].offset:,}"
    assert str(fault.problems[0]) == (
        f"{place}: expected 25 records, as the manifest says, got the end of the file"
    )
    store(path, [one.data for one in [*found, *found]], compression)
    (fault,) = check(file, SCHEMA).faults
    assert (fault.record, fault.rows) == (25, 0)
    assert str(fault.problems[0]).endswith(
        ": expected the end of the file, after 25 records, as the manifest says, got another record"
    )


def test_a_file_without_a_manifest_is_checked_for_what_it_is(data):
    (data / "manifest.json").unlink()
    path = shard(data, 1)
    path.write_bytes(path.read_bytes()[:-1])
    checked = check(File(path=path), SCHEMA)
    (fault,) = checked.faults
    assert (checked.rows, fault.record, fault.rows) == (24, 24, None)


def sequence(data: bytes, **lists) -> bytes:
    """A SequenceExample with other steps under some keys; None takes a key away."""
    example = tf.train.SequenceExample.FromString(data)
    for key, steps in lists.items():
        del example.feature_lists.feature_list[key]
        if steps is not None:
            made = [feature(step) for step in steps]
            example.feature_lists.feature_list[key].CopyFrom(tf.train.FeatureList(feature=made))
    return example.SerializeToString()


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({"v": [[1], [2, 3]]}, "sequence.v[1]: expected 1 int64, got 2 int"),
        ({"v": [[1], [2], [0.5]]}, "sequence.v[2]: expected 1 int64, got 1 float"),
        ({"v": None}, "sequence.v: expected a list of steps, got none"),
        ({"words": [[b"a"], [1]]}, "sequence.words[1]: expected any number of bytes, got 1 int"),
    ],
)
def test_steps_that_do_not_fit_are_named(tmp_path, lists, expected):
    rs.write(STEPS, map(step_row, range(9)), tmp_path / "data")
    path = shard(tmp_path / "data", 0)
    place = replace(path, 5, sequence(records(path)[5].data, **lists))
    assert told(STEPS, tmp_path / "data") == [f"{place}: {expected}"]


def test_a_context_that_does_not_fit_is_named(tmp_path):
    rs.write(STEPS, map(step_row, range(9)), tmp_path / "data")
    path = shard(tmp_path / "data", 0)
    example = tf.train.SequenceExample.FromString(records(path)[5].data)
    del example.context.feature["n"]
    place = replace(path, 5, example.SerializeToString())
    assert told(STEPS, tmp_path / "data") == [f"{place}: context.n: expected 1 int64, got none"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"n": [1] * 9}, "features.n: expected 10 int64 in a block of 10 rows, got 9"),
        ({"n": [0.5] * 10}, "features.n: expected int64, got 10 float"),
        ({"words": [b"w"]}, "features.words: expected 10 bytes in a block of 10 rows, got 1"),
        ({"words/lengths": [3, 3]}, "features.words: expected lengths of 10 rows, got 2"),
        ({"/rows": None}, "/rows: expected a block of rows, got a record without"),
    ],
)
def test_blocks_that_do_not_fit_are_named(tmp_path, values, expected):
    rs.write(SCHEMA, map(row, range(ROWS)), tmp_path / "data", layout={"blocks": 10}, key="n")
    path = shard(tmp_path / "data", 0)
    words = tf.train.Example.FromString(records(path)[3].data).features.feature["words"].bytes_list.value
    place = replace(path, 3, changed(records(path)[3].data, **values))
    expected = expected.replace("expected 10 bytes", f"expected {len(words)} bytes")
    (line,) = told(SCHEMA, tmp_path / "data")
    assert line.replace('"/rows"', "/rows") == f"{place}: {expected}"


# --- locating


def test_an_error_of_reading_is_located(data):
    path = shard(data, 3)
    place = replace(path, 17, changed(records(path)[17].data, n=[0.5]))
    replace(path, 20, changed(records(path)[20].data, n=None))
    with pytest.raises(rs.RecordError) as caught, rs.locating(SCHEMA, data):
        numbers(rs.read(SCHEMA, data, batch=8, shuffle=50, seed=1))
    assert (
        str(caught.value)
        == f"{place}: features.n: expected 1 int64, got 1 float (2 records of this file have faults)"
    )
    assert caught.value.row == 17
    assert isinstance(caught.value.__cause__, tf.errors.InvalidArgumentError)


def test_corruption_and_bytes_that_are_no_example_are_located(data):
    place = replace(shard(data, 2), 3, b"\xff\xff")
    with pytest.raises(rs.RecordError) as caught, rs.locating(SCHEMA, data):
        numbers(rs.read(SCHEMA, data, batch=8))
    assert str(caught.value) == f"{place}: expected an Example, got 2 bytes that are none"
    path = shard(data, 0)
    flip(path, records(path)[9].offset + 40)
    with pytest.raises(rs.RecordError) as caught, rs.locating(SCHEMA, data):
        numbers(rs.read(SCHEMA, data, batch=8))
    assert str(caught.value).endswith(": expected data that matches its CRC, got other bytes")
    assert isinstance(caught.value.__cause__, tf.errors.DataLossError)


def test_errors_that_no_record_explains_go_on_unchanged(data):
    with pytest.raises(tf.errors.InvalidArgumentError, match="mine"), rs.locating(SCHEMA, data):
        raise tf.errors.InvalidArgumentError(None, None, "mine")
    replace(shard(data, 0), 0, b"\xff\xff")
    with pytest.raises(KeyError), rs.locating(SCHEMA, data):
        raise KeyError


def test_errors_of_fit_are_located(data, tmp_path):
    (tmp_path / "s.yaml").write_text(SCHEMA.dump())
    (tmp_path / "c.yaml").write_text(
        f"schema: s.yaml\ndata: {data}\nread: {{batch: 10}}\nfit: {{inputs: pair, targets: n}}\n"
    )
    place = replace(shard(data, 1), 17, changed(records(shard(data, 1))[17].data, n=[0.5]))
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    for context in (pipeline.locating(), pipeline.locating("train")):
        with pytest.raises(rs.RecordError) as caught, context:
            model.fit(pipeline.dataset("train"), verbose=0)
        assert str(caught.value) == f"{place}: features.n: expected 1 int64, got 1 float"


# --- corrupt: skip


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
    dataset = rs.read(SCHEMA, data, batch=10, corrupt="skip")
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
            f"{place}: features.n: expected 1 int64, got 1 float",
        ],
    ]
    log.clear()
    assert sorted(numbers(rs.read(SCHEMA, data, batch=10, shuffle=20, seed=1, corrupt="skip"))) == left
    assert log == []  # it was said


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("layout", ["rows", {"blocks": 10}])
def test_of_a_cut_shard_what_is_whole_is_read(tmp_path, log, compression, layout):
    rs.write(
        SCHEMA, map(row, range(ROWS)), tmp_path / "data", key="n", layout=layout, compression=compression
    )
    path = shard(tmp_path / "data", 0)
    everything = numbers(rs.read(SCHEMA, tmp_path / "data", batch=10))
    found = records(path)
    kept = len(found) * 8 // 10
    store(path, [one.data for one in found[:kept]], compression)  # between two records
    with pytest.raises(rs.StoreError, match="bytes, as the manifest says"):
        rs.read(SCHEMA, tmp_path / "data")
    dataset = rs.read(SCHEMA, tmp_path / "data", batch=10, corrupt="skip")
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
    dataset = rs.read(SCHEMA, data, batch=10, corrupt="skip")
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
    dataset = rs.read(SCHEMA, data, batch=10, corrupt="skip")
    assert int(dataset.cardinality()) == 10
    assert len(numbers(dataset)) == 95
    assert log[0].getMessage().startswith(f"{path}: rows left out: unknown, read: 20")


def test_a_block_that_is_passed_over_takes_its_rows_along(tmp_path, log):
    rs.write(SCHEMA, map(row, range(95)), tmp_path / "data", key="n", layout={"blocks": 10})
    path = shard(tmp_path / "data", 0)
    everything = numbers(rs.read(SCHEMA, tmp_path / "data", batch=10))
    flip(path, records(path)[-1].offset + 40)
    flip(path, tfrecord.HEAD + 40)
    dataset = rs.read(SCHEMA, tmp_path / "data", batch=10, corrupt="skip")
    assert numbers(dataset) == everything[10:90]
    assert log[0].getMessage().startswith(f"{path}: rows left out: 15, read: 80\n")


def test_workers_share_what_is_left(data, log):
    path = shard(data, 1)
    flip(path, records(path)[9].offset + 40)
    seen = []
    for worker in range(3):
        what = plan(expand(data), SCHEMA, Share(3, worker), "skip")
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
        rs.read(SCHEMA, data, batch=10, repeat="forever", corrupt="skip")
    assert str(caught.value) == f"{data}: expected records that can be read, got none"


def test_what_is_no_tfrecord_is_not_skipped(data):
    path = shard(data, 1)
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    tell_size(path)
    for corrupt in ("error", "skip"):
        with pytest.raises(rs.RecordError) as caught:
            rs.read(SCHEMA, data, corrupt=corrupt)
        assert str(caught.value) == (
            f"{path}: expected a TFRecord file, got a Git LFS pointer (run git lfs pull)"
        )
    assert told(SCHEMA, data) == [str(caught.value)]


def test_copies_go_with_the_process(data, tmp_path):
    path = shard(data, 1)
    flip(path, records(path)[9].offset + 40)
    code = f"""
import recordspec as rs
from pathlib import Path
from recordspec.reading.mending import mended
from recordspec.store.files import known
from recordspec.store.shards import expand
schema = rs.Schema.load({str(data / "schema.yaml")!r})
copies = [mended(file, schema)[0] for file in known(expand({str(data)!r}), schema)]
print(*(copy for copy in copies if copy.exists() and copy.parent != Path({str(data)!r})))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    (copy,) = map(Path, run.stdout.split())
    assert copy.name == path.name
    assert not copy.parent.parent.exists()


def test_records_that_the_manifest_does_not_know_are_left_out(data, log):
    path = shard(data, 1)
    found = records(path)
    store(path, [one.data for one in [*found, *found]])
    assert numbers(rs.read(SCHEMA, data, batch=10, corrupt="skip")) == list(range(ROWS))
    assert log[0].getMessage().startswith(f"{path}: rows left out: 0, read: 25\n")
