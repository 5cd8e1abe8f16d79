"""TFRecord files as rows: cut anywhere, of any kind, by other specs; with values of `schema.stored_values`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_parts import MANY, NUMBER, parts_of, records, rows_in, rows_of, schema

import recordspec as rs
from instances import CASES
from recordspec._tf import tf
from recordspec.writing.sources import base
from recordspec.writing.sources.tfrecord import TFRecords


@given(sizes=st.lists(st.integers(0, 40), max_size=20), size=st.integers(1, 120))
@MANY
def test_a_tfrecord_file_cut_anywhere_has_the_same_records(tmp_path_factory, sizes, size):
    path = tmp_path_factory.mktemp("tfrecord") / "old.tfrecord"
    one = schema("t: string")
    rows = [bytes([index]) * length for index, length in enumerate(sizes)]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(one.encode({"t": row}))
    source = TFRecords(files="old.tfrecord").open(path.parent)
    (whole,) = parts_of(source, one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        parts = parts_of(source, one)
        assert [row["t"] for row in rows_of(source, one)] == rows
        counts = [rows_in(part.batches(one, ())) for part in parts]
    assert all(counts[1:])
    places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
    assert places == [whole.place(row) for row in range(len(rows))]


def test_a_broken_record_of_a_later_part_keeps_its_number(tmp_path, small):
    path = tmp_path / "old.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(5):
            writer.write(NUMBER.encode({"n": number}))
    data = bytearray(path.read_bytes())
    size = len(data) // 5
    data[3 * size + 14] ^= 1
    path.write_bytes(data)
    source = TFRecords(files="old.tfrecord").open(tmp_path)
    assert len(parts_of(source, NUMBER)) == 5
    with pytest.raises(rs.RecordError) as caught:
        records(source, NUMBER)
    assert str(caught.value) == (
        f"{path}: record 3 at byte {3 * size}: expected data that matches its CRC, got other bytes"
    )


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not case.tolerance],
    ids=str,
)
def test_records_of_every_kind_are_rows_again(tmp_path, case):
    rs.write(case.rows, case.schema, tmp_path / "a", compression="gzip")
    rs.write(TFRecords(files="a").open(tmp_path), case.schema, tmp_path / "b", compression="gzip")
    names = [shard.file for shard in rs.Manifest.load(tmp_path / "a").shards("train")]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_records_are_written_with_another_spec(tmp_path):
    path = tmp_path / "old.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for value in ([3], []):
            made = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            writer.write(
                tf.train.Example(features=tf.train.Features(feature={"old/n": made})).SerializeToString()
            )
    (tmp_path / "old.yaml").write_text("schema: old\nfeatures: {n: {dtype: int64, default: 0, key: old/n}}")
    new = rs.Schema.loads("schema: new\nfeatures: {n: {dtype: float32, default: -1.0}}")
    rs.write(TFRecords(files="old.tfrecord", schema="old.yaml").open(tmp_path), new, tmp_path / "data")
    assert [float(row["n"]) for row in rs.read(tmp_path / "data", new)] == [3.0, -1.0]
    plain = rs.Schema.loads("schema: old\nfeatures: {n: {dtype: int64, key: old/n}}")
    with pytest.raises(rs.RecordError) as caught:
        rs.write(TFRecords(files="old.tfrecord").open(tmp_path), plain, tmp_path / "other")
    assert str(caught.value).startswith(
        f"{path}: record 1 at byte 34: features.n: expected int64, got nothing"
    )


def store(path, **features: tf.train.Feature) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def ints(*values: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


@pytest.mark.parametrize(
    ("lengths", "problem"),
    [
        ((1, 1), "expected 2 items, as `x/row_lengths` says, got 3"),
        ((1, 5), "expected 6 items, as `x/row_lengths` says, got 3"),
        ((-1, 4), "expected lengths under `x/row_lengths`, got -1"),
        ((), "expected 0 items, as `x/row_lengths` says, got 3"),
    ],
)
def test_row_lengths_that_do_not_add_up_are_refused(tmp_path, lengths, problem):
    store(tmp_path / "old", x=ints(1, 2, 3), **{"x/row_lengths": ints(*lengths)})
    one = schema("x: {kind: ragged, dtype: int64, shape: [null, null]}")
    with pytest.raises(rs.RecordError, match=rf"record 0 at byte 0: features.x: {problem}\n"):
        rs.write(TFRecords(files="old").open(tmp_path), one, tmp_path / "data")


@pytest.mark.parametrize(
    ("stored", "dtype"),
    [
        (ints(300), "uint8"),
        (tf.train.Feature(float_list=tf.train.FloatList(value=[1.75])), "int64"),
    ],
)
def test_stored_numbers_that_a_tensor_cannot_hold_are_refused(tmp_path, stored, dtype):
    store(tmp_path / "old", x=stored)
    one = schema(f"x: {{kind: tensor, dtype: {dtype}}}")
    with pytest.raises(rs.RecordError, match=r"record 0 at byte 0: features\.x: expected"):
        rs.write(TFRecords(files="old").open(tmp_path), one, tmp_path / "data")
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(rs.read(tmp_path / "old", one, batch=1))


def test_the_schema_beside_the_files_tells_what_an_index_means(tmp_path):
    """A dataset with the names in another order, whatever it stores; a feature under the key of an old one."""
    old = rs.Schema.loads(
        "schema: s\nfeatures:\n  side: {kind: label, names: [left, right, up]}\n  n: int64\n"
    )
    rows = [{"side": side, "n": n} for n, side in enumerate(("up", "left", "right"))]
    for name in ("old", "other"):
        rs.write(rows, old, tmp_path / name, shuffle=None, progress=False)
    options = {"shuffle": None, "progress": False, "force": True}
    for encoding in ("index", "float", "name"):
        new = rs.Schema.loads(
            "schema: s\nfeatures:\n"
            f"  side: {{kind: label, names: [up, right, left], encoding: {encoding}}}\n"
            "  number: {dtype: int64, key: n}\n"
        )
        source = TFRecords(files="old").open(tmp_path)
        rs.write(source, new, tmp_path / "new", **options)
        found = rs.open(tmp_path / "new")[:]
        assert (found["side"].tolist(), found["number"].tolist()) == ([0, 2, 1], [0, 1, 2])
    rs.write(TFRecords(files=["old", "other"]).open(tmp_path), old, tmp_path / "both", **options)
    rs.write([{"side": "up", "number": 1}], new, tmp_path / "other", **options)
    with pytest.raises(rs.SpecError) as caught:
        rs.write(TFRecords(files=["old", "other"]).open(tmp_path), new, tmp_path / "new", **options)
    assert "schema: expected one schema of all files, got 2 folders with others, or without one" in str(
        caught.value
    )
