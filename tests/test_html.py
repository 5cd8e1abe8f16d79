"""What a notebook shows of schemas, manifests and pipelines; of tables see `test_table_html.py`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import recordspec as rs
from fragments import Fragment
from recordspec import html

EVIL = "<script>alert('1')</script>\n\"&\udcff"
SEEN = "<script>alert('1')</script>\\n\"&\\udcff"
STYLE = ' style="text-align: left"'


@pytest.fixture
def schema():
    return rs.Schema.loads(
        "{schema: points, description: of a plane, "
        "features: {x: {dtype: string, default: ''}, inside: {kind: label, names: ['no', 'yes'], description: or not}}}"
    )


@pytest.fixture
def manifest(schema, tmp_path):
    rows = [{"x": "a", "inside": "no"}] * 3
    return rs.write(rows, schema, tmp_path / "data", shards=1)


def test_a_schema_is_a_table_of_its_features(schema):
    assert schema._repr_html_().replace(STYLE, "") == (
        "<div><p><strong>points: example, 2 features</strong></p><p>of a plane</p><table>"
        '<tr><th scope="col">feature</th><th scope="col">kind</th><th scope="col">options</th>'
        '<th scope="col">description</th></tr>'
        '<tr><th scope="row">x</th><td>fixed_len</td><td>dtype: string, default: &quot;&quot;</td><td></td></tr>'
        '<tr><th scope="row">inside</th><td>label</td><td>names: [&quot;no&quot;, &quot;yes&quot;]</td>'
        "<td>or not</td></tr></table></div>"
    )
    assert repr(schema) == "Schema(points, 2 features: x, inside)"


def test_a_feature_is_a_table_of_its_options(schema):
    assert Fragment(schema["inside"]._repr_html_()).rows == [
        ["option", "value"],
        ["names", '["no", "yes"]'],
        ["stored as", "inside: int64"],
    ]
    assert "<p>or not</p>" in schema["inside"]._repr_html_()


def test_rows_by_number_are_a_table_of_the_first(schema, manifest, tmp_path):
    rows = rs.open(tmp_path / "data")
    text = rows._repr_html_()
    assert f"<strong>3 rows of {tmp_path}/data</strong>" in text
    assert Fragment(text).rows[:2] == [["", "xstring", "insidelabel, 2 classes"], ["0", "a", "no"]]
    assert Fragment(rows.only(["x"])._repr_html_()).rows[0] == ["", "xstring"]
    given = rs.open([*(tmp_path / "data").glob("train*")], schema)
    assert Fragment(given._repr_html_()).rows[1] == ["0", "a", "no"]


def test_a_manifest_is_a_table_of_its_splits_and_one_of_its_classes(manifest):
    assert manifest._repr_html_().replace(STYLE, "") == (
        "<div><p><strong>points: example, layout rows</strong></p><table>"
        '<tr><th scope="col">split</th><th scope="col">rows</th><th scope="col">shards</th>'
        '<th scope="col">size</th></tr>'
        '<tr><th scope="row">train</th><td>3</td><td>1</td><td>141 B</td></tr></table><table>'
        '<tr><th scope="col">class</th><th scope="col">of</th><th scope="col">rows of train</th></tr>'
        '<tr><th scope="row">no</th><td>inside</td><td>3</td></tr>'
        '<tr><th scope="row">yes</th><td>inside</td><td>0</td></tr></table></div>'
    )
    assert repr(manifest) == "Manifest(points, train: 3 rows in 1 shard)"


def test_a_pipeline_shows_its_config_and_its_dataset_if_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text("{schema: s, features: {a: int64}}")
    (tmp_path / "c.yaml").write_text("{schema: schema.yaml, data: data, description: few, read: {batch: 4}}")
    pipeline = rs.Pipeline.load("c.yaml")
    assert repr(pipeline) == "Pipeline(s, data: data)"
    fragment = Fragment(pipeline._repr_html_())
    assert fragment.rows == [
        ["section", "option", "value"],
        ["read", "batch", '{"size": 4}'],
        ["feature", "kind", "options", "description"],
        ["a", "fixed_len", "dtype: int64", ""],
    ]
    assert "<p>s: data in data</p>" in re.sub("</?strong>", "", pipeline._repr_html_())
    missing = "`data/manifest.json` does not exist: `recordspec build CONFIG` builds a dataset, `recordspec adopt` takes files of other writers"
    assert f"<ul><li>{missing}</li></ul>" in pipeline._repr_html_()
    pipeline.build([{"a": 1}] * 3)
    assert Fragment(pipeline._repr_html_()).rows[-1] == ["train", "3", "1", "90 B"]
    (tmp_path / "data/manifest.json").write_text("{")
    text = rs.Pipeline.load("c.yaml")._repr_html_()
    assert "<li>data/manifest.json: expected a manifest of format 3, got JSONDecodeError: " in text
    assert Fragment(text).rows == fragment.rows


def test_names_and_texts_are_escaped(tmp_path):
    evil = EVIL.replace("\udcff", "")
    schema = rs.Schema(
        name=evil,
        description=EVIL,
        features=(
            rs.KINDS["label"](name=evil, names=(evil,), description=EVIL),
            rs.KINDS["fixed_len"](name="n", dtype="int64"),
        ),
    )
    fragment = Fragment(schema._repr_html_())
    seen = SEEN.replace("\\udcff", "")
    assert fragment.rows[1][::3] == [seen, SEEN]
    assert "\n" not in repr(schema)
    manifest = rs.write([{evil: evil, "n": 1}], schema, tmp_path / "data")
    assert Fragment(manifest._repr_html_()).rows[3] == [seen, seen, "1"]
    assert "\n" not in repr(manifest)
    path = tmp_path / "c.yaml"
    path.write_text("{schema: s.yaml, data: data}")
    (tmp_path / "s.yaml").write_text("{schema: s, features: {a: int64}}")
    assert "\n" not in repr(rs.Pipeline(rs.Pipeline.load(path).config, schema, evil))


def test_a_table_has_twenty_rows_and_names_the_others():
    features = tuple(rs.KINDS["fixed_len"](name=f"f{number}", dtype="int64") for number in range(1500))
    schema = rs.Schema(name="wide", features=features)
    text = schema._repr_html_()
    assert len(Fragment(text).rows) == 1 + 20
    assert "<summary>1,480 features more</summary>f20, f21, " in text
    assert text.endswith(", f1019, ...</details></div>")
    assert repr(schema).endswith(", f18, f19 and 1,480 more)")
    assert len(repr(schema)) < 200


def test_a_long_text_is_cut():
    assert html.short_text("a" * 300) == "a" * 197 + "..."
    assert html.text("a" * 300) == "a" * 300


def test_what_fails_is_told_beside_the_parts_that_are_made():
    def parts():
        yield html.paragraph("one")
        raise ValueError("<b>gone</b>")

    assert html.in_notebook(parts) == "<div><p>one</p><p>&lt;b&gt;gone&lt;/b&gt;</p></div>"


def test_features_are_indexed_by_name(schema):
    assert schema._ipython_key_completions_() == ["x", "inside"]
    assert schema["inside"] is schema.names["inside"]
    assert "x" in schema
    assert "y" not in schema
    with pytest.raises(rs.SpecError) as error:
        schema["insid"]
    assert str(error.value) == "expected one of x, inside, got `insid` (did you mean `inside`?)"


# In a process of its own: IPython takes the place of its main module.
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
for cell in sys.argv[1:]:
    shell.run_cell(cell)
    print("---")
"""
SPEC = "{schema: s, features: {x: float32}}"


@pytest.mark.slow
def test_an_error_is_a_sentence_and_its_traceback_is_kept(tmp_path):
    pytest.importorskip("IPython")
    cells = {
        f"import recordspec as rs\nrs.write([{{'x': 1}}, {{'x': 'a'}}], rs.Schema.loads('{SPEC}'), 'data')": [
            "RecordError: row 1: features.x: expected float32, got str 'a'",
            "data: nothing was published, after 0 rows (`invalid: quarantine` leaves out invalid rows; "
            "see `recordspec docs building`)",
            f"  line 2: rs.write([{{'x': 1}}, {{'x': 'a'}}], rs.Schema.loads('{SPEC}'), 'data')",
        ],
        f"def load():\n    return rs.Schema.loads('{SPEC.replace('32', '23')}')\n\nload()": [
            "SpecError: <text>:1:27: features.x: expected a dtype, a kind, or a mapping of options, got `float23` "
            "(did you mean `float32`?)",
            f"  line 2: return rs.Schema.loads('{SPEC.replace('32', '23')}')",
        ],
        f"def rows():\n    yield {{'x': float('one')}}\n\nrs.write(rows(), rs.Schema.loads('{SPEC}'), 'data')": [
            "WriteError: data: expected all the rows, got ValueError: could not convert string to float: 'one', "
            "after 0 rows (nothing was published)",
            f"  line 4: rs.write(rows(), rs.Schema.loads('{SPEC}'), 'data')",
            "  line 2 in rows: yield {'x': float('one')}",
        ],
        "raise rs.StoreError('mine') from KeyError('theirs')": [
            "StoreError: mine",
            "  line 1: raise rs.StoreError('mine') from KeyError('theirs')",
        ],
    }
    command = [sys.executable, "-c", CELLS, *cells, "%tb"]
    environment = os.environ | {"IPYTHONDIR": str(tmp_path / "ipython")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    *shown, traceback, _ = done.stdout.split("---\n")
    assert [text.split("\n")[:-1] for text in shown] == [*cells.values()]
    assert traceback.startswith("KeyError: 'theirs'\n\nThe above exception was the direct cause of")
    assert "recordspec.errors.StoreError: mine\n" in traceback
