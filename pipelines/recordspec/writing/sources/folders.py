"""A folder of images, audio files or arrays, with one subfolder per class."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, ClassVar, Literal

from recordspec import remote
from recordspec.errors import Problem, SpecError, State, StoreError, system_problem
from recordspec.locations import Location, LocationText, location, relative
from recordspec.remote import RemotePath
from recordspec.schema.media import array_files, images, sounds
from recordspec.schema.options import to_builtins
from recordspec.schema.schema import Schema
from recordspec.writing.sources.base import Batches, Columns, FileSource, identity_of, size_ranges

# The number of suffixes of ignored files that a note lists.
_MOST_SUFFIXES = 5


# The subfolder that names the class of a file.
ClassFolders = Literal["first", "last", "path"]


class MediaFolder(FileSource):
    """The files below a folder, in the order of their paths. Its subfolders are named after classes.

    Each file has three columns: its content, its class, and `path`, its path below the folder, which is a
    good key. A note lists files with other suffixes.

    Attributes:
        folder: the folder.
        label: the feature that gets the name of the subfolder; null if there are no classes.
        classes: the subfolder that names the class of a file, if they are nested: the `first`, the `last`, or
            all as a `path` such as `cats/siamese`.
        WHAT: the name of the files in messages.
        FEATURE: the option that names the feature of the files.
        SUFFIXES: the suffixes of the files.
    """

    SHORT_FORM: ClassVar[str] = "folder"
    RENAMED: ClassVar[Mapping[str, str]] = {"path": "folder"}
    WHAT: ClassVar[str]
    FEATURE: ClassVar[str]
    SUFFIXES: ClassVar[Collection[str]]

    folder: LocationText
    label: str | None
    classes: ClassFolders

    @cached_property
    def paths(self) -> tuple[Location, ...]:
        return (location(self.folder),)

    @property
    def feature(self) -> str:
        """The name of the feature that takes the file."""
        return str(getattr(self, self.FEATURE))

    @cached_property
    def files(self) -> list[Location]:
        """All files. Raises StoreError if the folder does not exist or cannot be listed."""
        (folder,) = self.paths
        links: list[Location] = []
        below = files_below(folder, links)
        files = [file for file in below if file.suffix.lower() in self.SUFFIXES]
        others = [file for file in below if file.suffix.lower() not in self.SUFFIXES]
        if others:
            examples = {file.suffix: relative(file, folder) for file in reversed(others)}
            suffixes = Counter(file.suffix for file in others).most_common(_MOST_SUFFIXES)
            shown = [
                f"{count:,} of {suffix or 'no suffix'} ({examples[suffix]})" for suffix, count in suffixes
            ]
            if len(examples) > _MOST_SUFFIXES:
                shown.append(f"and of {len(examples) - _MOST_SUFFIXES:,} other suffixes")
            self.notes.append(f"files that are not {self.WHAT}, left out: {', '.join(shown)}")
        if links:
            first = relative(links[0], folder)
            self.notes.append(f"links to folders, not followed: {len(links)}, such as {first}")
        return files

    @property
    def class_names(self) -> list[str]:
        """The sorted names of the classes of all files."""
        return sorted({name for file in self.files if (name := self.class_of(file)) is not None})

    def class_of(self, file: Location) -> str | None:
        """The name of the class of a file; None for a file in the folder itself."""
        return _class_of(relative(file, self.paths[0]), self.classes)

    @property
    def rows(self) -> int:
        return len(self.files)

    def identity(self) -> Any:
        return [identity_of(self.files), to_builtins(self)]

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        names = [self.feature] if self.label is None else [self.feature, self.label]
        hint = "the options of the source name them"
        problems = [
            Problem(path=(name,), expected="a feature for it", got="none", hint=hint)
            for name in names
            if name not in schema.names
        ]
        if problems:
            raise SpecError(problems)
        check_folder(self.paths[0])

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[FolderPart]:
        self.check(schema, extra)
        for start, stop in size_ranges([size for _, size, _ in identity_of(self.files)]):
            files = tuple(self.files[start:stop])
            yield FolderPart(
                folder=self.paths[0],
                feature=self.feature,
                label=self.label,
                classes=self.classes,
                files=files,
            )


@dataclass(frozen=True, kw_only=True)
class ImageFolder(MediaFolder):
    """A folder of images; its subfolders are named after classes.

    Attributes:
        image: the feature that gets the image.
    """

    WHAT = "images"
    FEATURE = "image"
    SUFFIXES = images.SUFFIXES

    folder: LocationText
    image: str = "image"
    label: str | None = "label"
    classes: ClassFolders = "first"


@dataclass(frozen=True, kw_only=True)
class AudioFolder(MediaFolder):
    """A folder of audio files; its subfolders are named after classes.

    Attributes:
        audio: the feature that gets the audio.
    """

    WHAT = "audio files"
    FEATURE = "audio"
    SUFFIXES = sounds.SUFFIXES

    folder: LocationText
    audio: str = "audio"
    label: str | None = "label"
    classes: ClassFolders = "first"


@dataclass(frozen=True, kw_only=True)
class TensorFolder(MediaFolder):
    """A folder of `.npy` files; its subfolders are named after classes.

    Attributes:
        tensor: the feature that gets the array.
    """

    WHAT = ".npy files"
    FEATURE = "tensor"
    SUFFIXES = array_files.SUFFIXES

    folder: LocationText
    tensor: str = "tensor"
    label: str | None = "label"
    classes: ClassFolders = "first"


@dataclass(frozen=True, kw_only=True)
class FolderPart:
    """Consecutive files of a folder.

    Each file has three columns: its content, its class, and `path`, its path below the folder.
    """

    folder: Location
    feature: str
    label: str | None
    classes: ClassFolders
    files: tuple[Location, ...]

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        yield Columns(self._values(extra), len(self.files))

    def place(self, row: int) -> str:
        return str(self.files[row])

    def _values(self, extra: tuple[str, ...]) -> dict[str, Any]:
        paths = [relative(file, self.folder) for file in self.files]
        values: dict[str, Any] = {self.feature: list(self.files)}
        if "path" in extra:
            values["path"] = [path.as_posix() for path in paths]
        if self.label is not None:
            values[self.label] = [_class_of(path, self.classes) for path in paths]
        return values


def _class_of(path: PurePath, classes: ClassFolders) -> str | None:
    """The name of the class of a file, by its path below the folder."""
    folders = path.parts[:-1]
    if not folders:
        return None
    return "/".join(folders) if classes == "path" else folders[0 if classes == "first" else -1]


def check_folder(folder: Location) -> None:
    """Raises StoreError for a path that is not a folder."""
    if not folder.is_dir():
        raise StoreError(State(where=str(folder), got="is not a folder"))


def files_below(folder: Location, links: list[Location] | None = None) -> list[Location]:
    """All files below a folder, in the order of their paths, except hidden ones.

    Args:
        links: receives the links to folders, which are not followed.

    Raises StoreError if the folder does not exist or cannot be listed.
    """
    check_folder(folder)
    unfollowed: list[Location] = []
    if isinstance(folder, RemotePath):
        found: Iterable[Location] = (path for path, _ in remote.walk(folder))
    else:
        found = _walked(folder, unfollowed)
    visible = sorted(file for file in found if not _hidden(file, folder))
    if links is not None:
        links += [link for link in unfollowed if not _hidden(link, folder)]
    return visible


def _walked(folder: Path, links: list[Location]) -> Iterator[Path]:
    """Yields all files below a folder. Appends links to folders to `links` instead of following them, since
    they may lead back.

    Raises StoreError if a folder cannot be listed.
    """

    def refuse(error: OSError) -> None:
        raise StoreError(system_problem("list", error, str(error.filename))) from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        yield from (Path(parent, name) for name in names)
        links += (path for name in folders if (path := Path(parent, name)).is_symlink())


def _hidden(file: Location, folder: Location) -> bool:
    return any(part.startswith(".") for part in relative(file, folder).parts)
