"""A picture of the package, drawn from its imports."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from xml.sax.saxutils import escape

PACKAGE = Path(__file__).parents[2] / "pipelines/recordspec"
_WIDTH, _BOX_WIDTH, _BOX, _BETWEEN = 760, 120, 34, 36


def imports() -> dict[str, set[str]]:
    """For each module or package, which others of recordspec its files import from, wherever in them."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name in ("__init__", "__main__"):
            continue
        found[name] |= set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recordspec."):
                found[name].add((node.module or "").split(".")[1])
            elif isinstance(node, ast.ImportFrom) and node.module == "recordspec":
                found[name] |= {one.name for one in node.names if (PACKAGE / f"{one.name}.py").exists()}
        found[name].discard(name)
    return found


def layers(found: dict[str, set[str]]) -> list[list[str]]:
    """Modules by the longest way down, the lowest first. Raises ValueError where imports are circular."""
    height: dict[str, int] = {}

    def of(name: str, above: tuple[str, ...] = ()) -> int:
        if name in above:
            raise ValueError(f"circular imports: {' -> '.join((*above, name))}")
        if name not in height:
            height[name] = max((of(one, (*above, name)) + 1 for one in found[name]), default=0)
        return height[name]

    rows: dict[int, list[str]] = defaultdict(list)
    for name in sorted(found):
        rows[of(name)].append(name)
    return [rows[index] for index in sorted(rows)]


def needed(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports that do not follow from others: A and B of A -> B -> C, without A -> C."""
    below: dict[str, set[str]] = {}
    for row in layers(found):
        for name in row:
            below[name] = set().union(found[name], *(below[one] for one in found[name]))
    return {
        name: others - set().union(*(below[one] for one in others), set()) for name, others in found.items()
    }


def docs_of(name: str) -> str:
    """The first line of the docstring of a package or module."""
    path = PACKAGE / name / "__init__.py"
    tree = ast.parse((path if path.exists() else PACKAGE / f"{name}.py").read_text())
    return (ast.get_docstring(tree) or "").split("\n")[0].rstrip(".")


def html() -> str:
    """The picture as SVG in raw HTML, the command line on top; and a list of what each module is for."""
    found = imports()
    rows = layers(found)[::-1]
    places: dict[str, tuple[float, float]] = {}
    for level, row in enumerate(rows):
        for column, name in enumerate(row):
            middle = _WIDTH * (column + 0.5) / len(row)
            places[name] = (middle - _BOX_WIDTH / 2, level * (_BOX + _BETWEEN))
    lines = []
    for name, others in sorted(needed(found).items()):
        x, y = places[name]
        for other in sorted(others):
            left, top = places[other]
            start, end = x + _BOX_WIDTH / 2, left + _BOX_WIDTH / 2
            bend = f"C{start:.0f},{y + _BOX + 18} {end:.0f},{top - 18} {end:.0f},{top}"
            lines.append(f'<path d="M{start:.0f},{y + _BOX} {bend}" opacity="0.35"/>')
    for name, (x, y) in places.items():
        lines.append(f'<rect x="{x:.0f}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX}" rx="6"/>')
        middle = x + _BOX_WIDTH / 2
        lines.append(f'<text x="{middle:.0f}" y="{y + 22}" text-anchor="middle">{escape(name)}</text>')
    height = len(rows) * (_BOX + _BETWEEN) - _BETWEEN
    picture = (
        f'<svg class="architecture" viewBox="-2 -2 {_WIDTH + 4} {height + 4}" role="img" '
        f'aria-label="The modules of recordspec, and what they import">{"".join(lines)}</svg>'
    )
    listed = [f"`{name}`\n: {docs_of(name)}.\n" for row in rows for name in row]
    return f"```{{raw}} html\n{picture}\n```\n\n" + "\n".join(listed)
