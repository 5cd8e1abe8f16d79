"""What is found in files does not depend on who looks at which part of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from recordspec._tf import tf
from recordspec.inspect import shares
from recordspec.inspect.check import check
from recordspec.store.files import File, known
from recordspec.store.shards import expand
from recordspec.wire.framing import framed

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
@settings(max_examples=150)
def test_a_file_in_stretches_of_any_size_gives_the_same_report(tmp_path_factory, records, size, chosen):
    data = bytearray(b"".join(map(framed, records)))
    if data and chosen.draw(st.booleans()):
        data[chosen.draw(st.integers(0, len(data) - 1))] ^= 1
    path = tmp_path_factory.mktemp("rows") / "records"
    path.write_bytes(data)
    whole = check([File(path=path)], SCHEMA, examples=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shares, "_STRETCH", size)
        assert check([File(path=path)], SCHEMA, examples=2) == whole


CODES = [("rows", ["missing", "count", "record"]), ({"blocks": 3}, ["record"])]


@pytest.mark.parametrize(("layout", "codes"), CODES, ids=["rows", "blocks"])
def test_two_processes_find_what_one_finds(tmp_path, layout, codes):
    rows = [{"n": number, "words": ["a"] * (number % 3)} for number in range(40)]
    rs.write(SCHEMA, rows, tmp_path / "data", shards=3, key=None, layout=layout, progress=False)
    paths = expand(tmp_path / "data")
    data = bytearray(paths[1].read_bytes())
    data[-10] ^= 1
    paths[1].write_bytes(data)
    wanted = rs.Schema.loads("schema: few\nfeatures:\n  n: {dtype: int64}\n  words: {dtype: string}\n")
    files = tuple(File(path=file.path, shard=file.shard, block=file.block) for file in known(paths, SCHEMA))
    found = check(files, wanted, examples=2, jobs=2)
    assert found == check(files, wanted, examples=2, jobs=1)
    assert (found.files, found.rows, [group.code for group in found.groups.values()]) == (3, 40, codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shares, "_STRETCH", 50)
        assert check(files, wanted, examples=2, jobs=2) == found
