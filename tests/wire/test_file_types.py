"""Files that are no TFRecord files are named by their first bytes."""

from __future__ import annotations

import pytest

from recordspec import RecordError
from recordspec.wire import file_types, tfrecord

pytestmark = pytest.mark.usefixtures("codec")


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"<!DOCTYPE html><html>", "an HTML page"),
        (b"version https://git-lfs", "a Git LFS pointer (run git lfs pull)"),
    ],
)
def test_what_is_no_tfrecord_is_said_to_be_none(tmp_path, data, got):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(RecordError) as caught:
        tfrecord.count(path)
    assert str(caught.value) == f"{path}: expected a TFRecord file, got {got}"


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"PAR1\x15\x04\x15\x10\x15\x14L\x15", "a Parquet file"),
        (b"PK\x03\x04\x14\0\0\0\x08\0\0\0", "a ZIP archive"),
        (b"\x28\xb5\x2f\xfd\x04\x00\x91\x00\x00abc", "Zstandard data"),
        (b"00001.jpg".ljust(257, b"\0") + b"ustar", "a tar archive"),
        (bytes(100), "bytes that begin with zeros"),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", r"bytes that begin b'\x01\x02\x03\x04\x05\x06\x07\x08'"),
    ],
)
def test_well_known_files_are_named(tmp_path, data, got):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(RecordError) as caught:
        file_types.compression_of(path)
    assert str(caught.value) == f"{path}: expected a TFRecord file, got {got}"
