"""The walks of a row: how many files and functions of the package run. `pytest -s tests/test_walks.py` prints them.

A module's own code, and comprehensions, which some versions of Python inline, are not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import recordspec as rs
from recordspec.cli import main

PACKAGE = str(Path(rs.__file__).parent)
SPEC = """
schema: rides
features:
  id: {dtype: int64}
  fare: {dtype: float32, default: 0}
  company: {kind: label, names: [a, b, c]}
  tags: {kind: var_len, dtype: string}
"""
# Files and functions: at 1f35623, before encoding with Arrow arrays and before a build was composed of three protocols; as
# last recorded; and the number of files that is the goal. If a walk has to grow by more than a fifth, record it here anew.
RECORDED = {
    "write dicts": ((47, 402), (58, 477), 25),
    "write a table": ((45, 352), (53, 392), 25),
    "infer a CSV": ((43, 191), (31, 237), 25),
    "stats": ((39, 317), (43, 400), 20),
    "check": ((36, 271), (38, 298), 20),
    "read a batch": ((33, 210), (39, 233), 22),
    "read by a config": ((44, 265), (41, 269), 25),
}
ROWS = [{"id": i, "fare": i / 2, "company": "abc"[i % 3], "tags": ["x"] * (i % 3)} for i in range(1000)]
CONFIG = "schema: spec.yaml\ndata: {data}\nwrite: {{source: {{csv: rows.csv}}}}\nread: {{batch: 32}}\n"


def walk(function: Callable[[], Any]) -> dict[str, int]:
    """The numbers of files and of functions that run."""
    seen: set[tuple[str, int]] = set()

    def record(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            seen.add((code.co_filename, code.co_firstlineno))

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return {"files": len({file for file, _ in seen}), "functions": len(seen)}


def command(*arguments: str) -> None:
    sys.argv[1:] = arguments
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, arguments


def walks(folder: Path) -> dict[str, dict[str, int]]:
    """One row's ways through the package, in an order of which later ones find nothing that is cached."""
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
            "write dicts": walk(lambda: rs.write(schema, ROWS, folder / "dicts", progress=False)),
            "write a table": walk(lambda: rs.write(schema, table, folder / "table", progress=False)),
            "infer a CSV": walk(lambda: rs.infer(folder / "rows.csv")),
            "stats": walk(lambda: command("stats", str(folder / "table"))),
            "check": walk(lambda: command("check", str(folder / "spec.yaml"), str(folder / "table"))),
            "read a batch": walk(lambda: next(iter(rs.read(schema, folder / "dicts", batch=32)))),
            "read by a config": walk(
                lambda: next(iter(rs.Pipeline.load(folder / "config.yaml").dataset("train")))
            ),
        }
    finally:
        sys.stdout = output


@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.newest
def test_no_walk_grows_by_a_fifth(tmp_path):
    run = subprocess.run([sys.executable, __file__, str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    now = json.loads(run.stdout.splitlines()[-1])
    print(f"\n{'walk':18}{'before':>10}{'recorded':>10}{'now':>10}{'aim':>10}")
    for name, (before, recorded, aim) in RECORDED.items():
        files, functions = now[name].values()
        print(
            f"{name:18}", *(f"{a:>4} {b:>4}" for a, b in (before, recorded, (files, functions))), f"{aim:>8}"
        )
        assert files <= 1.2 * recorded[0], name
        assert functions <= 1.2 * recorded[1], name
    assert now.keys() == RECORDED.keys()


if __name__ == "__main__":
    print(json.dumps(walks(Path(sys.argv[1]))))
