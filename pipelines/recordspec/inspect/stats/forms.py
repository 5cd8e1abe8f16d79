"""What byte strings are: text, an image, a sound, or something else."""

from __future__ import annotations

import codecs
from collections import Counter

import numpy as np

from recordspec.inspect.stats.media import Media
from recordspec.wire.file_types import first_bytes, identify
from recordspec.wire.hashes import Words
from recordspec.wire.strings import Ints, Mask, Strings, are_text, prefixes, sliding_windows

TEXT, EMPTY, ZEROS, OTHER = "text", "empty", "zero bytes", "other bytes"

# The first bytes of a string that tell what it is; whether it is UTF-8, all of them do.
_HEAD = 256
# Of a byte, in text: 0 is plain ASCII, 1 may be part of another letter, 2 is a control character.
_LEVELS = np.zeros(256, np.uint8)
_LEVELS[128:] = 1
_LEVELS[:32] = _LEVELS[127] = 2
_LEVELS[[9, 10, 13]] = 0  # tab, line feed, carriage return
_FIRST_BYTES = np.frombuffer(b"".join(first_bytes()), ">u2")


class Forms:
    """Counts what strings are.

    Attributes:
        counts: by form, how many.
        media: a sample of the images and sounds.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.media = Media()

    def add(self, strings: Strings, places: Words) -> None:
        """Strings, and the hashes of where they stand."""
        first = prefixes(strings, _HEAD)
        some = first.sizes > 0
        text = _are_text(first, strings.sizes) & some
        text[_with_other_bytes(strings, np.flatnonzero(text & (strings.sizes > _HEAD)))] = False
        others = np.flatnonzero(some & ~text)
        known = others[_may_be_known(first, others)] if len(others) else others
        counts = {TEXT: int(text.sum()), EMPTY: int((~some).sum()), OTHER: len(others) - len(known)}
        self.counts.update({form: count for form, count in counts.items() if count})
        for index in known.tolist():
            form = _form(first[index])
            self.counts[form] += 1
            self.media.add(int(places[index]), form, strings, index)

    def merge(self, other: Forms) -> None:
        self.counts.update(other.counts)
        self.media.merge(other.media)


def _are_text(first: Strings, sizes: Ints) -> Mask:
    """Which are UTF-8 without control characters, as far as their first bytes tell."""
    levels = _LEVELS[first.buffer]
    text = np.ones(len(first), bool)
    if not levels.any():
        return text
    some = np.flatnonzero(first.sizes > 0)
    highest = np.maximum.reduceat(levels, first.offsets[:-1][some])
    text[some] = highest < 2
    for index in some[highest == 1].tolist():
        text[index] = _decodes(first[index], whole=bool(sizes[index] <= _HEAD))
    return text


def _with_other_bytes(strings: Strings, which: Ints) -> Ints:
    """Which of some, that begin as text, are no UTF-8 behind that."""
    if not len(which) or are_text(strings.take(which)):
        return which[:0]
    return np.array([index for index in which.tolist() if not are_text(strings.part(index, index + 1))])


def _decodes(data: bytes, *, whole: bool) -> bool:
    """Whether it is UTF-8, of which the last letter may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _may_be_known(first: Strings, which: Ints) -> Mask:
    """Which of some may be identify."""
    may = first.sizes[which] >= 2
    begin = sliding_windows(first.buffer, 2)[first.offsets[:-1][which[may]]].view(">u2")
    may[may] = np.isin(begin, _FIRST_BYTES)
    return may


def _form(head: bytes) -> str:
    """What is identify, without an article."""
    if not head.strip(b"\0"):
        return ZEROS
    name = identify(head)
    if name is None or name.startswith("text"):
        return OTHER
    return name.removeprefix("a ").removeprefix("an ")
