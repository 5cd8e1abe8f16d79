"""The layers of the package, and what an import costs."""

from __future__ import annotations

import ast
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest
from pyarrow import csv, parquet

import recordspec as rs
from recordspec import _tf

LAYERS = [
    {"errors", "html", "_tf", "_keras", "_arrow", "_duckdb", "progress", "executors", "locations", "remote"},
    {"wire"},
    {"schema"},
    {"store"},
    {"order", "tables"},
    {"arrays", "integrity", "interop"},
    {"writing", "reading", "training", "statistics"},
    {"config", "pipeline", "spark", "ray_data", "inferring", "language", "linting", "testing", "kinds"},
    {"viewer"},
    {"cli", "__main__"},
]
# A room imports none that stands beside it, but for the last of all, where the parts of the package meet.
SIBLINGS_APART = LAYERS[:7]
PACKAGE = Path(__file__).parents[1] / "pipelines/recordspec"
SOURCES = [path.stem for path in (PACKAGE / "writing/sources").glob("[!_]*.py")]
SOURCES = [
    name
    for name in SOURCES
    if name
    not in (
        "base",
        "ranges",
        "text_cells",
        "text_files",
        "notation",
        "class_names",
        "arrow",
        "objects",
        "json_array",
        "csv_dialect",
        "partitions",
    )
]
HEAVY = ("tensorflow", "keras", "pandas", "pyarrow", "duckdb", "PIL")


def layer(name: str) -> int:
    return next(index for index, names in enumerate(LAYERS) if name in names)


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The rooms of the package that a file imports from, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recordspec."):
            found.add(node.module.split(".")[1])
        if isinstance(node, ast.ImportFrom) and node.module == "recordspec":
            found |= {name.name for name in node.names if name.name not in ("__version__",)}
    return found


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.stem != "__init__"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    home = room(path)
    for other in imported(path) - {home}:
        assert layer(other) <= layer(home), f"{home} imports {other}"
        beside = any({home, other} <= names for names in SIBLINGS_APART[1:])
        assert not beside, f"{home} imports {other}, which stands beside it"


def test_every_room_has_a_layer():
    assert {room(path) for path in FILES} == set().union(*LAYERS)


def loaded(code: str) -> list[str]:
    """The heavy packages that are there after some code has run."""
    report = f"import sys\n{code}\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[-1].split()


def modules_after(code: str) -> list[str]:
    """The modules of the package that are there after some code has run."""
    report = f"import sys\n{code}\nprint(*[name for name in sys.modules if name.startswith('recordspec.')])"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return [name.removeprefix("recordspec.") for name in run.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import recordspec",
        "import recordspec; recordspec.Schema, recordspec.Pipeline, recordspec.write, recordspec.read",
        "from recordspec import Schema; Schema.loads('schema: s\\nfeatures: {a: int64}').encode({'a': 1})",
        "import recordspec.cli, recordspec.testing, recordspec.kinds",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code):
    assert loaded(code) == []


def test_files_that_are_no_config_need_no_schema(tmp_path):
    """Importing it takes 0.06 s, a third of `recordspec count`."""
    rs.write([{"a": 1}], rs.Schema.loads("schema: s\nfeatures: {a: int64}"), tmp_path / "data")
    code = f"from recordspec.statistics.count import count; count({str(tmp_path / 'data')!r})"
    assert not [name for name in modules_after(code) if name.startswith("schema.schema")]


@pytest.mark.slow
def test_what_reads_records_imports_no_pandas(tmp_path, monkeypatch):
    """pyarrow imports it for scalars, for lists and NumPy's arrays, and for empty tables: 0.2 s of a command."""
    monkeypatch.chdir(tmp_path)
    schema = rs.Schema.loads("schema: s\nfeatures: {a: text, n: int64, v: {kind: var_len, dtype: float32}}\n")
    rows = {"a": ["x", "yy"] * 50, "n": [*range(100)], "v": [[0.5, 1.0], []] * 50}
    rs.write(rows, schema, "data", progress=False)
    commands = (
        "stats data",
        "infer data/train-00000-of-00001.tfrecord",
        "sample data",
        "diff data data --by distribution",
        "export data --out x.jsonl",
        "export data --out x.csv --columns a,n",
        "export data --out x.parquet",
    )
    # of these, only the program prevents it
    commands += ("head data --where n>1", "export data --out y.csv --columns a,n --where n>1")
    commands += ("query 'SELECT n FROM train' data", "leaks data --columns n")
    lines = [
        "import shlex, sys",
        "from recordspec.__main__ import main",
        f"for command in {commands}:",
        "    sys.argv = ['recordspec', *shlex.split(command)]",
        "    try:",
        "        main()",
        "    except SystemExit as error:",
        "        assert not error.code, command",
        "    assert 'pandas' not in sys.modules, command",
    ]
    assert "pandas" not in loaded("\n".join(lines))


@pytest.mark.slow
def test_the_schema_of_a_csv_is_inferred_without_what_reads_other_files(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,x\n2,y\n")
    code = f"import recordspec; recordspec.infer({str(tmp_path / 'rows.csv')!r})"
    modules = modules_after(code)
    assert [
        name
        for name in modules
        if name.startswith(("interop.", "tables.", "statistics.", "arrays.", "reading.", "training."))
    ] == []


@pytest.mark.slow
def test_a_config_loads_no_source_but_its_own(root, tmp_path):
    code = f"import recordspec; recordspec.Pipeline.load({str(root / 'configs/taxi.yaml')!r})"
    forms = {f"writing.sources.{name}" for name in SOURCES}
    modules = modules_after(code)
    assert forms.intersection(modules) == {"writing.sources.csv"}
    assert [name for name in modules if name.startswith(("writing.build", "writing.local", "spark"))] == []
    (tmp_path / "spec.yaml").write_text("schema: s\nfeatures: {a: int64}\n")
    (tmp_path / "config.yaml").write_text("schema: spec.yaml\ndata: data\n")
    code = f"import recordspec; recordspec.Pipeline.load({str(tmp_path / 'config.yaml')!r})"
    assert [name for name in modules_after(code) if name.startswith("writing.sources")] == []


# These encode records as columns, or count their values.
LOADED = {command: {"pyarrow"} for command in ("explain {spec}", "stats {data}", "diff {data} {data}")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *(
            "--help",
            "build --help",
            "count {data}",
            "head {data}",
            "verify {data}",
            "stats {data}",
            "diff {data} {data}",
            "lint {spec}",
        ),
        *("explain {spec}", "explain {spec} --python"),
        *("explain {spec} --as tfmd", "explain {spec} --as tfds", "describe {data}"),
    ],
)
def test_quick_commands_load_no_tensorflow_and_take_half_a_second(command, tmp_path, root):
    import recordspec as rs

    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    rs.write([{"a": 1}] * 9000, schema, tmp_path / "data", compression="gzip")
    given = command.format(data=tmp_path / "data", spec=root / "schemas/digits.yaml").split()
    code = f"sys.argv[1:] = {given}\nfrom recordspec.cli import main\ntry: main()\nexcept SystemExit: pass"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert set(loaded(code)) - {"PIL"} == LOADED.get(command, set())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # the issue of start-up time is one of imports: ten times what it takes would be another one
    assert after.ru_utime - before.ru_utime < 2.0


CELLS = """
schema: s
features:
  whole: int64
  real: {dtype: float32, default: 0}
  truth: {kind: tensor, dtype: bool, shape: []}
  text: {dtype: string, default: "-"}
  name: {kind: label, names: [a, b]}
"""
LISTS = "  many: {kind: var_len, dtype: int64}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "schema"),
    [("csv import Csv as Form", CELLS), ("parquet import Parquet as Form", CELLS + LISTS)],
    ids=["csv", "parquet"],
)
def test_columns_of_arrow_become_values_without_pandas(tmp_path, source, schema):
    """pyarrow looks for it in its own ways to NumPy, and a Ctrl-C during that import is lost."""
    table = pyarrow.table(
        {
            "whole": [1, 2],
            "real": [0.5, None],
            "truth": [True, False],
            "text": ["x", None],
            "name": ["a", "b"],
            "many": [[1, 2], []],
        }
    )
    parquet.write_table(table, tmp_path / "rows")
    if "csv" in source:
        csv.write_csv(table.drop(["many"]), tmp_path / "rows")
    code = f"""
from pathlib import Path
from recordspec import Schema, write
from recordspec.writing.sources.{source}
folder = Path({str(tmp_path)!r})
write(Form(**{{Form.SHORT_FORM: "rows"}}).open(folder), Schema.loads({schema!r}), folder / "data")
"""
    assert loaded(code) == ["pyarrow"]


def test_without_tensorflow_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(rs.MissingExtra) as error:
        _tf.tf.constant(1)
    assert str(error.value).startswith(
        "expected TensorFlow for tensors and tf.data, got import of tensorflow"
    )
    assert str(error.value).endswith(
        "(pip install 'recordspec[tensorflow]'; see `recordspec docs installing`)"
    )
