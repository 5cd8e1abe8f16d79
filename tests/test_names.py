"""One name for one thing: no two types of the package have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.newest
PACKAGE = Path(__file__).parents[1] / "pipelines/recordspec"


def types_in(tree: ast.Module) -> list[str]:
    """The classes of a module and its aliases of types, private ones included."""
    found = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    aliases = [node for node in tree.body if isinstance(node, ast.Assign) and _is_alias(node.value)]
    return found + [target.id for node in aliases for target in node.targets if isinstance(target, ast.Name)]


def _is_alias(value: ast.expr) -> bool:
    """Whether a type is named: `A | B`, `dict[str, A]`, `Literal["a"]`. `Any` stands for types of TensorFlow."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return _is_alias(value.left) or _is_type_name(value.left)
    return isinstance(value, ast.Subscript) and _is_type_name(value.value)


def _is_type_name(value: ast.expr) -> bool:
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    return name[:1].isupper() or name in ("dict", "list", "tuple", "set", "type")


def test_the_name_of_a_type_has_one_home():
    homes = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in types_in(ast.parse(path.read_text())):
            homes[name].add(str(path.relative_to(PACKAGE)))
    assert len(homes) > 200
    assert {name: sorted(found) for name, found in homes.items() if len(found) > 1} == {}
