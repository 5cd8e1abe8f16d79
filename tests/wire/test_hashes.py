"""The hash of a file is that of its bytes, however often they are read; those of values tell them apart."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from recordspec.integrity.verify import verify
from recordspec.store.manifest import KEYS_FILE
from recordspec.wire import hashes, native
from recordspec.wire.arrays import strings_array
from recordspec.wire.hashes import HashedFile, of_parts, of_strings


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
    rs.write([{"n": 1}], schema, tmp_path / "data", split="train", key="n")
    (tmp_path / "data" / KEYS_FILE).unlink()
    (tmp_path / "data" / KEYS_FILE).symlink_to("/dev/zero")
    *_, last = verify(tmp_path / "data")
    assert [(problem.where, problem.got) for problem in last.problems] == [
        (str(tmp_path / "data" / KEYS_FILE), "no file")
    ]


@given(
    st.lists(st.binary(max_size=40) | st.integers(0, 9).map(lambda count: b"\0" * count), max_size=30),
    st.integers(1, 9),
)
def test_the_hash_of_strings_is_the_same_without_the_native_codec(strings, at_once):
    """In however small parts their words are hashed; and another for each other string."""
    expected = of_strings(strings_array(strings)).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda: None)
        patch.setattr(hashes, "_AT_ONCE", at_once)
        assert of_strings(strings_array(strings)).tolist() == expected
    assert len(set(expected)) == len(set(strings))


def test_parts_of_a_buffer_have_the_hashes_of_strings():
    """Such as records, which have other bytes between them, in any order."""
    data = np.random.default_rng(0).bytes(1000)
    starts, stops = np.array([900, 0, 50, 50]), np.array([1000, 50, 50, 117])
    parts = [data[start:stop] for start, stop in zip(starts, stops, strict=True)]
    assert (
        of_parts(np.frombuffer(data, np.uint8), starts, stops).tolist()
        == of_strings(strings_array(parts)).tolist()
    )


def test_every_bit_of_a_string_changes_half_of_its_hash():
    data = np.random.default_rng(1).bytes(29)
    bits = [int.from_bytes(data, "little") ^ (1 << bit) for bit in range(8 * len(data))]
    (whole,) = of_strings(strings_array([data]))
    changed = of_strings(strings_array([number.to_bytes(len(data), "little") for number in bits])) ^ whole
    counts = np.unpackbits(changed.view(np.uint8)).reshape(-1, 64)
    assert abs(counts.mean() - 0.5) < 0.01
    assert (counts.sum(1) > 12).all()
    assert (abs(counts.mean(0) - 0.5) < 0.2).all()
