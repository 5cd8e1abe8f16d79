"""What some bytes are that should have been something else, in words."""

from __future__ import annotations

import unicodedata

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
# The four bytes after the size, of a RIFF file or of an ISO base media file.
_RIFFS = {b"WEBP": "a WebP image", b"WAVE": "a WAV file", b"AVI ": "an AVI video"}
_BRANDS = {b"heic": "a HEIC image", b"mif1": "a HEIF image", b"avif": "an AVIF image"}
_MARKUP = {b"<!doctype html": "an HTML page", b"<html": "an HTML page"} | {
    b"<svg": "an SVG drawing",
    b"<?xml": "an XML document",
}
_SHOWN = 24


def what_is(data: bytes) -> str:
    """`an HTML page`, `no bytes at all`, `bytes that begin ...`."""
    return recognised(data) or f"bytes that begin {data[:8]!r}"


def recognised(data: bytes) -> str | None:
    """The same, or None of bytes that look like nothing known."""
    if not data:
        return "no bytes at all"
    if not data.strip(b"\0"):
        return f"{len(data):,} zero bytes"
    if (found := _by_start(data)) is not None:
        return found
    head = data[:512].lstrip().lower()
    for start, name in _MARKUP.items():
        if head.startswith(start):
            return name
    return _text(data)


def form_of(data: bytes) -> str | None:
    """What the first bytes tell, without an article: `PNG image`, `WAV file`, `gzip data`; None of text, of
    zeros, and of what is not known.
    """
    found = _by_start(data)
    return None if found is None else found.removeprefix("a ").removeprefix("an ")


def printable(data: bytes) -> str | None:
    """UTF-8 that a person can read, as text; None of other bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(map(_is_readable, set(text))) else None


def _is_readable(letter: str) -> bool:
    """Whether it stands in texts: as a letter, or as a space, a line break or a joiner that is not seen."""
    return letter in "\n\r\t" or letter.isprintable() or unicodedata.category(letter) in _UNSEEN


_UNSEEN = ("Zs", "Zl", "Zp", "Cf")


def _by_start(data: bytes) -> str | None:
    for start, name in _STARTS.items():
        if data.startswith(start):
            return name
    if data.startswith(b"RIFF"):
        return _RIFFS.get(data[8:12], "a RIFF file")
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "a video, or another ISO media file")
    return None


def _text(data: bytes) -> str | None:
    try:
        text = data[:_SHOWN].decode("ascii")
    except UnicodeDecodeError:
        return None
    plain = all(letter.isprintable() or letter.isspace() for letter in text)
    return f"text that begins {text!r}" if plain else None


def first_bytes() -> frozenset[bytes]:
    """The first two bytes of all that may be recognised, but for text: to pass over other bytes quickly."""
    return frozenset(start[:2] for start in (*_STARTS, b"RIFF", b"\0\0"))
