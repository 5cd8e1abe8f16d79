"""`recordspec init`, `lint`, `export --as` and `explain`, which prints what `schema.explain` finds."""

from __future__ import annotations

import json

import pytest

import recordspec as rs
from recordspec.interop import tfds, tfmd
from shell import run

pytestmark = pytest.mark.slow


def test_init_overwrites_nothing_and_writes_what_is_missing(tmp_path):
    """Of an interrupted one."""
    assert run("init", tmp_path).returncode == 0
    rows, config = tmp_path / "raw/flowers.csv", tmp_path / "configs/flowers.yaml"
    text = rows.read_text()
    rows.unlink()
    assert run("init", tmp_path).returncode == 0
    assert rows.read_text() == text
    config.write_text("mine")
    rows.unlink()
    done = run("init", tmp_path)
    assert done.returncode == 4
    assert done.stderr == f"`{config}` exists: nothing was written\n"
    assert (config.read_text(), rows.exists()) == ("mine", False)


def test_lint_tells_problems_and_exits_with_2(home, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("schema: s\nfeatures:\n  a: int46\n")
    fine = home / "schemas/flowers.yaml"
    done = run("lint", fine, bad, home / "configs/flowers.yaml")
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        f"{fine}: no problems",
        f"{bad}:3:6: features.a: expected a dtype, a kind, or a mapping of options, got `int46` "
        "(did you mean `int64`?)",
        f"{home}/configs/flowers.yaml: no problems",
    ]
    as_json = json.loads(run("lint", bad, "--json").stdout)
    assert as_json["where"] == f"{bad}:3:6"
    assert as_json["path"] == "features.a"
    assert run("lint", tmp_path / "none.yaml").returncode == 3


@pytest.mark.tensorflow
def test_explain_shows_what_is_stored(root):
    done = run("explain", root / "schemas/movie_ratings.yaml")
    assert done.stderr == ""  # TensorFlow keeps its log to itself
    rows = list(map(json.loads, done.stdout.splitlines()))
    assert rows[1] == {
        "feature": "Movie",
        "kind": "var_len",
        "stored as": "Movie: BytesList, VarLenFeature",
        "decodes to": "Tensor string (null,)",
        "padded with": '""',
        "bytes": rows[1]["bytes"],
    }
    assert rows[1]["bytes"] > 0


def test_explain_says_a_schema_in_other_languages(root):
    spec = root / "schemas/movie_ratings.yaml"
    python = run("explain", spec, "--python")
    assert python.stdout.startswith(
        "import tensorflow as tf\n\nfeatures = {\n    'Age': tf.io.FixedLenFeature("
    )
    said = run("explain", spec, "--as", "tfmd")
    assert said.stdout == tfmd.dumps(rs.Schema.load(spec))[0]
    assert said.stderr.splitlines() == ["note: schema: not expressed"]
    said = run("explain", spec, "--as", "tfds")
    assert said.stdout == tfds.dumps(rs.Schema.load(spec))[0]
    assert said.stderr.splitlines() == [
        "note: schema: not expressed",
        'note: features."Purchase Price".default: not expressed: TFDS fails at a record without the feature',
    ]


def test_a_description_names_its_files_and_is_refused_elsewhere(home):
    data = home / "data/flowers"
    done = run("export", data, "--as", "tfds")
    names = ["features.json", "species.labels.txt", "dataset_info.json"]
    assert list(map(json.loads, done.stdout.splitlines())) == [
        {"file": str(data / name), "bytes": (data / name).stat().st_size} for name in names
    ]
    assert (
        done.stderr
        == "note: features.sepal_length.default: not expressed: TFDS fails at a record without the feature\n"
    )
    refused = run("export", home, "--as", "tfds")
    assert refused.returncode == 3
    assert refused.stderr == (
        f"`{home}/manifest.json` does not exist: `recordspec build CONFIG` builds a dataset, `recordspec adopt` takes files of other writers\n"
    )
