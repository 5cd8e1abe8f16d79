"""`recordspec docs`: the pages of the documentation, which a wheel includes, and the YAML language."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import click

import recordspec
from recordspec.cli.output import print_rows, print_text
from recordspec.cli.shared_options import json_option
from recordspec.errors import Problem, SpecError, nearest
from recordspec.locations import read_text

_MOST_BYTES = 1 << 20
# Pages that the site generates from other files, or that only link to other pages.
_OF_THE_SITE = re.compile(r"howto/.*|reference/(api|commands)|agents|index|changelog|notebooks|gallery")
# Text that the site inserts, blocks of its layout, and the title of a page.
_INSERTED = re.compile(r"^\{\{ (\w+).*\}\}$", re.MULTILINE)
_LAYOUT = re.compile(r"^(`{3,}|:{3,})\{[^}]+\}.*?^\1$\n*", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_MADE_BY = {"language": "recordspec docs language", "architecture": "make docs-serve"}
# The argument that lists the options of the YAML language, which are made from the code.
_LANGUAGE = "language"


def pages() -> dict[str, Path]:
    """The pages by name, from the wheel or from the clone that contains the package."""
    package = Path(recordspec.__file__).parent
    folders = (package / "pages", package.parents[1] / "docs")
    folder = next((folder for folder in folders if folder.is_dir()), folders[0])
    names = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.md")}
    return {name: path for name, path in sorted(names.items()) if not _OF_THE_SITE.fullmatch(name)}


@click.command(short_help="Show a page of the documentation.")
@click.argument("page", required=False)
@click.option(
    "--json-schema",
    is_flag=True,
    help="With `language`: a JSON Schema (2020-12) of specs and configs, for editors.",
)
@json_option
def docs(page: str | None, json_schema: bool, as_json: bool) -> None:
    """Show a page of the documentation, or list the pages.

    \b
      recordspec docs building
      recordspec docs language

    `recordspec docs language` lists every option of the YAML language, by kind of feature and section of a
    config. Editors with the YAML language server complete and check a file whose first line is
    `# yaml-language-server: $schema=recordspec.schema.json`, if `recordspec docs language --json-schema` was
    written to that file. `recordspec lint` checks more than a JSON Schema can express.
    """
    if json_schema and page != _LANGUAGE:
        raise click.UsageError("--json-schema belongs to `recordspec docs language`")
    if page == _LANGUAGE:
        _print_language(json_schema, as_json)
        return
    known = pages()
    if page is None:
        rows = [{"page": name, "title": _title(path)} for name, path in known.items()]
        rows.append({"page": _LANGUAGE, "title": "All options of the YAML language"})
        print_rows(rows, as_json)
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in known:
        expected, hint = "a page that `recordspec docs` lists", nearest(name, [*known, _LANGUAGE])
        raise SpecError(Problem(expected=expected, got=f"`{page}`", hint=hint))
    text = _LAYOUT.sub("", read_text(known[name], _MOST_BYTES))
    text = _INSERTED.sub(lambda match: f"`{_MADE_BY[match[1]]}` shows this part.", text)
    if not sys.stdout.isatty():
        print_text(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text, hyperlinks=False))


def _print_language(json_schema: bool, as_json: bool) -> None:
    from recordspec import language

    if json_schema:
        print_text(json.dumps(language.json_schema(), indent=1))
    else:
        print_rows(language.options_table(), as_json)


def _title(path: Path) -> str:
    title = _TITLE.search(read_text(path, _MOST_BYTES))
    return path.stem if title is None else title[1]
