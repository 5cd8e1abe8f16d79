"""Images with their annotations: the base of all formats. Each format has its own module."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import PurePath
from typing import Any, ClassVar

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import AnyPath, Location, LocationText, below, is_below, location, relative
from recordspec.schema.features import Feature
from recordspec.schema.features.box import Box
from recordspec.schema.features.geometry import Coordinates, Pictures, Turn
from recordspec.schema.media import images
from recordspec.schema.options import Imported, to_builtins
from recordspec.schema.schema import Schema
from recordspec.schema.values import BadValue
from recordspec.writing.sources.arrow import inside
from recordspec.writing.sources.base import (
    Batches,
    FileSource,
    by_feature,
    converted,
    even_ranges,
    identity_of,
    wanted_columns,
)
from recordspec.writing.sources.folders import check_folder, files_below

# The formats of annotations, each an option of a config's source.
ANNOTATIONS = {
    name: Imported(f"recordspec.writing.sources.{name}", cls)
    for name, cls in {
        "coco": "Coco",
        "voc": "PascalVoc",
        "yolo": "Yolo",
        "labelme": "LabelMe",
        "cvat": "Cvat",
    }.items()
}

# The column for a feature's kind, used if the feature's name is not a column.
_BY_KIND = {"image": "image", "box": "boxes", "label": "labels"}
# About the size of a photo; an image is read only when it is encoded.
IMAGE_BYTES = 1 << 18
# The tolerance in pixels for a box that a tool has rounded.
_SLACK = 1e-3


@dataclass(frozen=True, kw_only=True)
class AnnotatedImage:
    """An image and its objects.

    Attributes:
        values: the values of the image by column: `file_name`, `width`, `height`, ...
        objects: the values of each object by column: `boxes` has its corners (left, top, right, bottom) in
            pixels, `labels` the name of its class, ...
        names: the names of the objects in messages.
        left_out: the types of shapes without an area, such as points, which are no objects.
        misnamed: the name of the image in its annotation, if the image of the annotation's own name is read
            instead.
        is_upright: whether the coordinates and the size are of the image turned by its EXIF orientation, as
            the tool shows it; otherwise they are of the stored pixels.
        header: the EXIF orientation, and the stored height and width, if they have been read.
    """

    values: Mapping[str, Any]
    objects: tuple[Mapping[str, Any], ...]
    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    misnamed: str = ""
    is_upright: bool = False
    header: tuple[int, int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class AnnotatedImages(FileSource, abc.ABC):
    """The base class of formats of annotations; a folder has the images.

    Columns of the image have single values; columns of its objects have lists, which may be empty.

    Attributes:
        LOCATIONS: the options with paths.
        IMAGE, OBJECT: the columns of the image and of its objects.
    """

    SHORT_FORM: ClassVar[str] = "annotations"
    LOCATIONS: ClassVar[tuple[str, ...]] = ("annotations", "images")
    IMAGE: ClassVar[tuple[str, ...]] = ("file_name", "width", "height")
    OBJECT: ClassVar[tuple[str, ...]]

    annotations: LocationText | None = None
    images: LocationText | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    clip: bool = False

    def open(self, folder: AnyPath) -> Any:
        """The source with relative paths resolved against `folder`."""
        given = {name: getattr(self, name) for name in self.LOCATIONS}
        paths: dict[str, Any] = {
            name: str(below(folder, path)) for name, path in given.items() if path is not None
        }
        return replace(super().open(folder), **paths)

    @property
    def folder(self) -> Location:
        """The folder of the images; by default that of the annotations."""
        (path,) = self.paths
        home = path if path.is_dir() else path.parent
        return home if self.images is None else location(self.images)

    @property
    @abc.abstractmethod
    def annotated(self) -> Iterable[AnnotatedImage]:
        """Yields each annotated image with its objects. Raises RecordError, StoreError."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes of all objects."""
        return tuple(sorted({item["labels"] for image in self.annotated for item in image.objects}))

    @property
    def header(self) -> tuple[str, ...]:
        """The names of all columns."""
        return ("image", *self.IMAGE, *self.OBJECT)

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        self.wanted(schema, extra)
        check_folder(self.folder)

    @cached_property
    def image_files(self) -> list[Location]:
        """The images of the folder, in the order of their paths."""
        return [file for file in files_below(self.folder) if file.suffix.lower() in images.SUFFIXES]

    @cached_property
    def by_stem(self) -> Mapping[PurePath, str]:
        """The images by their path below the folder without a suffix, and by the stem alone, unless several
        images have it.
        """
        paths = [relative(file, self.folder) for file in self.image_files]
        stems: dict[PurePath, list[str]] = {}
        for path in paths:
            for stem in {path.with_suffix(""), PurePath(path.stem)}:
                stems.setdefault(stem, []).append(path.as_posix())
        return {stem: names[0] for stem, names in stems.items() if len(names) == 1}

    def wanted(self, schema: Schema, extra: tuple[str, ...]) -> dict[str, str]:
        """The column of each name. Raises SpecError if it is unknown, or if two features of one kind
        share it.
        """
        header = self.header
        by_name = {name: name for name in header} | dict(self.columns)
        by_kind: dict[str, str] = {}
        problems = []
        where = self.given[0]
        for kind, column in _BY_KIND.items():
            named = [name for name, feature in schema.names.items() if feature.kind == kind]
            unknown = [name for name in named if name not in by_name]
            if unknown and len(of := [name for name in named if by_name.get(name, column) == column]) > 1:
                got, hint = " and ".join(f"`{name}`" for name in of), "name the column of each in `columns`"
                expected = f"one {kind} for the column `{column}`"
                problems.append(Problem(path=(unknown[-1],), expected=expected, got=got, hint=hint))
            by_kind |= dict.fromkeys(unknown, column)
        if problems:
            raise SpecError([problem.at(where) for problem in problems])
        return wanted_columns(schema, extra, {**by_kind, **self.columns}, where, header)


@dataclass(frozen=True)
class AnnotationFile:
    """The annotation of one image.

    Attributes:
        path: the file; None for an image without one.
        image: the name of the image with the file's own name, below the folder of the images; "" if there is
            none.
    """

    path: Location | None
    image: str


@dataclass(frozen=True, kw_only=True)
class AnnotationFiles(AnnotatedImages):
    """The base class of formats with one file of annotations per image."""

    @property
    @abc.abstractmethod
    def files(self) -> Sequence[AnnotationFile]:
        """The files, in the order of the rows. Raises StoreError."""

    @property
    @abc.abstractmethod
    def read(self) -> ReadAnnotation:
        """The function that reads the annotation of an image."""

    def beside(self, paths: Iterable[Location], home: Location) -> list[AnnotationFile]:
        """The annotation files below `home`, each with the image of its own name."""
        stems = [(path, relative(path, home).with_suffix("")) for path in paths]
        own = self.by_stem
        return [
            AnnotationFile(path, own.get(stem) or own.get(PurePath(stem.name), "")) for path, stem in stems
        ]

    @property
    def annotated(self) -> Iterator[AnnotatedImage]:
        for file in self.files:
            try:
                yield self.read(file, self.folder)
            except RecordError as error:
                raise at_place(error, str(file.path)) from None

    @property
    def rows(self) -> int:
        return len(self.files)

    def identity(self) -> Any:
        files = [file.path for file in self.files if file.path is not None]
        return [identity_of((*files, *self.image_files)), to_builtins(self)]

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[AnnotationFilesPart]:
        wanted = self.wanted(schema, extra)
        for start, stop in even_ranges(len(self.files), IMAGE_BYTES):
            files = tuple(self.files[start:stop])
            yield AnnotationFilesPart(
                folder=self.folder, wanted=wanted, clip=self.clip, files=files, read=self.read
            )


@dataclass(frozen=True, kw_only=True)
class AnnotationDocument(AnnotatedImages):
    """The base class of formats with one file of annotations for all images."""

    @property
    @abc.abstractmethod
    def annotated(self) -> Sequence[AnnotatedImage]:
        """All annotated images with their objects. Raises RecordError, StoreError."""

    @property
    def rows(self) -> int:
        return len(self.annotated)

    def identity(self) -> Any:
        return [identity_of((*self.paths, *self.image_files)), to_builtins(self)]

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[AnnotatedImagesPart]:
        annotated = self.annotated
        wanted = self.wanted(schema, extra)
        for start, stop in even_ranges(len(annotated), IMAGE_BYTES):
            some = tuple(annotated[start:stop])
            yield AnnotatedImagesPart(folder=self.folder, wanted=wanted, clip=self.clip, annotated=some)


ReadAnnotation = Callable[[AnnotationFile, Location], AnnotatedImage]


@dataclass(frozen=True, kw_only=True)
class _AnnotationsPart(abc.ABC):
    """Consecutive annotated images."""

    folder: Location
    wanted: Mapping[str, str]
    clip: bool

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def annotated_image(self, row: int) -> AnnotatedImage:
        """The annotated image of a row. Raises RecordError if its annotations cannot be read."""

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        yield from converted(len(self), partial(self._columns, schema))

    def _columns(self, schema: Schema, start: int, stop: int) -> dict[str, Any]:
        rows = [self._row(row, start) for row in range(start, stop)]

        def column(name: str) -> Any:
            what, feature = self.wanted[name], schema.names.get(name)
            if what == "image":
                paths = inside([row.values["file_name"] for row in rows], self.folder)
                is_turned = isinstance(feature, Pictures) and feature.is_turned
                _check_sizes(paths, rows, is_turned and "keypoints" in self.wanted.values())
                return paths
            if what == "boxes":
                return [_boxes(row, one, feature) for row, one in enumerate(rows)]
            if rows and what in rows[0].values:
                return [row.values[what] for row in rows]
            return [_values(row, one, what) for row, one in enumerate(rows)]

        return by_feature(self.wanted, column)

    def _row(self, row: int, start: int) -> AnnotatedImage:
        try:
            image = self.annotated_image(row)
        except RecordError as error:
            raise RecordError(error.problems, row - start) from None
        try:
            image = _of_stored_pixels(image, self.folder)
        except BadValue as error:
            raise RecordError(error.problem.under("features", "image"), row - start) from None
        return _clipped(image) if self.clip else image


@dataclass(frozen=True, kw_only=True)
class AnnotatedImagesPart(_AnnotationsPart):
    """Images whose annotations have been read."""

    annotated: tuple[AnnotatedImage, ...]

    def __len__(self) -> int:
        return len(self.annotated)

    def annotated_image(self, row: int) -> AnnotatedImage:
        return self.annotated[row]

    def place(self, row: int) -> str:
        return f"{self.folder}/{self.annotated[row].values['file_name']}"


@dataclass(frozen=True, kw_only=True)
class AnnotationFilesPart(_AnnotationsPart):
    """Images with one file of annotations each."""

    files: tuple[AnnotationFile, ...]
    read: ReadAnnotation

    def __len__(self) -> int:
        return len(self.files)

    def annotated_image(self, row: int) -> AnnotatedImage:
        return self.read(self.files[row], self.folder)

    def place(self, row: int) -> str:
        file = self.files[row]
        return f"{self.folder}/{file.image}" if file.path is None else str(file.path)


def at_place(error: RecordError, where: str) -> RecordError:
    """The error at a place, unless its problems have one."""
    return RecordError([problem if problem.where else problem.at(where) for problem in error.problems])


def found_name(name: str, file: AnnotationFile, folder: Location) -> tuple[str, str]:
    """The name of an image below the folder of images, and the name that its annotation has, if that is
    another one: the tools write the name of the image when it was annotated.
    """
    if not file.image or name == file.image:
        return name, ""
    return (name, "") if exists(folder, name) else (file.image, name)


def image_at(folder: Location, name: str) -> Location | None:
    """The place of an image; None for a name that leads out of the folder, or is a URL: names come from files
    of others.
    """
    try:
        place = below(folder, name)
    except (SpecError, ValueError):
        return None
    return place if is_below(place, folder) else None


def exists(folder: Location, name: str) -> bool:
    """Whether there is an image of this name in a folder."""
    place = image_at(folder, name)
    try:
        return place is not None and place.exists()
    except (OSError, ValueError):  # a name that no file has
        return False


def extent(points: Any) -> list[float]:
    """The corners (left, top, right, bottom) of the smallest box around points, `[n, 2]`."""
    array = np.asarray(points, np.float64).reshape(-1, 2)
    return [*array.min(axis=0).tolist(), *array.max(axis=0).tolist()]


def _values(row: int, image: AnnotatedImage, column: str) -> list[Any]:
    """The values of all objects. Raises BadValue if an object lacks one."""
    for item, name in zip(image.objects, image.names, strict=True):
        if column not in item:
            raise BadValue(row, f"`{column}` of each object", f"none of {name}")
    return [item[column] for item in image.objects]


def upright_size(header: tuple[int, int, int]) -> tuple[int, int]:
    """The height and width of an image as it is shown, from its orientation and the stored ones."""
    orientation, height, width = header
    return (width, height) if orientation >= 5 else (height, width)


# The orientation that turns the upright image to the stored one; the others turn it back themselves.
_BACK = {6: 8, 8: 6}


def _of_stored_pixels(image: AnnotatedImage, folder: Location) -> AnnotatedImage:
    """The image with coordinates and a size of its stored pixels. Raises BadValue if the size of the upright
    image differs from its annotations.
    """
    if not image.is_upright:
        return image
    path = image_at(folder, image.values["file_name"])
    header = image.header or (None if path is None else images.header_of(path))
    if header is None or path is None:  # no image, which is refused when it is encoded
        return image
    orientation, height, width = header
    stated = image.values["height"], image.values["width"]
    if upright_size(header) != stated:
        raise _other_size(0, path, header, stated)
    if orientation == 1:
        return replace(image, header=header)
    turn = Turn(_BACK.get(orientation, orientation), *stated)
    values = {**image.values, "width": width, "height": height}
    objects = tuple(_turned(item, turn) for item in image.objects)
    return replace(image, values=values, objects=objects, header=header, is_upright=False)


def _turned(item: Mapping[str, Any], turn: Turn) -> dict[str, Any]:
    """An object in the turned image."""
    made = {**item, "boxes": extent(turn.points(np.array(item["boxes"], np.float64).reshape(2, 2)))}
    if "keypoints" in item:
        points = np.array(item["keypoints"], np.float64)
        placed = np.where(points[:, 2:] > 0, turn.points(points[:, :2]), points[:, :2])
        made["keypoints"] = np.concatenate([placed, points[:, 2:]], axis=1).tolist()
    return made


def _other_size(
    row: int, path: Location, header: tuple[int, int, int], stated: tuple[int, int], hint: str = ""
) -> BadValue:
    """The error of an image whose size differs from its annotations."""
    height, width = stated
    expected = f"an image of {width} x {height}, as its annotations state"
    return BadValue(row, expected, f"{path}: {header[2]} x {header[1]}", hint)


def _check_sizes(paths: Iterable[Location], rows: Iterable[AnnotatedImage], is_left: bool) -> None:
    """Raises BadValue for the first image whose size differs from its annotations.

    Annotations state the size of the stored pixels, whatever the EXIF orientation. A file that is no image is
    refused when it is encoded.

    Args:
        is_left: whether the image is turned upright, and its keypoints are not.
    """
    for row, (path, image) in enumerate(zip(paths, rows, strict=True)):
        header = image.header or images.header_of(path)
        if header is None:
            continue
        stated = image.values["height"], image.values["width"]
        if header[1:] != stated:
            turned = header[0] >= 5 and header[1:] == stated[::-1]
            hint = f"its EXIF orientation is {header[0]}: annotations refer to the stored pixels"
            raise _other_size(row, path, header, stated, hint * turned)
        if is_left and header[0] != 1:
            expected = "an image that is not turned, as its keypoints are not"
            hint = "leave out `orientation: upright`"
            raise BadValue(row, expected, f"{path}: EXIF orientation {header[0]}", hint)


# Boxes are checked here, where the size of the image and the names of objects are known.


def _boxes(row: int, image: AnnotatedImage, feature: Feature | None) -> Any:
    """The boxes of an image, `[k, 4]`, in the format of their feature; as xywh for a feature of another
    kind.
    """
    width, height = image.values["width"], image.values["height"]
    corners = np.array([item["boxes"] for item in image.objects], np.float64).reshape(-1, 4)
    low, high = corners[:, :2], corners[:, 2:]
    for expected, wrong, hint in (
        ("a box with an area", ~(low < high).all(axis=1), ""),  # also NaN
        (
            f"a box in its image, {width} x {height}",
            (low < -_SLACK).any(axis=1) | (high > np.array([width, height]) + _SLACK).any(axis=1),
            "`clip: true` of the source clips it",
        ),
    ):
        if wrong.any():
            place = int(wrong.argmax())
            shown = ", ".join(f"{number:g}" for number in corners[place])
            raise BadValue(row, expected, f"corners [{shown}] of {image.names[place]}", hint)
    corners = np.clip(corners, 0, np.array([width, height] * 2))
    boxes = feature if isinstance(feature, Coordinates) else Box(name="boxes", format="xywh")
    return boxes.of_corners(corners, width, height)


def _clipped(image: AnnotatedImage) -> AnnotatedImage:
    """The image with its boxes clipped, without objects that have no area left."""
    limits = (image.values["width"], image.values["height"]) * 2
    objects = [
        {**box, "boxes": [min(max(side, 0), most) for side, most in zip(box["boxes"], limits, strict=True)]}
        for box in image.objects
    ]
    kept = [
        (box, name)
        for box, name in zip(objects, image.names, strict=True)
        if box["boxes"][0] < box["boxes"][2] and box["boxes"][1] < box["boxes"][3]
    ]
    return replace(image, objects=tuple(one for one, _ in kept), names=tuple(name for _, name in kept))


def invalid_boxes(image: AnnotatedImage) -> tuple[int, int]:
    """The number of boxes that exceed their image, and of boxes without an area."""
    limits = (image.values["width"], image.values["height"]) * 2
    sides = np.array([item["boxes"] for item in image.objects], np.float64).reshape(-1, 4)
    exceeding = ((sides < -_SLACK) | (sides > np.array(limits) + _SLACK)).any(axis=1)
    return int(exceeding.sum()), int((~(sides[:, :2] < sides[:, 2:]).all(axis=1)).sum())
