"""Features for images and audio: files, paths in tables, folders by class, and annotated images."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, counted, see
from recordspec.inferring.input_files import FOLDERS, InputFiles
from recordspec.locations import Location, files_in, folders_in, joined, location, read_bytes, relative
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.box import Box
from recordspec.schema.features.label import Label
from recordspec.schema.inferred import Inferred
from recordspec.schema.media import images, sounds
from recordspec.schema.schema import Schema
from recordspec.store.shard_names import is_split_name
from recordspec.tables.media_headers import MEDIA, MediaInfo, media_info
from recordspec.wire.file_types import describe_type, type_name
from recordspec.writing.sources.folders import MediaFolder

if TYPE_CHECKING:
    from recordspec.writing.sources.detection import Coco, PascalVoc

# The largest number of files whose headers are read.
MOST_MEDIA = 1024
_LARGEST_MEDIUM = 1 << 30
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
    """`infer_medium` for files."""
    return infer_medium(kind, name, ((str(file), read_bytes(file, _LARGEST_MEDIUM)) for file in files))


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
        if info is None and kind == "audio":
            sounds.soundfile("the sample rates of audio")  # not needed for a plain WAV file
        if info is None or info.takers is None:
            problem = images.size_problem(data) if kind == "image" else None
            is_damaged = form in MEDIA and form.endswith(" image") == (kind == "image")
            got = f"{describe_type(data)}{' that is damaged' * is_damaged}"
            problem = problem or Problem(expected=f"an {kind} file", got=got)
            others.append(problem.at(where))
            continue
        media.append((where, info))
    if others and not media:
        raise RecordError(others[0])
    if others:
        more = f"and {len(others) - 1:,} more; " if len(others) > 1 else ""
        hint = f"{more}`invalid: quarantine` leaves a few such files out; {see('building')}"
        notes.append(str(replace(others[0], hint=hint)))
    conversions: list[str] = []
    options = (_image_options if kind == "image" else _audio_options)(media, conversions)
    notes += [f"{name}: {note}" for note in conversions]
    if None in options.get("shape", ()):
        notes.append(
            f"{name}: of different sizes, which `fit` pads to the largest of a batch "
            "(with `resize: [h, w]` all have one)"
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
    turned: dict[str, Any] = {"orientation": "upright"} if photos else {}
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
    encoding = SOUNDS[min(forms)] if len(forms) == 1 else "wav"
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


def infer_annotated(files: InputFiles, name: str, sample: int | None) -> Inferred:
    """Infers a schema for annotated images, with their boxes and the labels of the boxes."""
    from recordspec.writing.sources.detection import exceeds

    for split, paths in files.splits.items():
        if len(paths) > 1:
            expected = f"annotations in one file{f' of {split}' if split else ', or one for each split'}"
            raise SpecError(Problem(where=str(paths[1]), expected=expected, got="another one"))
    sources = [_annotated(files.source, **annotations_of(files, path)) for path in files.paths]
    classes = tuple(dict.fromkeys(name for source in sources for name in source.class_names))
    if not classes:
        raise RecordError(Problem(where=str(files.paths[0]), expected="objects with classes", got="none"))
    pairs = [(source.folder, image) for source in sources for image in source.annotated]
    some = pairs[:: max(1, len(pairs) // (sample or MOST_MEDIA))]
    places = (joined(folder, image.values["file_name"]) for folder, image in some)
    medium, notes = infer_media_files("image", "image", places)
    if len(some) < len(pairs):
        notes.append(f"image: judged by the headers of {len(some):,} of {len(pairs):,} files")
    if any(exceeds(image) for _, image in pairs):
        notes.append("boxes: some exceed their image, which `clip: true` of the source clips")
    crowds = sum(bool(one.get("iscrowd")) for _, image in pairs for one in image.objects)
    if crowds:
        notes.append(f"boxes: {crowds:,} are crowds, which the column `iscrowd` of the source marks")
    boxes = Box(name="boxes", format="rel_yxyx")
    made = (medium, boxes, Label(name="labels", names=classes, shape=(None,)))
    empty = sum(not image.objects for _, image in pairs)
    if empty:
        notes.append(f"boxes: none in {empty:,} of {len(pairs):,} images")
    return Inferred(schema=Schema(name=name, features=made), notes=tuple(notes), rows=len(pairs))


def _annotated(source: str, **options: Any) -> Coco | PascalVoc:
    from recordspec.writing.sources.detection import Coco, PascalVoc

    return Coco(**options) if source == "coco" else PascalVoc(**options)


def annotations_of(files: InputFiles, path: Location) -> dict[str, Any]:
    """The options of the source of annotated images. Raises StoreError if no folder beside the
    annotations has the images.
    """
    from recordspec.writing.sources.detection import exceeds

    source = _annotated(files.source, annotations=str(path))
    first = next(iter(source.annotated), None)
    if first is None:
        raise RecordError(Problem(where=str(path), expected="annotated images", got="none"))
    home = path if path.is_dir() else path.parent
    places = [home, *folders_in(home), home.parent, *folders_in(home.parent)]
    name = first.values["file_name"]
    folder = next((place for place in places if joined(place, name).exists()), None)
    if folder is None:
        hint = "a config names their folder: `images:` of the source"
        got = f"names images such as `{name}`, which are in no folder beside it"
        raise StoreError(State(where=str(path), got=got, hint=hint))
    options: dict[str, Any] = {"annotations": str(path)}
    if folder != home:
        options["images"] = str(folder)
    if any(map(exceeds, source.annotated)):
        options["clip"] = True
    return options


def infer_folders(files: InputFiles, name: str, sample: int | None) -> Inferred:
    """Infers a schema for folders of media. The names of their subfolders are the classes."""
    for split, paths in files.splits.items():
        if len(paths) > 1:
            expected = f"one folder{f' of {split}' if split else ''}, which has a folder for each class"
            hint = f"give `{paths[0].parent}`"
            raise SpecError(Problem(where=str(paths[1]), expected=expected, got="another one", hint=hint))
    folders = [FOLDERS[files.source](path=str(path)) for path in files.paths]
    all_files = [file for folder in folders for file in folder.files]
    classes = sorted({one for folder in folders for one in folder.classes})
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
    notes |= dict.fromkeys(_partial_classes(files.splits, folders, classes))
    notes |= dict.fromkeys(_classes_that_look_alike(classes))
    notes |= dict.fromkeys(_folders_in_classes(folders))
    if len(classes) == 1:
        notes[f"label: one class, `{classes[0]}`, the only folder: infer that folder if it is none"] = None
    return replace(inferred, notes=(*inferred.notes, *notes))


def _left_beside(files: InputFiles, media: MediaFolder) -> Iterator[str]:
    """Notes on files and folders that are ignored because they are beside folders of splits."""
    places = {location(one) for one in files.given}
    for home in dict.fromkeys(path.parent for path in files.paths if path.parent in places):
        splits = [path for path in files.paths if path.parent == home]
        beside = " and ".join(f"`{path.name}`" for path in splits)
        stray = [path.name for path in files_in(home) if path.suffix.lower() in media.SUFFIXES]
        stray = [name for name in stray if not name.startswith(".")]
        if stray:
            yield f"{media.WHAT} beside {beside}, left out: {len(stray):,}, such as {stray[0]}"
        others = [folder.name for folder in folders_in(home) if home / folder.name not in splits]
        if others:
            yield f"folders without images or audio files beside {beside}, left out: {_named(others)}"


def _folders_in_classes(folders: Sequence[MediaFolder]) -> Iterator[str]:
    """A note on folders within the folders of classes, whose names are in no feature."""
    inner: dict[str, set[str]] = {}
    for folder in folders:
        for file in folder.files:
            parts = relative(file, folder.paths[0]).parts
            inner.setdefault(parts[0], set()).update(parts[1:-1][:1])
    common = set.intersection(*inner.values()) if len(inner) > 1 else set()
    if common and len(folders) == 1:
        hint = "if these are the classes, give the other folders names of splits, such as `train` and `test`"
        what = "label: every class has folders of the same names, which are ignored"
        yield f"{what}: {_named(sorted(common))} ({hint})"
    elif any(inner.values()):
        below = sorted(f"{outer}/{name}" for outer, names in inner.items() for name in names)
        yield f"label: the folders at the top name the classes, these in them are ignored: {_named(below)}"


def _named(names: Sequence[str]) -> str:
    """The first names, and the number of remaining ones."""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMED]) + more


def _partial_classes(
    splits: Iterable[str], folders: Sequence[MediaFolder], classes: Iterable[str]
) -> Iterator[str]:
    """Notes on classes that are missing in some splits."""
    classes_of = {split: set(folder.classes) for split, folder in zip(splits, folders, strict=True)}
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
