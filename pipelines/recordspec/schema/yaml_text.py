"""Reads YAML to nodes with their positions, without executing or expanding anything, and writes YAML.

The events of the parser are converted to nodes without recursion, so that tags, absurd nesting and alias
bombs are refused before they cost anything.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from recordspec.errors import Path, Problem, SpecError, escape_unseen

# Limits far above any sensible spec (a vocabulary of 100,000 names belongs in a file of its own).
LARGEST_FILE = 4 << 20
DEEPEST_NESTING = 64
MOST_NODES = 200_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = yaml.resolver.Resolver()

# Numbers are decimal, without leading zeros: YAML 1.1 reads 012 as 10, YAML 1.2 as 12. Nor do they have
# underscores, which YAML 1.2 takes for text, or a plus. No number of a spec has more digits; Python refuses
# to convert thousands.
_DIGITS = "(?:0|[1-9][0-9]{0,99})"
INT = re.compile(f"-?{_DIGITS}")
FLOAT = re.compile(rf"-?({_DIGITS}(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
# Numbers that YAML readers disagree on: octal, hexadecimal, binary.
_LEADING_ZERO = re.compile(r"-?0[0-9_]+((\.[0-9_]*)?([eE][-+]?[0-9]+)?)")
_OTHER_BASE = re.compile(r"[-+]?(0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}|0b[01]{1,100})")
_UNDERSCORES = re.compile("(?<=[0-9])_+(?=[0-9])")
SPECIAL_FLOATS = {".nan": "nan", ".inf": "inf", "+.inf": "inf", "-.inf": "-inf", "nan": "nan"}


def number_hint(text: str) -> str:
    """A hint for a number that this reader rejects; empty for a text that is not a number, and for a
    number that it reads."""
    if INT.fullmatch(text):
        return ""
    if FLOAT.fullmatch(text):
        return "float64 does not hold it" if math.isinf(float(text)) else ""
    bare = _UNDERSCORES.sub("", text.removeprefix("+"))
    if FLOAT.fullmatch(bare):
        return f"write {bare}"
    if _LEADING_ZERO.fullmatch(bare):
        sign, digits = re.fullmatch("(-?)0[0_]*(.*)", bare).groups()  # type: ignore[union-attr]
        decimal = digits if digits[:1].isdigit() else f"0{digits}"
        return f"a leading zero can mean octal: write {sign}{decimal}"
    if _OTHER_BASE.fullmatch(text):
        return f"numbers are decimal: write {int(text, 0)}"
    return ""


@dataclass(frozen=True, kw_only=True)
class TextPosition:
    """A place in a file; line and column count from 1."""

    source: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(kw_only=True)
class ScalarNode:
    """A scalar; `plain` means unquoted."""

    position: TextPosition
    text: str
    plain: bool
    weight: int = 1

    @property
    def type(self) -> str:
        """The type of the scalar in YAML: str, int, float, bool, null, timestamp."""
        if not self.plain:
            return "str"
        tag = _RESOLVER.resolve(yaml.ScalarNode, self.text, (True, False))
        return str(tag).rpartition(":")[2]


@dataclass(kw_only=True)
class SequenceNode:
    """A list."""

    position: TextPosition
    values: list[Node] = field(default_factory=list)
    weight: int = 1


@dataclass(kw_only=True)
class MappingNode:
    """A mapping with its keys in order. Every key is text, whatever its type in YAML."""

    position: TextPosition
    values: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, ScalarNode] = field(default_factory=dict)
    pending: ScalarNode | None = None
    weight: int = 1


Node = ScalarNode | SequenceNode | MappingNode


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
        problem = error.problem or str(error)
        if "nesting depth" in problem:  # libyaml 0.2.6 reads ahead, and has a limit of its own: 1,000
            raise _too_deep(where) from None
        line = "".join(text.split("\n")[mark.line : mark.line + 1]) if mark else ""
        if mark and line[mark.column : mark.column + 1] == "\t":
            raise _refused(where, "spaces, with which YAML indents", "a tab") from None
        raise _refused(where, "YAML", problem) from None
    except UnicodeError:
        raise _refused(source, "text that UTF-8 can encode", "a lone surrogate") from None
    except yaml.YAMLError as error:
        raise _refused(source, "YAML", str(error).splitlines()[0]) from None
    if builder.root is None:
        raise _refused(source, "a mapping", "an empty file")
    return builder.root, builder.problems


class _Builder:
    """Converts the events of the parser to nodes."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._open: list[SequenceNode | MappingNode] = []
        self._anchors: dict[str, Node] = {}
        self._names: list[str | None] = []
        self._nodes = 0

    def take(self, event: Any) -> None:
        if getattr(event, "tag", None) is not None:
            raise _refused(self._place(event), "data without tags", f"the tag `{event.tag}`")
        if isinstance(event, yaml.ScalarEvent):
            plain = event.implicit[0]
            self._add(ScalarNode(position=self._place(event), text=event.value, plain=plain), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise _refused(self._place(event), "an anchor defined before", f"`*{event.anchor}`")
            self._add(self._anchors[event.anchor], None, self._place(event))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._add(self._open.pop(), self._names.pop())
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise _refused(self._place(event), "one document", "a second one")

    def _start(self, event: Any) -> None:
        position = self._place(event)
        if len(self._open) >= DEEPEST_NESTING:
            raise _too_deep(position)
        mapping = isinstance(event, yaml.MappingStartEvent)
        self._open.append(MappingNode(position=position) if mapping else SequenceNode(position=position))
        self._names.append(event.anchor)

    def _add(self, node: Node, anchor: str | None, position: TextPosition | None = None) -> None:
        self._nodes += node.weight if position else 1
        if self._nodes > MOST_NODES:
            raise _refused(position or node.position, f"at most {MOST_NODES:,} nodes", "more")
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.weight += node.weight
        if isinstance(parent, SequenceNode):
            parent.values.append(node)
        else:
            self._add_to_mapping(parent, node)

    def _add_to_mapping(self, mapping: MappingNode, node: Node) -> None:
        if mapping.pending is None:
            if not isinstance(node, ScalarNode):
                raise _refused(node.position, "text as a key", kind_of(node))
            mapping.pending = node
            return
        key, mapping.pending = mapping.pending, None
        if key.text in mapping.values:
            first = mapping.keys[key.text].position
            self.problems.append(
                Problem(
                    where=str(key.position),
                    expected="every key once",
                    got=f"`{key.text}` again",
                    hint=f"it is also at line {first.line}",
                )
            )
            return
        mapping.keys[key.text], mapping.values[key.text] = key, node

    def _place(self, event: Any) -> TextPosition:
        mark = event.start_mark
        return TextPosition(source=self.source, line=mark.line + 1, column=mark.column + 1)


def _refused(where: TextPosition | str, expected: str, got: str) -> SpecError:
    return SpecError(Problem(where=str(where), expected=expected, got=got))


def _too_deep(where: TextPosition | str) -> SpecError:
    return _refused(where, f"at most {DEEPEST_NESTING} levels of nesting", "more")


def kind_of(node: Node) -> str:
    """The description of a node in messages."""
    if isinstance(node, SequenceNode):
        return "a list"
    if isinstance(node, MappingNode):
        return "a mapping"
    return "nothing" if node.type == "null" else f"{node.type} `{node.text}`"


def locate(node: Node, path: Path) -> TextPosition:
    """The position of `path` below `node`, or of the deepest part of it that exists."""
    for part in path:
        if isinstance(node, MappingNode) and part in node.values:
            node = node.values[str(part)]
        elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.values):
            node = node.values[part]
        else:
            break
    return node.position


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, which would only make the file harder to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quotes text that our reader, unlike PyYAML's resolver, would read as a number, and text with characters
    that `dump` escapes, such as a line break that would be read as a space."""
    number = FLOAT.fullmatch(text) or number_hint(text) or text.lower() in SPECIAL_FLOATS
    quoted = number or not text.replace("\n", "").isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


_Dumper.add_representer(str, _represent_text)


def dump(value: Any) -> str:
    """Canonical YAML of plain values: keys in their order, short collections on one line.

    Invisible characters, such as U+202E, which reverses the direction of text, are escaped.
    """
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
    return escape_unseen(text, _escape)


def _escape(char: str) -> str:
    """An escape of YAML."""
    return f"\\u{ord(char):04x}" if ord(char) < 1 << 16 else f"\\U{ord(char):08x}"
