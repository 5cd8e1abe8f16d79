"""Features for annotated images: boxes and labels, keypoints, or captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PureWindowsPath
from typing import Any

from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, counted
from recordspec.inferring.input_files import InputFiles
from recordspec.inferring.media_features import LEFT_OUT, MOST_MEDIA, infer_media_files
from recordspec.locations import Location, folders_in, joined
from recordspec.schema.features import Feature
from recordspec.schema.features.box import Box
from recordspec.schema.features.geometry import Pictures
from recordspec.schema.features.label import Label
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.inferred import Inferred
from recordspec.schema.schema import Schema
from recordspec.writing.sources.detection import ANNOTATIONS, AnnotatedImage, exists, invalid_boxes
from recordspec.writing.sources.yolo import NAMES_FILES, data_file, labels_of

# The number of images by which the folder of images is found.
_FIRST = 16
# The number of folders above the images in which their classes may be named.
_LEVELS = 2
# The number of names that a note lists.
_MOST_NAMED = 5
# The folder of the lists of images of each split, beside the annotations of Pascal VOC.
_VOC_SPLITS = "ImageSets"
# The types of shapes that are boxes themselves.
_BOXES = ("box", "rectangle")


def infer_annotated(files: InputFiles, name: str, sample: int | None) -> Inferred:
    """Infers a schema for annotated images."""
    for split, paths in files.splits.items():
        if len(paths) > 1:
            expected = f"annotations in one file{f' of {split}' if split else ', or one for each split'}"
            raise SpecError(Problem(where=str(paths[1]), expected=expected, got="another one"))
    sources = [_source(files.source, annotations_of(files, path)) for path in files.paths]
    pairs = [(source.folder, image) for source in sources for image in source.annotated]
    features: list[Feature] = []
    if all(getattr(source, "has_captions", False) for source in sources):
        features.append(VariableLen(name="captions", dtype="string"))
    else:
        classes = tuple(dict.fromkeys(name for source in sources for name in source.class_names))
        if not classes:
            raise RecordError(Problem(where=str(files.paths[0]), expected="objects with classes", got="none"))
        boxes = Box(name="boxes", format="rel_yxyx")
        features += [boxes, Label(name="labels", names=classes, shape=(None,))]
        features += _keypoints(sources)
    image, more, missing_files = _image(pairs, sample, is_turned=len(features) < 3)
    notes = [*more, *_notes_of_boxes([image for _, image in pairs]), *_notes_of_names(files, sources, pairs)]
    notes += _missing_splits(files)
    made = (image, *features)
    return Inferred(
        schema=Schema(name=name, features=made),
        notes=tuple(notes),
        rows=len(pairs),
        missing_files=missing_files,
    )


def _source(name: str, options: dict[str, Any]) -> Any:
    return ANNOTATIONS[name].load()(**options)


def _image(
    pairs: Sequence[tuple[Location, AnnotatedImage]], sample: int | None, *, is_turned: bool
) -> tuple[Feature, list[str], dict[str, tuple[int, int]]]:
    """The feature of the images, which are not turned upright unless `is_turned`; notes; and the numbers of
    missing and of all files that were looked for, if any is missing.
    """
    some = pairs[:: max(1, len(pairs) // (sample or MOST_MEDIA))]
    named = [(folder, image.values["file_name"]) for folder, image in some]
    missing = [f"{folder}/{name}" for folder, name in named if not exists(folder, name)]
    lost = set(missing)
    present = [joined(folder, name) for folder, name in named if f"{folder}/{name}" not in lost]
    medium, notes = infer_media_files("image", "image", present)
    if missing:
        count = f"{len(missing):,} of {len(named):,} files do not exist"
        notes.append(f"image: {count}, such as {missing[0]}: {LEFT_OUT}")
    if not is_turned and isinstance(medium, Pictures) and medium.is_turned:
        medium = medium.not_turned
        notes.append("image: not turned upright, since the keypoints would not be")
    if len(some) < len(pairs):
        notes.append(f"image: judged by the headers of {len(some):,} of {len(pairs):,} files")
    return medium, notes, {"image": (len(missing), len(named))} if missing else {}


def _keypoints(sources: Sequence[Any]) -> Iterator[Feature]:
    """The feature of the keypoints, if every object has the same number."""
    counts = {getattr(source, "keypoints", None) for source in sources}
    if len(counts) == 1 and (count := counts.pop()):
        yield RaggedLists(name="keypoints", dtype="float32", shape=(None, count, 3))


def _notes_of_boxes(images: Sequence[AnnotatedImage]) -> Iterator[str]:
    """Notes on boxes that a build refuses, derives from other shapes, or leaves out."""
    exceeding, without = (sum(counts) for counts in zip(*map(invalid_boxes, images), strict=True))
    if exceeding:
        yield "boxes: some exceed their image, which `clip: true` of the source clips"
    if without:
        yield f"boxes: {without:,} without an area, which `clip: true` of the source leaves out"
    objects = [item for image in images for item in image.objects]
    crowds = sum(bool(item.get("iscrowd")) for item in objects)
    if crowds:
        yield (
            f"boxes: {counted(crowds, 'region')} of crowds (`iscrowd: 1`), objects as all others: "
            "`crowds: false` of the source leaves them out, the column `iscrowd` marks them"
        )
    shapes = Counter(item["shape"] for item in objects if item.get("shape") not in (None, *_BOXES))
    if shapes:
        yield f"boxes: the smallest around other shapes: {_counts(shapes)} (the column `shape` has the type)"
    left_out = Counter(shape for image in images for shape in image.left_out)
    if left_out:
        yield f"boxes: shapes without an area, left out: {_counts(left_out)}"
    empty = sum(not image.objects and "captions" not in image.values for image in images)
    if empty:
        yield f"boxes: none in {empty:,} of {len(images):,} images"
    if any("keypoints" in item for item in objects):
        yield (
            "keypoints: x, y and visibility of each, in pixels of the stored image: they follow neither "
            "`resize` nor `augment`"
        )


def _notes_of_names(
    files: InputFiles, sources: Sequence[Any], pairs: Sequence[tuple[Location, AnnotatedImage]]
) -> Iterator[str]:
    """Notes on the names of classes and of images, and on other files."""
    repeated = dict.fromkeys(name for source in sources for name in getattr(source, "repeated_names", ()))
    if repeated:
        yield (
            f"labels: several categories are named {_named([*repeated])}: `merge_categories: true` of the "
            "source makes one class of them"
        )
    unused = [set(getattr(source, "unused_names", ())) for source in sources]
    never = [name for name in sources[0].class_names if all(name in names for names in unused)]
    if never:
        yield f"labels: no object is {_named(never)}: remove names that are no classes from `names`"
    if any(hasattr(source, "names") and source.names is None for source in sources):
        yield (
            "labels: the numbers of the classes are their names, since there is no data.yaml or classes.txt: "
            "`names:` of the source takes one"
        )
    misnamed = [image.misnamed for _, image in pairs if image.misnamed]
    if misnamed:
        yield (
            f"image: {counted(len(misnamed), 'annotation')} of a file that does not exist, such as "
            f"`{misnamed[0]}`: the image with the annotation's own name is read"
        )
    counts = Counter((str(folder), image.values["file_name"]) for folder, image in pairs)
    several = [name for (_, name), many in counts.items() if many > 1]
    if several:
        yield f"image: several annotations of one image: {_named(several)}"
    for source, path in zip(sources, files.paths, strict=True):
        yield from source.notes
        lists = path.parent / _VOC_SPLITS
        if files.source == "voc" and lists.is_dir():
            yield f"splits: the lists in {lists} are not read"


def _missing_splits(files: InputFiles) -> Iterator[str]:
    """A note on the split `test` of a `data.yaml` if its folder does not exist."""
    if files.names is not None and data_file(files.names).get("test") and "test" not in files.splits:
        yield f"splits: no `test`, whose folder in {files.names} does not exist"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{many:,} of {name}" for name, many in counts.most_common(_MOST_NAMED))


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMED]) + more


def annotations_of(files: InputFiles, path: Location) -> dict[str, Any]:
    """The options of the source of annotated images. Raises StoreError if no folder beside the
    annotations has the images.
    """
    options = _yolo_options(files, path) if files.source == "yolo" else _options(files.source, path)
    made = _source(files.source, options)
    if any(any(invalid_boxes(image)) for image in made.annotated):
        options["clip"] = True
    return options


def _options(source: str, path: Location) -> dict[str, Any]:
    options: dict[str, Any] = {"annotations": str(path)}
    if source == "coco":
        merged = _source(source, options | {"merge_categories": True})
        if merged.repeated_names:
            options["merge_categories"] = True
    made = _source(source, options)
    first = [image for image, _ in zip(made.annotated, range(_FIRST), strict=False)]
    if not first:
        raise RecordError(Problem(where=str(path), expected="annotated images", got="none"))
    home = path if path.is_dir() else path.parent
    beside = folders_in(home.parent)
    places = [home, *folders_in(home), home.parent, *beside]
    places += [one for folder in beside if folder.name == "images" for one in folders_in(folder)]
    names = [image.misnamed or image.values["file_name"] for image in first]
    folder = _most(places, lambda place: sum(exists(place, name) for name in names))
    if folder is None:  # names without a suffix, or of files that were renamed
        places.remove(home.parent)  # which may have many other files

        def found(place: Location) -> int:
            beside = _source(source, options | {"images": str(place)})
            some = zip(beside.annotated, range(_FIRST), strict=False)
            return sum(exists(place, image.values["file_name"]) for image, _ in some)

        folder = _most(places, found)
    if folder is None:
        hint = "a config names their folder: `images:` of the source"
        if (given := PureWindowsPath(names[0])).root:  # \ or /, of any system
            hint = f"paths of another machine: write paths from a folder, such as `{given.name}`"
        got = f"names images such as `{names[0]}`, which are in no folder beside it"
        raise StoreError(State(where=str(path), got=got, hint=hint))
    if folder != home:
        options["images"] = str(folder)
    return options


def _most(places: Iterable[Location], count: Callable[[Location], int]) -> Location | None:
    """The first place with the largest count; None if all counts are 0."""
    best, most = None, 0
    for place in places:
        number = count(place)
        if number > most:
            best, most = place, number
    return best


def _yolo_options(files: InputFiles, path: Location) -> dict[str, Any]:
    """The options of a folder of images, with the file of the names of the classes that is next to it."""
    options: dict[str, Any] = {"images": str(path)}
    names = files.names or yolo_names(path)
    if names is not None:
        options["names"] = str(names)
    return options


def yolo_names(images: Location) -> Location | None:
    """The file with the names of the classes: in the folder of the images or of their text files, or in a
    folder above.
    """
    home = images if images.is_dir() else images.parent
    labels = labels_of(home)
    places = [home, labels, *(place for one in (labels, home) for place in [*one.parents][:_LEVELS])]
    found = (place / name for place in dict.fromkeys(places) for name in NAMES_FILES)
    return next((file for file in found if file.exists()), None)
