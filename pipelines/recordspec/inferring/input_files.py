"""Files and folders to infer from: their formats and their splits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from recordspec.errors import (
    IncompleteError,
    Problem,
    RecordError,
    SpecError,
    State,
    StoreError,
)
from recordspec.inferring.annotation_files import annotation_format, annotations_in, yolo_dataset
from recordspec.inferring.tables import LINES, table_suffix
from recordspec.interop import TFDS_FEATURES, TFDS_INFO
from recordspec.locations import Location, files_in, folders_in, location, read_start, resolved
from recordspec.store.expand import expand, has_tfrecords, path_list
from recordspec.store.manifest import Manifest, manifest_in
from recordspec.store.shard_names import is_shard, is_split_name, is_tfrecord_name, split_word
from recordspec.wire.file_types import begins_with_record, describe_type
from recordspec.writing.sources.csv import DELIMITERS
from recordspec.writing.sources.detection import ANNOTATIONS
from recordspec.writing.sources.folders import AudioFolder, ClassFolders, ImageFolder, TensorFolder
from recordspec.writing.sources.json_array import records_in
from recordspec.writing.sources.partitions import is_partition, tables_in
from recordspec.writing.sources.text_files import BOM

# The sources of configs by the suffixes of files; languages of schemas; folders of media; annotations.
TABLES = {**dict.fromkeys(DELIMITERS, "csv"), **dict.fromkeys(LINES, "jsonl"), ".parquet": "parquet"}
LANGUAGES = {".pbtxt": "tfmd", ".pb": "tfmd", ".binpb": "tfmd", ".json": "tfds"}
FOLDERS: dict[str, type[ImageFolder | AudioFolder | TensorFolder]] = {
    "image_folder": ImageFolder,
    "audio_folder": AudioFolder,
    "tensor_folder": TensorFolder,
}
# The formats of rows that a user can name.
FileFormat = Literal["csv", "jsonl", "json", "parquet", "tfrecord"]
FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
# Names of files and folders of annotated images, which name no data.
_OF_ANNOTATIONS = ("annotations", "images", "obj_train_data", "jpegimages")
# The bytes of a .json file that tell whether it has lines.
_JSON_START = 1 << 16


@dataclass(frozen=True, kw_only=True)
class InputFiles:
    """Files to infer a schema from.

    Attributes:
        source: the source of a config that reads the files; `tfmd` or `tfds` for a schema of another library.
        splits: the files, or the folders of media, by split; without splits, under "".
        given: the paths as given, if there are no splits.
        features: the features.json of a TFDS dataset.
        names: the file with the names of the classes of a YOLO dataset.
        classes: the subfolder that names the class of a file, in folders of media.
        lengths: the expected number of records of each file, if known.
    """

    source: str
    splits: Mapping[str, tuple[Location, ...]]
    given: tuple[str, ...]
    features: Location | None = None
    names: Location | None = None
    classes: ClassFolders = "first"
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
        if self.source in ANNOTATIONS and stem.strip("_").lower() in _OF_ANNOTATIONS:
            return False
        return bool(stem.strip("_0123456789")) and stem not in self.splits and not is_split_name(stem)


def _stem(name: str) -> str:
    first = name.partition(".")[0].partition("-")[0]
    return "".join(letter if letter.isalnum() else "_" for letter in first)


def input_files(
    files: Sequence[str], given_format: FileFormat | None = None, classes: ClassFolders | None = None
) -> InputFiles:
    """Detects the type of files, patterns and folders, unless their format is given.

    Args:
        classes: the subfolder that names the class of a file, for folders of media.

    Raises StoreError if there is no data, SpecError for files of several formats or of an unknown one, and
    for several schemas.
    """
    texts = path_list(files)
    paths: list[Location] = []
    for text in texts:
        place = location(text)
        if len(texts) == 1 and given_format is None and (yolo := yolo_dataset(place)) is not None:
            names, splits = yolo
            folders = {split: (folder,) for split, folder in splits.items()}
            given = tuple(map(str, splits.values()))
            return InputFiles(
                source="yolo",
                splits=folders if len(folders) > 1 else {"": (*splits.values(),)},
                given=given,
                names=names,
            )
        if isinstance(place, Path) and place.is_dir():
            if given_format is not None:
                hint = f"give the files, such as '{place}/*'"
                raise SpecError(
                    Problem(where=text, expected=f"files of {given_format}", got="a folder", hint=hint)
                )
            if len(texts) == 1 and (place / TFDS_FEATURES).exists():
                return _tfds_folder(place)
            paths += _contents(place)
        else:
            paths += expand(text)
    paths = list(dict.fromkeys(paths)) if len(paths) > 1 else paths
    sources = {given_format or _source_of(path): path for path in paths}
    if len(sources) > 1:
        got = " and ".join(f"{path.name} ({source})" for source, path in sources.items())
        raise SpecError(Problem(where=str(paths[0]), expected="files of one format", got=got))
    (source,) = sources
    if source in LANGUAGES.values() and len(paths) > 1:
        expected = f"one {paths[0].suffix} file"
        raise SpecError(Problem(where=str(paths[1]), expected=expected, got="several"))
    if classes is not None and source not in FOLDERS:
        hint = "`classes` is for folders of images or audio files"
        raise SpecError(Problem(where=str(paths[0]), expected="a folder of classes", got=source, hint=hint))
    return InputFiles(source=source, splits=_by_split(paths), given=texts, classes=classes or "first")


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
    if partitioned := [path for one in folders if is_partition(one) for path in tables_in(one, (*TABLES,))]:
        return partitioned
    if annotated := annotations_in(folder):
        return annotated
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
        got = "has no TFRecords, no tables, and no images, audio files or arrays by class"
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
    annotated = annotation_format(path)
    if annotated is not None:
        return annotated
    if isinstance(path, Path) and path.is_dir():
        return _media_source(path) or ""
    if path.suffix == ".json" and path.name != TFDS_FEATURES:
        if records_in(path) is not None:
            return "json"
        _check_json(path)
    source = TABLES.get(table_suffix(path)) or LANGUAGES.get(path.suffix)
    if source is None and not is_tfrecord_name(path.name) and not begins_with_record(path):
        raise SpecError(_unknown_format(path))
    return source or "tfrecord"


def _check_json(path: Location) -> None:
    """Raises SpecError for a .json file with lines of objects."""
    first, _, rest = read_start(path, _JSON_START).removeprefix(BOM).lstrip().partition(b"\n")
    with suppress(ValueError):
        if rest.strip() and isinstance(json.loads(first), dict):
            hint = '`--format jsonl`, or format="jsonl", reads them'
            raise SpecError(
                Problem(where=str(path), expected="one JSON object", got="lines of JSON", hint=hint)
            )


def _unknown_format(path: Location) -> Problem:
    """The problem of a file of unknown format, with the way out."""
    if path.suffix.lower() in _SPREADSHEETS:
        hint = f'save it as CSV, or give rs.infer the frame: rs.infer(pandas.read_excel("{path.name}"))'
        return State(where=str(path), got="is a spreadsheet", hint=hint)
    start = read_start(path, _JSON_START)
    kind = describe_type(start)
    likely = "parquet" if kind == "a Parquet file" else "jsonl" if start.lstrip()[:1] == b"{" else "csv"
    if any(path.suffix.lower() in folder.SUFFIXES for folder in FOLDERS.values()):
        hint = "the folder of the classes, each a folder of files, is read"
        return Problem(where=str(path), expected="a folder", got=kind, hint=hint)
    if kind == "a tar archive":
        hint = "a schema and the source `webdataset` read WebDataset; unpack any other"
        return State(where=str(path), got="is a tar archive, which is not inferred", hint=hint)
    hint = f'such as `--format {likely}`, or format="{likely}"'
    expected = f"a name with a known suffix ({', '.join(TABLES)}), a TFRecord file, or a format"
    return Problem(where=str(path), expected=expected, got=kind, hint=hint)


def _media_source(folder: Location) -> str | None:
    """The source that reads a folder of media, by the suffix of the first file."""
    for _, folders, names in os.walk(str(folder)):
        folders.sort()
        for name in sorted(names):
            suffix = Path(name).suffix.lower()
            source = next((name for name, one in FOLDERS.items() if suffix in one.SUFFIXES), None)
            if source is not None:
                return source
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
        if manifest is not None and (splits := manifest._splits_of([path.name])):
            return splits[0]
    return split_word(path)
