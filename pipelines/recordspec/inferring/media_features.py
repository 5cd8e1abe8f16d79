"""Features for images and audio: files, paths in tables, folders by class, and annotated images."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, counted, see, show_shape
from recordspec.inferring.input_files import FOLDERS, InputFiles
from recordspec.locations import Location, files_in, folders_in, location, read_bytes, read_start, relative
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.label import Label
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.inferred import Inferred
from recordspec.schema.media import array_files, images, sounds
from recordspec.schema.schema import Schema
from recordspec.schema.values import DTYPES
from recordspec.store.shard_names import is_split_name
from recordspec.tables.media_headers import MEDIA, MediaInfo, image_info, media_info
from recordspec.wire.file_types import describe_type, type_name
from recordspec.writing.sources.folders import MediaFolder

# The largest number of files whose headers are read.
MOST_MEDIA = 1024
_LARGEST_MEDIUM = 1 << 30
# The bytes of a .npy file that have its header.
_ARRAY_START = 1 << 16
# The end of a note on files that do not exist.
LEFT_OUT = "`write: {invalid: ...}` of the config leaves their rows out; without it, they are an error"
# The number of classes that a note names.
_MOST_NAMED = 5
# The formats of features, by their `encoding`.
IMAGES = {f"{name} image": name.lower() for name in ("PNG", "JPEG", "WebP", "BMP", "GIF")}
SOUNDS = {"WAV file": "wav", "FLAC file": "flac", "Ogg file": "ogg", "MP3 file": "mp3"}
_GREY_MODES = frozenset({"1", "L", "LA", "I", "I;16", "I;16B"})


def infer_media(
    files: Sequence[Location], classes: Sequence[str], name: str, feature: str, sample: int | None = None
) -> Inferred:
    """Infers a schema for files of images or audio, from the headers of at most 1,024 files.

    Args:
        classes: the names of the classes; empty if there are none.
        feature: `image` or `audio`, the kind and the name of the feature.
        sample: the number of files to read instead of 1,024.

    Raises:
        RecordError: no feature stores all files; or soundfile is missing for audio.
    """
    most = min(len(files), sample or MOST_MEDIA)
    some = [files[index * len(files) // most] for index in range(most)]
    medium, notes = infer_media_files(feature, feature, some)
    notes += [f"{feature}: judged by the headers of {most:,} of {len(files):,} files"] * (most < len(files))
    made = [medium]
    if classes:
        made.append(Label(name="label", names=tuple(classes)))
    return Inferred(schema=Schema(name=name, features=tuple(made)), notes=tuple(notes), rows=len(files))


def infer_media_files(kind: str, name: str, files: Iterable[Location]) -> tuple[Feature, list[str]]:
    """`infer_medium` for files; `kind` may also be `tensor`, for `.npy` files."""
    if kind == "tensor":
        return _infer_arrays(name, files)
    return infer_medium(kind, name, ((str(file), read_bytes(file, _LARGEST_MEDIUM)) for file in files))


def _infer_arrays(name: str, files: Iterable[Location]) -> tuple[Feature, list[str]]:
    """The feature that stores the arrays of `.npy` files, from their headers, and notes.

    Raises RecordError for a file that is no array of numbers, and for arrays that no dtype holds, or whose
    shapes differ in more than the first size.
    """
    shapes: dict[tuple[int, ...], Location] = {}
    dtypes: dict[Any, Location] = {}
    for file in files:
        start = read_start(file, _ARRAY_START)
        header = array_files.header_in(start)
        if header is None or header[1].name not in DTYPES:
            got = describe_type(start) if header is None else f"dtype {header[1]}"
            raise RecordError(Problem(where=str(file), expected="a .npy file of numbers", got=got))
        shapes.setdefault(header[0], file)
        dtypes.setdefault(header[1].newbyteorder("="), file)
    first, *others = shapes
    for shape in others:
        if not shape or len(shape) != len(first) or shape[1:] != first[1:]:
            expected = f"an array of shape {show_shape((None, *first[1:]))}, as {shapes[first]}"
            got = f"shape {show_shape(shape)}"
            hint = "only the first size may differ: pad arrays to one shape, or store them flat, with a shape"
            raise RecordError(Problem(where=str(shapes[shape]), expected=expected, got=got, hint=hint))
    dtype = np.result_type(*dtypes)
    notes = []
    if len(dtypes) > 1:
        rounded = [one for one in dtypes if one.kind in "iu" and one.itemsize > 4 and dtype.kind not in "iu"]
        if rounded:
            expected = f"arrays that one dtype holds, as {' and '.join(map(str, dtypes))}"
            problem = Problem(where=str(dtypes[rounded[0]]), expected=expected, got="no such dtype")
            raise RecordError(problem)
        notes.append(f"{name}: arrays of {' and '.join(map(str, dtypes))}, stored as {dtype}")
    if others:
        notes.append(f"{name}: of different sizes, which `fit` pads to the largest of a batch")
    size = (None, *first[1:]) if others else first
    return AnyTensor(name=name, dtype=dtype.name, shape=size, encoding="raw" if size else None), notes


def infer_medium(kind: str, name: str, contents: Iterable[tuple[str, bytes]]) -> tuple[Feature, list[str]]:
    """The feature that stores the given images or audio, and notes.

    Args:
        kind: `image` or `audio`.
        name: the name of the feature.
        contents: the bytes of files, each with its name in messages.

    Raises:
        RecordError: no feature stores all files; or soundfile is missing for audio.
    """
    media, notes, others = list[tuple[str, MediaInfo]](), list[str](), list[Problem]()
    for where, data in contents:
        form = type_name(data) or ""
        info = media_info(data, form)
        if info is None and kind == "image":
            info = image_info(data)
        if info is None and kind == "audio":
            sounds.soundfile("the sample rates of audio")  # not needed for a plain WAV file
        if info is None or info.takers is None:
            problem = images.size_problem(data) if kind == "image" else None
            is_damaged = form in MEDIA and form.endswith(" image") == (kind == "image")
            got = f"{describe_type(data)}{' that is damaged' * is_damaged}"
            hint = images.reader_hint(data) if kind == "image" else ""
            problem = problem or Problem(expected=f"an {kind} file", got=got, hint=hint)
            others.append(problem.at(where))
            continue
        media.append((where, info))
    if others and not media:
        raise RecordError(others[0])
    if others:
        more = f"and {len(others) - 1:,} more; " if len(others) > 1 else ""
        reader = f"{others[0].hint} reads them; " if others[0].hint else ""
        hint = f"{more}{reader}`invalid: quarantine` leaves a few such files out; {see('building')}"
        notes.append(str(replace(others[0], hint=hint)))
    conversions: list[str] = []
    options = (_image_options if kind == "image" else _audio_options)(media, conversions)
    notes += [f"{name}: {note}" for note in conversions]
    if None in options.get("shape", ()):
        notes.append(
            f"{name}: of different sizes, which `fit` pads to the largest of a batch "
            "(with `resize: [h, w]` in the schema, all have one)"
        )
    return KINDS[kind](name=name, **options), notes


def _image_options(media: list[tuple[str, MediaInfo]], notes: list[str]) -> dict[str, Any]:
    """The options of a feature that stores all images: unchanged, or re-encoded as JPEG if half of them
    are JPEG, else as PNG.
    """
    infos = [_upright(info) for _, info in media]
    forms, modes = {info.form for info in infos}, {info.mode for info in infos}
    photos = sum(info.form == "JPEG image" for info in infos)
    if modes == {"P"}:
        notes.append("palettes, stored as their colours; if these are masks, `mask_of` keeps the indices")
    is_turned = photos or any(info.orientation != 1 for info in infos)
    turned: dict[str, Any] = {"orientation": "upright"} if is_turned else {}
    misnamed = [
        where
        for where, info in media
        if images.encoding_named(where) not in (None, IMAGES.get(info.form, info.form))
    ]
    if misnamed:
        notes.append(f"files with the suffix of another format, which `convert` accepts: {_some(misnamed)}")
    unchanged = media_options(min(forms), infos) if len(forms) == 1 and forms <= IMAGES.keys() else None
    if unchanged is not None:
        del unchanged["kind"]
        return unchanged | turned | ({"convert": True} if misnamed else {})
    encoding = "jpeg" if 2 * photos >= len(infos) else "png"
    # 32-bit numbers, whose range is unknown, are stored unchanged; numbers that are too large are refused
    kept = {"RGBA" if info.is_transparent else "I;16" if info.mode == "I" else info.mode for info in infos}
    form = images.lossless(kept)
    text = f"{_listed(forms)} of modes {', '.join(sorted(modes))}, stored as "
    text += encoding.upper()
    converted: dict[str, Any] = {"convert": True} if misnamed else {}
    if form is None or (encoding == "jpeg" and form not in ((1, "uint8"), (3, "uint8"))):
        form, converted = (1 if modes <= _GREY_MODES else 3, "uint8"), {"convert": True}
        text += f", converted to {counted(form[0], 'channel')} of 8 bits"
        if any(info.is_transparent for info in infos):
            converted["background"] = 255
            text += ", transparent ones drawn on white"
    if encoding == "jpeg" and len(forms) > 1:
        text += ", which changes the others a little (`encoding: png` does not)"
    notes.append(text)
    sizes = [_common(info.measures[side] for info in infos) for side in ("height", "width")]
    return {"shape": (*sizes, form[0]), "encoding": encoding, "dtype": form[1], **turned, **converted}


def _upright(info: MediaInfo) -> MediaInfo:
    """An image with its width and height as displayed."""
    if info.orientation < 5:
        return info
    return replace(info, measures={"width": info.measures["height"], "height": info.measures["width"]})


def _listed(forms: Iterable[str]) -> str:
    """Formats of media: `JPEG and PNG images`."""
    *others, last = sorted(forms)
    first = ", ".join(form.rpartition(" ")[0] for form in others)
    return f"{first} and {last}s" if others else f"{last}s"


def _some(names: Sequence[str]) -> str:
    """The first of the names, and the number of remaining ones."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _audio_options(media: list[tuple[str, MediaInfo]], notes: list[str]) -> dict[str, Any]:
    """The options of a feature that stores all audio: unchanged, or converted to the most frequent rate
    and channels.
    """
    infos = [info for _, info in media]
    forms = {info.form for info in infos}
    misnamed = [
        where
        for where, info in media
        if sounds.format_named(where) not in (None, SOUNDS.get(info.form, "").upper())
    ]
    if misnamed:
        notes.append(f"files with the suffix of another format, which `convert` accepts: {_some(misnamed)}")
    convert = {"convert": True} if misnamed else {}
    unchanged = media_options(min(forms), infos) if len(forms) == 1 else None
    if unchanged is not None:
        del unchanged["kind"]
        return unchanged | convert
    modes = Counter((info.rate, info.channels) for info in infos)
    (rate, channels), _ = min(modes.items(), key=lambda item: (-item[1], item[0]))
    encoding = SOUNDS.get(min(forms), "wav") if len(forms) == 1 else "wav"
    if len(modes) > 1:
        convert = {"convert": True}
        shown = ", ".join(sorted({info.mode for info in infos}))
        several = counted(channels, "channel")
        notes.append(f"{shown}, converted to {rate:,} Hz, {several}, the most frequent form")
    if len(forms) > 1 or not convert:
        notes.append(f"{_listed(forms)}, stored as {encoding.upper()}")
    return {"sample_rate": rate, "channels": channels, "encoding": encoding, **convert}


def media_options(form: str, media: list[MediaInfo]) -> dict[str, Any] | None:
    """The kind and the options that decode all media that are not corrupt; None if there are none."""
    takers = [medium.takers for medium in media if medium.takers is not None]
    common = frozenset.intersection(*takers) if takers else frozenset()
    if not common:
        return None
    channels, dtype = min(common)
    if form in IMAGES:
        sizes = [_common(medium.measures[side] for medium in media) for side in ("height", "width")]
        return {"kind": "image", "shape": (*sizes, channels), "encoding": IMAGES[form], "dtype": dtype}
    rates = {medium.rate for medium in media}
    if len(rates) > 1:
        return None
    return {"kind": "audio", "sample_rate": min(rates), "channels": channels, "encoding": SOUNDS[form]}


def _common(measures: Iterable[float]) -> int | None:
    """The measure that all media share; None if they differ."""
    different = set(measures)
    return int(different.pop()) if len(different) == 1 else None


def infer_folders(files: InputFiles, name: str, sample: int | None) -> Inferred:
    """Infers a schema for folders of media. The names of their subfolders are the classes."""
    for split, paths in files.splits.items():
        if len(paths) > 1:
            expected = f"one folder{f' of {split}' if split else ''}, which has a folder for each class"
            hint = f"give `{paths[0].parent}`"
            raise SpecError(Problem(where=str(paths[1]), expected=expected, got="another one", hint=hint))
    folders = [FOLDERS[files.source](folder=str(path), classes=files.classes) for path in files.paths]
    all_files = [file for folder in folders for file in folder.files]
    classes = sorted({one for folder in folders for one in folder.class_names})
    unsorted = [file for folder in folders for file in folder.files if folder.class_of(file) is None]
    if classes and unsorted:
        expected = "every file in the folder of its class"
        raise RecordError(Problem(where=str(unsorted[0]), expected=expected, got="one beside these folders"))
    feature = folders[0].FEATURE

    inferred = infer_media(all_files, classes, name, feature, sample)
    notes = dict.fromkeys(note for folder in folders for note in folder.notes)
    for name_ in filter(is_split_name, classes if len(folders) == 1 else ()):
        notes[f"label: the class `{name_}` is named as a split: its files are not kept apart"] = None
    notes |= dict.fromkeys(_left_beside(files, folders[0]))
    notes |= dict.fromkeys(_folders_without_files(folders))
    notes |= dict.fromkeys(_partial_classes(files.splits, folders, classes))
    notes |= dict.fromkeys(_classes_that_look_alike(classes))
    notes |= dict.fromkeys(_folders_in_classes(folders))
    if len(classes) == 1:
        notes[f"label: one class, `{classes[0]}`, the only folder: infer that folder if it is none"] = None
    return replace(inferred, notes=(*inferred.notes, *notes))


def _left_beside(files: InputFiles, media: MediaFolder) -> Iterator[str]:
    """Notes on files and folders that are ignored because they are beside folders of splits."""
    places = {location(one) for one in files.given}
    below = [path for path in files.paths if path not in places]  # the folder `.` is its own parent
    for home in dict.fromkeys(path.parent for path in below if path.parent in places):
        splits = [path for path in below if path.parent == home]
        beside = " and ".join(f"`{path.name}`" for path in splits)
        stray = [path.name for path in files_in(home) if path.suffix.lower() in media.SUFFIXES]
        stray = [name for name in stray if not name.startswith(".")]
        if stray:
            yield f"{media.WHAT} beside {beside}, left out: {len(stray):,}, such as {stray[0]}"
        others = [folder.name for folder in folders_in(home) if home / folder.name not in splits]
        if others:
            yield f"folders without images or audio files beside {beside}, left out: {_named(others)}"


def _folders_without_files(folders: Sequence[MediaFolder]) -> Iterator[str]:
    """A note on folders beside those of classes that have no files of the kind."""
    for folder in folders:
        (root,) = folder.paths
        used = {relative(file, root).parts[0] for file in folder.files}
        others = [one.name for one in folders_in(root) if one.name not in used and one.name[:1] != "."]
        if others and len(used) > 1:
            yield f"folders without {folder.WHAT}, left out: {_named(others)}"


def _folders_in_classes(folders: Sequence[MediaFolder]) -> Iterator[str]:
    """A note on folders within the folders of classes, whose names are in no feature."""
    inner: dict[str, set[str]] = {}
    for folder in folders:
        for file in folder.files:
            parts = relative(file, folder.paths[0]).parts
            inner.setdefault(parts[0], set()).update(parts[1:-1][:1])
    common = set.intersection(*inner.values()) if len(inner) > 1 else set()
    if folders[0].classes != "first":
        yield from _folders_of_one_name(folders)
    elif common and len(folders) == 1:
        hint = (
            "if these are the classes, give the other folders names of splits, such as `train` and `test`, "
        )
        hint += 'or take them with `--classes last`, or classes="last"'
        what = "label: every class has folders of the same names, which are ignored"
        yield f"{what}: {_named(sorted(common))} ({hint})"
    elif any(inner.values()):
        below = sorted(f"{outer}/{name}" for outer, names in inner.items() for name in names)
        way = '`--classes last`, or classes="last", takes their names, and `path` all'
        yield f"label: the folders at the top name the classes, not these in them: {_named(below)} ({way})"


def _folders_of_one_name(folders: Sequence[MediaFolder]) -> Iterator[str]:
    """A note on folders of one name in several folders, whose files have one class."""
    places: dict[str, set[str]] = {}
    for folder in folders:
        for file in folder.files:
            name = folder.class_of(file)
            if name is not None:
                places.setdefault(name, set()).add(relative(file, folder.paths[0]).parent.as_posix())
    several = [name for name, found in places.items() if len(found) > 1]
    if several:
        example = " and ".join(f"`{place}`" for place in sorted(places[several[0]])[:2])
        more = "`--classes path` tells them apart"
        yield f"label: one class of several folders: {_named(several)}, such as {example} ({more})"


def _named(names: Sequence[str]) -> str:
    """The first names, and the number of remaining ones."""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMED]) + more


def _partial_classes(
    splits: Iterable[str], folders: Sequence[MediaFolder], classes: Iterable[str]
) -> Iterator[str]:
    """Notes on classes that are missing in some splits."""
    classes_of = {split: set(folder.class_names) for split, folder in zip(splits, folders, strict=True)}
    alike: dict[tuple[str, ...], list[str]] = {}
    for class_name in classes:
        alike.setdefault(tuple(split for split in classes_of if class_name in classes_of[split]), []).append(
            class_name
        )
    for having, names in alike.items():
        if len(having) < len(classes_of):
            yield f"label: classes of {' and '.join(having)} alone: {_named(names)}"


def _classes_that_look_alike(classes: Sequence[str]) -> Iterator[str]:
    """Notes on classes whose names differ only in the Unicode form of their accents, as written by macOS."""
    for shown, count in Counter(unicodedata.normalize("NFC", one) for one in classes).items():
        if count > 1:
            what = f"{count} classes that read `{shown}`, with accents in different forms of Unicode"
            yield f"label: {what} (rename their folders to one)"
