"""`recordspec docs`: the pages of the documentation. A wheel includes them."""

from __future__ import annotations

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
_OF_THE_SITE = re.compile(r"howto/.*|reference/(api|commands)|index|changelog|notebooks|gallery")
# Text that the site inserts, blocks of its layout, and the title of a page.
_INSERTED = re.compile(r"^\{\{ (\w+).*\}\}$", re.MULTILINE)
_LAYOUT = re.compile(r"^(`{3,}|:{3,})\{[^}]+\}.*?^\1$\n*", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_MADE_BY = {"language": "recordspec language", "architecture": "make docs-serve"}


def pages() -> dict[str, Path]:
    """The pages by name, from the wheel or from the clone that contains the package."""
    package = Path(recordspec.__file__).parent
    folders = (package / "pages", package.parents[1] / "docs")
    folder = next((folder for folder in folders if folder.is_dir()), folders[0])
    names = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.md")}
    return {name: path for name, path in sorted(names.items()) if not _OF_THE_SITE.fullmatch(name)}


@click.command(short_help="Show a page of the documentation.")
@click.argument("page", required=False)
@json_option
def docs(page: str | None, as_json: bool) -> None:
    """Show a page of the documentation, or list the pages.

    \b
      recordspec docs
      recordspec docs building

    What the site generates from the code, such as the list of all options, is printed by other commands,
    which the page names.
    """
    known = pages()
    if page is None:
        rows = [{"page": name, "title": _title(path)} for name, path in known.items()]
        print_rows(rows, as_json)
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in known:
        expected, hint = "a page that `recordspec docs` lists", nearest(name, known)
        raise SpecError(Problem(expected=expected, got=f"`{page}`", hint=hint))
    text = _LAYOUT.sub("", read_text(known[name], _MOST_BYTES))
    text = _INSERTED.sub(lambda match: f"`{_MADE_BY[match[1]]}` shows this part.", text)
    if not sys.stdout.isatty():
        print_text(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text, hyperlinks=False))


def _title(path: Path) -> str:
    title = _TITLE.search(read_text(path, _MOST_BYTES))
    return path.stem if title is None else title[1]
