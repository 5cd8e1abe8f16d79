"""Custom kinds are treated as ours are: nothing outside of `spec/features` goes by the class of a feature."""

from __future__ import annotations

import ast
from pathlib import Path

from recordspec import KINDS

PACKAGE = Path(__file__).parents[2] / "pipelines/recordspec"


def concrete_kinds() -> dict[str, str]:
    """The class names of the kinds, and their modules."""
    return {kind.__name__: kind.__module__ for kind in KINDS.values()}


def uses(tree: ast.AST, names: set[str]) -> list[ast.AST]:
    """Where a module names kinds, but for annotations, calls that make a feature, and registrations."""
    modules = {node.module: node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names &= {
        alias.name
        for module, node in modules.items()
        if (module or "").startswith("recordspec.spec.features")
        for alias in node.names
    }
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    annotations = {
        part
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if isinstance(getattr(node, field, None), ast.AST)
        for part in ast.walk(getattr(node, field))
    }
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id not in names or node in annotations:
            continue
        parent = parents[node]
        makes = isinstance(parent, ast.Call) and parent.func is node
        registers = isinstance(parent, ast.Call) and ast.unparse(parent.func).endswith(".register")
        if not makes and not registers:
            found.append(node)
    return found


def test_kinds_are_asked_and_never_told_apart_by_their_class():
    """Outside of their own package: so a custom kind is treated as any other."""
    names = set(concrete_kinds())
    found = [
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if not file.is_relative_to(PACKAGE / "spec" / "features")
        for node in uses(ast.parse(file.read_text()), names)
    ]
    assert found == []
    told_apart = [
        str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if "in KINDS" in file.read_text()
    ]
    assert told_apart == []
