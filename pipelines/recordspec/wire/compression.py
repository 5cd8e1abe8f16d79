"""The compressions of a TFRecord file as a whole: their names, suffixes, first bytes and parameters."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Compression = Literal["none", "gzip", "zlib"]

# zlib's own default level is 6; TensorFlow's writer uses the same.
_LEVEL = 6


class Compressor(Protocol):
    """The type of zlib.compressobj()."""

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview: ...
    def flush(self) -> bytes: ...


class _Store:
    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        return data

    def flush(self) -> bytes:
        return b""


@dataclass(frozen=True, kw_only=True)
class Codec:
    """A compression.

    Attributes:
        suffix: the suffix of a file's name, after `.tfrecord`.
        tensorflow: the name in `tf.data.TFRecordDataset`.
        wbits: zlib's parameter that selects the container; 0 without compression.
        begins: whether a file with the given first bytes, which are no frame, may be compressed this way.
        concatenated: whether consecutive streams count as one, as in TensorFlow.
    """

    suffix: str
    tensorflow: str
    wbits: int
    begins: Callable[[bytes], bool]
    concatenated: bool = False

    def compressor(self) -> Compressor:
        """Compresses a file piece by piece. Equal input gives equal bytes: there is no time and no name
        in them.
        """
        return zlib.compressobj(_LEVEL, zlib.DEFLATED, self.wbits) if self.wbits else _Store()

    def decompressor(self) -> zlib._Decompress:
        """Decompresses one stream piece by piece."""
        return zlib.decompressobj(self.wbits)


def _begins_zlib(start: bytes) -> bool:
    """Whether bytes begin with a header of RFC 1950 for a window of 32 KiB."""
    return len(start) > 1 and start[0] == 0x78 and (start[0] << 8 | start[1]) % 31 == 0


CODECS: Mapping[Compression, Codec] = {
    "none": Codec(suffix="", tensorflow="", wbits=0, begins=lambda start: not start),
    "gzip": Codec(
        suffix=".gz",
        tensorflow="GZIP",
        wbits=31,
        begins=lambda start: start.startswith(b"\x1f\x8b"),
        concatenated=True,
    ),
    "zlib": Codec(suffix=".zlib", tensorflow="ZLIB", wbits=15, begins=_begins_zlib),
}
