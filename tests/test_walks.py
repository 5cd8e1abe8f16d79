"""The walks of a row: the types on the way, and the turn-backs. `pytest -s tests/test_walks.py` prints both.

A type is on the way if a method of its class runs, also a method that `dataclass` generates.

Imports of the package point down. A turn-back is a call up, through an object that was handed down: the function's
file imports the caller's file, at its top or through other files. The caller is the nearest function of the package
on the stack; functions count once for each file that calls them. Four calls up are no turn-backs: a base class calls
its own object's method, a function constructs a class that it was given, a pool runs a task, and a generator
expression yields an item.

Neither cores nor timing change the figures: each pool ends with its walk, and threads of TensorFlow are not seen.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import recordspec as rs
from recordspec.cli import main

HOME = Path(rs.__file__).parents[1]
PACKAGE = str(HOME / "recordspec")
FILES = {
    ".".join(path.relative_to(HOME).with_suffix("").parts).removesuffix(".__init__"): str(path)
    for path in Path(PACKAGE).rglob("*.py")
}
POOLS = FILES["recordspec.executors"]
SPEC = """
schema: rides
features:
  id: {dtype: int64}
  fare: {dtype: float32, default: 0}
  company: {kind: label, names: [a, b, c]}
  tags: {kind: var_len, dtype: string}
"""
# Types and turn-backs. The record only falls: a lower figure is recorded by the commit that reaches it.
RECORDED = {
    "write dicts": (57, 4),
    "write a table": (49, 3),
    "infer a CSV": (35, 0),  # a text file is a type since chunks of it are scanned
    "stats": (71, 2),
    "check": (44, 3),
    "read a batch": (34, 1),
    "read by a config": (53, 3),
}
AIM = (15, 0)
ROWS = [{"id": i, "fare": i / 2, "company": "abc"[i % 3], "tags": ["x"] * (i % 3)} for i in range(1000)]
CONFIG = "schema: spec.yaml\ndata: {data}\nwrite: {{source: {{csv: rows.csv}}}}\nread: {{batch: 32}}\n"


@cache
def classes(file: str) -> dict[int, str]:
    """The names of a file's classes, by the first lines of their methods."""
    return {
        min(part.lineno for part in (method, *method.decorator_list)): node.name
        for node in ast.walk(ast.parse(Path(file).read_text()))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef)
    }


@cache
def imported(file: str) -> frozenset[str]:
    """The files of the package that a file imports at its top, or through other files."""
    tops = (node for node in ast.parse(Path(file).read_text()).body if isinstance(node, ast.ImportFrom))
    names = [(node.module, name.name) for node in tops for name in node.names]
    found = {FILES.get(f"{module}.{name}") or FILES.get(module) for module, name in names} - {None}
    return frozenset(found).union(*map(imported, found))


def class_of_generated(frame: Any) -> type | None:
    """The class of a method that `dataclass` has generated; the method's code names no file."""
    code = frame.f_code
    for cls in type(frame.f_locals.get("self")).__mro__:
        if cls.__module__ in FILES and getattr(vars(cls).get(code.co_name), "__code__", None) is code:
            return cls
    return None


def may_turn_back(caller: Any, frame: Any) -> bool:
    """Whether a call, if it goes up, is a turn-back."""
    name, own = frame.f_code.co_name, frame.f_locals.get("self")
    return (
        (own is None or own is not caller.f_locals.get("self"))
        and name not in ("__init__", "__post_init__")
        and caller.f_code.co_filename != POOLS
        and (name == "<lambda>" or not name.startswith("<"))
    )


def walk(function: Callable[[], Any]) -> tuple[list[str], list[str]]:
    """The types on the way, and the turn-backs."""
    types: set[tuple[str, str]] = set()
    calls: set[tuple[str, str, int]] = set()

    def record(frame: Any, event: str, _: Any) -> None:
        file, line = frame.f_code.co_filename, frame.f_code.co_firstlineno
        if event != "call":
            return
        if file == "<string>" and (cls := class_of_generated(frame)):
            types.add((FILES[cls.__module__], cls.__name__))
        if not file.startswith(PACKAGE):
            return
        if line in classes(file):
            types.add((file, classes(file)[line]))
        caller = frame.f_back
        while caller and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        if caller and may_turn_back(caller, frame):
            calls.add((caller.f_code.co_filename, file, line))

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    up = [f"{lower} calls {upper}:{line}" for lower, upper, line in sorted(calls) if lower in imported(upper)]
    return [f"{file} {name}" for file, name in sorted(types)], up


def command(*arguments: str) -> None:
    sys.argv[1:] = arguments
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, arguments


def walks(folder: Path) -> dict[str, tuple[list[str], list[str]]]:
    """One row's walks through the package, in this order: a walk does not run again what an earlier walk cached."""
    schema = rs.Schema.loads(SPEC)
    (folder / "spec.yaml").write_text(SPEC)
    (folder / "rows.csv").write_text(
        "id,fare,company\n" + "".join(f"{row['id']},{row['fare']},{row['company']}\n" for row in ROWS)
    )
    (folder / "config.yaml").write_text(CONFIG.format(data="dicts"))
    table = pyarrow.Table.from_pylist(ROWS)
    output, sys.stdout = sys.stdout, sys.stderr
    try:
        return {
            "write dicts": walk(lambda: rs.write(ROWS, schema, folder / "dicts", progress=False)),
            "write a table": walk(lambda: rs.write(table, schema, folder / "table", progress=False)),
            "infer a CSV": walk(lambda: rs.infer(folder / "rows.csv")),
            "stats": walk(lambda: command("stats", str(folder / "table"))),
            "check": walk(
                lambda: command("check", str(folder / "table"), "--schema", str(folder / "spec.yaml"))
            ),
            "read a batch": walk(lambda: next(iter(rs.read(folder / "dicts", schema, batch=32)))),
            "read by a config": walk(
                lambda: next(iter(rs.Pipeline.load(folder / "config.yaml").dataset("train")))
            ),
        }
    finally:
        sys.stdout = output


@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.newest
def test_the_record_of_types_and_turn_backs_only_falls(tmp_path):
    run = subprocess.run([sys.executable, __file__, str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    now = {name: (len(types), len(turn_backs)) for name, (types, turn_backs) in found.items()}
    assert now.keys() == RECORDED.keys()
    print(f"\n{'walk':18}{'recorded':>10}{'now':>10}{'aim':>10}")
    for name, recorded in RECORDED.items():
        print(f"{name:18}", *(f"{types:>6} {up:>3}" for types, up in (recorded, now[name], AIM)), sep="")
    for name in now:
        if now[name] != RECORDED[name]:
            print(f"\n{name}:", *found[name][0], *found[name][1], sep="\n  ")
    more = {name: now[name] for name in now if any(map(int.__gt__, now[name], RECORDED[name]))}
    assert not more, f"expected no more types and turn-backs than recorded, got {more}"
    assert now == RECORDED, "expected the recorded figures, got lower ones: record them"


if __name__ == "__main__":
    print(json.dumps(walks(Path(sys.argv[1]))))
