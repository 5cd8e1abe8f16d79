"""The YAML language, listed: `recordspec docs language` and its JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import recordspec as rs
from recordspec.language import json_schema, options_table
from shell import run_here as run

pytestmark = pytest.mark.newest
ROOT = Path(__file__).parents[1]
LANGUAGE = jsonschema.Draft202012Validator(json_schema())
FILES = [*ROOT.glob("schemas/*.yaml"), *ROOT.glob("configs/*.yaml")]
FILES += sorted((ROOT / "pipelines/recordspec/cli/starter").glob("*.yaml"))


def errors(text: str) -> list[str]:
    return [error.message for error in LANGUAGE.iter_errors(yaml.safe_load(text))]


def test_the_json_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_files_that_are_right_are_right_by_the_json_schema(path):
    assert errors(path.read_text()) == []


SPEC = "schema: s\nfeatures: {{x: {}}}"
CONFIG = "schema: s.yaml\ndata: data\n{}"
RIGHT = [
    SPEC.format("int64"),
    SPEC.format("text"),
    SPEC.format("{dtype: float32, shape: [2, 3], default: [[0, 0, 0], [1, 1, 1]]}"),
    SPEC.format("{kind: label, names: [a, b], oov: index}"),
    SPEC.format("{kind: label, names: [a, b], oov: null}"),
    SPEC.format("{kind: var_len, dtype: int64, as: dense}"),
    "schema: s\nrecord: sequence_example\ncontext: {n: int64}\nsequence: {x: {kind: fixed_len_sequence, dtype: int64}}",
    CONFIG.format("read:"),
    CONFIG.format("read: {batch: 32, shuffle: {buffer: 64MiB, seed: 1}, repeat: forever, staging: tensorflow}"),
    CONFIG.format("read: {batch: {size: 32, drop_remainder: true}, interleave: {cycle: auto}}\nfit: {inputs: x}"),
    CONFIG.format("write: {source: {csv: a.csv}, splits: {a: 1, b: 0.5}, shards: {size: 1MiB}, layout: {blocks: 9}}"),
    CONFIG.format("write: {source: {csv: [a.csv, b.csv]}, splits: {folds: 3}, shards: 4, key: [a, b], shuffle: 1}"),
    CONFIG.format("write: {source: {train: {tfrecord: a}, test: {jsonl: {files: b}}}, key: {names: a, unique: false}}"),
    CONFIG.format("read: {batch: 3}\nfit: {inputs: [x], targets: x, weights: {x: x}, pad_to: {x: 3}}"),
]  # fmt: skip
WRONG = [
    SPEC.format("int65"),
    SPEC.format("7"),
    SPEC.format("label"),
    SPEC.format("{dtype: float32, shap: [2]}"),
    SPEC.format("{dtype: float32, shape: 2}"),
    SPEC.format("{shape: [2]}"),
    SPEC.format("{kind: labl, names: [a]}"),
    SPEC.format("{kind: label, names: [1, 2]}"),
    SPEC.format("{kind: label, names: [a], oov: none}"),
    SPEC.format("{kind: image, encoding: tiff}"),
    SPEC.format("{kind: image, shape: [2, 2.5, 3]}"),
    SPEC.format("{kind: audio}"),
    SPEC.format("{kind: var_len, dtype: int64, as: list}"),
    SPEC.format("{kind: text, dtype: string}"),
    "features: {x: int64}",
    "schema: s\nfeatures: [x]",
    "schema: s\nfeatures: {x: int64}\nversion: one",
    "schema: s\nfeatures: {x: int64}\nrecord: examples",
    "schema: s\nfeatures: {x: int64}\nextra: 1",
    "data: data",
    CONFIG.format("reed: {batch: 3}"),
    CONFIG.format("read: {batch: many}"),
    CONFIG.format("read: {batch: {rows: 3}}"),
    CONFIG.format("read: {batch: 3, corrupt: ignore}"),
    CONFIG.format("read: {batch: 3, deterministic: 1}"),
    CONFIG.format("read: {repeat: always}"),
    CONFIG.format("write: {source: {cvs: a.csv}}"),
    CONFIG.format("write: {source: {csv: a, jsonl: b}}"),
    CONFIG.format("write: {source: {csv: {delimiter: x}}}"),
    CONFIG.format("write: {source: {train: {cvs: a.csv}}}"),
    CONFIG.format("write: {splits: [a]}"),
    CONFIG.format("write: {shards: many}"),
    CONFIG.format("write: {layout: {blocks: x}}"),
    CONFIG.format("write: {compression: zip}"),
    CONFIG.format("fit: {targets: x}"),
    CONFIG.format("fit: {inputs: x, pad_to: {x: long}}"),
]  # fmt: skip


@pytest.fixture
def lint(tmp_path):
    (tmp_path / "s.yaml").write_text(SPEC.format("int64"))
    for name, text in {"a.csv": "x,a,b", "b.csv": "x,a,b", "a": "", "b": '{"x": 1, "a": "k"}'}.items():
        (tmp_path / name).write_text(text)

    def linted(text: str) -> int:
        (tmp_path / "x.yaml").write_text(text)
        return run("lint", "x.yaml", cwd=tmp_path).returncode

    return linted


@pytest.mark.parametrize("text", RIGHT)
def test_what_lint_accepts_the_json_schema_accepts(lint, text):
    assert (lint(text), errors(text)) == (0, [])


@pytest.mark.parametrize("text", WRONG)
def test_what_the_json_schema_refuses_lint_refuses(lint, text):
    assert (lint(text), bool(errors(text))) == (2, True)


def test_every_option_has_a_description():
    rows = list(options_table())
    assert [(row["in"], row["option"]) for row in rows if not row["description"]] == []
    listed = {(row["in"], row["option"]) for row in rows}
    assert {
        ("kind: box", "format"),
        ("kind: var_len", "as"),
        ("read.batch", "size"),
        ("write.splits", "folds"),
        ("write.source.csv", "delimiter"),
        ("fit", "inputs"),
    } <= listed


def test_the_json_schema_describes_options_and_their_defaults():
    kind = json_schema()["$defs"]["kind_label"]
    assert kind["properties"]["oov"]["default"] == "error"
    assert kind["properties"]["names"]["description"] == "The class names, in the order of their indices."
    assert kind["required"] == []


def test_the_command_prints_both(tmp_path):
    done = run("docs", "language", "--json-schema")
    assert (done.returncode, json.loads(done.stdout)) == (0, json.loads(json.dumps(json_schema())))
    lines = [json.loads(line) for line in run("docs", "language").stdout.splitlines()]
    assert lines == list(options_table())
    done = run("docs", "building", "--json-schema")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Error: --json-schema belongs to `recordspec docs language`",
    )


def test_init_and_infer_write_it_beside_what_they_write(tmp_path):
    assert "mine/recordspec.schema.json" in run("init", "mine", cwd=tmp_path).stdout.splitlines()
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    done = run("infer", "x.csv", "--out", "s/x.yaml", "--config", "x.yaml", cwd=tmp_path)
    found = ["s/x.yaml", "x.yaml", "s/recordspec.schema.json", "recordspec.schema.json"]
    assert done.stdout.splitlines() == found
    for name in ("mine/schemas/flowers.yaml", "mine/configs/flowers.yaml", "s/x.yaml", "x.yaml"):
        path = tmp_path / name
        first, _, named = path.read_text().splitlines()[0].partition("$schema=")
        assert first == "# yaml-language-server: "
        language = jsonschema.Draft202012Validator(json.loads((path.parent / named).read_text()))
        assert list(language.iter_errors(yaml.safe_load(path.read_text()))) == []
    assert run("infer", "x.csv", cwd=tmp_path).stdout.startswith("schema: x\n")
    (tmp_path / "recordspec.schema.json").write_text("{}")
    done = run("infer", "x.csv", "--out", "y.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        3,
        "`recordspec.schema.json` exists, and is not the JSON Schema of recordspec\n",
    )


def test_custom_kinds_are_in_it():
    class Mesh(rs.KINDS["text"]):
        """A mesh.

        Attributes:
            faces: how many.
        """

        kind = "mesh"

    made = json_schema({**rs.KINDS, "mesh": Mesh})
    assert "mesh" in made["$defs"]["feature"]["else"]["properties"]["kind"]["enum"]
