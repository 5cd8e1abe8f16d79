"""One table has the compressions: what is written with a codec is recognised, and read by TensorFlow as such."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

from recordspec._tf import tf
from recordspec.wire.compression import CODECS, PIECE, Compression, inflated
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


def _compressed(compression: Compression, data: bytes, most: int) -> tuple[bytes, list[int]]:
    """The file of `data`, given to the compressor in parts, and its restart points."""
    compressor = CODECS[compression].compressor()
    parts = [compressor.compress(data[start : start + most]) for start in range(0, len(data), most)]
    return b"".join([*map(bytes, parts), compressor.flush()]), compressor.restarts


RNG = np.random.default_rng(0)
# the bytes that end a flush are common in the last ones
ALPHABETS = {"random": np.arange(256), "text": np.arange(97, 101), "flushes": np.array([0, 0, 255])}


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 70_000])
def test_pieces_are_decompressed_alone(compression, alphabet, size):
    data = RNG.choice(ALPHABETS[alphabet], size).astype(np.uint8).tobytes()
    stored, restarts = _compressed(compression, data, 50_021)
    assert zlib.decompress(stored, CODECS[compression].wbits) == data
    assert CODECS[compression].restarts(memoryview(stored)) == restarts
    pieces = [data[start : start + PIECE] for start in range(0, size, PIECE)]
    bounds = pairwise([*restarts, len(stored)])
    found = [inflated(stored[slice(*bound)], len(piece)) for bound, piece in zip(bounds, pieces, strict=True)]
    assert found == pieces


def test_other_files_have_no_restart_points():
    data = RNG.choice(ALPHABETS["text"], 3 * PIECE).astype(np.uint8).tobytes()
    stored, restarts = _compressed("gzip", data, PIECE)
    codec = CODECS["gzip"]
    assert len(restarts) == 3
    for other in (gzip.compress(data), stored + stored, stored + b"x", stored[:-1], stored[: restarts[2]]):
        assert codec.restarts(memoryview(other)) is None
    for place in RNG.integers(0, len(stored), 60).tolist():
        damaged = stored[:place] + bytes([stored[place] ^ 1 << place % 8]) + stored[place + 1 :]
        found = codec.restarts(memoryview(damaged))  # what the CRCs of records tell is not told here
        assert found is None or set(found) <= set(restarts) or found == restarts
    with pytest.raises(zlib.error):
        inflated(stored[restarts[1] : restarts[2]], PIECE + 1)
    assert _compressed("none", data, PIECE) == (data, None)
