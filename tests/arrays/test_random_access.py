"""`rs.open`: rows by number, as NumPy has them, from rows and from blocks."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import shutil
import threading
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from frames_by_hand import frame
from recordspec import RecordError, SpecError, StoreError
from recordspec.locations import location
from recordspec.store import mapped_files, ranged_files
from recordspec.wire.compression import PIECE

SCHEMA = rs.Schema.loads("""
schema: rides
features:
  id: int64
  fare: {dtype: float32, default: 2.5}
  company: {kind: label, names: [a, b, c]}
  note: text
  tags: {kind: var_len, dtype: string}
  stops: {kind: ragged, dtype: int64, shape: [null, null]}
""")
ROWS = [
    {
        "id": number,
        **({} if number % 3 else {"fare": number / 2}),
        "company": "abc"[number % 3],
        "note": f"é{number}",
        "tags": ["x" * number] * (number % 4),
        "stops": [[number], [], [1, 2]][: number % 4],
    }
    for number in range(100)
]


@pytest.fixture(scope="module", params=["rows", "blocks"])
def data(request, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("open") / request.param
    layout = "rows" if request.param == "rows" else {"blocks": 7}
    split = {"train": 0.8, "test": 0.2}
    rs.write(ROWS, SCHEMA, folder, key="id", split=split, shards=3, layout=layout, progress=False)
    return folder


def ids(data: Path) -> list[int]:
    return [int(row["id"]) for row in rs.open(data)]


def test_a_row_is_what_was_written(data):
    rows = rs.open(data)
    assert sorted(ids(data)) == list(range(100))
    for number, row in enumerate(rows):
        wanted = ROWS[int(row["id"])]
        assert float(row["fare"]) == wanted.get("fare", 2.5)
        assert row["company"] == "abc".index(wanted["company"])
        assert row["note"].decode() == wanted["note"]
        assert [tag.decode() for tag in row["tags"]] == wanted["tags"]
        assert [row["stops"][at].tolist() for at in range(len(row["stops"]))] == wanted["stops"]
        assert rows[number]["id"] == rows[number - 100]["id"] == row["id"]


def test_batches_are_rows(data):
    rows, order = rs.open(data), ids(data)
    picked = [5, 99, 5, -1, 0]
    for numbers in (picked, np.array(picked), np.array(picked, np.int32), tuple(picked)):
        assert rows[numbers]["id"].tolist() == [order[number] for number in picked]
    assert rows[10:20:3]["id"].tolist() == order[10:20:3]
    assert rows[-3:]["id"].tolist() == order[-3:]
    assert rows[3:3]["id"].tolist() == rows[[]]["id"].tolist() == []
    assert rows[np.int64(4)]["id"] == order[4]
    assert [row["id"] for row in rows.__getitems__([7, 2])] == [order[7], order[2]]
    tags = rows[picked]["tags"]
    assert list(map(len, tags)) == tags.lengths.tolist() == [order[number] % 4 for number in picked]
    assert len(tags.values) == tags.lengths.sum()
    batch = rows[picked]
    batch["id"][0] = 3  # and it is not the file that is changed
    assert rows[picked]["id"][0] == order[5]


def test_padded_lists_do_not_depend_on_other_rows(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {x: {kind: var_len, dtype: int64, as: dense}}}")
    rs.write([{"x": range(length)} for length in (1, 3, 2)], schema, tmp_path / "d", shards=1, progress=False)
    rows = rs.open(tmp_path / "d")
    for some in ([rows[number] for number in range(3)], rows.__getitems__([0, 1, 2]), list(rows)):
        assert [row["x"].tolist() for row in some] == [[0], [0, 1, 2], [0, 1]]
    assert rows[:]["x"].shape == (3, 3)


class Doubled(rs.KINDS["var_len"]):
    """Padded by its own `decode_numpy`."""

    kind = "doubled"

    def decode_numpy(self, columns):
        return 2 * super().decode_numpy(columns)


def test_batches_that_are_decoded_together_are_padded_for_themselves(tmp_path):
    kinds = rs.KINDS | {"doubled": Doubled}
    for options in ("as: dense", "as: dense, max_length: 9", "as: dense, with_length: true", "as: sparse"):
        for kind in ("var_len", "doubled") if options == "as: dense" else ("var_len",):
            text = f"{{schema: s, features: {{k: {{kind: {kind}, dtype: int64, {options}}}, n: int64}}}}"
            schema, folder = rs.Schema.loads(text, kinds=kinds), tmp_path / f"{kind} {options}"
            columns = {"k": [[1] * (n % 6) for n in range(20)], "n": np.arange(20)}
            rs.write(columns, schema, folder, progress=False, shuffle=None)
            rows = rs.open(folder, schema)
            start = 0
            for size, batch in zip([3, 1, 0, 16], rows.batches(range(20), [3, 1, 0, 16]), strict=True):
                expected = rows[start : start + size]
                assert batch.keys() == expected.keys()
                for name, value in expected.items():
                    assert str(batch[name]) == str(value)
                start += size
            for sizes in ([19], [21], [21, -1], []):
                with pytest.raises(SpecError, match="sizes: expected sizes of 20 rows in all, got"):
                    rows.batches(range(20), sizes)


def test_only_some_features_are_decoded(data):
    rows = rs.open(data)
    some = rows.only(["tags", "id"])
    assert sorted(some[3]) == ["id", "tags"]
    assert some[3]["id"] == rows[3]["id"]
    assert some[[7, 2]]["id"].tolist() == rows[[7, 2]]["id"].tolist()


def test_records_are_those_of_single_rows(data):
    rows, order = rs.open(data), ids(data)
    assert rows.records([3, 98, 3]) == [SCHEMA.encode(ROWS[order[number]]) for number in (3, 98, 3)]
    assert rows.records([]) == []


def test_numbers_that_there_are_not_are_errors(data):
    rows = rs.open(data)
    for wrong in (100, -101, [0, 100], np.uint64(2**64 - 1), np.array([2**64 - 1], np.uint64), 2**70):
        with pytest.raises(IndexError, match=r"row -?\d+: there are 100"):
            rows[wrong]
    for wrong in (1.5, "a", [True, False], [[1]], None):
        with pytest.raises(TypeError, match="expected numbers of rows, got"):
            rows[wrong]


def test_a_row_is_found_by_its_key(data):
    rows = rs.open(data)
    assert [int(rows.by_key(key)["id"]) for key in (0, 57, "99")] == [0, 57, 99]
    with pytest.raises(KeyError):
        rows.by_key(100)
    test = rs.open(f"{data}/test-*")
    there = {int(row["id"]) for row in test}
    assert int(test.by_key(min(there))["id"]) == min(there)
    with pytest.raises(KeyError):
        test.by_key(min(set(range(100)) - there))
    with pytest.raises(SpecError, match="key: expected a value for each of id"):
        rows.by_key((1, 2))


@pytest.mark.parametrize("size", [None, 16])
def test_lost_keys_are_an_error_and_not_a_row_that_does_not_exist(tmp_path, size):
    rs.write(ROWS[:3], SCHEMA, tmp_path / "data", key="id", progress=False)
    path = tmp_path / "data/keys.bin"
    path.unlink() if size is None else os.truncate(path, size)
    with pytest.raises(
        StoreError, match=r"keys\.bin` does not have the key of each row: `recordspec verify`"
    ):
        rs.open(tmp_path / "data").by_key(1)


def test_keys_of_several_names_are_given_together(tmp_path):
    rs.write(ROWS, SCHEMA, tmp_path / "data", key=["id", "note"], progress=False)
    assert int(rs.open(tmp_path / "data").by_key((7, "é7"))["id"]) == 7
    rs.write(ROWS, SCHEMA, tmp_path / "without", progress=False)
    with pytest.raises(StoreError, match="has no unique keys: `write: "):
        rs.open(tmp_path / "without").by_key(1)


def test_it_works_in_threads_in_forks_and_pickled(data):
    rows = rs.open(data)
    wanted, order = rows.records(range(100)), np.random.default_rng(1).permutation(100)
    shuffled = [wanted[number] for number in order]
    again = pickle.loads(pickle.dumps(rows))
    assert again.records(order) == shuffled
    assert again[3]["note"] == rows[3]["note"]
    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda: results.append(rows.records(order) == shuffled)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4
    child = os.fork()
    if not child:
        os._exit(0 if rows.records(order) == shuffled else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_places_say_where_a_row_is(data):
    rows = rs.open(data)
    for number, (path, record, within) in enumerate(rows.places(range(100))):
        file = rs.open(path)
        assert file[record * (7 if rows._block_sizes is not None else 1) + within]["id"] == rows[number]["id"]


def test_files_of_others_are_indexed_when_they_are_opened(tmp_path):
    for name, part in (("a", ROWS[:60]), ("b", ROWS[60:])):
        (tmp_path / name).write_bytes(b"".join(frame(SCHEMA.encode(row)) for row in part))
    rows = rs.open([tmp_path / "a", tmp_path / "b"], SCHEMA)
    assert [int(row["id"]) for row in rows] == list(range(100))
    without = rs.open([tmp_path / "a", tmp_path / "b"])
    assert without.records([61]) == [SCHEMA.encode(ROWS[61])]
    with pytest.raises(StoreError, match=r"has no schema: `rs.open\(files, schema\)` reads its rows"):
        without[0]


def test_what_cannot_be_read_is_named(data, tmp_path):
    other = rs.Schema.loads("{schema: s, features: {id: float32}}")
    with pytest.raises(StoreError, match=r"features\.id\.dtype: expected `int64`, as the data was written"):
        rs.open(data, other)
    (tmp_path / "x").write_bytes(frame(SCHEMA.encode(ROWS[0])) + frame(SCHEMA.encode(ROWS[1])[:-4]))
    rows = rs.open(tmp_path / "x", SCHEMA)
    with pytest.raises(RecordError, match=r"/x: record 1 at byte \d+: "):
        rows[1]
    assert rows[0]["id"] == 0
    with pytest.raises(StoreError, match="does not exist"):
        rs.open(tmp_path / "nothing")


@pytest.mark.parametrize("layout", ["rows", {"blocks": 16}])
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_rows_are_those_of_other_files(tmp_path, compression, layout, monkeypatch):
    rng = np.random.default_rng(1)
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, blob: string, short: string}")
    rows = [{"id": n, "blob": rng.bytes(n % 9 * 300), "short": "a" * (n % 5)} for n in range(2000)]
    how = {"layout": layout, "shards": 3, "progress": False}
    rs.write(rows, schema, tmp_path / "plain", **how)
    rs.write(rows, schema, tmp_path / "zipped", **how, compression=compression)
    plain, zipped = rs.open(tmp_path / "plain"), rs.open(tmp_path / "zipped")
    numbers = rng.integers(0, 2000, 100)
    for some in (numbers, slice(300, 900), 1999):
        assert same(plain[some], zipped[some])
    assert zipped.places([1500])[0][0].name.startswith("train-00002")
    for shuffle in (None, {"lanes": 8, "window": "4KiB", "seed": 1}):
        batches = [rs.iterate(opened, batch=64, shuffle=shuffle) for opened in (plain, zipped)]
        assert all(same(*both) for both in zip(*batches, strict=True))
    with pytest.raises(SpecError, match="expected `lanes` for compressed files, got `global`"):
        next(iter(rs.iterate(zipped, batch=8, shuffle=True, seed=1)))
    # few pieces stay in memory, in forked processes, too
    monkeypatch.setattr(ranged_files, "_MEMORY", PIECE)
    with get_context("fork").Pool(2) as pool:
        found = pool.map(partial(_ids_of, zipped), np.split(numbers, 4))
    assert np.concatenate(found).tolist() == numbers.tolist()
    again = pickle.loads(pickle.dumps(zipped))
    assert same(again[numbers], plain[numbers])


def test_more_files_than_a_process_may_map_are_read_in_pieces(tmp_path, monkeypatch):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    rs.write([{"id": n} for n in range(90)], schema, tmp_path / "data", shards=7, progress=False)
    mapped = rs.open(tmp_path / "data")
    (tmp_path / "limit").write_text(f"{mapped_files._OTHERS + 6}\n")
    monkeypatch.setattr(mapped_files, "_LIMIT", tmp_path / "limit")
    in_pieces = rs.open(tmp_path / "data")
    assert (mapped._is_mapped, in_pieces._is_mapped) == (True, False)
    mapped[:]  # what is mapped already may be mapped again
    (tmp_path / "limit").write_text(f"{mapped_files._OTHERS + 7}\n")
    assert rs.open(tmp_path / "data")._is_mapped
    shuffle = {"lanes": 8, "seed": 1}
    batches = [rs.iterate(opened, batch=8, shuffle=shuffle) for opened in (mapped, in_pieces)]
    assert all(same(*both) for both in zip(*batches, strict=True))
    assert in_pieces[89] == mapped[89]
    with pytest.raises(SpecError, match="expected `lanes` for 7 files, more than a process may map, got"):
        next(iter(rs.iterate(in_pieces, batch=8, shuffle=True, seed=1)))


def same(one, other) -> bool:
    return all(np.array_equal(values, other[name]) for name, values in one.items())


def _ids_of(rows, numbers):
    return rows[numbers]["id"]


def test_damage_of_a_compressed_file_is_named(tmp_path):
    rng = np.random.default_rng(1)
    rows = [{"id": n, "blob": rng.choice([*b"abcd"], 4000).astype(np.uint8).tobytes()} for n in range(300)]
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, blob: string}")
    rs.write(rows, schema, tmp_path / "data", shards=1, compression="zlib", progress=False)
    path, opened = next((tmp_path / "data").glob("train-*")), rs.open(tmp_path / "data")
    data = bytearray(path.read_bytes())
    restarts = opened._indices[0].restarts
    data[int(restarts[2]) + 3 : int(restarts[2]) + 90] = bytes(87)
    path.write_bytes(data)
    assert opened[5]["id"] == 5
    with pytest.raises(RecordError, match=r"zlib: bytes [\d,]+ to [\d,]+: expected whole compressed data"):
        opened[150]
    path.write_bytes(data[:-1])
    with pytest.raises(StoreError, match=r"zlib: expected [\d,]+ bytes, got [\d,]+"):
        opened[250]


def test_blocks_without_a_manifest_are_refused(data, tmp_path):
    if rs.Manifest.load(data).block is None:
        pytest.skip("rows need no manifest")
    shard = next(iter(sorted(data.glob("train-*"))))
    (tmp_path / "x").write_bytes(shard.read_bytes())
    with pytest.raises(StoreError, match="has blocks of rows, which only a manifest counts"):
        rs.open(tmp_path / "x", SCHEMA)


def test_a_pipeline_opens_a_split(data, tmp_path):
    SCHEMA.dump(tmp_path / "spec.yaml")
    (tmp_path / "config.yaml").write_text(f"{{schema: spec.yaml, data: {data}}}")
    pipeline = rs.Pipeline.load(tmp_path / "config.yaml")
    assert len(pipeline.open("test")) == pipeline.manifest.rows("test")
    assert len(pipeline.open(["train", "test"])) == 100
    assert rs.open(location(data)).manifest == pipeline.manifest


def changed(data: Path, folder: Path) -> Path:
    """A copy of a dataset, to be damaged."""
    shutil.copytree(data, folder / "data")
    return folder / "data"


def test_a_shard_that_was_cut_at_a_record_is_refused(data, tmp_path):
    copy = changed(data, tmp_path)
    shard = min(copy.glob("train-*"))
    frames = shard.read_bytes()
    last = rs.open(shard)._files.place(len(rs.open(shard)._files) - 1)
    os.truncate(shard, int(last.rpartition(" ")[2].replace(",", "")))
    with pytest.raises(StoreError, match=f"{shard}: expected {len(frames):,} bytes, as the manifest says"):
        rs.open(copy)
    shard.write_bytes(frame(b"x" * (len(frames) - 16)))  # of the size, and of fewer records
    (copy / "index.bin").write_bytes(b"")
    with pytest.raises(StoreError, match=r"expected \d+ records, as the manifest says, got 1"):
        rs.open(copy)


@pytest.mark.parametrize("number", [3, 40])
def test_a_corrupt_record_is_the_one_that_is_named(data, tmp_path, number):
    copy = changed(data, tmp_path)
    rows = rs.open(copy)
    path, record, _ = rows.places([number])[0]
    place = rs.open(path)._files.place(record)
    damaged = bytearray(Path(path).read_bytes())
    damaged[int(place.rpartition(" ")[2].replace(",", "")) + 14] ^= 1
    Path(path).write_bytes(damaged)
    others = [each for each in range(100) if rows.places([each])[0][:2] != (path, record)]
    rows = rs.open(copy)
    assert len(rows[others]["id"]) == len(others)
    for numbers in (number, [number], [*others, number], range(number, number + 1)):
        with pytest.raises(RecordError, match=f"{path}: record {record} at byte .* matches its CRCs"):
            rows[numbers]


def test_keys_are_not_those_of_a_dataset_that_came_after(data, tmp_path):
    rs.write(ROWS, SCHEMA, tmp_path / "data", key="id", progress=False)
    rows = rs.open(tmp_path / "data")
    assert rows.by_key(7)["id"] == 7
    rs.write(ROWS[::-1], SCHEMA, tmp_path / "data", key="id", force=True, progress=False)
    with pytest.raises(StoreError, match="was replaced, or added to, since it was opened: open it again"):
        rows.by_key(7)
    again = rs.open(tmp_path / "data")
    rs.write(ROWS, SCHEMA, tmp_path / "data", key="id", force=True, progress=False)
    with pytest.raises(StoreError, match="was replaced since it was opened"):
        again[0]


def test_threads_that_open_files_at_once_read_them(tmp_path):
    rs.write(ROWS, SCHEMA, tmp_path / "data", key="id", shards=50, progress=False)
    wanted = rs.open(tmp_path / "data").records(range(100))
    for _ in range(20):
        rows, results = rs.open(tmp_path / "data"), []
        threads = [
            threading.Thread(
                target=lambda rows=rows, results=results: results.append(rows.records(range(100)))
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [wanted] * 8


def test_any_number_of_shards_is_read_with_few_descriptors(tmp_path):
    """Most systems allow a process 1,024."""
    rs.write(
        [row | {"id": number} for number, row in enumerate(ROWS * 3)], SCHEMA, tmp_path / "data", shards=300
    )
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, usual[1]))
    try:
        opened = [rs.open(tmp_path / "data") for _ in range(2)]
        assert [sorted(rows[:]["id"].tolist()) for rows in opened] == [list(range(300))] * 2
        batches = rs.iterate(tmp_path / "data", batch=64, shuffle=True, seed=1)
        assert sum(len(batch["id"]) for batch in batches) == 300
        files = len({line.split()[-1] for line in mappings() if str(tmp_path) in line})
        assert files == len([line for line in mappings() if str(tmp_path) in line])  # each once
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    del opened, batches
    gc.collect()
    assert not [line for line in mappings() if str(tmp_path) in line]


def mappings() -> list[str]:
    return Path("/proc/self/maps").read_text().splitlines()


def test_a_pipeline_whose_dataset_was_replaced_says_so(tmp_path):
    (tmp_path / "s.yaml").write_text("schema: s\nfeatures: {id: int64}")
    (tmp_path / "config.yaml").write_text("schema: s.yaml\ndata: data\nread: {batch: 2}")
    before, after = (rs.Pipeline.load(tmp_path / "config.yaml") for _ in range(2))
    before.build([{"id": 1}, {"id": 2}])
    assert len(before.open("train")) > 0
    after.build([{"id": 3}] * 5, force=True)
    for read in (
        before.open,
        lambda split: next(before.iterate(split)),
        lambda split: before.which(0, 0, split),
    ):
        with pytest.raises(StoreError, match="data` was replaced since it was opened: open it again"):
            read("train")
    (shard,) = (tmp_path / "data").glob("train-*.tfrecord")
    shard.unlink()  # a missing shard is reported as such
    with pytest.raises(StoreError, match="does not exist"):
        after.open("train")


def test_lengths_are_in_memory_of_their_own(tmp_path):
    lists = "{kind: ragged, dtype: int64, shape: [null, null], key: v, row_lengths: [n]}"
    schema = rs.Schema.loads(f"{{schema: s, features: {{a: {lists}}}}}")
    rows = [{"a": [[row], []]} for row in range(9)]
    rs.write(rows, schema, tmp_path / "data", layout={"blocks": 4}, shards=1, progress=False)
    opened = rs.open(tmp_path / "data")
    inner = opened[2:6]["a"].values
    inner.lengths[:] = 7
    assert opened[2:6]["a"].values.lengths.tolist() == [1, 0] * 4
