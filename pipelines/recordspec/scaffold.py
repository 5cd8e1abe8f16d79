"""A first schema and a first config for data that has neither."""

from __future__ import annotations

import importlib
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from recordspec.errors import (
    IncompleteError,
    Problem,
    RecordError,
    SpecError,
    State,
    StoreError,
    show_text,
)
from recordspec.interop import TFDS_FEATURES, TFDS_INFO
from recordspec.locations import (
    LocalPath,
    Location,
    absolute,
    is_path,
    local,
    location,
    output_file,
    read_bytes,
    relative,
)
from recordspec.progress import Progress
from recordspec.schema.feature_set import map_features
from recordspec.schema.features import Feature
from recordspec.schema.infer import IDENTIFIES, Inferred
from recordspec.schema.media import images, sounds
from recordspec.schema.options import to_builtins
from recordspec.schema.schema import Schema
from recordspec.store.expand import expand, has_tfrecords, path_list
from recordspec.store.manifest import Manifest, manifest_in
from recordspec.store.shard_names import is_shard, is_split_name, split_word
from recordspec.writing.sources.folders import AudioFolder, ImageFolder, MediaFolder
from recordspec.writing.sources.hugging_face import HuggingFaceRows, hugging_face_source, is_hugging_face
from recordspec.writing.sources.infer_table import (
    DELIMITERS,
    LINES,
    infer_rows,
    infer_table,
    table_suffix,
)

if TYPE_CHECKING:
    from recordspec.pipeline import Pipeline
    from recordspec.writing.sources.detection import Coco, PascalVoc

_TABLES = {**dict.fromkeys(DELIMITERS, "csv"), **dict.fromkeys(LINES, "jsonl"), ".parquet": "parquet"}
_LANGUAGES = {".pbtxt": "tfmd", ".pb": "tfmd", ".binpb": "tfmd", ".json": "tfds"}
_MEDIA: dict[str, type[ImageFolder] | type[AudioFolder]] = {
    "image_folder": ImageFolder,
    "audio_folder": AudioFolder,
}
_DETECTION = ("coco", "voc")
_LARGEST_MEDIUM = 1 << 30
# The folder of the annotations of Pascal VOC.
_VOC_FOLDER = "Annotations"
# Common names of targets, and of identifiers of rows.
_TARGETS = re.compile(
    r"(.*[/_. -])?(labels?|targets?|class(es|_id)?|categor(y|ies)|species|outcome|sentiment|survived|y)",
    re.IGNORECASE,
)
# The other shuffle, which a comment names.
_GLOBAL = "or `global: true`, in place of a buffer: all rows, the same batches for any number of workers"
# The number of classes that a note names.
_MOST_NAMED = 5
# The number of texts with their own index in a vector, and of words with one.
_MOST_TOKENS, _MOST_WORDS = 1000, 20_000
_IDENTIFIERS = re.compile(r"(?i:(.*[/_. -])?(id|uid|key|uuid|guid|index))|.*[a-z](Id|ID|Key|Uuid|UUID)")


@dataclass(frozen=True, kw_only=True)
class InputFiles:
    """Files to infer a schema from.

    Attributes:
        source: the source of a config that reads them; `tfmd` or `tfds` for a schema of another library.
        splits: the files, or the folders of media, by split; under "" without splits.
        given: the paths as given, if there are no splits.
        features: the features.json of a TFDS dataset.
        lengths: the expected number of records of each file, if known.
    """

    source: str
    splits: Mapping[str, tuple[Location, ...]]
    given: tuple[str, ...]
    features: Location | None = None
    lengths: Mapping[LocalPath, int] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[Location, ...]:
        return tuple(path for paths in self.splits.values() for path in paths)

    @property
    def name(self) -> str:
        """The name of their schema: that of the first file, or of its folder if the file names a split."""
        first = self.paths[0]
        names = (first.name, *(folder.name for folder in first.resolve().parents))
        return next((stem for stem in map(_stem, names) if self._names_data(stem)), "data")

    def _names_data(self, stem: str) -> bool:
        return bool(stem) and stem not in self.splits and not is_split_name(stem)


def _stem(name: str) -> str:
    first = name.partition(".")[0].partition("-")[0]
    return "".join(letter if letter.isalnum() else "_" for letter in first)


def input_files(files: Sequence[str]) -> InputFiles:
    """Detects the type of files, patterns and folders. Raises StoreError, SpecError if they are not data."""
    texts = path_list(files)
    paths: list[Location] = []
    for text in texts:
        place = location(text)
        if isinstance(place, LocalPath) and place.is_dir():
            if len(texts) == 1 and (place / TFDS_FEATURES).exists():
                return _tfds_folder(place)
            paths += _contents(place)
        else:
            paths += expand(text)
    paths = list(dict.fromkeys(paths)) if len(paths) > 1 else paths
    sources = {_source_of(path): path for path in paths}
    if len(sources) > 1:
        got = " and ".join(f"{path.name} ({source})" for source, path in sources.items())
        raise SpecError(Problem(where=str(paths[0]), expected="files of one format", got=got))
    (source,) = sources
    if source in _LANGUAGES.values() and len(paths) > 1:
        expected = f"one {paths[0].suffix} file"
        raise SpecError(Problem(where=str(paths[1]), expected=expected, got="several"))
    return InputFiles(source=source, splits=_by_split(paths), given=texts)


def _tfds_folder(folder: LocalPath) -> InputFiles:
    from recordspec.interop.tfds import dataset_info

    splits = dataset_info.given_splits(folder)
    lengths = {path: length for shards in splits.values() for path, length in shards.items()}
    missing = [path for path in lengths if not path.exists()]
    if missing or not lengths:
        got = "does not exist" if missing else "has no shards"
        hint = f"{TFDS_INFO} names " + ("it" if missing else "none")
        raise StoreError(State(where=str(next(iter(missing), folder)), got=got, hint=hint))
    return InputFiles(
        source="tfrecord",
        splits={split: tuple(shards) for split, shards in splits.items()},
        given=(str(folder),),
        features=folder / TFDS_FEATURES,
        lengths=lengths,
    )


def _contents(folder: LocalPath) -> list[Location]:
    """The data in a folder: its TFRecords or tables; those of its folders of splits; or itself, of media.

    Raises StoreError if it has none.
    """
    tables = [
        path
        for path in folder.files()
        if table_suffix(path) in _TABLES and not path.name.startswith((".", "_"))
    ]
    is_dataset = manifest_in(folder) is not None
    if is_dataset or has_tfrecords(folder):
        return [*expand(folder), *([] if is_dataset else tables)]
    if tables:
        return [*expand(tables)]
    folders = [folder / one.name for one in folder.folders()]
    voc = [one for one in (folder, folder / _VOC_FOLDER) if one.is_dir() and _has_xml(one)]
    if voc:
        return [voc[0]]
    splits = [one for one in folders if is_split_name(one.name)]
    others = _with_data([one for one in folders if one not in splits], splits) if splits else folders
    if splits and not others:
        return [path for split in splits for path in _contents(split)]
    # one folder of that name with files may be a class
    if len(splits) > 1 or any(split.folders() for split in splits):
        raise _beside_splits(others, splits)
    if _media_source(folder) is not None:
        return [folder]
    try:
        return [*expand(folder)]
    except StoreError as error:
        got = "has no TFRecords, no tables, and no images or sounds by class"
        raise StoreError(
            State(where=problem.where, got=got, hint=problem.hint) for problem in error.problems
        ) from None


def _with_data(folders: Sequence[LocalPath], splits: Sequence[LocalPath]) -> list[LocalPath]:
    """The folders with data such as those of splits have: beside images and sounds, a folder with some."""
    if any(_media_source(split) is not None for split in splits):
        return [folder for folder in folders if _media_source(folder) is not None]
    return [folder for folder in folders if _has_records(folder)]


def _has_records(folder: LocalPath) -> bool:
    """Whether a folder has TFRecords or tables, also in its folders."""
    try:
        return bool(_contents(folder))
    except (IncompleteError, RecordError):  # it has some
        return True
    except StoreError:
        folders = [folder / one.name for one in folder.folders()]
        return any(_has_records(one) for one in folders if not one.is_symlink())  # which may lead back


def _beside_splits(others: Sequence[Path], splits: Sequence[Path]) -> RecordError:
    """The error for other folders beside those of splits: they would be classes, and the splits too."""
    names = " and ".join(f"`{split.name}`" for split in splits)
    them = "it" if len(others) == 1 else "them"
    hint = f"move {them} elsewhere; if {names} are classes, write the config by hand"
    return RecordError(
        Problem(
            where=str(path), expected=f"folders of splits alone, as {names}", got="another one", hint=hint
        )
        for path in others
    )


def _source_of(path: Location) -> str:
    status = path.peek()
    if status is not None and stat.S_ISDIR(status.st_mode):
        return "voc" if _has_xml(path) else _media_source(path) or ""
    if path.suffix == ".json" and path.name != TFDS_FEATURES:
        from recordspec.writing.sources.detection import is_coco

        if is_coco(path):
            return "coco"
    return _TABLES.get(table_suffix(path)) or _LANGUAGES.get(path.suffix, "tfrecord")


def _has_xml(folder: Location) -> bool:
    return any(file.suffix == ".xml" for file in folder.files())


def _media_source(folder: Location) -> str | None:
    """The source that reads a folder of media, by the suffix of the first file."""
    for _, folders, names in os.walk(str(folder)):
        folders.sort()
        for name in sorted(names):
            suffix = Path(name).suffix.lower()
            if suffix in images.SUFFIXES:
                return "image_folder"
            if suffix in sounds.SUFFIXES:
                return "audio_folder"
    return None


def _by_split(paths: Iterable[Location]) -> dict[str, tuple[Location, ...]]:
    """The files by split, as named by the files or their folders; all under "" if fewer than two splits are
    named, or a file names none."""
    by_split: dict[str, list[Location]] = {}
    manifests: dict[Location, Manifest | None] = {}
    for path in paths:
        by_split.setdefault(_split_of(path, manifests), []).append(path)
    if "" in by_split or len(by_split) < 2:
        return {"": tuple(path for some in by_split.values() for path in some)}
    train_first = sorted(by_split, key=lambda split: not split.startswith("train"))
    return {split: tuple(by_split[split]) for split in train_first}


def _split_of(path: Location, manifests: dict[Location, Manifest | None]) -> str:
    """The split of a file: of a shard, as its manifest says; else that in its name, or ""."""
    if is_shard(path):
        folder = path.parent
        if folder not in manifests:
            manifests[folder] = manifest_in(folder)
        manifest = manifests[folder]
        if manifest is not None and (splits := manifest.splits_of([path.name])):
            return splits[0]
    return split_word(path)


def infer(
    data: Any,
    name: str | None = None,
    *,
    sample: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> InferredConfig:
    """Infers a schema, and a config that builds a dataset and trains on it.

    Args:
        data: the paths of files: TFRecords, CSV, JSONL or Parquet files, patterns, folders of these, of TFDS,
            or of images or sounds by class; or a schema of another library. Or rows, as for
            `recordspec.write`.
        name: the name of the schema; by default that of the first file, or that in the imported schema.
        sample: the number of records of each file, or of rows, to read; None for all.
        jobs: the number of processes that read TFRecords.
        progress: receives the number of records that are read; by default a bar, on a terminal or in a
            notebook.

    Returns:
        `schema`, `notes` on guesses and on what it does not express, and `rows`, the number of rows read. It
        can be changed, used as a `pipeline`, and saved: see `InferredConfig`.

    Raises StoreError, RecordError or SpecError if no schema can be inferred.

    Example:
        >>> config = rs.infer([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
        >>> config.schema["a"].dtype
        'int64'
    """
    paths = [data] if is_path(data) else data
    listed = isinstance(paths, (list, tuple)) and bool(paths)
    if not listed or not all(is_path(path) for path in paths):
        if is_hugging_face(data):
            splits = map(str, data) if isinstance(data, Mapping) else ()
            return _with_config(_infer_hugging_face(data, name or "data", sample), None, splits)
        return _with_config(infer_rows(data, name or "data", sample))
    files = input_files([str(path) for path in paths])
    with Progress() if progress is None else nullcontext(progress) as bar:
        return infer_files(files, name, sample=sample, jobs=jobs, progress=bar)


def _infer_hugging_face(data: Any, name: str, sample: int | None) -> Inferred:
    """The schema of a dataset, which says what classes, images and sounds are."""
    from recordspec.inspect.infer import MOST_MEDIA, infer_medium

    splits = list(data.values()) if isinstance(data, Mapping) else [data]
    sources = [source for source in map(hugging_face_source, splits) if isinstance(source, HuggingFaceRows)]
    if len(sources) < len(splits):
        return infer_rows(data, name, sample)
    features: dict[str, Feature] = {}
    notes: list[str] = []
    first = sources[0]
    for kind in ("image", "audio"):
        for column in first.columns_of(kind.capitalize()):
            files = chain.from_iterable(source.files(column, sample or MOST_MEDIA) for source in sources)
            features[column], more = infer_medium(kind, column, files)
            notes += more
    others = infer_rows(data, name, sample) if set(first.features) - features.keys() else None
    if others is not None:
        features = {**others.schema.names, **features}
        notes += others.notes  # which are on other columns than those of files
    placed = tuple(features[column] for column in first.features if column in features)
    schema = Schema(name=name, features=placed)
    inferred = Inferred(schema=schema, notes=(), rows=None) if others is None else others
    counts = [source.rows for source in sources]
    rows = None if None in counts else sum(count or 0 for count in counts)
    return replace(inferred, schema=schema, notes=tuple(notes), rows=rows)


def infer_files(
    files: InputFiles,
    name: str | None = None,
    *,
    sample: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> InferredConfig:
    """Like `infer`."""
    inferred = _infer_files(files, name, sample=sample, jobs=jobs, progress=progress)
    return _with_config(inferred, files)


def _infer_files(
    files: InputFiles, name: str | None, *, sample: int | None, jobs: int | None, progress: Progress | None
) -> Inferred:
    named, paths = name or files.name, files.paths
    if files.source in _LANGUAGES.values() or files.features is not None:
        rows = _check_lengths(files.lengths, progress) if files.lengths else None
        language = importlib.import_module(f"recordspec.interop.{_LANGUAGES.get(paths[0].suffix, 'tfds')}")
        with _naming_json(paths[0]) if files.features is None else nullcontext():
            schema, translated = language.load(files.features or paths[0])
        schema = schema if name is None else replace(schema, name=name)
        return Inferred(schema=schema, notes=tuple(map(str, translated)), rows=rows)
    if files.source in _TABLES.values():
        return _with_media(infer_table(paths, named, sample), paths)
    if files.source in _DETECTION:
        return _infer_detection(files, named, sample)
    if files.source in _MEDIA:
        return _infer_folders(files, named, sample)
    from recordspec.inspect.infer import infer_records

    return infer_records(paths, named, sample=sample, jobs=jobs, progress=progress)


@contextmanager
def _naming_json(path: Location) -> Iterator[None]:
    """Adds to an error what other JSON than features.json of TFDS may be."""
    try:
        yield
    except (SpecError, StoreError) as error:
        if path.suffix != ".json" or path.name == TFDS_FEATURES:
            raise
        hint = "rows are lines of a .jsonl file, and annotations of COCO have `images`"
        problems = [replace(problem, hint=problem.hint or hint) for problem in error.problems]
        raise type(error)(problems) from None


def _check_lengths(lengths: Mapping[LocalPath, int], progress: Progress | None) -> int:
    """The number of records. Raises RecordError if a file has others than it should have."""
    from recordspec.inspect.count import count

    problems = [
        Problem(
            where=file.file,
            expected=f"{length:,} records, as {TFDS_INFO} says",
            got=f"{file.records:,}",
        )
        for file, length in zip(count(list(lengths), progress), lengths.values(), strict=True)
        if file.records != length
    ]
    if problems:
        raise RecordError(problems)
    return sum(lengths.values())


def _with_media(inferred: Inferred, paths: Sequence[Location]) -> Inferred:
    """The schema of a table with images and sounds for columns of their paths, relative to its folder."""
    schema, notes = inferred.schema, list(inferred.notes)
    for name, texts in inferred.first_texts.items():
        suffixes = {Path(text).suffix.lower() for text in texts}
        kinds = {"image": images.SUFFIXES, "audio": sounds.SUFFIXES}
        kind = next((kind for kind, known in kinds.items() if suffixes and suffixes <= {*known}), None)
        files = [paths[0].parent.join(location(text)) for text in texts] if kind else []
        if kind is None or not all(file.exists() for file in files):
            continue
        from recordspec.inspect.infer import infer_medium

        contents = ((str(file), read_bytes(file, _LARGEST_MEDIUM)) for file in files)
        medium, more = infer_medium(kind, name, contents)
        features = tuple(medium if feature.name == name else feature for feature in schema.features)
        schema = replace(schema, features=features)
        notes += [f"{name}: paths of {kind} files, judged by the first {len(files):,}", *more]
    return replace(inferred, schema=schema, notes=tuple(notes))


def _infer_detection(files: InputFiles, name: str, sample: int | None) -> Inferred:
    """A schema for annotated images: with their boxes, and the labels of these."""
    from recordspec.inspect.infer import MOST_MEDIA, infer_medium
    from recordspec.schema.features.box import Box
    from recordspec.schema.features.label import Label
    from recordspec.writing.sources.detection import exceeds

    for split, paths in files.splits.items():
        if len(paths) > 1:
            expected = f"annotations in one file{f' of {split}' if split else ', or one for each split'}"
            raise SpecError(Problem(where=str(paths[1]), expected=expected, got="another one"))
    sources = [_annotated(files.source, **_annotations(files, path)) for path in files.paths]
    classes = tuple(dict.fromkeys(name for source in sources for name in source.class_names))
    if not classes:
        raise RecordError(Problem(where=str(files.paths[0]), expected="objects with classes", got="none"))
    pairs = [(source.folder, image) for source in sources for image in source.annotated]
    some = pairs[:: max(1, len(pairs) // (sample or MOST_MEDIA))]
    places = (folder.join(location(image.values["file_name"])) for folder, image in some)
    contents = ((str(place), read_bytes(place, _LARGEST_MEDIUM)) for place in places)
    medium, notes = infer_medium("image", "image", contents)
    if len(some) < len(pairs):
        notes.append(f"image: judged by the headers of {len(some):,} of {len(pairs):,} files")
    if any(exceeds(image) for _, image in pairs):
        notes.append("boxes: some exceed their image, which `clip: true` of the source clips")
    boxes = Box(name="boxes", format="rel_yxyx")
    made = (medium, boxes, Label(name="labels", names=classes, shape=(None,)))
    empty = sum(not image.objects for _, image in pairs)
    if empty:
        notes.append(f"boxes: none in {empty:,} of {len(pairs):,} images")
    return Inferred(schema=Schema(name=name, features=made), notes=tuple(notes), rows=len(pairs))


def _annotated(source: str, **options: Any) -> Coco | PascalVoc:
    from recordspec.writing.sources.detection import Coco, PascalVoc

    return Coco(**options) if source == "coco" else PascalVoc(**options)


def _annotations(files: InputFiles, path: Location) -> dict[str, Any]:
    """The options of the source of annotated images. Raises StoreError if the images are in no folder beside
    the annotations."""
    from recordspec.writing.sources.detection import exceeds

    source = _annotated(files.source, annotations=str(path))
    first = next(iter(source.annotated), None)
    if first is None:
        raise RecordError(Problem(where=str(path), expected="annotated images", got="none"))
    home = path if path.is_dir() else path.parent
    places = [home, *map(home.join, map(location, _folder_names(home)))]
    places += [home.parent, *map(home.parent.join, map(location, _folder_names(home.parent)))]
    name = location(first.values["file_name"])
    folder = next((place for place in places if place.join(name).exists()), None)
    if folder is None:
        hint = "a config names their folder: `images:` of the source"
        got = f"names images such as `{first.values['file_name']}`, which are in no folder beside it"
        raise StoreError(State(where=str(path), got=got, hint=hint))
    options: dict[str, Any] = {"annotations": str(path)}
    if folder != home:
        options["images"] = str(folder)
    if any(map(exceeds, source.annotated)):
        options["clip"] = True
    return options


def _folder_names(folder: Location) -> list[str]:
    return [one.name for one in folder.folders() if not one.name.startswith(".")]


def _infer_folders(files: InputFiles, name: str, sample: int | None) -> Inferred:
    """A schema for folders of media; the names of their subfolders are the classes."""
    for split, paths in files.splits.items():
        if len(paths) > 1:
            expected = f"one folder{f' of {split}' if split else ''}, which has a folder for each class"
            hint = f"give `{paths[0].parent}`"
            raise SpecError(Problem(where=str(paths[1]), expected=expected, got="another one", hint=hint))
    folders = [_MEDIA[files.source](path=str(path)) for path in files.paths]
    all_files = [file for folder in folders for file in folder.files]
    classes = sorted({one for folder in folders for one in folder.classes})
    unsorted = [file for folder in folders for file in folder.files if folder.class_of(file) is None]
    if classes and unsorted:
        expected = "every file in the folder of its class"
        raise RecordError(Problem(where=str(unsorted[0]), expected=expected, got="one beside these folders"))
    feature = folders[0].FEATURE
    from recordspec.inspect.infer import infer_media

    inferred = infer_media(all_files, classes, name, feature, sample)
    notes = dict.fromkeys(note for folder in folders for note in folder.notes)
    for name_ in filter(is_split_name, classes if len(folders) == 1 else ()):
        notes[f"label: the class `{name_}` is named as a split: its files are not kept apart"] = None
    notes |= dict.fromkeys(_left_beside(files, folders[0]))
    notes |= dict.fromkeys(_partial_classes(files.splits, folders, classes))
    notes |= dict.fromkeys(_classes_that_look_alike(classes))
    if len(folders) == 1 and (ignored := _folders_of_all(folders[0])):
        hint = "if these are the classes, give the other folders names of splits, such as `train` and `test`"
        what = "label: every class has folders of the same names, which are ignored"
        notes[f"{what}: {ignored} ({hint})"] = None
    if len(classes) == 1:
        notes[f"label: one class, `{classes[0]}`, the only folder: infer that folder if it is none"] = None
    return replace(inferred, notes=(*inferred.notes, *notes))


def _left_beside(files: InputFiles, media: MediaFolder) -> Iterator[str]:
    """Notes on what is left out beside the folders of splits, where the folder of these was given."""
    places = {location(one) for one in files.given}
    for home in dict.fromkeys(path.parent for path in files.paths if path.parent in places):
        splits = [path for path in files.paths if path.parent == home]
        beside = " and ".join(f"`{path.name}`" for path in splits)
        stray = [path.name for path in home.files() if path.suffix.lower() in media.SUFFIXES]
        stray = [name for name in stray if not name.startswith(".")]
        if stray:
            yield f"{media.WHAT}s beside {beside}, left out: {len(stray):,}, such as {stray[0]}"
        others = [folder.name for folder in home.folders() if home / folder.name not in splits]
        if others:
            yield f"folders without images or sounds beside {beside}, left out: {_named(others)}"


def _folders_of_all(media: MediaFolder) -> str:
    """The names of folders that every class has, if there are several classes; or ""."""
    folders: dict[str, set[str]] = {}
    for file in media.files:
        parts = relative(file, media.paths[0]).parts
        folders.setdefault(parts[0], set()).update(parts[1:-1][:1])
    common = set.intersection(*folders.values()) if len(folders) > 1 else set()
    return _named(sorted(common))


def _named(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMED]) + more


def _partial_classes(
    splits: Iterable[str], folders: Sequence[MediaFolder], classes: Iterable[str]
) -> Iterator[str]:
    """Notes on classes that not all splits have."""
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
    """Notes on classes whose names differ in the form of their accents alone, as macOS may write them."""
    for shown, count in Counter(unicodedata.normalize("NFC", one) for one in classes).items():
        if count > 1:
            what = f"{count} classes that read `{shown}`, with accents in different forms of Unicode"
            yield f"label: {what} (rename their folders to one)"


@dataclass(frozen=True, kw_only=True, repr=False)
class InferredConfig(Inferred):
    """A schema and a config for rows or files, to be used, changed and saved. Each change makes another one.

    `recordspec.write` takes it for a schema. The other attributes are those of `Inferred`.

    Attributes:
        files: those that were read; None for rows.
        given_splits: the splits that the rows, or the files, are in; none if a build divides them.
        changes: the options that differ from the proposed ones, by section: `write`, `read` and `fit`.

    Example:
        >>> config = rs.infer({"id": [1, 2], "x": [0.5, 1.5], "label": ["a", "b"]}, "letters")
        >>> config = config.drop("id").with_features({"label": {"kind": "label", "names": ["a", "b"]}})
        >>> config = config.with_options(write={"splits": {"train": 1}}, read={"batch": 2})
        >>> pipeline = config.pipeline("data/letters")
        >>> pipeline.build({"id": [1, 2], "x": [0.5, 1.5], "label": ["a", "b"]})
        Manifest(letters, train: 2 rows in 1 shard)
        >>> pipeline.config.fit.targets
        'label'
        >>> config.save("configs/letters.yaml", schema="schemas/letters.yaml", data="data/letters")
        >>> rs.Pipeline.load("configs/letters.yaml").manifest.rows("train")
        2
    """

    files: InputFiles | None = None
    given_splits: tuple[str, ...] = ()
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def with_features(self, features: Mapping[str, Any]) -> InferredConfig:
        """Returns the config with other features: in the place of those of the same names, or further ones.

        Args:
            features: by name, each as YAML has it, a dtype or a mapping of options, or a `Feature`.

        Raises SpecError.

        Example:
            >>> rs.infer({"a": [1, 2]}).with_features({"a": "float32"}).schema["a"].dtype
            'float32'
        """
        return replace(
            self,
            schema=self.schema.with_features(features),
            left_out=tuple(name for name in self.left_out if name not in features),
            no_inputs={name: why for name, why in self.no_inputs.items() if name not in features},
            free_text=tuple(name for name in self.free_text if name not in features),
        )

    def drop(self, *names: str) -> InferredConfig:
        """Returns the config without these features; a build leaves out what rows have of these names.

        Raises SpecError for other names.

        Example:
            >>> rs.infer({"a": [1, 2], "b": [3, 4]}).drop("b").left_out
            ('b',)
        """
        dropped = {self.schema[name].name for name in names}
        schema = map_features(self.schema, lambda feature: None if feature.name in dropped else feature)
        return replace(self, schema=schema, left_out=(*self.left_out, *names))

    def with_options(
        self,
        *,
        write: Mapping[str, Any] | None = None,
        read: Mapping[str, Any] | None = None,
        fit: Mapping[str, Any] | None = None,
    ) -> InferredConfig:
        """Returns the config with other options, as a config file has them; the others stay.

        Args:
            write: such as `{"splits": {"train": 9, "test": 1}, "key": "id"}`.
            read: such as `{"batch": 64}`.
            fit: such as `{"targets": "price"}`, without which the inputs and targets are guesses.

        Raises SpecError for invalid ones.

        Example:
            >>> config = rs.infer({"a": [1, 2]}).with_options(read={"batch": 64})
            >>> config.pipeline("data/a").config.read.batch.size
            64
        """
        sections = {"write": write, "read": read, "fit": fit}
        changes = {
            section: {**self.changes.get(section, {}), **_plain(options or {})}
            for section, options in sections.items()
        }
        changed = replace(self, changes={section: some for section, some in changes.items() if some})
        changed.pipeline("data")  # raises
        return changed

    def pipeline(self, data: str | os.PathLike[str]) -> Pipeline:
        """Returns the pipeline that builds the dataset in the folder `data`, and reads it.

        Raises SpecError for options that do not agree with the features.

        Example:
            >>> pipeline = rs.infer({"a": [1, 2]}).pipeline("data/a")
            >>> pipeline.build({"a": [1, 2]}).rows("train") <= 2
            True
        """
        from recordspec.config import config_of
        from recordspec.pipeline import Pipeline

        options = {"schema": "schema.yaml", "data": os.fspath(data), **self._sections(Path())[0]}
        return Pipeline(config_of(options, self.schema), self.schema, ignore=self.left_out)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        schema: str | os.PathLike[str] | None = None,
        data: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> None:
        """Writes the config and the schema as YAML, for `Pipeline.load` and `recordspec build`.

        Args:
            path: that of the config.
            schema: that of the schema; by default `digits-schema.yaml` beside `digits.yaml`.
            data: the folder of the dataset; by default one with the name of the schema beside the config.
            force: whether existing files are replaced.

        Raises StoreError if a file exists or cannot be written, SpecError for options that do not agree with
        the features, or a custom kind.

        Example:
            >>> rs.infer({"a": [1, 2]}, "letters").save("letters.yaml", data="data/letters")
            >>> rs.Schema.load("letters-schema.yaml")
            Schema(letters, 1 feature: a)
        """
        from recordspec.language import header, write_json_schema

        place = local(path)
        schema_path = place.with_name(f"{place.stem}-schema.yaml") if schema is None else local(schema)
        self.pipeline("data" if data is None else data)  # raises
        texts = {
            schema_path: self.schema.dump(),
            place: config_text(self, schema_path, place, None if data is None else os.fspath(data)),
        }
        for folder in dict.fromkeys(file.parent for file in texts):
            write_json_schema(folder)
        write_texts({file: header() + text for file, text in texts.items()}, force=force)

    def _sections(self, home: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """The sections of the config, whose paths are relative to a folder; and comments on their guesses, by
        the start of a line."""
        write: dict[str, Any] = {}
        files, changes = self.files, self.changes
        if files is not None and "" in files.splits:
            write["source"] = _source(files, self, files.given, home)
        elif files is not None:
            write["source"] = {
                split: _source(files, self, _compact(paths), home) for split, paths in files.splits.items()
            }
        if not self.given_splits:
            write["splits"] = {"train": 80, "test": 20}
        write |= {"shuffle": {"seed": 1}, **changes.get("write", {})}
        read = {"batch": 32, "shuffle": {"buffer": 10_000, "seed": 1}, **changes.get("read", {})}
        fit, guess = self._fit(write.get("splits", {}))
        guessed = [name for name in ("inputs", "targets") if name not in changes.get("fit", {})]
        comments = {
            "  inputs:": "; ".join(filter(None, (guess.without, _unlearnt(self.schema, guess.inputs)))),
            "  targets:": guess.reason,
        }
        comments = {line: text for line, text in comments.items() if line.strip(" :") in guessed}
        comments["    buffer:"] = "" if "shuffle" in changes.get("read", {}) else _GLOBAL
        return {"write": write, "read": read, "fit": fit}, comments

    def _fit(self, splits: Any) -> tuple[dict[str, Any], FitGuess]:
        """The section `fit`, and what is guessed of it."""
        options, schema = self.changes.get("fit", {}), self.schema
        targets = options.get("targets")
        guess = guess_fit(schema, self.no_inputs, (targets,) if isinstance(targets, str) else targets)
        detects = self.files is not None and self.files.source in _DETECTION
        if detects and {"image", "boxes", "labels"} <= schema.names.keys():
            guess = FitGuess(inputs=("image",), target=("boxes", "labels"), reason="", without="")
        fit: dict[str, Any] = {"inputs": _one_or_all(guess.inputs)}
        if guess.target is not None:
            fit["targets"] = guess.target if isinstance(guess.target, str) else list(guess.target)
        fit |= options
        inputs = (fit["inputs"],) if isinstance(fit["inputs"], str) else fit["inputs"]
        encode = _encodes(schema, inputs, self.free_text)
        names = self.given_splits or (splits if isinstance(splits, Mapping) else ())
        if encode and "train" in names and "encode" not in fit:  # which the layers learn from
            fit["encode"] = encode
        return fit, guess


def _with_config(
    inferred: Inferred, files: InputFiles | None = None, given_splits: Iterable[str] = ()
) -> InferredConfig:
    """The config of what was inferred from files, or from rows in these splits."""
    known = {option.name: getattr(inferred, option.name) for option in fields(Inferred)}
    names = given_splits if files is None else filter(None, files.splits)
    return InferredConfig(**known, files=files, given_splits=tuple(names))


def _plain(value: Any) -> Any:
    """Options as YAML holds them: also of dataclasses, tuples, paths and NumPy's numbers."""
    if is_dataclass(value):
        return to_builtins(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


def write_texts(texts: Mapping[Path, str], *, force: bool = False) -> None:
    """Writes files: all are whole before the first gets its name. Raises StoreError."""
    with ExitStack() as stack:
        for path, text in reversed([*texts.items()]):
            fresh = stack.enter_context(output_file(path, force=force))
            fresh.write_text(text, encoding="utf-8")


def config_text(inferred: InferredConfig, schema_path: Path, path: Path, data: str | None = None) -> str:
    """A config, in YAML, that builds a dataset and trains on it.

    Predefined splits are kept. The inputs and targets are guesses, which comments explain. Raises SpecError
    for a schema of another library, which has no rows.
    """
    home, schema, files = path.parent, inferred.schema, inferred.files
    if files is not None and files.source in _LANGUAGES.values():
        expected, hint = "TFRecords, CSV or Parquet", "a config names its rows: infer without --config"
        raise SpecError(Problem(where=str(files.paths[0]), expected=expected, got="a schema", hint=hint))
    folder = location(home / f"{schema.name}-data" if data is None else data)
    inputs = () if data is not None or files is None else files.given
    if str(absolute(folder)) in map(str, map(absolute, inputs)):
        folder = location(home / f"{schema.name}-data-2")
    sections, comments = inferred._sections(home)
    config = {"schema": os.path.relpath(schema_path, home), "data": folder.seen_from(home), **sections}
    lines = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=1 << 16).splitlines()
    if any("\n" in name for name in schema.names):  # in the middle of one, a comment would be a part of it
        comments = {}
    else:
        comments |= _comments_of_options(inferred, lines)
    for number, line in enumerate(lines):
        comment = next((text for key, text in comments.items() if line.startswith(key) and text), "")
        lines[number] = f"{line}  # {comment}" if comment else line
    return "\n".join(lines) + "\n"


def _comments_of_options(inferred: Inferred, lines: Sequence[str]) -> dict[str, str]:
    """Why the source has an option, by the start of its line."""
    indent = next((line.partition("path:")[0] for line in lines if line.lstrip().startswith("path:")), "")
    return {f"{indent}{option.name}:": show_text(option.reason) for option in inferred.options}


def _source(files: InputFiles, inferred: Inferred, paths: Sequence[str], home: Path) -> dict[str, Any]:
    """The source of a config, whose paths are relative to its folder."""
    if files.source in _DETECTION:
        made = _annotations(files, files.paths[0] if "" in files.splits else location(paths[0]))
        named = [name for name in ("annotations", "images") if name in made]
        return {files.source: made | {name: location(made[name]).seen_from(home) for name in named}}
    places = [location(path).seen_from(home) for path in paths]
    place = places[0] if len(places) == 1 else places
    options: dict[str, Any] = {}
    if inferred.options:
        # copies: YAML would give a list that several sources share an anchor
        options = {"path": place} | {one.name: deepcopy(one.value) for one in inferred.options}
    elif files.source == "jsonl" and inferred.left_out:
        options = {"path": place, "ignore": [*inferred.left_out]}
    elif files.source in _MEDIA and "label" not in inferred.schema.names:
        options = {"path": place, "label": None}
    return {files.source: options or place}


def _compact(paths: Sequence[Location]) -> tuple[str, ...]:
    """The paths of files; a pattern for all the shards of one split."""
    first, folder = paths[0], paths[0].parent
    pattern = re.sub(r"-\d{5,}-of-", "-*-of-", first.name)
    if len(paths) > 1 and pattern != first.name and not set("*?[") & set(str(folder) + first.name):
        matches = expand(str(folder / pattern), as_found=True)
        if set(matches) == set(paths):
            return (str(folder / pattern),)
    return tuple(map(str, paths))


@dataclass(frozen=True, kw_only=True)
class FitGuess:
    """The guessed inputs and targets of a model.

    Attributes:
        target: None if there is only one feature, or only text, which no model learns.
        reason: why this is the target.
        without: the features that are not inputs, and why; empty if all others are.
    """

    inputs: tuple[str, ...]
    target: str | tuple[str, ...] | None
    reason: str
    without: str


def guess_fit(
    schema: Schema,
    no_inputs: Mapping[str, str] = MappingProxyType({}),
    targets: Sequence[str] | None = None,
) -> FitGuess:
    """Guesses the inputs, and the target, if there are no `targets`: a feature with the name of one, a label
    first; else a label; else the last feature that has numbers; else the last that is no text, if any. All
    others are inputs, but for identifiers of rows, by their names, and `no_inputs`, which says why."""
    features = [feature for _, feature in schema.placed if feature.name not in (targets or ())]
    if len(features) == 1 and not targets:
        (only,) = schema.names
        return FitGuess(inputs=(only,), target=None, reason="", without="no targets: there is one feature")
    reasons = {feature.name: IDENTIFIES for feature in features if _identifies(feature)} | {**no_inputs}
    learnt = [feature for feature in features if feature.value_type.item != "text"]
    target, reason = None, ""
    if not targets:
        target, reason = _guess_target([one for one in learnt if one.name not in reasons] or learnt)
    others = [feature for feature in features if feature is not target]
    taken = [other for other in others if other.name not in reasons] or others or features
    # A feature with a default has a second output: whether there was a value.
    inputs = [name for one in taken for name in (one.outputs if one.optional else (one.name,))]
    left = {other.name: reasons[other.name] for other in others if other not in taken}
    without = [
        f"without {', '.join(name for name in left if left[name] == why)}: {why}"
        for why in dict.fromkeys(left.values())
    ]
    if target is None and not targets:
        without.append("no targets: all features are text; `kind: label` makes classes of one")
    if reason:
        reason += f", of {len(features):,} features"
    if target is not None and target.class_names and target.value_type.shape:
        reason += f"; of several in a row `encode: {{{target.name}: multi_hot}}` makes one vector"
    return FitGuess(
        inputs=tuple(inputs),
        target=(tuple(targets) if targets else None) if target is None else target.name,
        reason=reason,
        without="; ".join(without),
    )


def _encodes(schema: Schema, names: Iterable[str], free_text: Sequence[str]) -> dict[str, Any]:
    """The encoding of single values that a model otherwise cannot use, or trains badly on; of free text, that
    of its words."""
    encoded: dict[str, Any] = {}
    for feature in (schema.names[name] for name in names if name in schema.names):
        value_type = feature.value_type
        if value_type.item == "class" and value_type.shape in ((), (None,)):
            encoded[feature.name] = "multi_hot" if value_type.shape else "one_hot"
        elif (
            value_type.shape == ()
            and value_type.item == "text"
            and (feature.kind == "text" or feature.optional)
        ):
            in_words = feature.name in free_text
            encoded[feature.name] = (
                {"as": "words", "max_tokens": _MOST_WORDS}
                if in_words
                else {"as": "one_hot", "max_tokens": _MOST_TOKENS}
            )
        elif value_type.shape == () and value_type.is_number and value_type.item != "bool":
            encoded[feature.name] = "normalize"
    return encoded


def _unlearnt(schema: Schema, names: Iterable[str]) -> str:
    """What a comment says of inputs that are lists of texts, which no layer but a lookup takes."""
    types = {name: schema.names[name].value_type for name in names if name in schema.names}
    lists = [name for name, value_type in types.items() if value_type.item == "text" and value_type.shape]
    way = f"{{as: multi_hot, max_tokens: {_MOST_TOKENS}}}"
    return f"{', '.join(lists)}: lists of texts, which `encode` makes vectors of, by {way}" if lists else ""


def _guess_target(features: Sequence[Feature]) -> tuple[Feature | None, str]:
    if not features:
        return None, ""
    labels = [feature for feature in features if feature.class_names]
    numbers = [feature for feature in features if feature.class_names or feature.value_type.is_number]
    named = [feature for feature in numbers if _TARGETS.fullmatch(feature.name)]
    for candidate in (*(label for label in labels if label in named), *named[:1], *labels[-1:]):
        which = f", the last of {len(labels)}" if candidate not in named and len(labels) > 1 else ""
        if candidate.class_names:
            return candidate, f"a label of {len(candidate.class_names):,} classes{which}"
        return candidate, "by its name"
    complete = [feature for feature in numbers if not feature.optional]
    if complete != numbers and complete:
        return complete[-1], "the last with a number in every row"
    return (numbers or features)[-1], "the last" if not numbers else "the last with numbers"


def _identifies(feature: Feature) -> bool:
    """Whether a feature is one value that names its row, by its name."""
    named = _IDENTIFIERS.fullmatch(feature.name)
    scalar = feature.value_type.shape == () and feature.value_type.item in ("int64", "text")
    return bool(named) and scalar and not feature.class_names


def _one_or_all(names: Sequence[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)
