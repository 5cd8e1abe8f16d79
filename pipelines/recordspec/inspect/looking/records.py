"""Single records of files, as a person or a script can read them: the first, one by number, or any few."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from recordspec.errors import RecordError
from recordspec.inspect.looking.choice import Choice
from recordspec.inspect.looking.naming import Key, named
from recordspec.inspect.looking.source import Part, Source
from recordspec.inspect.looking.summary import Style, shown_list, shown_steps, shown_value
from recordspec.store.shards import Files
from recordspec.wire import proto
from recordspec.wire.dump import MOST_FIELDS, Message, WireField, dump
from recordspec.wire.proto import Entries, Listed, ListWithContext

# So many fields of a message are told of where nothing is to be cut.
_ALL_FIELDS = 1 << 20

Shown = dict[str, Any]


class Look:
    """Records of files, each as a dict.

    `file` says where it stands, and `record` its number there (`row` where it is one of a block's);
    `features` has the values by name, and of a SequenceExample `sequence` the lists of steps. One value
    stands alone, bytes that are no text are described in `<>`, and what is long is cut, as `style` says.
    `repeated` has the keys that are there twice, of which the last counts. What is no Example has `fields` or
    `bytes` instead: see `wire.dump`. An ExampleListWithContext says so as `message`, and has the features of
    its `context` and of its `examples`. `tensorflow` has what TensorFlow refuses of a record, or reads
    otherwise.

    Raises SpecError for names that nobody knows, RecordError at a record that is not whole, StoreError
    without files.
    """

    def __init__(self, files: Files, choice: Choice | None = None, style: Style = "short") -> None:
        self._choice = choice or Choice()
        self._source = Source(files, self._choice.spec)
        self._style: Style = style
        if self._choice.columns or self._choice.where is not None:
            self._choice.check(self._source)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said beside the records."""
        first = self._source.paths[0]
        if not self._source.are_blocks(first) or self._source.schema_of(first) is not None:
            return ()
        return ("each record is a block of rows; a schema beside the shards, or --spec, takes them apart",)

    def head(self, count: int) -> Iterator[Shown]:
        """The first that are wanted."""
        found = (
            self._shown(part, row) for part in self._choice.parts(self._source) for row in range(len(part))
        )
        return islice(found, count)

    def show(self, number: int) -> Shown:
        """One by its number, counted from 0 through all the files. Raises SpecError for one too large."""
        (part,) = self._source.pick([number])
        return self._shown(part, 0)

    def sample(self, count: int, seed: int) -> Iterator[Shown]:
        """Any `count` of those that are wanted, in their order: each as likely as any other.

        Which ones is a function of the seed, and of how many there are.
        """
        rng = random.Random(seed)
        if self._choice.where is None:
            total = sum(map(self._source.count, self._source.paths))
            numbers = rng.sample(range(total), min(count, total))
        else:
            numbers = _reservoir(self._wanted(), count, rng)
        for part in self._source.pick(sorted(numbers)):
            yield self._shown(part, 0)

    def _wanted(self) -> Iterator[int]:
        """The numbers of all that are wanted, counted through all the files."""
        starts, first = {}, 0
        for path in self._source.paths:
            starts[path] = first
            first += self._source.count(path)
        for part in self._choice.parts(self._source):
            yield from (part.numbers + starts[part.path]).tolist()

    def _shown(self, part: Part, row: int) -> Shown:
        number = "row" if part.offsets is None else "record"
        return {"file": str(part.path), number: int(part.numbers[row])} | self._content(part.data(row))

    def _content(self, data: bytes) -> Shown:
        try:
            entries = proto.entries(data, "", sequence=None)
        except RecordError:
            both = proto.list_with_context(data)
            return self._foreign(data) if both is None else self._list_with_context(both)
        found = self._foreign(data) if entries.unknown_fields else self._example(entries)
        if entries.conflicts:
            found["tensorflow"] = [str(conflict.problem) for conflict in entries.conflicts]
        return found

    def _list_with_context(self, found: ListWithContext) -> Shown:
        context = {} if found.context is None else {"context": self._content(found.context)["features"]}
        message = {"message": "ExampleListWithContext"}
        return {
            **message,
            **context,
            "examples": [self._content(example)["features"] for example in found.examples],
        }

    def _example(self, entries: Entries) -> Shown:
        context, lists = entries.features, entries.lists
        values = {(False, key): self._labelled((False, key), listed) for key, listed in context}
        steps = {(True, key): [self._labelled((True, key), one) for one in many] for key, many in lists}
        found: Shown = {
            "features": {name: shown_list(values[key], self._style) for name, key in self._names(values)}
        }
        if steps:
            told = {name: shown_steps(steps[key], self._style) for name, key in self._names(steps)}
            found["sequence"] = told
        if len(context) + len(lists) > len(values) + len(steps):
            found["repeated"] = sorted({*_repeated(context), *_repeated(lists)})
        return found

    def _names(self, keys: Iterable[Key]) -> list[tuple[str, Key]]:
        """The names that are wanted, and their keys, in the order wanted."""
        naming = self._choice.naming
        if not self._choice.columns:
            return sorted((naming.name(key), key) for key in keys)
        by_word = {word: key for key in keys for word in naming.words(key)}
        return [
            (naming.name(by_word[word]), by_word[word]) for word in self._choice.columns if word in by_word
        ]

    def _labelled(self, key: Key, listed: Listed) -> Listed:
        classes = self._choice.naming.classes.get(key)
        if classes is None or listed.kind != "int64" or self._style == "raw":
            return listed
        return Listed(listed.kind, named(listed.values, classes))

    def _foreign(self, data: bytes) -> Shown:
        """What is no Example."""
        message = dump(data, MOST_FIELDS if self._style == "short" else _ALL_FIELDS)
        if message is None:
            return {"bytes": shown_value(data, self._style)}
        return {"fields": _fields(message, self._style)}


def _repeated(entries: Iterable[tuple[str, Any]]) -> list[str]:
    counts = Counter(key for key, _ in entries)
    return [key for key, count in counts.items() if count > 1]


def _fields(message: Message, style: Style) -> list[Any]:
    """The fields of a message, and a last one that says so where there are more."""
    return [_field(one, style) for one in message.fields] + [{"more": True}] * message.cut


def _field(field: WireField, style: Style) -> Shown:
    value: Any = field.value
    if isinstance(value, Message):
        value = _fields(value, style)
    elif isinstance(value, (str, bytes)):
        value = shown_value(value.encode() if isinstance(value, str) else value, style)
    return {"field": field.number, "type": field.type} | ({} if value is None else {"value": value})


def _reservoir(numbers: Iterable[int], count: int, rng: random.Random) -> list[int]:
    """Any `count` of some, of which nobody knows how many they are (Vitter's algorithm R)."""
    kept: list[int] = []
    for seen, number in enumerate(numbers):
        if seen < count:
            kept.append(number)
        elif (place := rng.randrange(seen + 1)) < count:
            kept[place] = number
    return kept
