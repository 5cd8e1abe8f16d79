"""What an image or a sound is, as far as its header tells."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recordspec.spec.media import images, sounds
from recordspec.spec.media.images import pillow
from recordspec.spec.media.sounds import soundfile
from recordspec.wire.strings import Strings

# What nobody listens to, Python writes to stderr: of odd images, which are no errors here.
logging.getLogger("PIL").addHandler(logging.NullHandler())

_MOST_SAMPLES = 1 << 40  # libsndfile says 2^63 - 1 of a file that does not tell


@dataclass(frozen=True, kw_only=True)
class Medium:
    """One image or sound.

    Attributes:
        form: what its bytes begin like.
        mode: Pillow's word for the channels of an image; of a sound, its rate and channels.
        measures: `width` and `height`, or `seconds`.
        rate, channels: of a sound, samples a second; 0 of an image.
        takers: the channels and dtypes of features that store it as it is; None where that is not known: it
            is damaged.
    """

    form: str
    mode: str
    measures: Mapping[str, float]
    rate: int = 0
    channels: int = 0
    takers: frozenset[tuple[int, str]] | None = None


class Media:
    """Images and sounds, drawn by the hashes of their places as `Sample` draws: a header takes 50 us.

    `SIZE` of them are held; in the place of one whose header cannot be read, or not without a package that
    is missing, is None.
    """

    SIZE = 1 << 10

    def __init__(self) -> None:
        self._held: dict[int, Medium | None] = {}
        self._limit = 1 << 64

    def add(self, place: int, form: str, strings: Strings, index: int) -> None:
        """One of some strings, if it can be an image or a sound; and the hash of where it stands."""
        if form not in _READERS or place >= self._limit:
            return
        self._held[place] = medium(strings[index], form)
        if len(self._held) >= 2 * self.SIZE:
            self._settle()

    def merge(self, other: Media) -> None:
        self._limit = min(self._limit, other._limit)
        both = self._held | other._held
        self._held = {place: one for place, one in both.items() if place < self._limit}
        self._settle()

    @property
    def looked_at(self) -> tuple[Medium | None, ...]:
        """Those that were drawn."""
        self._settle()
        return tuple(self._held[place] for place in sorted(self._held))

    def _settle(self) -> None:
        places = sorted(self._held)
        if len(places) > self.SIZE:
            self._limit = places[self.SIZE]
            self._held = {place: self._held[place] for place in places[: self.SIZE]}


def medium(data: bytes, form: str) -> Medium | None:
    """What the header of bytes of a form, such as `PNG image` or `WAV file`, tells; None of no such form, or
    where it cannot be read, or not without a package that is missing.
    """
    read = _READERS.get(form)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of images of very many pixels, none of which is decoded
            return None if read is None else read(data, form)
    except Exception:  # Pillow raises many types for bad data; or it is not installed
        return None


def _image(data: bytes, form: str) -> Medium:
    with pillow("the sizes of images").open(io.BytesIO(data)) as image:
        measures = {"width": image.width, "height": image.height}
        return Medium(form=form, mode=image.mode, measures=measures, takers=images.takers(data, image))


def _sound(data: bytes, form: str) -> Medium | None:
    found: Any = soundfile("the lengths of sounds").info(io.BytesIO(data))
    if found.samplerate <= 0 or not 0 <= found.frames < _MOST_SAMPLES:
        return None
    mode = f"{found.samplerate:,} Hz, {found.channels} channel{'s' * (found.channels != 1)}"
    return Medium(
        form=form,
        mode=mode,
        measures={"seconds": found.frames / found.samplerate},
        rate=found.samplerate,
        channels=found.channels,
        takers=sounds.takers(data, found),
    )


_READERS: dict[str, Callable[[bytes, str], Medium | None]] = {
    **{f"{name} image": _image for name in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WebP")},
    **{f"{name} file": _sound for name in ("WAV", "FLAC", "Ogg", "MP3")},
}
