"""The recipes of the page for coding agents, and `llms.txt`, the list of pages: both from the other pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from journeys import HOWTO, names

HERE = Path(__file__).parents[1]
_GROUP = re.compile(r"^```\{toctree\}\n:caption: ([^\n]+)\n:hidden:\n\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(?:yaml|python|console)\n.*?^```$", re.MULTILINE | re.DOTALL)
# What a recipe does, the page of its blocks, and the text where they begin and the heading where they end.
RECIPES = (
    ("Train on rows, export the model, and ask it", "serving", "# ", "## What a request has"),
    ("Make a dataset of a frame", "inferring", "### A config without YAML", "### Columns without a feature"),
    ("Build from a CSV file", "reference/values", "## CSV as it is written", "## Compressed files"),
)


def recipes(_: str) -> str:
    """Blocks of sections of other pages, which run in an empty folder."""
    parts = []
    for what, name, begin, end in RECIPES:
        text = (HERE / f"{name}.md").read_text()
        section = text[text.index(begin) : text.index(end)]
        parts += [f"### {what}", f"From [{_title(text)}]({name}.md).", *_BLOCK.findall(section)]
    return "\n\n".join(parts)


def llms() -> str:
    """The pages of the site by groups, each with its first sentence, in the form of https://llmstxt.org."""
    index = (HERE / "index.md").read_text()
    lines = ["# recordspec\n", f"> {_first_sentence(index)}\n"]
    for caption, listed in _GROUP.findall(index):
        lines += [f"## {caption}\n", *(_entry(name) for name in listed.split()), ""]
    lines += [
        f"## {_title((HOWTO / 'index.md').read_text())}\n",
        *(_entry(f"howto/{name}") for name in names()),
    ]
    return "\n".join(lines) + "\n"


def _entry(name: str) -> str:
    text = (HERE / f"{name}.md").read_text()
    about: Iterator[str] = filter(None, [f"[{_title(text)}]({name}.html)", _first_sentence(text)])
    return f"- {': '.join(about)}"


def _title(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1] if found else "Changelog"  # the title of the file that the page includes


def _first_sentence(text: str) -> str:
    """The first sentence of a page, without links; nothing if the page begins with something else."""
    paragraph = " ".join(text.split("\n\n", 2)[1].split())
    if not re.match(r"[\w*]|`\w", paragraph):
        return ""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph).replace("**", "")
    return re.split(r"(?<=\.)\s", plain)[0].removesuffix(":")


def write(app: Any, exception: Exception | None) -> None:
    """Writes `llms.txt` into the site."""
    if exception is None:
        (Path(app.outdir) / "llms.txt").write_text(llms())
