"""Annotations of YOLO (https://docs.ultralytics.com/datasets/detect/), a text file per image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import PurePath
from typing import Any

import numpy as np
import yaml

from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, counted, describe
from recordspec.locations import (
    Location,
    LocationText,
    below,
    is_below,
    joined,
    location,
    read_start,
    read_text,
    relative,
)
from recordspec.schema.media import images
from recordspec.schema.schema import Schema
from recordspec.schema.values import Array
from recordspec.writing.sources.detection import (
    AnnotatedImage,
    AnnotationFile,
    AnnotationFiles,
    ReadAnnotation,
    extent,
    upright_size,
)
from recordspec.writing.sources.folders import files_below

# The names of files of class names: of Ultralytics and Roboflow, of labelImg and Label Studio, of Darknet.
DATA_FILES = ("data.yaml", "data.yml", "dataset.yaml")
NAMES_FILES = (*DATA_FILES, "classes.txt", "obj.names", "_darknet.labels")
SPLITS = ("train", "val", "valid", "test")
_SUFFIX = ".txt"
_LARGEST = 64 << 20
# The bytes that tell whether a text file has boxes.
_START = 1 << 16
# The names of the folders of images and of their annotations.
_IMAGES, _LABELS = "images", "labels"
# Fractions have 6 decimals; a side is the centre and half of the width, both rounded.
_ROUNDED = 1e-6


@dataclass(frozen=True, kw_only=True)
class Yolo(AnnotationFiles):
    """The images of a YOLO dataset, with the objects in the text file of each.

    An image without a text file has no objects. A line has a class and the centre, width and height of its
    box, as fractions of the upright image, as YOLO's trainers read it. The box of a polygon is the smallest
    one around it.

    Attributes:
        images: the folder of the images; or a text file with the path of an image on each line.
        annotations: the folder of the text files. By default, for images in a folder `images`, the folder
            `labels` beside it, and otherwise the folder of the images.
        names: the file with the names of the classes: `data.yaml`, or one with a name on each line, such as
            `classes.txt`. Without it, the numbers of the classes are their names.
        columns: the column of a feature, if neither its name nor its kind defines it. Columns: `image`; for
            the image `file_name`, `width`, `height`; for its objects the lists `boxes`, `labels`, `shape`
            (`box` or `polygon`), and `keypoints` (x and y in pixels, and the visibility) if `data.yaml` has
            `kpt_shape`.
        clip: whether boxes are clipped to their image, and objects without any area left are dropped;
            otherwise a box that exceeds its image is an error.
    """

    SHORT_FORM = "images"
    LOCATIONS = ("annotations", "images", "names")
    OBJECT = ("boxes", "labels", "shape", "keypoints")

    images: LocationText = field()
    names: LocationText | None = None

    @property
    def folder(self) -> Location:
        """The folder of the images, or of the file that lists them."""
        (path,) = self.paths
        return path if path.is_dir() else path.parent

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of all classes, by number; without a file, the numbers that occur, and those below."""
        if self.names is not None:
            return self.classes.names
        numbers = [int(item["labels"]) for image in self.annotated for item in image.objects]
        return tuple(map(str, range(max(numbers) + 1))) if numbers else ()

    @cached_property
    def classes(self) -> YoloClasses:
        return YoloClasses() if self.names is None else YoloClasses.of(location(self.names))

    @property
    def keypoints(self) -> int | None:
        """The number of keypoints of each object; None if there are none."""
        return self.classes.keypoints or None

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        super().check(schema, extra)
        _ = self.classes

    @cached_property
    def image_files(self) -> list[Location]:
        (path,) = self.paths
        if path.is_dir():
            return super().image_files
        lines = read_text(path, _LARGEST).splitlines()
        files = [
            _listed(line.strip(), path.parent, f"{path}:{number}")
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
        if not files:
            raise StoreError(State(where=str(path), got="names no images"))
        return files

    @cached_property
    def files(self) -> Sequence[AnnotationFile]:
        folders: dict[Location, Location] = {}
        texts: dict[Location, frozenset[Location]] = {}
        made = []
        for image in self.image_files:
            if self.annotations is not None:
                home: Location = location(self.annotations)
                below_home = relative(image, self.folder).with_suffix(_SUFFIX)
                text = joined(home, below_home.as_posix())
            else:
                home = folders.get(image.parent) or folders.setdefault(image.parent, labels_of(image.parent))
                text = home / f"{PurePath(image.name).stem}{_SUFFIX}"
            if home not in texts:
                texts[home] = frozenset(files_below(home)) if home.is_dir() else frozenset()
            name = relative(image, self.folder).as_posix()
            made.append(AnnotationFile(text if text in texts[home] else None, name))
        if not any(file.path for file in made):
            where = self.annotations or ", ".join(map(str, texts)) or self.given[0]
            hint = "`annotations` names the folder of the text files"
            raise StoreError(State(where=str(where), got="has no .txt file of any image", hint=hint))
        read = {file.path for file in made}
        others = sorted(text for some in texts.values() for text in some - read if text.suffix == _SUFFIX)
        others = [text for text in others if text.name not in NAMES_FILES]
        if others:
            self.notes.append(f"text files without an image, left out: {len(others):,}, such as {others[0]}")
        return made

    @property
    def read(self) -> ReadAnnotation:
        return partial(_read_yolo, self.classes)


def _listed(line: str, folder: Location, where: str) -> Location:
    """The image that a line of a list names; Darknet and CVAT write the folder `data` before it.

    Raises RecordError for an image that is not below the folder of the list.
    """
    file = below(folder, line)
    first, _, rest = line.partition("/")
    if first == "data" and not file.exists():
        file = below(folder, rest)
    if not is_below(file, folder):
        raise RecordError(Problem(where=where, expected=f"a path in {folder}", got=f"`{line}`"))
    return file


def labels_of(folder: Location) -> Location:
    """The folder of the text files of the images in a folder: `labels` in place of the last `images` in its
    path, if there is such a folder; otherwise the folder itself.
    """
    up: Location = folder
    names: list[str] = []
    while up.name and up.name != _IMAGES and up.parent != up:
        names.insert(0, up.name)
        up = up.parent
    if up.name != _IMAGES:
        return folder
    labels = up.with_name(_LABELS)
    for name in names:
        labels = labels / name
    return labels if labels.is_dir() else folder


@dataclass(frozen=True)
class YoloClasses:
    """The classes of a YOLO dataset.

    Attributes:
        names: the names by number; empty if unknown.
        file: the file of the names.
        keypoints, values: the number of keypoints of an object, and of the values of each, 2 or 3.
    """

    names: tuple[str, ...] = ()
    file: str = ""
    keypoints: int = 0
    values: int = 0

    @classmethod
    def of(cls, path: Location) -> YoloClasses:
        """Reads a file. Raises SpecError if it has no names, StoreError if it cannot be read."""
        if path.suffix.lower() not in (".yaml", ".yml"):
            lines = [line.strip() for line in read_text(path, _LARGEST).rstrip().splitlines()]
            if "" in lines:  # a class is the number of its line
                where = f"{path}:{lines.index('') + 1}"
                raise SpecError(Problem(where=where, expected="the name of a class", got="an empty line"))
            return cls(_checked(lines, path), str(path))
        data = data_file(path)
        keypoints = data.get("kpt_shape") or (0, 0)
        if (
            not isinstance(keypoints, list | tuple)
            or len(keypoints) != 2
            or not all(isinstance(one, int) for one in keypoints)
            or keypoints[1] not in (0, 2, 3)
        ):
            raise SpecError(
                Problem(where=str(path), path=("kpt_shape",), expected="[count, 2 or 3]", got=str(keypoints))
            )
        names, count = data.get("names"), data.get("nc")
        if names is None and isinstance(count, int):
            names = [f"class_{number}" for number in range(count)]
        if isinstance(names, Mapping):
            names = [names.get(number) for number in range(len(names))]
        if not isinstance(names, list) or any(name is None for name in names):
            expected = "the names of the classes, from 0 on"
            got = "none" if names is None else str(data["names"])
            hint = f"`names: {names}` of the source reads a file with a name on each line"
            hint = hint if isinstance(names, str) else ""
            raise SpecError(Problem(where=str(path), path=("names",), expected=expected, got=got, hint=hint))
        for name in names:
            if isinstance(name, bool) or not isinstance(name, (str, int)):
                hint = "in quotes, `no` and `yes` are names"
                problem = Problem(path=("names",), expected="names of classes", got=describe(name), hint=hint)
                raise SpecError(problem.at(str(path)))
        return cls(_checked(list(map(str, names)), path), str(path), *keypoints)

    def name(self, number: int) -> str:
        """The name of a class. Raises SpecError for a number without a name."""
        if number < 0 or (self.names and number >= len(self.names)):
            most = f"0 to {len(self.names) - 1}, as {self.file} names" if self.names else "from 0 on"
            raise SpecError(Problem(expected=f"a class {most}", got=str(number)))
        return self.names[number] if self.names else str(number)


def _checked(names: list[str], path: Location) -> tuple[str, ...]:
    repeated = [name for number, name in enumerate(names) if name in names[:number]]
    if repeated or not names:
        got = f"`{repeated[0]}` again" if repeated else "none"
        raise SpecError(Problem(where=str(path), path=("names",), expected="every name once", got=got))
    return tuple(names)


def data_file(path: Location) -> dict[str, Any]:
    """The values of a `data.yaml`; no value is executed, as Ultralytics does with `download`.

    Raises SpecError for other text, StoreError if it cannot be read.
    """
    try:
        data = yaml.safe_load(read_text(path, _LARGEST))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SpecError(Problem(where=str(path), expected="YAML", got=str(error))) from None
    if not isinstance(data, dict):
        raise SpecError(Problem(where=str(path), expected="a data.yaml of YOLO", got="other YAML"))
    return data


def given_splits(path: Location) -> dict[str, Location]:
    """The images of each split that a `data.yaml` names: a folder, or a file that lists them.

    Roboflow writes `../train/images` for a folder beside the file. Raises SpecError for several folders of a
    split, StoreError for a folder that does not exist.
    """
    data, home = data_file(path), path.parent
    root = data.get("path")
    roots = [home, *([joined(home, str(root))] if root else [])]
    found: dict[str, Location] = {}
    for split in SPLITS:
        given = data.get(split)
        given = given[0] if isinstance(given, list) and len(given) == 1 else given
        if given is None or given == "":
            continue
        if not isinstance(given, str):
            expected = "one folder, or one file that lists the images"
            got = counted(len(given), "path") if isinstance(given, list) else str(given)
            hint = "a text file can list the images of all folders"
            raise SpecError(Problem(where=str(path), path=(split,), expected=expected, got=got, hint=hint))
        places = [joined(one, text) for one in roots[::-1] for text in (given, given.removeprefix("../"))]
        # a data.yaml of others may name a URL, which is not asked for
        place = next((one for one in places if type(one) is type(home) and one.exists()), None)
        if place is None:
            if split == "test":  # Roboflow names one even where there is none
                continue
            got, hint = "does not exist", f"`{split}` of {path.name} names it"
            raise StoreError(State(where=str(places[0]), got=got, hint=hint))
        found[split] = place
    return found


def is_yolo(path: Location) -> bool:
    """Whether a text file has boxes: a class and four fractions or more on its first line."""
    try:
        numbers = list(map(float, read_start(path, _START).split(b"\n")[0].split()))
    except ValueError:
        return False
    return len(numbers) >= 5 and numbers[0] % 1 == 0 and all(-1 <= one <= 2 for one in numbers[:5][1:])


def _read_yolo(classes: YoloClasses, file: AnnotationFile, folder: Location) -> AnnotatedImage:
    """The objects of an image, in pixels of the upright image. Raises RecordError, StoreError."""
    path = joined(folder, file.image)
    header = images.header_of(path)
    if header is None:
        got = "a file that is none" if path.exists() else "no such file"
        raise RecordError(Problem(expected=f"an image at {path}, whose size the boxes need", got=got))
    height, width = upright_size(header)
    objects = []
    lines = [] if file.path is None else read_text(file.path, _LARGEST).splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = _object(line, classes, np.array([width, height]))
        except SpecError as error:
            problems = [replace(one, got=f"{one.got} on line {number}") for one in error.problems]
            raise RecordError(problems) from None
        objects.append((f"line {number}", one))
    return AnnotatedImage(
        values={"file_name": file.image, "width": width, "height": height},
        objects=tuple(one for _, one in objects),
        names=tuple(name for name, _ in objects),
        is_upright=True,
        header=header,
    )


def _object(line: str, classes: YoloClasses, size: Array) -> dict[str, Any]:
    """The object of a line; `size` is the width and height of the image. Raises SpecError."""
    try:
        numbers = np.array(line.split(), np.float64)
    except ValueError:
        numbers = np.array([])
    count, keypoints = len(numbers), classes.keypoints * classes.values
    is_polygon = not keypoints and count >= 7 and count % 2 == 1
    if not (is_polygon or count == 5 + keypoints) or not np.isfinite(numbers).all() or numbers[0] % 1:
        expected = f"a class and {4 + keypoints} numbers"
        hint = ""
        if not keypoints:
            expected += ", or the points of a polygon"
            hint = "the sixth is the confidence of a prediction" if count == 6 else ""
        raise SpecError(Problem(expected=expected, got=f"`{line.strip()}`", hint=hint))
    if is_polygon:
        points = numbers[1:].reshape(-1, 2)
    else:
        centre, half = numbers[1:3], numbers[3:5] / 2
        points = np.stack([centre - half, centre + half])
        if (half < 0).any():
            raise SpecError(Problem(expected="a width and a height from 0 on", got=f"`{line.strip()}`"))
    points = np.where((points < 0) & (points >= -_ROUNDED), 0, points)
    points = np.where((points > 1) & (points <= 1 + _ROUNDED), 1, points)
    made = {
        "boxes": extent(points * size),
        "labels": classes.name(int(numbers[0])),
        "shape": "polygon" if is_polygon else "box",
    }
    if keypoints:
        made["keypoints"] = _keypoints(numbers[5:].reshape(classes.keypoints, -1), size)
    return made


def _keypoints(given: Array, size: Array) -> list[list[float]]:
    """The keypoints of an object: x, y and the visibility of each. If the file has no visibility, it is 0 for
    negative fractions, and otherwise 2, as in COCO.
    """
    points = given[:, :2]
    seen = given[:, 2:] if given.shape[1] == 3 else np.where((points < 0).any(axis=1, keepdims=True), 0, 2)
    made: list[list[float]] = np.concatenate([np.where(seen > 0, points * size, 0), seen], axis=1).tolist()
    return made
