"""`recordspec.infer`: infers a first schema and a first config from data."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, get_args

from recordspec.errors import Problem, RecordError, SpecError, StoreError, counted, nearest, one_of
from recordspec.executors import cluster
from recordspec.inferring.inferred_config import InferredConfig, with_config
from recordspec.inferring.input_files import (
    FOLDERS,
    FORMATS,
    LANGUAGES,
    TABLES,
    FileFormat,
    InputFiles,
    input_files,
)
from recordspec.inferring.rules import MANY_TEXTS
from recordspec.inferring.tables import infer_rows, infer_table
from recordspec.interop import TFDS_FEATURES, TFDS_INFO
from recordspec.locations import Location, folders_in, is_path, joined, read_start
from recordspec.progress import Progress
from recordspec.schema.features import Feature
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.geometry import Pictures
from recordspec.schema.features.label import MISSING, Label
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.inferred import Inferred, ProposedOption
from recordspec.schema.media import array_files, images, sounds
from recordspec.schema.schema import Schema
from recordspec.store.manifest import manifest_in
from recordspec.writing.sources.base import PLACE_OF_TEXT
from recordspec.writing.sources.detection import ANNOTATIONS
from recordspec.writing.sources.folders import ClassFolders
from recordspec.writing.sources.hugging_face import HuggingFaceRows, hugging_face_source, is_hugging_face
from recordspec.writing.sources.objects import top_level
from recordspec.writing.sources.partitions import columns_of_folders

# The files of a split whose first rows tell whether labels are missing.
_MOST_FILES = 8
# The kinds of features for files, with their suffixes.
_MediaKind = Literal["image", "audio", "tensor"]
_MEDIA_SUFFIXES: dict[_MediaKind, Sequence[str]] = {
    "image": images.SUFFIXES,
    "audio": sounds.SUFFIXES,
    "tensor": array_files.SUFFIXES,
}
# The folders beside a table in which files are looked for, and the files of each.
_MOST_FOLDERS, _MOST_LISTED = 20, 10_000
# The bytes of a .json file that tell whose it is.
_JSON_START = 1 << 12


def infer(
    data: Any,
    name: str | None = None,
    *,
    format: FileFormat | None = None,  # noqa: A002
    classes: ClassFolders | None = None,
    sample: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> InferredConfig:
    """Infers a schema, and a config that builds a dataset and trains on it.

    Args:
        data: the paths of files: TFRecords, CSV, JSONL, JSON or Parquet files, or patterns; folders of these
            files, of TFDS, or of images or audio by class; or a schema of another library. Or rows, as for
            `recordspec.write`.
        name: the name of the schema; by default that of the first file, or that in the imported schema.
        format: the format of files whose names have no known suffix: `csv`, `jsonl`, `json`, `parquet` or
            `tfrecord`.
        classes: the subfolder that names the class of a file, for folders of images or audio with nested
            subfolders: `first` (the default), `last`, or `path`, all of them.
        sample: the number of records to read from each file, or of rows; None for all.
        jobs: the number of processes that read TFRecords.
        progress: receives the number of records read; by default a bar, on a terminal or in a notebook.

    Returns:
        A config with `schema`, with `notes` on guesses and on data that the schema does not express, and with
            `rows`, the number of rows read. It can be changed, used as a `pipeline`, and saved: see
            `InferredConfig`.

    Raises StoreError, RecordError or SpecError if no schema can be inferred.

    Example:
        >>> config = rs.infer([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
        >>> config.schema["a"].dtype
        'int64'
    """
    paths = [data] if is_path(data) else data
    listed = isinstance(paths, (list, tuple)) and bool(paths)
    if format is not None and format not in FORMATS:
        hint = nearest(str(format), FORMATS)
        raise SpecError(Problem(path=("format",), expected=one_of(FORMATS), got=f"`{format}`", hint=hint))
    if classes is not None and classes not in (known := get_args(ClassFolders)):
        raise SpecError(Problem(path=("classes",), expected=one_of(known), got=f"`{classes}`"))
    if not listed or not all(is_path(path) for path in paths):
        if format is not None:
            raise SpecError(Problem(path=("format",), expected="none, for rows", got=f"`{format}`"))
        if classes is not None:
            raise SpecError(Problem(path=("classes",), expected="none, for rows", got=f"`{classes}`"))
        if is_hugging_face(data):
            splits = map(str, data) if isinstance(data, Mapping) else ()
            return with_config(_infer_hugging_face(data, name or "data", sample), None, splits)
        return with_config(infer_rows(data, name or "data", sample))
    files = input_files([str(path) for path in paths], format, classes)
    with Progress() if progress is None else nullcontext(progress) as bar:
        return infer_files(files, name, sample=sample, jobs=jobs, progress=bar)


def _infer_hugging_face(data: Any, name: str, sample: int | None) -> Inferred:
    """Infers the schema of a Hugging Face dataset, whose features declare classes, images and audio."""
    from recordspec.inferring.media_features import MOST_MEDIA, infer_medium

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
        notes += others.notes  # they concern columns without files
    order = [*first.features]
    placed = tuple(sorted(features.values(), key=lambda one: order.index(top_level(one.name, order))))
    schema = _not_turned_apart(Schema(name=name, features=placed), notes)
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
    """`infer` for files."""
    inferred = _infer_files(files, name, sample=sample, jobs=jobs, progress=progress)
    notes = [*inferred.notes, *_notes_of_names(files)]
    if _are_of_another_writer(files):
        notes.append("source: `recordspec adopt` makes a dataset of the files in place, and a build a copy")
    if files.features is not None:
        for label, where in _missing_labels(files, inferred.schema):
            feature, way = _with_missing(label)
            changed = inferred.schema.with_features({label.name: feature})
            inferred = replace(inferred, schema=changed)
            notes.append(f"{label.name}: -1 in {where}, as TFDS stores a missing label: {way}")
    return with_config(replace(inferred, notes=tuple(notes)), files)


def _are_of_another_writer(files: InputFiles) -> bool:
    """Whether files are TFRecords, and belong to no dataset."""
    is_other = files.source == "tfrecord" and files.features is None
    return is_other and all(manifest_in(folder) is None for folder in {path.parent for path in files.paths})


def _missing_labels(files: InputFiles, schema: Schema) -> Iterator[tuple[Label, str]]:
    """The labels of a TFDS dataset that are -1, which means missing in TFDS, in the first rows of some of its
    files; and in how many rows of each split.
    """
    from recordspec.statistics.profile import flat_values
    from recordspec.store.dataset import StoredDataset
    from recordspec.store.scan import FIRST, Scanner

    labels = {one.stored: one for one in schema.features if isinstance(one, Label)}
    found: dict[str, list[str]] = {key: [] for key in labels}
    for split, paths in files.splits.items() if labels else ():
        missing, rows = Counter[str](), 0
        for batch in Scanner.of_rows(StoredDataset.of(paths[:: 1 + len(paths) // _MOST_FILES])).first(FIRST):
            rows += len(batch)
            for ((_, key), kind), flat in flat_values(batch.decode(keys=labels.keys())):
                missing[key] += int((flat == MISSING).sum()) if kind == "int64" else 0
        for key, count in missing.items():
            if count:
                items = f"{counted(count, 'item')} of" if labels[key].shape else f"{count:,} of"
                found[key].append(f"{items} the first {rows:,} rows of `{split}`")
    return ((labels[key], ", ".join(where)) for key, where in found.items() if where)


def _with_missing(label: Label) -> tuple[Feature, str]:
    """The feature that reads a label that is -1 in some rows, or in some items of lists; and how it does."""
    if not label.shape:
        return replace(label, missing=True), "`missing: true`"
    named: dict[str, Any] = {"name": label.name, "key": label.key, "description": label.description}
    way = "kept as numbers, since a list of labels has no missing item"
    if label.shape == (None,):
        return VariableLen(dtype="int64", **named | {"missing": label.missing}), way
    return FixedLen(dtype="int64", shape=label.shape, **named), way


def _notes_of_names(files: InputFiles) -> Iterator[str]:
    """Notes on columns in the names of folders, and on the names of splits."""
    columns = columns_of_folders(files.paths)
    if columns and files.source in ("csv", "parquet"):
        yield f"source: columns in the names of folders: {', '.join(columns)}"
    elif columns and files.source in TABLES.values():
        yield f"source: the columns in the names of folders are not read: {', '.join(columns)}"
    if "training" in files.splits and "train" not in files.splits:
        yield "splits: no `fit.encode` is proposed, which learns from a split named `train`, not `training`"


def _infer_files(
    files: InputFiles, name: str | None, *, sample: int | None, jobs: int | None, progress: Progress | None
) -> Inferred:
    named, paths = name or files.name, files.paths
    if cluster() is not None and files.source not in ("tfrecord", "parquet"):
        hint = "others are inferred on this machine"
        got = f"a source of the type `{files.source}`"
        raise SpecError(
            Problem(where=str(paths[0]), expected="TFRecords or Parquet on a cluster", got=got, hint=hint)
        )
    if files.source in LANGUAGES.values() or files.features is not None:
        rows = _check_lengths(files.lengths, progress) if files.lengths else None
        language = importlib.import_module(f"recordspec.interop.{LANGUAGES.get(paths[0].suffix, 'tfds')}")
        with _naming_json(paths[0]) if files.features is None else nullcontext():
            schema, translated = language.load(files.features or paths[0])
        schema = schema if name is None else replace(schema, name=name)
        return Inferred(schema=schema, notes=tuple(map(str, translated)), rows=rows)
    if files.source in ("json", *TABLES.values()):
        source: Any = files.source
        return _with_media(infer_table(paths, named, source, sample, progress), paths)
    if files.source in ANNOTATIONS:
        from recordspec.inferring.annotations import infer_annotated

        return infer_annotated(files, named, sample)
    if files.source in FOLDERS:
        from recordspec.inferring.media_features import infer_folders

        return infer_folders(files, named, sample)
    from recordspec.inferring.record_schemas import infer_records

    return infer_records(paths, named, sample=sample, jobs=jobs, progress=progress)


@contextmanager
def _naming_json(path: Location) -> Iterator[None]:
    """Adds a hint to errors of a .json file that is not a features.json of TFDS: what else it may be."""
    try:
        yield
    except (SpecError, StoreError) as error:
        if path.suffix != ".json" or path.name == TFDS_FEATURES:
            raise
        hint = "rows are lines of a .jsonl file, and annotations of COCO have `images`"
        if b'"shape_attributes"' in read_start(path, _JSON_START):
            hint = "these are annotations of the VGG Image Annotator, which exports them as COCO's, too"
        problems = [replace(problem, hint=problem.hint or hint) for problem in error.problems]
        raise type(error)(problems) from None


def _check_lengths(lengths: Mapping[Path, int], progress: Progress | None) -> int:
    """The number of records. Raises RecordError if a file has a different number than expected."""
    from recordspec.statistics.count import count

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


def _not_turned_apart(schema: Schema, notes: list[str]) -> Schema:
    """The schema without turning one of several images, since a mask for a photo would not be turned with
    it.
    """
    pictures = [feature for feature in schema.features if isinstance(feature, Pictures)]
    turned = [image for image in pictures if image.is_turned and len(pictures) > 1]
    for image in turned:
        others = ", ".join(f"`{other.name}`" for other in pictures if other is not image)
        notes.append(
            f"{image.name}: not turned upright, since {others} would not be (if that is a mask, "
            f"`orientation: upright` here and `mask_of: {image.name}` there turn both)"
        )
    kept = {image.name: image.not_turned for image in turned}
    features = tuple(kept.get(feature.name, feature) for feature in schema.features)
    return replace(schema, features=features)


def _with_media(inferred: Inferred, paths: Sequence[Location]) -> Inferred:
    """The schema of a table, with images and audio for columns of paths relative to the table's folder."""
    schema, notes = inferred.schema, list(inferred.notes)
    missing_files: dict[str, tuple[int, int]] = {}
    options = list(inferred.options)
    forms: dict[str, str] = {}
    beside = cache(lambda: _files_beside(paths[0].parent))  # for all columns
    for name, texts in inferred.first_texts.items():
        named = _named_files(paths[0].parent, texts, beside)
        if named is None:
            continue
        kind, form, files = named
        what = ".npy" if kind == "tensor" else kind
        missing = [file for file in files if not file.exists()]
        if missing:
            got = f"{len(missing):,} of the first {len(files):,} files do not exist, such as {missing[0]}"
            if 2 * len(missing) > len(files):
                notes.append(f"{name}: text, not {what} files, since {got}")
                continue
            from recordspec.inferring.media_features import LEFT_OUT

            notes.append(f"{name}: {got}: {LEFT_OUT}")
            missing_files[name] = (len(missing), len(files))
            files = [file for file in files if file not in set(missing)]
        from recordspec.inferring.media_features import infer_media_files

        medium, more = infer_media_files(kind, name, files)
        features = tuple(medium if feature.name == name else feature for feature in schema.features)
        schema = replace(schema, features=features)
        notes = [note for note in notes if note != f"{name}: {MANY_TEXTS}"]
        notes += [f"{name}: paths of {what} files, judged by the first {len(files):,}", *more]
        if form is not None:
            forms[name] = form
        if len(set(texts)) < len(texts):
            other = "image" if kind == "image" and name != "image" else f"{name}_file"
            notes.append(
                f"{name}: a file in several rows, which may be in different splits: if the feature is named "
                f"`{other}`, with `columns: {{{other}: {name}}}`, `group_by: {name}` keeps them together"
            )
    if forms:
        reason = f"the files of the first rows are {_some_forms(forms)}"
        options.append(ProposedOption(name="media", value=forms, reason=reason))
    schema = _not_turned_apart(schema, notes)
    # a path identifies its row, but the contents of the file do not
    media = {feature.name for feature in schema.features if feature.value_type.item == "media"}
    kept = {name: why for name, why in inferred.no_inputs.items() if name not in media}
    return replace(
        inferred,
        schema=schema,
        notes=tuple(notes),
        no_inputs=kept,
        missing_files=missing_files,
        options=tuple(options),
    )


def _named_files(
    folder: Location, texts: Sequence[str], beside: Callable[[], list[tuple[str, dict[str, str]]]]
) -> tuple[_MediaKind, str | None, list[Location]] | None:
    """The files that texts of a table name: their kind, the form of their paths, and their paths.

    The form is None for paths from the folder of the table. Else the files are in a folder beside the table,
    or the texts lack the suffix. None if no such file exists.

    Args:
        beside: returns `_files_beside` of the folder.
    """
    suffixes = {os.path.splitext(text)[1].lower() for text in texts}
    kind = _kind_of(suffixes)
    if kind is not None:
        files = [joined(folder, text) for text in texts]
        if any(file.exists() for file in files):
            return kind, None, files
    if not texts or not isinstance(folder, Path):  # each folder is a request to a store
        return None
    wanted = texts if kind is None else [os.path.splitext(text)[0] for text in texts]
    for home, found in beside():
        if found.keys().isdisjoint(wanted):
            continue
        ending = "" if kind else next(found[text] for text in texts if text in found)
        files = [folder / f"{home}{text}{ending}" for text in texts]
        of_files = _kind_of({ending.lower()}) if kind is None else kind
        if of_files is not None and any(file.exists() for file in files):  # the suffix may be another
            return of_files, f"{home}{PLACE_OF_TEXT}{ending}", files
    return None


def _kind_of(suffixes: set[str]) -> _MediaKind | None:
    """The kind of files with these suffixes; None if there is no common kind."""
    return next((kind for kind, known in _MEDIA_SUFFIXES.items() if suffixes and suffixes <= {*known}), None)


def _files_beside(folder: Location) -> list[tuple[str, dict[str, str]]]:
    """Images, audio files and arrays in a folder, and in each of its folders: the start of their path, and
    their suffixes by the rest of their names; of many files in a folder, the first."""
    known, found = {suffix for several in _MEDIA_SUFFIXES.values() for suffix in several}, []
    for home in ("", *(f"{one.name}/" for one in folders_in(folder)[:_MOST_FOLDERS])):
        names: list[tuple[str, str]] = []
        with suppress(OSError), os.scandir(f"{folder}/{home}") as entries:  # it may not be readable
            names += [os.path.splitext(entry.name) for entry in islice(entries, _MOST_LISTED)]
        if files := {stem: suffix for stem, suffix in names if suffix.lower() in known}:
            found.append((home, files))
    return found


def _some_forms(forms: Mapping[str, str]) -> str:
    return " and ".join(f"`{form}` of {name}" for name, form in forms.items())
