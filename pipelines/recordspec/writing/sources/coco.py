"""Annotations of COCO (https://cocodataset.org/#format-data): objects, keypoints and captions."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

from recordspec.errors import Problem, RecordError, describe
from recordspec.locations import Location, LocationText, read_bytes, read_start
from recordspec.schema.media import images
from recordspec.writing.sources.detection import AnnotatedImage, AnnotationDocument

LARGEST_JSON = 4 << 30


@dataclass(frozen=True, kw_only=True)
class Coco(AnnotationDocument):
    """The images of a COCO annotations file, with their objects, or with their captions.

    Attributes:
        annotations: the JSON file, such as `instances_train2017.json` or `captions_train2017.json`.
        images: the folder of the images; by default that of the file.
        columns: the column of a feature, if neither its name nor its kind defines it. Columns: `image`; for
            the image `image_id`, `file_name`, `width`, `height`; for its objects the lists `boxes`, `labels`,
            `category_id`, `annotation_id`, `area`, `iscrowd`, and `keypoints` (x and y in pixels, and the
            visibility) and `num_keypoints` if the file has them; of a file of captions, `captions`.
        clip: whether boxes are clipped to their image, and objects without any area left are dropped;
            otherwise a box that exceeds its image is an error.
        merge_categories: whether categories of the same name are one class; otherwise they are an error.
        crowds: whether regions of crowds (`iscrowd: 1`) are objects; false leaves them out.
    """

    IMAGE = ("image_id", "file_name", "width", "height")
    OBJECT = (
        "boxes",
        "labels",
        "category_id",
        "annotation_id",
        "area",
        "iscrowd",
        "keypoints",
        "num_keypoints",
        "captions",
    )

    annotations: LocationText = field()
    merge_categories: bool = False
    crowds: bool = True

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of all categories, in the order of the file; none for captions."""
        return tuple(dict.fromkeys(self._document.categories.values()))

    @property
    def repeated_names(self) -> tuple[str, ...]:
        """The names that several categories have."""
        counts = Counter(self._document.categories.values())
        return tuple(name for name, many in counts.items() if many > 1)

    @property
    def has_captions(self) -> bool:
        """Whether the annotations are captions, without objects."""
        return self._document.has_captions

    @property
    def unused_names(self) -> tuple[str, ...]:
        """The names of the categories without objects."""
        used = {item["labels"] for image in self.annotated for item in image.objects}
        return tuple(name for name in self.class_names if name not in used)

    @property
    def keypoints(self) -> int | None:
        """The number of keypoints of each object; None if there are none, or if it differs."""
        counts = {
            len(item["keypoints"]) if "keypoints" in item else None
            for image in self.annotated
            for item in image.objects
        }
        return counts.pop() if len(counts) == 1 else None

    @property
    def header(self) -> tuple[str, ...]:
        if "_document" not in vars(self):  # not read yet
            return super().header
        lacking = {"captions"} if self._document.has_keypoints else {"captions", "keypoints", "num_keypoints"}
        objects = ["annotation_id", "captions"] if self.has_captions else []
        objects = objects or [name for name in self.OBJECT if name not in lacking]
        return ("image", *self.IMAGE, *objects)

    @property
    def annotated(self) -> Sequence[AnnotatedImage]:
        return self._document.images

    @cached_property
    def _document(self) -> _Document:
        (path,) = self.paths
        document = _Document.of(path, is_merged=self.merge_categories, with_crowds=self.crowds)
        lacking = [image for image in document.images if not _has_suffix(image.values["file_name"])]
        if not lacking:
            return document
        found = tuple(_with_suffix(image, self.by_stem) for image in document.images)
        return replace(document, images=found)


def _has_suffix(name: str) -> bool:
    return PurePath(name).suffix.lower() in images.SUFFIXES


def _with_suffix(image: AnnotatedImage, by_stem: Mapping[PurePath, str]) -> AnnotatedImage:
    """The image with the name of its file, if `file_name` is that name without its suffix."""
    name = image.values["file_name"]
    file = None if _has_suffix(name) else by_stem.get(PurePath(name))
    if file is None:
        return image
    return AnnotatedImage(
        values={**image.values, "file_name": file}, objects=image.objects, names=image.names
    )


_COCO_KEY = re.compile(rb'"(images|annotations)"\s*:\s*\[')
_COCO_HEAD = 1 << 20


def is_coco(path: Location) -> bool:
    """Whether a JSON file begins like COCO annotations. Raises StoreError if it cannot be read."""
    return _COCO_KEY.search(read_start(path, _COCO_HEAD)) is not None


_USED = {
    *("images", "annotations", "categories", "id", "image_id", "category_id", "file_name"),
    *("width", "height", "bbox", "area", "iscrowd", "name", "keypoints", "num_keypoints", "caption"),
}


def _kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without unused values: segmentations are most of a COCO file."""
    return {name: value for name, value in pairs if name in _USED}


@dataclass(frozen=True)
class _Document:
    """An annotations file.

    Attributes:
        images: the images, in order.
        categories: the names of the categories, by their ids.
        has_captions: whether the annotations are captions.
        has_keypoints: whether objects have keypoints.
    """

    images: tuple[AnnotatedImage, ...]
    categories: Mapping[Any, str]
    has_captions: bool
    has_keypoints: bool

    @classmethod
    def of(cls, path: Location, *, is_merged: bool, with_crowds: bool) -> _Document:
        """Reads a file. Raises RecordError, StoreError."""
        where, document = str(path), read_json(path, _kept)
        annotations = list(_by_id(where, document, "annotations"))
        has_captions = any("caption" in entry and "bbox" not in entry for _, _, entry in annotations)
        names = {} if has_captions else _categories(where, document, is_merged)
        images = {key: (at, one) for at, key, one in _by_id(where, document, "images")}
        objects: dict[Any, list[tuple[str, dict[str, Any]]]] = {key: [] for key in images}
        for at, key, entry in annotations:
            image = entry.get("image_id")
            if not isinstance(image, int | str) or image not in objects:
                raise _wrong(where, ("annotations", at, "image_id"), "the id of an image", describe(image))
            read = _caption if has_captions else _object
            values = read(where, at, key, entry, names)
            if with_crowds or not values.get("iscrowd"):
                objects[image].append((f"annotation {key}", values))
        made = []
        for key, (at, entry) in images.items():
            sizes = {side: _entry(where, "images", at, entry, side, int) for side in ("width", "height")}
            name = _entry(where, "images", at, entry, "file_name", str)
            values = {"image_id": key, "file_name": name, **sizes}
            labelled = objects[key]
            if has_captions:
                values |= {
                    column: [one[column] for _, one in labelled] for column in ("captions", "annotation_id")
                }
                labelled = []
            made.append(
                AnnotatedImage(
                    values=values,
                    objects=tuple(one for _, one in labelled),
                    names=tuple(what for what, _ in labelled),
                )
            )
        has_keypoints = any("keypoints" in one for some in objects.values() for _, one in some)
        return cls(tuple(made), names, has_captions, has_keypoints)


def _caption(
    where: str, at: int, key: Any, entry: Mapping[str, Any], names: Mapping[Any, str]
) -> dict[str, Any]:
    return {"captions": _entry(where, "annotations", at, entry, "caption", str), "annotation_id": key}


def _object(
    where: str, at: int, key: Any, entry: Mapping[str, Any], names: Mapping[Any, str]
) -> dict[str, Any]:
    category = entry.get("category_id")
    if not isinstance(category, int | str) or category not in names:
        raise _wrong(where, ("annotations", at, "category_id"), "the id of a category", describe(category))
    left, top, width, height = _bbox(where, at, entry.get("bbox"))
    values = {
        "boxes": [left, top, left + width, top + height],
        "labels": names[category],
        "category_id": category,
        "annotation_id": key,
        "area": entry.get("area", width * height),
        "iscrowd": entry.get("iscrowd", 0),
    }
    if "keypoints" in entry:
        values["keypoints"] = points = _keypoints(where, at, entry["keypoints"])
        values["num_keypoints"] = entry.get("num_keypoints", sum(point[2] > 0 for point in points))
    return values


def read_json(path: Location, kept: Any = None) -> Any:
    """A JSON document. Raises RecordError for other text, StoreError.

    Args:
        kept: converts the pairs of an object, as `object_pairs_hook` of `json.loads`.
    """
    try:
        return json.loads(read_bytes(path, LARGEST_JSON), object_pairs_hook=kept)
    except (ValueError, RecursionError) as error:
        raise RecordError(Problem(where=str(path), expected="JSON", got=str(error))) from None


def _categories(where: str, document: Any, is_merged: bool) -> dict[Any, str]:
    """The names of the categories, by their ids."""
    names = {
        key: _entry(where, "categories", at, category, "name", str)
        for at, key, category in _by_id(where, document, "categories")
    }
    repeated = [name for name, many in Counter(names.values()).items() if many > 1]
    if repeated and not is_merged:
        hint = "`merge_categories: true` of the source makes one class of them"
        raise _wrong(where, ("categories",), "every name once", f"`{repeated[0]}` again", hint)
    return names


def _by_id(where: str, document: Any, name: str) -> Iterator[tuple[int, Any, dict[str, Any]]]:
    """The index, the id and the entry of each item of a list. Raises RecordError for an id that occurs
    twice.
    """
    if isinstance(document, list):
        hint = "tasks of Label Studio, which exports COCO, too, or `--format json` for rows"
        raise _wrong(where, (), "an object with `images`, `annotations` and `categories`", "a list", hint)
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


def _keypoints(where: str, at: int, value: Any) -> list[list[float]]:
    """The keypoints of an object: x, y and visibility (0: not labelled, 1: hidden, 2: visible) of each."""
    numbers: list[Any] = value if isinstance(value, list) else [None]
    if len(numbers) % 3 or not all(isinstance(one, int | float) and math.isfinite(one) for one in numbers):
        raise _wrong(where, ("annotations", at, "keypoints"), "[x, y, visibility, ...]", describe(value))
    return [numbers[start : start + 3] for start in range(0, len(numbers), 3)]


def _wrong(where: str, path: tuple[str | int, ...], expected: str, got: str, hint: str = "") -> RecordError:
    return RecordError(Problem(where=where, path=path, expected=expected, got=got, hint=hint))
