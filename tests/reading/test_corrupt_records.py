"""Damage and invalid records in files: named to the record and the feature."""

from __future__ import annotations

import gzip
import zlib

import numpy as np
import pytest
from broken_files import (
    PER_SHARD,
    ROWS,
    SCHEMA,
    STEPS,
    changed,
    feature,
    flip,
    records,
    replace,
    row,
    shard,
    step_row,
    store,
    told,
)

import recordspec as rs
from recordspec._tf import tf
from recordspec.reading import corrupt_records
from recordspec.reading.corrupt_records import check_file
from recordspec.store.dataset import StoredDataset
from recordspec.store.shards import File
from recordspec.wire import framing
from recordspec.wire.framing import framed
from recordspec.wire.streams import JOINED
from shell import run_here


def test_whole_files_have_no_faults(data):
    for file in StoredDataset.of(data, SCHEMA).checked_files():
        checked = check_file(file, SCHEMA)
        assert (checked.corrupt, checked.records, checked.rows) == ([], PER_SHARD, PER_SHARD)


# Values that replace those of a record under some keys, and the problems that are expected.
MISFITS = [
    ({"n": [1.0]}, ["features.n: expected 1 int64, got 1 float32"]),
    ({"n": [1, 2]}, ["features.n: expected 1 int64, got 2 int64"]),
    ({"n": None}, ["features.n: expected 1 int64, got none"]),
    ({"p": [0.5]}, ["features.pair: expected 2 float32, got 1 float32 (stored under `p`)"]),
    ({"kept": []}, ["features.kept: expected values, got an empty list (without the key it would have its default)"]),
    ({"kept": [1, 2]}, ["features.kept: expected 1 int64, got 2 int64"]),
    ({"words": [3]}, ["features.words: expected any number of string, got 1 int64"]),
    ({"steps": [1, 2, 3]}, ["features.steps: expected a multiple of 2 int64, got 3 int64"]),
    ({"l": [1, 1]}, ["features.lists: expected 2 items, as `l` says, got 3"]),
    ({"i": [4, 5]}, ["features.points: expected 1 indices under `i`, one for each value, got 2"]),
    ({"n": None, "p": [b"a", b"b"]}, ["features.n: expected 1 int64, got none", "features.pair: expected 2 float32, got 2 string (stored under `p`)"]),
]  # fmt: skip


def test_what_does_not_fit_is_named_by_feature(data):
    path, expected = shard(data, 3), []
    for number, (values, found) in enumerate(MISFITS):
        place = replace(path, 2 * number, changed(records(path)[2 * number].data, **values))
        expected += [f"{place}: {one}" for one in found]
    assert told(SCHEMA, data) == expected


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
    assert told(SCHEMA, data) == [f"{place}: expected an Example, got 17 bytes that do not parse"]


def test_faults_of_many_records_are_told_in_order(data, monkeypatch):
    monkeypatch.setattr(corrupt_records, "_RECORDS_AT_ONCE", 4)
    path = shard(data, 2)
    places = []
    for number in (0, 5, 6, 24):
        places.append(replace(path, number, changed(records(path)[number].data, n=[0.5])))
    flip(path, records(path)[9].stop + framing.HEADER_BYTES)  # in the data of record 10
    where = f"{path}: record 10"
    assert [line.partition(" at byte")[0] for line in told(SCHEMA, data)] == [
        *(place.partition(" at byte")[0] for place in places[:3]),
        where,
        places[3].partition(" at byte")[0],
    ]
    (file,) = StoredDataset.of(path, SCHEMA).checked_files()
    checked = check_file(file, SCHEMA)
    assert (checked.records, [fault.rows for fault in checked.corrupt]) == (20, [1] * 5)
    assert len(check_file(file, SCHEMA, most=2).corrupt) == 2


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_what_is_cut_is_named_and_counted(tmp_path, compression):
    rs.write(map(row, range(ROWS)), SCHEMA, tmp_path / "data", shards=4, compression=compression)
    path = shard(tmp_path / "data", 1)
    found = records(path)
    store(path, [one.data for one in found[:20]], compression)  # between records
    (file,) = StoredDataset.of(path, SCHEMA).checked_files()
    checked = check_file(file, SCHEMA)
    (fault,) = checked.corrupt
    assert (fault.record, fault.offset, fault.rows, fault.ends) == (20, found[20].offset, 5, True)
    place = f"{path}: record 20 at byte {found[20].offset:,}"
    assert str(fault.problems[0]) == (
        f"{place}: expected 25 records, as the manifest says, got the end of the file"
    )
    store(path, [one.data for one in [*found, *found]], compression)
    (fault,) = check_file(file, SCHEMA).corrupt
    assert (fault.record, fault.rows) == (25, 0)
    assert str(fault.problems[0]).endswith(
        ": expected the end of the file, after 25 records, as the manifest says, got another record"
    )


def test_a_file_without_a_manifest_is_checked_for_what_it_is(data):
    (data / "manifest.json").unlink()
    path = shard(data, 1)
    path.write_bytes(path.read_bytes()[:-1])
    checked = check_file(File(path=path), SCHEMA)
    (fault,) = checked.corrupt
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
        ({"v": [[1], [2, 3]]}, "sequence.v[1]: expected 1 int64, got 2 int64"),
        ({"v": [[1], [2], [0.5]]}, "sequence.v[2]: expected 1 int64, got 1 float32"),
        ({"v": None}, "sequence.v: expected a list of steps, got none (`missing: empty` accepts it)"),
        ({"words": [[b"a"], [1]]}, "sequence.words[1]: expected any number of string, got 1 int64"),
    ],
)
def test_steps_that_do_not_fit_are_named(tmp_path, lists, expected):
    rs.write(map(step_row, range(9)), STEPS, tmp_path / "data")
    path = shard(tmp_path / "data", 0)
    place = replace(path, 5, sequence(records(path)[5].data, **lists))
    assert told(STEPS, tmp_path / "data") == [f"{place}: {expected}"]


def test_a_context_that_does_not_fit_is_named(tmp_path):
    rs.write(map(step_row, range(9)), STEPS, tmp_path / "data")
    path = shard(tmp_path / "data", 0)
    example = tf.train.SequenceExample.FromString(records(path)[5].data)
    del example.context.feature["n"]
    place = replace(path, 5, example.SerializeToString())
    assert told(STEPS, tmp_path / "data") == [f"{place}: context.n: expected 1 int64, got none"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"n": [1] * 9}, "features.n: expected 10 int64 in a block of 10 rows, got 9"),
        ({"n": [0.5] * 10}, "features.n: expected int64, got 10 float32"),
        ({"words": [b"w"]}, "features.words: expected 10 string in a block of 10 rows, got 1"),
        ({"words/lengths": [3, 3]}, "features.words: expected lengths of 10 rows, got 2"),
        ({"/rows": None}, "/rows: expected a block of rows, got a record without"),
    ],
)
def test_blocks_that_do_not_fit_are_named(tmp_path, values, expected):
    rs.write(map(row, range(ROWS)), SCHEMA, tmp_path / "data", layout={"blocks": 10}, key="n")
    path = shard(tmp_path / "data", 0)
    words = tf.train.Example.FromString(records(path)[3].data).features.feature["words"].bytes_list.value
    place = replace(path, 3, changed(records(path)[3].data, **values))
    expected = expected.replace("expected 10 string", f"expected {len(words)} string")
    (line,) = told(SCHEMA, tmp_path / "data")
    assert line.replace('"/rows"', "/rows") == f"{place}: {expected}"


@pytest.mark.parametrize("kind", ["gzip", "zlib"])
def test_no_reader_ends_quietly_where_streams_are_joined(tmp_path, kind):
    """In a file that `cat` made: who counts rows, and who reads them, refuses it, and names what reads on."""
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    compress, suffix = {"gzip": (gzip.compress, "gz"), "zlib": (zlib.compress, "zlib")}[kind]
    parts = [
        b"".join(framed(schema.encode({"id": n})) for n in some) for some in (range(5), (), range(5, 12))
    ]
    path, saved = tmp_path / f"rows.tfrecord.{suffix}", tmp_path / "saved"
    path.write_bytes(b"".join(map(compress, parts)))
    (tmp_path / "schema.yaml").write_text(schema.dump())
    got = JOINED[kind == "gzip"]
    for read in (lambda: list(rs.read(path, schema, batch=2)), lambda: rs.scan(path).count_rows()):
        with pytest.raises(rs.RecordError, match=rf"got {got} \(`recordspec repair` reads on\)$"):
            read()
    for command in (
        ["count"],
        ["verify"],
        ["check", "--schema", tmp_path / "schema.yaml"],
        ["adopt", "--schema", tmp_path / "schema.yaml"],
    ):
        done = run_here(*command, path)
        assert done.returncode != 0, command
        assert got in done.stdout + done.stderr
    assert run_here("repair", path, "--out", saved).returncode == 0
    read_on = rs.read(saved / path.name, schema, batch=5)
    assert [n for batch in read_on for n in batch["id"].numpy().tolist()] == list(range(12))
