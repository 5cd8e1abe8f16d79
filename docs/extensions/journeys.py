"""Pages of the scripts in tests/journeys: their comments are the text, their here-documents the files."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

HOWTO = Path(__file__).parents[1] / "howto"
FOLDER = Path(__file__).parents[2] / "tests/journeys"
_FILE = re.compile(r"^cat > (\S+) <<'?(YAML|PYTHON)'?\n(.*?)^\2$\n", re.MULTILINE | re.DOTALL)
# Behind this line a script has what a user writes; before it, it makes the raw data.
BEGIN = "# --\n"


def counted(text: str) -> int:
    """Lines that are neither empty nor a comment."""
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines())


def lines_of(name: str) -> dict[str, int]:
    """How many lines of YAML, of Python and of commands a journey has."""
    script = (FOLDER / f"{name}.sh").read_text().partition(BEGIN)[2]
    counts = {"YAML": 0, "PYTHON": 0}
    for _, language, text in _FILE.findall(script):
        counts[language] += counted(text)
    return {**counts, "commands": counted(_FILE.sub("", script).replace("\\\n", ""))}


def plain(name: str) -> str | None:
    """The same journey without recordspec, where there is one."""
    path = FOLDER / "plain" / f"{name}.py"
    return path.read_text() if path.exists() else None


def data_script(name: str) -> tuple[str, str]:
    """Returns a description of the data of `journey_data.py NAME`, and a standalone script that makes it."""
    source = (FOLDER / "journey_data.py").read_text()
    tree = ast.parse(source).body
    (makes,) = (node for node in tree if isinstance(node, ast.FunctionDef) and node.name == name)
    used = {node.id for node in ast.walk(makes) if isinstance(node, ast.Name)} | {"Path", "RAW"}
    used |= {"np"} if "DRAW" in used else set()
    lines = source.splitlines()
    imports, names = [], []
    for node in tree:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if used & {one.asname or one.name for one in node.names}:
                imports.append(lines[node.lineno - 1])
        elif isinstance(node, ast.Assign) and used & {ast.unparse(one) for one in node.targets}:
            names.append(lines[node.lineno - 1])
    body = textwrap.dedent("\n".join(lines[makes.body[1].lineno - 1 : makes.end_lineno]))
    script = "\n".join([*imports, "", *names, "RAW.mkdir(exist_ok=True)", "", body])
    return ast.get_docstring(makes) or "", f"{script}\n"


def page(name: str) -> str:
    """The page of a journey, in Markdown."""
    raw, _, script = (FOLDER / f"{name}.sh").read_text().partition(BEGIN)
    parts, position = [], 0
    if made := re.search(r'^python "\$RAW" (\w+)$', raw, re.MULTILINE):
        what, code = data_script(made[1])
        block = f"```{{code-block}} python\n:caption: make_data.py\n\n{code}```"
        parts.append(f":::{{dropdown}} The data of this page\n{what}\n\n{block}\n:::\n")
    for found in _FILE.finditer(script):
        parts += _shell(script[position : found.start()])
        language = found[2].lower()
        parts.append(f"```{{code-block}} {language}\n:caption: {found[1]}\n\n{found[3]}```\n")
        position = found.end()
    parts += _shell(script[position:])
    counts = lines_of(name)
    rows = [
        "| | YAML | Python | commands |",
        "|---|--:|--:|--:|",
        f"| this page | {counts['YAML']} | {counts['PYTHON']} | {counts['commands']} |",
    ]
    code = plain(name)
    if code is not None:
        rows.append(f"| without recordspec, below | | {counted(code)} | |")
    parts += ["## Lines of code\n", "\n".join(rows) + "\n"]
    if code is not None:
        parts += ["## Without recordspec\n", f"```python\n{code}```\n"]
    return "\n".join(parts)


def names() -> list[str]:
    """The journeys, in the order of the index of their pages."""
    return re.findall(r"^\w+$", (HOWTO / "index.md").read_text().partition("{toctree}")[2], re.MULTILINE)


def table(page: str) -> str:
    """All journeys and their lines, in Markdown; for the landing page, a sentence with the sums."""
    ours = {name: lines_of(name) for name in names()}
    alone = {name: counted(plain(name) or "") for name in ours}
    if page == "landing":
        lines = sum(sum(counts.values()) for counts in ours.values())
        return (
            f"The {len(ours)} [how-to pages](howto/index.md) have {lines:,} lines from raw data to a trained "
            "model: YAML, Python and commands. The same without recordspec has "
            f"{sum(alone.values()):,} lines. Tests run both with every change."
        )
    rows = ["| | YAML | Python | commands | without |", "|---|--:|--:|--:|--:|"]
    for name, counts in ours.items():
        title = (HOWTO / f"{name}.md").read_text().partition("\n")[0].removeprefix("# ")
        rows.append(f"| [{title}]({name}.md) | {' | '.join(map(str, counts.values()))} | {alone[name]} |")
    return "\n".join(rows)


def _shell(text: str) -> list[str]:
    """Commands, and comments between them as paragraphs."""
    parts = []
    for chunk in re.split(r"((?:^#.*\n)+)", text, flags=re.MULTILINE):
        if chunk.startswith("#"):
            parts.append(re.sub(r"^# ?", "", chunk, flags=re.MULTILINE))
        elif chunk.strip():
            commands = re.sub(r"^(?! )", "$ ", chunk.strip(), flags=re.MULTILINE)
            parts.append(f"```console\n{commands}\n```\n")
    return parts
