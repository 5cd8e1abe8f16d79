"""`rs.infer` of frames and files: a config that is changed, used and saved in Python (`inferring.inferred_config`)."""

from __future__ import annotations

import shutil

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import yaml

import recordspec as rs
from fragments import Fragment

ROWS = 60
COLUMNS = {
    "id": np.arange(ROWS),
    "size": np.linspace(-1, 1, ROWS),
    "city": np.array(["Rome", "Oslo"])[np.arange(ROWS) % 2],
    "price": np.arange(ROWS) / 8,
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "make",
    [pandas.DataFrame, polars.DataFrame, pyarrow.table, dict],
    ids=["pandas", "polars", "arrow", "dict"],
)
def test_a_frame_becomes_a_dataset_without_a_file_of_yaml(make, here):
    rows = make(COLUMNS)
    config = rs.infer(rows, "houses")
    assert list(config.schema.names) == [*COLUMNS]
    config = config.drop("id").with_features({"city": "text"})
    config = config.with_options(write={"splits": {"train": 3, "test": 1}}, read={"batch": 16})
    pipeline = config.pipeline("data/houses")
    manifest = pipeline.build(rows)
    assert manifest.rows("train") + manifest.rows("test") == ROWS
    assert pipeline.config.read.batch.size == 16
    assert (pipeline.config.fit.inputs, pipeline.config.fit.targets) == (("size", "city"), "price")
    assert [*here.iterdir()] == [here / "data"]
    assert sorted(pipeline.open("train").only(["price"])[:]["price"])[0] >= 0
    assert rs.write(rows, config, "other").rows("train") == ROWS


def test_changes_make_other_configs_and_guesses_follow_them():
    config = rs.infer(COLUMNS, "houses")
    assert config.pipeline("d").config.fit.targets == "city"
    assert config.drop("city").pipeline("d").config.fit.targets == "price"
    by_target = config.with_options(fit={"targets": "size"}).pipeline("d").config.fit
    assert (by_target.inputs, by_target.targets) == (("city", "price"), "size")
    assert {name: encode.as_ for name, encode in by_target.encode.items()} == {
        "city": "one_hot",
        "price": "normalize",
    }
    assert list(config.with_options(fit={"inputs": ["price"]}).pipeline("d").config.fit.encode) == ["price"]
    assert config.with_options(fit={"encode": {}}).pipeline("d").config.fit.encode == {}
    without_train = config.with_options(write={"splits": {"all": 1}})
    assert without_train.pipeline("d").config.fit.encode == {}  # nothing to learn from
    twice = (
        config.with_options(read={"batch": 8}).with_options(read={"shuffle": None}).pipeline("d").config.read
    )
    assert (twice.batch.size, twice.shuffle) == (8, None)
    assert config.changes == {}
    assert list(config.schema.names) == [*COLUMNS]


def test_a_feature_that_is_told_may_be_an_input():
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(ROWS)]
    config = rs.infer({**COLUMNS, "word": words}, "houses").with_options(fit={"targets": "price"})
    assert list(config.no_inputs) == ["word"]
    assert "word" not in config.pipeline("d").config.fit.inputs
    told = config.with_features({"word": {"kind": "label", "names": words}})
    assert "word" in told.pipeline("d").config.fit.inputs


def test_a_column_that_was_left_out_may_get_a_feature():
    rows = [{"n": 1, "both": "x"}, {"n": 2, "both": 3}]
    config = rs.infer(rows)
    assert config.left_out == ("both",)
    assert config.with_features({"both": "text"}).left_out == ()


def test_a_key_may_be_a_column_that_is_no_feature():
    config = rs.infer(COLUMNS, "houses").drop("id").with_options(write={"key": "id"})
    pipeline = config.pipeline("data/houses")
    assert pipeline.build(COLUMNS).key == ("id",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda config: config.drop("prise"),
            "expected one of id, size, city, price, got `prise` (did you mean `price`?)",
        ),
        (
            lambda config: config.with_features({"size": {"dtype": "float3"}}),
            "features.size.dtype: expected one of ",
        ),
        (
            lambda config: config.with_features({"size": rs.KINDS["text"](name="other")}),
            "features.size: expected a feature of the name `size`, got `other`",
        ),
        (
            lambda config: config.with_options(read={"bach": 3}),
            "read.bach: expected one of batch, ",
        ),
        (
            lambda config: config.with_options(fit={"targets": "prise"}),
            "fit.targets: expected one of id, size, city, price, got `prise` (did you mean `price`?)",
        ),
        (
            lambda config: config.with_options(fit={"inputs": ["size"]}).drop("size").pipeline("d"),
            "fit.inputs: expected one of id, city, price, got `size`",
        ),
    ],
)
def test_what_is_wrong_is_said_at_once(change, message):
    with pytest.raises(rs.SpecError) as error:
        change(rs.infer(COLUMNS, "houses"))
    assert str(error.value).startswith(message)


def test_a_saved_config_is_the_same(here):
    config = rs.infer(COLUMNS, "houses").drop("id")
    config = config.with_options(
        write={"splits": {"train": np.int64(3), "test": 1}}, fit={"inputs": ("size",), "targets": "price"}
    )
    config.save("configs/houses.yaml", schema="schemas/houses.yaml", data="data/houses")
    pipeline = config.pipeline("data/houses")
    manifest = pipeline.build(COLUMNS)
    loaded = rs.Pipeline.load("configs/houses.yaml")
    assert loaded.schema == config.schema
    assert loaded.manifest == manifest
    for section in ("write", "read", "fit"):
        assert getattr(loaded.config, section) == getattr(pipeline.config, section)
    text = (here / "configs/houses.yaml").read_text()
    assert text.splitlines()[:3] == [
        "# yaml-language-server: $schema=recordspec.schema.json",
        "schema: ../schemas/houses.yaml",
        "data: ../data/houses",
    ]
    assert "  inputs:\n" in text  # which are not proposed
    assert yaml.safe_load(text)["fit"] == {
        "inputs": ["size"],
        "targets": "price",
        "encode": {"size": "normalize"},
    }
    with pytest.raises(rs.StoreError) as error:
        config.save("configs/houses.yaml")
    assert str(error.value) == "`configs/houses.yaml` exists: force=True, or --force, replaces it"
    assert not (here / "configs/houses-schema.yaml").exists()
    config.drop("city").save("configs/houses.yaml", force=True)
    assert list(rs.Pipeline.load("configs/houses.yaml").schema.names) == ["size", "price"]
    assert rs.Pipeline.load("configs/houses.yaml").config.data == "../data/houses"


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_files_are_the_source_of_the_config(suffix, here):
    frame = pandas.DataFrame(COLUMNS)
    write = {"csv": frame.to_csv, "jsonl": frame.to_json, "parquet": frame.to_parquet}[suffix]
    options = {"csv": {}, "jsonl": {"orient": "records", "lines": True}, "parquet": {}}[suffix]
    write(f"houses.{suffix}", **options, **({} if suffix == "jsonl" else {"index": False}))
    (here / "houses").mkdir()
    for name in ("1", "2"):
        shutil.copy(f"houses.{suffix}", f"houses/{name}.{suffix}")
    for files, parts in ((f"houses.{suffix}", 1), ("houses", 2)):
        config = rs.infer(files).drop("id")
        assert config.schema.name == "houses"
        built = config.pipeline("data/here").build(force=True)
        assert sum(map(built.rows, built.splits)) == ROWS * parts
        config.save("configs/houses.yaml", force=True)
        assert rs.Pipeline.load("configs/houses.yaml").build(force=True) == built


def test_splits_of_files_are_kept(here):
    for split, count in {"train": 6, "test": 2}.items():
        (here / split).mkdir()
        pandas.DataFrame(COLUMNS).head(count).to_csv(here / split / "rows.csv", index=False)
    config = rs.infer(here)
    assert config.given_splits == ("train", "test")
    manifest = config.pipeline("data/all").build()
    assert (manifest.rows("train"), manifest.rows("test")) == (6, 2)


def test_a_notebook_shows_the_schema_and_the_notes():
    config = rs.infer([{"n": 1, "<b>": "x"}, {"n": 2, "<b>": 3}], "s")
    text = config._repr_html_()
    assert Fragment(text).rows[1][0] == "n"
    assert "<p>without &lt;b&gt;</p>" in text
    assert "<li>&lt;b&gt;: " in text
    assert repr(config) == f"InferredConfig(Schema(s, 1 feature: n), {len(config.notes)} notes)".replace(
        "1 notes", "1 note"
    )


def test_the_dataset_may_be_in_a_store(here):
    config = rs.infer({"a": [1, 2]}, "s")
    assert str(config.pipeline("s3://bucket/x").config.data) == "s3://bucket/x"
    config.save("s.yaml", data="s3://bucket/x")
    assert "\ndata: s3://bucket/x\n" in (here / "s.yaml").read_text()
    for call in (config.pipeline, lambda data: config.save("t.yaml", data=data)):
        with pytest.raises(rs.SpecError) as error:
            call("hdfs://host:9000/x")
        assert str(error.value) == (
            "data: expected a path or a URL of s3, gs, az, http or https, got `hdfs://host:9000/x`"
        )
    assert not (here / "t.yaml").exists()
