"""Finds the annotations of images in files and folders, and their format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from recordspec.errors import Problem, SpecError, StoreError
from recordspec.locations import Location, files_in, folders_in
from recordspec.schema.media import images
from recordspec.store.shard_names import is_split_name
from recordspec.writing.sources.coco import is_coco
from recordspec.writing.sources.cvat import is_cvat
from recordspec.writing.sources.labelme import is_annotation, is_labelme
from recordspec.writing.sources.yolo import DATA_FILES, data_file, given_splits, is_yolo, labels_of

# The folders of annotations: of Pascal VOC, and of COCO.
_FOLDERS = ("Annotations", "annotations")
# The folders of the images of YOLO: of Ultralytics, of Darknet, and any other.
_YOLO_FOLDERS = ("images", "obj_train_data", "")
# The number of JSON files, and of images, by which a format is found.
_FIRST = 32
# COCO's name of annotations of objects, beside others for the same images.
_INSTANCES = "instances"


def annotations_in(folder: Path) -> list[Location]:
    """The annotations of images in a folder: files, folders of files, or the folders of the images of YOLO.

    Raises SpecError for several files of annotations of the same images.
    """
    for one in (folder, *(folder / name for name in _FOLDERS)):
        if not one.is_dir():
            continue
        xml = [file for file in files_in(one) if file.suffix.lower() == ".xml"]
        json = [file for file in files_in(one) if is_annotation(file)]
        if xml:
            return [xml[0]] if is_cvat(xml[0]) else [one]
        if coco := [file for file in json[:_FIRST] if is_coco(file)]:
            return _chosen(coco)
        if any(map(is_labelme, json[:1])):
            return [one]
    return list(_yolo_images(folder))


def _chosen(files: list[Location]) -> list[Location]:
    """The files of COCO to read: all, if each is of another split, or those of the objects."""
    objects = [file for file in files if file.name.startswith(_INSTANCES)]
    kinds = {file.name.partition("_")[0] for file in files}
    if len(kinds) > 1 and not objects:
        hint = "give one of them"
        got = ", ".join(file.name for file in files)
        raise SpecError(
            Problem(where=str(files[0].parent), expected="one file of annotations", got=got, hint=hint)
        )
    return objects or files


def annotation_format(path: Location) -> str | None:
    """The format of annotations: of a file, of a folder of files, or of a folder of images."""
    if isinstance(path, Path) and path.is_dir():
        suffixes = {file.suffix.lower(): file for file in reversed(files_in(path))}
        if ".xml" in suffixes:
            return "voc"
        if ".json" in suffixes and is_labelme(suffixes[".json"]):
            return "labelme"
        return "yolo" if any(_has_boxes(path)) else None
    if path.suffix.lower() == ".xml" and is_cvat(path):
        return "cvat"
    return "coco" if path.suffix == ".json" and is_coco(path) else None


def yolo_dataset(path: Location) -> tuple[Location, Mapping[str, Location]] | None:
    """The `data.yaml` of a YOLO dataset, given itself or in its folder, and the images of each split.
    None for other files.

    Raises SpecError, StoreError for images that do not exist.
    """
    if isinstance(path, Path) and path.is_dir():
        path = next((path / name for name in DATA_FILES if (path / name).exists()), path)
    if path.suffix.lower() not in (".yaml", ".yml"):
        return None
    try:
        data = data_file(path)
    except (SpecError, StoreError):
        return None
    if not data.keys() & {"names", "nc"} or not data.keys() & {"train", "val"}:
        return None
    splits = given_splits(path)
    return (path, splits) if splits else None


def _yolo_images(folder: Path) -> Iterator[Location]:
    """The folders of images that have boxes of YOLO: of each split, or of all."""
    place = next((folder / name for name in _YOLO_FOLDERS if any(_has_boxes(folder / name))), None)
    if place is None:
        return
    splits = [one for one in folders_in(place) if is_split_name(one.name)]
    yield from splits or [place]


def _has_boxes(folder: Path) -> Iterator[bool]:
    """Whether the text file of an image has boxes, for the first images."""
    for image in islice(_images(folder), _FIRST):
        text = labels_of(image.parent) / f"{image.stem}.txt"
        if text.exists():
            yield is_yolo(text)


def _images(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if Path(name).suffix.lower() in images.SUFFIXES:
                yield Path(parent, name)
