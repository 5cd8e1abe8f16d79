"""Custom kinds, made of `schema.features.feature`, are treated as ours: no module goes by the class of a kind."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow
import pytest

import recordspec as rs
from recordspec import KINDS
from recordspec._tf import tf
from recordspec.integrity.check import check_files
from recordspec.kinds import (
    Column,
    Feature,
    Fixed,
    Traits,
    ValueType,
    VarLen,
    items,
    numbers,
    ragged_spec,
    to_arrow,
)
from recordspec.store.dataset import StoredDataset
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.tfrecord import TFRecords
from shell import run_here

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
        if (module or "").startswith("recordspec.schema.features")
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


@pytest.mark.newest
def test_kinds_are_asked_and_never_told_apart_by_their_class():
    """Outside of their own package: so a custom kind is treated as any other."""
    names = set(concrete_kinds())
    found = [
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if not file.is_relative_to(PACKAGE / "schema" / "features")
        for node in uses(ast.parse(file.read_text()), names)
    ]
    assert found == []
    told_apart = [
        str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if "in KINDS" in file.read_text()
    ]
    assert told_apart == []


def test_no_kind_is_told_by_the_name_of_an_option():
    """A custom kind may have an option of the same name, which means something else."""
    options = {name for kind in KINDS.values() for name in kind.__dataclass_fields__}
    options -= set(Feature.__dataclass_fields__)
    asked = [
        f"{path.relative_to(PACKAGE)}: {ast.unparse(node)}"
        for path in PACKAGE.rglob("*.py")
        if "features" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr")
        if ast.unparse(node.args[0]) in ("feature", "self.feature", "other", "old", "new")
        if isinstance(node.args[1], ast.Constant) and node.args[1].value in options
    ]
    assert len(options) > 20
    assert asked == []


@dataclass(frozen=True, kw_only=True)
class Grade(Feature):
    """A class of three, given as its name or index: what sources convert, `value_type` says."""

    kind: ClassVar[str] = "grade"

    given: str = "class"
    seen: ClassVar[list[object]] = []

    @property
    def value_type(self):
        return ValueType(self.given)

    @property
    def traits(self):
        return Traits(class_names=("low", "mid", "high"))

    def columns(self):
        return (Column(key=self.stored, storage="int64", layout=Fixed()),)

    def encode(self, values):
        self.seen.extend(values)
        texts = [one.decode() if isinstance(one, bytes) else one for one in values]
        names = [self.traits.class_names.index(one) if isinstance(one, str) else one for one in texts]
        return (to_arrow(numbers(names, "int64")),)

    def decode(self, columns):
        return columns[self.stored]

    def spec(self):
        return tf.TensorSpec([], tf.int64)

    def sample(self, rng):
        return self.traits.class_names[int(rng.integers(0, 3))]


def grades(given: str) -> rs.Schema:
    Grade.seen.clear()
    return rs.Schema(name="s", features=(Grade(name="g", given=given),))


@pytest.mark.parametrize(
    ("given", "text", "seen"),
    [
        ("class", "g\nmid\n2\n", ["mid", 2]),
        ("int64", "g\n1\n2\n", [1, 2]),
        ("text", "g\nmid\nhigh\n", ["mid", "high"]),
        ("any", "g\nmid\nhigh\n", ["mid", "high"]),
    ],
)
def test_cells_of_text_are_converted_to_what_the_kind_takes(tmp_path, given, text, seen):
    (tmp_path / "rows.csv").write_text(text)
    schema = grades(given)
    rs.write(Csv(files="rows.csv").open(tmp_path), schema, tmp_path / "data", key=None)
    assert Grade.seen[: len(seen)] == seen


def test_classes_of_a_custom_kind_are_those_of_the_dataset(tmp_path):
    schema = grades("class")
    manifest = rs.write(pyarrow.table({"g": ["high", "low", "high"]}), schema, tmp_path / "data", key=None)
    assert schema.classes == {"g": 3}
    assert manifest.labels == {"g": ("low", "mid", "high")}
    copy = rs.write(TFRecords(files="data").open(tmp_path), schema, tmp_path / "copy", key=None)
    assert sum(shard.rows for shard in copy.all_shards) == 3
    report = check_files(StoredDataset.of(tmp_path / "copy", schema).checked_files(), schema)
    assert (report.rows, report.valid) == (3, True)


def test_commands_read_rows_of_a_custom_kind_by_their_keys(tmp_path, caplog):
    rs.write([{"g": "low"}] * 3, grades("class"), tmp_path / "data")
    for arguments in (
        ("stats",),
        ("diff", tmp_path / "data"),
        ("verify",),
        ("export", "--out", "rows.jsonl"),
    ):
        caplog.clear()
        command, *options = arguments
        done = run_here(command, tmp_path / "data", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"{tmp_path / 'data/schema.yaml'}: custom kinds: grade; " in caplog.text
    assert (tmp_path / "rows.jsonl").read_text() == '{"g": 0}\n' * 3


def test_a_key_of_a_dataset_with_a_custom_kind_is_no_column_of_its_table(tmp_path):
    """The schema is not known, and so is no feature that is the key."""
    rs.write([{"g": "low"}, {"g": "mid"}], grades("class"), tmp_path / "data", key="g")
    assert rs.scan(tmp_path / "data").to_table().to_pylist() == [{"g": 0}, {"g": 1}]


def test_commands_refuse_blocks_of_a_custom_kind(tmp_path):
    rs.write([{"g": "low"}] * 3, grades("class"), tmp_path / "data", layout={"blocks": 2})
    done = run_here("stats", tmp_path / "data")
    hint = "blocks are unpacked by it, give it with --schema; see `recordspec docs explanation/blocks`"
    assert f"`{tmp_path / 'data/schema.yaml'}` has custom kinds: {hint}" in done.stderr
    assert done.returncode == 3


@dataclass(frozen=True, kw_only=True)
class Excerpt(Feature):
    """A list, and the part of it that is decoded, one record at a time, with its length."""

    kind: ClassVar[str] = "excerpt"

    list_first: bool = True

    @property
    def traits(self):
        return Traits(per_example=True, outputs=(self.name, f"{self.name}_count"))

    def columns(self):
        columns = (
            Column(key="list", storage="int64", layout=VarLen(ragged=True)),
            Column(key="part", storage="int64", layout=Fixed(shape=(2,))),
        )
        return columns if self.list_first else columns[::-1]

    def encode(self, values):
        flat, counts = items([value[0] for value in values], "int64", ())
        parts = numbers([value[1] for value in values], "int64", (2,)).reshape(-1)
        cells = (
            to_arrow(flat, counts),
            to_arrow(parts, 2),
        )
        return cells if self.list_first else cells[::-1]

    def decode(self, columns):
        start, stop = tf.unstack(columns["part"])
        part = columns["list"][start:stop]
        return {self.name: part, f"{self.name}_count": tf.size(part)}

    def spec(self):
        return {self.name: ragged_spec((None,), "int64"), f"{self.name}_count": tf.TensorSpec([], tf.int32)}

    def sample(self, rng):
        return rng.integers(0, 9, int(rng.integers(0, 5))).tolist(), (0, 2)


@pytest.mark.tensorflow
@pytest.mark.parametrize("list_first", [True, False])
@pytest.mark.parametrize(
    "values", [[([1, 2, 3], (1, 3)), ([], (0, 0)), ([4], (0, 1))], [([], (0, 0))] * 2, []]
)
def test_kinds_that_decode_one_record_may_have_lists_and_several_tensors(values, list_first):
    schema = rs.Schema(name="s", features=(Excerpt(name="x", list_first=list_first),))
    records = [schema.encode({"x": value}) for value in values]
    parts = [value[start:stop] for value, (start, stop) in values]
    decoded = [schema.decode(record) for record in records]
    assert [one["x"].numpy().tolist() for one in decoded] == parts
    batches = [schema.decode(tf.constant(records, tf.string))]
    if values:
        batches.append(schema.decode_block([schema.encode_block({"x": values}, len(values))]))
    for batch in batches:
        assert batch["x"].to_list() == parts
        assert batch["x_count"].numpy().tolist() == list(map(len, parts))
