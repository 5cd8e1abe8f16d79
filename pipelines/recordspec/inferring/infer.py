"""`recordspec.infer`: infers a first schema and a first config from data."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, RecordError, SpecError, StoreError
from recordspec.inferring.inferred_config import InferredConfig, with_config
from recordspec.inferring.input_files import DETECTION, FOLDERS, LANGUAGES, TABLES, InputFiles, input_files
from recordspec.inferring.tables import infer_rows, infer_table
from recordspec.interop import TFDS_FEATURES, TFDS_INFO
from recordspec.locations import Location, is_path, joined
from recordspec.progress import Progress
from recordspec.schema.features import Feature
from recordspec.schema.features.geometry import Pictures
from recordspec.schema.features.label import Label
from recordspec.schema.inferred import Inferred
from recordspec.schema.media import images, sounds
from recordspec.schema.schema import Schema
from recordspec.writing.sources.hugging_face import HuggingFaceRows, hugging_face_source, is_hugging_face

# Paths whose folders are considered.
_MOST_NAMED = 100


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
        data: the paths of files: TFRecords, CSV, JSONL or Parquet files, or patterns; folders of these files,
            of TFDS, or of images or audio by class; or a schema of another library. Or rows, as for
            `recordspec.write`.
        name: the name of the schema; by default that of the first file, or that in the imported schema.
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
    if not listed or not all(is_path(path) for path in paths):
        if is_hugging_face(data):
            splits = map(str, data) if isinstance(data, Mapping) else ()
            return with_config(_infer_hugging_face(data, name or "data", sample), None, splits)
        return with_config(infer_rows(data, name or "data", sample))
    files = input_files([str(path) for path in paths])
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
    placed = tuple(features[column] for column in first.features if column in features)
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
    if files.features is not None:
        unlabelled = set(_unlabelled(files, inferred.schema))
        labelled = {split: paths for split, paths in files.splits.items() if split not in unlabelled}
        if unlabelled and labelled:
            files = replace(files, splits=labelled)
            names = ", ".join(f"`{split}`" for split in sorted(unlabelled))
            notes.append(f"splits: the config leaves out {names}: their labels are -1, which means missing")
    return with_config(replace(inferred, notes=tuple(notes)), files)


def _unlabelled(files: InputFiles, schema: Schema) -> Iterator[str]:
    """The splits of a TFDS dataset whose first rows all have the label -1, which means missing in TFDS."""
    from recordspec.statistics.profile import flat_values
    from recordspec.store.dataset import StoredDataset
    from recordspec.store.scan import FIRST, Scanner

    keys = {label.stored for label in schema.features if isinstance(label, Label)}
    for split, paths in files.splits.items():
        for batch in Scanner.of_rows(StoredDataset.of(paths[:1])).first(FIRST) if keys else ():
            labels = flat_values(batch.decode(keys=keys))
            if any(kind == "int64" and (flat == -1).all() for (_, kind), flat in labels):
                yield split
            break


def _notes_of_names(files: InputFiles) -> Iterator[str]:
    """Notes on columns in the names of folders, and on the names of splits."""
    columns = dict.fromkeys(
        part.partition("=")[0]
        for path in files.paths[:_MOST_NAMED]
        for part in Path(str(path)).parent.parts
        if re.fullmatch(r"[^=]+=[^=]*", part)
    )
    if columns and files.source in TABLES.values():
        way = 'pyarrow.dataset.dataset(folder, partitioning="hive").to_table() has them'
        yield f"source: the columns in the names of folders are not read, {', '.join(columns)} ({way})"
    if "training" in files.splits and "train" not in files.splits:
        yield "splits: no `fit.encode` is proposed, which learns from a split named `train`, not `training`"


def _infer_files(
    files: InputFiles, name: str | None, *, sample: int | None, jobs: int | None, progress: Progress | None
) -> Inferred:
    named, paths = name or files.name, files.paths
    if files.source in LANGUAGES.values() or files.features is not None:
        rows = _check_lengths(files.lengths, progress) if files.lengths else None
        language = importlib.import_module(f"recordspec.interop.{LANGUAGES.get(paths[0].suffix, 'tfds')}")
        with _naming_json(paths[0]) if files.features is None else nullcontext():
            schema, translated = language.load(files.features or paths[0])
        schema = schema if name is None else replace(schema, name=name)
        return Inferred(schema=schema, notes=tuple(map(str, translated)), rows=rows)
    if files.source in TABLES.values():
        return _with_media(infer_table(paths, named, sample, progress), paths)
    if files.source in {*DETECTION, *FOLDERS}:
        from recordspec.inferring.media_features import infer_annotated, infer_folders

        return (infer_folders if files.source in FOLDERS else infer_annotated)(files, named, sample)
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
    for name, texts in inferred.first_texts.items():
        suffixes = {Path(text).suffix.lower() for text in texts}
        kinds = {"image": images.SUFFIXES, "audio": sounds.SUFFIXES}
        kind = next((kind for kind, known in kinds.items() if suffixes and suffixes <= {*known}), None)
        files = [joined(paths[0].parent, text) for text in texts] if kind else []
        missing = [file for file in files if not file.exists()]
        if kind is None or len(missing) == len(files):
            continue
        if missing:
            got = f"{len(missing):,} of the first {len(files):,} paths do not exist, such as {missing[0]}"
            notes.append(f"{name}: text, not {kind} files, since {got}")
            continue
        from recordspec.inferring.media_features import infer_media_files

        medium, more = infer_media_files(kind, name, files)
        features = tuple(medium if feature.name == name else feature for feature in schema.features)
        schema = replace(schema, features=features)
        notes += [f"{name}: paths of {kind} files, judged by the first {len(files):,}", *more]
    schema = _not_turned_apart(schema, notes)
    # a path identifies its row, but the contents of the file do not
    media = {feature.name for feature in schema.features if feature.value_type.item == "media"}
    kept = {name: why for name, why in inferred.no_inputs.items() if name not in media}
    return replace(inferred, schema=schema, notes=tuple(notes), no_inputs=kept)
