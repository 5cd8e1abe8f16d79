"""Text files as UTF-8: compressed or not, and in any encoding that Python supports."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import zlib
from functools import lru_cache
from typing import IO, Any

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError
from recordspec.locations import Location

BOM = b"\xef\xbb\xbf"
# The expected value in messages for a file with the default encoding.
UTF8 = "UTF-8 text"
# The suffixes of compressed files.
COMPRESSED = (".gz", ".zst", ".bz2")

# The first bytes of compressed files; no text begins with them.
_STARTS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_STARTS |= {b"BZh%d1AY&SY" % level: "bz2" for level in range(1, 10)}
_MOST_START = 16
# Bytes that are decompressed and decoded at a time.
_BLOCK = 256 << 10


def uncompressed_name(name: str) -> str:
    """The name of a file without the suffix of a compression."""
    return next((name.removesuffix(suffix) for suffix in COMPRESSED if name.endswith(suffix)), name)


def compression_in(file: IO[bytes]) -> str:
    """The compression of an open file, by its first bytes: gzip, zstd or bz2; "" for none. Leaves the
    file at its start.
    """
    start = file.read(_MOST_START)
    file.seek(0)
    return next((name for first, name in _STARTS.items() if start.startswith(first)), "")


def decompressed(file: IO[bytes], compression: str) -> Any:
    """The decompressed bytes of an open file, whose members, streams or frames follow one another."""
    if compression == "bz2":  # pyarrow refuses a stream without data
        return io.BufferedReader(_Bzip2(file))
    pyarrow = arrow()
    # given the mode, pyarrow does not ask the file whether it is readable
    stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), compression)
    return _Gzip(file, stream) if compression == "gzip" else stream


class _Gzip:
    """The decompressed bytes of members of gzip, which pyarrow reads faster than the module `gzip`. Zeros
    behind a member, which gzip ignores, are an error of pyarrow: the module then reads the rest.
    """

    def __init__(self, file: IO[bytes], stream: Any) -> None:
        self._file, self._stream, self._taken = file, stream, 0
        self._padded: gzip.GzipFile | None = None
        self._error: OSError | None = None

    def read(self, size: int) -> bytes:
        if self._error is None:
            try:
                data: bytes = self._stream.read(size)
            except OSError as error:
                if error.errno is not None:  # reading fails, whatever the file contains
                    raise
                self._error = error
            else:
                self._taken += len(data)
                return data
        try:
            if self._padded is None:
                self._file.seek(0)
                self._padded = gzip.GzipFile(fileobj=self._file)
                self._padded.seek(self._taken)
            return self._padded.read(size)
        except (OSError, EOFError, zlib.error):
            raise self._error from None


class _Bzip2(io.RawIOBase):
    """The decompressed bytes of streams of bzip2 that follow one another. Raises OSError for other bytes
    after a stream, which `bz2.BZ2File` ignores, and EOFError for a stream that is cut off.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._decompressor = file, bz2.BZ2Decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            data = b""
            if self._decompressor.eof:
                data = self._decompressor.unused_data or self._file.read(_BLOCK)
                if not data:
                    return 0
                self._decompressor = bz2.BZ2Decompressor()
            elif self._decompressor.needs_input:
                data = self._file.read(_BLOCK)
                if not data:
                    raise EOFError("the file ends within a stream of bzip2")
            if made := self._decompressor.decompress(data, len(buffer)):
                buffer[: len(made)] = made
                return len(made)


def is_divisible(file: IO[bytes], encoding: str) -> bool:
    """Whether the bytes of line breaks, quotes and delimiters in an open file always stand for these
    characters.
    """
    return is_byte_encoding(encoding) and not compression_in(file)


def encoding_problem(encoding: str) -> Problem | None:
    """The problem of an unknown text encoding; None for a known encoding."""
    try:
        if codecs.lookup(encoding)._is_text_encoding:
            return None
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        pass
    hint = "such as utf-8, utf-16, windows-1252, latin-1"
    return Problem(expected="an encoding that Python knows", got=f"`{encoding}`", hint=hint)


def is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


@lru_cache
def is_byte_encoding(encoding: str) -> bool:
    """Whether each ASCII byte always stands for its ASCII character: true for UTF-8, and for encodings
    with one byte per character.
    """
    return is_utf8(encoding) or all(_is_character(encoding, byte) for byte in range(256))


def _is_character(encoding: str, byte: int) -> bool:
    """Whether a byte is a character by itself (for ASCII, that of ASCII), or no character at all."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(bytes([byte]))
    except UnicodeError:
        return byte >= 128
    return text == chr(byte) if byte < 128 else len(text) == 1


def encoding_error(encoding: str, error: UnicodeError) -> Problem:
    """The problem of bytes that are invalid in an encoding."""
    got = str(error)
    if isinstance(error, UnicodeDecodeError):
        wrong = error.object[error.start : max(error.end, error.start + 1)]
        got = f"the byte{'s' * (len(wrong) > 1)} {' '.join(f'0x{byte:02x}' for byte in wrong)}"
    return Problem(expected=UTF8 if is_utf8(encoding) else f"{encoding} text", got=got)


class TextStream:
    """The text of an open file, from its start, decompressed and as UTF-8 without a BOM.

    Attributes:
        fault: the reason why the text ends before the file, if it does.
    """

    def __init__(self, file: IO[bytes], encoding: str = "utf-8") -> None:
        self._compression = compression_in(file)
        self._file: Any = file
        if self._compression:
            self._file = decompressed(file, self._compression)
        self._encoding = encoding
        self._decoder = None if is_utf8(encoding) else codecs.getincrementaldecoder(encoding)()
        self._ended = False
        self.fault: Problem | None = None
        self._ready = self._filled(b"", len(BOM)).removeprefix(BOM)

    def read(self, size: int) -> bytes:
        """The next bytes; fewer than `size` only at the end."""
        data = self._filled(self._ready, size)
        self._ready = data[size:]
        return data[:size]

    def fault_at(self, path: Location, line: int) -> RecordError:
        """The error of the fault. For an invalid encoding, it names the line on which the text ends."""
        assert self.fault is not None
        # for corrupt compressed bytes, the bytes before the fault are lost
        is_in_text = self.fault.expected.endswith(" text")
        return RecordError(self.fault.at(f"{path}:{line}" if is_in_text else str(path)))

    def _filled(self, data: bytes, size: int) -> bytes:
        """Reads until there are at least `size` bytes, including the given `data`; fewer at the end."""
        pieces, length = [data], len(data)
        while length < size and not self._ended:
            pieces.append(self._decoded(self._uncompressed()))
            length += len(pieces[-1])
        return b"".join(pieces) if len(pieces) > 1 else data

    def _uncompressed(self) -> bytes:
        try:
            data: bytes = self._file.read(_BLOCK)
        except (OSError, EOFError) as error:
            if (
                getattr(error, "errno", None) is not None or not self._compression
            ):  # reading fails, whatever the file contains
                raise
            self._ended = True
            whole = f"a whole {self._compression} file"
            if isinstance(error, EOFError) or "runcated" in str(error):
                self.fault = Problem(expected=whole, got="a part of one")
            else:
                self.fault = Problem(expected=whole, got="other bytes", hint=str(error))
            return b""
        self._ended = not data
        return data

    def _decoded(self, data: bytes) -> bytes:
        if self._decoder is None:
            return data
        state = self._decoder.getstate()
        try:
            text = self._decoder.decode(data, self._ended and self.fault is None)
        except UnicodeError:
            self._decoder.setstate(state)
            text = self._decoded_to_fault(data)
        return text.encode("utf-8", "surrogatepass")

    def _decoded_to_fault(self, data: bytes) -> str:
        """Decodes the text before the first bytes that are invalid in the encoding."""
        assert self._decoder is not None
        characters = []
        try:
            for byte in data:
                characters.append(self._decoder.decode(bytes([byte])))
            self._decoder.decode(b"", True)
        except UnicodeError as error:
            self._ended, self.fault = True, encoding_error(self._encoding, error)
        return "".join(characters)
