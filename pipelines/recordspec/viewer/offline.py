"""Writes the page with statistics as one file. It needs no server and loads no other resource."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files

from recordspec.errors import show_text
from recordspec.statistics.summary import StatsReport
from recordspec.viewer.distributions import drawn

# In this order, since each uses names of earlier scripts. `index.html` has the same order.
SCRIPTS = ("vendor/htm-preact.js", "cells.js", "charts.js", "rows.js", "view.js")


def page(report: StatsReport, title: str) -> str:
    """The HTML of a report. Its policy allows only its own scripts, by their hashes."""
    folder = files("recordspec.viewer").joinpath("page")
    style, *scripts = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("view.css", *SCRIPTS))
    hashes = " ".join(map(_hash, scripts))
    policy = f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}"
    data = {"title": show_text(title), "statistics": drawn(report, {})}
    # text of records must not end the element
    text = json.dumps(data).replace("<", "\\u003c")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(show_text(title))}</title><style>{style}</style></head>",
            "<body><noscript>This page needs JavaScript.</noscript>",
            f'<script type="application/json" id="data">{text}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>\n",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
