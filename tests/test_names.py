"""One name for one thing: no two types of the package have the same name. Few names say nothing, few fields a class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

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


def fields_of(node: ast.ClassDef) -> set[str]:
    """The names that the class declares, and those that its methods set on `self`."""
    declared = {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and "ClassVar" not in ast.unparse(item.annotation)
    }
    return declared | {
        item.attr
        for item in ast.walk(node)
        if isinstance(item, ast.Attribute)
        and isinstance(item.ctx, ast.Store)
        and ast.unparse(item.value) == "self"
    }


def test_a_class_that_writes_has_few_fields():
    """What one must know at once; a source has as many options as its format needs."""
    classes = {
        f"{path.name}: {node.name}": fields_of(node)
        for folder in ("writing", "spark")
        for path in (PACKAGE / folder).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    assert len(classes["build.py: Build"]) == 6
    assert {name: sorted(fields) for name, fields in classes.items() if len(fields) > 8} == {}


# Names that do not say what they hold.
VAGUE = {"found", "given", "held", "one"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def vague_names(tree: ast.Module) -> list[tuple[int, str, int]]:
    """The scopes that bind a vague name: line, name, and the lines from its first to its last use there."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def scopes(node: ast.AST) -> list[ast.AST]:
        above = []
        while (node := parents.get(node)) is not None:
            above += [node] if isinstance(node, SCOPES) else []
        return above

    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in VAGUE]
    uses += [node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.arg in VAGUE]
    binds = defaultdict(set)
    for node in uses:
        if scopes(node) and (isinstance(node, ast.arg) or isinstance(node.ctx, ast.Store)):
            is_named = isinstance(parents[node], ast.NamedExpr)
            home = next(scope for scope in scopes(node) if isinstance(scope, FUNCTIONS) or not is_named)
            binds[home].add(node.arg if isinstance(node, ast.arg) else node.id)
    lines = defaultdict(list)
    for node in uses:
        name = node.arg if isinstance(node, ast.arg) else node.id
        home = next((scope for scope in scopes(node) if name in binds[scope]), None)
        lines[home, name].append(node.lineno)
    return [(min(some), name, max(some) - min(some) + 1) for (_, name), some in lines.items()]


def test_a_name_that_does_not_say_what_it_holds_is_rare_and_short_lived():
    all_lines = [
        (str(path.relative_to(PACKAGE)), *use)
        for path in sorted(PACKAGE.rglob("*.py"))
        for use in vague_names(ast.parse(path.read_text()))
    ]
    assert [use for use in all_lines if use[-1] > 5] == []
    assert len(all_lines) <= 200
