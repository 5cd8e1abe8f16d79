"""The hash of a file is that of its bytes, however often they are read."""

from __future__ import annotations

import hashlib
import io

from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from recordspec.inspect.verify import verify
from recordspec.store.manifest import KEYS_FILE
from recordspec.wire.hashes import HashedFile


@given(st.binary(max_size=200), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=10))
def test_what_is_read_once_more_is_not_hashed_again(data, steps):
    with HashedFile(io.BytesIO(data)) as file:
        for size, back in steps:
            place = file.tell()
            into = memoryview(bytearray(size))
            read = bytes(into[: file.readinto(into)]) if size % 2 else file.read(size)
            assert read == data[place : place + size]
            file.seek(max(0, file.tell() - back))
        assert file.sha256() == hashlib.sha256(data).hexdigest()


def test_keys_that_never_end_are_not_hashed(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    rs.write(schema, [{"n": 1}], tmp_path / "data", split="train", key="n")
    (tmp_path / "data" / KEYS_FILE).unlink()
    (tmp_path / "data" / KEYS_FILE).symlink_to("/dev/zero")
    *_, last = verify(tmp_path / "data")
    assert [(problem.where, problem.got) for problem in last.problems] == [
        (str(tmp_path / "data" / KEYS_FILE), "no file")
    ]
