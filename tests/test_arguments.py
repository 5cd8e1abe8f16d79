"""The functions of the package take the data, the schema and the place, in this order. A question has the answer
of its command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from recordspec.config import config_of, load
from recordspec.order.read_options import Read, Shuffle
from recordspec.writing.write_options import Order

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
def test_a_config_stands_for_its_data_and_its_schema(home, reader, tmp_path):
    config = home / "config.yaml"
    config.write_text("schema: spec.yaml\ndata: data")
    if reader is rs.stats:
        assert sum(one.records for one in rs.stats(config).splits) == 20
        return
    assert ids(reader, config, split=None) == list(range(20))
    if reader in (rs.read, rs.iterate):
        with pytest.raises(rs.StoreError, match="has the splits test, train"):
            ids(reader, config)
    config = tmp_path / "config.yaml"
    config.write_text(f"schema: {home}/spec.yaml\ndata: new")
    with pytest.raises(rs.StoreError) as caught:
        ids(reader, config, split=None)
    built = f"`recordspec build {config}` builds it"
    assert str(caught.value) == f"`{config}` is not built, as {tmp_path / 'new'} does not exist: {built}"
    # the classes of the config are those of the data, or else an error: not those of the stored schema
    (tmp_path / "other.yaml").write_text("schema: s\nfeatures: {id: float32}")
    config.write_text(f"schema: other.yaml\ndata: {home}/data")
    with pytest.raises(rs.StoreError, match=r"features.id.dtype: expected `int64`, as the data was written"):
        ids(reader, config, split=None)


def test_yaml_that_is_no_config_is_refused(home, tmp_path, command):
    (tmp_path / "notes.yaml").write_text("a: 1")
    with pytest.raises(rs.SpecError, match="expected TFRecord files or a config, got YAML without `data`"):
        rs.open(tmp_path / "notes.yaml")
    code, _, error = command("count", home / "spec.yaml")
    hint = "(the schema is an argument of its own, `schema` or --schema)"
    told = f"{home / 'spec.yaml'}: expected TFRecord files or a config, got a schema {hint}"
    assert (code, error.splitlines()[-1]) == (2, told)


@pytest.mark.parametrize(
    "reader",
    [pytest.param(rs.read, marks=pytest.mark.tensorflow), rs.iterate],
    ids=["rs.read", "rs.iterate"],
)
def test_a_shuffle_and_a_batch_mean_the_same_in_every_reader(home, reader):
    def order(**how: object) -> list[int]:
        return [int(row["id"]) for row in reader(home / "data", split=None, **how)]  # single rows

    assert order() == order(shuffle=False) != order(shuffle=True)
    assert sorted(order()) == list(range(20))
    assert order(shuffle=True) == order(shuffle=True, seed=0) != order(shuffle=True, seed=1)
    everywhere = [int(row["id"]) for row in rs.iterate(home / "data", split=None, shuffle=True)]
    assert order(shuffle=True) == everywhere


def test_true_shuffles_and_false_does_not_in_yaml_and_in_python(home, tmp_path):
    schema = rs.Schema.load(home / "spec.yaml")
    config = config_of(
        {"schema": "s.yaml", "data": "d", "read": {"shuffle": True}, "write": {"shuffle": True}}, schema
    )
    assert config.read.shuffle == Shuffle(seed=0, global_=True)
    assert config.write.shuffle == Order(seed=0)
    text = "schema: spec.yaml\ndata: data\nread: {shuffle: %s}\nwrite: {shuffle: %s}"
    (home / "true.yaml").write_text(text % ("true", "true"))
    (home / "false.yaml").write_text(text % ("false", "false"))
    assert load(home / "true.yaml")[0].read == config.read
    assert load(home / "true.yaml")[0].write == config.write
    assert load(home / "false.yaml")[0].read == Read()
    assert load(home / "false.yaml")[0].write.shuffle is None
    (home / "wrong.yaml").write_text(text % ("5", "3.5"))
    with pytest.raises(rs.SpecError) as caught:
        load(home / "wrong.yaml")
    assert [str(one).partition(": ")[2] for one in caught.value.problems] == [
        "read.shuffle: expected true, a mapping of seed, buffer, global, lanes, window or null, got int `5`",
        "write.shuffle: expected true or a whole number, got float `3.5`",
    ]
    for shuffle, seed in ((True, 0), (False, None), (7, 7), (np.True_, 0), (np.False_, None)):
        rs.write(ROWS, schema, tmp_path / "d", key="id", shuffle=shuffle, force=True)
        assert rs.Manifest.load(tmp_path / "d").shuffle_seed == seed


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
    hint = '`split="train"` reads one of them, and `split=None` all'
    assert str(caught.value) == f"`{home / 'data'}` has the splits test, train: {hint}"
    assert len(ids(reader, home / "data", split=None)) == 20


ANY = {
    **READERS,
    "rs.query": lambda files, schema, **_: rs.query("SELECT * FROM train", files, schema),
    "rs.export": lambda files, schema, **_: rs.export(files, Path(files).parent / "out.csv", schema=schema),
    "rs.leaks": lambda files, schema, **_: rs.leaks(files, schema),
    "rs.diff": lambda files, schema, **_: rs.diff(files, files, schema),
}


@pytest.mark.parametrize("reader", ANY.values(), ids=ANY)
def test_a_schema_that_the_files_contradict_is_refused(tmp_path, reader):
    """Other names of classes would be read as if they had been written."""
    schema = "schema: s\nfeatures:\n  c: {kind: label, names: [%s]}"
    rs.write([{"c": "cat"}], rs.Schema.loads(schema % "cat, dog"), tmp_path / "data")
    (tmp_path / "other.yaml").write_text(schema % "dog, cat")
    with pytest.raises(rs.StoreError) as caught:
        reader(tmp_path / "data", tmp_path / "other.yaml", **options(reader))
    written = 'features.c.names: expected `["cat", "dog"]`, as the data was written, got `["dog", "cat"]`'
    hint = "(build it again, or read it with its own schema.yaml)"
    assert str(caught.value) == f"{tmp_path / 'data'}: {written} {hint}"
    assert not (tmp_path / "out.csv").exists()


def test_a_schema_that_cannot_be_compared_is_used_and_told(tmp_path, caplog):
    rs.write(
        ROWS,
        rs.Schema.loads("schema: s\nfeatures: {id: int64, n: {dtype: int64, default: 0}}"),
        tmp_path / "d",
    )
    (tmp_path / "d/schema.yaml").unlink()
    assert len(rs.scan(tmp_path / "d", rs.Schema.loads(SPEC)).to_table()) == 20
    assert caplog.messages[0].startswith("the given schema is not compared with that of the files: ")


def test_a_manifest_says_nothing_of_other_files_beside_it(tmp_path):
    rs.write(ROWS, rs.Schema.loads("schema: s\nfeatures: {id: float32}"), tmp_path / "d")
    rs.write(ROWS, rs.Schema.loads(SPEC), tmp_path / "e")
    extra = next((tmp_path / "e").glob("*.tfrecord")).rename(tmp_path / "d/extra.tfrecord")
    assert rs.scan(extra, rs.Schema.loads(SPEC)).to_table()["id"].to_pylist() == list(range(20))


def test_a_folder_may_have_the_name_of_a_config(tmp_path):
    rs.write(ROWS, rs.Schema.loads(SPEC), tmp_path / "ds.yaml")
    assert len(rs.open(tmp_path / "ds.yaml")) == 20


def test_a_feature_that_is_newer_than_the_files_is_told_once(home, caplog):
    newer = rs.Schema.loads("schema: s\nfeatures: {id: int64, town: {dtype: int64, default: 7}}")
    for _ in range(2):
        assert rs.open(home / "data", newer)[0]["town"] == 7
        assert len(rs.scan(home / "data", newer).to_table()) == 20
    told = "written before the schema had `town`: stored as missing, decoded as the default"
    assert caplog.messages == [f"{home / 'data'}: {told}"]


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
    table = tmp_path / "rows.csv"
    table.write_text("id\n1\n")
    with pytest.raises(rs.RecordError) as caught:
        rs.read(table, batch=4)
    made = "`recordspec infer` and `recordspec build` make TFRecords of it"
    assert (
        str(caught.value) == f"{table}: expected a TFRecord file, got text that begins 'id\\n1\\n' ({made})"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("describe data", "use `recordspec export DATA --as tfds`"),
        ("language", "use `recordspec docs language`"),
        ("show data --record 0", "use `recordspec show FILES NUMBER`"),
        *((f"{name} data --spec spec.yaml", "use `--schema`") for name in ("head", "stats", "leaks", "view")),
        ("check spec.yaml data", "(the schema is an argument of its own, `schema` or --schema)"),
    ],
)
def test_the_old_form_of_a_command_names_the_new_one(home, command, monkeypatch, old, new):
    """As CHANGELOG.md lists them; keys of YAML are in test_config.py."""
    monkeypatch.chdir(home)
    code, out, error = command(*old.split())
    assert (code, out) == (2, "")
    assert error.rstrip().endswith(new)


def test_the_old_name_of_a_method_names_the_new_one(home):
    (home / "config.yaml").write_text("schema: spec.yaml\ndata: data")
    with pytest.raises(AttributeError, match=r"no attribute 'plan': it is `estimate` now$"):
        rs.Pipeline.load(home / "config.yaml").plan()


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
