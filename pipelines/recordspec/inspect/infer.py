"""A schema for TFRecords, inferred from their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from recordspec.errors import Problem, RecordError, SpecError, counted, see
from recordspec.inspect.media import MEDIA, MediaInfo, media_info
from recordspec.inspect.scan import Scanner
from recordspec.inspect.stats.content import EMPTY, TEXT
from recordspec.inspect.stats.profile import FeatureCounts, Profile, profile_all
from recordspec.inspect.stats.values import BytesValues, NumberValues
from recordspec.locations import Location, read_bytes
from recordspec.progress import Progress
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.box import Box
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.fixed_len_sequence import FixedLenSequence
from recordspec.schema.features.label import Label
from recordspec.schema.infer import (
    LONGEST_NAME,
    Evidence,
    Inferred,
    free_text,
    infer_features,
    no_inputs,
    notes_of_free_text,
)
from recordspec.schema.media import images, sounds
from recordspec.schema.schema import Schema
from recordspec.store.expand import Files
from recordspec.wire.columns import TF_DTYPES, RecordMessage
from recordspec.wire.file_types import describe_type, type_name
from recordspec.wire.proto import list_with_context

# The largest number of files whose headers are read.
MOST_MEDIA = 1024
_LARGEST_MEDIUM = 1 << 30
_IMAGES = {f"{name} image": name.lower() for name in ("PNG", "JPEG", "WebP", "BMP", "GIF")}
# The keys of the TensorFlow Object Detection API, in the order of `yxyx`.
_SIDES = ("ymin", "xmin", "ymax", "xmax")
_GREY_MODES = frozenset({"1", "L", "LA", "I", "I;16", "I;16B"})
_SOUNDS = {"WAV file": "wav", "FLAC file": "flac", "Ogg file": "ogg", "MP3 file": "mp3"}


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


def infer_media(
    files: Sequence[Location], classes: Sequence[str], name: str, feature: str, sample: int | None = None
) -> Inferred:
    """A schema for files of images or of sounds, by the headers of at most 1,024 of them.

    Args:
        classes: the names of the classes; empty where there are none.
        feature: `image` or `audio`, the kind and the name of the feature.
        sample: how many files to read instead.

    Raises:
        RecordError: no feature stores them all; soundfile is missing for sounds.
    """
    most = min(len(files), sample or MOST_MEDIA)
    some = [files[index * len(files) // most] for index in range(most)]
    contents = ((str(path), read_bytes(path, _LARGEST_MEDIUM)) for path in some)
    medium, notes = infer_medium(feature, feature, contents)
    notes += [f"{feature}: judged by the headers of {most:,} of {len(files):,} files"] * (most < len(files))
    made = [medium]
    if classes:
        made.append(Label(name="label", names=tuple(classes)))
    return Inferred(schema=_schema(name, tuple(made), ()), notes=tuple(notes), rows=len(files))


def infer_medium(kind: str, name: str, contents: Iterable[tuple[str, bytes]]) -> tuple[Feature, list[str]]:
    """The feature that stores these images or sounds, and notes.

    Args:
        kind: `image` or `audio`.
        name: of the feature.
        contents: files, each with what messages call it.

    Raises:
        RecordError: no feature stores them all; soundfile is missing for sounds.
    """
    media, notes, others = list[tuple[str, MediaInfo]](), list[str](), list[Problem]()
    for where, data in contents:
        form = type_name(data) or ""
        info = media_info(data, form)
        if info is None and kind == "audio":
            sounds.soundfile("the sample rates of sounds")  # a plain WAV file does not need it
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
    """The options of a feature that stores all images: unchanged, or else as JPEG if half of them are."""
    infos = [_upright(info) for _, info in media]
    forms, modes = {info.form for info in infos}, {info.mode for info in infos}
    photos = sum(info.form == "JPEG image" for info in infos)
    turned: dict[str, Any] = {"orientation": "upright"} if photos else {}
    misnamed = [
        where
        for where, info in media
        if images.encoding_named(where) not in (None, _IMAGES.get(info.form, info.form))
    ]
    if misnamed:
        notes.append(f"files named as of another format, which `convert` takes: {_some(misnamed)}")
    unchanged = _media_options(min(forms), infos) if len(forms) == 1 and forms <= _IMAGES.keys() else None
    if unchanged is not None:
        del unchanged["kind"]
        return unchanged | turned | ({"convert": True} if misnamed else {})
    encoding = "jpeg" if 2 * photos >= len(infos) else "png"
    form = images.lossless({"RGBA" if info.is_transparent else info.mode for info in infos})
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
    """An image with its measures as it is shown."""
    if info.orientation < 5:
        return info
    return replace(info, measures={"width": info.measures["height"], "height": info.measures["width"]})


def _listed(forms: Iterable[str]) -> str:
    """Formats of media: `JPEG and PNG images`."""
    *others, last = sorted(forms)
    first = ", ".join(form.rpartition(" ")[0] for form in others)
    return f"{first} and {last}s" if others else f"{last}s"


def _some(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _audio_options(media: list[tuple[str, MediaInfo]], notes: list[str]) -> dict[str, Any]:
    """The options of a feature that stores all sounds: unchanged, or else converted to what most of them
    are."""
    infos = [info for _, info in media]
    forms = {info.form for info in infos}
    misnamed = [
        where
        for where, info in media
        if sounds.format_named(where) not in (None, _SOUNDS.get(info.form, "").upper())
    ]
    if misnamed:
        notes.append(f"files named as of another format, which `convert` takes: {_some(misnamed)}")
    convert = {"convert": True} if misnamed else {}
    unchanged = _media_options(min(forms), infos) if len(forms) == 1 else None
    if unchanged is not None:
        del unchanged["kind"]
        return unchanged | convert
    modes = Counter((info.rate, info.channels) for info in infos)
    (rate, channels), _ = min(modes.items(), key=lambda item: (-item[1], item[0]))
    encoding = _SOUNDS[min(forms)] if len(forms) == 1 else "wav"
    if len(modes) > 1:
        convert = {"convert": True}
        shown = ", ".join(sorted({info.mode for info in infos}))
        several = counted(channels, "channel")
        notes.append(f"sounds of {shown}, converted to {rate:,} Hz, {several}, those of most of them")
    if len(forms) > 1 or not convert:
        notes.append(f"{_listed(forms)}, stored as {encoding.upper()}")
    return {"sample_rate": rate, "channels": channels, "encoding": encoding, **convert}


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
    if form in _IMAGES or form in _SOUNDS:
        media = [medium for medium in values.forms.media if medium is not None]
        notes: tuple[str, ...] = ()
        if 0 < len(media) < values.count:
            notes = (f"{form}s, judged by the headers of {len(media):,} of {values.count:,}",)
        return {"media": form, "media_options": _media_options(form, media), "notes": notes}
    if (size := values.sizes.low) == values.sizes.high:
        return {"notes": (f"{size:,} bytes each: `kind: tensor` with `encoding: raw`, if these are numbers",)}
    return {}


def _free_text(values: BytesValues, missing: int) -> dict[str, Any]:
    """Whether texts are free text, by their sizes and by the beginnings of those that are counted."""
    if values.sizes.high <= LONGEST_NAME and not any(len(text.split()) > 1 for text in values.examples):
        return {}
    notes = notes_of_free_text(values.count + missing, values.count, values.frequent.distinct.value)
    return {"free_text": bool(notes), "notes": notes}


def _media_options(form: str, media: list[MediaInfo]) -> dict[str, Any] | None:
    """The kind and the options that decode all media that are not damaged; None if there are none."""
    takers = [medium.takers for medium in media if medium.takers is not None]
    common = frozenset.intersection(*takers) if takers else frozenset()
    if not common:
        return None
    channels, dtype = min(common)
    if form in _IMAGES:
        sizes = [_common(medium.measures[side] for medium in media) for side in ("height", "width")]
        return {"kind": "image", "shape": (*sizes, channels), "encoding": _IMAGES[form], "dtype": dtype}
    rates = {medium.rate for medium in media}
    if len(rates) > 1:
        return None
    return {"kind": "audio", "sample_rate": min(rates), "channels": channels, "encoding": _SOUNDS[form]}


def _common(measures: Iterable[float]) -> int | None:
    """The measure that all media have; None if they differ."""
    different = set(measures)
    return int(different.pop()) if len(different) == 1 else None
