"""Computes the files that a loss of power leaves, from the recorded calls that changed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# The content of the files below a folder, by path relative to it; the path of a folder ends in a slash.
Tree = dict[str, bytes]


@dataclass(frozen=True)
class Call:
    """A recorded call."""

    name: str
    offset: int
    size: int
    one: str
    other: str
    data: bytes


def calls(record: bytes) -> Iterator[Call]:
    place = 0
    while place < len(record):
        end = record.index(b"\n", place)
        name, offset, size, one, other = record[place:end].decode().split("\t")
        place = end + 1 + int(size)
        yield Call(name, int(offset), int(size), one, other, record[end + 1 : place])


class Entry:
    """A file or a folder: its current state, and its possible states after a loss of power."""

    def __init__(self, *, folder: bool, data: bytes = b"") -> None:
        self.folder, self.data, self.safe = folder, data, b""
        self.names: dict[str, Entry] = {}
        # the entries of a folder since it was synchronised: its names reach the disk in order
        self.history: list[dict[str, Entry]] = [{}]

    def note(self) -> None:
        self.history.append(dict(self.names))

    def sync(self) -> None:
        self.safe, self.history = self.data, [dict(self.names)]


class Disk:
    """The files below a folder, as recorded calls change them."""

    def __init__(self, folder: Path, start: Tree) -> None:
        self._folder, self.root = str(folder), Entry(folder=True)
        for name, data in start.items():
            entry = Entry(folder=name.endswith("/"), data=data)
            self._put({f"{folder}/{name.rstrip('/')}": entry})
        for entry in self._all(self.root):
            entry.sync()

    def _all(self, entry: Entry) -> Iterator[Entry]:
        yield entry
        for one in entry.names.values():
            yield from self._all(one)

    def _at(self, path: str) -> tuple[Entry, str]:
        *folders, last = path[len(self._folder) + 1 :].split("/")
        entry = self.root
        for one in folders:
            entry = entry.names[one]
        return entry, last

    def _get(self, path: str) -> Entry:
        if path == self._folder:
            return self.root
        folder, name = self._at(path)
        return folder.names[name]

    def _put(self, entries: Mapping[str, Entry | None]) -> None:
        """Sets entries. Changes within a folder happen at once; changes in two folders happen one after the
        other."""
        folders = []
        for path, entry in entries.items():
            folder, name = self._at(path)
            folder.names.pop(name, None)
            if entry is not None:
                folder.names[name] = entry
            folders.append(folder)
        for folder in dict.fromkeys(folders):
            folder.note()

    def do(self, call: Call) -> None:
        """Applies a recorded call."""
        match call.name:
            case "create" | "mkdir":
                self._put({call.one: Entry(folder=call.name == "mkdir")})
            case "write":
                entry = self._get(call.one)
                before, after = entry.data[: call.offset], entry.data[call.offset + call.size :]
                entry.data = before + call.data + after
            case "truncate":
                self._get(call.one).data = b""
            case "sync":
                self._get(call.one).sync()
            case "remove":
                self._put({call.one: None})
            case "link":
                self._put({call.other: self._get(call.one)})
            case "rename":
                self._put({call.one: None, call.other: self._get(call.one)})
            case "exchange":
                self._put({call.one: self._get(call.other), call.other: self._get(call.one)})
            case "failed" | "mode":
                pass
            case _:
                raise ValueError(call)

    def lost(self) -> Iterator[Tree]:
        """The possible states of the files after a loss of power.

        Data that was not synchronised is cut off, or reads as zeros. Names that were not synchronised may be
        gone: in the watched folder, all names since any moment; in a folder within it, all such names or
            none.
        """
        for names in self.root.history:
            for newest in (False, True):
                for zeros in (False, True):
                    yield dict(self._found(names, newest, zeros, ""))

    def _found(
        self, names: Mapping[str, Entry], newest: bool, zeros: bool, above: str
    ) -> Iterator[tuple[str, bytes]]:
        for name, entry in sorted(names.items()):
            if entry.folder:
                yield f"{above}{name}/", b""
                now = entry.history[-1 if newest else 0]
                yield from self._found(now, newest, zeros, f"{above}{name}/")
            else:
                yield f"{above}{name}", entry.safe.ljust(len(entry.data) if zeros else 0, b"\0")
