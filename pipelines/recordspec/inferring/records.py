"""A schema for TFRecords, inferred from their records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from recordspec.errors import Problem, RecordError, SpecError, counted
from recordspec.inferring.media import IMAGES, SOUNDS, media_options
from recordspec.inferring.rules import (
    LONGEST_NAME,
    Evidence,
    free_text,
    infer_features,
    no_inputs,
    notes_of_free_text,
)
from recordspec.inspect.scan import Scanner
from recordspec.inspect.stats.content import EMPTY, TEXT
from recordspec.inspect.stats.profile import FeatureCounts, Profile, profile_all
from recordspec.inspect.stats.values import BytesValues, NumberValues
from recordspec.progress import Progress
from recordspec.schema.features import Feature
from recordspec.schema.features.box import Box
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.fixed_len_sequence import FixedLenSequence
from recordspec.schema.inferred import Inferred
from recordspec.schema.schema import Schema
from recordspec.store.expand import Files
from recordspec.wire.columns import TF_DTYPES, RecordMessage
from recordspec.wire.proto import list_with_context

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
    """A schema that reads these TFRecords.

    Args:
        name: the name of the schema.
        sample: how many records of each file to read, from its start; None for all. Features that only other
            records have are then missing from the schema.
        jobs: the number of threads; None for one per processor.

    Raises:
        StoreError: there are no such files.
        RecordError: a record is damaged, or none has any features.
    """
    scanner = Scanner.of_rows(files)
    if progress is not None:
        progress.begin("reading", None)
    tally = profile_all(scanner, jobs, progress, sample=sample)
    if tally.problems:
        raise RecordError(_once(tally))
    features: dict[bool, list[Feature]] = {False: [], True: []}
    inferred, notes = infer_features(_evidence(tally))
    for evidence, feature in inferred:
        if feature is not None:
            features[evidence.sequence].append(feature)
    left_out = tuple(evidence.name for evidence, feature in inferred if feature is None)
    features[False] = list(_with_boxes(features[False], tally, notes))
    if tally.conflicts:
        rows = f"{tally.conflicts:,} of {tally.rows:,} rows"
        notes.append(f"TensorFlow refuses {rows}, or reads other values: see `check`")
    if not any(features.values()):
        expected, where = "records with features", str(scanner.paths[0])
        got = "other messages, which `head` shows" if tally.unknown_fields == tally.rows > 0 else "none"
        raise RecordError(Problem(where=where, expected=expected, got=got, hint="; ".join(notes[:3])))
    notes += [
        f"{key}: twice in {many:,} records, of which the last counts" for key, many in tally.repeated.items()
    ]
    lists = _are_lists(scanner)
    if lists:  # an Example need not have a key, and its single values are no sequences
        features[True] = [
            FixedLen(
                name=step.name, key=step.key, description=step.description, dtype=step.dtype, shape=step.shape
            )
            if isinstance(step, FixedLenSequence)
            else replace(step, missing="error")
            for step in features[True]
        ]
        notes = [note for note in notes if "no list of steps" not in note]
    schema = _schema(name, tuple(features[False]), tuple(features[True]), lists=lists)
    return Inferred(
        schema=schema,
        notes=tuple(notes),
        rows=tally.rows,
        left_out=left_out,
        no_inputs=no_inputs(inferred),
        free_text=free_text(inferred),
    )


def _once(tally: Profile) -> list[Problem]:
    """The problems of records; of records that are all of one other type, the first, with their number."""
    first, *others = tally.problems
    alike = all((other.expected, other.hint) == (first.expected, first.hint) for other in others)
    if not others or not first.hint or not alike:
        return tally.problems
    return [replace(first, hint=f"{first.hint}; as {counted(tally.broken - 1, 'more record')}")]


def _with_boxes(features: list[Feature], tally: Profile, notes: list[str]) -> Iterator[Feature]:
    """The features, with one box in place of four lists that are named like its sides."""
    keys = {feature.stored for feature in features}
    for feature in features:
        folder, _, side = feature.stored.rpartition("/")
        sides = tuple(f"{folder}/{one}" for one in _SIDES)
        format_ = (
            _box_format([tally.features[False, key] for key in sides]) if keys.issuperset(sides) else None
        )
        if format_ is None or side not in _SIDES:
            yield feature
        elif side == _SIDES[0]:
            notes.append(f"{folder}: the sides of boxes, a guess: `check` reports records with others")
            yield Box(name=folder, format=format_, keys=sides)


def _box_format(sides: list[FeatureCounts]) -> Literal["yxyx", "rel_yxyx"] | None:
    """The format of boxes whose sides are stored in these lists; None if that is impossible."""
    floats = [(counted.of.get("float32"), counted.lengths.times) for counted in sides]
    numbers = [one for one, _ in floats if isinstance(one, NumberValues)]
    lengths = [{size: many for size, many in times.items() if size} for _, times in floats]
    finite = [one.low is not None and one.finite == one.count for one in numbers]
    if len(finite) < len(sides) or not all(finite) or lengths.count(lengths[0]) < len(sides):
        return None
    low, high = min(one.low or 0 for one in numbers), max(one.high or 0 for one in numbers)
    return None if low < 0 else "rel_yxyx" if high <= 1 else "yxyx"


def _are_lists(scanner: Scanner) -> bool:
    """Whether the first record is an ExampleListWithContext."""
    batch = next(scanner.first(1), None)
    return batch is not None and list_with_context(batch.data(0)) is not None


def _schema(
    name: str, features: tuple[Feature, ...], steps: tuple[Feature, ...], *, lists: bool = False
) -> Schema:
    try:
        if not steps and not lists:
            return Schema(name=name, features=features)
        record: RecordMessage = "example_list_with_context" if lists else "sequence_example"
        return Schema(name=name, record=record, context=features, sequence=steps)
    except SpecError as error:
        raise RecordError(error.problems) from error


def _evidence(tally: Profile) -> Iterator[Evidence]:
    """The evidence of each key. A feature list whose key is taken gets another name."""
    names = {key for sequence, key in tally.features if not sequence}
    for (sequence, key), tallied in sorted(tally.features.items()):
        name = key
        while sequence and name in names:
            name += "_steps"
        names.add(name)
        lists = sum(tallied.kinds.values())
        rows = lists if sequence else tally.rows
        missing = rows - (lists - tallied.kinds["none"] - tallied.empty)
        absent = tally.rows - tallied.present if sequence else 0
        inferred = _values(tallied, missing, sequence)
        if absent:
            lacking = f"no list of steps in {absent:,} of {tally.rows:,} records"
            inferred["notes"] = (lacking, *inferred.get("notes", ()))
        if not key:
            inferred = {"type_name": "the empty key, which no feature holds"}
        where: dict[str, Any] = {"name": name, "key": key, "sequence": sequence, "absent": absent}
        yield Evidence(rows=rows, missing=missing, stored=True, **where, **inferred)


def _values(counted: FeatureCounts, missing: int, sequence: bool) -> dict[str, Any]:
    """Converts counts to evidence of dtype, shape and values."""
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
    values = counted.of[kind]
    more = _numbers(values) if isinstance(values, NumberValues) else _strings(values)
    # A default replaces a key that records lack, but neither an empty list nor an image.
    has_default = not counted.empty and not sequence and (kind != "bytes" or "is_text" in more)
    if evidence["shape"] == (1,) and (not missing or has_default):
        if isinstance(values, BytesValues) and "is_text" in more:
            more = more | _free_text(values, missing)
        return evidence | {"shape": (), **more}
    return evidence | {"shape": (None,)} if missing else evidence


def _numbers(values: NumberValues) -> dict[str, Any]:
    finite = {"finite": values.finite == values.count}
    if values.frequent is None or not values.frequent.whole:
        return finite
    return finite | {"values": frozenset(values.frequent.values)}


def _strings(values: BytesValues) -> dict[str, Any]:
    forms = values.forms.counts.keys()
    if forms <= {TEXT, EMPTY}:
        return {"is_text": True}
    if len(forms) != 1:
        return {}
    (form,) = forms
    if form in IMAGES or form in SOUNDS:
        media = [medium for medium in values.forms.media if medium is not None]
        notes: tuple[str, ...] = ()
        if 0 < len(media) < values.count:
            notes = (f"{form}s, judged by the headers of {len(media):,} of {values.count:,}",)
        return {"media": form, "media_options": media_options(form, media), "notes": notes}
    if (size := values.sizes.low) == values.sizes.high:
        return {"notes": (f"{size:,} bytes each: `kind: tensor` with `encoding: raw`, if these are numbers",)}
    return {}


def _free_text(values: BytesValues, missing: int) -> dict[str, Any]:
    """Whether texts are free text, by their sizes and by the beginnings of those that are counted."""
    if values.sizes.high <= LONGEST_NAME and not any(len(text.split()) > 1 for text in values.examples):
        return {}
    notes = notes_of_free_text(values.count + missing, values.count, values.frequent.distinct.value)
    return {"free_text": bool(notes), "notes": notes}
