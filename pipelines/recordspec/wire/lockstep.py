"""The fields of many protobuf messages at once, with whole arrays.

Records that were written alike have their keys in the same order, so a key is looked for in all of them at
once: about 0.05 us a key, where protobuf's parser and the lists it gives take 1 us. Only what every writer
makes is read so: one `features`, packed numbers, no key twice. What is anything else is marked as odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recordspec.wire.columns import LIST_KINDS, Cells, KeySteps, KeyValues, Kind, without_values
from recordspec.wire.strings import Bytes, Ints, Mask, Strings, offsets, one_size, sliding_windows

_KEY = _PACKED = _FIRST = 0x0A  # field 1, of a length that follows
_VALUE = _SECOND = 0x12  # field 2
# Bytes after those of the records, so that reading a few from any place needs no look at the end.
MARGIN = 16
# Bytes of the varint of a length: up to 2 GiB, which no message exceeds.
_LENGTH_BYTES = 5
_INT_BYTES = 10
# If few are left after this many turns, they differ from the others: protobuf parses them faster.
_TURNS, _FEW = 256, 64
# Other keys that records may have at the same place.
_KEYS_AT_ONCE = 16


@dataclass(frozen=True)
class Spans:
    """Parts of the buffer: bytes `starts` to `stops`, of the record `rows`, as the thing `items`."""

    rows: Ints
    items: Ints
    starts: Ints
    stops: Ints

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sizes(self) -> Ints:
        return self.stops - self.starts

    @property
    def left(self) -> Mask:
        """The items that are not empty."""
        return self.starts < self.stops

    def at(self, places: Ints | Mask) -> Spans:
        """A selection of spans."""
        return Spans(self.rows[places], self.items[places], self.starts[places], self.stops[places])

    def where(self, mask: Mask) -> Spans:
        return self if mask.all() else self.at(mask)

    @classmethod
    def joined(cls, many: list[Spans]) -> Spans:
        """Concatenates these, by item, and within an item in the order of the list."""
        if len(many) == 1:
            return many[0]
        names = ("rows", "items", "starts", "stops")
        whole = cls(*(np.concatenate([getattr(one, name) for one in many]) for name in names))
        return whole.at(np.argsort(whole.items, kind="stable"))


_NONE = Spans(*[np.zeros(0, np.int64)] * 4)


class LockstepReader:
    """Reads all records of a batch at once.

    `odd` marks those that it cannot read. The rest of a marked record is treated as empty, so that
    arrays keep their length; its fields are omitted at the end.
    """

    def __init__(self, data: Bytes, rows: int) -> None:
        self._data = data
        self.odd = np.zeros(rows, bool)

    def sections(self, records: Spans, most: int) -> tuple[Spans, Spans]:
        """The contents of fields 1 and 2 of messages that have only these, each once, in this order."""
        found, rest = [_NONE, _NONE], records
        for place, tag in enumerate((_FIRST, _SECOND)[:most]):
            has = rest.left & (self._data[rest.starts] == tag)
            value, after = self._field(rest.at(has))
            found[place] = value
            stops = rest.starts.copy()
            stops[has] = after.starts
            rest = Spans(rest.rows, rest.items, stops, rest.stops)
        self._mark(rest, rest.left)
        return found[0], found[1]

    def by_key(self, maps: Spans) -> dict[str, Spans]:
        """The values of maps, by key."""
        found: dict[bytes, list[Spans]] = {}
        for entries in self._repeated(maps):
            key, rest = self._field(entries, _KEY)
            value, rest = self._field(rest, _VALUE)
            self._mark(rest, rest.left)
            for name, spans in self._same(key, value):
                found.setdefault(name, []).append(spans)
        return {key.decode(): self._once(Spans.joined(many)) for key, many in found.items()}

    def held(self, features: Spans) -> tuple[KeyValues, ...]:
        """The lists of Features, by kind."""
        some = features.left
        found = [] if some.all() else [without_values("none", features.items[~some])]
        lists = features.where(some)
        tags = self._data[lists.starts]
        values, rest = self._field(lists)
        self._mark(rest, rest.left)
        known = np.zeros(len(lists), bool)
        for number, kind in enumerate(LIST_KINDS, 1):
            chosen = tags == number << 3 | 2
            known |= chosen
            if chosen.any():
                found.append(self._cells(kind, values.where(chosen)))
        self._mark(lists, ~known)
        return tuple(found)

    def steps(self, lists: Spans) -> KeySteps:
        """The Features of feature lists."""
        features = Spans.joined([_NONE, *self._repeated(lists)])
        counts = np.bincount(features.items, minlength=len(self.odd))[lists.items]
        steps = replace(features, items=np.arange(len(features)))
        return KeySteps(rows=lists.items, counts=counts, values=self.held(steps))

    def _cells(self, kind: Kind, lists: Spans) -> KeyValues:
        """The values of lists."""
        if kind == "bytes":
            values = Spans.joined([_NONE, *self._repeated(lists)])
            # items may be steps, of which there are more than rows
            places = np.searchsorted(lists.items, values.items)
            flat: Any = self._gathered(values)
            lengths = np.bincount(places, minlength=len(lists))
        else:
            numbers, rest = self._field(lists.where(lists.left), _PACKED)
            self._mark(rest, rest.left)
            flat, some = (self._floats if kind == "float32" else self._ints)(numbers)
            lengths = np.zeros(len(lists), np.int64)
            lengths[lists.left] = some
        return KeyValues(kind, lists.items, Cells(flat=flat, lengths=lengths, rows=len(lists)))

    def _floats(self, packed: Spans) -> tuple[Any, Ints]:
        """The numbers, and how many are in each."""
        bad = packed.sizes % 4 != 0
        self._mark(packed, bad)
        held = self._gathered(_emptied(packed, bad))
        return held.buffer.view("<f4").astype(np.float32, copy=False), held.sizes // 4

    def _ints(self, packed: Spans) -> tuple[Any, Ints]:
        held = self._gathered(packed)
        last = held.buffer < 0x80
        whole = last[held.offsets[1:] - 1] | (held.sizes == 0) if len(last) else held.sizes == 0
        stops = np.flatnonzero(last) + 1
        widths = np.diff(stops, prepend=0)
        long = np.flatnonzero(widths > _INT_BYTES)
        whole[np.searchsorted(held.offsets, stops[long] - 1, side="right") - 1] = False
        if not whole.all():
            self._mark(packed, ~whole)
            return self._ints(_emptied(packed, ~whole))
        counted = offsets(last.view(np.uint8))
        return _unpacked(held.buffer, stops, widths), np.diff(counted[held.offsets])

    def _gathered(self, spans: Spans) -> Strings:
        """The bytes of spans, one after the other."""
        sizes = one_size(spans.sizes)
        if isinstance(sizes, int) and sizes:
            taken = sliding_windows(self._data, sizes)[spans.starts]
            return Strings.rows(taken.view(np.uint8).reshape(-1, sizes))
        view = self._data.data
        parts = [
            view[start:stop] for start, stop in zip(spans.starts.tolist(), spans.stops.tolist(), strict=True)
        ]
        return Strings(b"".join(parts), offsets(spans.sizes))

    def _repeated(self, messages: Spans) -> Iterator[Spans]:
        """The values of a repeated field 1: the first of all, then the second of those that have one, ..."""
        left, turns = messages.where(messages.left), 0
        while len(left):
            if turns >= _TURNS and len(left) < _FEW:
                self._mark(left, np.ones(len(left), bool))
                return
            value, rest = self._field(left, _FIRST)
            yield value
            left, turns = rest.where(rest.left), turns + 1

    def _field(self, spans: Spans, tag: int | None = None) -> tuple[Spans, Spans]:
        """The value of the field with which each begins, which states its length, and what is after it."""
        size, starts = self._varint(spans.starts + 1)
        stops = starts + size
        bad = (stops > spans.stops) | ~spans.left
        if tag is not None:
            bad |= self._data[spans.starts] != tag
        if bad.any():
            self._mark(spans, bad)
            starts, stops = np.where(bad, spans.stops, starts), np.where(bad, spans.stops, stops)
        return replace(spans, starts=starts, stops=stops), replace(spans, starts=stops)

    def _varint(self, places: Ints) -> tuple[Ints, Ints]:
        """Lengths, and where they end. One that is no length is larger than any buffer."""
        value = self._data[places].astype(np.int64)
        if (value < 0x80).all():
            return value, places + 1
        more, width = value >= 0x80, np.ones(len(places), np.int64)
        value &= 0x7F
        for place in range(1, _LENGTH_BYTES):
            at = np.flatnonzero(more)
            byte = self._data[places[at] + place].astype(np.int64)
            value[at] |= (byte & 0x7F) << 7 * place
            width[at] += 1
            more[at] = byte >= 0x80
        value[more] = 1 << 40
        return value, places + width

    def _same(self, keys: Spans, values: Spans) -> Iterator[tuple[bytes, Spans]]:
        """Values by key."""
        pending = np.flatnonzero(~self.odd[keys.rows])
        for _ in range(_KEYS_AT_ONCE):
            if len(pending) == 0:
                return
            name = self._data[keys.starts[pending[0]] : keys.stops[pending[0]]].tobytes()
            same = self._equal(keys, pending, name)
            if _is_text(name):
                yield name, values if len(same) == same.sum() == len(values) else values.at(pending[same])
            else:
                self._mark(keys.at(pending), same)
            pending = pending[~same]
        self._mark(keys.at(pending), np.ones(len(pending), bool))

    def _equal(self, keys: Spans, places: Ints, name: bytes) -> Mask:
        same: Mask = keys.sizes[places] == len(name)
        if name:
            at = np.flatnonzero(same)
            found = sliding_windows(self._data, len(name))[keys.starts[places[at]]]
            wanted = np.frombuffer(name, np.uint8)
            same[at] = (found.view(np.uint8).reshape(-1, len(name)) == wanted).all(axis=1)
        return same

    def _once(self, spans: Spans) -> Spans:
        """Spans of which each row has one."""
        twice = np.zeros(len(spans), bool)
        twice[1:] = spans.items[1:] == spans.items[:-1]
        if twice.any():
            self._mark(spans, twice)
            return spans.at(~twice)
        return spans

    def _mark(self, spans: Spans, odd: Mask) -> None:
        self.odd[spans.rows[odd]] = True


def _emptied(spans: Spans, which: Mask) -> Spans:
    return replace(spans, stops=np.where(which, spans.starts, spans.stops))


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _unpacked(data: Bytes, stops: Ints, widths: Ints) -> Ints:
    """The numbers of varints that end at `stops`, with these sizes in bytes."""
    if len(stops) == len(data):
        return np.asarray(data, np.int64)
    starts = stops - widths
    values = (data[starts] & 0x7F).astype(np.uint64)
    for place in range(1, int(widths.max(initial=0))):
        at = np.flatnonzero(widths > place)
        values[at] |= (data[starts[at] + place] & 0x7F).astype(np.uint64) << np.uint64(7 * place)
    numbers: Ints = values.view(np.int64)
    return numbers
