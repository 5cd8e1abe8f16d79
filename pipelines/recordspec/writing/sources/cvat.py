"""Annotations of CVAT for images (https://docs.cvat.ai/docs/other/xml_format), an XML file for all images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath, PurePosixPath
from xml.etree import ElementTree

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import Location, LocationText, read_start, relative
from recordspec.writing.sources.detection import (
    AnnotatedImage,
    AnnotationDocument,
    AnnotationFile,
    at_place,
    extent,
    found_name,
)
from recordspec.writing.sources.xml_documents import number_in, read_xml

_LARGEST_XML = 1 << 30
_START = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Cvat(AnnotationDocument):
    """The images of an XML file of CVAT for images, with their objects.

    The box of a polygon, an ellipse, a mask or a rotated box is the smallest one around it; points, lines and
    tags are left out.

    Attributes:
        annotations: the XML file, `annotations.xml`.
        images: the folder of the images; by default that of the file.
        columns: the column of a feature, if neither its name nor its kind defines it. Columns: `image`; for
            the image `image_id`, `file_name`, `width`, `height`; for its objects the lists `boxes`, `labels`,
            `shape` (`box`, `polygon`, ...), `occluded`, `z_order`.
        clip: whether boxes are clipped to their image, and objects without any area left are dropped;
            otherwise a box that exceeds its image is an error.
    """

    IMAGE = ("image_id", "file_name", "width", "height")
    OBJECT = ("boxes", "labels", "shape", "occluded", "z_order")

    annotations: LocationText = field()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the file, and of further ones that objects have."""
        _, labels = self._document
        return tuple(dict.fromkeys((*labels, *super().class_names)))

    @property
    def unused_names(self) -> tuple[str, ...]:
        """The names of the labels without objects."""
        used = {item["labels"] for image in self.annotated for item in image.objects}
        return tuple(name for name in self.class_names if name not in used)

    @property
    def annotated(self) -> Sequence[AnnotatedImage]:
        return self._document[0]

    @cached_property
    def _document(self) -> tuple[list[AnnotatedImage], tuple[str, ...]]:
        """The images, and the names of the labels."""
        (path,) = self.paths
        try:
            return read_xml(path, _LARGEST_XML, self._converted)
        except RecordError as error:
            raise at_place(error, str(path)) from None

    @cached_property
    def _names(self) -> frozenset[PurePath]:
        """The names of the images, below their folder."""
        return frozenset(relative(file, self.folder) for file in self.image_files)

    def _converted(self, root: ElementTree.Element) -> tuple[list[AnnotatedImage], tuple[str, ...]]:
        if root.tag != "annotations" or root.find("track") is not None:
            got = "tracks of a video" if root.tag == "annotations" else f"<{root.tag}>"
            hint = "export the task as `CVAT for images`" if root.tag == "annotations" else ""
            raise SpecError(Problem(expected="images of CVAT", got=got, hint=hint))
        labels = tuple(one.text or "" for one in root.iterfind("meta//label/name"))
        return [self._image(one) for one in root.iterfind("image")], labels

    def _image(self, element: ElementTree.Element) -> AnnotatedImage:
        name = _attribute(element, "name")
        within = f"{element.get('subset', '')}/{name}"  # of a project with subsets
        if PurePosixPath(within) in self._names:
            name = within
        own = self.by_stem.get(PurePosixPath(name).with_suffix(""), "")
        name, misnamed = found_name(name, AnnotationFile(None, own), self.folder)
        values = {
            "image_id": int(_number(element, "id", "0")),
            "file_name": name,
            "width": int(_number(element, "width")),
            "height": int(_number(element, "height")),
        }
        objects, left_out = [], []
        for at, shape in enumerate(element):
            corners = _corners(shape)
            if corners is None:
                left_out.append(shape.tag)
                continue
            label = _attribute(shape, "label")
            made = {
                "boxes": corners,
                "labels": label,
                "shape": shape.tag,
                "occluded": int(_number(shape, "occluded", "0")),
                "z_order": int(_number(shape, "z_order", "0")),
            }
            objects.append((f"shape {at} (`{label}`)", made))
        return AnnotatedImage(
            values=values,
            objects=tuple(one for _, one in objects),
            names=tuple(shown for shown, _ in objects),
            left_out=tuple(left_out),
            misnamed=misnamed,
            is_upright=True,
        )


def is_cvat(path: Location) -> bool:
    """Whether an XML file begins like annotations of CVAT. Raises StoreError if it cannot be read."""
    return b"<annotations" in read_start(path, _START)


def _corners(shape: ElementTree.Element) -> list[float] | None:
    """The corners of a shape; None for a shape without an area."""
    if shape.tag == "box":
        left, top, right, bottom = (_number(shape, side) for side in ("xtl", "ytl", "xbr", "ybr"))
        x, y, across, down = (left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2
        angle = math.radians(_number(shape, "rotation", "0"))
        if not angle:
            return [left, top, right, bottom]
        cosine, sine = abs(math.cos(angle)), abs(math.sin(angle))
        across, down = across * cosine + down * sine, across * sine + down * cosine
        return [x - across, y - down, x + across, y + down]
    if shape.tag == "polygon":
        text = _attribute(shape, "points")
        try:
            return extent([list(map(float, point.split(","))) for point in text.split(";")])
        except ValueError:
            problem = Problem(path=("polygon", "points"), expected="x,y;x,y;...", got=f"`{text}`")
            raise SpecError(problem) from None
    if shape.tag == "ellipse":
        x, y, across, down = (_number(shape, side) for side in ("cx", "cy", "rx", "ry"))
        angle = math.radians(_number(shape, "rotation", "0"))
        cosine, sine = math.cos(angle), math.sin(angle)
        across, down = math.hypot(across * cosine, down * sine), math.hypot(across * sine, down * cosine)
        return [x - across, y - down, x + across, y + down]
    if shape.tag == "mask":
        left, top, width, height = (_number(shape, side) for side in ("left", "top", "width", "height"))
        return [left, top, left + width, top + height]
    return None


def _attribute(element: ElementTree.Element, name: str) -> str:
    text = element.get(name)
    if not text:
        raise SpecError(Problem(path=(element.tag, name), expected="text", got="none"))
    return text


def _number(element: ElementTree.Element, name: str, default: str | None = None) -> float:
    return number_in(element, name, element.get(name, default) or _attribute(element, name))
