"""Detects the formats of strings by their first bytes: text, images, audio and other formats."""

from __future__ import annotations

import codecs
from collections import Counter

import numpy as np

from recordspec.tables.media_headers import MEDIA, MediaInfo, media_info
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    Mask,
    are_text,
    buffer_of,
    bytes_in,
    data_of,
    prefixes,
    sizes_of,
    sliding_windows,
    take,
)
from recordspec.wire.file_types import first_bytes, identify

TEXT, EMPTY, ZEROS, OTHER = "text", "empty", "zero bytes", "other bytes"

# The format of a string is detected from its first bytes; whether it is UTF-8, from all of them.
_PREFIX = 256
# The kind of a byte in text: 0 is plain ASCII, 1 may be part of another letter, 2 is a control character.
_LEVELS = np.zeros(256, np.uint8)
_LEVELS[128:] = 1
_LEVELS[:32] = _LEVELS[127] = 2
_LEVELS[[9, 10, 13]] = 0  # tab, line feed, carriage return
_MEDIA_SAMPLE = 1 << 10  # reading a header takes 50 us
_FIRST_BYTES = np.frombuffer(b"".join(first_bytes()), ">u2")


class ContentTypes:
    """Counts the formats of strings.

    Attributes:
        counts: the number of strings by format.
        media: the `MediaInfo` of at most 1,024 evenly spaced images and audio values; None if the header
            cannot be read, or if reading it needs a package that is missing.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.media: list[MediaInfo | None] = []
        self._seen, self._step = 0, 1

    def add(self, strings: ArrowArray) -> None:
        """Adds strings."""
        first, sizes = prefixes(strings, _PREFIX), sizes_of(strings)
        some = sizes > 0
        if first is strings and _is_plain(buffer_of(first)):  # most text
            count = int(np.count_nonzero(some))
            self.counts.update({TEXT: count} if count else {})
            self.counts.update({EMPTY: len(sizes) - count} if count < len(sizes) else {})
            return
        text = _are_text(first, sizes) & some
        text[_with_other_bytes(strings, np.flatnonzero(text & (sizes > _PREFIX)))] = False
        others = np.flatnonzero(some & ~text)
        known = others[_may_be_known(first, others)] if len(others) else others
        counts = {TEXT: int(text.sum()), EMPTY: int((~some).sum()), OTHER: len(others) - len(known)}
        self.counts.update({form: count for form, count in counts.items() if count})
        for index, head in zip(known.tolist(), bytes_in(take(first, known)), strict=True):
            form = _form(head)
            self.counts[form] += 1
            if form in MEDIA:
                self._look(strings, index, form)

    def merge(self, other: ContentTypes) -> None:
        """Adds the counts of the strings that follow."""
        self.counts.update(other.counts)
        media, step = other.media, other._step
        while self._step != step:
            if self._step < step:
                self.media, self._step = self.media[::2], 2 * self._step
            else:
                media, step = media[::2], 2 * step
        self.media = self.media + media
        self._seen += other._seen
        while len(self.media) > _MEDIA_SAMPLE:
            self.media, self._step = self.media[::2], 2 * self._step

    def _look(self, strings: ArrowArray, index: int, form: str) -> None:
        """Reads the header of an image or an audio value, if it belongs to the sample."""
        if self._seen % self._step == 0:
            (data,) = bytes_in(strings.slice(index, 1))
            self.media.append(media_info(data, form))
            if len(self.media) > _MEDIA_SAMPLE:
                self.media, self._step = self.media[::2], 2 * self._step
        self._seen += 1


def _is_plain(data: Bytes) -> bool:
    """Whether all bytes are plain ASCII. Without control characters, the check is ten times as fast."""
    return not len(data) or bool(data.min() >= 32 and data.max() < 127) or not _LEVELS[data].any()


def _are_text(first: ArrowArray, sizes: Ints) -> Mask:
    """A mask of the strings that begin as UTF-8 without control characters; `first` holds their prefixes."""
    data, starts = data_of(first)
    levels = _LEVELS[data]
    text = np.ones(len(first), bool)
    if not levels.any():
        return text
    some = np.flatnonzero(sizes)
    highest = np.maximum.reduceat(levels, starts[some])
    text[some] = highest < 2
    letters = some[highest == 1]
    for index, head in zip(letters.tolist(), bytes_in(take(first, letters)), strict=True):
        text[index] = _decodes(head, whole=bool(sizes[index] <= _PREFIX))
    return text


def _with_other_bytes(strings: ArrowArray, which: Ints) -> Ints:
    """The indices of strings that begin as text, and are not UTF-8 as a whole."""
    if not len(which) or are_text(take(strings, which)):
        return which[:0]
    return np.array([index for index in which.tolist() if not are_text(strings.slice(index, 1))])


def _decodes(data: bytes, *, whole: bool) -> bool:
    """Whether the bytes are UTF-8; unless `whole`, the last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _may_be_known(first: ArrowArray, which: Ints) -> Mask:
    """A mask of the strings that may have a known format, by their first two bytes."""
    data, starts = data_of(first)
    may = np.diff(starts)[which] >= 2
    begin = sliding_windows(data, 2)[starts[which[may]]].view(">u2")
    may[may] = np.isin(begin, _FIRST_BYTES)
    return may


def _form(head: bytes) -> str:
    """The name of a format, without an article."""
    if not head.strip(b"\0"):
        return ZEROS
    name = identify(head)
    if name is None or name.startswith("text"):
        return OTHER
    return name.removeprefix("a ").removeprefix("an ")
