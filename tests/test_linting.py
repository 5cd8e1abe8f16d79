"""`rs.lint` and `lint --fix`: what a build would find before it reads rows, and corrections."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import Table, parquet

import recordspec as rs
from recordspec.linting import fix_files

SPEC = "schema: s\nfeatures:\n  age: int64  # years\n  name: {kind: label, names: [Ann, Bob]}\n"
CONFIG = """\
# people
schema: s.yaml
data: data
write:
  source: SOURCE
  key: id
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SPEC)
    Path("rows.csv").write_text("id,age,name\n1,30,Ann\n")
    Path("wide.csv").write_text("uid,years,nam\n1,30,Ann\n")
    Path("rows.jsonl").write_text('\n{"id": 1, "age": 30, "name": "Ann"}\nno JSON\n')
    Path("wide.jsonl").write_text('{"id": 1, "age": 30, "nam": "Ann"}\n')
    Path("short.jsonl").write_text('{"age": 30}\n')
    parquet.write_table(Table.from_pydict({"id": [1], "age": [30]}), "rows.parquet")


def lint(text: str) -> list[str]:
    Path("c.yaml").write_text(text)
    return list(map(str, rs.lint("c.yaml")))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{csv: rows.csv}", []),
        ("{jsonl: rows.jsonl}", []),
        ("{csv: s3://bucket/none.csv}", []),
        ("{csv: rowz.csv}", ["c.yaml:5:17: write.source.csv: `rowz.csv` does not exist (did you mean `rows.csv`?)"]),
        (
            "{parquet: {files: [rows.parquet, 'x*.parquet']}}",
            [
                "c.yaml:5:44: write.source.parquet.files[1]: `x*.parquet` matches no file "
                "(. has c.yaml, rows.csv, rows.jsonl, ...)"
            ],
        ),
        (
            "{csv: wide.csv}",
            [
                "c.yaml:6:8: write.key: expected one column `id` in wide.csv:1, got none (did you mean `uid`?)",
                "wide.csv:1: age: expected one column `age`, got none (other columns: uid, years, nam)",
                "wide.csv:1: name: expected one column `name`, got none (did you mean `nam`?)",
            ],
        ),
        (
            "{csv: {files: rows.csv, columns: {agee: age}}}",
            ["c.yaml:5:45: write.source.csv.columns.agee: expected features of `s`, got `agee` (did you mean `age`?)"],
        ),
        (
            "{csv: {files: rows.csv, missing: {agee: [x]}}}",
            ["c.yaml:5:45: write.source.csv.missing.agee: expected columns of the file in rows.csv:1, got `agee` (did you mean `age`?)"],
        ),
        ("{parquet: rows.parquet}", ["rows.parquet: name: expected one column `name`, got none (if all rows lack it: `missing: true` of the "
          "feature, and `columns: {name: null}`)"]),
        ("{jsonl: wide.jsonl}", ["wide.jsonl:1: expected names of `s`, got `nam` (did you mean `name`?)"]),
        (
            "{jsonl: short.jsonl}",
            [
                "c.yaml:6:8: write.key: expected a key: text or a whole number in short.jsonl:1, got nothing",
                "short.jsonl:1: features.name: expected one of `Ann`, `Bob`, or an index, got nothing",
            ],
        ),
        ("{image_folder: ./}", ["c.yaml:5:26: write.source.image_folder.image: expected a feature for it, got none (the options of the source name them)", "c.yaml:5:26: write.source.image_folder.label: expected a feature for it, got none (the options of the source name them)"]),
        ("{image_folder: {folder: s.yaml, image: age, label: name}}", ["c.yaml:5:35: write.source.image_folder.folder: `s.yaml` is not a folder"]),
        ("{image_folder: data}", ["c.yaml:5:26: write.source.image_folder: `data` does not exist (. has c.yaml, rows.csv, rows.jsonl, ...)"]),
    ],
)  # fmt: skip
def test_what_a_build_would_find_before_the_rows(source, expected):
    assert sorted(lint(CONFIG.replace("SOURCE", source))) == expected
    assert rs.lint("c.yaml", sources=False) == ()


def test_the_columns_of_splits_and_the_sources_of_each_are_examined():
    splits = CONFIG.replace("SOURCE", "{csv: rows.csv}") + "  splits: {column: fold}\n"
    assert lint(splits) == [
        "c.yaml:7:20: write.splits.column: expected one column `fold` in rows.csv:1, got none"
    ]
    assert lint(CONFIG.replace("SOURCE", "{train: {csv: rows.csv}, test: {csv: none.csv}}")) == [
        "c.yaml:5:48: write.source.test.csv: `none.csv` does not exist (. has c.yaml, rows.csv, rows.jsonl, ...)"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            CONFIG.replace("schema: s.yaml", "schema: t.yaml").replace("SOURCE", "{csv: rows.csv}"),
            ["c.yaml:2:9: schema: `t.yaml` does not exist (. has c.yaml, rows.csv, rows.jsonl, ...)"],
        ),
        ("schema: s\nfeatures:\n\tage: int64\n", ["c.yaml:3:1: expected spaces, with which YAML indents, got a tab"]),
        ("schema: s\nfeatures:\n  a: int64\n\tb: int64\n", ["c.yaml:4:1: expected spaces, with which YAML indents, got a tab"]),
        ("shcema: s\nfeatures: {a: int64}\n", ["c.yaml:1:1: shcema: expected one of schema, version, description, record, features, context, sequence, got `shcema` (did you mean `schema`?)"]),
    ],
)  # fmt: skip
def test_the_first_error_is_told_and_none_that_follows_from_it(text, expected):
    assert lint(text) == expected


def test_a_schema_of_several_configs_is_told_once():
    Path("s.yaml").write_text(SPEC.replace("int64", "int46"))
    Path("c.yaml").write_text(CONFIG.replace("SOURCE", "{csv: rows.csv}"))
    Path("d.yaml").write_text(CONFIG.replace("SOURCE", "{csv: rows.csv}"))
    assert len(rs.lint(["s.yaml", "c.yaml", "d.yaml"])) == 1


def test_what_has_one_answer_is_corrected_and_all_else_is_kept():
    spec = SPEC.replace("int64", "int46").replace("Ann, Bob", "'Ann', no")
    Path("s.yaml").write_bytes(spec.replace("\n", "\r\n").encode())
    Path("rows.csv").write_text("id,age,name\n1,30,Ann\n")
    config = CONFIG.replace("SOURCE", "{csv: {path: './rows.csv'}}").replace("key: id", "kye: idd")
    Path("c.yaml").write_text(config)
    assert lint(config)
    changes = fix_files([Path("c.yaml"), Path("s.yaml")])  # the config after its schema
    assert Path("s.yaml").read_bytes().decode() == spec.replace("int46", "int64").replace(
        "no]", '"no"]'
    ).replace("\n", "\r\n")
    assert Path("c.yaml").read_text() == config.replace("path", "files").replace("kye: idd", "key: id")
    assert changes[Path("c.yaml")].changes.splitlines() == [
        "--- c.yaml",
        "+++ c.yaml",
        "@@ -2,5 +2,5 @@",
        " schema: s.yaml",
        " data: data",
        " write:",
        "-  source: {csv: {path: './rows.csv'}}",
        "-  kye: idd",
        "+  source: {csv: {files: './rows.csv'}}",
        "+  key: id",
    ]
    assert rs.lint(["s.yaml", "c.yaml"]) == ()
    assert fix_files([Path("c.yaml"), Path("s.yaml")]) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int64", "int46, x: 3"),  # a problem without a hint
        ("age: int64", "age: int46\n  age: int64"),  # a key that is there twice
        ("int64  # years", "{shape: [2], shpae: [2]}"),  # the correction would be there twice
        ("int64", "int46\n  b: {kind: fixed_len, dtype: float32, sha: [-1]}"),  # which shows the next problem
        ("int64", '"int4\\u0036"'),  # an escape
        ("age: int64", "ages: int46"),  # a column that no file has
    ],
)
def test_a_file_in_which_something_stays_unclear_is_not_changed(old, new):
    text = SPEC.replace(old, new)
    Path("s.yaml").write_text(text)
    Path("c.yaml").write_text(CONFIG.replace("SOURCE", "{csv: rows.csv}"))
    config = Path("c.yaml").read_text()
    assert rs.lint("c.yaml")
    fix_files([Path("c.yaml"), *([Path("s.yaml")] if new != "ages: int46" else [])])
    assert (Path("s.yaml").read_text(), Path("c.yaml").read_text()) == (text, config)


def test_two_names_that_are_equally_near_are_both_told():
    Path("rows.csv").write_text("id1,id2,age,name\n1,2,30,Ann\n")
    config = CONFIG.replace("SOURCE", "{csv: rows.csv}")
    assert lint(config) == [
        "c.yaml:6:8: write.key: expected one column `id` in rows.csv:1, got none (did you mean `id2` or `id1`?)"
    ]
    assert reason() == "a problem has no single correction"


def reason() -> str:
    """Why `--fix` does not change c.yaml."""
    before = Path("c.yaml").read_text()
    fix = fix_files([Path("c.yaml")])[Path("c.yaml")]
    assert (fix.changes, Path("c.yaml").read_text()) == ("", before)
    return "\n".join([fix.reason, *map(str, fix.remaining)])


def test_features_that_differ_in_case_are_equally_near():
    Path("s.yaml").write_text("schema: s\nfeatures: {Age: int64, age: int64}\n")
    (problem,) = lint("schema: s.yaml\ndata: d\nread: {batch: 1}\nfit: {inputs: [AGE]}\n")
    assert problem.endswith("(did you mean `Age` or `age`?)")
    assert reason() == "a problem has no single correction"


def test_a_similar_file_does_not_replace_a_missing_one():
    Path("train-2024.csv").write_text("id,age,name\n1,30,Ann\n")
    splits = "{train: {csv: train-2024.csv}, test: {csv: test-2024.csv}}"
    (problem,) = lint(CONFIG.replace("SOURCE", splits))
    assert problem.endswith("`test-2024.csv` does not exist (did you mean `train-2024.csv`?)")
    assert reason() == "a problem has no single correction"


@pytest.mark.parametrize(
    ("line", "got", "fixed"),
    [
        ("read: {cache: false}", "bool `false` (did you mean `none`?)", "read: {cache: none}"),
        ("read: {cache: yes}", "bool `yes` (in quotes, it is a text)", None),
        ("description: true", "bool `true` (in quotes, it is a text)", None),
    ],
)
def test_a_bool_is_no_text(line, got, fixed):
    config = CONFIG.replace("SOURCE", "{csv: rows.csv}")
    (problem,) = lint(config + line)
    assert problem.endswith(f", got {got}")
    fix_files([Path("c.yaml")])
    assert Path("c.yaml").read_text() == config + (fixed or line)


def test_the_first_row_is_not_examined_if_it_may_be_quarantined():
    config = CONFIG.replace("SOURCE", "{jsonl: wide.jsonl}")
    assert len(lint(config)) == 1
    assert lint(config + "  invalid: quarantine\n") == []


def test_a_file_that_is_not_changed_tells_why():
    lint(CONFIG.replace("SOURCE", "{csv: {path: wide.csv}}").replace("key: id", "key: uid"))
    first, *remaining = reason().splitlines()
    assert first == "after the correction, these problems remain"
    assert [problem.split(":")[:3] for problem in remaining] == [
        ["wide.csv", "1", " age"],
        ["wide.csv", "1", " name"],
    ]
    Path("s.yaml").write_text(SPEC.replace("int64", "int46"))
    lint(CONFIG.replace("SOURCE", "{csv: rows.csv}"))
    assert reason() == "a problem is in another file, s.yaml"
    result = fix_files([Path("c.yaml"), Path("s.yaml")])
    assert [(str(path), fix.reason) for path, fix in result.items()] == [("s.yaml", "")]
