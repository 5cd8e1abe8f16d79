"""WebDataset tar files: consecutive members with the same key form a row."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import PurePath
from typing import IO, Any, ClassVar

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, nearest
from recordspec.locations import Location, open_file
from recordspec.schema import values
from recordspec.schema.features import Feature
from recordspec.schema.features.feature import ValueType
from recordspec.schema.media import images, sounds
from recordspec.schema.media.array_files import array_in
from recordspec.schema.schema import Schema
from recordspec.schema.values import BadValue
from recordspec.wire.file_types import describe_type
from recordspec.writing.sources.arrow import inside
from recordspec.writing.sources.base import (
    Batches,
    FileSource,
    FilesText,
    RowPlaces,
    by_feature,
    converted,
    long_row_problem,
)
from recordspec.writing.sources.jsonl import json_value
from recordspec.writing.sources.text_cells import from_text
from recordspec.writing.sources.text_files import compression_in, decompressed, uncompressed_name

# The bytes of rows in memory at a time.
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1024
# The first bytes of xz.
_XZ = b"\xfd7zXZ\0"
# The extensions for a feature without an extension of its own name.
_USUAL = {
    "image": tuple(suffix[1:] for suffix in images.SUFFIXES),
    "audio": tuple(suffix[1:] for suffix in sounds.SUFFIXES),
    "label": ("cls",),
    "text": ("txt",),
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
# The extra name for the common key of a row's members.
KEY = "__key__"

# The members of a row by extension; the key of a row is the key of its members.
Members = dict[str, bytes]


@dataclass(frozen=True, kw_only=True)
class WebDataset(FileSource):
    """The rows of tar files, one after another. Nothing is extracted to the disk.

    The name of a member consists of its key, up to the first dot after the last slash, and an extension. The
    column `__key__` is the key of a row. A member may be compressed: `a.json.gz`, also with `.zst` and
    `.bz2`, is read as `a.json`.

    Attributes:
        files: a path or a pattern of tar files, which may be compressed, or a list of paths and patterns.
        columns: the extension of a feature, if it differs from its name; alternatives are separated by
            semicolons (`jpg;png`); `json.caption` is a value in a JSON member, `__key__` the key. By default
            an image reads any image extension, audio any audio extension, a label `cls`, and a text `txt`.
    """

    SHORT_FORM: ClassVar[str] = "files"

    files: FilesText
    columns: Mapping[str, str] = field(default_factory=dict)

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        self._checked(schema, extra)

    def _checked(self, schema: Schema, extra: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """The extensions of each name. Raises the errors of `check`."""
        known = {**schema.names, **dict.fromkeys(extra)}
        problems = [
            Problem(
                path=("columns",),
                expected=f"features of `{schema.name}`",
                got=f"`{name}`",
                hint=nearest(name, known),
            )
            for name in self.columns
            if name not in known
        ]
        if problems:
            raise SpecError(problems)
        wanted = {name: self._extensions(name, feature) for name, feature in known.items()}
        self._check_first(schema, wanted)
        return wanted

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TarPart]:
        wanted = self._checked(schema, extra)
        for path, after in zip(self.paths, (*self.paths[1:], None), strict=True):
            yield TarPart(path=path, after=after, wanted=wanted)

    def _check_first(self, schema: Schema, wanted: Mapping[str, tuple[str, ...]]) -> None:
        """Raises SpecError for features that the first row lacks; logs a note for a feature with a
        default.
        """
        path = self.paths[0]
        key, members, _ = next(_rows(path), (None, Members(), 0))
        problems = []
        for name, feature in schema.names.items():
            if key is None or KEY in wanted[name] or _found(members, wanted[name]) is not None:
                continue
            expected, got = f"a member .{' or .'.join(wanted[name][:3])} of `{key}`", ", ".join(members)
            if feature.traits.optional:
                self.notes.append(f"{name}: {key} has no member for it, only {got}")
            else:
                hint = "`columns` of the source names the extension"
                problems.append(Problem(where=str(path), path=(name,), expected=expected, got=got, hint=hint))
        if problems:
            raise SpecError(problems)

    def _extensions(self, name: str, feature: Feature | None) -> tuple[str, ...]:
        if name in self.columns:
            return tuple(self.columns[name].split(";"))
        return (name, *_USUAL.get("" if feature is None else feature.kind, ()))


@dataclass(frozen=True, kw_only=True)
class TarPart:
    """The rows of a tar file.

    Attributes:
        path: the path of the tar file.
        after: the next tar file, if any, which must not continue the last row.
        wanted: the extensions of each feature and each extra name; the first one that a row has is used.
    """

    path: Location
    after: Location | None
    wanted: Mapping[str, tuple[str, ...]]

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        some: list[tuple[str, Members]] = []
        size = 0
        for key, members, row_size in _rows(self.path, self.after):
            is_long = row_size > values.LONGEST_ROW
            if not is_long:
                some.append((key, members))
                size += row_size
            if is_long or size >= _BATCH_BYTES or len(some) == _BATCH_ROWS:
                yield from converted(len(some), partial(self._columns, schema, some))
                some, size = [], 0
            if is_long:
                yield RecordError(long_row_problem(row_size), 0)
        yield from converted(len(some), partial(self._columns, schema, some))

    def place(self, row: int) -> str:
        return f"{self.path}: {self._places.of(row)}"

    @cached_property
    def _places(self) -> RowPlaces[str]:
        return RowPlaces(self._keys)

    def _keys(self) -> Iterator[str]:
        return (key for key, _, _ in _rows(self.path, read=False))

    def _columns(
        self, schema: Schema, rows: list[tuple[str, Members]], start: int, stop: int
    ) -> dict[str, Any]:
        def column(name: str) -> Any:
            if KEY in self.wanted[name]:
                keys = [key for key, _ in rows[start:stop]]
                return _values([(KEY, key.encode(), ()) for key in keys], schema.names.get(name), self.path)
            members_found = [_found(members, self.wanted[name]) for _, members in rows[start:stop]]
            return _values(members_found, schema.names.get(name), self.path)

        return by_feature(self.wanted, column)


# A member of a row: its extension, its bytes, and the names that lead to a value in its JSON.
_Member = tuple[str, bytes, tuple[str, ...]]


def _found(members: Members, extensions: tuple[str, ...]) -> _Member | None:
    """The first of the given extensions that a row has."""
    for extension in extensions:
        if extension in members:
            return extension, members[extension], ()
        outer, json_, names = extension.partition("json.")
        if json_ and f"{outer}json" in members:
            return f"{outer}json", members[f"{outer}json"], tuple(names.split("."))
    return None


def _values(members: list[_Member | None], feature: Feature | None, path: Location) -> Any:
    """The values of members, as a column for a feature. Raises BadValue.

    Paths of images and audio in JSON are relative to the tar file's folder, and may not leave it.
    """
    kind = ValueType() if feature is None else feature.value_type
    item = kind.item if kind.shape == () and kind.item in ("media", "text") else ""
    values = [None if member is None else _value(row, *member, item) for row, member in enumerate(members)]
    texts = [value for value in values if isinstance(value, bytes)]
    if item == "media":
        return inside(values, path.parent)
    if item or not texts:
        return values
    try:
        cells = [value.decode().strip() if isinstance(value, bytes) else None for value in values]
    except UnicodeDecodeError:
        row = next(
            row for row, value in enumerate(values) if isinstance(value, bytes) and not _is_text(value)
        )
        raise BadValue(row, "UTF-8 text", "other bytes") from None
    if feature is None:
        return [value if cell is None else cell for cell, value in zip(cells, values, strict=True)]
    if len(texts) + values.count(None) == len(values):
        return from_text(arrow().array(cells, arrow().large_string()), feature, path.parent)
    row = next(row for row, cell in enumerate(cells) if cell is not None)
    raise BadValue(row, "a member of one sort in all rows", "text beside JSON or arrays")


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _value(row: int, extension: str, data: bytes, names: tuple[str, ...], item: str) -> Any:
    """Decodes a value of JSON or an array. Otherwise returns the bytes, for a feature of one text or
    image (`item`).
    """
    sort = extension.rpartition(".")[2]
    if sort == "npy" and item != "text":
        return array_in(row, data)
    if not names and (item or sort != "json"):
        return data
    try:
        value = json_value(data)
    except RecordError as error:
        (problem,) = error.problems
        raise BadValue(row, problem.expected, problem.got, problem.hint) from None
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _rows(
    path: Location, after: Location | None = None, *, read: bool = True
) -> Iterator[tuple[str, Members, int]]:
    """The rows of a tar file: the key of each, its members, and their size in bytes. The members are empty
    without `read`, and if they are longer than `values.LONGEST_ROW`.

    Raises RecordError for a corrupt tar file, and for a row whose members are not consecutive.
    """
    key, members, size = "", Members(), 0
    seen: set[str] = set()
    for name, extension, member, tar in _members(path):
        if name != key:
            if members:
                yield key, members, size
            if name in seen:
                raise _wrong(path, "consecutive members for each key", f"`{name}` again")
            seen.add(name)
            key, members, size = name, {}, 0
        if extension in members:
            raise _wrong(path, "every extension of a key once", f"`{name}.{extension}` again")
        is_read = read and size + member.size <= values.LONGEST_ROW
        members[extension] = _content(path, member, tar) if is_read else b""
        size += max(member.size, len(members[extension]))
        if size > values.LONGEST_ROW:
            members = dict.fromkeys(members, b"")
    if after is not None and members:
        other, rest, _ = next(_rows(after, read=False), ("", Members(), 0))
        if other == key and members.keys().isdisjoint(rest):
            raise _wrong(path, f"all members of `{key}` in one tar", f"others in {after}")
    if members:
        yield key, members, size


class _Header(tarfile.TarInfo):
    """A header. The end of a tar file, two blocks of zeros, is recorded in the tar object."""

    @classmethod
    def fromtarfile(cls, tarfile: Any) -> Any:
        try:
            return super().fromtarfile(tarfile)
        except Exception as error:
            tarfile.is_whole = type(error).__name__ == "EOFHeaderError"
            raise


def _tar_of(file: IO[bytes]) -> tarfile.TarFile:
    """The tar of an open file, read sequentially.

    A stream of tarfile would end at the first member of gzip, or the first stream of bzip2 or xz.
    """
    compression, start = compression_in(file), file.read(len(_XZ))
    file.seek(0)
    plain: Any = decompressed(file, compression) if compression else file
    return tarfile.open(fileobj=lzma.LZMAFile(file) if start == _XZ else plain, mode="r|", tarinfo=_Header)


def _members(path: Location) -> Iterator[tuple[str, str, tarfile.TarInfo, tarfile.TarFile]]:
    """The key and the extension of each file in a tar file, which is read sequentially, and the file itself,
    which must be read before the next file.
    """
    with (
        open_file(path) as file,
        _whole_tar(path),
        _tar_of(file) as tar,
    ):
        for member in tar:
            tar.__dict__["members"].clear()  # tarfile would keep all members
            folder, slash, name = member.name.rpartition("/")
            key, _, extension = name.partition(".")
            if member.isdir() or not key or name.startswith("__"):
                continue  # `._a.jpg` of macOS, `__info__`
            if not member.isfile():
                raise _wrong(path, f"a file `{member.name}`", "a link or a device")
            yield f"{folder}{slash}{key}", uncompressed_name(extension.lower()), member, tar
        if not getattr(tar, "is_whole", False):
            raise _wrong(path, "a whole tar", "one without its end")


def _content(path: Location, member: tarfile.TarInfo, tar: tarfile.TarFile) -> bytes:
    """The decompressed bytes of a member: at most one more than the largest size of a row."""
    with _whole_tar(path):
        content = tar.extractfile(member)
        assert content is not None
        data = content.read()
    form = _COMPRESSIONS.get(PurePath(member.name).suffix.lower(), "")
    if not form or "." not in uncompressed_name(PurePath(member.name).name):
        return data
    source = arrow().CompressedInputStream(arrow().BufferReader(data), form)
    try:
        plain: bytes = source.read(values.LONGEST_ROW + 1)
    except (OSError, arrow().ArrowException):
        raise _wrong(path, f"a whole {form} member `{member.name}`", describe_type(data)) from None
    return plain


@contextmanager
def _whole_tar(path: Location) -> Iterator[None]:
    """Raises RecordError for a corrupt tar file."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise _wrong(path, "a whole tar", str(error)) from None


def _wrong(path: Location, expected: str, got: str) -> RecordError:
    return RecordError(Problem(where=str(path), expected=expected, got=got))
