"""YAML as nodes that know their line, read without executing or expanding anything.

The parser's events are turned into nodes by hand, without recursion, so that a tag, an absurd nesting
or an alias bomb is refused before it costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from recordspec.errors import Path, Problem, SpecError

# Limits far above any sensible spec (a vocabulary of 100,000 names belongs in a file of its own).
LARGEST_FILE = 4 << 20
DEEPEST_NESTING = 64
MOST_NODES = 200_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = yaml.resolver.Resolver()


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place in a file; line and column count from 1."""

    source: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(kw_only=True)
class Scalar:
    """A scalar as it stands; `plain` means unquoted."""

    place: Place
    text: str
    plain: bool
    weight: int = 1

    @property
    def type(self) -> str:
        """What YAML takes an unquoted scalar for: str, int, float, bool, null, timestamp."""
        if not self.plain:
            return "str"
        tag = _RESOLVER.resolve(yaml.ScalarNode, self.text, (True, False))
        return str(tag).rpartition(":")[2]


@dataclass(kw_only=True)
class Items:
    """A list."""

    place: Place
    values: list[Node] = field(default_factory=list)
    weight: int = 1


@dataclass(kw_only=True)
class Mapping:
    """A mapping, its keys in order; every key is text, whatever YAML would take it for."""

    place: Place
    values: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Scalar] = field(default_factory=dict)
    pending: Scalar | None = None
    weight: int = 1


Node = Scalar | Items | Mapping


def parse(text: str, source: str) -> tuple[Node, list[Problem]]:
    """The document in `text`, and the duplicate keys in it.

    Args:
        text: YAML, one document.
        source: the file's name, for messages.

    Raises:
        SpecError: it is not YAML, or not data only: tags, too deep, too large.
    """
    if len(text) > LARGEST_FILE:
        raise _refused(source, f"at most {LARGEST_FILE:,} characters", f"{len(text):,}")
    builder = _Builder(source)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise _refused(where, "YAML", error.problem or str(error)) from None
    except UnicodeError:
        raise _refused(source, "text that UTF-8 can encode", "a lone surrogate") from None
    except yaml.YAMLError as error:
        raise _refused(source, "YAML", str(error).splitlines()[0]) from None
    if builder.root is None:
        raise _refused(source, "a mapping", "an empty file")
    return builder.root, builder.problems


class _Builder:
    """Takes the parser's events one by one."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._open: list[Items | Mapping] = []
        self._anchors: dict[str, Node] = {}
        self._names: list[str | None] = []
        self._nodes = 0

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.NodeEvent):
            self._check_tag(event)
        if isinstance(event, yaml.ScalarEvent):
            plain = event.implicit[0]
            self._add(Scalar(place=self._place(event), text=event.value, plain=plain), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._add(self._open.pop(), self._names.pop())
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise _refused(self._place(event), "one document", "a second one")

    def _check_tag(self, event: Any) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise _refused(self._place(event), "data without tags", f"the tag `{tag}`")

    def _start(self, event: Any) -> None:
        place = self._place(event)
        if len(self._open) >= DEEPEST_NESTING:
            raise _refused(place, f"at most {DEEPEST_NESTING} levels of nesting", "more")
        mapping = isinstance(event, yaml.MappingStartEvent)
        self._open.append(Mapping(place=place) if mapping else Items(place=place))
        self._names.append(event.anchor)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise _refused(self._place(event), "an anchor that stands before", f"`*{event.anchor}`")
        self._add(self._anchors[event.anchor], None, self._place(event))

    def _add(self, node: Node, anchor: str | None, place: Place | None = None) -> None:
        self._nodes += node.weight if place else 1
        if self._nodes > MOST_NODES:
            raise _refused(place or node.place, f"at most {MOST_NODES:,} nodes", "more")
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.weight += node.weight
        if isinstance(parent, Items):
            parent.values.append(node)
        else:
            self._add_to_mapping(parent, node)

    def _add_to_mapping(self, mapping: Mapping, node: Node) -> None:
        if mapping.pending is None:
            if not isinstance(node, Scalar):
                raise _refused(node.place, "text as a key", kind_of(node))
            mapping.pending = node
            return
        key, mapping.pending = mapping.pending, None
        if key.text in mapping.values:
            first = mapping.keys[key.text].place
            self.problems.append(
                Problem(
                    where=str(key.place),
                    expected="every key once",
                    got=f"`{key.text}` again",
                    hint=f"it stands at line {first.line} already",
                )
            )
            return
        mapping.keys[key.text], mapping.values[key.text] = key, node

    def _place(self, event: Any) -> Place:
        mark = event.start_mark
        return Place(source=self.source, line=mark.line + 1, column=mark.column + 1)


def _refused(where: Place | str, expected: str, got: str) -> SpecError:
    return SpecError(Problem(where=str(where), expected=expected, got=got))


def kind_of(node: Node) -> str:
    """A node in an error message."""
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    return "nothing" if node.type == "null" else f"{node.type} `{node.text}`"


def locate(node: Node, path: Path) -> Place:
    """The place of `path` below `node`, or of the deepest part of it that is there."""
    for place in _places(node, path):
        deepest = place
    return deepest


def _places(node: Node, path: Iterable[str | int]) -> Iterator[Place]:
    yield node.place
    for part in path:
        if isinstance(node, Mapping) and part in node.values:
            yield node.keys[str(part)].place
            node = node.values[str(part)]
        elif isinstance(node, Items) and isinstance(part, int) and part < len(node.values):
            node = node.values[part]
        else:
            return
        yield node.place
