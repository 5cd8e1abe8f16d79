"""Infers a schema for TFRecords from their records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Literal

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, counted
from recordspec.executors import cluster
from recordspec.inferring.column_profile import ValueProfile
from recordspec.inferring.media_features import IMAGES, SOUNDS, media_options
from recordspec.inferring.rules import Evidence, infer_features, inferred_schema
from recordspec.progress import Progress
from recordspec.schema.features import Feature
from recordspec.schema.features.box import Box
from recordspec.schema.inferred import Inferred
from recordspec.schema.schema import Schema
from recordspec.statistics.content import EMPTY, TEXT, ContentTypes
from recordspec.statistics.profile import MOST_FEATURES, FeatureCounts, Profile, flat_values
from recordspec.statistics.sizes import SizeCounts
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files
from recordspec.store.scan import (
    FileRange,
    RecordSpans,
    RowBatch,
    Scanner,
    UnpackedRows,
    UnreadableRecord,
    first_rows,
    map_together,
    range_groups,
    run,
    scan,
)
from recordspec.tables.feature_names import FeatureKey
from recordspec.wire.arrays import data_of, sizes_of, values_array
from recordspec.wire.columns import TF_DTYPES, Kind
from recordspec.wire.proto import list_with_context
from recordspec.wire.record_batch import RecordBatch, decode

# Files of which the first records are read together.
_TOGETHER = 64
# The keys of the TensorFlow Object Detection API, in the order of `yxyx`.
_SIDES = ("ymin", "xmin", "ymax", "xmax")


def infer_records(
    files: Files,
    name: str,
    *,
    sample: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Inferred:
    """Infers a schema that reads the given TFRecords.

    Args:
        name: the name of the schema.
        sample: the number of records to read from the start of each file; None for all. The schema then lacks
            features that only later records have.
        jobs: the number of threads; None for one per processor.

    Raises:
        StoreError: the files do not exist.
        RecordError: a record is corrupt, or no record has any features.
    """
    scanner = Scanner.of_rows(StoredDataset.of(files))
    progress = progress or Progress(show=False)
    progress.begin("reading", None)
    tally = _profiled(scanner, sample, jobs, progress)
    if tally.problems:
        raise RecordError(_once(tally))
    features: dict[bool, list[Feature]] = {False: [], True: []}
    inferred, notes = infer_features(_evidence(tally))
    for evidence, feature in inferred:
        if feature is not None:
            features[evidence.sequence].append(feature)
    features[False] = list(_with_boxes(features[False], tally, notes))
    if tally.conflicts:
        rows = f"{tally.conflicts:,} of {tally.rows:,} rows"
        notes.append(f"TensorFlow refuses {rows}, or reads other values: see `check`")
    if tally.truncated:
        (_, last) = max(tally.features)
        notes.append(f"more than {MOST_FEATURES:,} keys: those after `{last}` are left out")
    if not any(features.values()):
        expected, where = "records with features", str(scanner.dataset.paths[0])
        got = "other messages, which `head` names" if tally.unknown_fields == tally.rows > 0 else "none"
        raise RecordError(Problem(where=where, expected=expected, got=got, hint="; ".join(notes[:3])))
    notes += [
        f"{key}: twice in {many:,} records, of which the last counts" for key, many in tally.repeated.items()
    ]
    lists = tally.documents is not None
    if lists:
        notes.append(
            "records of TF-Ranking: `recordspec build` with the source `tfrecord` writes them as "
            "SequenceExamples, which this schema reads"
        )
    schema = _schema(name, tuple(features[False]), tuple(features[True]), lists=lists)
    return inferred_schema(schema, inferred, notes, tally.rows)


def _profiled(
    scanner: Scanner, sample: int | None, threads: int | None, progress: Progress
) -> _RecordProfile:
    """Profiles the records of files, in one pass; groups of files where they are read."""
    files = list(scanner.files)
    if sample is None:
        groups = list(range_groups(files))
    else:  # each file is read from its start
        groups = [files[first : first + _TOGETHER] for first in range(0, len(files), _TOGETHER)]
    here = progress if cluster() is None else None
    tasks = [(group, sample, threads, here) for group in groups]
    tally = _RecordProfile()
    sizes = None if sample is None else [0] * len(tasks)  # only the first records of files are read
    for some in run(_profile, tasks, scanner.dataset.paths, 1, "reading", sizes=sizes):
        tally.merge(some)
        if here is None:
            progress.advance(some.rows)
    tally.features = tally.used_features
    return tally


def _profile(
    files: Sequence[FileRange],
    sample: int | None,
    threads: int | None,
    progress: Progress | None,
    attempt: str,
) -> _RecordProfile:
    """Profiles the records of some files."""

    def decoded(
        batches: Sequence[RowBatch], rows: RecordSpans | UnpackedRows
    ) -> tuple[Sequence[RowBatch], RecordBatch, int | None]:
        records = rows.decode(None)
        lists = _decoded_lists(batches) if records.rows == len(records.broken) > 0 else None
        return (batches, records, None) if lists is None else (batches, *lists)

    tally = _RecordProfile()
    read = scan if sample is None else partial(first_rows, count=sample)
    items = chain.from_iterable(map(read, files))
    for made in map_together(decoded, items, threads):
        if isinstance(made, UnreadableRecord):
            tally.add_unreadable(made)
            continue
        batches, records, documents = made
        tally.add(batches, records)
        if documents is not None:
            tally.documents = (tally.documents or 0) + documents
        if progress is not None:
            progress.advance(records.rows, sum(batch.bytes for batch in batches))
    return tally


def _once(tally: Profile) -> list[Problem]:
    """The problems of unreadable records. If all are alike and of another message type, only the first
    problem, with their number.
    """
    first, *others = tally.problems
    alike = all((other.expected, other.hint) == (first.expected, first.hint) for other in others)
    if not others or not first.hint or not alike:
        return tally.problems
    return [replace(first, hint=f"{first.hint}; as {counted(tally.broken - 1, 'more record')}")]


def _with_boxes(features: list[Feature], tally: _RecordProfile, notes: list[str]) -> Iterator[Feature]:
    """The features, with a box feature in place of four lists that are named like its sides."""
    keys = {feature.stored for feature in features}
    for feature in features:
        folder, _, side = feature.stored.rpartition("/")
        sides = tuple(f"{folder}/{one}" for one in _SIDES)
        format_ = None
        if keys.issuperset(sides):
            lengths = [tally.features[False, key].lengths.times for key in sides]
            format_ = _box_format(lengths, [tally.values[False, key].get("float32") for key in sides])
        if format_ is None or side not in _SIDES:
            yield feature
        elif side == _SIDES[0]:
            notes.append(f"{folder}: the sides of boxes, a guess: `check` reports records that contradict it")
            yield Box(name=folder, format=format_, keys=sides)


def _box_format(
    lengths: Sequence[Mapping[int, int]], sides: Sequence[_KeyValues | None]
) -> Literal["yxyx", "rel_yxyx"] | None:
    """The format of boxes whose sides are stored in lists of the given lengths; None if they cannot be
    boxes.
    """
    different = {tuple(sorted((size, many) for size, many in times.items() if size)) for times in lengths}
    numbers = [side.numbers for side in sides if side is not None and side.numbers.finite]
    if len(numbers) < len(sides) or len(different) > 1 or any(one.low < 0 for one in numbers):
        return None
    return "rel_yxyx" if max(one.high for one in numbers) <= 1 else "yxyx"


def _decoded_lists(batches: Sequence[RowBatch]) -> tuple[RecordBatch, int] | None:
    """Decodes ExampleListWithContexts as the SequenceExamples that a build makes of them. Returns them and
    the number of their documents; None if a record is another message.

    Raises RecordError for an Example that TensorFlow refuses or reads differently.
    """
    records, documents = [], 0
    for batch, row in ((one, row) for one in batches for row in range(len(one))):
        listed = list_with_context(batch.data(row))
        if listed is None:
            return None
        documents += len(listed.examples)
        try:
            records.append(listed.sequence_example())
        except RecordError as error:
            raise RecordError(problem.at(batch.place(row)) for problem in error.problems) from error
    data, places = data_of(records)
    return decode(data, places[:-1], places[1:], sequence=True), documents


def _schema(name: str, features: tuple[Feature, ...], steps: tuple[Feature, ...], *, lists: bool) -> Schema:
    try:
        if not steps and not lists:
            return Schema(name=name, features=features)
        return Schema(name=name, record="sequence_example", context=features, sequence=steps)
    except SpecError as error:
        raise RecordError(error.problems) from error


def _evidence(tally: _RecordProfile) -> Iterator[Evidence]:
    """The evidence for each key. A feature list whose key is also a context key gets another name."""
    names = {key for sequence, key in tally.features if not sequence}
    for (sequence, key), tallied in sorted(tally.features.items()):
        name = key
        while sequence and name in names:
            name += "_steps"
        names.add(name)
        lists = sum(tallied.kinds.values())
        # A build gives each list of documents a step for every document, also under keys that all lack.
        rows = max(lists, tally.documents or 0) if sequence else tally.rows
        missing = rows - (lists - tallied.kinds["none"] - tallied.empty)
        absent = tally.rows - tallied.present if sequence and tally.documents is None else 0
        inferred = _evidence_of_values(tallied, tally.values[sequence, key], missing, sequence)
        if absent:
            lacking = f"no list of steps in {absent:,} of {tally.rows:,} records"
            inferred["notes"] = (lacking, *inferred.get("notes", ()))
        if not key:
            inferred = {"type_name": "the empty key, which no feature holds"}
        where: dict[str, Any] = {"name": name, "key": key, "sequence": sequence, "absent": absent}
        yield Evidence(rows=rows, missing=missing, stored=True, **where, **inferred)


def _evidence_of_values(
    counted: FeatureCounts, values: Mapping[Kind, _KeyValues], missing: int, sequence: bool
) -> dict[str, Any]:
    """The evidence on the dtype, the shape and the values."""
    kinds = [kind for kind, lists in sorted(counted.kinds.items()) if lists and kind != "none"]
    if len(kinds) != 1:
        lists = " and ".join(f"{counted.kinds[kind]:,} of {kind}" for kind in kinds)
        return {"type_name": f"lists of several kinds ({lists})"}
    (kind,) = kinds
    same = counted.lengths.low == counted.lengths.high
    evidence: dict[str, Any] = {
        "dtype": TF_DTYPES[kind],
        "shape": (counted.lengths.high,) if same else (None,),
    }
    # A default can replace a key that records lack, but neither an empty list nor an image.
    is_text = kind in values and values[kind].is_text
    has_default = not counted.empty and not sequence and (kind != "bytes" or is_text)
    if evidence["shape"] == (1,) and (not missing or has_default):
        return evidence | {"shape": (), **values[kind].evidence(kind, missing)}
    if kind in values and (form := values[kind].image_form):
        what = f"several {form}s in a record, kept as bytes"
        way = f"`kind: video` with `encoding: {IMAGES[form]}` and `shape: [null, null, null, 3]`"
        evidence["notes"] = (f"{what}: {way} decodes them, if those of a record have one size",)
    return evidence | {"shape": (None,)} if missing else evidence


@dataclass
class _KeyValues(ValueProfile):
    """The values of one kind under a key.

    Attributes:
        count: the number of values.
        sizes, forms: the sizes and the content types of strings.
    """

    count: int = 0
    sizes: SizeCounts = field(default_factory=SizeCounts)
    forms: ContentTypes = field(default_factory=ContentTypes)

    def merge(self, other: ValueProfile) -> None:
        assert isinstance(other, _KeyValues)
        super().merge(other)
        self.count += other.count
        self.sizes.merge(other.sizes)
        self.forms.merge(other.forms)

    @property
    def is_text(self) -> bool:
        """Whether the values are strings, and all of them are text."""
        return self.sizes.count > 0 and self.forms.counts.keys() <= {TEXT, EMPTY}

    @property
    def image_form(self) -> str:
        """The content type of the strings, if all are images of one type; otherwise empty."""
        form = next(iter(self.forms.counts)) if len(self.forms.counts) == 1 else ""
        return form if form in IMAGES else ""

    def add(self, kind: Kind, values: Any) -> None:
        """Adds at least one value: NumPy numbers, or Arrow strings."""
        self.count += len(values)
        if kind == "float32":
            self.numbers.add(values)
            self.add_floats(values)
            return
        some = values_array(values)
        if kind == "int64":
            self.add_values(some)
            return
        self.sizes.add(sizes_of(some))
        self.forms.add(some)
        if self.is_text:
            texts = some.cast(arrow().large_string())
            self.add_values(texts)
            self.add_texts(texts)

    def evidence(self, kind: Kind, missing: int) -> dict[str, Any]:
        """The evidence on single values; `missing` rows have none."""
        if kind == "float32":
            return {"finite": self.numbers.finite, "values": frozenset(self.whole) if self.whole else None}
        if kind == "int64":
            return {"values": None if self.values is None else frozenset(self.values)}
        rows = self.count + missing
        if self.is_text:
            free_text = self.notes_of_words(rows, missing)
            return {
                "is_text": True,
                "free_text": bool(free_text),
                "notes": free_text + self.notes_of_codes(rows, missing),
                "identifies": self.are_words(rows, missing),
            }
        form = next(iter(self.forms.counts)) if len(self.forms.counts) == 1 else ""
        if form in IMAGES or form in SOUNDS:
            media = [medium for medium in self.forms.media if medium is not None]
            notes: tuple[str, ...] = ()
            if 0 < len(media) < self.count:
                notes = (f"{form}s, judged by the headers of {len(media):,} of {self.count:,}",)
            return {"media": form, "media_options": media_options(form, media), "notes": notes}
        if form and self.sizes.low == self.sizes.high:
            hint = "`kind: tensor` with `encoding: raw`, if these are numbers"
            return {"notes": (f"{self.sizes.low:,} bytes each: {hint}",)}
        return {}


class _RecordProfile(Profile):
    """A profile of records.

    Attributes:
        values: the values of each key, by kind.
        documents: the number of documents in ExampleListWithContexts; None if no record is one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.documents: int | None = None
        self.values = defaultdict[FeatureKey, dict[Kind, _KeyValues]](partial(defaultdict, _KeyValues))

    def add(self, batches: Sequence[RowBatch], records: RecordBatch) -> None:
        super().add(batches, records)
        for (key, kind), flat in flat_values(records):
            if key in self.features:
                self.values[key][kind].add(kind, flat)

    def merge(self, other: Profile) -> None:
        assert isinstance(other, _RecordProfile)
        super().merge(other)
        if other.documents is not None:
            self.documents = (self.documents or 0) + other.documents
        for key, kinds in other.values.items():
            for kind, values in kinds.items() if key in self.features else ():
                self.values[key][kind].merge(values)
