"""Parses HTML to test that it is well-formed and harmless, and to read the text of its cells."""

from __future__ import annotations

import html.parser
import re

# Elements without an end tag.
EMPTY = ("meta", "line", "rect", "br", "img")
# The harmless elements: any other element may run code, or request a resource.
HARMLESS = re.compile(
    "a|article|audio|body|br|d[dlt]|desc|details|div|em|fig(caption|ure)|h[1-4]|head|header|html|img|li|line|main"
    "|meta|p|progress|rect|section|small|strong|style|summary|svg|table|t[dhr]|text|title|ul"
)


class Fragment(html.parser.HTMLParser):
    """The elements of HTML. Asserts that they are properly nested.

    Attributes:
        tags: the names of all elements.
        open: the elements that are not closed.
        outside: the attributes that request a resource from elsewhere, or run code.
        ids: the ids of elements.
        media: the values of `src`.
        rows: the texts of the cells of each row, for all tables.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.outside: list[str] = []
        self.ids: list[str] = []
        self.media: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        text.encode()  # a notebook is a UTF-8 file
        assert (self.open, self.outside) == ([], [])
        assert all(map(HARMLESS.fullmatch, self.tags))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "src" and value.startswith(("data:image/", "data:audio/")):
                self.media.append(value)
            elif name == "id":
                self.ids.append(value)
            elif name in ("src", "action", "href") or name.startswith("on"):
                self.outside += [] if name == "href" and value.startswith("#") else [f"{name}={value}"]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in EMPTY
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & {*self.open}:
            self.rows[-1][-1] += data
