"""The rows of a JSON document: its list of objects, or such a list under a name, read piece by piece."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from recordspec.errors import Problem, RecordError, nearest
from recordspec.locations import Location, open_file
from recordspec.schema import values
from recordspec.writing.sources.ranges import RowPiece
from recordspec.writing.sources.text_files import TextStream

_BLOCK = 1 << 20
_PIECE_BYTES = 4 << 20
# An error so close to the end of the text that was read may only be the end of that text.
_EDGE = 16
_WHITE = " \t\r\n"


@dataclass(frozen=True)
class JsonArray:
    """The objects of a list, as lines that are numbered from 0.

    Attributes:
        records: the name of the list in the object of the file; "" if the file is a list.
    """

    records: str = ""

    start: ClassVar[int] = 0

    def pieces(self, path: Location, encoding: str = "utf-8") -> Iterator[RowPiece]:
        """The objects in pieces. Raises StoreError; RecordError for a file that is no such document."""
        with open_file(path) as file:
            document = _Text(TextStream(file, encoding), path)
            others = self._enter(document)
            first, size = 0, 0
            lines: list[bytes] = []
            for row, (line, too_long) in enumerate(document.items()):
                if too_long:
                    if lines:
                        yield RowPiece(first, b"\n".join(lines))
                    yield RowPiece(row, b"", too_long)
                    first, lines, size = row + 1, [], 0
                else:
                    lines.append(line)
                    size += len(line)
                if size >= _PIECE_BYTES:
                    yield RowPiece(first, b"\n".join(lines))
                    first, lines, size = row + 1, [], 0
            if lines:
                yield RowPiece(first, b"\n".join(lines))
            for name in others:
                if name == self.records:
                    document.refuse(f"one list `{name}`", "another one")
                document.skip()
            document.end()

    def _enter(self, document: _Text) -> Iterator[str]:
        """Moves to the first item of the list. Returns the names in the object after the list."""
        if not self.records:
            hint = "`records` of the source names the list in an object"
            document.expect("[", "a list of objects", hint if document.peek() == "{" else "")
            return iter(())
        document.expect("{", "an object with the list", "without `records`, the source reads a list")
        names, known = document.names(), []
        for name in names:
            if name == self.records:
                document.expect("[", f"a list `{name}`")
                return names
            known.append(name)
            document.skip()
        raise document.refusal(f"a list `{self.records}`", "none", nearest(self.records, known))


def records_in(path: Location) -> tuple[str, ...] | None:
    """The names of the lists of objects in a document; none for a document that is such a list; None for
    another document, and for text that is no JSON.
    """
    found = []
    try:
        with open_file(path) as file:
            document = _Text(TextStream(file), path)
            if document.peek() == "[":
                document.expect("[", "")
                return () if document.peek() == "{" else None
            document.expect("{", "an object")
            for name in document.names():
                if document.begins_with_objects():
                    found.append(name)
                document.skip()
            if document.peek():
                return None  # lines of objects
    except RecordError:
        return None
    return tuple(found) or None


class _Text:
    """The text of a document, of which only the next values are in memory."""

    def __init__(self, stream: TextStream, path: Location) -> None:
        self._stream, self._path = stream, path
        # invalid UTF-8 is reported with its row
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text, self._place = "", 0
        self._ended = False
        self._row = -1

    def peek(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            while self._place < len(self._text) and self._text[self._place] in _WHITE:
                self._place += 1
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def expect(self, character: str, expected: str, hint: str = "") -> None:
        """Moves behind the next character. Raises RecordError for another character."""
        if self.peek() != character:
            self.refuse(expected, self._next(), hint)
        self._place += 1

    def names(self) -> Iterator[str]:
        """The names of an object; the caller moves behind each value. Moves behind the object."""
        while self.peek() != "}":
            start = self._value()
            name = json.loads(self._text[start : self._place])
            if not isinstance(name, str):
                self.refuse("the name of a value", f"`{name}`")
            self.expect(":", f"a value of `{name}`")
            yield name
            if self.peek() != "}":
                self.expect(",", "`,` or the end of the object")
        self._place += 1

    def items(self) -> Iterator[tuple[bytes, int]]:
        """The items of a list, each on one line; of an item that is too long, its size. Moves behind the
        list.
        """
        self._row = 0
        while self.peek() != "]":
            start = self._value()
            text = self._text[start : self._place]
            # a string has no line breaks
            line = text.replace("\n", " ").replace("\r", " ").encode("utf-8", "surrogateescape")
            too_long = len(line) > values.LONGEST_ROW
            yield b"" if too_long else line, len(line) * too_long
            self._row += 1
            if self.peek() != "]":
                self.expect(",", "`,` or the end of the list")
        self._place, self._row = self._place + 1, -1

    def end(self) -> None:
        """Raises RecordError if the file does not end here."""
        if self.peek():
            self.refuse("the end of the file", self._next())

    def begins_with_objects(self) -> bool:
        """Whether the next value is a list whose first item is an object."""
        if self.peek() != "[":
            return False
        place = self._place + 1
        while place < len(self._text) and self._text[place] in _WHITE:
            place += 1
        return self._text[place : place + 1] == "{"

    def skip(self) -> None:
        """Moves behind the next value."""
        self._value()

    def refuse(self, expected: str, got: str, hint: str = "") -> None:
        """Raises RecordError."""
        raise self.refusal(expected, got, hint)

    def refusal(self, expected: str, got: str, hint: str = "") -> RecordError:
        """The error of other text than expected, or of a file that cannot be decompressed."""
        if self._stream.fault is not None:
            return self._stream.fault_at(self._path, 1)
        where = str(self._path) if self._row < 0 else f"{self._path}: row {self._row}"
        return RecordError(Problem(where=where, expected=expected, got=got, hint=hint))

    def _next(self) -> str:
        text = self._text[self._place : self._place + 20]
        return f"`{text}`" if text else "the end of the file"

    def _value(self) -> int:
        """Moves behind the next value. Returns the place of its start."""
        if not self.peek():
            self.refuse("JSON", "the end of the file")
        while True:
            try:
                _, end = _DECODER.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                is_edge = error.pos >= len(self._text) - _EDGE or error.msg.startswith("Unterminated")
                if not (is_edge and self._more()):
                    hint = error.msg[:1].lower() + error.msg[1:]
                    self.refuse("JSON", f"`{self._text[self._place : self._place + 20]}`", hint)
            except (RecursionError, ValueError):
                self.refuse("JSON", "lists in lists without end, or a number of thousands of digits")
            else:
                if end < len(self._text) or not self._more():
                    start, self._place = self._place, end
                    return start

    def _more(self) -> bool:
        """Reads as much text again as there is from the place; false at the end."""
        if self._ended:
            return False
        rest = self._text[self._place :]
        if len(rest) > 2 * values.LONGEST_ROW:
            self.refuse(f"a value of at most {values.LONGEST_ROW:,} bytes", "a longer one")
        data = self._stream.read(max(_BLOCK, len(rest)))
        self._ended = not data
        self._text, self._place = rest + self._decoder.decode(data, self._ended), 0
        return bool(data)


_DECODER = json.JSONDecoder()
