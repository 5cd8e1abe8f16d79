"""A folder of images: one folder a class."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from recordspec.locations import PathText, local
from recordspec.spec.media.images import SUFFIXES
from recordspec.writing.sources.folders import FolderRows, Takers


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
        takers = Takers(what="image", file=self.image, label=self.label)
        return FolderRows(Path(os.path.normpath(folder / local(self.path))), takers, SUFFIXES)
