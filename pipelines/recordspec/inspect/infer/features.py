"""What was counted of a key, as the feature that reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from recordspec.errors import SpecError
from recordspec.inspect.stats.forms import EMPTY, TEXT
from recordspec.inspect.stats.media import Medium
from recordspec.inspect.stats.tally import FeatureTally
from recordspec.inspect.stats.values import ByteStrings, Numbers
from recordspec.spec.features import Feature
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.fixed_len_sequence import FixedLenSequence
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import Label
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen
from recordspec.wire.columns import TF_DTYPES

# Whole numbers from 0 to less than this may be classes, if their name says so.
_MOST_CLASSES = 1000
_CLASS_NAMES = re.compile(
    r"(^|[/_.-])(labels?|class(es|_id)?|targets?|categor(y|ies)|y)($|[/_.-])", re.IGNORECASE
)
_IMAGES = {f"{name} image": name.lower() for name in ("PNG", "JPEG", "WebP", "BMP", "GIF")}
_SOUNDS = {"WAV file": "wav", "FLAC file": "flac", "Ogg file": "ogg", "MP3 file": "mp3"}


@dataclass
class Found:
    """A key, what was counted of it, and what is to be said of it.

    Attributes:
        name: of the feature.
        sequence: whether it is that of a feature list.
        rows: of all records (of a feature list: of all steps) that could have a list.
        without_steps: records that lack the feature list.
        notes: what nobody should have to find out alone.
    """

    name: str
    key: str
    sequence: bool
    counted: FeatureTally
    rows: int
    without_steps: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def filled(self) -> int:
        """How many lists have values."""
        return sum(self.counted.kinds.values()) - self.counted.kinds["none"] - self.counted.empty

    @property
    def missing(self) -> int:
        return self.rows - self.filled

    def said(self) -> dict[str, Any]:
        """What every feature has: names, and how often it is missing."""
        lacking = f"missing in {self.missing:,} of {self.rows:,}" if self.missing else ""
        return {
            "name": self.name,
            "key": None if self.key == self.name else self.key,
            "description": lacking,
        }

    def note(self, text: str) -> None:
        self.notes.append(f"{self.name}: {text}")


def feature_of(found: Found) -> Feature | None:
    """The feature, or None of what no feature reads; the notes say why."""
    counted = found.counted
    if not found.key:
        found.notes.append('"": the empty key, which no feature reads, so it is left out')
        return None
    kinds = [kind for kind, count in counted.kinds.items() if count and kind != "none"]
    if not kinds:
        found.note(
            f"always empty, in {found.rows:,} of {found.rows:,}: its type is unknown, so it is left out"
        )
        return None
    if len(kinds) > 1:
        told = " and ".join(f"{counted.kinds[kind]:,} of {kind}" for kind in sorted(kinds))
        found.note(f"lists of several kinds ({told}), which no feature reads, so it is left out")
        return None
    if found.missing:
        found.note(f"missing in {found.missing:,} of {found.rows:,}")
    if found.without_steps:
        records = counted.present + found.without_steps
        found.note(f"no list of steps in {found.without_steps:,} of {records:,} records")
    dtype = TF_DTYPES[kinds[0]]
    if found.missing or counted.lengths.low != counted.lengths.high:
        return VariableLen(dtype=dtype, **found.said())
    if counted.lengths.high != 1:
        return _fixed(found, dtype, (counted.lengths.high,))
    values = counted.of[kinds[0]]
    by_values = _of_strings(found, values) if isinstance(values, ByteStrings) else _of_numbers(found, values)
    return by_values or _fixed(found, dtype, ())


def _fixed(found: Found, dtype: str, shape: tuple[int, ...]) -> Feature:
    """As many values in every list."""
    if not found.sequence:
        return FixedLen(dtype=dtype, shape=shape, **found.said())
    # with a pad of its own, tf.io lets records lack the list
    pad = None if not found.without_steps else "" if dtype == "string" else 0
    return FixedLenSequence(dtype=dtype, shape=shape, pad=pad, **found.said())


def _of_numbers(found: Found, values: Numbers) -> Feature | None:
    """A label, of whole numbers from 0 on whose name is one of a class."""
    if values.frequent is None or not values.frequent.exact:
        return None
    numbers = [number for number, _ in values.top]
    low, high = min(numbers), max(numbers)
    if low != 0 or not 1 <= high < _MOST_CLASSES or len(numbers) <= (high + 1) / 2:
        return None
    if not _CLASS_NAMES.search(found.name):
        if len(numbers) <= high + 1 <= 20:
            found.note(f"whole numbers from 0 to {high}: if these are classes, `kind: label` has their names")
        return None
    found.note(f"classes 0 to {high}: put their names in the place of these numbers")
    return Label(names=tuple(map(str, range(high + 1))), **found.said())


def _of_strings(found: Found, values: ByteStrings) -> Feature | None:
    """What the bytes are, where all are alike."""
    forms = values.forms.counts.keys()
    if forms <= {TEXT, EMPTY}:
        return Text(**found.said())
    if len(forms) != 1:
        return None
    (form,) = forms
    looked_at = [medium for medium in values.forms.media.looked_at if medium is not None]
    if form in _IMAGES or form in _SOUNDS:
        if looked_at and len(looked_at) < values.count:
            found.note(f"{form}s, by the headers of {len(looked_at):,} of {values.count:,}")
        made: Callable[[Found, str, list[Medium]], Feature] = _image if form in _IMAGES else _sound
        try:
            return made(found, form, looked_at)
        except (SpecError, ValueError, TypeError, KeyError):
            found.note(f"{form}s of several sorts, or of one that TensorFlow does not decode: kept as bytes")
    elif (size := values.sizes.low) == values.sizes.high:
        found.note(f"{size:,} bytes each: `kind: tensor` with `encoding: raw`, if these are numbers")
    return None


def _image(found: Found, form: str, looked_at: list[Medium]) -> Feature:
    channels, dtype = _taker(looked_at)
    sizes = [_only(medium.measures[side] for medium in looked_at) for side in ("height", "width")]
    shape = (*sizes, channels)
    return Image(shape=shape, encoding=_IMAGES[form], dtype=dtype, **found.said())  # type: ignore[arg-type]


def _sound(found: Found, form: str, looked_at: list[Medium]) -> Feature:
    channels, _ = _taker(looked_at)
    (rate,) = {medium.rate for medium in looked_at}
    return Audio(sample_rate=rate, channels=channels, encoding=_SOUNDS[form], **found.said())  # type: ignore[arg-type]


def _taker(looked_at: list[Medium]) -> tuple[int, str]:
    """The fewest channels, and the dtype, that take all that are not damaged. Raises ValueError for none."""
    return min(frozenset.intersection(*(one.takers for one in looked_at if one.takers is not None)))


def _only(measures: Iterable[float]) -> int | None:
    """What all are, or None where they differ."""
    different = set(measures)
    return int(different.pop()) if len(different) == 1 else None
