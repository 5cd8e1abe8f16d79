"""Identifies files by their first bytes: TFRecord files, compressed or not, and thirty other types."""

from __future__ import annotations

import codecs
import unicodedata

from recordspec.errors import Problem, RecordError
from recordspec.locations import Location, read_start
from recordspec.wire.compression import CODECS, Compression
from recordspec.wire.framing import HEADER_BYTES, length_in
from recordspec.wire.streams import Readable, inflate_start, may_inflate

_START = 512  # bytes that identify a file
_EXPECTED = "a TFRecord file"

_STARTS = {
    b"\x89PNG\r\n\x1a\n": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"BM": "a BMP image",
    b"II*\0": "a TIFF image",
    b"MM\0*": "a TIFF image",
    b"fLaC": "a FLAC file",
    b"OggS": "an Ogg file",
    b"ID3": "an MP3 file",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "gzip data",
    b"BZh": "bzip2 data",
    b"\xfd7zXZ\0": "xz data",
    b"\x28\xb5\x2f\xfd": "Zstandard data",
    b"\xff\x06\0\0sNaPpY": "Snappy data",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"Obj\x01": "an Avro file",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy file",
    b"SQLite format 3": "an SQLite database",
    b"version https://git-lfs": "a Git LFS pointer (run git lfs pull)",
}
# Without ID3 metadata, an MP3 file begins with a frame of MPEG audio, layer III. Its header has few constant
# bits, so that LAME's tag is required as well: in the first frame, after 9 to 32 bytes of side information.
_MP3_FRAMES = (b"\xff\xe2", b"\xff\xe3", b"\xff\xf2", b"\xff\xf3", b"\xff\xfa", b"\xff\xfb")
_MP3_TAGS = (b"Xing", b"Info")
# The four bytes after the size, in a RIFF file, an IFF file or an ISO base media file.
_RIFFS = {b"WEBP": "a WebP image", b"WAVE": "a WAV file", b"AVI ": "an AVI video"}
_FORMS = {b"AIFF": "an AIFF file", b"AIFC": "an AIFF file"}
_BRANDS = {b"heic": "a HEIC image", b"mif1": "a HEIF image", b"avif": "an AVIF image"}
_MARKUP = {b"<!doctype html": "an HTML page", b"<html": "an HTML page"} | {
    b"<svg": "an SVG drawing",
    b"<?xml": "an XML document",
}
# Text files, which are not distinguished by their first bytes.
_SUFFIXES = {".csv": "a CSV file", ".tsv": "a file of tab-separated values", ".pbtxt": "a text proto"} | {
    ".jsonl": "a JSON Lines file",
    ".ndjson": "a JSON Lines file",
}
# Files of rows, which a build reads.
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_SHOWN = 24


class FileStart:
    """The first bytes of a file that should hold records. They tell its compression, since names may be
    wrong.

    Args:
        path: the file.
        file: the opened file, at its start, where it is left. By default, the file is opened.

    Raises StoreError if it cannot be read.
    """

    def __init__(self, path: Location, file: Readable | None = None) -> None:
        self._path = path
        if file is None:
            self._bytes = read_start(path, _START)
        else:
            self._bytes = file.read(_START)
            file.seek(0)

    @property
    def compression(self) -> Compression:
        """The compression; `none` for an empty file. Raises RecordError for another type of file."""
        compression = _compression(self._bytes)
        if compression is None or (self._bytes and self.problem is not None):
            raise RecordError(self._other_type)
        return compression

    @property
    def likely_compression(self) -> Compression:
        """The compression of a file that may be corrupt; `none` for an unknown type."""
        compression = _compression(self._bytes) or "none"
        # The two magic bytes may belong to a length.
        uncompressed = compression == "none" or not may_inflate(self._bytes, CODECS[compression])
        return "none" if uncompressed else compression

    @property
    def problem(self) -> Problem | None:
        """The problem of a file of another known type; None for a TFRecord file, which may be corrupt."""
        first = _uncompressed(self._bytes)  # a compressed file without records has none
        known = first and not _begins_with_record(first) and identify(first) is not None
        return self._other_type if known else None

    @property
    def _other_type(self) -> Problem:
        is_table = self._path.suffix.lower() in _TABLES
        hint = "`recordspec infer` and `recordspec build` make TFRecords of it" if is_table else ""
        return Problem(where=str(self._path), expected=_EXPECTED, got=_got(self._bytes), hint=hint)


def compression_of(path: Location) -> Compression:
    """The compression of a TFRecord file, by its first bytes. Raises RecordError for another type of file."""
    return FileStart(path).compression


def file_type(path: Location) -> str | None:
    """The type of a file, by its first bytes, or by its name if they are text: `a TFRecord file`,
    `a PNG image`, `a CSV file`. None for other text and for unknown bytes.

    Raises StoreError if the file cannot be read.
    """
    start = read_start(path, _START)
    if _begins_with_record(_uncompressed(start)):
        return _EXPECTED if _begins_with_record(start) else f"{_EXPECTED} in {_compression(start)}"
    if printable(start) is None and (described := _by_start(start)) is not None:
        return described
    return _by_markup(start) or _SUFFIXES.get(path.suffix.lower())


def begins_with_record(path: Location) -> bool:
    """Whether a file, which may be compressed, begins with a length with a valid CRC.

    Raises StoreError if the file cannot be read.
    """
    return _begins_with_record(_uncompressed(read_start(path, _START)))


def _compression(start: bytes) -> Compression | None:
    if _begins_with_record(start):
        return "none"
    return next((name for name, codec in CODECS.items() if codec.begins(start)), None)


def _begins_with_record(start: bytes) -> bool:
    return length_in(start[:HEADER_BYTES]) is not None


def _uncompressed(start: bytes) -> bytes:
    compression = _compression(start) or "none"
    return start if compression == "none" else inflate_start(start, CODECS[compression])


def _got(start: bytes) -> str:
    compression, first = _compression(start), _uncompressed(start)
    zeros = first and not first.strip(b"\0")  # the number of zeros is unknown
    described = "bytes that begin with zeros" if zeros else describe_type(first)
    return described if compression is None else f"{compression} data of {described}"


def describe_type(data: bytes) -> str:
    """Describes bytes of an unexpected type: `an HTML page`, `bytes that begin ...`."""
    return identify(data) or f"bytes that begin {data[:8]!r}"


def identify(data: bytes) -> str | None:
    """Describes bytes like `describe_type`; None for bytes of an unknown type."""
    if not data:
        return "no bytes at all"
    if not data.strip(b"\0"):
        return f"{len(data):,} zero bytes"
    if (described := _by_start(data)) is not None:
        return described
    return _by_markup(data) or _text(data)


def type_name(data: bytes) -> str | None:
    """The type without an article: `PNG image`, `WAV file`, `gzip data`; None for text, zeros, and
    unknown types.
    """
    described = _by_start(data)
    return None if described is None else described.removeprefix("a ").removeprefix("an ")


def printable(data: bytes) -> str | None:
    """Decodes printable UTF-8; None for other bytes."""
    try:
        # detects most bytes that are not text, before all of them take memory
        codecs.getincrementaldecoder("utf-8")().decode(data[:_START])
        text = data.decode()
    except UnicodeDecodeError:
        return None
    readable = all(
        letter in "\n\r\t" or letter.isprintable() or unicodedata.category(letter) in _UNSEEN
        for letter in set(text)
    )
    return text if readable else None


# Spaces, line breaks and joiners.
_UNSEEN = ("Zs", "Zl", "Zp", "Cf")


def _by_start(data: bytes) -> str | None:
    for start, name in _STARTS.items():
        if data.startswith(start):
            return name
    if data.startswith(b"RIFF"):
        return _RIFFS.get(data[8:12], "a RIFF file")
    if data.startswith(b"FORM") and data[8:12] in _FORMS:
        return _FORMS[data[8:12]]
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "a video, or another ISO media file")
    if data[:2] in _MP3_FRAMES and any(tag in data[13:42] for tag in _MP3_TAGS):
        return "an MP3 file"
    return "a tar archive" if data[257:262] == b"ustar" else None


def _by_markup(data: bytes) -> str | None:
    head = data[:512].lstrip().lower()
    return next((name for start, name in _MARKUP.items() if head.startswith(start)), None)


def _text(data: bytes) -> str | None:
    try:
        text = data[:_SHOWN].decode("ascii")
    except UnicodeDecodeError:
        return None
    plain = all(letter.isprintable() or letter.isspace() for letter in text)
    return f"text that begins {text!r}" if plain else None


def first_bytes() -> frozenset[bytes]:
    """The first two bytes of all known types except text, to skip other bytes quickly."""
    return frozenset(start[:2] for start in (*_STARTS, *_MP3_FRAMES, b"RIFF", b"FORM", b"\0\0"))
