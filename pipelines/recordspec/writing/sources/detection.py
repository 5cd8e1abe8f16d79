"""Images with the bounding boxes of their objects: annotations of COCO and of Pascal VOC."""

from __future__ import annotations

import abc
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, describe, system_errors
from recordspec.locations import AnyPath, Location, LocationText, below, location, open_file, read_bytes
from recordspec.schema.features import Feature
from recordspec.schema.features.box import Box
from recordspec.schema.features.geometry import Coordinates
from recordspec.schema.media.images import header_of
from recordspec.schema.options import to_builtins
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
from recordspec.writing.sources.folders import files_below

# The column for a feature's kind, used if the feature's name is not a column.
_BY_KIND = {"image": "image", "box": "boxes", "label": "labels"}
# About the size of a photo; an image is read only when it is encoded.
_IMAGE_BYTES = 1 << 18
_LARGEST_JSON = 4 << 30
_LARGEST_XML = 16 << 20
# The tolerance in pixels for a box that a tool has rounded.
_SLACK = 1e-3


@dataclass(frozen=True)
class AnnotatedImage:
    """An image and its objects.

    Attributes:
        values: the values of the image by column: `file_name`, `width`, `height`, ...
        objects: the values of each object by column: `boxes` has its corners (left, top, right, bottom) in
            pixels, `labels` the name of its class, ...
        names: the names of the objects in messages.
    """

    values: Mapping[str, Any]
    objects: tuple[Mapping[str, Any], ...]
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Detection(FileSource, abc.ABC):
    """The base class of COCO and Pascal VOC: `FILES` are annotations, and a folder has the images.

    Columns of the image have single values; columns of its objects have lists, which may be empty.
    """

    SHORT_FORM: ClassVar[str] = "annotations"
    IMAGE: ClassVar[tuple[str, ...]]
    OBJECT: ClassVar[tuple[str, ...]]

    annotations: LocationText
    images: LocationText | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    clip: bool = False

    def open(self, folder: AnyPath) -> Any:
        """The source with relative paths resolved against `folder`."""
        images = None if self.images is None else str(below(folder, self.images))
        return replace(super().open(folder), images=images)

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

    @cached_property
    def _images(self) -> list[Location]:
        return [file for file in files_below(self.folder) if file.suffix.lower() not in (".xml", ".json")]

    def _wanted(self, schema: Schema, extra: tuple[str, ...]) -> dict[str, str]:
        """The column of each name. Raises SpecError if it is unknown, or if two features of one kind
        share it.
        """
        header = ("image", *self.IMAGE, *self.OBJECT)
        by_name = {name: name for name in header} | dict(self.columns)
        by_kind: dict[str, str] = {}
        problems = []
        for kind, column in _BY_KIND.items():
            named = [name for name, feature in schema.names.items() if feature.kind == kind]
            unknown = [name for name in named if name not in by_name]
            if unknown and len(of := [name for name in named if by_name.get(name, column) == column]) > 1:
                got, hint = " and ".join(f"`{name}`" for name in of), "name the column of each in `columns`"
                expected = f"one {kind} for the column `{column}`"
                problems.append(Problem(path=(unknown[-1],), expected=expected, got=got, hint=hint))
            by_kind |= dict.fromkeys(unknown, column)
        if problems:
            raise SpecError([problem.at(str(self.annotations)) for problem in problems])
        return wanted_columns(schema, extra, {**by_kind, **self.columns}, str(self.annotations), header)


@dataclass(frozen=True, kw_only=True)
class Coco(_Detection):
    """The images of a COCO annotations file, `instances_*.json`, with their objects.

    Attributes:
        annotations: the JSON file.
        images: the folder of the images; by default that of the file.
        columns: the column of a feature, if neither its name nor its kind defines it. Columns: `image`; for
            the image `image_id`, `file_name`, `width`, `height`; for its objects the lists `boxes`, `labels`,
            `category_id`, `annotation_id`, `area`, `iscrowd`.
        clip: whether boxes are clipped to their image, and objects without any area left are dropped;
            otherwise a box that exceeds its image is an error.
    """

    IMAGE = ("image_id", "file_name", "width", "height")
    OBJECT = ("boxes", "labels", "category_id", "annotation_id", "area", "iscrowd")

    @property
    def rows(self) -> int:
        return len(self._annotated)

    def identity(self) -> Any:
        return [identity_of((*self.paths, *self._images)), to_builtins(self)]

    @property
    def annotated(self) -> list[AnnotatedImage]:
        return self._annotated

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of all categories, in the order of the file."""
        (path,) = self.paths
        return tuple(_categories(str(path), _document(path)).values())

    @cached_property
    def _annotated(self) -> list[AnnotatedImage]:
        (path,) = self.paths
        return list(_read_coco(path))

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[CocoPart]:
        wanted, annotated = self._wanted(schema, extra), self._annotated
        for start, stop in even_ranges(len(annotated), _IMAGE_BYTES):
            images = tuple(annotated[start:stop])
            yield CocoPart(folder=self.folder, wanted=wanted, clip=self.clip, annotated=images)


@dataclass(frozen=True, kw_only=True)
class PascalVoc(_Detection):
    """The images of a folder of Pascal VOC annotations, one XML file each, with their objects.

    Coordinates are stored unchanged, as in TFDS and the TensorFlow Object Detection API.

    Attributes:
        annotations: the folder of the XML files.
        images: the folder of the images; by default that of the annotations.
        columns: the column of a feature, if neither its name nor its kind defines it. Columns: `image`; for
            the image `file_name`, `width`, `height`; for its objects the lists `boxes`, `labels`,
            `difficult`, `truncated`, `pose`.
        clip: whether boxes are clipped to their image, and objects without any area left are dropped;
            otherwise a box that exceeds its image is an error.
    """

    IMAGE = ("file_name", "width", "height")
    OBJECT = ("boxes", "labels", "difficult", "truncated", "pose")

    @cached_property
    def _files(self) -> list[Location]:
        (folder,) = self.paths
        files = [file for file in files_below(folder) if file.suffix.lower() == ".xml"]
        if not files:
            raise StoreError(State(where=str(folder), got="has no files named .xml"))
        return files

    @property
    def annotated(self) -> Iterator[AnnotatedImage]:
        for file in self._files:
            try:
                yield _read_voc(file)
            except RecordError as error:
                raise error.at(str(file)) from None

    @property
    def rows(self) -> int:
        return len(self._files)

    def identity(self) -> Any:
        return [identity_of((*self._files, *self._images)), to_builtins(self)]

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[VocPart]:
        wanted = self._wanted(schema, extra)
        for start, stop in even_ranges(len(self._files), _IMAGE_BYTES):
            files = tuple(self._files[start:stop])
            yield VocPart(folder=self.folder, wanted=wanted, clip=self.clip, files=files)


@dataclass(frozen=True, kw_only=True)
class _DetectionPart(abc.ABC):
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
                _check_sizes(paths, rows)
                return paths
            if what == "boxes":
                return [_boxes(row, one, feature) for row, one in enumerate(rows)]
            if rows and what in rows[0].values:
                return [row.values[what] for row in rows]
            return [[each[what] for each in row.objects] for row in rows]

        return by_feature(self.wanted, column)

    def _row(self, row: int, start: int) -> AnnotatedImage:
        try:
            image = self.annotated_image(row)
        except RecordError as error:
            raise RecordError(error.problems, row - start) from None
        return _clipped(image) if self.clip else image


@dataclass(frozen=True, kw_only=True)
class CocoPart(_DetectionPart):
    """Images of a COCO annotations file."""

    annotated: tuple[AnnotatedImage, ...]

    def __len__(self) -> int:
        return len(self.annotated)

    def annotated_image(self, row: int) -> AnnotatedImage:
        return self.annotated[row]

    def place(self, row: int) -> str:
        return f"{self.folder}/{self.annotated[row].values['file_name']}"


@dataclass(frozen=True, kw_only=True)
class VocPart(_DetectionPart):
    """Images of Pascal VOC XML files."""

    files: tuple[Location, ...]

    def __len__(self) -> int:
        return len(self.files)

    def annotated_image(self, row: int) -> AnnotatedImage:
        return _read_voc(self.files[row])

    def place(self, row: int) -> str:
        return str(self.files[row])


def _check_sizes(paths: Iterable[Location], images: Iterable[AnnotatedImage]) -> None:
    """Raises BadValue for the first image whose size differs from its annotations.

    Annotations state the size of the stored pixels, whatever the EXIF orientation. A file that is no image is
    refused when it is encoded.
    """
    for row, (path, image) in enumerate(zip(paths, images, strict=True)):
        header = header_of(path)
        width, height = image.values["width"], image.values["height"]
        if header is not None and header[1:] != (height, width):
            expected = f"an image of {width} x {height}, as its annotations state"
            turned = header[0] >= 5 and header[1:] == (width, height)
            hint = f"its EXIF orientation is {header[0]}: annotations refer to the stored pixels"
            raise BadValue(row, expected, f"{path}: {header[2]} x {header[1]}", hint * turned)


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
    return AnnotatedImage(image.values, tuple(one for one, _ in kept), tuple(name for _, name in kept))


def exceeds(image: AnnotatedImage) -> bool:
    """Whether any box exceeds its image."""
    limits = (image.values["width"], image.values["height"]) * 2
    sides = np.array([item["boxes"] for item in image.objects], np.float64).reshape(-1, 4)
    return bool(((sides < -_SLACK) | (sides > np.array(limits) + _SLACK)).any())


# COCO.

_COCO_KEY = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')
_COCO_HEAD = 1 << 20


def is_coco(path: Location) -> bool:
    """Whether a JSON file begins like COCO annotations."""
    with system_errors("read", path), open_file(path) as file:
        return _COCO_KEY.search(file.read(_COCO_HEAD)) is not None


_USED = {
    "images",
    "annotations",
    "categories",
    "id",
    "image_id",
    "category_id",
    "file_name",
    "width",
    "height",
}
_USED |= {"bbox", "area", "iscrowd", "name"}


def _kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without unused values: segmentations are most of a COCO file."""
    return {name: value for name, value in pairs if name in _USED}


def _read_coco(path: Location) -> Iterator[AnnotatedImage]:
    """The images of an annotations file, in order. Raises RecordError, StoreError."""
    where, document = str(path), _document(path)
    names = _categories(where, document)
    images = {key: (at, one) for at, key, one in _by_id(where, document, "images")}
    objects: dict[Any, list[tuple[str, dict[str, Any]]]] = {key: [] for key in images}
    for at, key, image_entry in _by_id(where, document, "annotations"):
        image, category = image_entry.get("image_id"), image_entry.get("category_id")
        if not isinstance(image, int | str) or image not in objects:
            raise _wrong(where, ("annotations", at, "image_id"), "the id of an image", describe(image))
        if not isinstance(category, int | str) or category not in names:
            raise _wrong(
                where, ("annotations", at, "category_id"), "the id of a category", describe(category)
            )
        left, top, width, height = _bbox(where, at, image_entry.get("bbox"))
        values = {
            "boxes": [left, top, left + width, top + height],
            "labels": names[category],
            "category_id": category,
            "annotation_id": key,
            "area": image_entry.get("area", width * height),
            "iscrowd": image_entry.get("iscrowd", 0),
        }
        objects[image].append((f"annotation {key}", values))
    for key, (at, image_entry) in images.items():
        sizes = {side: _entry(where, "images", at, image_entry, side, int) for side in ("width", "height")}
        name = _entry(where, "images", at, image_entry, "file_name", str)
        values = {"image_id": key, "file_name": name, **sizes}
        labelled = objects[key]
        yield AnnotatedImage(values, tuple(each for _, each in labelled), tuple(what for what, _ in labelled))


def _document(path: Location) -> Any:
    try:
        return json.loads(read_bytes(path, _LARGEST_JSON), object_pairs_hook=_kept)
    except (ValueError, RecursionError) as error:
        raise RecordError(Problem(where=str(path), expected="JSON", got=str(error))) from None


def _categories(where: str, document: Any) -> dict[Any, str]:
    """The names of the categories, by their ids."""
    names = {
        key: _entry(where, "categories", at, category, "name", str)
        for at, key, category in _by_id(where, document, "categories")
    }
    repeated = [name for name, many in Counter(names.values()).items() if many > 1]
    if repeated:
        raise _wrong(where, ("categories",), "every name once", f"`{repeated[0]}` again")
    return names


def _by_id(where: str, document: Any, name: str) -> Iterator[tuple[int, Any, dict[str, Any]]]:
    """The index, the id and the entry of each item of a list. Raises RecordError for an id that occurs
    twice.
    """
    items = document.get(name) if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise _wrong(where, (name,), "a list", "none" if items is None else describe(items))
    seen = set()
    for at, entry in enumerate(items):
        key = _entry(where, name, at, entry, "id", (int, str))
        if key in seen:
            raise _wrong(where, (name, at, "id"), "every id once", f"{key} again")
        seen.add(key)
        yield at, key, entry


def _entry(where: str, name: str, at: int, entry: Any, key: str, kind: Any) -> Any:
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = {str: "text", int: "a whole number"}.get(kind, "a number or text")
        raise _wrong(where, (name, at, key), expected, "none" if value is None else describe(value))
    return value


def _bbox(where: str, at: int, value: Any) -> list[float]:
    numbers = isinstance(value, list) and [item for item in value if isinstance(item, int | float)]
    if not numbers or len(numbers) != 4 or len(value) != 4 or not all(map(math.isfinite, numbers)):
        got = "none" if value is None else describe(value)
        raise _wrong(where, ("annotations", at, "bbox"), "[x, y, width, height]", got)
    return numbers


def _wrong(where: str, path: tuple[str | int, ...], expected: str, got: str) -> RecordError:
    return RecordError(Problem(where=where, path=path, expected=expected, got=got))


# Pascal VOC.


def _read_voc(path: Location) -> AnnotatedImage:
    """The image of an XML file. Raises RecordError with the reason, StoreError."""
    try:
        root = _xml(read_bytes(path, _LARGEST_XML))
        size = _child(root, "size")
        values: dict[str, Any] = {"file_name": _text(root, "filename")}
        values |= {side: int(_number(size, side)) for side in ("width", "height")}
        objects = [_voc_object(one) for one in root.iter("object")]
    except (SpecError, expat.ExpatError) as error:
        problems = (
            [Problem(expected="XML", got=str(error))]
            if isinstance(error, expat.ExpatError)
            else error.problems
        )
        raise RecordError(problems) from None
    names = tuple(f"object {at} (`{one['labels']}`)" for at, one in enumerate(objects))
    return AnnotatedImage(values, tuple(objects), names)


def _voc_object(element: ElementTree.Element) -> dict[str, Any]:
    box = _child(element, "bndbox")
    return {
        "boxes": [_number(box, side) for side in ("xmin", "ymin", "xmax", "ymax")],
        "labels": _text(element, "name"),
        **{flag: int(_number(element, flag, "0")) for flag in ("difficult", "truncated")},
        "pose": element.findtext("pose") or "",
    }


def _xml(data: bytes) -> ElementTree.Element:
    """Parses a document. Rejects declarations of types and entities, which can expand without end, or
    name files.
    """
    builder, parser = ElementTree.TreeBuilder(), expat.ParserCreate()

    def refuse(*declared: Any) -> None:
        raise SpecError(Problem(expected="XML without a document type", got="<!DOCTYPE"))

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(data, True)
    return builder.close()


def _child(element: ElementTree.Element, tag: str) -> ElementTree.Element:
    child = element.find(tag)
    if child is None:
        raise SpecError(Problem(path=(element.tag,), expected=f"<{tag}>", got="none"))
    return child


def _text(element: ElementTree.Element, tag: str) -> str:
    text = (_child(element, tag).text or "").strip()
    if not text:
        raise SpecError(Problem(path=(element.tag, tag), expected="text", got="none"))
    return text


def _number(element: ElementTree.Element, tag: str, default: str | None = None) -> float:
    text = element.findtext(tag) or default or _text(element, tag)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SpecError(Problem(path=(element.tag, tag), expected="a number", got=f"`{text}`"))
    return number
