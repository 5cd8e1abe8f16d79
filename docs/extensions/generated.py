"""Fills in what is generated from the code: `{{ NAME }}` or `{{ NAME: ARGUMENT }}`, a line of a page.

The reference of the YAML language comes from the dataclasses that read it, the picture of the architecture
from the imports, the pages of journeys from the scripts that CI runs, and recipes from other pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import agents
import architecture
import commands
import yaml

import journeys
from recordspec.language import attributes, options_table, summary
from recordspec.schema.features import KINDS
from recordspec.schema.schema import HEAD, Schema

HERE = Path(__file__).parents[1]
_PLACE = re.compile(r"^\{\{ (\w+)(?:: ([\w.-]+))? \}\}$", re.MULTILINE)


def examples() -> dict[str, dict[str, str]]:
    """The example of every option, by where the option is."""
    found: dict[str, dict[str, str]] = yaml.safe_load((HERE / "reference/examples.yaml").read_text())
    return found


def head_options() -> Iterator[dict[str, Any]]:
    """The keys of a feature spec, in the form of `options_table`."""
    documented = attributes(Schema)
    texts = {"schema": "the name of the schema.", "features": "the features of an Example, by name."}
    types = {
        **dict.fromkeys(HEAD, "text"),
        "version": "a whole number",
        "record": "one of example, sequence_example",
    }
    for key in (*HEAD, "features", "context", "sequence"):
        text = texts.get(key) or documented[key]
        yield {
            "option": key,
            "type": types.get(key, "a mapping of features"),
            "default": {"schema": "required", "record": "example"}.get(key),
            "description": text,
        }


COMMON = (
    {
        "option": "kind",
        "type": f"one of {', '.join(KINDS)}",
        "default": "fixed_len",
        "description": "what the feature holds, and how it is stored.",
    },
    *(
        row
        for row in options_table()
        if row["in"] == "kind: fixed_len" and row["option"] in ("key", "missing", "description")
    ),
)
_COMMON_TEXTS = {row["option"]: row["description"] for row in COMMON}


def is_common(row: dict[str, Any]) -> bool:
    """Whether an option of a kind is that of every kind; a kind may give it a meaning of its own."""
    return row["in"].startswith("kind: ") and _COMMON_TEXTS.get(row["option"]) == row["description"]


def definitions(rows: Iterable[dict[str, Any]], place: str) -> Iterator[str]:
    """A definition list of options."""
    for row in rows:
        default, kind = row["default"], row["type"]
        if default == "required":
            kind += ", required"
        elif default is not None:
            kind += f", `{yaml_of(default)}` by default"
        text = row["description"][:1].upper() + row["description"][1:]
        example = examples()[place][row["option"]]
        if place.startswith(("kind: ", "every kind")):
            example = f"name: {example}"
        yield f"`{row['option']}` *({kind})*\n: {text}\n\n  ```yaml\n  {example}\n  ```\n"


def yaml_of(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()


def language(section: str) -> str:
    """The options of feature specs, of kinds or of configs; or `brief`, all in a line for each place."""
    if section == "brief":
        return "\n".join(_lines())
    if section == "spec":
        return "\n".join(definitions(head_options(), "schema"))
    if section == "features":
        return "\n".join(definitions(COMMON, "every kind"))
    lines: list[str] = []
    for place, rows in groupby(options_table(), key=lambda row: row["in"]):
        if place.startswith("kind: ") != (section == "kinds"):
            continue
        name = place.removeprefix("kind: ")
        level = "###" if section == "kinds" or "." not in place else "####"
        lines.append(f"{level} `{name}`\n")
        if section == "kinds":
            lines.append(f"{summary(KINDS[name])}\n")
        own = (row for row in rows if not is_common(row))
        lines += definitions(own, place)
    return "\n".join(lines)


def _lines() -> Iterator[str]:
    """The options of each place, with their types."""
    every = [{**row, "in": "every kind"} for row in COMMON]
    own = (row for row in options_table() if not is_common(row))
    for place, rows in groupby([*every, *own], key=lambda row: row["in"]):
        kind = place.removeprefix("kind: ")
        about = f" {summary(KINDS[kind])}" if kind != place else ""
        options = (
            f"`{row['option']}` ({row['type']}{', required' * (row['default'] == 'required')})"
            for row in rows
        )
        yield f"- **{place}**:{about} {'; '.join(options)}"


MAKERS = {
    "language": language,
    "commands": commands.page,
    "recipes": agents.recipes,
    "journey": journeys.page,
    "journeys": journeys.table,
    "architecture": lambda _: architecture.html(),
}


def filled(text: str) -> str:
    """A page with what is generated for it."""
    return _PLACE.sub(lambda found: MAKERS[found[1]](found[2] or ""), text)


def fill(app: Any, name: str, source: list[str]) -> None:
    source[0] = filled(source[0])


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", fill)
    app.connect("build-finished", agents.write)
    return {"parallel_read_safe": True}
