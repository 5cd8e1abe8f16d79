"""XML documents of annotations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar
from xml.etree import ElementTree
from xml.parsers import expat

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import Location, read_bytes

_T = TypeVar("_T")


def read_xml(path: Location, most: int, convert: Callable[[ElementTree.Element], _T]) -> _T:
    """Converts the root of a document of at most `most` bytes; `convert` may raise SpecError.

    Raises RecordError with the reason, StoreError.
    """
    try:
        return convert(parsed(read_bytes(path, most)))
    except expat.ExpatError as error:
        raise RecordError(Problem(expected="XML", got=str(error))) from None
    except SpecError as error:
        raise RecordError(error.problems) from None


def parsed(data: bytes) -> ElementTree.Element:
    """Parses a document. Rejects declarations of types and entities, which can expand without end, or
    name files.
    """
    builder, parser = ElementTree.TreeBuilder(), expat.ParserCreate()

    def refuse(*declared: Any) -> None:
        raise SpecError(Problem(expected="XML without a document type", got="<!DOCTYPE"))

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(data, True)
    return builder.close()


def child_of(element: ElementTree.Element, tag: str) -> ElementTree.Element:
    child = element.find(tag)
    if child is None:
        raise SpecError(Problem(path=(element.tag,), expected=f"<{tag}>", got="none"))
    return child


def text_of(element: ElementTree.Element, tag: str) -> str:
    text = (child_of(element, tag).text or "").strip()
    if not text:
        raise SpecError(Problem(path=(element.tag, tag), expected="text", got="none"))
    return text


def number_of(element: ElementTree.Element, tag: str, default: str | None = None) -> float:
    return number_in(element, tag, element.findtext(tag) or default or text_of(element, tag))


def number_in(element: ElementTree.Element, name: str, text: str) -> float:
    """The number of a child or an attribute with the given name. Raises SpecError for other text."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SpecError(Problem(path=(element.tag, name), expected="a number", got=f"`{text}`"))
    return number
