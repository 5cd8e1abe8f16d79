"""A folder of images: one folder a class."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from recordspec.errors import Problem, SpecError, StoreError
from recordspec.spec.schema import Schema
from recordspec.writing.sources.base import Batch

# What Pillow and the usual tools write images as; other files are left out, and noted.
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")


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

    path: str
    image: str = "image"
    label: str | None = "label"

    def open(self, folder: Path) -> FolderRows:
        """Its rows; a relative path starts at `folder`."""
        return FolderRows(Path(os.path.normpath(folder / self.path)), self.image, self.label)


class FolderRows:
    """The images below a folder, in the order of their paths."""

    def __init__(self, path: Path, image: str, label: str | None) -> None:
        self.notes: list[str] = []
        self._path, self._image, self._label = path, image, label
        if not path.is_dir():
            raise StoreError(Problem(where=str(path), expected="a folder", got="none"))
        files = sorted(file for file in _walk(path) if not _hidden(file, path))
        self._files = [file for file in files if file.suffix.lower() in SUFFIXES]
        self.rows = len(self._files)
        others = len(files) - self.rows
        if others:
            self.notes.append(f"{others} files with no image's suffix were left out")
        if not self._files:
            raise StoreError(Problem(where=str(path), expected="images", got="none"))

    def batches(self, schema: Schema, keys: tuple[str, ...]) -> Iterator[Batch]:
        given = {self._image} | ({self._label} if self._label else set())
        missing = [name for name in given if name not in schema.names]
        if missing:
            hint = "`image` and `label` of the source say which take them"
            raise SpecError(Problem(path=(missing[0],), expected="a feature for it", got="none", hint=hint))
        yield Batch(self.rows, lambda start, stop: self._columns(self._files[start:stop], keys))

    def _columns(self, files: list[Path], keys: tuple[str, ...]) -> dict[str, Any]:
        columns: dict[str, Any] = {self._image: files}
        if "path" in keys:
            columns["path"] = [file.relative_to(self._path).as_posix() for file in files]
        if self._label:
            columns[self._label] = [file.relative_to(self._path).parts[:-1][:1] for file in files]
            columns[self._label] = [parts[0] if parts else None for parts in columns[self._label]]
        return columns

    def place(self, row: int) -> str:
        return str(self._files[row])


def _walk(folder: Path) -> Iterator[Path]:
    """All files below a folder. Raises StoreError where one cannot be listed: a class would be missing."""

    def refuse(error: OSError) -> None:
        raise StoreError(
            Problem(where=str(error.filename), expected="a folder to list", got=error.strerror or "none")
        )

    for parent, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(parent, name) for name in names)


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)
