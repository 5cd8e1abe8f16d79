"""`recordspec.read`, with its options (`order.read_options`): every record once, and of known cardinality."""

from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from frames_by_hand import frame, head
from recordspec.order.read_options import Read
from recordspec.order.read_plan import WorkerShard, plan_files
from recordspec.reading.dataset import build
from recordspec.schema.decoder import batch_spec
from recordspec.schema.options import from_python
from recordspec.store.dataset import StoredDataset
from recordspec.wire.tfrecord import scan

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {n: int64, words: {kind: var_len, dtype: string}}")
ROWS = 100


@pytest.fixture(params=["none", "gzip"])
def data(tmp_path, request):
    rows = [{"n": index, "words": ["w"] * (index % 3)} for index in range(ROWS)]
    rs.write(rows, SCHEMA, tmp_path / "data", shards=4, compression=request.param)
    return tmp_path / "data"


def numbers(dataset) -> list[int]:
    return [number for batch in dataset for number in batch["n"].numpy().reshape(-1).tolist()]


def test_without_options_records_come_one_by_one_in_order(data):
    dataset = rs.read(data, SCHEMA)
    assert dataset.element_spec == SCHEMA.element_spec()
    assert int(dataset.cardinality()) == ROWS
    assert numbers(dataset) == list(range(ROWS))


def test_batches_have_the_type_that_the_schema_says(data):
    dataset = rs.read(data, SCHEMA, batch=32)
    assert dataset.element_spec == batch_spec(SCHEMA)
    assert int(dataset.cardinality()) == 4
    assert numbers(dataset) == list(range(ROWS))
    dropped = rs.read(data, SCHEMA, batch={"size": 32, "drop_remainder": True})
    assert dropped.element_spec["n"] == batch_spec(SCHEMA, 32)["n"]
    assert int(dropped.cardinality()) == 3


def test_a_shuffle_is_fixed_by_its_seed_and_other_in_every_epoch(data):
    def epochs(seed: int, **options) -> list[list[int]]:
        dataset = rs.read(data, SCHEMA, batch=7, shuffle=50, seed=seed, **options)
        return [numbers(dataset), numbers(dataset)]

    first, second = epochs(7)
    assert sorted(first) == sorted(second) == list(range(ROWS))
    assert first != second
    assert first != list(range(ROWS))
    assert epochs(7) == [first, second]
    assert epochs(8)[0] != first


def test_a_cache_folder_that_cannot_be_made_is_named(data, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(rs.StoreError) as caught:
        rs.read(data, SCHEMA, batch=7, cache=str(tmp_path / "file" / "cache"))
    assert str(caught.value) == f"{tmp_path}/file/cache: cannot write: not a directory"


@pytest.mark.parametrize(
    "options",
    [
        {"interleave": {"cycle": 2, "block": 3}},
        {"interleave": {"parallel": 2}},
        {"interleave": {"parallel": "auto"}, "deterministic": False},
        {"cache": "memory"},
        {"prefetch": 0},
        {"shuffle": 10, "seed": 1, "cache": "memory"},
    ],
)
def test_every_stage_keeps_every_record(data, options):
    dataset = rs.read(data, SCHEMA, batch=16, **options)
    assert int(dataset.cardinality()) == 7
    assert sorted(numbers(dataset)) == list(range(ROWS))


def test_repeat_counts(data):
    thrice = rs.read(data, SCHEMA, batch=30, repeat=3)
    assert int(thrice.cardinality()) == 12
    assert [len(batch["n"]) for batch in thrice] == [30, 30, 30, 10] * 3
    endless = rs.read(data, SCHEMA, batch=30, repeat="forever")
    assert int(endless.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert len(numbers(endless.take(5))) == 130


NO_BATCH = "read.repeat: expected a batch in every pass, which `forever` repeats, got none"


@pytest.mark.parametrize("layout", ["rows", {"blocks": 3}])
def test_passes_without_a_batch_are_not_repeated_for_ever(tmp_path, layout):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, words: {kind: var_len, dtype: string}}")
    rs.write(
        [{"n": n, "words": ["a"] * n} for n in range(10)], schema, tmp_path / "d", layout=layout, shards=2
    )
    endless = partial(rs.read, tmp_path / "d", schema, repeat="forever")
    whole = {"batch": {"size": 100, "drop_remainder": True}}
    with pytest.raises(rs.SpecError, match=f"^{NO_BATCH} "):  # the manifest tells
        endless(**whole, shuffle=9, seed=1)

    def above(least: int) -> Callable[..., Any]:
        return lambda row: row["n"] > least

    everywhere = {"shuffle": {"global": True, "seed": 1}}
    for how in ({}, {"batch": 4}, {"batch": 4, "shuffle": 9, "seed": 1}, {"batch": 4, **everywhere}):
        with pytest.raises(tf.errors.InvalidArgumentError, match=NO_BATCH):
            next(iter(endless(**how, filter=above(100))))
        some = endless(**how, filter=above(7)).take(6)
        assert {n for rows in some for n in rows["n"].numpy().reshape(-1).tolist()} == {8, 9}
    with pytest.raises(tf.errors.InvalidArgumentError, match=NO_BATCH):
        next(iter(endless(**whole, bucket={"by": "words", "boundaries": [3]})))
    # the rest of a pass that begins at its end is no pass
    rest = rs.read(tmp_path / "d", schema, batch=4, repeat="forever", filter=above(7), start=(0, 1))
    assert len(list(rest.take(2))) == 2


def test_a_map_sees_the_decoded_batch(data):
    dataset = rs.read(data, SCHEMA, batch=50, map=lambda row: {"n": row["n"] * 2})
    assert numbers(dataset) == list(range(0, 2 * ROWS, 2))


def test_without_a_manifest_the_cardinality_is_unknown(data):
    (data / "manifest.json").unlink()
    dataset = rs.read(data, SCHEMA)
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    assert numbers(dataset) == list(range(ROWS))


def test_shards_that_are_missing_or_foreign_are_named(data):
    shards = sorted(data.glob("train-*"))
    strange = data / shards[0].name.replace("train", "test")
    strange.write_bytes(b"")
    with pytest.raises(rs.StoreError) as caught:
        rs.read(data, SCHEMA)
    assert (
        str(caught.value)
        == f"{strange}: expected shards that the manifest names, got another one (move it to another folder)"
    )
    with pytest.raises(rs.StoreError) as caught:
        rs.read(strange, SCHEMA)
    assert str(caught.value) == f"`{strange}` is not listed by the manifest beside it"
    strange.unlink()
    shards[1].unlink()
    with pytest.raises(rs.StoreError) as caught:
        rs.read(data, SCHEMA)
    assert str(caught.value) == f"{shards[1]}: expected a shard that the manifest names, got no file"
    (data / "manifest.json").unlink()
    with pytest.raises(rs.StoreError) as caught:
        rs.read(data, SCHEMA)
    suffix = shards[1].name.partition(".")[2]
    assert str(caught.value) == (
        f"{data}/train-*-of-00004.{suffix}: expected 4 shards, got 3; 1 of 4 missing: 00001 "
        "(files that are listed one by one are taken as they are)"
    )
    assert numbers(rs.read([shards[0], *shards[2:]], SCHEMA)) == [*range(25), *range(50, ROWS)]


def lie(path: Path, length: int = 1 << 60) -> str:
    """Gives the last record of a file another length, with a right CRC; says where that is."""
    *_, last = scan(path)
    data = bytearray(path.read_bytes())
    data[last.offset : last.offset + 12] = head(length)
    path.write_bytes(data)
    return f"{path}: record {last.number} at byte {last.offset:,}"


@pytest.mark.parametrize("manifest", [True, False])
def test_a_length_beyond_the_file_is_refused_before_tensorflow_allocates_it(tmp_path, monkeypatch, manifest):
    rs.write([{"n": n, "words": []} for n in range(ROWS)], SCHEMA, tmp_path / "data", shards=2)
    if not manifest:
        (tmp_path / "data/manifest.json").unlink()
    rs.read(tmp_path / "data", SCHEMA)
    shard = tmp_path / "data/train-00001-of-00002.tfrecord"
    where = lie(shard)
    with pytest.raises(rs.RecordError) as caught:
        rs.read(tmp_path / "data", SCHEMA)
    expected = "1,152,921,504,606,846,976 bytes of data and its CRC"
    assert str(caught.value) == f"{where}: expected {expected}, got the end of the file"
    assert numbers(rs.read(tmp_path / "data", SCHEMA, corrupt="skip")) == list(range(ROWS - 1))
    monkeypatch.setattr("recordspec.store.dataset._MOST_RECORDS", ROWS - 1)
    if manifest:  # a larger dataset is believed
        rs.read(tmp_path / "data", SCHEMA)
    else:
        with pytest.raises(rs.RecordError):
            rs.read(tmp_path / "data", SCHEMA)


def test_a_record_of_2_gib_is_refused_before_tensorflow_parses_it(tmp_path):
    path = tmp_path / "x.tfrecord"
    with path.open("wb") as file:
        file.write(head(2**31))
        file.truncate(16 + 2**31)
    with pytest.raises(rs.RecordError) as caught:
        rs.read(path, SCHEMA)
    expected = "a record of at most 2,147,483,647 bytes, the most that TensorFlow reads"
    assert str(caught.value) == f"{path}: record 0 at byte 0: expected {expected}, got 2,147,483,648 bytes"


HOSTILE = """
import recordspec as rs
schema = rs.Schema.loads("schema: s\\nfeatures: {n: {dtype: int64, default: 1}}")
try:
    list(rs.read("lie.gz", schema))
except Exception as error:
    print(type(error).__name__)
list(rs.read("lie", schema))
"""


def test_a_hostile_length_does_not_end_the_process(tmp_path):
    """Of a compressed file, TensorFlow allocates no more than it inflates."""
    data = frame(b"") + head(1 << 60) + b"abc"
    (tmp_path / "lie").write_bytes(data)
    (tmp_path / "lie.gz").write_bytes(gzip.compress(data))
    done = subprocess.run([sys.executable, "-c", HOSTILE], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "DataLossError\n")
    assert done.stderr.splitlines()[-1] == (
        "recordspec.wire.framing.LengthError: lie: record 1 at byte 16: expected 1,152,921,504,606,846,976 bytes "
        "of data and its CRC, got the end of the file"
    )


@pytest.mark.parametrize("options", [{}, {"shuffle": 60, "seed": 1}, {"corrupt": "skip"}], ids=str)
def test_blocks_without_a_manifest_are_read_as_blocks(tmp_path, options):
    rows = [{"n": index, "words": ["w"] * (index % 3)} for index in range(ROWS)]
    rs.write(rows, SCHEMA, tmp_path / "data", shards=2, layout={"blocks": 30})
    whole = [batch["words"].to_list() for batch in rs.read(tmp_path / "data", SCHEMA, batch=16, **options)]
    (tmp_path / "data/manifest.json").unlink()
    dataset = rs.read(f"{tmp_path}/data/train-*", SCHEMA, batch=16, **options)
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    assert [batch["words"].to_list() for batch in dataset] == whole
    assert sorted(numbers(dataset)) == list(range(ROWS))
    with pytest.raises(rs.StoreError) as caught:
        plan_files(StoredDataset.of(tmp_path / "data", SCHEMA), WorkerShard(2, 0))
    hint = "without one, blocks of rows cannot be divided among workers"
    assert str(caught.value) == f"`{tmp_path}/data` has no manifest: {hint}"


def test_a_shard_of_another_size_than_the_manifest_says_is_refused(data):
    shard = sorted(data.glob("train-*"))[0]
    size = shard.stat().st_size
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(rs.StoreError) as caught:
        rs.read(data, SCHEMA)
    assert str(caught.value) == (
        f"{shard}: expected {size:,} bytes, as the manifest says, got {size - 1:,} (build the dataset again)"
    )


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (
            "features: {n: float32}",
            "features.n.dtype: expected `int64`, as the data was written, got `float32`",
        ),
        (
            "features: {n: {kind: var_len, dtype: int64}}",
            "features.n.kind: expected `fixed_len`, as the data was written, got `var_len`",
        ),
        (
            "features: {n: {dtype: int64, shape: [1]}}",
            "features.n.shape: expected `[]`, as the data was written, got `[1]`",
        ),
        ("features: {m: int64}", "features.m: expected a feature that the data has, got none of this name"),
        ("record: sequence_example\ncontext: {n: int64}", "record: expected example, got sequence_example"),
    ],
)
def test_data_of_another_spec_is_refused(data, wanted, expected):
    with pytest.raises(rs.StoreError) as caught:
        rs.read(data, rs.Schema.loads(f"schema: s\n{wanted}"))
    hint = "(build it again, or read it with its own schema.yaml)"
    assert str(caught.value) == f"{data}: {expected} {hint}"


@pytest.mark.parametrize(
    ("names", "where", "expected", "got"),
    [
        ([*range(40), "x", *range(41, 99)], "[40]", "40", "x"),
        (range(98), "[98]", "98", "null"),
        ("ab", "[0]", "0", "a"),
    ],
)
def test_of_many_classes_the_first_that_differs_is_told(tmp_path, names, where, expected, got):
    text = "schema: s\nfeatures: {label: {kind: label, names: %s}}"
    schema, other = (rs.Schema.loads(text % json.dumps(list(map(str, some)))) for some in (range(99), names))
    rs.write([{"label": "7"}], schema, tmp_path / "data", progress=False)
    with pytest.raises(rs.StoreError) as caught:
        rs.read(tmp_path / "data", other)
    message = f"features.label.names{where}: expected `{expected}`, as the data was written, got `{got}` "
    assert str(caught.value).partition(": ")[2].startswith(message)


VERSIONS = rs.Schema.loads("schema: s\nfeatures: {n: int64, version: int64}")


def write_version(folder: Path, version: int, **how: object) -> None:
    rows = {"n": np.arange(40_000), "version": np.full(40_000, version)}
    rs.write(rows, VERSIONS, folder, shards=8, **how)


def versions(batches: Iterable) -> list[int]:
    return [int(version) for batch in batches for version in batch["version"].numpy()]


def test_a_reader_of_a_replaced_dataset_reads_no_row_of_the_other(tmp_path):
    data, begun, options = tmp_path / "data", {}, {"batch": 1000}
    mixed = options | {"shuffle": 100, "seed": 1, "interleave": {"cycle": 2}}
    write_version(data, 1)
    for name, how in {"in order": options, "mixed": mixed, "cached": options | {"cache": "memory"}}.items():
        dataset = rs.read(data, VERSIONS, **how)
        begun[name] = dataset, iter(dataset)
    whole = rs.read(data, VERSIONS, cache="memory", **options)
    assert versions(whole) == [1] * 40_000
    rows = {name: versions(itertools.islice(batches, 20)) for name, (_, batches) in begun.items()}
    write_version(data, 2, force=True)
    message = f"`{data}` was replaced since it was opened: open it again, and start the pass again"
    for name, (dataset, batches) in begun.items():
        with pytest.raises(rs.StoreError) as error, rs.locating(VERSIONS, data):
            rows[name].extend(version for batch in batches for version in versions([batch]))
        assert str(error.value) == message
        assert isinstance(error.value.__cause__, tf.errors.NotFoundError)
        assert str(data) in str(error.value.__cause__)
        assert 20_000 <= len(rows[name]) < 40_000
        assert {*rows[name]} == {1}
        with pytest.raises(tf.errors.NotFoundError, match=f"{data}/train-0000"):
            versions(dataset)  # the next pass
    assert versions(whole) == [1] * 40_000
    # nor does a name come again when the second dataset is replaced, or added to
    write_version(data, 3, force=True)
    write_version(data, 4, append=True)
    files = rs.Manifest.load(data).files
    assert files == {
        f"train-v3{more}-{shard:05d}-of-00008.tfrecord" for more in ("", "-add1") for shard in range(8)
    }
    assert sorted(versions(rs.read(data, VERSIONS, **options))) == [3] * 40_000 + [4] * 40_000


def test_a_pipeline_of_a_replaced_dataset_says_so(tmp_path):
    (tmp_path / "s.yaml").write_text(VERSIONS.dump())
    (tmp_path / "config.yaml").write_text("schema: s.yaml\ndata: data\nread: {batch: 1000}\n")
    write_version(tmp_path / "data", 1)
    pipeline = rs.Pipeline.load(tmp_path / "config.yaml")
    assert versions(pipeline.dataset("train")) == [1] * 40_000
    write_version(tmp_path / "data", 2, force=True)
    with pytest.raises(rs.StoreError, match="data` was replaced since it was opened: "):
        pipeline.dataset("train")
    assert versions(rs.Pipeline.load(tmp_path / "config.yaml").dataset("train")) == [2] * 40_000


def test_fewer_features_or_new_ones_with_a_default_are_read(data):
    fewer = rs.Schema.loads("schema: s\nfeatures: {n: int64, new: {dtype: string, default: x}}")
    (batch,) = rs.read(data, fewer, batch=ROWS)
    assert batch["n"].numpy().tolist() == list(range(ROWS))
    assert set(batch["new"].numpy()) == {b"x"}


@pytest.mark.parametrize("data", ["none"], indirect=True)
@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("ahead", [0, 1])
def test_workers_have_every_record_once_whatever_order_they_read_in(data, workers, ahead):
    how = from_python(Read, {"batch": 8, "shuffle": {"buffer": 30, "seed": 1}})
    seen = []
    for worker in range(workers):
        dataset = build(how, SCHEMA, plan_files(StoredDataset.of(data, SCHEMA), WorkerShard(workers, worker)))
        if worker:  # in another epoch than the first
            for _ in range(ahead):
                numbers(dataset)
        found = numbers(dataset)
        assert int(dataset.cardinality()) == -(-len(found) // 8)
        seen += found
    assert set(seen) == set(range(ROWS))
    assert len(seen) < ROWS + workers


def test_some_of_the_shards_have_their_own_cardinality(data):
    shard = sorted(data.glob("train-*"))[1]
    assert int(rs.read(shard, SCHEMA).cardinality()) == 25


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch": 0}, "batch.size: expected at least 1, got 0"),
        ({"batch": "8"}, "batch: expected a whole number, got str '8'"),
        ({"batch": True}, "batch: expected a whole number, got bool True"),
        ({"shuffle": np.False_, "seed": 1}, "shuffle: expected a shuffle for the seed, got none (`shuffle=True` shuffles all rows)"),
        ({"shuffle": np.int64(-5)}, "shuffle.buffer: expected at least 1, got -5"),
        ({"staging": {"size": "0KiB"}}, "staging.size: expected a size such as 128MiB (B, KiB, MiB, GiB), got `0KiB`"),
        ({"shuffle": np.True_, "seed": np.True_}, "shuffle.seed: expected a whole number, got bool True"),
        ({"seed": 1}, "shuffle: expected a shuffle for the seed, got none (`shuffle=True` shuffles all rows)"),
        ({"interleave": {"cycles": 2}}, "interleave.cycles: expected one of cycle, block, parallel, got `cycles` (did you mean `cycle`?)"),
        ({"prefetch": -1}, "prefetch: expected at least 0, or auto, got -1"),
        ({"repeat": 0}, "repeat: expected at least 1, or forever, got 0"),
        ({"bacth": 3}, "bacth: expected one of batch, shuffle, interleave, bucket, pack, balance, features, augment, cache, repeat, prefetch, deterministic, corrupt, service, staging, got `bacth` (did you mean `batch`?)"),
    ],
)  # fmt: skip
def test_an_option_that_is_wrong_is_named(data, options, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.read(data, SCHEMA, **options)
    assert str(caught.value) == expected
