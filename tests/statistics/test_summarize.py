"""The statistics of `statistics.summary`: of real data, of blocks, and of adversarial data."""

from __future__ import annotations

import json

import numpy as np
import pytest

import recordspec as rs
from examples import example, file_of
from labelled_rows import LABELLED, labelled, only
from recordspec.errors import StoreError
from recordspec.statistics import profile
from recordspec.statistics.formatting import of_values
from recordspec.statistics.stats import stats
from recordspec.wire.framing import framed
from shell import run_here as run
from third_party_data import DATA, needs_data


@needs_data
def test_what_is_missing_in_the_taxi_trips():
    split, features = only(stats(sorted((DATA / "taxi").glob("*.gz"))))
    assert (split.split, split.files, split.records, split.rows) == ("trips", 2, 15_000, 15_000)
    assert split.copies.value == split.broken == 0
    assert features["pickup_census_tract"].warnings == (
        "has no value in any of 15,000 records: its type is unknown",
    )
    company = features["company"]
    assert (company.records, company.no_kind, company.missing, company.empty) == (9860, 5140, 0, 0)
    assert company.common.top[0] == ("Taxi Affiliation Services", 5176)
    assert features["trip_start_month"].classes.counts[0] == (10, 1353)
    fare = features["fare"].numbers
    assert (fare.count, fare.zeros, fare.nans) == (15_000, 26, 0)
    assert fare.mean == pytest.approx(11.7688353)


@needs_data
def test_the_figures_of_mnist_and_of_sequences():
    _, features = only(stats(DATA / "mnist/mnist.tfrecord"))
    pixels = features["image_floats"]
    assert (pixels.lengths.min, pixels.lengths.max) == (784, 784)
    assert (pixels.numbers.min, pixels.numbers.max, pixels.numbers.count) == (-0.5, 0.5, 784_000)
    assert pixels.numbers.rank_error < 0.013
    assert sum(pixels.numbers.histogram.counts) == 784_000
    assert len(features["image_class"].classes.counts) == 10
    assert not features["image_class"].order.unshuffled
    split, features = only(stats(DATA / "sequence/data-00000-of-00001.tfrecord.gz"))
    assert [(one.section, one.feature, one.records, one.no_kind) for one in split.features] == [
        ("context", "f", 13_500, 1500),
        ("context", "i", 13_500, 1500),
        ("sequence", "s", 15_000, 0),
    ]
    assert (features["s"].steps.min, features["s"].steps.max, features["s"].kinds) == (
        2,
        2,
        {"bytes": 30_000},
    )


def test_labels_in_order_are_told_with_their_names(tmp_path):
    split, features = only(stats(labelled(tmp_path / "data")))
    kind = features["kind"]
    assert kind.classes.counts == (("cat", 40), ("dog", 20), ("fox", 0))
    assert (kind.order.pairs, kind.order.same) == (59, 58 / 59)
    assert kind.order.by_chance == (40 * 39 + 20 * 19) / (60 * 59)
    assert kind.warnings == (
        "never has 1 of its 3 classes: `fox`",
        "is not shuffled: 98.3% of adjacent records have the same value; shuffled, 54.8% would (build with "
        "`shuffle`, or read with a large shuffle buffer)",
    )
    assert (features["maybe"].records, features["maybe"].missing) == (15, 45)
    assert (features["many"].records, features["many"].empty + features["many"].missing) == (40, 20)
    assert split.warnings == ()


@pytest.mark.parametrize(
    ("often", "warnings"),
    [(19, ()), (20, ("is imbalanced: its most frequent class is 20 times as large as its rarest",))],
)
def test_classes_are_uneven_from_twenty_times_on(tmp_path, often, warnings):
    # in turns, as far as that goes: classes in a row have a warning of their own
    texts = [b"a", b"b", *[b"a"] * (often - 1)]
    path = file_of(tmp_path / "x", [example({"c": ("bytes", [text])}) for text in texts])
    _, features = only(stats(path))
    assert features["c"].classes.imbalance == often
    assert features["c"].warnings == warnings


@pytest.mark.parametrize("schema", ["features", "sequence"])
def test_blocks_hold_what_records_hold(tmp_path, schema):
    if schema == "features":
        labelled(tmp_path / "rows")
        labelled(tmp_path / "blocks", layout={"blocks": 16})
    else:
        spec = rs.Schema.loads(
            "schema: s\nrecord: sequence_example\ncontext: {n: int64}\n"
            "sequence: {x: {kind: var_len, dtype: float32}}"
        )
        rows = [{"n": row, "x": [[1.0] * (row % 3)] * (row % 4)} for row in range(40)]
        rs.write(rows, spec, tmp_path / "rows", shuffle=None)
        rs.write(rows, spec, tmp_path / "blocks", shuffle=None, layout={"blocks": 16})
    in_rows, _ = only(stats(tmp_path / "rows"))
    in_blocks, _ = only(stats(tmp_path / "blocks"))
    assert in_blocks.features == in_rows.features
    assert in_blocks.rows == in_rows.rows > in_blocks.records


def test_blocks_need_their_schema(tmp_path):
    labelled(tmp_path / "data", layout={"blocks": 16})
    (tmp_path / "data/schema.yaml").unlink()
    with pytest.raises(StoreError) as error:
        stats(tmp_path / "data")
    assert str(error.value) == (
        f"`{tmp_path}/data/schema.yaml` does not exist: blocks are unpacked by it, give it with --schema; "
        "see `recordspec docs explanation/blocks`"
    )
    assert stats(tmp_path / "data", rs.Schema.loads(LABELLED)).splits[0].rows == 60
    (tmp_path / "data/manifest.json").unlink()
    assert stats(tmp_path / "data", rs.Schema.loads(LABELLED)).splits[0].rows == 60


def test_other_messages_are_told(tmp_path):
    file_of(tmp_path / "x-00000-of-00002.tfrecord", [example({"n": ("int64", [1])}), b"\x09" + bytes(8)])
    file_of(tmp_path / "x-00001-of-00002.tfrecord", [b"\x10\x01"])
    assert stats(tmp_path).splits[0].warnings == (
        "2 of 3 rows have fields that an Example does not have: if they are other messages, `head` names them",
    )


def test_rows_in_two_splits_and_rows_that_repeat(tmp_path):
    records = [example({"n": ("int64", [number])}) for number in range(50)]
    file_of(tmp_path / "train-00000-of-00001.tfrecord", records + records[:3])
    file_of(tmp_path / "test-00000-of-00001.tfrecord", records[48:])
    report = stats(tmp_path)
    assert report.warnings == (
        "train: 3 rows of 53 are duplicates of an earlier one",
        "2 rows are both in `test` and in `train`",
    )


def test_what_is_odd_about_values(tmp_path):
    nan, inf = float("nan"), float("inf")
    odd = {
        "mixed": [("int64", [1]), ("float32", [0.5]), ("int64", [2])],
        "nan": [("float32", [nan, nan]), ("float32", [inf]), ("float32", [1.0, 0.0])],
        "same": [("bytes", [b"x"])] * 3,
        "constant": [("int64", [7])] * 3,
        "hollow": [("bytes", [])] * 3,
        "forms": [("bytes", [b"\x89PNG\r\n\x1a\n"]), ("bytes", ["é".encode()]), ("bytes", [b""])],
    }
    records = [example({key: values[row] for key, values in odd.items()}) for row in range(3)]
    _, features = only(stats(file_of(tmp_path / "odd", records)))
    assert {name: feature.warnings for name, feature in features.items()} == {
        "mixed": ("has lists of several kinds (1 float32, 2 int64): the summary is of int64",),
        "nan": ("has 2 NaNs among 5 numbers", "has 1 infinite number among 5"),
        "same": ("is always `x`",),
        "constant": ("is always 7",),
        "hollow": ("is empty in all of 3 records",),
        "forms": ("has 1 empty string among 3", "has bytes of several forms: 1 PNG image, 1 text"),
    }
    assert (features["nan"].numbers.mean, features["nan"].numbers.zeros) == (0.5, 1)


def test_classes_that_begin_alike_are_several(tmp_path):
    begin = b"x" * 70
    path = file_of(tmp_path / "x", [example({"s": ("bytes", [begin + end])}) for end in (b"a", b"b")] * 20)
    (feature,) = stats(path).splits[0].features
    assert feature.classes.counts == ((f"{'x' * 64}...", 20), (f"{'x' * 64}...", 20))


def test_what_a_spec_has_and_records_have_not(tmp_path):
    path = file_of(tmp_path / "records", [example({"id": ("int64", [1]), "x": ("int64", [1])})])
    spec = rs.Schema.loads("schema: s\nfeatures: {id: int64, y: {dtype: float32, default: 0}}")
    _, features = only(stats(path, spec))
    assert {name: feature.warnings for name, feature in features.items()} == {
        "id": (),
        "x": ("is not in the schema",),
        "y": ("is in the schema, and in no record",),
    }


def test_images_and_sounds_are_told_by_their_headers(tmp_path):
    spec = rs.Schema.loads(
        "schema: s\nfeatures:\n  image: {kind: image, shape: [2, 3, 1]}\n"
        "  sound: {kind: audio, sample_rate: 8000, channels: 1, encoding: wav}"
    )
    row = {"image": np.zeros((2, 3, 1), np.uint8), "sound": np.zeros((4000, 1), np.int16)}
    rs.write([row] * 5, spec, tmp_path / "data")
    _, features = only(stats(tmp_path / "data"))
    image, sound = features["image"].strings, features["sound"].strings
    assert image.forms == {"PNG image": 5}
    assert (image.looked_at, image.modes) == (5, {"L": 5})
    assert image.measures == {"width": (3, 3, 3), "height": (2, 2, 2)}
    assert sound.forms == {"WAV file": 5}
    assert sound.modes == {"8,000 Hz, 1 channel": 5}
    assert sound.measures == {"seconds": (0.5, 0.5, 0.5)}
    assert of_values(features["sound"]) == "WAV file of 8,044 bytes, seconds 0.5; 1 different"


def test_more_keys_than_are_counted_are_told(tmp_path, monkeypatch):
    """In any parts: those that come first are counted in full."""
    monkeypatch.setattr(profile, "MOST_FEATURES", 10)
    records = [example({f"k{row % 25:02}": ("int64", [row])}) for row in range(100)]
    whole, _ = only(stats(file_of(tmp_path / "whole", records)))
    assert [feature.key for feature in whole.features] == [f"k{row:02}" for row in range(10)]
    assert {feature.records for feature in whole.features} == {4}
    halves = [
        file_of(tmp_path / f"a-0000{half}-of-00002.tfrecord", records[half * 50 :][:50][:: 1 - 2 * half])
        for half in (0, 1)
    ]
    split, _ = only(stats(halves))
    assert split.features == whole.features


@pytest.mark.slow
def test_ten_thousand_keys_take_bounded_memory_and_time(tmp_path):
    records = [
        example({f"key{row * 100 + key}": ("int64", [row]) for key in range(100)}) for row in range(100)
    ]
    split, features = only(stats(file_of(tmp_path / "keys", records)))
    assert len(features) == 1000
    assert split.warnings == ("there are more than 1,000 keys: the others are not counted",)
    assert list(features)[:2] == ["key0", "key1"]


def test_damage_is_told_and_the_rest_counted(tmp_path):
    good = [framed(example({"n": ("int64", [row])})) for row in range(3)]
    flipped = bytearray(good[1])
    flipped[14] ^= 1
    (tmp_path / "bad").write_bytes(
        b"".join([good[0], bytes(flipped), framed(b"\x0b"), good[2], good[0][:20]])
    )
    done = run("stats", tmp_path / "bad", "--json")
    size = len(good[0])
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"{tmp_path}/bad: record 1 at byte {size}: expected data that matches its CRC, got other bytes",
        f"{tmp_path}/bad: record 2 at byte {2 * size}: expected an Example or a SequenceExample, got 1 byte that "
        "does not parse",
        f"{tmp_path}/bad: record 4 at byte {3 * size + 17}: expected {len(good[0]) - 16} bytes of data and its CRC, "
        "got the end of the file",
    ]
    head, feature = map(json.loads, done.stdout.splitlines())
    assert (head["rows"], head["broken"], head["warnings"]) == (2, 3, ["3 records cannot be read"])
    assert feature["records"] == 2


@pytest.mark.parametrize("content", [b"", b"hello there, world", b"\x1f\x8b\x08hello", b"\0" * 100])
def test_what_is_no_tfrecord_is_told(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    done = run("stats", tmp_path / "file")
    assert done.returncode == (1 if content else 0)
    assert bool(done.stderr) == bool(content)
    assert json.loads(done.stdout)["rows"] == 0
