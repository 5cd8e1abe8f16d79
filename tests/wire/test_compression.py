"""One table has the compressions: what is written with a codec is recognised, and read by TensorFlow as such."""

from __future__ import annotations

from typing import get_args

import pytest

from recordspec._tf import tf
from recordspec.wire.compression import CODECS, Compression
from recordspec.wire.file_types import FileStart, compression_of
from recordspec.wire.framing import framed


def test_every_compression_has_a_codec():
    assert tuple(CODECS) == get_args(Compression)


@pytest.mark.parametrize("compression", CODECS)
def test_what_a_codec_writes_is_recognised(tmp_path, compression):
    codec = CODECS[compression]
    path = tmp_path / f"x.tfrecord{codec.suffix}"
    compressor = codec.compressor()
    path.write_bytes(bytes(compressor.compress(framed(b"abc"))) + compressor.flush())
    assert compression_of(path) == FileStart(path).likely_compression == compression
    assert [name for name, other in CODECS.items() if other.suffix == codec.suffix] == [compression]


@pytest.mark.parametrize("compression", CODECS)
def test_tensorflow_knows_the_name(tmp_path, compression):
    path = tmp_path / "x"
    compressor = CODECS[compression].compressor()
    path.write_bytes(bytes(compressor.compress(framed(b"abc"))) + compressor.flush())
    found = tf.data.TFRecordDataset(str(path), CODECS[compression].tensorflow)
    assert [record.numpy() for record in found] == [b"abc"]
