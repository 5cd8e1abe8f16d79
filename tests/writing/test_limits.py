"""Many open files, wrong counts, no rows, strange files; blocks that `store.shards` knows without a manifest."""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import tarfile
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet

import recordspec as rs
from media import image_bytes, photo
from recordspec._tf import tf
from recordspec.schema import row_blocks
from recordspec.schema.encoder import columns_of
from recordspec.schema.row_blocks import block_of_records
from recordspec.store import key_hashes
from recordspec.wire import example, framing, tfrecord
from recordspec.wire.tfrecord import scan
from recordspec.writing.estimate import estimate
from recordspec.writing.sources import base
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.tfrecord import TFRecords
from recordspec.writing.sources.webdataset import WebDataset

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64}")


@pytest.fixture
def few_files():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = len(os.listdir("/proc/self/fd"))  # of tests before, as of servers
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files + 150, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"key": "id", "shuffle": 1}], ids=str)
def test_more_runs_than_files_may_be_open(tmp_path, few_files, monkeypatch, options):
    monkeypatch.setattr(base, "PART_BYTES", 100)
    (tmp_path / "rows.csv").write_text("id\n" + "\n".join(map(str, range(10_000))) + "\n")
    source = Csv(files="rows.csv").open(tmp_path)
    assert len(list(source.parts(SCHEMA, ()))) > 400
    assert rs.write(source, SCHEMA, tmp_path / "data", shards=3, **options).rows("train") == 10_000


@pytest.mark.parametrize("shards", [1, 2])
def test_more_rows_than_expected_are_an_error(tmp_path, shards):
    with (
        pytest.raises(rs.WriteError) as caught,
        rs.ShardedWriter(SCHEMA, tmp_path / "data", shards=shards, expected=2) as writer,
    ):
        writer.write_columns({"id": np.arange(3)}, 3)
    assert str(caught.value) == f"{tmp_path}/data: expected 2 rows, got 3"


NO_ROWS = "has no rows: allow_empty=True, or --allow-empty, builds a dataset without rows"
INT64 = pa.array([], pa.int64())


def no_parquet(folder):
    parquet.write_table(pa.table({"id": INT64}), folder / "rows.parquet")
    return Parquet(files="rows.parquet").open(folder)


def no_records(folder):
    for name in ("a.tfrecord", "b.tfrecord"):
        (folder / name).touch()
    return TFRecords(files="*.tfrecord").open(folder)


def no_lines(folder):
    (folder / "rows.jsonl").write_text("\n\n")
    return Jsonl(files="rows.jsonl").open(folder)


def no_cells(folder):
    (folder / "rows.csv").write_text("id\n")
    return Csv(files="rows.csv").open(folder)


WITHOUT_ROWS = {
    "list": (lambda _: [], "rows"),
    "generator": (lambda _: iter(()), "rows"),
    "no arrays": (lambda _: {}, "rows"),
    "arrays": (lambda _: {"id": np.zeros(0, np.int64)}, "rows"),
    "frame": (lambda _: pd.DataFrame({"id": np.zeros(0, np.int64)}), "rows"),
    "polars": (lambda _: pl.DataFrame({"id": []}, schema={"id": pl.Int64}), "rows"),
    "table": (lambda _: pa.table({"id": INT64}), "rows"),
    "reader": (lambda _: pa.table({"id": INT64}).to_reader(), "rows"),
    "tf.data": (lambda _: tf.data.Dataset.from_tensor_slices({"id": np.zeros(0, np.int64)}), "rows"),
    "csv": (no_cells, "{folder}/rows.csv"),
    "jsonl": (no_lines, "{folder}/rows.jsonl"),
    "parquet": (no_parquet, "{folder}/rows.parquet"),
    "tfrecord": (no_records, "{folder}/a.tfrecord and 1 more"),
}


@pytest.mark.parametrize("sort", WITHOUT_ROWS)
def test_a_source_without_rows_is_an_error(tmp_path, sort):
    made, where = WITHOUT_ROWS[sort]
    with pytest.raises(rs.RecordError) as caught:
        rs.write(made(tmp_path), SCHEMA, tmp_path / "data")
    assert str(caught.value) == f"`{where.format(folder=tmp_path)}` {NO_ROWS}"
    assert not (tmp_path / "data").exists()
    manifest = rs.write(made(tmp_path), SCHEMA, tmp_path / "data", split={"a": 1, "b": 1}, allow_empty=True)
    assert {split: len(manifest.shards(split)) for split in manifest.splits} == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    "how",
    [pytest.param({"jobs": 2}, marks=pytest.mark.slow), {"limit": 5}, {"invalid": "quarantine"}],
    ids=str,
)
def test_a_source_without_rows_is_an_error_however_it_is_built(tmp_path, how):
    with pytest.raises(rs.RecordError) as caught:
        rs.write(no_cells(tmp_path), SCHEMA, tmp_path / "data", **how)
    assert str(caught.value) == f"`{tmp_path}/rows.csv` {NO_ROWS}"
    assert rs.write(no_cells(tmp_path), SCHEMA, tmp_path / "data", allow_empty=True, **how).rows("train") == 0


def test_a_plan_refuses_what_the_build_refuses(tmp_path):
    with pytest.raises(rs.RecordError) as caught:
        estimate(no_cells(tmp_path), SCHEMA, tmp_path / "data")
    assert str(caught.value) == f"`{tmp_path}/rows.csv` {NO_ROWS}"
    assert estimate(no_cells(tmp_path), SCHEMA, tmp_path / "data", allow_empty=True).rows == 0


def test_a_writer_that_got_no_rows_publishes_nothing(tmp_path):
    with pytest.raises(rs.RecordError) as caught, rs.ShardedWriter(SCHEMA, tmp_path / "data"):
        pass
    assert str(caught.value) == f"`{tmp_path}/data` {NO_ROWS}"
    assert os.listdir(tmp_path) == []
    with rs.ShardedWriter(SCHEMA, tmp_path / "data", allow_empty=True) as writer:
        pass
    assert writer.manifest.rows("train") == 0


@pytest.mark.parametrize("how", [{"append": True}, {"force": True}], ids=str)
def test_a_dataset_that_stands_is_kept_where_there_are_no_rows(tmp_path, how):
    rs.write([{"id": 1}], SCHEMA, tmp_path / "data")
    with pytest.raises(rs.RecordError) as caught:
        rs.write(no_cells(tmp_path), SCHEMA, tmp_path / "data", **how)
    assert str(caught.value) == f"`{tmp_path}/rows.csv` {NO_ROWS}"
    assert rs.Manifest.load(tmp_path / "data").rows("train") == 1


def test_rows_that_are_all_invalid_are_an_error_in_any_case(tmp_path):
    with pytest.raises(rs.RecordError) as caught:
        rs.write([{"id": "x"}], SCHEMA, tmp_path / "data", invalid="quarantine", allow_empty=True)
    last = "the last is row 0: features.id: expected int64, got str 'x'"
    assert str(caught.value) == f"expected at least one valid row, got none ({last})"
    assert not (tmp_path / "data").exists()


def test_a_dataset_without_rows_is_resharded(tmp_path):
    rs.write([], SCHEMA, tmp_path / "data", allow_empty=True)
    assert rs.reshard(tmp_path / "data", tmp_path / "new", shards=2).rows("train") == 0


def test_rows_are_added_to_a_dataset_without_any(tmp_path):
    rs.write([], SCHEMA, tmp_path / "data", key="id", allow_empty=True)
    manifest = rs.write([{"id": 1}], SCHEMA, tmp_path / "data", key="id", append=True)
    assert [shard.rows for shard in manifest.shards("train")] == [0, 1]


def test_keys_that_were_cut_are_no_keys(tmp_path):
    rs.write({"id": np.arange(10)}, SCHEMA, tmp_path / "data", key="id")
    keys = tmp_path / "data/keys.bin"
    keys.write_bytes(keys.read_bytes()[:40])
    with pytest.raises(rs.StoreError) as caught:
        rs.write([{"id": 1}], SCHEMA, tmp_path / "data", key="id", append=True)
    expected = "key: expected the keys of 10 rows in `keys.bin`, got 2"
    assert str(caught.value) == f"{tmp_path}/data: {expected}"
    manifest = rs.reshard(tmp_path / "data", tmp_path / "new")
    assert manifest.keys_sha256 is None
    assert not (tmp_path / "new/keys.bin").exists()


def test_known_keys_are_looked_at_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(key_hashes, "_AT_ONCE", 3)
    rs.write({"id": np.arange(10)}, SCHEMA, tmp_path / "data", key="id", shards=2)
    with pytest.raises(rs.RecordError) as caught:
        rs.write([{"id": 8}], SCHEMA, tmp_path / "data", key="id", append=True)
    old = f"{tmp_path}/data/train-00001-of-00002.tfrecord: row 3"
    assert str(caught.value) == f"row 0: id: expected a key that no other row has, got that of {old}"


def test_a_file_that_is_none_of_the_dataset_is_not_resharded_with_it(tmp_path):
    rs.write({"id": np.arange(10)}, SCHEMA, tmp_path / "data")
    path = tmp_path / "data/foreign.tfrecord"
    shutil.copy(tmp_path / "data/train-00000-of-00001.tfrecord", path)
    with pytest.raises(rs.StoreError) as caught:
        rs.reshard(f"{tmp_path}/data/*.tfrecord", tmp_path / "new")
    assert str(caught.value) == f"`{path}` is not listed by the manifest beside it"


PAIR = "{dtype: int64, shape: [2]}"


@pytest.mark.parametrize(
    ("feature", "values", "message"),
    [
        (PAIR, [[1, 2, 3], [4]], "expected 2 int64, got 3 int64"),
        (PAIR, [[1, 2], []], "expected 2 int64, got none"),
        (PAIR, [[1.5, 2.5]], "expected 2 int64, got 2 float32"),
        ("{dtype: float32, shape: [2]}", [[1, 2]], "expected 2 float32, got 2 int64"),
        ("{dtype: string}", [[1]], "expected 1 string, got 1 int64"),
        ("{dtype: int64, shape: [2], default: [7, 8]}", [[], [1]], "expected 2 int64, got 1 int64"),
        ("{kind: var_len, dtype: int64}", [[], [1.0]], "expected any number of int64, got 1 float32"),
    ],
)
def test_records_that_are_none_of_the_schema_make_no_block(tmp_path, feature, values, message):
    """Laid end to end, their values would pass for those of other rows."""
    with tf.io.TFRecordWriter(str(tmp_path / "old.tfrecord")) as writer:
        for row in values:
            kind = tf.train.Feature()
            if row:
                name = "float_list" if isinstance(row[0], float) else "int64_list"
                getattr(kind, name).value.extend(row)
            features = tf.train.Features(feature={"x": kind})
            writer.write(tf.train.Example(features=features).SerializeToString())
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{x: {feature}}}")
    with pytest.raises(rs.RecordError) as caught:
        rs.reshard(tmp_path / "old.tfrecord", tmp_path / "new", schema=schema, layout={"blocks": 4})
    bad = next(record for record in scan(tmp_path / "old.tfrecord") if not fits(schema, record.data))
    where = f"{tmp_path}/old.tfrecord: record {bad.number} at byte {bad.offset}"
    assert str(caught.value) == f"{where}: features.x: {message}"


def fits(schema: rs.Schema, record: bytes) -> bool:
    try:
        block_of_records(schema, [record])
    except rs.RecordError:
        return False
    return True


AT_MOST = "a record of at most 2,147,483,647 bytes, the most that TensorFlow reads"
LARGE = rs.Schema.loads("schema: s\nfeatures:\n  id: int64\n  parts: {kind: var_len, dtype: string}")
# one object many times: of 2 GiB nothing is allocated before they are refused
TOO_LARGE = {"id": 1, "parts": [bytes(1 << 20)] * 2048}
REFUSED = f"expected {AT_MOST}, got 2,147,483,649 bytes (`parts` has 2,147,483,648 of them)"


def test_a_row_of_2_gib_is_refused_before_it_is_made(tmp_path):
    tracemalloc.start()
    with pytest.raises(rs.RecordError) as caught:
        rs.write([{"id": 0, "parts": []}, TOO_LARGE], LARGE, tmp_path / "data")
    assert tracemalloc.get_traced_memory()[1] < 500 << 20
    tracemalloc.stop()
    assert str(caught.value) == f"row 1: {REFUSED}"
    with (
        pytest.raises(rs.RecordError) as caught,
        rs.ShardedWriter(LARGE, tmp_path / "data") as writer,
    ):
        writer.write(TOO_LARGE)
    assert str(caught.value) == f"row 0: {REFUSED}"
    assert list(tmp_path.iterdir()) == []


def test_a_row_of_2_gib_is_set_aside(tmp_path):
    rows = [{"id": 0, "parts": []}, TOO_LARGE, {"id": 2, "parts": ["x"]}]
    manifest = rs.write(rows, LARGE, tmp_path / "data", invalid="quarantine")
    assert (manifest.rows("train"), manifest.rejected) == (2, 1)
    (line,) = map(json.loads, (tmp_path / "data/rejects.jsonl").read_text().splitlines())
    assert line == {"row": 1, "place": "row 1", "problems": [REFUSED]}


TEXTS = rs.Schema.loads("schema: s\nfeatures: {n: int64, text: string}")
LENGTHS = [1, 3000, 2]
TABLE = {"n": [0, 1, 2], "text": ["x" * length for length in LENGTHS]}


def tar_of(path):
    with tarfile.open(path, "w:gz") as archive:
        for number, text in zip(*TABLE.values(), strict=True):
            for extension, data in (("n", str(number).encode()), ("text", text.encode())):
                info = tarfile.TarInfo(f"{number}.{extension}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


FILES = {
    "csv": (Csv, lambda path: pa.csv.write_csv(pa.table(TABLE), path), "{path}:3: ", "row"),
    "jsonl": (Jsonl, lambda path: pd.DataFrame(TABLE).to_json(path, orient="records", lines=True), "{path}:2: ", "line"),
    "parquet": (Parquet, lambda path: parquet.write_table(pa.table(TABLE), path, write_statistics=False), "{path}: row 1: ", "row"),
    "tar": (WebDataset, tar_of, "{path}: 1: ", "row"),
    "tfrecord": (
        TFRecords,
        lambda path: path.write_bytes(b"".join(map(framing.framed, TEXTS.encode_batch(TABLE, 3)))),
        "{path}: record 1 at byte 45: ",
        "row",
    ),
}  # fmt: skip


@pytest.mark.parametrize("sort", FILES)
def test_a_row_of_a_file_has_one_bound_in_every_source(tmp_path, monkeypatch, sort):
    monkeypatch.setattr("recordspec.schema.values.LONGEST_ROW", 2000)
    form, make, place, what = FILES[sort]
    path = tmp_path / "rows"
    make(path)
    source = form(**{form.SHORT_FORM: "rows"}).open(tmp_path)
    with pytest.raises(rs.RecordError) as caught:
        rs.write(source, TEXTS, tmp_path / "data")
    assert str(caught.value).startswith(place.format(path=path))
    assert f"expected a {what} of at most 2,000 bytes, got 3,0" in str(caught.value)
    manifest = rs.write(source, TEXTS, tmp_path / "data", invalid="quarantine")
    assert (manifest.rows("train"), manifest.rejected) == (2, 1)


def test_cells_of_parquet_that_are_too_long_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("recordspec.schema.values.LONGEST_ROW", 2000)
    long = pa.table({"n": [0, 1], "text": ["x" * 3000] * 2})
    parquet.write_table(long, tmp_path / "rows", use_dictionary=False, write_statistics=False)
    with pytest.raises(rs.RecordError) as caught:
        rs.write(Parquet(files="rows").open(tmp_path), TEXTS, tmp_path / "data", invalid="quarantine")
    expected = "expected a cell of `text` of at most 2,000 bytes, got 3,0"
    assert str(caught.value).startswith(f"{tmp_path}/rows: row group 0: {expected}")


def test_the_file_of_an_image_has_the_bound_of_a_row(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_bytes(image_bytes(photo(), "png"))
    monkeypatch.setattr("recordspec.schema.values.LONGEST_ROW", 100)
    schema = rs.Schema.loads("schema: s\nfeatures: {a: image}")
    with pytest.raises(
        rs.RecordError, match=r"expected a file of at most 100 bytes at .*a\.png, got a larger"
    ):
        rs.write([{"a": str(tmp_path / "a.png")}], schema, tmp_path / "data")


@pytest.mark.parametrize(
    ("text", "row", "size"),
    [
        ("features: {x: {dtype: float32, shape: [3]}}", {"x": [1, 2, 3]}, 12),
        ("features: {x: {kind: var_len, dtype: int64}}", {"x": [1, 2, 3]}, 3),
        ("features: {x: {dtype: string, default: ''}, y: {dtype: string, default: ''}}", {"x": "abc"}, 3),
        ("record: sequence_example\nsequence: {x: {kind: var_len, dtype: string}}", {"x": [["ab"], ["c", ""]]}, 3),
    ],
)  # fmt: skip
def test_the_least_size_of_a_record_is_that_of_its_values(monkeypatch, text, row, size):
    schema = rs.Schema.loads(f"schema: s\n{text}")
    empty = {name: [] for name, feature in schema.names.items() if feature.kind == "var_len"}
    columns = columns_of(schema, [empty or row, row] if empty else [row])
    rows = 2 if empty else 1
    monkeypatch.setattr(example, "LARGEST_RECORD", size - 1)
    with pytest.raises(rs.RecordError) as caught:
        schema.encode_batch(columns, rows)
    hint = f"(`x` has {size} of them)"
    assert str(caught.value) == f"row {rows - 1}: expected {AT_MOST}, got {size} bytes {hint}"
    # with what is around them
    monkeypatch.setattr(example, "LARGEST_RECORD", size)
    with pytest.raises(rs.RecordError) as caught:
        schema.encode_batch(columns, rows)
    monkeypatch.undo()
    whole = next(len(record) for record in schema.encode_batch(columns, rows) if len(record) > size)
    assert str(caught.value).endswith(f"expected {AT_MOST}, got {whole} bytes")


@pytest.mark.parametrize("options", [{}, {"shuffle": 1}], ids=str)
def test_a_block_that_is_too_large_is_refused_with_its_rows(tmp_path, monkeypatch, options):
    for module in (example, row_blocks):
        monkeypatch.setattr(module, "LARGEST_RECORD", 1000)
    schema = rs.Schema.loads("schema: s\nfeatures: {x: string}")
    rows = [{"x": "a"}] * 10 + [{"x": "b" * 100}] * 20
    layout = {"layout": {"blocks": 12}, "shards": 1}
    with pytest.raises(rs.RecordError) as caught:
        rs.write(rows[10:], schema, tmp_path / "data", **layout, **options)
    expected = f"expected {AT_MOST}, got 1,201 bytes in 12 rows (blocks of at most 9 rows of this size fit)"
    assert str(caught.value) == f"train-00000-of-00001.tfrecord: rows 0 to 11: {expected}"
    if not options:
        with pytest.raises(rs.RecordError) as caught:
            rs.write(rows, schema, tmp_path / "data", **layout | {"layout": {"blocks": 10}})
        # with what is around the values
        message = f"train-00000-of-00001.tfrecord: rows 10 to 19: expected {AT_MOST}, got 1,"
        assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []
    assert rs.write(rows[10:], schema, tmp_path / "data", layout={"blocks": 6}).rows("train") == 20


def test_a_record_of_2_gib_is_not_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(tfrecord, "LARGEST_RECORD", 5 << 20)
    schema = rs.Schema.loads("schema: s\nfeatures: {x: string}")
    whole = [framing.framed(schema.encode({"x": "a" * size})) for size in (1, 6 << 20)]
    path = tmp_path / "old.tfrecord"
    path.write_bytes(b"".join(whole))
    size = len(whole[1]) - 16
    message = f"{path}: record 1 at byte {len(whole[0])}: expected {AT_MOST}, got {size:,} bytes"
    source = TFRecords(files=path.name)
    for use in (
        lambda: rs.reshard(path, tmp_path / "new"),
        lambda: rs.write(source.open(tmp_path), schema, tmp_path / "new"),
    ):
        with pytest.raises(rs.RecordError) as caught:
            use()
        assert str(caught.value) == message
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


LISTS = "features: {x: {kind: ragged, dtype: int64, shape: [null, null], row_lengths: [l]}}"
DEEP = "features: {x: {kind: ragged, dtype: int64, shape: [null, null, null], row_lengths: [k, l]}}"
POINTS = "features: {x: {kind: sparse, dtype: int64, size: 9, index_keys: [i]}}"


@pytest.mark.parametrize(
    ("text", "stored", "message"),
    [
        (LISTS, {"x": [1, 2, 3], "l": [2, 2]}, "features.x: expected 4 items, as `l` says, got 3"),
        (LISTS, {"x": [1, 2, 3], "l": [4, -1]}, "features.x: expected lengths under `l`, got -1"),
        (LISTS, {"x": [1]}, "features.x: expected 0 items, as `l` says, got 1"),
        (DEEP, {"x": [1, 2], "k": [2], "l": [2]}, "features.x: expected 2 items, as `k` says, got 1"),
        (
            POINTS,
            {"x": [1, 2], "i": [3]},
            "features.x: expected 2 indices under `i`, one for each value, got 1",
        ),
    ],
)
def test_a_record_that_contradicts_itself_is_refused_with_its_place(tmp_path, text, stored, message):
    """As a row of a block, its lengths would take values of the next."""
    schema = rs.Schema.loads(f"schema: s\n{text}")
    wrong = tf.train.Example()
    for key, values in stored.items():
        wrong.features.feature[key].int64_list.value.extend(values)
    good = schema.encode({"x": ([1], [5]) if "sparse" in text else [[[1]]] if text == DEEP else [[1]]})
    path = tmp_path / "old.tfrecord"
    path.write_bytes(b"".join(map(framing.framed, [good, good, wrong.SerializeToString(), good])))
    where = f"{path}: record 2 at byte {2 * len(framing.framed(good))}"
    with pytest.raises(rs.RecordError) as caught:
        rs.reshard(path, tmp_path / "new", schema=schema, layout={"blocks": 4})
    assert str(caught.value) == f"{where}: {message}"
    with pytest.raises(rs.RecordError) as caught:
        rs.write(TFRecords(files=path.name).open(tmp_path), schema, tmp_path / "new", layout={"blocks": 4})
    assert str(caught.value) == f"{where}: {message}"
    with pytest.raises(rs.RecordError) as caught:
        block_of_records(schema, [good, wrong.SerializeToString()])
    assert str(caught.value) == message
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_blocks_without_a_manifest_are_blocks_still(tmp_path):
    rs.write({"id": np.arange(10)}, SCHEMA, tmp_path / "data", layout={"blocks": 4}, shards=1)
    shard = tmp_path / "data/train-00000-of-00001.tfrecord"
    (tmp_path / "data/manifest.json").unlink()
    with pytest.raises(rs.SpecError, match="schema: expected a schema to make blocks by, got none"):
        rs.reshard(shard, tmp_path / "rows", layout="rows")
    made = rs.reshard(shard, tmp_path / "rows", layout="rows", schema=SCHEMA)
    assert (made.rows("train"), made.block) == (10, None)
    assert rs.reshard(shard, tmp_path / "same", schema=SCHEMA).block == 4
    assert (tmp_path / "same" / shard.name).read_bytes() == shard.read_bytes()
    with pytest.raises(rs.SpecError) as caught:
        rs.write(TFRecords(files=str(shard)).open(tmp_path), SCHEMA, tmp_path / "new")
    hint = "(`recordspec reshard FILES FOLDER --blocks 0` writes one row per record)"
    assert str(caught.value) == f"files: expected one row per record, got blocks of many rows {hint}"
    rows = tmp_path / "rows" / shard.name
    (tmp_path / "rows/manifest.json").unlink()
    with pytest.raises(rs.StoreError) as caught:
        rs.reshard([shard, rows], tmp_path / "new", schema=SCHEMA)
    assert str(caught.value) == (
        f"{rows}: expected blocks of many rows, as {shard} has, got records of one row"
    )


def test_a_block_that_cannot_be_taken_apart_is_named_with_its_place(tmp_path):
    rs.write({"id": np.arange(10)}, SCHEMA, tmp_path / "data", layout={"blocks": 4}, shards=1)
    shard = tmp_path / "data/train-00000-of-00001.tfrecord"
    (tmp_path / "data/manifest.json").unlink()
    for features, message in [
        ("{id: {kind: var_len, dtype: int64}}", "features.id: expected lengths of 4 rows, got 0"),
        ("{no: {dtype: int64, default: 1}}", "features.no: expected lengths of 4 rows, got 0"),
        ("{no: {dtype: int64, shape: [0]}}", "expected keys of the schema in a block, got `id`"),
    ]:
        other = rs.Schema.loads(f"schema: s\nfeatures: {features}")
        with pytest.raises(rs.RecordError) as caught:
            rs.reshard(shard, tmp_path / "rows", schema=other, layout="rows")
        assert str(caught.value) == f"{shard}: record 0 at byte 0: {message}"
