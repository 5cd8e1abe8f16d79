"""Files and folders to infer from: their formats and their splits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recordspec.errors import (
    IncompleteError,
    Problem,
    RecordError,
    SpecError,
    State,
    StoreError,
)
from recordspec.inferring.tables import (
    DELIMITERS,
    LINES,
    table_suffix,
)
from recordspec.interop import TFDS_FEATURES, TFDS_INFO
from recordspec.locations import Location, files_in, folders_in, location, resolved
from recordspec.schema.media import images, sounds
from recordspec.store.expand import expand, has_tfrecords, path_list
from recordspec.store.manifest import Manifest, manifest_in
from recordspec.store.shard_names import is_shard, is_split_name, split_word
from recordspec.writing.sources.folders import AudioFolder, ImageFolder

# The sources of configs by the suffixes of files; languages of schemas; folders of media; annotations.
TABLES = {**dict.fromkeys(DELIMITERS, "csv"), **dict.fromkeys(LINES, "jsonl"), ".parquet": "parquet"}
LANGUAGES = {".pbtxt": "tfmd", ".pb": "tfmd", ".binpb": "tfmd", ".json": "tfds"}
FOLDERS: dict[str, type[ImageFolder] | type[AudioFolder]] = {
    "image_folder": ImageFolder,
    "audio_folder": AudioFolder,
}
DETECTION = ("coco", "voc")
# The folder of the annotations of Pascal VOC.
_VOC_FOLDER = "Annotations"


@dataclass(frozen=True, kw_only=True)
class InputFiles:
    """Files to infer a schema from.

    Attributes:
        source: the source of a config that reads the files; `tfmd` or `tfds` for a schema of another library.
        splits: the files, or the folders of media, by split; without splits, under "".
        given: the paths as given, if there are no splits.
        features: the features.json of a TFDS dataset.
        lengths: the expected number of records of each file, if known.
    """

    source: str
    splits: Mapping[str, tuple[Location, ...]]
    given: tuple[str, ...]
    features: Location | None = None
    lengths: Mapping[Path, int] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[Location, ...]:
        return tuple(path for paths in self.splits.values() for path in paths)

    @property
    def name(self) -> str:
        """The name of the schema: that of the first file, or of its folder if the file names a split."""
        first = self.paths[0]
        names = (first.name, *(folder.name for folder in resolved(first).parents))
        return next((stem for stem in map(_stem, names) if self._names_data(stem)), "data")

    def _names_data(self, stem: str) -> bool:
        return bool(stem) and stem not in self.splits and not is_split_name(stem)


def _stem(name: str) -> str:
    first = name.partition(".")[0].partition("-")[0]
    return "".join(letter if letter.isalnum() else "_" for letter in first)


def input_files(files: Sequence[str]) -> InputFiles:
    """Detects the type of files, patterns and folders.

    Raises StoreError if there is no data, SpecError for files of several formats, and for several schemas.
    """
    texts = path_list(files)
    paths: list[Location] = []
    for text in texts:
        place = location(text)
        if isinstance(place, Path) and place.is_dir():
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
    if source in LANGUAGES.values() and len(paths) > 1:
        expected = f"one {paths[0].suffix} file"
        raise SpecError(Problem(where=str(paths[1]), expected=expected, got="several"))
    return InputFiles(source=source, splits=_by_split(paths), given=texts)


def _tfds_folder(folder: Path) -> InputFiles:
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


def _contents(folder: Path) -> list[Location]:
    """The data in a folder: its TFRecords or tables; the data in its folders of splits; or the folder itself,
    for media.

    Raises StoreError if there is no data.
    """
    tables = [
        path
        for path in files_in(folder)
        if table_suffix(path) in TABLES and not path.name.startswith((".", "_"))
    ]
    is_dataset = manifest_in(folder) is not None
    if is_dataset or has_tfrecords(folder):
        return [*expand(folder), *([] if is_dataset else tables)]
    if tables:
        return [*expand(tables)]
    folders = [folder / one.name for one in folders_in(folder)]
    voc = [one for one in (folder, folder / _VOC_FOLDER) if one.is_dir() and _has_xml(one)]
    if voc:
        return [voc[0]]
    splits = [one for one in folders if is_split_name(one.name)]
    others = _with_data([one for one in folders if one not in splits], splits) if splits else folders
    if splits and not others:
        return [path for split in splits for path in _contents(split)]
    # a single folder with the name of a split and files may be a class
    if len(splits) > 1 or any(folders_in(split) for split in splits):
        raise _beside_splits(others, splits)
    if _media_source(folder) is not None:
        return [folder]
    try:
        return [*expand(folder)]
    except StoreError as error:
        got = "has no TFRecords, no tables, and no images or audio files by class"
        raise StoreError(
            State(where=problem.where, got=got, hint=problem.hint) for problem in error.problems
        ) from None


def _with_data(folders: Sequence[Path], splits: Sequence[Path]) -> list[Path]:
    """The folders with the same type of data as the splits: if the splits have images or audio, folders
    with some.
    """
    if any(_media_source(split) is not None for split in splits):
        return [folder for folder in folders if _media_source(folder) is not None]
    return [folder for folder in folders if _has_records(folder)]


def _has_records(folder: Path) -> bool:
    """Whether a folder or its folders contain TFRecords or tables."""
    try:
        return bool(_contents(folder))
    except (IncompleteError, RecordError):  # there are some
        return True
    except StoreError:
        folders = [folder / one.name for one in folders_in(folder)]
        return any(_has_records(one) for one in folders if not one.is_symlink())  # a link may lead back


def _beside_splits(others: Sequence[Path], splits: Sequence[Path]) -> RecordError:
    """The error for other folders beside the folders of splits: all of them, including the splits, would
    be classes.
    """
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
    if isinstance(path, Path) and path.is_dir():
        return "voc" if _has_xml(path) else _media_source(path) or ""
    if path.suffix == ".json" and path.name != TFDS_FEATURES:
        from recordspec.writing.sources.detection import is_coco

        if is_coco(path):
            return "coco"
    return TABLES.get(table_suffix(path)) or LANGUAGES.get(path.suffix, "tfrecord")


def _has_xml(folder: Location) -> bool:
    return any(file.suffix == ".xml" for file in files_in(folder))


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
    """The files by split, according to the names of the files or their folders. All are under "" if fewer
    than two splits are named, or a file names none.
    """
    by_split: dict[str, list[Location]] = {}
    manifests: dict[Location, Manifest | None] = {}
    for path in paths:
        by_split.setdefault(_split_of(path, manifests), []).append(path)
    if "" in by_split or len(by_split) < 2:
        return {"": tuple(path for some in by_split.values() for path in some)}
    train_first = sorted(by_split, key=lambda split: not split.startswith("train"))
    return {split: tuple(by_split[split]) for split in train_first}


def _split_of(path: Location, manifests: dict[Location, Manifest | None]) -> str:
    """The split of a file: for a shard, from its manifest; else from its name, or ""."""
    if is_shard(path):
        folder = path.parent
        if folder not in manifests:
            manifests[folder] = manifest_in(folder)
        manifest = manifests[folder]
        if manifest is not None and (splits := manifest.splits_of([path.name])):
            return splits[0]
    return split_word(path)
