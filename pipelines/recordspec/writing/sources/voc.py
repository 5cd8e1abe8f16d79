"""Annotations of Pascal VOC (http://host.robots.ox.ac.uk/pascal/VOC/voc2012/htmldoc/devkit_doc.html)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any
from xml.etree import ElementTree

from recordspec.errors import Problem, SpecError, State, StoreError
from recordspec.locations import Location, LocationText
from recordspec.writing.sources.detection import (
    AnnotatedImage,
    AnnotationFile,
    AnnotationFiles,
    ReadAnnotation,
    found_name,
)
from recordspec.writing.sources.folders import files_below
from recordspec.writing.sources.xml_documents import child_of, number_of, read_xml, text_of

_LARGEST_XML = 16 << 20


@dataclass(frozen=True, kw_only=True)
class PascalVoc(AnnotationFiles):
    """The images of a folder of Pascal VOC annotations, one XML file each, with their objects.

    Coordinates are stored unchanged, as in TFDS and the TensorFlow Object Detection API. If `<filename>`
    names no image, the image with the name of the XML file is read.

    Attributes:
        annotations: the folder of the XML files.
        images: the folder of the images; by default that of the annotations.
        columns: the column of a feature, if neither its name nor its kind defines it. Columns: `image`; for
            the image `file_name`, `width`, `height`; for its objects the lists `boxes`, `labels`,
            `difficult`, `truncated`, `pose`.
        clip: whether boxes are clipped to their image, and objects without any area left are dropped;
            otherwise a box that exceeds its image is an error.
    """

    OBJECT = ("boxes", "labels", "difficult", "truncated", "pose")

    annotations: LocationText = field()

    @cached_property
    def files(self) -> Sequence[AnnotationFile]:
        (folder,) = self.paths
        paths = [file for file in files_below(folder) if file.suffix.lower() == ".xml"]
        if not paths:
            raise StoreError(State(where=str(folder), got="has no files named .xml"))
        return self.beside(paths, folder)

    @property
    def read(self) -> ReadAnnotation:
        return _read_voc


def _read_voc(file: AnnotationFile, folder: Location) -> AnnotatedImage:
    """The image of an XML file. Raises RecordError with the reason, StoreError."""
    assert file.path is not None
    return read_xml(file.path, _LARGEST_XML, partial(_image, file, folder))


def _image(file: AnnotationFile, folder: Location, root: ElementTree.Element) -> AnnotatedImage:
    size = child_of(root, "size")
    name, misnamed = found_name(text_of(root, "filename"), file, folder)
    values: dict[str, Any] = {"file_name": name}
    values |= {side: int(number_of(size, side)) for side in ("width", "height")}
    objects = [_object(one) for one in root.iter("object")]
    names = tuple(f"object {at} (`{one['labels']}`)" for at, one in enumerate(objects))
    return AnnotatedImage(values=values, objects=tuple(objects), names=names, misnamed=misnamed)


def _object(element: ElementTree.Element) -> dict[str, Any]:
    box = child_of(element, "bndbox")
    if box.find("xmin") is None and box.find("x0") is not None:
        hint = "a box has upright sides: write <xmin>, <ymin>, <xmax> and <ymax>"
        problem = Problem(path=("bndbox",), expected="<xmin>", got="corners, such as <x0>", hint=hint)
        raise SpecError(problem)
    return {
        "boxes": [number_of(box, side) for side in ("xmin", "ymin", "xmax", "ymax")],
        "labels": text_of(element, "name"),
        **{flag: int(number_of(element, flag, "0")) for flag in ("difficult", "truncated")},
        "pose": element.findtext("pose") or "",
    }
