"""The functions of the package take the data, the schema and the place, in this order. A question has the answer
of its command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs

SPEC = "schema: s\nfeatures: {id: int64}"
ROWS = [{"id": number} for number in range(20)]
READERS = {
    "rs.read": pytest.param(rs.read, marks=pytest.mark.tensorflow),
    "rs.iterate": rs.iterate,
    "rs.open": rs.open,
    "rs.scan": rs.scan,
    "rs.stats": rs.stats,
}
each_reader = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A dataset of two splits, and its schema outside of it."""
    home = tmp_path_factory.mktemp("arguments")
    (home / "spec.yaml").write_text(SPEC)
    rs.write(ROWS, home / "spec.yaml", home / "data", split={"train": 3, "test": 1}, key="id")
    return home


def options(reader) -> dict[str, int]:
    return {"batch": 4} if reader in (rs.read, rs.iterate) else {}


def ids(reader, *arguments: object, **asked: object) -> list[int]:
    """The ids of all rows that a reader returns."""
    found = reader(*arguments, **options(reader), **asked)
    if reader is rs.scan:
        return sorted(found.to_table()["id"].to_pylist())
    batches = [found[:]] if reader is rs.open else found
    return sorted(number for batch in batches for number in np.asarray(batch["id"]).tolist())


@each_reader
def test_the_schema_is_one_or_its_path_or_that_of_the_dataset(home, reader):
    if reader is rs.stats:
        counts = [
            {split: reader(home / "data", *schema)[split]["id"].records for split in ("train", "test")}
            for schema in ((), (rs.Schema.loads(SPEC),), (home / "spec.yaml",))
        ]
        assert counts == [counts[0]] * 3
        assert sum(counts[0].values()) == 20
        return
    for schema in ((), (rs.Schema.loads(SPEC),), (home / "spec.yaml",), (str(home / "spec.yaml"),)):
        assert ids(reader, home / "data", *schema, split=None) == list(range(20))


@each_reader
def test_a_split_is_read_alone(home, reader):
    if reader is rs.stats:
        assert [one.split for one in rs.stats(home / "data", split="test").splits] == ["test"]
        return
    parts = [ids(reader, home / "data", split=split) for split in ("train", "test")]
    assert sorted(parts[0] + parts[1]) == list(range(20))
    assert min(map(len, parts)) > 0
    with pytest.raises(rs.SpecError, match=r"^split: expected one of test, train, got `tset` \(did you mean"):
        ids(reader, home / "data", split="tset")


@pytest.mark.parametrize("reader", [READERS["rs.read"], rs.iterate])
def test_batches_of_several_splits_are_asked_for(home, reader):
    with pytest.raises(rs.StoreError) as caught:
        reader(home / "data", batch=4)
    hint = '`split="test"` reads one of them, and `split=None` all'
    assert str(caught.value) == f"`{home / 'data'}` has the splits test, train: {hint}"
    assert len(ids(reader, home / "data", split=None)) == 20


@pytest.mark.parametrize("old", ["schema", "path"])
@pytest.mark.parametrize("name", [*READERS, "rs.adopt", "rs.check"])
def test_the_old_order_of_arguments_is_an_error_with_the_new_one(home, name, old):
    function = getattr(rs, name.removeprefix("rs."))
    given = rs.Schema.loads(SPEC) if old == "schema" else str(home / "spec.yaml")
    with pytest.raises(rs.SpecError) as caught:
        function(given, home / "data", **options(function))
    hint = f"the schema is the second argument: `{name}(files, schema)`"
    assert str(caught.value) == f"files: expected files, got a schema ({hint})"


@pytest.mark.parametrize("old", ["schema", "path", "inferred"])
def test_rows_come_before_the_schema_of_a_write(home, tmp_path, old):
    given = {"schema": rs.Schema.loads(SPEC), "path": home / "spec.yaml", "inferred": rs.infer(ROWS)}[old]
    with pytest.raises(rs.SpecError) as caught:
        rs.write(given, ROWS, tmp_path / "new")
    hint = "the schema is the second argument: `rs.write(rows, schema, directory)`"
    assert str(caught.value) == f"rows: expected rows, got a schema ({hint})"


@pytest.mark.parametrize("call", ["write", "adopt", "ShardedWriter", "read", "open"])
def test_what_is_no_schema_is_refused(home, tmp_path, call):
    arguments = {
        "write": (ROWS, 5, tmp_path / "new"),
        "adopt": (home / "data", 5),
        "ShardedWriter": (5, tmp_path / "new"),
        "read": (home / "data", 5),
        "open": (home / "data", 5),
    }
    with pytest.raises(rs.SpecError, match=r"^schema: expected a Schema, or the path of one, got int 5$"):
        getattr(rs, call)(*arguments[call])
    assert not (tmp_path / "new").exists()


def test_files_without_a_schema_need_one(home, tmp_path):
    (shard,) = sorted((home / "data").glob("test-00000-*"))
    alone = tmp_path / "alone.tfrecord"
    alone.write_bytes(shard.read_bytes())
    with pytest.raises(rs.StoreError) as caught:
        rs.read(alone, batch=4)
    hint = "`rs.read(files, schema)` reads its rows"
    assert str(caught.value) == f"`{tmp_path}` has no schema: {hint}"


def answers(command, *arguments: object) -> list[object]:
    """What a command prints as JSON."""
    _, out, _ = command(*arguments, "--json")
    return [json.loads(line) for line in out.splitlines()]


def test_a_question_has_the_answer_of_its_command(home, tmp_path, command):
    data, spec = home / "data", home / "spec.yaml"
    rs.write(ROWS, spec, tmp_path / "other", split={"train": 3, "test": 1}, key="id", shuffle=1)
    (tmp_path / "wrong.yaml").write_text("schema: s\nfeatures: {id: int64, n: flaot32}")
    assert [file.dump() for file in rs.verify(data)] == answers(command, "verify", data)
    report = rs.check(data, spec, split="test")
    assert (report.valid, report.rows, report.mismatches) == (True, rs.Manifest.load(data).rows("test"), ())
    assert rs.check(data).rows == 20
    missing = rs.check(data, rs.Schema.loads("schema: s\nfeatures: {id: int64, n: float32}"))
    assert not missing.valid
    assert len(missing.mismatches) == 1
    assert not rs.diff(data, tmp_path / "other").different
    changed = rs.diff(rs.Schema.load(spec), rs.Schema.loads("schema: s\nfeatures: {id: float32}"))
    assert changed.different
    with pytest.raises(rs.SpecError, match=r"^new: expected a Schema, as the other, got str"):
        rs.diff(rs.Schema.load(spec), str(data))
    assert rs.leaks(data) == ()
    (leak,) = rs.leaks({"a": data / "train-*", "b": [data / "train-*"]}, columns=["id"])
    assert vars(leak) == vars(leak) | {"splits": ("a", "b"), "rows": report.rows and 20 - report.rows}
    sql = "SELECT max(id) AS most FROM train"
    assert rs.query(sql, data, spec).to_pylist() == answers(command, "query", sql, data)
    assert rs.query("SELECT * FROM t", {"t": data}).num_rows == 20
    exported = rs.export(data, tmp_path / "out.jsonl", where="id > 17", columns=["id"])
    assert sorted(json.loads(line)["id"] for line in Path(exported.file).read_text().splitlines()) == [18, 19]
    assert rs.lint([spec]) == ()
    (problem,) = rs.lint([spec, tmp_path / "wrong.yaml"])
    assert str(problem).startswith(f"{tmp_path}/wrong.yaml:2:26: features.n: expected a dtype, a kind")
    (unread,) = rs.lint(tmp_path / "gone.yaml")
    assert "gone.yaml" in str(unread)
