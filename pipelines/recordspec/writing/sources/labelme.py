"""Annotations of LabelMe (https://github.com/wkentaro/labelme), a JSON file per image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, describe
from recordspec.locations import Location, LocationText, below, is_below, read_start, relative
from recordspec.schema.media import images
from recordspec.writing.sources.coco import read_json
from recordspec.writing.sources.detection import (
    AnnotatedImage,
    AnnotationFile,
    AnnotationFiles,
    ReadAnnotation,
    extent,
    image_at,
    upright_size,
)
from recordspec.writing.sources.folders import files_below

_START = 1 << 16
# The types of shapes that have an area; others, such as points and lines, are no objects.
_WITH_AREA = ("rectangle", "polygon", "circle", "mask", "oriented_rectangle")
_WITHOUT_AREA = ("point", "points", "line", "linestrip")


@dataclass(frozen=True, kw_only=True)
class LabelMe(AnnotationFiles):
    """The images of a folder of LabelMe annotations, one JSON file each, with their objects.

    The box of a polygon, a circle or a mask is the smallest one around it; points and lines are left out. If
    `imagePath` names no image, the image with the name of the JSON file is read.

    Attributes:
        annotations: the folder of the JSON files.
        images: the folder of the images; by default that of the annotations.
        columns: the column of a feature, if neither its name nor its kind defines it. Columns: `image`; for
            the image `file_name`, `width`, `height`; for its objects the lists `boxes`, `labels`, `shape`
            (`rectangle`, `polygon`, ...), `group_id` (-1 if there is none), `description`.
        clip: whether boxes are clipped to their image, and objects without any area left are dropped;
            otherwise a box that exceeds its image is an error.
    """

    OBJECT = ("boxes", "labels", "shape", "group_id", "description")

    annotations: LocationText = field()

    @cached_property
    def files(self) -> Sequence[AnnotationFile]:
        (folder,) = self.paths
        paths = [file for file in files_below(folder) if is_annotation(file)]
        if not paths:
            raise StoreError(State(where=str(folder), got="has no files named .json"))
        return self.beside(paths, folder)

    @property
    def read(self) -> ReadAnnotation:
        return _read_labelme


def is_annotation(path: Location) -> bool:
    """Whether a file may have annotations: JSON, but no JSON Schema, which `infer` writes, too."""
    name = path.name.lower()
    return name.endswith(".json") and not name.endswith(".schema.json")


def is_labelme(path: Location) -> bool:
    """Whether a JSON file begins like LabelMe annotations, or ends so, after its `imageData`."""
    start = read_start(path, _START)
    return b'"shapes"' in start and any(name in start for name in (b'"flags"', b'"version"', b'"imagePath"'))


def _kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without the image, which is stored in its own file, too."""
    return {name: value for name, value in pairs if name not in ("imageData", "mask")}


def _read_labelme(file: AnnotationFile, folder: Location) -> AnnotatedImage:
    """The image of a JSON file. Raises RecordError with the reason, StoreError."""
    assert file.path is not None
    document = read_json(file.path, _kept)
    given = document.get("shapes") if isinstance(document, dict) else None
    if not isinstance(given, list):
        raise _wrong(("shapes",), "a list", given)
    name, misnamed = _name(document.get("imagePath"), file, folder)
    place = image_at(folder, name)
    header = None if place is None else images.header_of(place)
    sides = {side: document.get(key) for side, key in (("height", "imageHeight"), ("width", "imageWidth"))}
    if header is not None and None in sides.values():
        sides = dict(zip(sides, upright_size(header), strict=True))
    for side, value in sides.items():
        if not isinstance(value, int):
            raise _wrong((f"image{side.capitalize()}",), "a whole number", value)
    objects, left_out = [], []
    for at, shape in enumerate(given):
        one = _object(("shapes", at), shape)
        if one is None:
            left_out.append(str(shape["shape_type"]))
        else:
            objects.append((f"shape {at} (`{one['labels']}`)", one))
    return AnnotatedImage(
        values={"file_name": name, **sides},
        objects=tuple(one for _, one in objects),
        names=tuple(shown for shown, _ in objects),
        left_out=tuple(left_out),
        misnamed=misnamed,
        is_upright=True,
        header=header,
    )


def _name(given: Any, file: AnnotationFile, folder: Location) -> tuple[str, str]:
    """The name of the image below the folder of images, and `imagePath` if it names none.

    LabelMe writes a path from the folder of the JSON file, on Windows with backslashes.
    """
    assert file.path is not None
    text = str(given or "").replace("\\", "/")
    try:
        place = below(file.path.parent, text) if text else None
        if place is not None and is_below(place, folder):
            name = relative(place, folder).as_posix()
            if name == file.image or not file.image or place.exists():
                return name, ""
    except (SpecError, ValueError):  # a URL, or a path that no file has
        pass
    if not file.image:
        raise _wrong(("imagePath",), f"the path of an image in {folder}", given)
    return file.image, text


def _object(path: tuple[str | int, ...], shape: Any) -> dict[str, Any] | None:
    """The object of a shape; None for a shape without an area."""
    if not isinstance(shape, Mapping) or not isinstance(shape.get("label"), str):
        raise _wrong((*path, "label"), "text", shape.get("label") if isinstance(shape, Mapping) else shape)
    kind = shape.get("shape_type") or "polygon"  # of versions before 3.3
    if kind in _WITHOUT_AREA:
        return None
    points: Any = shape.get("points")
    if kind not in _WITH_AREA:
        raise _wrong((*path, "shape_type"), f"one of {', '.join(_WITH_AREA + _WITHOUT_AREA)}", kind)
    if not _are_points(points) or len(points) < 2:
        raise _wrong((*path, "points"), "[[x, y], ...]", points)
    corners = extent(points)
    if kind == "circle":  # its centre, and a point on it
        (x, y), edge = points[0], points[1]
        radius = math.dist((x, y), edge)
        corners = [x - radius, y - radius, x + radius, y + radius]
    group = shape.get("group_id")
    return {
        "boxes": corners,
        "labels": shape["label"],
        "shape": kind,
        "group_id": -1 if group is None else group,
        "description": shape.get("description") or "",
    }


def _are_points(points: Any) -> bool:
    return isinstance(points, list) and all(
        isinstance(point, list)
        and len(point) == 2
        and all(isinstance(one, int | float) and math.isfinite(one) for one in point)
        for point in points
    )


def _wrong(path: tuple[str | int, ...], expected: str, got: Any) -> RecordError:
    shown = "none" if got is None else describe(got)
    return RecordError(Problem(path=path, expected=expected, got=shown))
