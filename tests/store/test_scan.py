"""Scans: what is found does not depend on ranges or processes, and blocks are unpacked as far as they can be."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from examples import example as example_of
from examples import file_of
from recordspec._tf import tf
from recordspec.errors import Problem
from recordspec.integrity.check import check_files
from recordspec.locations import location
from recordspec.remote import RemotePath
from recordspec.store import scan
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import expand
from recordspec.store.shards import File
from recordspec.wire.framing import framed
from selection import scaled

SCHEMA = rs.Schema.loads(
    "schema: few\nfeatures:\n  n: {dtype: int64}\n  words: {kind: var_len, dtype: string}\n"
)


def example(**values) -> bytes:
    kinds = {
        key: tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
        if value and isinstance(value[0], bytes)
        else tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for key, value in values.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=kinds)).SerializeToString()


RECORDS = st.sampled_from(
    [
        example(n=[1], words=[b"a", b"b"]),
        example(n=[1], words=[b""]),
        example(n=[2, 3]),
        example(n=[b"two"]),
        example(words=[b"x"]),
        example(n=[4], words=[], other=[5]),
        example(n=[4], another=[b"z"]),
        b"\xff" * 9,
    ]
)


@given(st.lists(RECORDS, max_size=20), st.integers(1, 200), st.data())
@settings(max_examples=scaled(150))
def test_a_file_in_stretches_of_any_size_gives_the_same_report(tmp_path_factory, records, size, chosen):
    data = bytearray(b"".join(map(framed, records)))
    if data and chosen.draw(st.booleans()):
        data[chosen.draw(st.integers(0, len(data) - 1))] ^= 1
    path = tmp_path_factory.mktemp("rows") / "records"
    path.write_bytes(data)
    whole = check_files([File(path=path)], SCHEMA, examples=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_RANGE", size)
        assert check_files([File(path=path)], SCHEMA, examples=2) == whole


CODES = [("rows", ["missing", "count", "record"]), ({"blocks": 3}, ["record"])]


@pytest.mark.parametrize(("layout", "codes"), CODES, ids=["rows", "blocks"])
def test_two_processes_find_what_one_finds(tmp_path, layout, codes):
    rows = [{"n": number, "words": ["a"] * (number % 3)} for number in range(40)]
    rs.write(rows, SCHEMA, tmp_path / "data", shards=3, key=None, layout=layout, progress=False)
    paths = expand(tmp_path / "data")
    data = bytearray(paths[1].read_bytes())
    data[-10] ^= 1
    paths[1].write_bytes(data)
    wanted = rs.Schema.loads("schema: few\nfeatures:\n  n: {dtype: int64}\n  words: {dtype: string}\n")
    files = tuple(
        File(path=file.path, shard=file.shard, block=file.block)
        for file in StoredDataset(paths, None, SCHEMA).checked_files()
    )
    found = check_files(files, wanted, examples=2, jobs=2)
    assert found == check_files(files, wanted, examples=2, jobs=1)
    assert (found.files, found.rows, [group.code for group in found.groups.values()]) == (3, 40, codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_RANGE", 50)
        assert check_files(files, wanted, examples=2, jobs=2) == found


PAIRS = rs.Schema.loads("schema: s\nfeatures: {a: int64, b: int64}")


def block(**features: list[int]) -> bytes:
    return example_of({key.replace("rows", "/rows"): ("int64", values) for key, values in features.items()})


def test_rows_of_blocks_of_which_some_have_none(tmp_path):
    blocks = [
        block(rows=[2], a=[1, 2], b=[3, 4]),
        block(rows=[3], a=[1, 2], b=[3]),
        block(a=[1]),
        block(rows=[1], a=[5], b=[6]),
        block(rows=[1], a=[7], b=[8]),
    ]
    path = file_of(tmp_path / "f", blocks)
    offsets = [sum(len(framed(one)) for one in blocks[:number]) for number in range(6)]
    first, second, third, last = scan.scan(scan.FileRange(path=path, blocks=PAIRS))
    values = [
        [
            (int(row["a"]), int(row["b"]))
            for row in (PAIRS.decode(bytes(batch.data(n))) for n in range(len(batch)))
        ]
        for batch in (first, last)
    ]
    assert values == [[(1, 3), (2, 4)], [(5, 6), (7, 8)]]
    assert (first.records.tolist(), first.block_rows.tolist(), first.numbers.tolist()) == (
        [0] * 2,
        [0, 1],
        [0, 1],
    )
    assert (last.records.tolist(), last.block_rows.tolist(), last.numbers.tolist()) == (
        [3, 4],
        [0, 0],
        [2, 3],
    )
    assert (first.end, second.end, last.end) == ((1, offsets[1]), (2, offsets[2]), (5, offsets[5]))
    assert last.place(1) == f"{path}: record 4 at byte {offsets[4]}, row 0"
    assert [(one.number, one.size) for one in (second, third)] == [(1, len(blocks[1])), (2, len(blocks[2]))]
    places = [f"{path}: record {number} at byte {offsets[number]}: " for number in (1, 2)]
    assert [list(map(str, one.problems)) for one in (second, third)] == [
        [
            f"{places[0]}features.a: expected 3 int64 in a block of 3 rows, got 2",
            f"{places[0]}features.b: expected 3 int64 in a block of 3 rows, got 1",
        ],
        [f"{places[1]}/rows: expected a block of rows, got a record without"],
    ]


@pytest.mark.parametrize(
    ("sizes", "processes", "groups"),
    [
        ([], 1, []),
        ([1] * 7, 1, [1] * 7),
        ([1] * 27, 1, [3] * 9),
        ([1] * 27, 4, [1] * 27),
        ([64 << 20] * 100, 1, [1] * 100),
        ([1, 64 << 20, *[1] * 98], 1, [2, *[12] * 8, 2]),
        ([0] * 9000, 1, [1024] * 8 + [808]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_small_tasks_are_sent_together(sizes, processes, groups):
    tasks = range(len(sizes))
    found = list(scan.groups_by_bytes(tasks, sizes, processes))
    assert [*map(len, found)] == groups
    assert [*itertools.chain(*found)] == [*tasks]


def test_a_size_that_a_store_does_not_tell_is_unknown(monkeypatch):
    def stat(path):
        raise rs.StoreError(Problem(where=str(path), expected="a size", got="403"))

    monkeypatch.setattr(RemotePath, "stat", stat)
    paths = [location("https://127.0.0.1/a"), location("/does/not/exist")]
    assert [*scan.sizes_of(paths)] == [0, 0]
