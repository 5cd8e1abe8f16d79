"""A folder of images or sounds: one subfolder a class."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from recordspec.errors import Problem, SpecError, StoreError
from recordspec.locations import PathText, local
from recordspec.spec.media import images, sounds
from recordspec.spec.schema import Schema
from recordspec.writing.sources.base import Batches, Columns, identity_of, size_ranges


@dataclass(frozen=True, kw_only=True)
class FolderColumns:
    """Which features take what a file gives.

    Attributes:
        what: the files are, in messages.
        file: the feature that takes the file.
        label: the feature that takes the name of its subfolder; None where there are no classes.
    """

    what: str
    file: str
    label: str | None

    def check(self, schema: Schema) -> None:
        """Raises SpecError where the schema has no such feature."""
        names = [self.file] if self.label is None else [self.file, self.label]
        hint = "the options of the source say which take them"
        problems = [
            Problem(path=(name,), expected="a feature for it", got="none", hint=hint)
            for name in names
            if name not in schema.names
        ]
        if problems:
            raise SpecError(problems)


class FolderRows:
    """The files below a folder, in the order of their paths. Others than of these suffixes are noted."""

    def __init__(self, path: Path, columns: FolderColumns, suffixes: Collection[str]) -> None:
        self.notes: list[str] = []
        self.paths = [path]
        self._path, self._columns = path, columns
        if not path.is_dir():
            raise StoreError(Problem(where=str(path), expected="a folder", got="none"))
        links: list[Path] = []
        files = sorted(file for file in _walk(path, links) if not _hidden(file, path))
        self._files = [file for file in files if file.suffix.lower() in suffixes]
        self.rows = len(self._files)
        if others := len(files) - self.rows:
            self.notes.append(f"{others} files with no {columns.what}'s suffix were left out")
        links = [link for link in links if not _hidden(link, path)]
        if links:
            self.notes.append(f"{len(links)} links to folders were not followed")

    def identity(self) -> Any:
        return [identity_of(self._files), vars(self._columns)]

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[FolderPart]:
        self._columns.check(schema)
        for start, stop in size_ranges([size for _, size, _ in identity_of(self._files)]):
            yield FolderPart(folder=self._path, columns=self._columns, files=tuple(self._files[start:stop]))


@dataclass(frozen=True, kw_only=True)
class FolderPart:
    """Files that follow each other.

    Each gives three columns: its own, its class, and `path`, its path below the folder.
    """

    folder: Path
    columns: FolderColumns
    files: tuple[Path, ...]

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        yield Columns(self._values(extra), len(self.files))

    def place(self, row: int) -> str:
        return str(self.files[row])

    def _values(self, extra: tuple[str, ...]) -> dict[str, Any]:
        paths = [file.relative_to(self.folder) for file in self.files]
        values: dict[str, Any] = {self.columns.file: list(self.files)}
        if "path" in extra:
            values["path"] = [path.as_posix() for path in paths]
        if self.columns.label is not None:
            values[self.columns.label] = [path.parts[0] if len(path.parts) > 1 else None for path in paths]
        return values


def _walk(folder: Path, links: list[Path]) -> Iterator[Path]:
    """All files below a folder; links to folders, which may lead back, are put into a list.

    Raises StoreError where one cannot be listed: a class would be missing.
    """

    def refuse(error: OSError) -> None:
        raise StoreError(
            Problem(where=str(error.filename), expected="a folder to list", got=error.strerror or "none")
        )

    for parent, folders, names in os.walk(folder, onerror=refuse):
        yield from (Path(parent, name) for name in names)
        links += (path for name in folders if (path := Path(parent, name)).is_symlink())


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


@dataclass(frozen=True, kw_only=True)
class ImageFolder:
    """A folder whose subfolders are named after classes and hold images of them.

    Each image gives three columns: its own, its class, and `path`, its path below the folder, which
    makes a good key.

    Attributes:
        path: of the folder.
        image: the feature that takes the image.
        label: the feature that takes the name of its subfolder; null where there are no classes.
    """

    SHORT_FORM: ClassVar[str] = "path"

    path: PathText
    image: str = "image"
    label: str | None = "label"

    def open(self, folder: Path) -> FolderRows:
        """Its rows; a relative path starts at `folder`."""
        columns = FolderColumns(what="image", file=self.image, label=self.label)
        return FolderRows(Path(os.path.normpath(folder / local(self.path))), columns, images.SUFFIXES)


@dataclass(frozen=True, kw_only=True)
class AudioFolder:
    """A folder whose subfolders are named after classes and hold sounds of them.

    Each sound gives three columns: its own, its class, and `path`, its path below the folder, which
    makes a good key.

    Attributes:
        path: of the folder.
        audio: the feature that takes the sound.
        label: the feature that takes the name of its subfolder; null where there are no classes.
    """

    SHORT_FORM: ClassVar[str] = "path"

    path: PathText
    audio: str = "audio"
    label: str | None = "label"

    def open(self, folder: Path) -> FolderRows:
        """Its rows; a relative path starts at `folder`."""
        columns = FolderColumns(what="sound", file=self.audio, label=self.label)
        return FolderRows(Path(os.path.normpath(folder / local(self.path))), columns, sounds.SUFFIXES)
